/* read_cache.h - a loop's shard of entries that were read from entry logs.
 *
 *   put --> young generation --half the budget is used--> old generation --> gone
 *
 * An entry comes with the window that it was read in; a window counts once, whole.
 *
 * Threads: the shard's loop.
 */
#ifndef BOOKIE_READ_CACHE_H
#define BOOKIE_READ_CACHE_H

#include "bookie/entry_map.h"
#include "common/metric.h"

struct read_cache {
    struct entry_map generation[2];
    unsigned young;
    size_t bytes;       /* of windows in the young one */
    struct metric held; /* of both; read by anybody */
    size_t old_bytes;
    size_t budget;
};

void read_cache_init(struct read_cache *c, size_t budget);
void read_cache_end(struct read_cache *c);
void read_cache_clear(struct read_cache *c);
void read_cache_window(struct read_cache *c, size_t bytes); /* a window's entries follow */
void read_cache_put(struct read_cache *c, int64_t ledger, int64_t entry, struct slice bytes);
const struct slice *read_cache_find(const struct read_cache *c, int64_t ledger, int64_t entry);
void read_cache_forget(struct read_cache *c, int64_t ledger, int64_t entry); /* was added again */

#endif
