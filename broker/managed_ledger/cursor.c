#include "broker/managed_ledger/cursor.h"

#include <assert.h>

#include "broker/managed_ledger/cursor_inside.h"
#include "common/log.h"
#include "common/mem_pool.h"

/* ---- its life ------------------------------------------------------------------------------ */

static void later(struct task *t);

struct cursor *cursor_of(struct cursor_store *s)
{
    return container_of(s, struct cursor, store);
}

struct mem_pool *cursor_pool_new(void)
{
    return mem_pool_new(sizeof(struct cursor));
}

struct cursor *cursor_new(struct cursor_env *e, const char *name, struct cursor_acks *acks,
                          struct slice node, int64_t version)
{
    struct cursor *c = mem_pool_take(e->pool);

    c->env = e;
    c->home = e->home;
    c->name = mem_string(name);
    c->busy = 1;
    c->node = node;
    c->base = slice_share(node);
    c->version = version;
    c->later.run = later;
    c->calls_end = &c->calls;
    c->told = acks->mark_delete;
    return c;
}

struct cursor *cursor_passing(struct cursor_env *e, const char *name, struct position mark_delete)
{
    struct cursor_acks acks;
    struct cursor *c;

    cursor_acks_init(&acks, e->segments, mark_delete);
    c = cursor_new(e, name, &acks, (struct slice){0}, 0);
    cursor_store_init(&c->store, &cursor_io_ops, &acks, 0, CURSOR_STORE_NO_LEDGER, mark_delete,
                      true);
    c->store.passing = true;
    return c;
}

bool cursor_is_passing(const struct cursor *c)
{
    return c->store.passing;
}

static void free_cursor(struct cursor *c)
{
    cursor_store_drop(&c->store);
    slice_drop(&c->node);
    slice_drop(&c->base);
    if (c->io)
        slice_drop(&c->io->attempt);
    mem_free(c->io);
    pairs_drop(&c->properties);
    mem_free(c->name);
    mem_pool_give(c);
}

void cursor_hold(struct cursor *c)
{
    c->busy++;
}

void cursor_release(struct cursor *c)
{
    struct cursor_call *ending = c->ending;
    enum err err = c->end_err;

    assert(c->busy > 0);
    if (--c->busy > 0)
        return;
    free_cursor(c);
    if (ending)
        ending->done(ending, err, NULL);
}

void cursor_tell_later(struct cursor *c)
{
    if (c->later_posted)
        return;
    c->later_posted = true;
    cursor_hold(c);
    loop_post(c->home, &c->later);
}

/* Goes: nothing holds it but the answers that are still to come. */
static void go(struct cursor *c)
{
    if (c->phase == CURSOR_GONE)
        return;
    c->phase = CURSOR_GONE;
    cursor_stop_io(c);
    cursor_release(c);
}

/* ---- telling ------------------------------------------------------------------------------- */

/* Those up to seq.  They are taken off first: a callee may ask for more, or end the cursor. */
static void finish_calls(struct cursor *c, uint64_t seq, enum err err)
{
    struct cursor_ack_call *call = c->calls, **cut = &c->calls;

    while (*cut && (*cut)->seq <= seq)
        cut = &(*cut)->next;
    if (cut == &c->calls)
        return;
    c->calls = *cut;
    *cut = NULL;
    if (!c->calls)
        c->calls_end = &c->calls;
    while (call) {
        struct cursor_ack_call *next = call->next;
        call->done(call, err);
        call = next;
    }
}

static void tell_moved(struct cursor *c)
{
    struct position now = c->store.durable_mark_delete;
    bool on = position_compare(now, c->told) > 0 && !c->store.passing;

    c->told = now;
    if (on && c->phase == CURSOR_LIVE && c->env->moved)
        c->env->moved(c->env, c);
}

static void sealed(struct ledger_call *call, enum err err, struct ledger *l)
{
    struct cursor *c = container_of(call, struct cursor_io, seal)->cursor;

    (void)l;
    if (err)
        log_event(LOG_WARN, "cursor.left_open", F_STR("cursor", c->name), F_ERR(err));
    go(c);
    cursor_release(c);
}

/* Its last entry is in: sealed, so that the next owner need not recover it. */
static void end_well(struct cursor *c)
{
    struct cursor_io *io = c->io;

    if (!io || (!io->at[0] && !io->at[1]) || c->end_err) {
        go(c);
        return;
    }
    io->seal.done = sealed;
    cursor_hold(c);
    ledger_close(io->at[0] ? &io->at[0] : &io->at[1], &io->seal);
}

static void tell_end(struct cursor *c)
{
    c->ended = false;
    if (c->phase == CURSOR_ENDING) /* else failed() will say it */
        log_event(c->end_err ? LOG_WARN : LOG_DEBUG, c->end_err ? "cursor.failed" : "cursor.closed",
                  F_STR("ml", c->env->ml_name), F_STR("cursor", c->name), F_ERR(c->end_err));
    finish_calls(c, UINT64_MAX, c->end_err ? c->end_err : ERR_CLOSED);
    if (c->phase == CURSOR_ENDING) {
        end_well(c);
    } else if (c->phase == CURSOR_LIVE) {
        c->phase = CURSOR_FAILED;
        cursor_stop_io(c);
        c->env->failed(c->env, c, c->end_err);
    }
}

static void later(struct task *t)
{
    struct cursor *c = container_of(t, struct cursor, later);

    c->later_posted = false;
    if (c->append_refused) {
        c->append_refused = false;
        if (c->store.state != STORE_ENDED && c->phase != CURSOR_GONE)
            cursor_store_appended(&c->store, c->refusal);
    }
    tell_moved(c);
    finish_calls(c, c->store.durable, ERR_OK);
    if (c->phase == CURSOR_FAILED || c->phase == CURSOR_GONE)
        finish_calls(c, UINT64_MAX, c->end_err ? c->end_err : ERR_CLOSED);
    if (c->ended && c->phase != CURSOR_GONE)
        tell_end(c);
    cursor_release(c);
}

/* ---- what users call ----------------------------------------------------------------------- */

static void wait_for(struct cursor *c, struct cursor_ack_call *call)
{
    if (!call)
        return;
    call->next = NULL;
    call->seq = c->store.seq;
    *c->calls_end = call;
    c->calls_end = &call->next;
    if (c->store.state == STORE_ENDED || cursor_store_want(&c->store))
        cursor_tell_later(c);
}

void cursor_ack(struct cursor *c, const struct position *at, unsigned n,
                struct cursor_ack_call *call)
{
    cursor_store_ack(&c->store, at, n);
    wait_for(c, call);
}

bool cursor_ack_part(struct cursor *c, struct position at, const uint64_t *words, unsigned n,
                     struct cursor_ack_call *call)
{
    if (!cursor_store_ack_part(&c->store, at, words, n))
        return false;
    wait_for(c, call);
    return true;
}

const struct cursor_part *cursor_part(const struct cursor *c, struct position at)
{
    return cursor_parts_find(&c->store.acks.parts, at);
}

void cursor_ack_upto(struct cursor *c, struct position at, struct cursor_ack_call *call)
{
    cursor_store_ack_upto(&c->store, at);
    wait_for(c, call);
}

void cursor_reset(struct cursor *c, struct position mark_delete, struct cursor_ack_call *call)
{
    cursor_store_reset(&c->store, mark_delete);
    wait_for(c, call);
}

void cursor_set_properties(struct cursor *c, const struct pairs *p, struct cursor_ack_call *call)
{
    pairs_drop(&c->properties);
    pairs_copy(&c->properties, p);
    c->relabelled = true;
    cursor_store_relabel(&c->store);
    wait_for(c, call);
}

const struct pairs *cursor_properties(const struct cursor *c)
{
    return &c->properties;
}

const char *cursor_name(const struct cursor *c)
{
    return c->name;
}

struct position cursor_mark_delete(const struct cursor *c)
{
    return c->store.acks.mark_delete;
}

struct position cursor_durable_mark_delete(const struct cursor *c)
{
    struct position now = cursor_mark_delete(c), durable = c->store.durable_mark_delete;

    return position_compare(now, durable) < 0 ? now : durable; /* a reset holds back at once */
}

bool cursor_is_acked(const struct cursor *c, struct position at)
{
    return cursor_acks_has(&c->store.acks, at);
}

struct position cursor_next_unacked(const struct cursor *c, struct position p)
{
    return cursor_acks_next(&c->store.acks, p);
}

int64_t cursor_backlog(const struct cursor *c)
{
    return cursor_acks_backlog(&c->store.acks);
}

void cursor_set_user(struct cursor *c, void *user)
{
    c->user = user;
}

void *cursor_user(const struct cursor *c)
{
    return c->user;
}

uint64_t cursor_holes(const struct cursor *c)
{
    return cursor_acks_holes(&c->store.acks);
}

/* ---- ending -------------------------------------------------------------------------------- */

static void end(struct cursor **cursor, enum cursor_store_ending how, struct cursor_call *call)
{
    struct cursor *c = *cursor;

    *cursor = NULL;
    c->ending = call;
    if (c->phase == CURSOR_FAILED) {
        cursor_tell_later(c);
        go(c);
        return;
    }
    c->phase = CURSOR_ENDING;
    if (c->io)
        loop_cancel(c->home, &c->io->gather);
    cursor_store_end(&c->store, how);
}

void cursor_close(struct cursor **c, struct cursor_call *call)
{
    end(c, ENDING_CLOSE, call);
}

void cursor_delete(struct cursor **c, struct cursor_call *call)
{
    end(c, ENDING_DELETE, call);
}

void cursor_abandon(struct cursor **cursor)
{
    struct cursor *c = *cursor;

    *cursor = NULL;
    if (!c)
        return;
    cursor_tell_later(c); /* whoever waits is told, not in this stack */
    go(c);
}
