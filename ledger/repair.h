/* repair.h - one ledger, brought back to full replication: the shell of replicator and copier.
 *
 * Its bookies' bytes go straight from one link to another; nothing is kept.
 *
 * Threads: the client's loop.  done() never comes in the caller's stack.
 * Limits:  conf.window entries at a time; conf.rate bytes a second, over all repairs that share it.
 */
#ifndef LEDGER_REPAIR_H
#define LEDGER_REPAIR_H

#include "ledger/client.h"
#include "ledger/replicator.h"

/* Bytes that may be read a second; what one read takes too much, the next ones wait for. */
struct repair_rate {
    uint64_t bytes_per_s; /* 0: no limit */
    int64_t left;
    uint64_t at_us;
};

struct repair_conf {
    bool (*is_bad)(void *ctx, const char *bookie); /* gone, or on its way out */
    /* What an operator wants in the place of an entry that cannot be read; false, as the function
     * may be NULL: nothing. */
    bool (*instead)(void *ctx, entry_id e, struct view *payload, int64_t *length);
    void *ctx;
    struct repair_rate *rate; /* borrowed, as long as the repair runs */
    unsigned window;
};

/* What it did; kept by the owner. */
struct repair_report {
    uint64_t moved;   /* slots of fragments given to other bookies */
    uint64_t entries; /* written */
    uint64_t bytes;
    uint64_t lost;   /* entries that no replica has any more */
    uint64_t differ; /* entries whose replicas contradict each other */
};

struct repair;
/* Gives; freed by itself after done().  ERR_OK: nothing is lacking.  BUSY: its last fragment lacks
 * a bookie, and its writer should have its time first. */
struct repair *repair_start(struct ledger_client *c, int64_t ledger, struct replicator_how how,
                            const struct repair_conf *conf, struct repair_report *report,
                            void (*done)(void *ctx, enum err err), void *ctx);
void repair_abandon(struct repair **r); /* no further callback */

#endif
