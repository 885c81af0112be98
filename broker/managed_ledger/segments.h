/* segments.h - the row of ledgers that a topic is made of, and counting along it.
 *
 * Kept by the managed ledger; cursors and readers look.  Sorted by ledger id.  The last one
 * may be open: it grows.
 */
#ifndef BROKER_MANAGED_LEDGER_SEGMENTS_H
#define BROKER_MANAGED_LEDGER_SEGMENTS_H

#include <stdbool.h>
#include <stdint.h>

#include "broker/managed_ledger/position.h"

struct segment {
    int64_t ledger;
    int64_t entries; /* that may be read: of an open one, confirmed so far */
    int64_t bytes;
    int64_t closed_ms; /* when it was closed; 0 while open */
    bool open;
};

struct segments {
    struct segment *at;
    unsigned n, room;
};

void segments_add(struct segments *s,
                  struct segment one); /* behind all others; asserts the order */
void segments_drop_first(struct segments *s, unsigned n);
void segments_clear(struct segments *s);
struct segment *segments_find(const struct segments *s, int64_t ledger); /* NULL: not one of ours */
struct segment *segments_last(const struct segments *s);                 /* NULL: none */

/* The place before the very first entry, and that of the last entry (the same when empty;
 * (-1,-1) when there is no ledger at all). */
struct position segments_before_first(const struct segments *s);
struct position segments_last_entry(const struct segments *s);

/* The first place after p where an entry is or will be: skips the ends of closed ledgers, empty
 * ones, and ledgers that were trimmed.  Behind everything it is the last ledger's next entry
 * (or (last ledger, entries) when that one is closed: no entry will be there, and asking again
 * once there is a newer ledger leads on). */
struct position segments_next(const struct segments *s, struct position p);
/* The last entry at or before p, or segments_before_first(): normalises any position. */
struct position segments_at_or_before(const struct segments *s, struct position p);
/* The n-th entry after p, counted from 1; there are so many. */
struct position segments_nth(const struct segments *s, struct position p, int64_t n);
/* Entries in (after, upto]. */
int64_t segments_count(const struct segments *s, struct position after, struct position upto);

#endif
