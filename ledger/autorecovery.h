/* autorecovery.h - copies that were lost with a bookie are made again, without an operator.
 * bookkeeper.md F.
 *
 *   audit (one process of all, elected): a bookie is lost --> each ledger that names it is marked
 *         in the metadata; now and then all replicas of all ledgers are compared
 *   rereplicator (every process): takes a mark, locks it, repairs the ledger, removes the mark
 *
 * Threads: start and stop from a thread that is no loop's; all else is on `loop`, which must
 * outlive the metadata store: calls may be under way when it is stopped.
 */
#ifndef LEDGER_AUTORECOVERY_H
#define LEDGER_AUTORECOVERY_H

#include <stdio.h>

#include "ledger/client.h"
#include "ledger/repair.h"

struct autorecovery;
struct text;

struct autorecovery_conf {
    const char *name;       /* this process: a bookie's id */
    uint64_t lost_delay_us; /* a bookie that is away for so long is lost */
    uint64_t audit_us;      /* audit in any case, so often; 0: never */
    uint64_t scrub_us;      /* compare all replicas, so often; 0: never */
    uint64_t scrub_rate;    /* bytes a second; 0: no limit */
    uint64_t repair_rate;   /* bytes a second; 0: no limit */
    uint64_t open_grace_us; /* the writer of an open ledger has it to replace a lost bookie */
    uint64_t retry_us;      /* after a repair that failed */
    unsigned entries;       /* copied at a time */
    struct ledger_client_conf client;
};

struct autorecovery_counts {
    struct metric auditor;  /* 1: it is this process */
    struct metric lost;     /* bookies that are lost; of the auditor, as the next */
    struct metric marked;   /* ledgers */
    struct metric repaired; /* ledgers; of every process, as those that follow */
    struct metric failed;
    struct metric entries, bytes; /* copied */
    struct metric entries_lost;   /* that no replica has any more */
    struct metric differ;         /* entries whose replicas contradict each other */
};

struct autorecovery *autorecovery_start(const struct autorecovery_conf *conf, struct loop *loop,
                                        struct metadata *meta,
                                        struct autorecovery_counts *counts); /* gives */
void autorecovery_stop(struct autorecovery **a);

#endif
