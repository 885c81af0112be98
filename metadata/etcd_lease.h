/* etcd_lease.h - the session: one lease, and the keys that live with it.
 *
 *   NONE -> GRANTING -> LIVE --etcd says that it is gone--> NONE, and again, keys and all
 *
 * It is taken when the first key is held and kept alive each third of its time.  Being
 * without etcd ends nothing: only etcd's own word does.
 *
 * Threads: the store's loop.
 */
#ifndef METADATA_ETCD_LEASE_H
#define METADATA_ETCD_LEASE_H

#include "metadata/etcd_rpc.h"

struct etcd;

enum etcd_session_state { SESSION_NONE, SESSION_GRANTING, SESSION_LIVE };

struct etcd_session {
    enum etcd_session_state state;
    int64_t id; /* chosen here, so that a grant in doubt may be asked for again */
    int64_t ttl_s;
    struct etcd_rpc rpc; /* grants, then keeps alive */
    struct timer timer;
    struct list_node held;
    struct list_node waiting; /* calls that need a lease */
    bool ending;
    void (*ended)(struct etcd *e);
};

/* A key that is ours. */
struct etcd_held {
    struct list_node node;
    char *key;
    struct slice value;
};

void etcd_session_start(struct etcd *e, uint64_t timeout_us);
/* False: `waiter` is put on the list and etcd_session_call() called when there is a lease. */
bool etcd_session_ready(struct etcd *e, struct list_node *waiter);
void etcd_session_lost(struct etcd *e, int64_t id);                   /* etcd says so */
void etcd_session_end(struct etcd *e, void (*ended)(struct etcd *e)); /* gives the lease back */
void etcd_session_stop(struct etcd *e);

struct etcd_held *etcd_held_find(struct etcd *e, const char *key);
void etcd_held_put(struct etcd *e, const char *key, struct slice value); /* shares */
void etcd_held_drop(struct etcd *e, const char *key);

#endif
