#include "bookie/write_cache.h"

#include <assert.h>
#include <string.h>

enum { SEGMENT = 1024 * 1024, SLOT_COST = 128 };

void write_cache_init(struct write_cache *c)
{
    *c = (struct write_cache){0};
    entry_map_init(&c->active);
}

void write_cache_end(struct write_cache *c)
{
    slab_drop(&c->segment);
    entry_map_end(&c->active);
    entry_map_end(&c->frozen);
}

size_t write_cache_cost(size_t entry_len)
{
    return entry_len + SLOT_COST;
}

static struct slice into_segment(struct write_cache *c, const struct slice *bytes)
{
    if (!c->segment || c->segment_used + bytes->len > SEGMENT) {
        slab_drop(&c->segment);
        c->segment = slab_new(SEGMENT);
        c->segment_used = 0;
    }
    memcpy(slab_bytes(c->segment) + c->segment_used, bytes->base, bytes->len);
    struct slice copy = slice_of(c->segment, c->segment_used, bytes->len);
    c->segment_used += bytes->len;
    return copy;
}

/* Bytes that hold on to no more than about twice themselves. */
static struct slice compact(struct write_cache *c, struct slice bytes)
{
    if (bytes.slab && slab_size(bytes.slab) <= 2 * bytes.len)
        return bytes;
    struct slice copy =
        bytes.len <= SEGMENT / 8 ? into_segment(c, &bytes) : slice_copy(bytes.base, bytes.len);
    slice_drop(&bytes);
    return copy;
}

void write_cache_put(struct write_cache *c, int64_t ledger, int64_t entry, struct slice bytes)
{
    c->bytes += write_cache_cost(bytes.len);
    entry_map_put(&c->active, ledger, entry, compact(c, bytes));
}

const struct slice *write_cache_find(const struct write_cache *c, int64_t ledger, int64_t entry)
{
    const struct slice *s = entry_map_find(&c->active, ledger, entry);
    return s ? s : entry_map_find(&c->frozen, ledger, entry);
}

size_t write_cache_freeze(struct write_cache *c, struct entry_map *empty)
{
    assert(!c->is_frozen && empty->n == 0);
    const size_t bytes = c->bytes;
    c->is_frozen = true;
    c->frozen = c->active;
    c->active = *empty;
    *empty = (struct entry_map){0};
    c->bytes = 0;
    slab_drop(&c->segment); /* a segment belongs to one half, so that a thaw frees it */
    return bytes;
}

const struct entry_map *write_cache_frozen(const struct write_cache *c)
{
    assert(c->is_frozen);
    return &c->frozen;
}

void write_cache_thaw(struct write_cache *c, struct entry_map *out)
{
    assert(c->is_frozen && !out->slots);
    *out = c->frozen;
    c->frozen = (struct entry_map){0};
    c->is_frozen = false;
}
