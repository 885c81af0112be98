/* entry_map.h - entries in memory by (ledger, entry): what both caches are made of.
 *
 * A row of entries in the order of arrival and an open-addressed table over it.  It only
 * grows until it is cleared, which keeps its memory for the next time.
 *
 * Memory:  slices are taken; find borrows.
 * Threads: one at a time; many when nobody writes.
 */
#ifndef BOOKIE_ENTRY_MAP_H
#define BOOKIE_ENTRY_MAP_H

#include <stdbool.h>
#include <stdint.h>

#include "common/buf.h"

struct entry_slot {
    int64_t ledger;
    int64_t entry;
    struct slice bytes; /* len 0: forgotten */
};

struct entry_map {
    struct entry_slot *slots;
    uint32_t n, room;
    uint32_t *table; /* slot + 1; 0: empty */
    uint32_t mask;   /* of the table; 0: none yet */
    uint64_t seed;
};

void entry_map_init(struct entry_map *m);
/* The later of two wins. */
void entry_map_put(struct entry_map *m, int64_t ledger, int64_t entry, struct slice bytes);
const struct slice *entry_map_find(const struct entry_map *m, int64_t ledger, int64_t entry);
void entry_map_forget(struct entry_map *m, int64_t ledger, int64_t entry);
void entry_map_clear(struct entry_map *m);
void entry_map_end(struct entry_map *m); /* its memory too */

#endif
