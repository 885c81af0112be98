/* entry_cache.h - the newest entries of a loop's topics, so that tailing costs no I/O.
 *
 * One for all managed ledgers of a loop: ledger ids are unique in the cluster, and entries
 * never change.  First in, first out, by runs of 16 neighbours: consumers that keep up read an
 * entry once each, soon.
 *
 * Memory:  an entry of one piece is shared where it makes up at least half of the slab that it
 *          lies in, or where entries made up half of the receive buffers before: then such a
 *          buffer counts whole.  Any other is copied, so that what it holds is what is counted (a
 *          small payload would otherwise keep a whole receive buffer alive).  Small copies share
 *          slabs of 16 KiB: one that is still on its way to a consumer keeps as much, at most.
 * Threads: one loop.
 * Limits:  `bytes`, bookkeeping included; the oldest goes.  An entry above an eighth of that is
 *          not kept.
 */
#ifndef BROKER_MANAGED_LEDGER_ENTRY_CACHE_H
#define BROKER_MANAGED_LEDGER_ENTRY_CACHE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "broker/managed_ledger/position.h"
#include "common/buf.h"

struct entry_cache;

struct entry_cache *entry_cache_new(size_t bytes); /* gives */
void entry_cache_drop(struct entry_cache **c);
void entry_cache_set_limit(struct entry_cache *c, size_t bytes); /* the oldest go at once */

void entry_cache_put(struct entry_cache *c, struct position at, const struct chain *payload);
bool entry_cache_has(struct entry_cache *c, struct position at);
bool entry_cache_get(struct entry_cache *c, struct position at, struct slice *out); /* shares */
size_t entry_cache_bytes(const struct entry_cache *c);

struct entry_cache_counts {
    uint64_t entries;                 /* now */
    uint64_t hits, misses, evictions; /* so far; of entry_cache_get() */
};
struct entry_cache_counts entry_cache_counts(const struct entry_cache *c);

#endif
