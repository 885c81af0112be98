#include "broker/managed_ledger/cursor_inside.h"

#include <assert.h>
#include <string.h>

#include "common/crc32c.h"
#include "common/log.h"
#include "common/mem.h"

enum { BACKOFF_FIRST_US = 100 * 1000, BACKOFF_MOST_US = 10 * 1000 * 1000 };

struct cursor_io *cursor_io_of(struct cursor *c)
{
    if (!c->io) {
        c->io = mem_new(struct cursor_io);
        c->io->cursor = c;
    }
    return c->io;
}

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

static void stop_waiting(struct cursor_io *io)
{
    loop_cancel(io->cursor->home, &io->wait.timer);
    if (io->watching)
        ledger_client_unwatch(io->cursor->env->ledgers, &io->watch);
    io->watching = false;
}

static void waited(struct timer *t)
{
    struct cursor_io *io = container_of(t, struct cursor_io, wait.timer);

    stop_waiting(io);
    cursor_store_resume(&io->cursor->store);
}

static void bookies_changed(struct bookies_watch *w)
{
    struct cursor_io *io = container_of(w, struct cursor_io, watch);
    const struct cursor_env *e = io->cursor->env;

    if (ledger_client_bookies(e->ledgers) < e->conf->quorum.ensemble)
        return;
    stop_waiting(io);
    cursor_store_resume(&io->cursor->store);
}

static void do_pause(struct cursor_store *s, enum err why)
{
    struct cursor *c = cursor_of(s);
    struct cursor_io *io = cursor_io_of(c);

    io->wait.timer.run = waited;
    cursor_wait_longer(&io->wait, c->home, c->env->ml_name, c->name, why);
    if (why != ERR_NOT_ENOUGH_BOOKIES || io->watching)
        return;
    io->watch.changed = bookies_changed;
    ledger_client_watch(c->env->ledgers, &io->watch);
    io->watching = true;
}

static void gathered(struct timer *t)
{
    cursor_store_due(&container_of(t, struct cursor_io, gather)->cursor->store);
}

static void do_gather(struct cursor_store *s)
{
    struct cursor *c = cursor_of(s);
    struct cursor_io *io = cursor_io_of(c);

    io->gather.run = gathered;
    loop_after(c->home, &io->gather, (uint64_t)c->env->conf->cursor_delta_delay_us);
}

/* ---- ledgers ------------------------------------------------------------------------------- */

static struct ledger **handle_of(struct cursor *c, int64_t ledger)
{
    for (unsigned i = 0; c->io && i < 2; i++)
        if (c->io->at[i] && ledger_id(c->io->at[i]) == ledger)
            return &c->io->at[i];
    return NULL;
}

static void created(struct ledger_call *call, enum err err, struct ledger *l)
{
    struct cursor_io *io = container_of(call, struct cursor_io, create);
    struct cursor *c = io->cursor;

    if (c->phase == CURSOR_GONE) {
        ledger_drop(&l);
    } else {
        if (!err)
            io->at[io->at[0] ? 1 : 0] = l;
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
    struct cursor_io *io = cursor_io_of(c);
    struct ledger_tag tags[] = {
        {"application", text_of("pulsar")},
        {"component", text_of("managed-ledger")},
        {"pulsar/managed-ledger", text_of(c->env->ml_name)},
        {"pulsar/cursor", text_of(c->name)},
    };

    io->create.done = created;
    cursor_hold(c);
    ledger_create(c->env->ledgers, c->env->conf->quorum, -1, tags, sizeof tags / sizeof *tags,
                  &io->create);
}

static void drop_entries(struct cursor_io *io)
{
    chain_drop(&io->append.payload);
    while (io->next < io->n)
        slice_drop(&io->entries[io->next++]);
    mem_free(io->entries);
    io->entries = NULL;
    io->n = io->next = 0;
}

static void do_drop(struct cursor_store *s, int64_t ledger)
{
    struct ledger **l = handle_of(cursor_of(s), ledger);

    if (l)
        ledger_drop(l);
}

static void appended(struct ledger_append *a, enum err err, entry_id id);

/* One after the other: a large snapshot shall not fill the ledger's window. */
static void append_next(struct cursor_io *io)
{
    struct slice entry = io->entries[io->next++];
    enum err err;

    chain_push(&io->append.payload, entry);
    io->append.crc = crc32c(entry.base, entry.len);
    io->append.done = appended;
    err = ledger_append(io->appending, &io->append);
    if (!err)
        return;
    io->cursor->append_refused = true;
    io->cursor->refusal = err;
    drop_entries(io);
    cursor_tell_later(io->cursor);
}

static void appended(struct ledger_append *a, enum err err, entry_id id)
{
    struct cursor_io *io = container_of(a, struct cursor_io, append);
    struct cursor *c = io->cursor;

    (void)id;
    chain_drop(&a->payload);
    if (!err && io->next < io->n) {
        append_next(io);
        return;
    }
    drop_entries(io);
    if (err)
        log_event(LOG_WARN, "cursor.ledger_failed", F_STR("ml", c->env->ml_name),
                  F_STR("cursor", c->name), F_I64("ledger", ledger_id(io->appending)), F_ERR(err));
    else
        cursor_wait_over(&io->wait);
    cursor_store_appended(&c->store, err);
}

static void do_append(struct cursor_store *s, int64_t ledger, const struct slice *entries,
                      unsigned n)
{
    struct ledger **l = handle_of(cursor_of(s), ledger);
    struct cursor_io *io = cursor_io_of(cursor_of(s));

    assert(l && n > 0 && !io->entries);
    io->appending = *l;
    io->entries = mem_alloc(n * sizeof(*entries));
    memcpy(io->entries, entries, n * sizeof(*entries));
    io->n = n;
    io->next = 0;
    append_next(io);
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
    ledger_delete(c->env->ledgers, ledger, &d->call);
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
    c->node = slice_share(c->io->attempt);
    c->base = slice_share(c->io->attempt);
    c->version++;
    if (c->store.target == TARGET_LEDGER && c->store.next != CURSOR_STORE_NO_LEDGER)
        log_event(LOG_DEBUG, "cursor.rolled", F_STR("ml", c->env->ml_name),
                  F_STR("cursor", c->name), F_I64("ledger", c->store.next),
                  F_U64("holes", cursor_acks_holes(&c->store.acks)));
}

static void pointed(struct meta_call *call, const struct meta_reply *r)
{
    struct cursor *c = container_of(call, struct cursor_io, put)->cursor;

    if (c->phase != CURSOR_GONE) {
        if (!r->err)
            node_written(c);
        cursor_store_pointed(&c->store, r->err);
    }
    cursor_release(c);
}

/* It was made or read under it: it fits. */
static void path_of(const struct cursor *c, char path[META_KEY_MAX])
{
    enum err err = path_cursor(c->env->ml_name, c->name, path);

    assert(err == ERR_OK);
}

static void do_point(struct cursor_store *s, enum cursor_store_target what, int64_t ledger)
{
    struct cursor *c = cursor_of(s);
    struct cursor_io *io = cursor_io_of(c);
    char path[META_KEY_MAX];
    ManagedLedger__ManagedCursorInfo *r;

    path_of(c, path);
    cursor_hold(c);
    io->put = (struct meta_call){.home = c->home, .done = pointed};
    if (what == TARGET_GONE) {
        meta_remove(c->env->meta, path, c->version, &io->put);
        return;
    }
    r = base_of(c);
    slice_drop(&io->attempt);
    io->attempt = cursor_record_make(r, what == TARGET_LEDGER ? ledger : CURSOR_STORE_NO_LEDGER,
                                     s->out.mark_delete, what == TARGET_INLINE ? &s->acks : NULL);
    managed_ledger__managed_cursor_info__free_unpacked(r, NULL);
    meta_put(c->env->meta, path, slice_share(io->attempt), c->version, &io->put);
}

static bool same(struct slice a, struct slice b)
{
    return a.len == b.len && (a.len == 0 || memcmp(a.base, b.base, a.len) == 0);
}

static enum cursor_store_seen judge(struct cursor *c, const struct meta_reply *r)
{
    if (r->err == ERR_NOT_FOUND && c->store.target == TARGET_GONE)
        return SEEN_WRITTEN;
    if (r->err == ERR_NOT_FOUND)
        return c->version == META_ABSENT ? SEEN_BEFORE : SEEN_OTHER;
    if (r->version == c->version && same(r->value, c->node))
        return SEEN_BEFORE;
    if (r->version != c->version + 1 || !same(r->value, c->io->attempt) ||
        (c->store.target != TARGET_LEDGER && c->store.target != TARGET_INLINE))
        return SEEN_OTHER;
    return SEEN_WRITTEN;
}

static void looked(struct meta_call *call, const struct meta_reply *r)
{
    struct cursor *c = container_of(call, struct cursor_io, get)->cursor;
    enum cursor_store_seen seen = SEEN_OTHER;
    enum err err = r->err == ERR_NOT_FOUND ? ERR_OK : r->err;

    if (c->phase != CURSOR_GONE) {
        if (!err)
            seen = judge(c, r);
        if (seen != SEEN_OTHER)
            c->io->asked = false;
        if (!err && seen == SEEN_WRITTEN)
            node_written(c);
        if (err || seen != SEEN_OTHER || !cursor_went_back(c, r, &err))
            cursor_store_looked(&c->store, err, seen);
    }
    cursor_release(c);
}

static void do_look(struct cursor_store *s)
{
    struct cursor *c = cursor_of(s);
    struct cursor_io *io = cursor_io_of(c);
    char path[META_KEY_MAX];

    path_of(c, path);
    cursor_hold(c);
    io->get = (struct meta_call){.home = c->home, .done = looked};
    meta_get(c->env->meta, path, &io->get);
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
    struct cursor_io *io = c->io;

    if (!io)
        return;
    stop_waiting(io);
    loop_cancel(c->home, &io->gather);
    if (timer_armed(&io->check_timer)) {
        loop_cancel(c->home, &io->check_timer);
        cursor_release(c);
    }
    for (unsigned i = 0; i < 2; i++)
        if (io->at[i])
            ledger_drop(&io->at[i]);
    drop_entries(io);
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
