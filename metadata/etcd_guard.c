#include "metadata/etcd_guard.h"

#include <string.h>

static const struct etcd_verdict again = {.kind = ETCD_AGAIN};

static struct etcd_verdict refused(enum err e)
{
    return (struct etcd_verdict){.kind = ETCD_FAILED, .err = e};
}

static struct etcd_verdict done(int64_t version)
{
    return (struct etcd_verdict){.kind = ETCD_DONE, .version = version};
}

struct etcd_fact etcd_fact_at(const Etcd__TxnResponse *r, size_t i)
{
    const struct etcd_fact absent = {.version = META_ABSENT};

    if (i >= r->n_responses || r->responses[i]->response_case != ETCD__RESPONSE_OP__RESPONSE_RANGE)
        return absent;
    const Etcd__RangeResponse *range = r->responses[i]->range;
    if (range->n_kvs == 0)
        return absent;
    const Etcd__KeyValue *kv = range->kvs[0];
    return (struct etcd_fact){.present = true,
                              .version = kv->version - 1,
                              .created = kv->create_revision,
                              .changed = kv->mod_revision,
                              .lease = kv->lease,
                              .value = view_of(kv->value.data, kv->value.len)};
}

static int64_t revision_of(const Etcd__TxnResponse *r)
{
    return r->header ? r->header->revision : 0;
}

/* Nothing of ours can have happened so far, or it would show. */
static void begin_anew(struct etcd_guard *g, const Etcd__TxnResponse *r)
{
    if (revision_of(r) > g->since)
        g->since = revision_of(r);
    if (!g->in_doubt)
        g->first = g->since;
}

static bool same(struct view a, struct slice b)
{
    return a.len == b.len && (b.len == 0 || memcmp(a.base, b.base, b.len) == 0);
}

/* ---- asking --------------------------------------------------------------------------------- */

enum err etcd_write_check(const struct meta_op *ops, size_t n)
{
    for (size_t i = 0; i < n; i++)
        for (size_t j = 0; j < i; j++)
            if (ops[i].kind != META_CHECK && ops[j].kind != META_CHECK &&
                strcmp(ops[i].key, ops[j].key) == 0)
                return ERR_NOT_ALLOWED;
    return ERR_OK;
}

static void add_conditions(struct etcd_txn *t, const struct meta_op *op, bool alone, int64_t since)
{
    if (op->expected == META_ABSENT) {
        etcd_txn_if_absent(t, op->key);
        return;
    }
    if (op->expected != META_ANY)
        etcd_txn_if_version(t, op->key, op->expected);
    if (op->kind == META_CHECK)
        return;
    etcd_txn_if_unchanged(t, op->key, since);
    if (alone && op->kind == META_REMOVE && op->expected == META_ANY)
        etcd_txn_if_present(t, op->key);
}

static void add_step(struct etcd_txn *t, const struct meta_op *op, int64_t lease)
{
    if (op->expected >= 0)
        lease = ETCD_KEEP_LEASE;
    if (op->kind == META_PUT)
        etcd_txn_put(t, op->key, op->value, lease);
    else if (op->kind == META_REMOVE)
        etcd_txn_delete(t, op->key);
}

struct slice etcd_write_ask(const struct etcd_write *w, const struct etcd_guard *g)
{
    struct etcd_txn t;

    etcd_txn_begin(&t);
    for (size_t i = 0; i < w->n; i++) {
        const struct meta_op *op = &w->ops[i];
        add_conditions(&t, op, w->n == 1, g->since);
        add_step(&t, op, w->leases[i]);
        etcd_txn_read(&t, &t.otherwise, op->key, g->in_doubt && op->kind == META_PUT);
    }
    if (w->n == 1 && w->ops->kind == META_PUT && w->ops->expected == META_ANY)
        etcd_txn_read(&t, &t.then, w->ops->key, false);
    return etcd_txn_end(&t);
}

/* ---- judging -------------------------------------------------------------------------------- */

static enum err precondition(const struct etcd_write *w, const Etcd__TxnResponse *r)
{
    for (size_t i = 0; i < w->n; i++) {
        const struct meta_op *op = &w->ops[i];
        struct etcd_fact f = etcd_fact_at(r, i);
        if (w->n == 1 && op->kind == META_REMOVE && !f.present)
            return ERR_NOT_FOUND;
        if (op->expected != META_ANY && op->expected != f.version)
            return ERR_BAD_VERSION;
    }
    return ERR_OK;
}

/* This step, and so the whole, cannot have been taken since g->first. */
static bool surely_not(const struct meta_op *op, const struct etcd_fact *f, int64_t first)
{
    if (!f->present || op->kind == META_CHECK)
        return false;
    if (f->changed <= first)
        return true;
    if (f->created > first)
        return false;
    return op->kind == META_REMOVE ||
           (op->expected >= 0 && f->version == op->expected + 1 && !same(f->value, op->value));
}

/* The key is as this step would have left it. */
static bool as_if_taken(const struct meta_op *op, const struct etcd_fact *f, int64_t first)
{
    if (op->kind == META_REMOVE)
        return !f->present;
    return f->present && f->changed > first && same(f->value, op->value) &&
           (op->expected == META_ANY || f->version == op->expected + 1);
}

enum evidence { NOT_YET, TAKEN, UNCLEAR };

static enum evidence weigh(const struct etcd_write *w, const struct etcd_guard *g,
                           const Etcd__TxnResponse *r)
{
    bool taken = true;
    int64_t at = 0; /* one revision wrote them all */

    for (size_t i = 0; i < w->n; i++) {
        const struct meta_op *op = &w->ops[i];
        struct etcd_fact f = etcd_fact_at(r, i);
        if (surely_not(op, &f, g->first))
            return NOT_YET;
        if (op->kind == META_CHECK)
            continue;
        taken = taken && as_if_taken(op, &f, g->first);
        if (op->kind == META_PUT && f.present) {
            taken = taken && (at == 0 || at == f.changed);
            at = f.changed;
        }
    }
    return taken ? TAKEN : UNCLEAR;
}

static bool changes_something(const struct etcd_write *w)
{
    for (size_t i = 0; i < w->n; i++)
        if (w->ops[i].kind != META_CHECK)
            return true;
    return false;
}

static struct etcd_verdict judge_refusal(const struct etcd_write *w, struct etcd_guard *g,
                                         const Etcd__TxnResponse *r)
{
    enum err e = precondition(w, r);

    begin_anew(g, r);
    return e ? refused(e) : again;
}

static struct etcd_verdict judge_success(const struct etcd_write *w, const Etcd__TxnResponse *r)
{
    if (w->n != 1 || w->ops->kind != META_PUT)
        return done(0);
    if (w->ops->expected != META_ANY)
        return done(w->ops->expected + 1);
    return done(etcd_fact_at(r, 1).version);
}

struct etcd_verdict etcd_write_judge(const struct etcd_write *w, struct etcd_guard *g,
                                     const Etcd__TxnResponse *r)
{
    if (r->succeeded)
        return judge_success(w, r);
    if (!g->in_doubt || !changes_something(w))
        return judge_refusal(w, g, r);
    switch (weigh(w, g, r)) {
    case NOT_YET:
        return judge_refusal(w, g, r);
    case TAKEN:
        return done(w->n == 1 && w->ops->kind == META_PUT ? etcd_fact_at(r, 0).version : 0);
    case UNCLEAR:
        break;
    }
    if (w->n == 1 && w->ops->kind == META_PUT && w->ops->expected == META_ANY) {
        begin_anew(g, r); /* it may well happen twice */
        return again;
    }
    return refused(ERR_UNKNOWN_STATE);
}

/* ---- held keys ------------------------------------------------------------------------------ */

struct slice etcd_hold_ask(const struct etcd_hold *h, const struct etcd_guard *g)
{
    struct etcd_txn t;

    etcd_txn_begin(&t);
    if (h->refreshes) {
        etcd_txn_if_lease(&t, h->key, h->lease);
        etcd_txn_if_unchanged(&t, h->key, g->since);
    } else {
        etcd_txn_if_absent(&t, h->key);
    }
    etcd_txn_put(&t, h->key, h->value, h->lease);
    etcd_txn_read(&t, &t.then, h->key, false);
    etcd_txn_read(&t, &t.otherwise, h->key, true);
    return etcd_txn_end(&t);
}

struct etcd_verdict etcd_hold_judge(struct etcd_hold *h, struct etcd_guard *g,
                                    const Etcd__TxnResponse *r)
{
    struct etcd_fact f = etcd_fact_at(r, r->succeeded ? 1 : 0);

    if (r->succeeded)
        return done(f.version);
    if (f.present && f.lease != h->lease)
        return refused(ERR_EXISTS);
    if (f.present && g->in_doubt && f.changed > g->first && same(f.value, h->value))
        return done(f.version);
    h->refreshes = f.present;
    begin_anew(g, r);
    return again;
}

struct slice etcd_release_ask(const char *key, int64_t lease, const struct etcd_guard *g)
{
    struct etcd_txn t;

    etcd_txn_begin(&t);
    etcd_txn_if_lease(&t, key, lease);
    etcd_txn_if_unchanged(&t, key, g->since);
    etcd_txn_delete(&t, key);
    etcd_txn_read(&t, &t.otherwise, key, false);
    return etcd_txn_end(&t);
}

struct etcd_verdict etcd_release_judge(int64_t lease, struct etcd_guard *g,
                                       const Etcd__TxnResponse *r)
{
    struct etcd_fact f = etcd_fact_at(r, 0);

    if (r->succeeded || (!f.present && g->in_doubt))
        return done(0);
    if (f.present && f.lease == lease) {
        begin_anew(g, r);
        return again;
    }
    return refused(ERR_NOT_FOUND);
}
