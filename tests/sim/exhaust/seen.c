#include "tests/sim/exhaust/seen.h"

#include <string.h>

#include "common/mem.h"

enum { ROOM_FIRST = 1 << 16 };

static uint64_t *empty(size_t room)
{
    uint64_t *at = mem_alloc(room * sizeof *at);

    memset(at, 0, room * sizeof *at);
    return at;
}

void seen_init(struct seen *s, size_t most)
{
    *s = (struct seen){.at = empty(ROOM_FIRST), .room = ROOM_FIRST, .most = most};
}

void seen_drop(struct seen *s)
{
    mem_free(s->at);
    s->at = NULL;
}

static bool put(uint64_t *at, size_t room, uint64_t code)
{
    size_t i = (size_t)code & (room - 1);

    while (at[i] && at[i] != code)
        i = (i + 1) & (room - 1);
    if (at[i])
        return false;
    at[i] = code;
    return true;
}

static void grow(struct seen *s)
{
    size_t bytes = s->room * sizeof *s->at;

    if (bytes * 3 > s->most) { /* the old one and the new one */
        s->full = s->n + 1 >= s->room / 16 * 15;
        return;
    }
    uint64_t *at = empty(s->room * 2);
    for (size_t i = 0; i < s->room; i++)
        if (s->at[i])
            put(at, s->room * 2, s->at[i]);
    mem_free(s->at);
    s->at = at;
    s->room *= 2;
}

bool seen_add(struct seen *s, uint64_t code)
{
    if (s->n + 1 >= s->room / 4 * 3)
        grow(s);
    if (s->full || !put(s->at, s->room, code))
        return false;
    s->n++;
    return true;
}
