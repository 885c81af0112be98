#include "metadata/etcd_call.h"

#include <string.h>

enum { UNDER_WAY_MAX = 512 };

static struct etcd_call *call_of_node(struct list_node *n)
{
    return list_entry(n, struct etcd_call, node);
}

struct etcd_call *etcd_call_of_rpc(struct etcd_rpc *r)
{
    return container_of(r, struct etcd_call, rpc);
}

struct etcd_call *etcd_call_new(struct etcd *e, const struct etcd_kind *kind, struct meta_call *c)
{
    struct etcd_call *k = mem_new(struct etcd_call);

    k->etcd = e;
    k->kind = kind;
    k->caller = c;
    k->bytes = sizeof *k;
    list_init(&k->node);
    return k;
}

static void call_free(struct etcd_call *c)
{
    for (size_t i = 0; i < c->n; i++) {
        mem_free((char *)(uintptr_t)c->ops[i].key);
        slice_drop(&c->ops[i].value);
    }
    mem_free(c->ops);
    mem_free(c->leases);
    mem_free(c->claims);
    mem_free(c->key);
    mem_free(c->prefix);
    mem_free(c->after);
    slice_drop(&c->value);
    etcd_span_drop(&c->span);
    mem_free(c);
}

/* ---- going ---------------------------------------------------------------------------------- */

static struct slice ask(struct etcd_rpc *r)
{
    struct etcd_call *c = etcd_call_of_rpc(r);

    if (!c->guard.in_doubt)
        c->guard.in_doubt = r->in_doubt;
    return c->kind->ask(c);
}

static void answered(struct etcd_rpc *r, struct view message)
{
    struct etcd_call *c = etcd_call_of_rpc(r);

    c->kind->answered(c, message);
}

static void failed(struct etcd_rpc *r, enum err e)
{
    struct etcd_call *c = etcd_call_of_rpc(r);

    c->kind->failed(c, e);
}

void etcd_call_new_guard(struct etcd_call *c)
{
    int64_t now = etcd_revision(c->etcd);

    c->guard = (struct etcd_guard){.since = now, .first = now};
    c->ahead = atomic_load(&c->etcd->ahead);
}

void etcd_call_heard(struct etcd_call *c, const Etcd__Header *h)
{
    struct etcd *e = c->etcd;

    if (h && h->revision < c->guard.first && c->ahead == atomic_load(&e->ahead))
        etcd_went_back(e, h->revision);
    etcd_heard(e, h);
}

void etcd_call_begin(struct etcd_call *c)
{
    c->rpc = (struct etcd_rpc){.etcd = c->etcd,
                               .path = c->kind->path,
                               .ask = ask,
                               .answered = answered,
                               .failed = failed,
                               .max = c->kind->answer_max,
                               .timeout_us = c->kind->timeout_us,
                               .writes = c->kind->writes};
    etcd_call_new_guard(c);
    etcd_rpc_begin(&c->rpc);
}

static void go(struct etcd *e)
{
    struct list_node *n;

    while (e->under_way < UNDER_WAY_MAX && (n = list_pop_front(&e->ready))) {
        struct etcd_call *c = call_of_node(n);
        e->under_way++;
        if (c->kind->start(c))
            etcd_call_begin(c);
    }
}

static void on_ready(struct turn *t)
{
    struct etcd_call *c = container_of(t, struct etcd_call, turn);

    list_push_back(&c->etcd->ready, &c->node);
}

/* Not in the stack of what has ended: a chain of answers would nest. */
static void on_go(struct round_end *r)
{
    go(container_of(r, struct etcd, go_on));
}

void etcd_calls_start(struct etcd *e)
{
    order_init(&e->order, on_ready);
    list_init(&e->ready);
    e->go_on.run = on_go;
}

/* ---- arriving ------------------------------------------------------------------------------- */

static void claim(struct etcd_call *c, const char *key, bool writes)
{
    for (size_t j = 0; j < c->turn.n; j++)
        if (strcmp(c->claims[j].key, key) == 0) {
            c->claims[j].writes |= writes;
            return;
        }
    c->claims[c->turn.n++] = (struct claim){.key = key, .writes = writes};
}

static void arrive(struct task *t)
{
    struct etcd_call *c = container_of(t, struct etcd_call, task);
    bool writes = c->kind->writes;

    c->claims = mem_alloc((c->n + 1) * sizeof *c->claims);
    c->turn.claims = c->claims;
    c->turn.prefix = c->prefix;
    if (c->key)
        claim(c, c->key, writes);
    for (size_t i = 0; i < c->n; i++)
        claim(c, c->ops[i].key, c->ops[i].kind != META_CHECK);
    if (c->caller)
        c->answer = answer_new(c->caller);
    if (!order_enter(&c->etcd->order, &c->turn))
        return;
    on_ready(&c->turn);
    loop_at_round_end(c->etcd->loop, &c->etcd->go_on);
}

void etcd_call_submit(struct etcd_call *c)
{
    struct etcd *e = c->etcd;
    size_t calls = atomic_fetch_add(&e->calls, 1);
    size_t bytes = atomic_fetch_add(&e->bytes, c->bytes);

    c->task.run = arrive;
    if (!c->caller || (calls < ETCD_CALLS_MAX && bytes < ETCD_BYTES_MAX)) {
        loop_post(e->loop, &c->task);
        return;
    }
    atomic_fetch_sub(&e->calls, 1);
    atomic_fetch_sub(&e->bytes, c->bytes);
    answer_error(c->caller, ERR_BUSY);
    call_free(c);
}

/* ---- ending --------------------------------------------------------------------------------- */

void etcd_call_end(struct etcd_call *c, enum err err)
{
    struct etcd *e = c->etcd;

    if (c->answer) {
        if (err)
            answer_clear(c->answer);
        c->answer->reply.err = err;
        if (!c->answer->reply.revision)
            etcd_show(e, &c->answer->reply, etcd_revision(e));
        answer_post(c->answer);
    }
    e->under_way--;
    atomic_fetch_sub(&e->calls, 1);
    atomic_fetch_sub(&e->bytes, c->bytes);
    order_leave(&e->order, &c->turn);
    loop_at_round_end(e->loop, &e->go_on);
    call_free(c);
}

void etcd_call_leased(struct list_node *waiter, enum err e)
{
    struct etcd_call *c = call_of_node(waiter);

    if (e)
        etcd_call_end(c, e);
    else if (c->kind->start(c))
        etcd_call_begin(c);
}
