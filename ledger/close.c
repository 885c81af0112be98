#include "common/log.h"
#include "common/mem.h"
#include "ledger/closer.h"
#include "ledger/handle.h"
#include "metadata/paths.h"

enum { WAIT_FIRST_US = 50 * 1000, WAIT_MAX_US = 5 * 1000 * 1000, REMOVE_TRIES = 8 };

struct closing {
    struct ledger *ledger;
    struct closer core;
    struct ledger_call *call;
    struct meta_call meta;
    struct timer timer;
    struct task ended;
    struct slice value; /* what the put in flight writes */
    enum err err;
    char path[META_KEY_MAX];
};

static void ended(struct task *t)
{
    struct closing *k = container_of(t, struct closing, ended);
    struct ledger_call *call = k->call;
    struct ledger *l = k->ledger;
    enum err err = k->err;

    if (err)
        log_event(LOG_WARN, "ledger.close_failed", F_I64("ledger", l->id), F_ERR(err));
    else
        log_event(LOG_INFO, "ledger.closed", F_I64("ledger", l->id), F_I64("last", l->lac),
                  F_I64("length", l->length));
    slice_drop(&k->value);
    mem_free(k);
    call->done(call, err, NULL);
    ledger_drop(&l);
}

static void done(void *ctx, enum err err)
{
    struct closing *k = ctx;

    k->err = err;
    loop_post(k->ledger->client->loop, &k->ended);
}

static void put_done(struct meta_call *c, const struct meta_reply *r)
{
    struct closing *k = container_of(c, struct closing, meta);
    struct ledger *l = k->ledger;
    enum err err = r->err;

    if (!err)
        err = layout_read(&l->layout, l->client->bookies, slice_view(k->value), r->version);
    closer_put(&k->core, handle_missing(l, r, err));
}

static void put(void *ctx)
{
    struct closing *k = ctx;
    struct ledger *l = k->ledger;

    slice_drop(&k->value);
    k->value = layout_closed(&l->layout, l->client->bookies, k->core.last, k->core.length, NULL, 0);
    k->meta = (struct meta_call){.home = l->client->loop, .done = put_done};
    meta_put(l->client->meta, k->path, slice_share(k->value), l->layout.version, &k->meta);
}

static void looked(struct meta_call *c, const struct meta_reply *r)
{
    struct closing *k = container_of(c, struct closing, meta);
    struct layout *layout = &k->ledger->layout;
    enum err err = r->err;

    if (!err)
        err = layout_learn(layout, k->ledger->client->bookies, slice_view(r->value), r->version);
    closer_saw(&k->core, handle_missing(k->ledger, r, err), &layout->facts);
}

static void look(void *ctx)
{
    struct closing *k = ctx;

    k->meta = (struct meta_call){.home = k->ledger->client->loop, .done = looked};
    meta_get(k->ledger->client->meta, k->path, &k->meta);
}

static void waited(struct timer *t)
{
    closer_waited(&container_of(t, struct closing, timer)->core);
}

static void wait(void *ctx, unsigned tries)
{
    struct closing *k = ctx;
    uint64_t us = tries < 7 ? (uint64_t)WAIT_FIRST_US << tries : WAIT_MAX_US;

    log_event(LOG_WARN, "ledger.close_delayed", F_I64("ledger", k->ledger->id),
              F_U64("tries", tries + 1), F_U64("wait_us", us));
    loop_after(k->ledger->client->loop, &k->timer, us);
}

static const struct closer_effects effects = {.put = put, .look = look, .wait = wait, .done = done};

/* What is in flight fails first: the end that is written is the end that was told. */
static void seal(struct closing *k)
{
    struct ledger *l = k->ledger;

    writer_stop(l->writer, ERR_CLOSED);
    l->lac = writer_last_confirmed(l->writer);
    l->length = writer_length(l->writer);
    if (writer_is_fenced(l->writer))
        done(k, ERR_FENCED);
    else if (path_ledger(l->id, k->path))
        done(k, ERR_NO_LEDGER);
    else
        closer_start(&k->core, l->lac, l->length, &effects, k);
}

void ledger_close(struct ledger **ledger, struct ledger_call *call)
{
    struct closing *k = mem_new(struct closing);
    struct ledger *l = *ledger;

    *ledger = NULL;
    k->ledger = l;
    k->call = call;
    k->timer.run = waited;
    k->ended.run = ended;
    if (l->writer)
        seal(k);
    else
        done(k, ERR_OK);
}

/* ---- delete ---- */

struct deleting {
    struct ledger_client *client;
    struct ledger_call *call;
    struct meta_call meta;
    struct task fail;
    unsigned tries;
    char path[META_KEY_MAX];
};

static void deleted(struct deleting *d, enum err err)
{
    struct ledger_client *c = d->client;
    struct ledger_call *call = d->call;

    mem_free(d);
    call->done(call, err, NULL);
    client_release(c);
}

static void removed(struct meta_call *c, const struct meta_reply *r)
{
    struct deleting *d = container_of(c, struct deleting, meta);

    if (r->err == ERR_UNKNOWN_STATE && ++d->tries < REMOVE_TRIES)
        meta_remove(d->client->meta, d->path, META_ANY, &d->meta);
    else
        deleted(d, r->err == ERR_NOT_FOUND ? ERR_OK : r->err);
}

static void never_was(struct task *t)
{
    deleted(container_of(t, struct deleting, fail), ERR_OK);
}

void ledger_delete(struct ledger_client *c, int64_t id, struct ledger_call *call)
{
    struct deleting *d = mem_new(struct deleting);

    client_hold(c);
    d->client = c;
    d->call = call;
    d->fail.run = never_was;
    d->meta = (struct meta_call){.home = c->loop, .done = removed};
    if (path_ledger(id, d->path))
        loop_post(c->loop, &d->fail);
    else
        meta_remove(c->meta, d->path, META_ANY, &d->meta);
}
