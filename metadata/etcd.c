/* The etcd store: its loop, and what is on it. */
#include <string.h>

#include "common/log.h"
#include "common/tls.h"
#include "metadata/etcd_inside.h"
#include "metadata/etcd_txn.h"

enum {
    SESSION_US = 10000000,
    TRY_US = 100000,
    OPERATION_US = 30000000,
    GREETING_AGAIN_US = 500000
};

void etcd_heard(struct etcd *e, const Etcd__Header *h)
{
    if (h && h->revision > etcd_revision(e))
        atomic_store(&e->revision, (uint64_t)h->revision);
}

/* Restored from an older state: what was heard since is no more, and nobody is told so in time. */
void etcd_went_back(struct etcd *e, int64_t now)
{
    const int64_t was = etcd_revision(e);

    log_event(LOG_ERROR, "etcd.went_back", F_I64("from", was), F_I64("to", now));
    atomic_fetch_add(&e->ahead, (uint64_t)(was - now) + 1);
    atomic_store(&e->revision, (uint64_t)now);
    e->doubted = 0; /* it is no question any more */
    etcd_watches_went_back(e, now);
}

/* ---- the greeting: where the store's revision is -------------------------------------------- */

static struct slice ask_greeting(struct etcd_rpc *r)
{
    Etcd__RangeRequest m = ETCD__RANGE_REQUEST__INIT;
    char *key = etcd_key(r->etcd->root, "/");

    m.key = etcd_text(key);
    m.keys_only = true;
    struct slice packed = etcd_pack(&m.base);
    mem_free(key);
    return packed;
}

static void is_greeted(struct etcd *e)
{
    e->greeted = true;
    etcd_rpc_wake(e);
    etcd_watches_wake(e);
}

static void greeted(struct etcd_rpc *r, struct view message)
{
    Etcd__RangeResponse *m = etcd__range_response__unpack(NULL, message.len, message.base);

    if (m) {
        if (m->header && m->header->revision < r->etcd->doubted)
            etcd_went_back(r->etcd, m->header->revision);
        etcd_heard(r->etcd, m->header);
        etcd__range_response__free_unpacked(m, NULL);
    }
    r->etcd->doubted = 0;
    is_greeted(r->etcd);
}

/* Whatever etcd has against it, it will have against each call, and say so there. */
static void not_greeted(struct etcd_rpc *r, enum err why)
{
    if (why == ERR_NOT_READY) {
        etcd_rpc_begin(r);
        return;
    }
    log_event(LOG_ERROR, "etcd.refused", F_ERR(why));
    is_greeted(r->etcd);
}

static void greet(struct etcd *e)
{
    e->greeting = (struct etcd_rpc){.etcd = e,
                                    .path = "/etcdserverpb.KV/Range",
                                    .ask = ask_greeting,
                                    .answered = greeted,
                                    .failed = not_greeted};
    etcd_rpc_begin(&e->greeting);
}

void etcd_doubt(struct etcd *e)
{
    if (!e->greeted || e->greeting.state != RPC_AT_REST)
        return;
    e->doubted = etcd_revision(e);
    etcd_rpc_begin(&e->greeting);
}

/* ---- the end -------------------------------------------------------------------------------- */

static void ended(struct etcd *e)
{
    pthread_mutex_lock(&e->lock);
    e->has_ended = true;
    pthread_cond_signal(&e->ended);
    pthread_mutex_unlock(&e->lock);
}

static void begin_end(void *ctx)
{
    struct etcd *e = ctx;

    etcd_rpc_cancel(&e->greeting);
    etcd_session_end(e, ended);
}

static void dismantle(void *ctx)
{
    struct etcd *e = ctx;

    etcd_session_stop(e);
    etcd_watches_stop(e);
    etcd_auth_stop(e);
    etcd_nodes_stop(e);
}

static void store_close(struct metadata *m)
{
    struct etcd *e = etcd_of(m);

    loop_call(e->loop, begin_end, e);
    pthread_mutex_lock(&e->lock);
    while (!e->has_ended)
        pthread_cond_wait(&e->ended, &e->lock);
    pthread_mutex_unlock(&e->lock);
    loop_call(e->loop, dismantle, e);
    loop_drop(&e->loop);
    tls_drop(&e->tls);
    pthread_mutex_destroy(&e->watches.lock);
    pthread_mutex_destroy(&e->lock);
    pthread_cond_destroy(&e->ended);
    mem_free(e->root);
    mem_free(e);
}

/* ---- the beginning -------------------------------------------------------------------------- */

static void store_watch(struct metadata *m, const char *prefix, struct meta_watch *w)
{
    etcd_watch_add(etcd_of(m), prefix, w);
}

static void store_unwatch(struct metadata *m, struct meta_watch *w)
{
    etcd_watch_remove(etcd_of(m), w);
}

static const struct meta_ops ops = {
    .get = etcd_get,
    .put = etcd_put,
    .remove = etcd_remove,
    .range = etcd_range,
    .txn = etcd_txn,
    .hold = etcd_hold,
    .release = etcd_release,
    .counter = etcd_counter,
    .watch = store_watch,
    .unwatch = store_unwatch,
    .close = store_close,
};

struct start {
    struct etcd *etcd;
    struct etcd_url *url;
};

static void start_on_loop(void *ctx)
{
    struct start *s = ctx;

    etcd_nodes_start(s->etcd, s->url);
    greet(s->etcd);
}

static uint64_t or_default(uint64_t value, uint64_t usual)
{
    return value ? value : usual;
}

static struct etcd *etcd_new(const struct meta_etcd_conf *conf)
{
    struct etcd *e = mem_new(struct etcd);

    e->metadata.ops = &ops;
    e->try_timeout_us = or_default(conf->try_timeout_us, TRY_US);
    e->operation_timeout_us = or_default(conf->operation_timeout_us, OPERATION_US);
    e->auth.user = conf->user && *conf->user ? mem_string(conf->user) : NULL;
    e->auth.password = mem_string(conf->password ? conf->password : "");
    pthread_mutex_init(&e->lock, NULL);
    pthread_cond_init(&e->ended, NULL);
    list_init(&e->waiting);
    etcd_calls_start(e);
    etcd_session_start(e, or_default(conf->session_timeout_us, SESSION_US));
    etcd_watches_start(e);
    return e;
}

static enum err make_tls(struct tls **out, const struct meta_etcd_conf *conf)
{
    const struct tls_conf tls = {.trust_file = conf->trust_file,
                                 .cert_file = conf->cert_file,
                                 .key_file = conf->key_file,
                                 .alpn = "h2"};

    return tls_client(out, &tls);
}

enum err meta_etcd_open(struct metadata **out, const struct meta_etcd_conf *conf)
{
    struct etcd_url url;
    struct tls *tls = NULL;
    const char *why;
    enum err err = etcd_url_read(conf->url, &url, &why);

    if (err) {
        log_event(LOG_ERROR, "etcd.config_refused", F_STR("url", conf->url), F_STR("reason", why));
        return err;
    }
    if (url.tls)
        err = make_tls(&tls, conf);
    if (err) {
        etcd_url_drop(&url);
        return err;
    }
    struct etcd *e = etcd_new(conf);
    struct start s = {.etcd = e, .url = &url};
    e->tls = tls;
    e->root = url.root;
    url.root = NULL;
    e->loop = loop_new("etcd");
    loop_start(e->loop);
    loop_call(e->loop, start_on_loop, &s);
    etcd_url_drop(&url);
    *out = &e->metadata;
    return ERR_OK;
}
