/* rereplicator.h - takes marks, one at a time, repairs their ledgers, and removes them.
 *
 *   marks listed --> not locked by another: lock --> read the mark --> repair --> OK: remove the
 *   mark if it is the one that was read --> unlock; else the ledger waits its time
 *
 * Threads: the loop's.
 */
#ifndef LEDGER_REREPLICATOR_H
#define LEDGER_REREPLICATOR_H

#include "ledger/autorecovery.h"
#include "ledger/census.h"

struct rereplicator;
struct rereplicator *rereplicator_new(struct ledger_client *client, struct census *census,
                                      const struct autorecovery_conf *conf,
                                      struct autorecovery_counts *counts); /* gives */
void rereplicator_census_changed(struct rereplicator *r);
void rereplicator_drop(struct rereplicator **r);

#endif
