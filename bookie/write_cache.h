/* write_cache.h - a loop's shard of the write cache: entries that are not in an entry log yet.
 *
 *   put --> active half --freeze--> frozen half --(entry log, index, mark)--> thaw: out
 *
 * Freeze and thaw move a map and touch no entry: a loop that frees a hundred thousand of them at a
 * time answers nobody meanwhile.  Who flushes reads the frozen half and empties it once it is out.
 *
 * Small entries are copied into segments, so that a few bytes cannot hold on to the slab that
 * a whole read from a socket landed in; large ones are shared as they came.
 *
 * Threads: the shard's loop.  The frozen half may be read by others until it is thawed.
 * Limits:  the owner's: write_cache_cost() says what an entry counts.
 */
#ifndef BOOKIE_WRITE_CACHE_H
#define BOOKIE_WRITE_CACHE_H

#include "bookie/entry_map.h"

struct write_cache {
    struct entry_map active;
    struct entry_map frozen; /* waits for its flush */
    bool is_frozen;
    size_t bytes; /* what the active half costs */
    struct slab *segment;
    size_t segment_used;
};

void write_cache_init(struct write_cache *c);
void write_cache_end(struct write_cache *c);
size_t write_cache_cost(size_t entry_len);
void write_cache_put(struct write_cache *c, int64_t ledger, int64_t entry,
                     struct slice bytes); /* takes; an entry that is there already is replaced */
/* The newer half first; borrows, NULL when in neither. */
const struct slice *write_cache_find(const struct write_cache *c, int64_t ledger, int64_t entry);
/* What the half had cost.  An empty map takes its place; `empty` is left without memory. */
size_t write_cache_freeze(struct write_cache *c, struct entry_map *empty);
const struct entry_map *write_cache_frozen(const struct write_cache *c);
/* Into `out`, which holds no memory. */
void write_cache_thaw(struct write_cache *c, struct entry_map *out);

#endif
