#include "broker/managed_ledger/cursor_inside.h"

#include <assert.h>
#include <string.h>

#include "common/crc32c.h"
#include "common/log.h"
#include "common/mem.h"

enum { BACKOFF_FIRST_US = 100 * 1000, BACKOFF_MOST_US = 10 * 1000 * 1000 };

/* ---- waiting ------------------------------------------------------------------------------- */

void cursor_wait_longer(struct cursor_wait *w, struct loop *home, const char *ml_name,
                        const char *name, enum err why)
{
    if (!w->told)
        log_event(LOG_WARN, "cursor.delayed", F_STR("ml", ml_name), F_STR("cursor", name),
                  F_ERR(why));
    w->told = true;
    w->backoff_us = w->backoff_us ? w->backoff_us * 2 : BACKOFF_FIRST_US;
    if (w->backoff_us > BACKOFF_MOST_US)
        w->backoff_us = BACKOFF_MOST_US;
    loop_after(home, &w->timer, w->backoff_us);
}

void cursor_wait_over(struct cursor_wait *w)
{
    w->told = false;
    w->backoff_us = 0;
}

static void stop_waiting(struct cursor *c)
{
    loop_cancel(c->home, &c->wait.timer);
    if (c->watching)
        ledger_client_unwatch(c->ledgers, &c->watch);
    c->watching = false;
}

static void waited(struct timer *t)
{
    struct cursor *c = container_of(t, struct cursor, wait.timer);

    stop_waiting(c);
    cursor_store_resume(&c->store);
}

static void bookies_changed(struct bookies_watch *w)
{
    struct cursor *c = container_of(w, struct cursor, watch);

    if (ledger_client_bookies(c->ledgers) < c->env->conf->quorum.ensemble)
        return;
    stop_waiting(c);
    cursor_store_resume(&c->store);
}

static void do_pause(struct cursor_store *s, enum err why)
{
    struct cursor *c = cursor_of(s);

    c->wait.timer.run = waited;
    cursor_wait_longer(&c->wait, c->home, c->env->ml_name, c->name, why);
    if (why != ERR_NOT_ENOUGH_BOOKIES || c->watching)
        return;
    c->watch.changed = bookies_changed;
    ledger_client_watch(c->ledgers, &c->watch);
    c->watching = true;
}

static void gathered(struct timer *t)
{
    cursor_store_due(&container_of(t, struct cursor, gather)->store);
}

static void do_gather(struct cursor_store *s)
{
    struct cursor *c = cursor_of(s);

    c->gather.run = gathered;
    loop_after(c->home, &c->gather, (uint64_t)c->env->conf->cursor_delta_delay_us);
}

/* ---- ledgers ------------------------------------------------------------------------------- */

static struct ledger **handle_of(struct cursor *c, int64_t ledger)
{
    for (unsigned i = 0; i < 2; i++)
        if (c->at[i] && ledger_id(c->at[i]) == ledger)
            return &c->at[i];
    return NULL;
}

static void created(struct ledger_call *call, enum err err, struct ledger *l)
{
    struct cursor *c = container_of(call, struct cursor, create);

    if (c->phase == CURSOR_GONE) {
        ledger_drop(&l);
    } else {
        if (!err)
            c->at[c->at[0] ? 1 : 0] = l;
        cursor_store_created(&c->store, err, err ? CURSOR_STORE_NO_LEDGER : ledger_id(l));
    }
    cursor_release(c);
}

static struct view text_of(const char *s)
{
    return view_of(s, strlen(s));
}

static void do_create(struct cursor_store *s)
{
    struct cursor *c = cursor_of(s);
    struct ledger_tag tags[] = {
        {"application", text_of("pulsar")},
        {"component", text_of("managed-ledger")},
        {"pulsar/managed-ledger", text_of(c->env->ml_name)},
        {"pulsar/cursor", text_of(c->name)},
    };

    c->create.done = created;
    cursor_hold(c);
    ledger_create(c->ledgers, c->env->conf->quorum, -1, tags, sizeof tags / sizeof *tags,
                  &c->create);
}

static void drop_entries(struct cursor *c)
{
    chain_drop(&c->append.payload);
    while (c->next < c->n)
        slice_drop(&c->entries[c->next++]);
    mem_free(c->entries);
    c->entries = NULL;
    c->n = c->next = 0;
}

static void do_drop(struct cursor_store *s, int64_t ledger)
{
    struct ledger **l = handle_of(cursor_of(s), ledger);

    if (l)
        ledger_drop(l);
}

static void appended(struct ledger_append *a, enum err err, entry_id id);

/* One after the other: a large snapshot shall not fill the ledger's window. */
static void append_next(struct cursor *c)
{
    struct slice entry = c->entries[c->next++];
    enum err err;

    chain_push(&c->append.payload, entry);
    c->append.crc = crc32c(entry.base, entry.len);
    c->append.done = appended;
    err = ledger_append(c->appending, &c->append);
    if (!err)
        return;
    c->append_refused = true;
    c->refusal = err;
    drop_entries(c);
    cursor_tell_later(c);
}

static void appended(struct ledger_append *a, enum err err, entry_id id)
{
    struct cursor *c = container_of(a, struct cursor, append);

    (void)id;
    chain_drop(&a->payload);
    if (!err && c->next < c->n) {
        append_next(c);
        return;
    }
    drop_entries(c);
    if (err)
        log_event(LOG_WARN, "cursor.ledger_failed", F_STR("ml", c->env->ml_name),
                  F_STR("cursor", c->name), F_I64("ledger", ledger_id(c->appending)), F_ERR(err));
    else
        cursor_wait_over(&c->wait);
    cursor_store_appended(&c->store, err);
}

static void do_append(struct cursor_store *s, int64_t ledger, const struct slice *entries,
                      unsigned n)
{
    struct cursor *c = cursor_of(s);
    struct ledger **l = handle_of(c, ledger);

    assert(l && n > 0 && !c->entries);
    c->appending = *l;
    c->entries = mem_alloc(n * sizeof(*entries));
    memcpy(c->entries, entries, n * sizeof(*entries));
    c->n = n;
    c->next = 0;
    append_next(c);
}

struct discard {
    struct ledger_call call;
    struct cursor *cursor;
    int64_t ledger;
};

static void discarded(struct ledger_call *call, enum err err, struct ledger *l)
{
    struct discard *d = container_of(call, struct discard, call);
    struct cursor *c = d->cursor;

    (void)l;
    if (err)
        log_event(LOG_WARN, "cursor.ledger_left", F_STR("cursor", c->name),
                  F_I64("ledger", d->ledger), F_ERR(err));
    mem_free(d);
    cursor_release(c);
}

static void do_discard(struct cursor_store *s, int64_t ledger)
{
    struct cursor *c = cursor_of(s);
    struct discard *d = mem_new(struct discard);

    do_drop(s, ledger);
    d->cursor = c;
    d->ledger = ledger;
    d->call.done = discarded;
    cursor_hold(c);
    ledger_delete(c->ledgers, ledger, &d->call);
}

/* ---- the node ------------------------------------------------------------------------------ */

static ManagedLedger__ManagedCursorInfo *base_of(struct cursor *c)
{
    ManagedLedger__ManagedCursorInfo *r = NULL;
    enum err err = cursor_record_read(slice_view(c->base), &r);

    assert(err == ERR_OK); /* it was read, or written, by us */
    if (c->relabelled)
        cursor_record_label(r, &c->properties);
    return r;
}

static struct slice do_form(struct cursor_store *s)
{
    ManagedLedger__ManagedCursorInfo *r = base_of(cursor_of(s));
    struct slice form = cursor_position_write(&s->acks, r);

    managed_ledger__managed_cursor_info__free_unpacked(r, NULL);
    return form;
}

/* What was attempted is what the node says. */
static void node_written(struct cursor *c)
{
    if (c->store.target == TARGET_GONE)
        return;
    slice_drop(&c->node);
    slice_drop(&c->base);
    c->node = slice_share(c->attempt);
    c->base = slice_share(c->attempt);
    c->version++;
    if (c->store.target == TARGET_LEDGER && c->store.next != CURSOR_STORE_NO_LEDGER)
        log_event(LOG_DEBUG, "cursor.rolled", F_STR("ml", c->env->ml_name),
                  F_STR("cursor", c->name), F_I64("ledger", c->store.next),
                  F_U64("holes", cursor_acks_holes(&c->store.acks)));
}

static void pointed(struct meta_call *call, const struct meta_reply *r)
{
    struct cursor *c = container_of(call, struct cursor, put);

    if (c->phase != CURSOR_GONE) {
        if (!r->err)
            node_written(c);
        cursor_store_pointed(&c->store, r->err);
    }
    cursor_release(c);
}

static void do_point(struct cursor_store *s, enum cursor_store_target what, int64_t ledger)
{
    struct cursor *c = cursor_of(s);
    ManagedLedger__ManagedCursorInfo *r;

    cursor_hold(c);
    c->put = (struct meta_call){.home = c->home, .done = pointed};
    if (what == TARGET_GONE) {
        meta_remove(c->meta, c->path, c->version, &c->put);
        return;
    }
    r = base_of(c);
    slice_drop(&c->attempt);
    c->attempt = cursor_record_make(r, what == TARGET_LEDGER ? ledger : CURSOR_STORE_NO_LEDGER,
                                    s->out.mark_delete, what == TARGET_INLINE ? &s->acks : NULL);
    managed_ledger__managed_cursor_info__free_unpacked(r, NULL);
    meta_put(c->meta, c->path, slice_share(c->attempt), c->version, &c->put);
}

static bool same(struct slice a, struct slice b)
{
    return a.len == b.len && (a.len == 0 || memcmp(a.base, b.base, a.len) == 0);
}

static enum cursor_store_seen judge(struct cursor *c, const struct meta_reply *r)
{
    if (r->err == ERR_NOT_FOUND)
        return c->store.target == TARGET_GONE ? SEEN_WRITTEN : SEEN_OTHER;
    if (r->version == c->version && same(r->value, c->node))
        return SEEN_BEFORE;
    if (r->version != c->version + 1 || !same(r->value, c->attempt) ||
        (c->store.target != TARGET_LEDGER && c->store.target != TARGET_INLINE))
        return SEEN_OTHER;
    return SEEN_WRITTEN;
}

static void looked(struct meta_call *call, const struct meta_reply *r)
{
    struct cursor *c = container_of(call, struct cursor, get);
    enum cursor_store_seen seen = SEEN_OTHER;
    enum err err = r->err == ERR_NOT_FOUND ? ERR_OK : r->err;

    if (c->phase != CURSOR_GONE) {
        if (!err)
            seen = judge(c, r);
        if (!err && seen == SEEN_WRITTEN)
            node_written(c);
        cursor_store_looked(&c->store, err, seen);
    }
    cursor_release(c);
}

static void do_look(struct cursor_store *s)
{
    struct cursor *c = cursor_of(s);

    cursor_hold(c);
    c->get = (struct meta_call){.home = c->home, .done = looked};
    meta_get(c->meta, c->path, &c->get);
}

/* ---- telling ------------------------------------------------------------------------------- */

static void do_durable(struct cursor_store *s)
{
    cursor_tell_later(cursor_of(s));
}

static void do_ended(struct cursor_store *s, enum err err)
{
    struct cursor *c = cursor_of(s);

    c->ended = true;
    c->end_err = err;
    cursor_tell_later(c);
}

void cursor_stop_io(struct cursor *c)
{
    stop_waiting(c);
    loop_cancel(c->home, &c->gather);
    for (unsigned i = 0; i < 2; i++)
        if (c->at[i])
            ledger_drop(&c->at[i]);
    drop_entries(c);
}

const struct cursor_store_ops cursor_io_ops = {
    .create = do_create,
    .append = do_append,
    .point = do_point,
    .look = do_look,
    .pause = do_pause,
    .gather = do_gather,
    .drop = do_drop,
    .discard = do_discard,
    .form = do_form,
    .durable = do_durable,
    .ended = do_ended,
};
