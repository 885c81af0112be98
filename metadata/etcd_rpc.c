#include "metadata/etcd_rpc.h"

#include <assert.h>
#include <string.h>

#include "common/log.h"
#include "common/mem.h"
#include "metadata/etcd_inside.h"

enum {
    ANSWER_MAX = 4 * 1024 * 1024,
    TRY_MAX_US = 2000000,
    PAUSE_US = 5000,
    PAUSE_MAX_US = 100000,
    TOKENS_MAX = 3
};

/* ---- what a status means -------------------------------------------------------------------- */

enum fate { RETRY, RETRY_IN_DOUBT, TOKEN_REFUSED, FINAL };

static bool says(const char *text, const char *what)
{
    return strstr(text, what) != NULL;
}

static enum fate fate_of_argument(const char *text, enum err *e)
{
    *e = ERR_NOT_ALLOWED;
    if (says(text, "auth store is old") || says(text, "user name is empty"))
        return TOKEN_REFUSED;
    if (says(text, "too large") || says(text, "too many operations"))
        *e = ERR_TOO_BIG;
    else if (says(text, "authentication failed"))
        *e = ERR_UNAUTHORIZED;
    return FINAL;
}

static enum fate fate_of_exhaustion(const char *text, enum err *e)
{
    if (says(text, "too many requests"))
        return RETRY;
    *e = says(text, "space exceeded") ? ERR_NO_SPACE : ERR_TOO_BIG;
    return FINAL;
}

static enum fate fate_of(int status, const char *text, enum err *e)
{
    switch (status) {
    case GRPC_INVALID_ARGUMENT:
        return fate_of_argument(text, e);
    case GRPC_NOT_FOUND:
        *e = ERR_NOT_FOUND;
        return FINAL;
    case GRPC_ALREADY_EXISTS:
    case GRPC_FAILED_PRECONDITION:
        *e = ERR_EXISTS;
        return FINAL;
    case GRPC_PERMISSION_DENIED:
        *e = ERR_FORBIDDEN;
        return FINAL;
    case GRPC_RESOURCE_EXHAUSTED:
        return fate_of_exhaustion(text, e);
    case GRPC_OUT_OF_RANGE:
        *e = ERR_END; /* compacted */
        return FINAL;
    case GRPC_UNIMPLEMENTED:
        *e = ERR_UNSUPPORTED_VERSION;
        return FINAL;
    case GRPC_UNAUTHENTICATED:
        return TOKEN_REFUSED;
    default:
        return says(text, "etcdserver: no leader") ? RETRY : RETRY_IN_DOUBT;
    }
}

/* ---- tries ---------------------------------------------------------------------------------- */

static void rest(struct etcd_rpc *r)
{
    r->state = RPC_AT_REST;
    list_remove(&r->node);
    loop_cancel(r->etcd->loop, &r->timer);
    grpc_cancel(&r->call);
    slice_drop(&r->answer);
}

static void give_up(struct etcd_rpc *r, enum err e)
{
    rest(r);
    r->failed(r, e);
}

static void too_late(struct etcd_rpc *r)
{
    bool unknown = r->writes && r->in_doubt;

    log_event(LOG_WARN, "etcd.gave_up", F_STR("call", strrchr(r->path, '/') + 1),
              F_U64("tries", r->tries), F_ERR(unknown ? ERR_UNKNOWN_STATE : ERR_NOT_READY));
    give_up(r, unknown ? ERR_UNKNOWN_STATE : ERR_NOT_READY);
}

static uint64_t left(const struct etcd_rpc *r)
{
    uint64_t now = loop_now(r->etcd->loop);

    return r->deadline > now ? r->deadline - now : 0;
}

static void arm(struct etcd_rpc *r, uint64_t us)
{
    loop_after(r->etcd->loop, &r->timer, us < left(r) ? us : left(r));
}

static uint64_t try_timeout(const struct etcd_rpc *r)
{
    uint64_t us = r->timeout_us ? r->timeout_us : r->etcd->try_timeout_us;

    for (unsigned i = 0; i < r->tries && us < TRY_MAX_US; i++)
        us += us / 2;
    return us < TRY_MAX_US ? us : TRY_MAX_US;
}

static void wait(struct etcd_rpc *r)
{
    r->state = RPC_WAITING;
    list_push_back(&r->etcd->waiting, &r->node);
    arm(r, left(r));
}

static void try_now(struct etcd_rpc *r)
{
    struct etcd *e = r->etcd;
    struct etcd_node *n = etcd_nodes_pick(e, r->at);
    bool greeted = e->greeted || r == &e->greeting;
    bool ready = r->bare || (etcd_auth_ready(e) && greeted);

    if (!n || !ready) {
        wait(r);
        return;
    }
    struct grpc_ask ask = {.path = r->path,
                           .needs_leader = true,
                           .timeout_us = try_timeout(r),
                           .token = r->bare ? NULL : e->auth.token};
    r->state = RPC_TRYING;
    r->at = n;
    r->token = e->auth.number;
    slice_drop(&r->answer);
    arm(r, ask.timeout_us);
    grpc_start(n->conn, &r->call, &ask, r->ask(r));
}

static void pause_before_next(struct etcd_rpc *r)
{
    uint64_t us = (uint64_t)PAUSE_US << (r->tries < 5 ? r->tries : 5);

    r->tries++;
    r->state = RPC_PAUSING;
    arm(r, us < PAUSE_MAX_US ? us : PAUSE_MAX_US);
}

static void on_timer(struct timer *t)
{
    struct etcd_rpc *r = container_of(t, struct etcd_rpc, timer);

    if (r->state == RPC_TRYING) {
        grpc_cancel(&r->call);
        r->in_doubt = true;
        r->tries++;
        etcd_node_was_slow(r->at);
    }
    if (left(r) == 0) {
        too_late(r);
        return;
    }
    list_remove(&r->node);
    try_now(r);
}

static void on_message(struct grpc_call *c, struct view message)
{
    struct etcd_rpc *r = container_of(c, struct etcd_rpc, call);

    slice_drop(&r->answer);
    r->answer = slice_copy(message.base, message.len);
}

static void succeed(struct etcd_rpc *r)
{
    struct slice answer = r->answer;

    r->answer = (struct slice){0};
    r->at = NULL;
    rest(r);
    r->answered(r, slice_view(answer));
    slice_drop(&answer);
}

static void token_refused(struct etcd_rpc *r)
{
    if (!r->etcd->auth.user || ++r->refused_tokens > TOKENS_MAX) {
        give_up(r, ERR_UNAUTHORIZED);
        return;
    }
    etcd_auth_refused(r->etcd, r->token);
    loop_cancel(r->etcd->loop, &r->timer);
    try_now(r);
}

static void on_ended(struct grpc_call *c, int status, const char *text)
{
    struct etcd_rpc *r = container_of(c, struct etcd_rpc, call);
    enum err e = ERR_OK;

    if (status != GRPC_UNAVAILABLE)
        etcd_node_answered(r->at);
    if (status == GRPC_OK) {
        succeed(r);
        return;
    }
    switch (fate_of(status, text, &e)) {
    case FINAL:
        log_event(LOG_DEBUG, "etcd.refused", F_STR("call", r->path), F_I64("status", status),
                  F_STR("text", text));
        give_up(r, e);
        break;
    case TOKEN_REFUSED:
        token_refused(r);
        break;
    case RETRY_IN_DOUBT:
        r->in_doubt = true;
        pause_before_next(r);
        break;
    case RETRY:
        pause_before_next(r);
        break;
    }
}

void etcd_rpc_begin(struct etcd_rpc *r)
{
    assert(r->state == RPC_AT_REST);
    list_init(&r->node);
    r->timer.run = on_timer;
    r->call.message = on_message;
    r->call.ended = on_ended;
    r->call.max = r->max ? r->max : ANSWER_MAX;
    r->in_doubt = false;
    r->tries = r->refused_tokens = 0;
    r->at = NULL;
    r->deadline =
        loop_now(r->etcd->loop) + (r->patience_us ? r->patience_us : r->etcd->operation_timeout_us);
    try_now(r);
}

void etcd_rpc_again(struct etcd_rpc *r)
{
    assert(r->state == RPC_AT_REST);
    if (left(r) == 0)
        too_late(r);
    else
        try_now(r);
}

void etcd_rpc_cancel(struct etcd_rpc *r)
{
    if (r->state != RPC_AT_REST)
        rest(r);
}

static void take_waiting(struct etcd *e, struct list_node *into)
{
    struct list_node *n;

    list_init(into);
    while ((n = list_pop_front(&e->waiting)))
        list_push_back(into, n);
}

void etcd_rpc_refuse_waiting(struct etcd *e, enum err why)
{
    struct list_node woken, *n;

    take_waiting(e, &woken);
    while ((n = list_pop_front(&woken)))
        give_up(list_entry(n, struct etcd_rpc, node), why);
}

void etcd_rpc_wake(struct etcd *e)
{
    struct list_node woken, *n;

    take_waiting(e, &woken);
    while ((n = list_pop_front(&woken))) {
        struct etcd_rpc *r = list_entry(n, struct etcd_rpc, node);
        loop_cancel(e->loop, &r->timer);
        try_now(r);
    }
}
