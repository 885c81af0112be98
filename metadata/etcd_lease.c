#include "metadata/etcd_lease.h"

#include <string.h>

#include "common/log.h"
#include "common/rng.h"
#include "metadata/etcd_inside.h"
#include "metadata/etcd_txn.h"

enum { AGAIN_US = 200000, REVOKE_US = 1000000 };

static void grant(struct etcd *e);

/* ---- what is held --------------------------------------------------------------------------- */

struct etcd_held *etcd_held_find(struct etcd *e, const char *key)
{
    list_each(&e->session.held, n)
    {
        struct etcd_held *h = list_entry(n, struct etcd_held, node);
        if (strcmp(h->key, key) == 0)
            return h;
    }
    return NULL;
}

void etcd_held_put(struct etcd *e, const char *key, struct slice value)
{
    struct etcd_held *h = etcd_held_find(e, key);

    if (!h) {
        h = mem_new(struct etcd_held);
        h->key = mem_string(key);
        list_push_back(&e->session.held, &h->node);
    }
    slice_drop(&h->value);
    h->value = slice_share(value);
}

static void held_free(struct etcd_held *h)
{
    list_remove(&h->node);
    slice_drop(&h->value);
    mem_free(h->key);
    mem_free(h);
}

void etcd_held_drop(struct etcd *e, const char *key)
{
    struct etcd_held *h = etcd_held_find(e, key);

    if (h)
        held_free(h);
}

/* ---- a lease, alive ------------------------------------------------------------------------- */

static struct etcd *etcd_of_rpc(struct etcd_rpc *r)
{
    return r->etcd;
}

static void tell_waiting(struct etcd *e, enum err why)
{
    struct list_node all, *n;

    list_init(&all);
    while ((n = list_pop_front(&e->session.waiting)))
        list_push_back(&all, n);
    while ((n = list_pop_front(&all)))
        etcd_call_leased(n, why);
}

void etcd_session_lost(struct etcd *e, int64_t id)
{
    struct etcd_session *s = &e->session;

    if (s->state != SESSION_LIVE || s->id != id || s->ending)
        return;
    log_event(LOG_WARN, "metadata.session_lost", F_I64("lease", id));
    s->state = SESSION_NONE;
    loop_cancel(e->loop, &s->timer);
    etcd_rpc_cancel(&s->rpc);
    if (!list_empty(&s->held) || !list_empty(&s->waiting))
        grant(e);
}

static struct slice ask_alive(struct etcd_rpc *r)
{
    Etcd__LeaseKeepAliveRequest m = ETCD__LEASE_KEEP_ALIVE_REQUEST__INIT;

    m.id = r->etcd->session.id;
    return etcd_pack(&m.base);
}

static void keep_alive_after(struct etcd *e, uint64_t us)
{
    loop_after(e->loop, &e->session.timer, us);
}

static void was_alive(struct etcd_rpc *r, struct view message)
{
    struct etcd *e = etcd_of_rpc(r);
    Etcd__LeaseKeepAliveResponse *m =
        etcd__lease_keep_alive_response__unpack(NULL, message.len, message.base);
    bool lost = m && m->id == e->session.id && m->ttl <= 0;

    if (m)
        etcd__lease_keep_alive_response__free_unpacked(m, NULL);
    if (lost)
        etcd_session_lost(e, e->session.id);
    else
        keep_alive_after(e, m ? (uint64_t)e->session.ttl_s * 1000000 / 3 : AGAIN_US);
}

static void not_alive(struct etcd_rpc *r, enum err why)
{
    struct etcd *e = etcd_of_rpc(r);

    if (why == ERR_NOT_FOUND)
        etcd_session_lost(e, e->session.id);
    else
        keep_alive_after(e, AGAIN_US);
}

static void on_timer(struct timer *t)
{
    struct etcd *e = container_of(t, struct etcd, session.timer);
    struct etcd_session *s = &e->session;

    if (s->state == SESSION_NONE) {
        grant(e);
        return;
    }
    s->rpc = (struct etcd_rpc){.etcd = e,
                               .path = "/etcdserverpb.Lease/LeaseKeepAlive",
                               .ask = ask_alive,
                               .answered = was_alive,
                               .failed = not_alive,
                               .patience_us = (uint64_t)s->ttl_s * 1000000};
    etcd_rpc_begin(&s->rpc);
}

/* ---- a lease, asked for --------------------------------------------------------------------- */

static struct slice ask_grant(struct etcd_rpc *r)
{
    Etcd__LeaseGrantRequest m = ETCD__LEASE_GRANT_REQUEST__INIT;

    m.id = r->etcd->session.id;
    m.ttl = r->etcd->session.ttl_s;
    return etcd_pack(&m.base);
}

static void is_live(struct etcd *e)
{
    struct etcd_session *s = &e->session;

    s->state = SESSION_LIVE;
    log_event(LOG_INFO, "metadata.session_begun", F_I64("lease", s->id), F_I64("ttl_s", s->ttl_s));
    keep_alive_after(e, (uint64_t)s->ttl_s * 1000000 / 3);
    list_each(&s->held, n)
    {
        struct etcd_held *h = list_entry(n, struct etcd_held, node);
        etcd_hold_again(e, h->key, slice_share(h->value));
    }
    tell_waiting(e, ERR_OK);
}

static void granted(struct etcd_rpc *r, struct view message)
{
    struct etcd *e = etcd_of_rpc(r);
    Etcd__LeaseGrantResponse *m =
        etcd__lease_grant_response__unpack(NULL, message.len, message.base);

    if (m && m->ttl > 0)
        e->session.ttl_s = m->ttl;
    if (m)
        etcd__lease_grant_response__free_unpacked(m, NULL);
    is_live(e);
}

static void not_granted(struct etcd_rpc *r, enum err why)
{
    struct etcd *e = etcd_of_rpc(r);

    if (why == ERR_EXISTS && r->in_doubt) {
        is_live(e); /* by an earlier try */
        return;
    }
    log_event(LOG_WARN, "metadata.session_refused", F_ERR(why));
    e->session.state = SESSION_NONE;
    if (why != ERR_EXISTS)
        tell_waiting(e, why);
    if (!list_empty(&e->session.held) || !list_empty(&e->session.waiting))
        keep_alive_after(e, AGAIN_US);
}

static void grant(struct etcd *e)
{
    struct etcd_session *s = &e->session;

    s->state = SESSION_GRANTING;
    do {
        rng_bytes(&s->id, sizeof s->id);
        s->id &= INT64_MAX;
    } while (s->id == 0);
    s->rpc = (struct etcd_rpc){.etcd = e,
                               .path = "/etcdserverpb.Lease/LeaseGrant",
                               .ask = ask_grant,
                               .answered = granted,
                               .failed = not_granted};
    etcd_rpc_begin(&s->rpc);
}

bool etcd_session_ready(struct etcd *e, struct list_node *waiter)
{
    struct etcd_session *s = &e->session;

    if (s->state == SESSION_LIVE)
        return true;
    list_push_back(&s->waiting, waiter);
    if (s->state == SESSION_NONE && !timer_armed(&s->timer))
        grant(e);
    return false;
}

/* ---- life ----------------------------------------------------------------------------------- */

void etcd_session_start(struct etcd *e, uint64_t timeout_us)
{
    e->session.ttl_s = (int64_t)((timeout_us + 999999) / 1000000);
    e->session.timer.run = on_timer;
    list_init(&e->session.held);
    list_init(&e->session.waiting);
}

static void revoked(struct etcd_rpc *r, struct view message)
{
    (void)message;
    r->etcd->session.ended(r->etcd);
}

static void not_revoked(struct etcd_rpc *r, enum err why)
{
    (void)why; /* it ends by itself */
    r->etcd->session.ended(r->etcd);
}

static struct slice ask_revoke(struct etcd_rpc *r)
{
    Etcd__LeaseRevokeRequest m = ETCD__LEASE_REVOKE_REQUEST__INIT;

    m.id = r->etcd->session.id;
    return etcd_pack(&m.base);
}

void etcd_session_end(struct etcd *e, void (*ended)(struct etcd *e))
{
    struct etcd_session *s = &e->session;
    bool any = s->state != SESSION_NONE;

    s->ending = true;
    s->ended = ended;
    loop_cancel(e->loop, &s->timer);
    etcd_rpc_cancel(&s->rpc);
    s->state = SESSION_NONE;
    if (!any) {
        ended(e);
        return;
    }
    s->rpc = (struct etcd_rpc){.etcd = e,
                               .path = "/etcdserverpb.Lease/LeaseRevoke",
                               .ask = ask_revoke,
                               .answered = revoked,
                               .failed = not_revoked,
                               .patience_us = REVOKE_US};
    etcd_rpc_begin(&s->rpc);
}

void etcd_session_stop(struct etcd *e)
{
    loop_cancel(e->loop, &e->session.timer);
    etcd_rpc_cancel(&e->session.rpc);
    list_each(&e->session.held, n) held_free(list_entry(n, struct etcd_held, node));
}
