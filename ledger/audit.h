/* audit.h - the auditor's shell: elected, it marks the ledgers that a lost bookie's copies are
 * missing of, and compares the replicas of all ledgers now and then.
 *
 * Threads: the loop's.
 */
#ifndef LEDGER_AUDIT_H
#define LEDGER_AUDIT_H

#include "ledger/autorecovery.h"
#include "ledger/census.h"

struct audit;
/* Gives; all but the result are borrowed for its life. */
struct audit *audit_new(struct ledger_client *client, struct census *census,
                        const struct autorecovery_conf *conf, struct autorecovery_counts *counts);
void audit_census_changed(struct audit *a);
void audit_drop(struct audit **a);

#endif
