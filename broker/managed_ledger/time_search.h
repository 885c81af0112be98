/* time_search.h - which entry of a topic is the first that was published at a time, or later.
 *
 *   low                       ? ? ? ? ? ?                        last
 *   up to here all are older  | a probe: older? low goes there   | after this none is
 *                             | not older? last goes before it
 *
 * Each probe costs a read of one entry and halves what is unknown.  When ledgers were closed says
 * where to probe first, and no more: those are times of brokers, entries have times of clients.
 * Ledgers may be trimmed and entries added meanwhile; those that come are not looked at.
 *
 * Pure: asks for a probe, is told what was seen.
 */
#ifndef BROKER_MANAGED_LEDGER_TIME_SEARCH_H
#define BROKER_MANAGED_LEDGER_TIME_SEARCH_H

#include "broker/managed_ledger/segments.h"

struct time_search {
    int64_t ms;
    struct position low; /* the answer, once nothing is between it and `last` */
    struct position last;
    struct position asked; /* the probe */
    unsigned hints;        /* taken so far */
};

/* last: the last entry to look at. */
void time_search_init(struct time_search *s, const struct segments *all, struct position last,
                      int64_t ms);
/* The entry to read now is s->asked; false: s->low is the last one that is older, or the place
 * before the first. */
bool time_search_next(struct time_search *s, const struct segments *all);
/* At the probe, or behind it when that is no more, is an entry of this time. */
void time_search_saw(struct time_search *s, const struct segments *all, struct position at,
                     int64_t ms);
/* Nothing is there. */
void time_search_saw_none(struct time_search *s, const struct segments *all);

#endif
