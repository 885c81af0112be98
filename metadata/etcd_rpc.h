/* etcd_rpc.h - one question to etcd, asked until it is answered or too late.
 *
 *   etcd_rpc_begin -> [waits for a node, a token] -> ask() -> a try -> answered()
 *                        ^                             |
 *                        +-- no answer: in_doubt ------+--> failed(): it makes no sense, or too
 * late
 *
 * Each try is asked for anew, since what can be asked after a try in doubt differs.
 *
 * Memory:  its owner's, embedded; must stay put until answered() without etcd_rpc_again(),
 *          failed(), or etcd_rpc_cancel().
 * Threads: the store's loop.
 */
#ifndef METADATA_ETCD_RPC_H
#define METADATA_ETCD_RPC_H

#include "metadata/etcd_grpc.h"

struct etcd;
struct etcd_node;

enum etcd_rpc_state { RPC_AT_REST, RPC_WAITING, RPC_PAUSING, RPC_TRYING };

struct etcd_rpc {
    struct etcd *etcd;
    const char *path;
    struct slice (*ask)(struct etcd_rpc *r); /* gives */
    void (*answered)(struct etcd_rpc *r, struct view message);
    void (*failed)(struct etcd_rpc *r, enum err e); /* NOT_FOUND: the lease */
    size_t max;                                     /* of an answer; 0: 4 MiB */
    uint64_t timeout_us;                            /* of the first try; 0: as configured */
    uint64_t patience_us;                           /* for all of it; 0: as configured */
    bool writes;                                    /* UNKNOWN_STATE when it ends in doubt */
    bool bare;                                      /* goes without a token */
    bool in_doubt;                                  /* a try may have happened */
    /* private */
    enum etcd_rpc_state state;
    struct list_node node; /* while it waits */
    struct grpc_call call;
    struct timer timer;
    struct etcd_node *at; /* of the last try */
    unsigned tries, refused_tokens;
    uint64_t token; /* which one it went with */
    uint64_t deadline;
    struct slice answer;
};

void etcd_rpc_begin(struct etcd_rpc *r);
void etcd_rpc_again(struct etcd_rpc *r);  /* from answered(): another try, the same deadline */
void etcd_rpc_cancel(struct etcd_rpc *r); /* at rest is fine */
void etcd_rpc_wake(struct etcd *e);       /* those that waited for a node or a token */
void etcd_rpc_refuse_waiting(struct etcd *e, enum err why); /* there will be no token */

#endif
