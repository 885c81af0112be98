/* farewell.h - the cookies of bookies that were to be emptied and are: who asked for that (the
 * value of /lgm/leaving/<id>, paths.h) has them removed, so that they cannot start again by
 * mistake.
 *
 *   began() -> [the audit lists all ledgers] -> run() -> done()
 *
 * A cookie goes when its bookie took nothing new from before the ledgers were listed until after,
 * and no ledger names it or is in recovery: who recovers one may have given it entries.
 *
 * Threads: the loop's.
 */
#ifndef LEDGER_FAREWELL_H
#define LEDGER_FAREWELL_H

#include "ledger/auditor.h"
#include "ledger/census.h"
#include "ledger/client.h"

struct farewell;

struct farewell *farewell_new(struct ledger_client *client, struct census *census,
                              void (*done)(void *ctx), void *ctx); /* gives */
void farewell_began(struct farewell *f);
/* An audit has ended; `whole`: it saw all ledgers.  done() also in the caller's stack, when nobody
 * is to go. */
void farewell_run(struct farewell *f, struct auditor *core, bool whole);
void farewell_drop(struct farewell **f); /* no done() any more */

#endif
