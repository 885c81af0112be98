#include "metadata/etcd_nodes.h"

#include "common/log.h"
#include "common/mem.h"
#include "common/rng.h"
#include "metadata/etcd_inside.h"
#include "metadata/etcd_txn.h"

enum {
    PROBE_US = 200000,
    PROBE_OTHERS_US = 1000000,
    MISSES = 3,
    SLOW_TRIES = 3,
    DIAL_TIMEOUT_US = 1000000,
    REDIAL_US = 20000,
    REDIAL_MAX_US = 500000,
    ANSWER_MAX = 64 * 1024
};

static void dial(struct etcd_node *n);

static bool usable(const struct etcd_node *n)
{
    return n->state == NODE_UP && !grpc_retired(n->conn);
}

struct etcd_node *etcd_nodes_pick(struct etcd *e, const struct etcd_node *but)
{
    struct etcd_nodes *all = &e->nodes;
    struct etcd_node *second = NULL;
    unsigned first = but ? (unsigned)(but - all->at) + 1 : all->current;

    for (unsigned i = 0; i < all->n; i++) {
        struct etcd_node *n = &all->at[(first + i) % all->n];
        if (!usable(n))
            continue;
        if (n != but)
            return n;
        second = n;
    }
    return second;
}

/* Another one that is up, if there is. */
static void move_on(struct etcd *e, const struct etcd_node *from)
{
    struct etcd_node *to = etcd_nodes_pick(e, from);

    if (&e->nodes.at[e->nodes.current] != from || !to || to == from)
        return;
    e->nodes.current = (unsigned)(to - e->nodes.at);
    to->slow = 0;
    if (to->conn)
        loop_after(e->loop, &to->timer, 1); /* it is looked at more often now */
}

void etcd_node_answered(struct etcd_node *n)
{
    n->slow = 0;
}

void etcd_node_was_slow(struct etcd_node *n)
{
    if (++n->slow >= SLOW_TRIES)
        move_on(n->etcd, n);
}

/* ---- down ----------------------------------------------------------------------------------- */

static uint64_t redial_after(const struct etcd_node *n)
{
    unsigned doubled = n->failures < 6 ? n->failures : 6;
    uint64_t most = (uint64_t)REDIAL_US << doubled, seed = rng_seed();

    if (most > REDIAL_MAX_US)
        most = REDIAL_MAX_US;
    return most / 2 + rng_below(&seed, most / 2);
}

static void is_down(struct etcd_node *n, const char *why)
{
    if (n->state == NODE_UP)
        log_event(LOG_WARN, "etcd.node_lost", F_STR("host", n->host), F_U64("port", n->port),
                  F_STR("reason", why));
    n->failures = n->state == NODE_UP ? 0 : n->failures + 1;
    n->state = NODE_DOWN;
    n->missed = n->slow = 0;
    loop_after(n->etcd->loop, &n->timer, redial_after(n));
    move_on(n->etcd, n);
    grpc_cancel(&n->probe);
    grpc_close(&n->conn);
}

static void on_closed(void *ctx, enum err why)
{
    struct etcd_node *n = ctx;

    n->conn = NULL;
    is_down(n, err_name(why));
}

/* ---- up ------------------------------------------------------------------------------------- */

static bool of_this_cluster(struct etcd_node *n, uint64_t cluster)
{
    struct etcd *e = n->etcd;

    if (!e->cluster_id)
        e->cluster_id = cluster;
    if (!cluster || e->cluster_id == cluster)
        return true;
    if (!n->refused)
        log_event(LOG_ERROR, "etcd.cluster_refused", F_STR("host", n->host), F_U64("port", n->port),
                  F_U64("cluster", cluster), F_U64("not", e->cluster_id));
    n->refused = true;
    return false;
}

static void is_up(struct etcd_node *n)
{
    struct etcd *e = n->etcd;

    n->state = NODE_UP;
    n->failures = 0;
    n->refused = false;
    log_event(LOG_INFO, "etcd.node_up", F_STR("host", n->host), F_U64("port", n->port));
    if (!usable(&e->nodes.at[e->nodes.current]))
        e->nodes.current = (unsigned)(n - e->nodes.at);
    etcd_rpc_wake(e);
    etcd_watches_wake(e);
}

static void on_probe_message(struct grpc_call *c, struct view message)
{
    struct etcd_node *n = container_of(c, struct etcd_node, probe);
    Etcd__RangeResponse *r = etcd__range_response__unpack(NULL, message.len, message.base);
    uint64_t cluster = r && r->header ? r->header->cluster_id : 0;

    if (r && of_this_cluster(n, cluster)) {
        etcd_heard(n->etcd, r->header);
        if (r->header && r->header->revision < etcd_revision(n->etcd))
            etcd_doubt(n->etcd);
    }
    if (r)
        etcd__range_response__free_unpacked(r, NULL);
}

/* Any answer of etcd itself is one: it may refuse the key to us. */
static void on_probe_ended(struct grpc_call *c, int status, const char *text)
{
    struct etcd_node *n = container_of(c, struct etcd_node, probe);

    (void)text;
    if (status == GRPC_UNAVAILABLE || status == GRPC_CANCELLED || n->state == NODE_DOWN)
        return;
    n->missed = 0;
    if (n->refused && n->etcd->cluster_id) {
        is_down(n, "another cluster");
        return;
    }
    if (n->state == NODE_GREETING)
        is_up(n);
}

static uint64_t probe_after(const struct etcd_node *n)
{
    const struct etcd_nodes *all = &n->etcd->nodes;
    bool closely = n == &all->at[all->current] || n == n->etcd->watches.at ||
                   n->state == NODE_GREETING || n->missed > 0;

    return closely ? PROBE_US : PROBE_OTHERS_US;
}

static void probe(struct etcd_node *n)
{
    struct etcd *e = n->etcd;
    Etcd__RangeRequest r = ETCD__RANGE_REQUEST__INIT;
    struct grpc_ask ask = {.path = "/etcdserverpb.KV/Range", .token = e->auth.token};

    if (grpc_under_way(&n->probe)) {
        n->missed++;
    } else {
        char *key = mem_format("%s/", e->root);
        r.key = etcd_text(key);
        r.serializable = r.keys_only = true;
        grpc_start(n->conn, &n->probe, &ask, etcd_pack(&r.base));
        mem_free(key);
    }
    loop_after(e->loop, &n->timer, probe_after(n));
}

static void on_opened(void *ctx)
{
    struct etcd_node *n = ctx;

    n->state = NODE_GREETING;
    n->missed = 0;
    probe(n);
}

static void on_timer(struct timer *t)
{
    struct etcd_node *n = container_of(t, struct etcd_node, timer);

    if (n->state == NODE_DOWN)
        dial(n);
    else if (n->state != NODE_DIALLING && grpc_retired(n->conn))
        is_down(n, "retired");
    else if (n->missed >= MISSES)
        is_down(n, "does not answer");
    else if (n->state != NODE_DIALLING)
        probe(n);
}

static void dial(struct etcd_node *n)
{
    static const struct grpc_handler handler = {on_opened, on_closed};
    const struct grpc_conf conf = {
        .host = n->host, .port = n->port, .tls = n->etcd->tls, .dial_timeout_us = DIAL_TIMEOUT_US};

    n->state = NODE_DIALLING;
    n->conn = grpc_dial(n->etcd->loop, &conf, &handler, n);
}

/* ---- life ----------------------------------------------------------------------------------- */

/* Brokers that start together should not all use the same node. */
void etcd_nodes_start(struct etcd *e, struct etcd_url *url)
{
    uint64_t seed = rng_seed();

    e->nodes.n = url->n;
    e->nodes.current = (unsigned)rng_below(&seed, url->n);
    for (unsigned i = 0; i < url->n; i++) {
        struct etcd_node *n = &e->nodes.at[i];
        n->etcd = e;
        n->host = url->at[i].host;
        n->port = url->at[i].port;
        n->timer.run = on_timer;
        n->probe = (struct grpc_call){
            .message = on_probe_message, .ended = on_probe_ended, .max = ANSWER_MAX};
        dial(n);
    }
    url->n = 0;
}

void etcd_nodes_stop(struct etcd *e)
{
    for (unsigned i = 0; i < e->nodes.n; i++) {
        struct etcd_node *n = &e->nodes.at[i];
        n->state = NODE_DOWN;
        loop_cancel(e->loop, &n->timer);
        grpc_cancel(&n->probe);
        grpc_close(&n->conn);
        mem_free(n->host);
    }
    e->nodes.n = 0;
}
