#include <assert.h>

#include "common/log.h"
#include "common/mem.h"
#include "ledger/changer.h"
#include "ledger/handle.h"
#include "metadata/paths.h"

enum { WAIT_FIRST_US = 20 * 1000, WAIT_MAX_US = 2 * 1000 * 1000 };

/* The changer's shell.  Given up while a put is under way, it outlives its writer: whether the
 * put happened is then for the close, or for whoever recovers the ledger, to see. */
struct change {
    struct ledger *ledger;
    struct changer core;
    struct meta_call call;
    struct timer timer;
    struct slice value; /* what the put in flight writes */
    bool ended;
    enum err err;
    void (*done)(void *ctx, enum err err); /* NULL: given up */
    void *ctx;
    char path[META_KEY_MAX];
};

static void end(struct change *c)
{
    struct ledger *l = c->ledger;

    slice_drop(&c->value);
    mem_free(c);
    handle_release(l);
}

/* Outside the core. */
static void settle(struct change *c)
{
    void (*done)(void *ctx, enum err err) = c->done;
    void *ctx = c->ctx;
    enum err err = c->err;

    if (!c->ended)
        return;
    end(c);
    done(ctx, err);
}

static void done(void *ctx, enum err err)
{
    struct change *c = ctx;

    c->ended = true;
    c->err = err;
}

static void put_done(struct meta_call *call, const struct meta_reply *r)
{
    struct change *c = container_of(call, struct change, call);
    enum err err = r->err;

    if (!c->done) {
        end(c);
        return;
    }
    if (!err)
        err = layout_read(&c->ledger->layout, c->ledger->client->bookies, slice_view(c->value),
                          r->version);
    err = handle_missing(c->ledger, r, err);
    changer_put(&c->core, err);
    settle(c);
}

static void put(void *ctx)
{
    struct change *c = ctx;
    struct ledger *l = c->ledger;

    slice_drop(&c->value);
    c->value = layout_changed(&l->layout, l->client->bookies, &c->core.wanted);
    c->call = (struct meta_call){.home = l->client->loop, .done = put_done};
    meta_put(l->client->meta, c->path, slice_share(c->value), l->layout.version, &c->call);
}

static void looked(struct meta_call *call, const struct meta_reply *r)
{
    struct change *c = container_of(call, struct change, call);
    enum err err = r->err;

    if (!c->done) {
        end(c);
        return;
    }
    if (!err)
        err = layout_learn(&c->ledger->layout, c->ledger->client->bookies, slice_view(r->value),
                           r->version);
    err = handle_missing(c->ledger, r, err);
    changer_saw(&c->core, err, &c->ledger->layout.facts);
    settle(c);
}

static void look(void *ctx)
{
    struct change *c = ctx;

    c->call = (struct meta_call){.home = c->ledger->client->loop, .done = looked};
    meta_get(c->ledger->client->meta, c->path, &c->call);
}

static void waited(struct timer *t)
{
    struct change *c = container_of(t, struct change, timer);

    changer_waited(&c->core);
    settle(c);
}

static void wait(void *ctx, unsigned tries)
{
    struct change *c = ctx;
    uint64_t us = tries < 7 ? (uint64_t)WAIT_FIRST_US << tries : WAIT_MAX_US;

    log_event(LOG_WARN, "ledger.change_delayed", F_I64("ledger", c->ledger->id),
              F_U64("tries", tries + 1), F_U64("wait_us", us));
    loop_after(c->ledger->client->loop, &c->timer, us);
}

static const struct changer_effects effects = {
    .put = put, .look = look, .wait = wait, .done = done};

struct change *change_start(struct ledger *l, const struct fragment *wanted,
                            void (*then)(void *ctx, enum err err), void *ctx)
{
    struct change *c = mem_new(struct change);
    const struct ledger_facts *f = &l->layout.facts;

    handle_hold(l);
    c->ledger = l;
    c->done = then;
    c->ctx = ctx;
    c->timer.run = waited;
    enum err err = path_ledger(l->id, c->path);
    assert(!err); /* it was created under it */
    (void)err;
    changer_start(&c->core, f->quorum.ensemble, &f->tail, wanted, &effects, c);
    return c;
}

void change_abandon(struct change **change)
{
    struct change *c = *change;

    *change = NULL;
    if (!c)
        return;
    c->done = NULL;
    if (!timer_armed(&c->timer))
        return;
    loop_cancel(c->ledger->client->loop, &c->timer);
    end(c);
}
