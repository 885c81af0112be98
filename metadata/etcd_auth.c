/* The token of a user: asked for when it is needed, and again when etcd no longer knows it. */
#include "common/log.h"
#include "metadata/etcd_inside.h"
#include "metadata/etcd_txn.h"

enum { PASSWORD_US = 2000000 /* etcd takes its time to check one */, LATER_US = 1000000 };

static struct slice ask(struct etcd_rpc *r)
{
    Etcd__AuthenticateRequest m = ETCD__AUTHENTICATE_REQUEST__INIT;

    m.name = r->etcd->auth.user;
    m.password = r->etcd->auth.password;
    return etcd_pack(&m.base);
}

static void got(struct etcd *e, const char *token)
{
    mem_free(e->auth.token);
    e->auth.token = token ? mem_string(token) : NULL;
    e->auth.number++;
    etcd_rpc_wake(e);
    etcd_watches_wake(e);
}

static void answered(struct etcd_rpc *r, struct view message)
{
    Etcd__AuthenticateResponse *m =
        etcd__authenticate_response__unpack(NULL, message.len, message.base);

    got(r->etcd, m ? m->token : NULL);
    if (m)
        etcd__authenticate_response__free_unpacked(m, NULL);
}

static void failed(struct etcd_rpc *r, enum err why)
{
    struct etcd *e = r->etcd;

    if (why == ERR_EXISTS) { /* a failed precondition: users are not switched on */
        log_event(LOG_WARN, "etcd.users_off", F_STR("user", e->auth.user));
        e->auth.off = true;
        got(e, NULL);
        return;
    }
    log_event(LOG_ERROR, "etcd.login_refused", F_STR("user", e->auth.user), F_ERR(why));
    loop_after(e->loop, &e->auth.later, LATER_US);
    if (why == ERR_UNAUTHORIZED)
        etcd_rpc_refuse_waiting(e, why);
}

static void begin(struct etcd *e)
{
    struct etcd_rpc *r = &e->auth.rpc;

    if (r->state != RPC_AT_REST || timer_armed(&e->auth.later))
        return;
    *r = (struct etcd_rpc){.etcd = e,
                           .path = "/etcdserverpb.Auth/Authenticate",
                           .ask = ask,
                           .answered = answered,
                           .failed = failed,
                           .timeout_us = PASSWORD_US,
                           .bare = true};
    etcd_rpc_begin(r);
}

/* For those that wait by now; without any the next call asks. */
static void on_later(struct timer *t)
{
    struct etcd *e = container_of(t, struct etcd, auth.later);

    if (!list_empty(&e->waiting))
        begin(e);
}

bool etcd_auth_ready(struct etcd *e)
{
    if (!e->auth.user || e->auth.off || e->auth.token)
        return true;
    e->auth.later.run = on_later;
    begin(e);
    return false;
}

void etcd_auth_refused(struct etcd *e, uint64_t number)
{
    if (number != e->auth.number)
        return; /* there is a newer one already */
    mem_free(e->auth.token);
    e->auth.token = NULL;
    e->auth.off = false;
}

void etcd_auth_stop(struct etcd *e)
{
    loop_cancel(e->loop, &e->auth.later);
    etcd_rpc_cancel(&e->auth.rpc);
    mem_free(e->auth.user);
    mem_free(e->auth.password);
    mem_free(e->auth.token);
}
