#include "proto/entry_list.h"

#include <stdbool.h>
#include <string.h>

#include "proto/wire.h"

enum { FIRST_GROUPS = 128 };

static size_t size_of(uint32_t groups)
{
    return ENTRY_LIST_HEADER + (size_t)groups * ENTRY_LIST_GROUP;
}

static bool make_room(struct entry_list *l)
{
    const size_t wanted = size_of(l->n + 1);
    if (wanted > ENTRY_LIST_MAX)
        return false;
    if (l->bytes && wanted <= slab_size(l->bytes))
        return true;
    struct slab *more = slab_new(l->bytes ? slab_size(l->bytes) * 2 : size_of(FIRST_GROUPS));
    if (l->bytes)
        memcpy(slab_bytes(more), slab_bytes(l->bytes), size_of(l->n));
    slab_drop(&l->bytes);
    l->bytes = more;
    return true;
}

static void write_group(struct entry_list *l)
{
    if (l->group.size == 0 || l->err)
        return;
    if (!make_room(l)) {
        l->err = ERR_TOO_BIG;
        return;
    }
    struct writer w = {.base = slab_bytes(l->bytes) + size_of(l->n), .room = ENTRY_LIST_GROUP};
    write_u64(&w, (uint64_t)l->group.first);
    write_u64(&w, (uint64_t)l->group.last);
    write_u32(&w, (uint32_t)l->group.size);
    write_u32(&w, (uint32_t)l->group.period);
    l->n++;
}

/* The run is whole: one more of the group, or the first of the next. */
static void end_run(struct entry_list *l)
{
    struct entry_run *g = &l->group;
    if (l->last < l->first)
        return;
    const int64_t size = l->last - l->first + 1, period = l->first - g->last;
    if (g->size == size && period <= INT32_MAX && (g->period == 0 || g->period == period)) {
        g->period = period;
        g->last = l->first;
        return;
    }
    write_group(l);
    *g = (struct entry_run){.first = l->first, .last = l->first, .size = size};
}

void entry_list_add(struct entry_list *l, int64_t entry)
{
    const bool follows = l->last >= l->first && entry == l->last + 1;
    if (follows && l->last - l->first + 1 < INT32_MAX) {
        l->last = entry;
        return;
    }
    end_run(l);
    l->first = l->last = entry;
}

enum err entry_list_end(struct entry_list *l, struct slice *out)
{
    end_run(l);
    write_group(l);
    const enum err err = l->err;
    if (!err && !l->bytes)
        l->bytes = slab_new(ENTRY_LIST_HEADER);
    if (!err) {
        memset(slab_bytes(l->bytes), 0, ENTRY_LIST_HEADER);
        struct writer w = {.base = slab_bytes(l->bytes), .room = 8};
        write_u32(&w, 0);
        write_u32(&w, l->n);
        *out = slice_take(&l->bytes, size_of(l->n));
    }
    entry_list_drop(l);
    return err;
}

void entry_list_drop(struct entry_list *l)
{
    slab_drop(&l->bytes);
    *l = ENTRY_LIST_EMPTY;
}
