/* id_probe.h - whether new ledger ids are new to the bookies too.
 *
 *   block of ids from the counter --READ last entry of each, from each bookie--> somebody knows
 * one?
 *
 * The counter goes back when the metadata store is restored from an older state; the bookies keep
 * what was written since.  A ledger under such an id would be made of two.
 *
 * Enough have answered when every set of Qa bookies has one that did; a second without that is
 * enough as well: bookies that are away must not keep ledgers from being made.
 *
 * Threads: the loop's.
 */
#ifndef LEDGER_ID_PROBE_H
#define LEDGER_ID_PROBE_H

#include "ledger/handle.h"

struct id_probe;

/* Ids first .. first+n-1; done() never comes in the caller's stack, and once. */
void id_probe_start(struct ledger_client *c, int64_t first, unsigned n, unsigned ack,
                    void (*done)(void *ctx, bool used), void *ctx);

#endif
