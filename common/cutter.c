#include "common/cutter.h"

#include <assert.h>
#include <string.h>

enum { PART_FIRST = (256 << 10) - CUTTER_FRONT, GROWTH = 4 };

static uint8_t *part_bytes(const struct cutter *c)
{
    return slab_bytes(c->part) + CUTTER_FRONT;
}

struct iovec cutter_room(const struct cutter *c)
{
    if (!c->part || c->rest.len > 0)
        return (struct iovec){0};
    return (struct iovec){.iov_base = part_bytes(c) + c->part_len,
                          .iov_len = c->part_room - c->part_len};
}

void cutter_filled(struct cutter *c, size_t n)
{
    assert(n <= c->part_room - c->part_len);
    c->part_len += n;
}

void cutter_take(struct cutter *c, struct slice s)
{
    assert(c->rest.len == 0);
    slice_drop(&c->rest);
    c->rest = s;
}

/* Moves the next bytes of what was read to `into`, at most `want` of them. */
static size_t move(struct cutter *c, uint8_t *into, size_t want)
{
    const size_t n = c->rest.len < want ? c->rest.len : want;
    if (n == 0)
        return 0;
    memcpy(into, c->rest.base, n);
    c->rest.base += n;
    c->rest.len -= n;
    return n;
}

size_t cutter_wanted(const struct cutter *c)
{
    if (c->part)
        return c->part_want;
    if (c->head_len < sizeof c->head)
        return 0;
    return (size_t)c->head[0] << 24 | (size_t)c->head[1] << 16 | (size_t)c->head[2] << 8 |
           (size_t)c->head[3];
}

static enum err out_of_bytes(struct cutter *c)
{
    slice_drop(&c->rest);
    return ERR_END;
}

/* What is there gets four times the room, up to the frame's end. */
static void grow(struct cutter *c)
{
    const size_t room = c->part_want / GROWTH > c->part_room ? c->part_room * GROWTH : c->part_want;
    struct slab *larger = slab_new(CUTTER_FRONT + room);
    memcpy(slab_bytes(larger) + CUTTER_FRONT, part_bytes(c), c->part_len);
    slab_drop(&c->part);
    c->part = larger;
    c->part_room = room;
}

static enum err next_of_part(struct cutter *c, struct slice *frame)
{
    for (;;) {
        c->part_len += move(c, part_bytes(c) + c->part_len, c->part_room - c->part_len);
        if (c->part_len < c->part_room)
            return out_of_bytes(c);
        if (c->part_room == c->part_want)
            break;
        grow(c);
    }
    *frame = slice_take(&c->part, CUTTER_FRONT + c->part_want);
    frame->base += CUTTER_FRONT;
    frame->len -= CUTTER_FRONT;
    return ERR_OK;
}

enum err cutter_next(struct cutter *c, struct slice *frame)
{
    if (c->part)
        return next_of_part(c, frame);
    const bool is_whole = c->head_len == 0; /* its length stands before it */
    c->head_len += move(c, c->head + c->head_len, sizeof c->head - c->head_len);
    if (c->head_len < sizeof c->head)
        return out_of_bytes(c);
    const size_t len = cutter_wanted(c);
    if (len > c->frame_max)
        return ERR_TOO_BIG;
    c->head_len = 0;
    if (is_whole && len <= c->rest.len) {
        *frame = slice_part(c->rest, 0, len);
        if (len > 0)
            c->rest.base += len;
        c->rest.len -= len;
        return ERR_OK;
    }
    c->part_room = len < PART_FIRST ? len : PART_FIRST;
    c->part = slab_new(CUTTER_FRONT + c->part_room);
    c->part_want = len;
    c->part_len = 0;
    return next_of_part(c, frame);
}

bool cutter_is_between(const struct cutter *c)
{
    return c->head_len == 0 && !c->part && c->rest.len == 0;
}

void cutter_drop(struct cutter *c)
{
    slab_drop(&c->part);
    slice_drop(&c->rest);
    c->head_len = 0;
}
