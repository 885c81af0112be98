/* repair.h - what this process does for copies that were lost with another bookie, and what it does
 * when it is to leave itself.
 *
 *   /lgm/leaving/<our id> --> leave(): read-only, so that others take what is written
 *   autoRecoveryDaemonEnabled --> ledger/autorecovery.h
 *
 * Threads: open and close from no loop's; leave() on loops->at[0].
 */
#ifndef BOOKIE_REPAIR_H
#define BOOKIE_REPAIR_H

#include "bookie/bookie.h"

struct repair_daemon;

struct repair_daemon *repair_daemon_open(const struct bookie_conf *conf, const char *bookie_id,
                                         struct metadata *meta, struct loops *loops,
                                         void (*leave)(void *ctx), void *ctx); /* gives */
void repair_daemon_close(struct repair_daemon **r);
void repair_daemon_render(const struct repair_daemon *r, struct text *t);

#endif
