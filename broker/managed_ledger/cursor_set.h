/* cursor_set.h - entries of a topic as a roaring bitmap a ledger.
 *
 * Counts and runs are kept as it changes, so that asking costs nothing.
 *
 * Memory:  an embedded struct; end it with cursor_set_drop().  Some 8 KiB for 65,536 entries at
 *          worst, four bytes a run at best.
 * Limits:  entry ids up to CURSOR_SET_ENTRY_MAX in a ledger; others are never in it.
 */
#ifndef BROKER_MANAGED_LEDGER_CURSOR_SET_H
#define BROKER_MANAGED_LEDGER_CURSOR_SET_H

#include <roaring/roaring.h>
#include <stdbool.h>
#include <stdint.h>

#include "broker/managed_ledger/position.h"

#define CURSOR_SET_ENTRY_MAX ((int64_t)UINT32_MAX - 1)

struct cursor_set_ledger {
    int64_t ledger;
    roaring_bitmap_t *entries;
    uint64_t count, runs;
};

struct cursor_set {
    struct cursor_set_ledger *at; /* by ledger id; none is empty */
    unsigned n, room;
};

void cursor_set_drop(struct cursor_set *s); /* empty afterwards, and may be used again */
/* The number of entries that are new. */
uint64_t cursor_set_add(struct cursor_set *s, int64_t ledger, int64_t first, int64_t last);
void cursor_set_remove_upto(struct cursor_set *s, struct position p);
bool cursor_set_remove(struct cursor_set *s, struct position p); /* false: it was not in it */
/* The first one at or after `from`; false: there is none. */
bool cursor_set_first(const struct cursor_set *s, struct position from, struct position *out);
bool cursor_set_has(const struct cursor_set *s, struct position p);
/* The first entry of the ledger from `from` on that is not in the set. */
int64_t cursor_set_first_absent(const struct cursor_set *s, int64_t ledger, int64_t from);
/* Of the ledgers from `ledger` on. */
uint64_t cursor_set_count(const struct cursor_set *s, int64_t ledger);
uint64_t cursor_set_runs(const struct cursor_set *s, int64_t ledger);

/* Run by run, in order. */
struct cursor_set_walk {
    const struct cursor_set *set;
    unsigned i;
    bool begun;
    roaring_uint32_iterator_t it;
    int64_t ledger, first, last;
};
struct cursor_set_walk cursor_set_walk(const struct cursor_set *s);
bool cursor_set_walk_next(struct cursor_set_walk *w); /* false: no more */

#endif
