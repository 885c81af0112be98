/* What changes: transactions, held keys, counters. */
#include <stdio.h>
#include <string.h>

#include "common/log.h"
#include "common/parse.h"
#include "metadata/etcd_call.h"

enum {
    LARGE = 64 * 1024, /* bytes that take their time */
    LARGE_TRY_US = 500000,
    READ_BACK_MAX = 80 * 1024 * 1024 /* as many values as a transaction may have */
};

static Etcd__TxnResponse *read_answer(struct etcd_call *c, struct view message)
{
    Etcd__TxnResponse *r = etcd__txn_response__unpack(NULL, message.len, message.base);

    if (!r)
        return NULL;
    etcd_call_heard(c, r->header);
    if (c->answer && r->header)
        etcd_show(c->etcd, &c->answer->reply, r->header->revision);
    return r;
}

/* ERR_OK: done. */
static void follow(struct etcd_call *c, const struct etcd_verdict *v,
                   void (*done)(struct etcd_call *))
{
    if (v->kind == ETCD_AGAIN) {
        etcd_rpc_again(&c->rpc);
        return;
    }
    if (v->kind == ETCD_DONE) {
        if (c->answer)
            c->answer->reply.version = v->version;
        done(c);
    }
    etcd_call_end(c, v->kind == ETCD_DONE ? ERR_OK : v->err);
}

static void malformed(struct etcd_call *c)
{
    log_event(LOG_WARN, "etcd.malformed", F_STR("call", c->kind->path));
    etcd_call_end(c, ERR_UNKNOWN_STATE);
}

/* The lease is gone, and with it whatever was put with it: all over again with another. */
static bool has_lost_lease(struct etcd_call *c, enum err e, int64_t lease)
{
    if (e != ERR_NOT_FOUND || lease == 0)
        return false;
    etcd_session_lost(c->etcd, lease);
    if (etcd_session_ready(c->etcd, &c->node))
        etcd_call_leased(&c->node, ERR_OK);
    return true;
}

/* ---- transactions --------------------------------------------------------------------------- */

static struct etcd_write write_of(struct etcd_call *c)
{
    return (struct etcd_write){.ops = c->ops, .n = c->n, .leases = c->leases};
}

static bool start_txn(struct etcd_call *c)
{
    struct etcd_session *s = &c->etcd->session;
    enum err e = etcd_write_check(c->ops, c->n);

    if (e || c->n == 0) {
        etcd_call_end(c, e);
        return false;
    }
    for (size_t i = 0; i < c->n; i++) {
        bool ours = c->ops[i].kind == META_PUT && s->state == SESSION_LIVE &&
                    etcd_held_find(c->etcd, c->ops[i].key);
        c->leases[i] = ours ? s->id : ETCD_NO_LEASE;
    }
    return true;
}

static struct slice ask_txn(struct etcd_call *c)
{
    struct etcd_write w = write_of(c);

    return etcd_write_ask(&w, &c->guard);
}

static void txn_done(struct etcd_call *c)
{
    for (size_t i = 0; i < c->n; i++) {
        const struct meta_op *op = &c->ops[i];
        if (op->kind == META_CHECK || !etcd_held_find(c->etcd, op->key))
            continue;
        if (op->kind == META_PUT)
            etcd_held_put(c->etcd, op->key, op->value);
        else
            etcd_held_drop(c->etcd, op->key);
    }
}

static void txn_answered(struct etcd_call *c, struct view message)
{
    struct etcd_write w = write_of(c);
    Etcd__TxnResponse *r = read_answer(c, message);

    if (!r) {
        malformed(c);
        return;
    }
    struct etcd_verdict v = etcd_write_judge(&w, &c->guard, r);
    etcd__txn_response__free_unpacked(r, NULL);
    follow(c, &v, txn_done);
}

static void txn_failed(struct etcd_call *c, enum err e)
{
    int64_t lease = 0;

    for (size_t i = 0; i < c->n; i++)
        if (c->leases[i] > 0)
            lease = c->leases[i];
    if (!has_lost_lease(c, e, lease))
        etcd_call_end(c, e);
}

static const struct etcd_kind txn_kind = {.path = "/etcdserverpb.KV/Txn",
                                          .writes = true,
                                          .answer_max = READ_BACK_MAX,
                                          .start = start_txn,
                                          .ask = ask_txn,
                                          .answered = txn_answered,
                                          .failed = txn_failed};

static const struct etcd_kind large_txn_kind = {.path = "/etcdserverpb.KV/Txn",
                                                .writes = true,
                                                .answer_max = READ_BACK_MAX,
                                                .timeout_us = LARGE_TRY_US,
                                                .start = start_txn,
                                                .ask = ask_txn,
                                                .answered = txn_answered,
                                                .failed = txn_failed};

void etcd_txn(struct metadata *m, const struct meta_op *ops, size_t n, struct meta_call *caller)
{
    struct etcd_call *c = etcd_call_new(etcd_of(m), &txn_kind, caller);

    c->n = n;
    c->ops = mem_alloc((n ? n : 1) * sizeof *c->ops);
    c->leases = mem_alloc((n ? n : 1) * sizeof *c->leases);
    for (size_t i = 0; i < n; i++) {
        c->ops[i] = ops[i];
        c->ops[i].key = etcd_key(c->etcd->root, ops[i].key);
        c->bytes += strlen(ops[i].key) + ops[i].value.len;
    }
    if (c->bytes > LARGE)
        c->kind = &large_txn_kind;
    etcd_call_submit(c);
}

void etcd_put(struct metadata *m, const char *key, struct slice value, int64_t expected,
              struct meta_call *c)
{
    etcd_txn(m, &(struct meta_op){META_PUT, key, value, expected}, 1, c);
}

void etcd_remove(struct metadata *m, const char *key, int64_t expected, struct meta_call *c)
{
    etcd_txn(m, &(struct meta_op){.kind = META_REMOVE, .key = key, .expected = expected}, 1, c);
}

/* ---- held keys ------------------------------------------------------------------------------ */

static bool start_hold(struct etcd_call *c)
{
    if (!etcd_session_ready(c->etcd, &c->node))
        return false;
    c->hold = (struct etcd_hold){.key = c->key,
                                 .value = c->value,
                                 .lease = c->etcd->session.id,
                                 .refreshes = etcd_held_find(c->etcd, c->key) != NULL};
    return true;
}

static struct slice ask_hold(struct etcd_call *c)
{
    return etcd_hold_ask(&c->hold, &c->guard);
}

static void hold_done(struct etcd_call *c)
{
    etcd_held_put(c->etcd, c->key, c->value);
}

/* Somebody was faster than this session's return. */
static void taken_by_another(struct etcd_call *c)
{
    log_event(LOG_WARN, "metadata.session_lost", F_STR("key", c->key + strlen(c->etcd->root)));
    etcd_held_drop(c->etcd, c->key);
}

static void hold_answered(struct etcd_call *c, struct view message)
{
    Etcd__TxnResponse *r = read_answer(c, message);

    if (!r) {
        malformed(c);
        return;
    }
    struct etcd_verdict v = etcd_hold_judge(&c->hold, &c->guard, r);
    etcd__txn_response__free_unpacked(r, NULL);
    if (v.kind == ETCD_FAILED && v.err == ERR_EXISTS && !c->caller)
        taken_by_another(c);
    follow(c, &v, hold_done);
}

static void hold_failed(struct etcd_call *c, enum err e)
{
    if (has_lost_lease(c, e, c->hold.lease))
        return;
    if (!c->caller)
        log_event(LOG_WARN, "metadata.hold_failed", F_STR("key", c->key), F_ERR(e));
    etcd_call_end(c, e);
}

static const struct etcd_kind hold_kind = {.path = "/etcdserverpb.KV/Txn",
                                           .writes = true,
                                           .start = start_hold,
                                           .ask = ask_hold,
                                           .answered = hold_answered,
                                           .failed = hold_failed};

static void hold(struct etcd *e, char *key, struct slice value, struct meta_call *caller)
{
    struct etcd_call *c = etcd_call_new(e, &hold_kind, caller);

    c->key = key;
    c->value = value;
    c->bytes += value.len;
    etcd_call_submit(c);
}

void etcd_hold(struct metadata *m, const char *key, struct slice value, struct meta_call *caller)
{
    struct etcd *e = etcd_of(m);

    hold(e, etcd_key(e->root, key), value, caller);
}

void etcd_hold_again(struct etcd *e, const char *key, struct slice value)
{
    hold(e, mem_string(key), value, NULL);
}

static bool start_release(struct etcd_call *c)
{
    struct etcd *e = c->etcd;

    if (e->session.state == SESSION_LIVE) {
        c->hold.lease = e->session.id;
        return true;
    }
    enum err err = etcd_held_find(e, c->key) ? ERR_OK : ERR_NOT_FOUND; /* gone with its lease */
    etcd_held_drop(e, c->key);
    etcd_call_end(c, err);
    return false;
}

static struct slice ask_release(struct etcd_call *c)
{
    return etcd_release_ask(c->key, c->hold.lease, &c->guard);
}

static void nothing(struct etcd_call *c)
{
    (void)c;
}

static void release_answered(struct etcd_call *c, struct view message)
{
    Etcd__TxnResponse *r = read_answer(c, message);

    if (!r) {
        malformed(c);
        return;
    }
    struct etcd_verdict v = etcd_release_judge(c->hold.lease, &c->guard, r);
    etcd__txn_response__free_unpacked(r, NULL);
    if (v.kind != ETCD_AGAIN)
        etcd_held_drop(c->etcd, c->key);
    follow(c, &v, nothing);
}

static const struct etcd_kind release_kind = {.path = "/etcdserverpb.KV/Txn",
                                              .writes = true,
                                              .start = start_release,
                                              .ask = ask_release,
                                              .answered = release_answered,
                                              .failed = etcd_call_end};

void etcd_release(struct metadata *m, const char *key, struct meta_call *caller)
{
    struct etcd_call *c = etcd_call_new(etcd_of(m), &release_kind, caller);

    c->key = etcd_key(c->etcd->root, key);
    etcd_call_submit(c);
}

/* ---- counters ------------------------------------------------------------------------------- */

static bool start_counter(struct etcd_call *c)
{
    c->counted = false;
    return true;
}

/* The put happens only to what was read.  Whether it was ours cannot be told from an equal one
 * of another's, so after a refusal the counter is read again: numbers may be left out, none
 * is given twice. */
static struct slice ask_count(struct etcd_call *c)
{
    struct etcd_txn t;
    char text[24];

    etcd_txn_begin(&t);
    if (!c->counted) {
        etcd_txn_read(&t, &t.then, c->key, true);
        return etcd_txn_end(&t);
    }
    int len = snprintf(text, sizeof text, "%lld", (long long)(c->first + c->count));
    struct slice value = slice_copy(text, (size_t)len);
    etcd_txn_if_version(&t, c->key, c->version);
    etcd_txn_if_unchanged(&t, c->key, c->changed);
    etcd_txn_put(&t, c->key, value, c->version >= 0 ? ETCD_KEEP_LEASE : ETCD_NO_LEASE);
    struct slice packed = etcd_txn_end(&t);
    slice_drop(&value);
    return packed;
}

static enum err read_count(struct etcd_call *c, const Etcd__TxnResponse *r)
{
    struct etcd_fact f = etcd_fact_at(r, 0);
    char text[24] = "0";
    int64_t end;

    c->version = f.version;
    c->changed = f.present ? f.changed : 0;
    if (f.present && f.value.len >= sizeof text)
        return ERR_MALFORMED;
    if (f.present)
        snprintf(text, sizeof text, "%.*s", (int)f.value.len, (const char *)f.value.base);
    TRY(parse_i64(text, &c->first));
    if (c->first < 0)
        return ERR_MALFORMED;
    return __builtin_add_overflow(c->first, c->count, &end) ? ERR_TOO_BIG : ERR_OK;
}

static void count_answered(struct etcd_call *c, struct view message)
{
    Etcd__TxnResponse *r = read_answer(c, message);
    bool done = r && c->counted && r->succeeded;
    enum err e = !r ? ERR_MALFORMED : c->counted ? ERR_OK : read_count(c, r);

    if (r)
        etcd__txn_response__free_unpacked(r, NULL);
    if (done)
        c->answer->reply.first = c->first;
    if (done || e) {
        etcd_call_end(c, e);
        return;
    }
    c->counted = !c->counted;
    etcd_rpc_again(&c->rpc);
}

/* A block that was perhaps taken is nobody's. */
static void count_failed(struct etcd_call *c, enum err e)
{
    etcd_call_end(c, e == ERR_UNKNOWN_STATE ? ERR_NOT_READY : e);
}

static const struct etcd_kind counter_kind = {.path = "/etcdserverpb.KV/Txn",
                                              .writes = true,
                                              .start = start_counter,
                                              .ask = ask_count,
                                              .answered = count_answered,
                                              .failed = count_failed};

void etcd_counter(struct metadata *m, const char *key, int64_t n, struct meta_call *caller)
{
    struct etcd_call *c = etcd_call_new(etcd_of(m), &counter_kind, caller);

    c->key = etcd_key(c->etcd->root, key);
    c->count = n;
    etcd_call_submit(c);
}
