/* etcd_guard.h - writes whose tries can be told apart: what to ask, and what an answer means.
 *
 * A try without an answer may have happened, may still happen, or not.  So no try writes
 * unless its keys are as they were when the write began: "unchanged since revision S".  The
 * first of several tries that happens makes the others fail, and these read the keys back:
 *
 *   as it was                        -> not yet: try again
 *   newer than S, and what we wrote  -> ours (or the same write of somebody else): done
 *   newer than S, surely another's   -> refused as if tried for the first time
 *   neither                          -> UNKNOWN_STATE
 *
 * What cannot be told: a key that was created by us and removed by another while we did not
 * know; a try that sleeps in a frozen node while its key is created, removed, and asked to
 * be absent still.
 *
 * No clock, no socket.
 */
#ifndef METADATA_ETCD_GUARD_H
#define METADATA_ETCD_GUARD_H

#include "metadata/etcd_txn.h"
#include "metadata/metadata.h"

/* A key as an answer shows it. */
struct etcd_fact {
    bool present;
    int64_t version; /* as shown; META_ABSENT */
    int64_t created, changed, lease;
    struct view value; /* borrows from the answer */
};

struct etcd_guard {
    int64_t since; /* S of the next try */
    int64_t first; /* S of the earliest try that may have happened */
    bool in_doubt; /* a try had no answer */
};

struct etcd_verdict {
    enum { ETCD_DONE, ETCD_AGAIN, ETCD_FAILED } kind;
    enum err err;
    int64_t version; /* of a single put */
};

/* ---- transactions of the caller; `lease` is put on keys that this session holds ------------ */

struct etcd_write {
    const struct meta_op *ops;
    size_t n;
    const int64_t *leases; /* one an op: 0, or what to attach */
};

/* ERR_NOT_ALLOWED: a key is changed twice. */
MUST_CHECK enum err etcd_write_check(const struct meta_op *ops, size_t n);
struct slice etcd_write_ask(const struct etcd_write *w, const struct etcd_guard *g); /* gives */
/* Moves the guard on for another try. */
struct etcd_verdict etcd_write_judge(const struct etcd_write *w, struct etcd_guard *g,
                                     const Etcd__TxnResponse *r);

/* ---- held keys ------------------------------------------------------------------------------ */

struct etcd_hold {
    const char *key;
    struct slice value;
    int64_t lease;
    bool refreshes; /* it is there, and ours */
};

struct slice etcd_hold_ask(const struct etcd_hold *h, const struct etcd_guard *g); /* gives */
struct etcd_verdict etcd_hold_judge(struct etcd_hold *h, struct etcd_guard *g,
                                    const Etcd__TxnResponse *r);
struct slice etcd_release_ask(const char *key, int64_t lease, const struct etcd_guard *g);
struct etcd_verdict etcd_release_judge(int64_t lease, struct etcd_guard *g,
                                       const Etcd__TxnResponse *r);

struct etcd_fact etcd_fact_at(const Etcd__TxnResponse *r, size_t i);

#endif
