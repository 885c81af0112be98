/* etcd_call.h - one call of a caller, from its arrival to its answer.
 *
 *   submit --loop_post--> arrive -> [turn] -> [room on the wire] -> ask, judge ... -> answer
 *
 * What each kind asks and makes of the answers is in etcd_read.c and etcd_write.c.
 *
 * Threads: submit from any; the rest the store's loop.
 */
#ifndef METADATA_ETCD_CALL_H
#define METADATA_ETCD_CALL_H

#include "metadata/etcd_guard.h"
#include "metadata/etcd_inside.h"
#include "metadata/etcd_keys.h"
#include "metadata/reply.h"

struct etcd_call;

struct etcd_kind {
    const char *path;
    bool writes;
    size_t answer_max;
    uint64_t timeout_us; /* of the first try; 0: as configured */
    /* False: it is answered already, or waits for a lease. */
    bool (*start)(struct etcd_call *c);
    struct slice (*ask)(struct etcd_call *c);
    void (*answered)(struct etcd_call *c, struct view message);
    void (*failed)(struct etcd_call *c, enum err e);
};

struct etcd_call {
    struct task task;
    struct list_node node; /* among those that may go, or that wait for a lease */
    struct etcd *etcd;
    const struct etcd_kind *kind;
    struct meta_call *caller; /* NULL: the store's own */
    struct answer *answer;    /* likewise */
    struct turn turn;
    struct claim *claims;
    struct etcd_rpc rpc;
    uint64_t ahead; /* the store's, when it began */
    size_t bytes;
    char *key; /* with the root, as those of ops */
    struct slice value;
    /* transactions */
    struct meta_op *ops;
    int64_t *leases;
    size_t n;
    struct etcd_guard guard;
    struct etcd_hold hold;
    /* ranges */
    char *prefix, *after; /* with the root */
    struct etcd_span span;
    size_t limit, page, got_bytes;
    bool keys_only;
    int64_t at_revision;
    /* counters */
    int64_t count, first, version, changed;
    bool counted; /* first, version and changed are known: what comes now is the put */
};

struct etcd_call *etcd_call_new(struct etcd *e, const struct etcd_kind *kind, struct meta_call *c);
void etcd_call_submit(struct etcd_call *c);          /* takes */
void etcd_call_end(struct etcd_call *c, enum err e); /* answers and ends it */
void etcd_call_begin(struct etcd_call *c);           /* its first try, or all over again */
void etcd_call_new_guard(struct etcd_call *c);
/* Of its answers: the quorum's word is never older than what was heard before it was asked. */
void etcd_call_heard(struct etcd_call *c, const Etcd__Header *h);
struct etcd_call *etcd_call_of_rpc(struct etcd_rpc *r);

#endif
