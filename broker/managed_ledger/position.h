/* position.h - where an entry of a topic is: its ledger, and its place in it.
 *
 * Positions of one topic are ordered by ledger id, then entry: a topic's next ledger always
 * has the greater id (ledger_create).  (l, -1) is the place before the first entry of l.
 */
#ifndef BROKER_MANAGED_LEDGER_POSITION_H
#define BROKER_MANAGED_LEDGER_POSITION_H

#include <stdbool.h>
#include <stdint.h>

struct position {
    int64_t ledger;
    int64_t entry;
};

#define POSITION_EARLIEST ((struct position){.ledger = -1, .entry = -1})
#define POSITION_LATEST   ((struct position){.ledger = INT64_MAX, .entry = INT64_MAX})

static inline int position_compare(struct position a, struct position b)
{
    if (a.ledger != b.ledger)
        return a.ledger < b.ledger ? -1 : 1;
    return a.entry < b.entry ? -1 : a.entry > b.entry;
}

static inline bool position_equal(struct position a, struct position b)
{
    return a.ledger == b.ledger && a.entry == b.entry;
}

/* What is acknowledged when p is the first entry to come. */
static inline struct position position_before(struct position p)
{
    if (p.entry >= 0)
        p.entry--;
    return p;
}

#endif
