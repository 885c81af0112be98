/* etcd_inside.h - what stands in the etcd store; for its own files only. */
#ifndef METADATA_ETCD_INSIDE_H
#define METADATA_ETCD_INSIDE_H

#include <pthread.h>
#include <stdatomic.h>

#include "metadata/etcd.h"
#include "metadata/etcd_keys.h"
#include "metadata/etcd_lease.h"
#include "metadata/etcd_nodes.h"
#include "metadata/etcd_order.h"
#include "metadata/etcd_rpc.h"
#include "metadata/etcd_watch.h"
#include "metadata/metadata.h"

#include "proto/etcd.pb-c.h"

struct etcd_auth {
    char *user, *password;
    char *token;     /* NULL: none yet */
    uint64_t number; /* of the token: how many there were */
    bool off;        /* etcd asks for none */
    struct etcd_rpc rpc;
    struct timer later;
};

struct etcd {
    struct metadata metadata;
    struct loop *loop;
    struct tls *tls; /* NULL: plain */
    char *root;
    uint64_t try_timeout_us, operation_timeout_us;
    _Atomic uint64_t revision; /* the newest that was heard of */
    _Atomic uint64_t ahead;    /* what is shown is so much higher: it never goes back */
    int64_t doubted;           /* the newest before the greeting that is to tell; 0: none is */
    uint64_t cluster_id;       /* 0: not yet known */
    struct etcd_nodes nodes;
    struct list_node waiting; /* rpcs without a node or token */
    struct etcd_auth auth;
    struct order order;
    struct list_node ready; /* calls whose turn it is */
    unsigned under_way;
    struct round_end go_on;
    bool greeted; /* the revision is known, or will not be told */
    struct etcd_rpc greeting;
    struct etcd_session session;
    struct etcd_watches watches;
    _Atomic size_t calls, bytes; /* that wait or are under way */
    pthread_mutex_t lock;        /* guards the next */
    pthread_cond_t ended;
    bool has_ended;
};

static inline int64_t etcd_revision(struct etcd *e)
{
    return (int64_t)atomic_load(&e->revision);
}

/* As callers see it, also after the store went back. */
static inline uint64_t etcd_shown(struct etcd *e, int64_t revision)
{
    return (uint64_t)revision + atomic_load(&e->ahead);
}

static inline void etcd_show(struct etcd *e, struct meta_reply *r, int64_t revision)
{
    r->ahead = atomic_load(&e->ahead);
    r->revision = (uint64_t)revision + r->ahead;
}

/* An answer was older than one before: asks a quorum whether it is that node, or the store. */
void etcd_doubt(struct etcd *e);
/* Of every answer. */
void etcd_heard(struct etcd *e, const Etcd__Header *h);
void etcd_went_back(struct etcd *e, int64_t now);

/* etcd_auth.c */
bool etcd_auth_ready(struct etcd *e); /* a token is there or none is needed; else it is got */
void etcd_auth_refused(struct etcd *e, uint64_t number); /* that token is no good any more */
void etcd_auth_stop(struct etcd *e);

/* etcd_call.c */
void etcd_calls_start(struct etcd *e);
void etcd_hold_again(struct etcd *e, const char *key, struct slice value); /* takes value */
void etcd_call_leased(struct list_node *waiter, enum err e); /* a lease is there, or why not */
void etcd_get(struct metadata *m, const char *key, struct meta_call *c);
void etcd_put(struct metadata *m, const char *key, struct slice value, int64_t expected,
              struct meta_call *c);
void etcd_remove(struct metadata *m, const char *key, int64_t expected, struct meta_call *c);
void etcd_range(struct metadata *m, const char *prefix, const char *after, size_t limit,
                bool keys_only, struct meta_call *c);
void etcd_txn(struct metadata *m, const struct meta_op *ops, size_t n, struct meta_call *c);
void etcd_hold(struct metadata *m, const char *key, struct slice value, struct meta_call *c);
void etcd_release(struct metadata *m, const char *key, struct meta_call *c);
void etcd_counter(struct metadata *m, const char *key, int64_t n, struct meta_call *c);

static inline struct etcd *etcd_of(struct metadata *m)
{
    return container_of(m, struct etcd, metadata);
}

#endif
