#include "ledger/rereplicator.h"

#include <string.h>

#include "common/log.h"
#include "common/mem.h"
#include "common/rng.h"
#include "ledger/handle.h"
#include "ledger/mark_work.h"
#include "metadata/paths.h"
#include "metadata/records.h"

enum { PAGE = 100, WAIT_MAX_US = 60 * 1000 * 1000, BACKOFF_MAX = 6, LATER_MAX = 65536 };

/* A mark that has to wait. */
struct later {
    int64_t ledger;
    uint64_t due_us;
    unsigned tries;
    bool fence; /* its writer had its time */
};

enum rereplicator_state {
    REREPLICATOR_RESTING,
    REREPLICATOR_LISTING,
    REREPLICATOR_LOCKING,
    REREPLICATOR_WORKING, /* on the mark */
    REREPLICATOR_UNLOCKING
};

struct rereplicator {
    struct ledger_client *client;
    struct census *census;
    const struct autorecovery_conf *conf;
    struct autorecovery_counts *counts;
    enum rereplicator_state state;
    bool gone;
    bool stale;  /* marks have changed since the listing began */
    char *after; /* NULL: it was the last page */
    int64_t page[PAGE];
    unsigned n, next;
    unsigned later_n;
    struct later *later;
    int64_t ledger; /* that is being repaired, with the next four */
    struct mark_work work;
    bool calling; /* the metadata store, for it */
    struct mark_record mark;
    struct repair *repair;
    struct repair_report report;
    struct repair_rate rate;
    struct meta_call call;
    struct meta_watch watch;
    struct timer timer;
    uint64_t seed;
    char key[META_KEY_MAX];
};

static struct loop *loop_of(const struct rereplicator *r)
{
    return r->client->loop;
}

static void end(struct rereplicator *r)
{
    mark_record_drop(&r->mark);
    mem_free(r->later);
    mem_free(r->after);
    mem_free(r);
}

static bool came_back(struct rereplicator *r)
{
    if (!r->gone)
        return true;
    end(r);
    return false;
}

static void call(struct rereplicator *r, enum rereplicator_state state,
                 void (*done)(struct meta_call *c, const struct meta_reply *reply))
{
    r->state = state;
    r->call = (struct meta_call){.home = loop_of(r), .done = done};
}

/* ---- those that wait ------------------------------------------------------------------------- */

static struct later *later_of(struct rereplicator *r, int64_t ledger)
{
    for (unsigned i = 0; i < r->later_n; i++)
        if (r->later[i].ledger == ledger)
            return &r->later[i];
    return NULL;
}

static void forget(struct rereplicator *r, int64_t ledger)
{
    struct later *l = later_of(r, ledger);

    if (l)
        *l = r->later[--r->later_n];
}

/* Those of marks that others removed go when there are many. */
static struct later *later_make(struct rereplicator *r, int64_t ledger)
{
    struct later *l = later_of(r, ledger);

    if (l)
        return l;
    if (r->later_n == LATER_MAX)
        r->later_n = 0;
    if (r->later_n % 64 == 0)
        r->later = mem_resize(r->later, (r->later_n + 64) * sizeof *r->later);
    r->later[r->later_n] = (struct later){.ledger = ledger};
    return &r->later[r->later_n++];
}

static void put_off(struct rereplicator *r, enum err err)
{
    struct later *l = later_make(r, r->ledger);
    uint64_t us = r->conf->retry_us << (l->tries < BACKOFF_MAX ? l->tries : BACKOFF_MAX);

    if (err == ERR_BUSY && !l->fence) {
        l->fence = true;
        us = r->conf->open_grace_us;
        log_event(LOG_INFO, "ledger.repair_delayed", F_I64("ledger", r->ledger),
                  F_U64("wait_us", us));
    } else {
        l->tries++;
        metric_add(&r->counts->failed, 1);
        log_event(LOG_WARN, "ledger.repair_failed", F_I64("ledger", r->ledger), F_ERR(err),
                  F_U64("tries", l->tries), F_U64("wait_us", us));
    }
    l->due_us = loop_now(loop_of(r)) + us;
}

/* ---- one ledger ------------------------------------------------------------------------------ */

static void go_on(struct rereplicator *r);

static void unlocked(struct meta_call *c, const struct meta_reply *reply)
{
    struct rereplicator *r = container_of(c, struct rereplicator, call);

    (void)reply; /* it goes with the session */
    if (came_back(r))
        go_on(r);
}

static void unlock(struct rereplicator *r)
{
    mark_record_drop(&r->mark);
    if (path_mark_lock(r->ledger, r->key)) {
        go_on(r);
        return;
    }
    call(r, REREPLICATOR_UNLOCKING, unlocked);
    meta_release(r->client->meta, r->key, &r->call);
}

/* ---- effects of the work on a mark ---- */

static struct rereplicator *worked(struct meta_call *c)
{
    struct rereplicator *r = container_of(c, struct rereplicator, call);

    r->calling = false;
    return came_back(r) ? r : NULL;
}

static void work_call(struct rereplicator *r,
                      void (*done)(struct meta_call *c, const struct meta_reply *reply))
{
    call(r, REREPLICATOR_WORKING, done);
    r->calling = true;
}

static void mark_read(struct meta_call *c, const struct meta_reply *reply)
{
    struct rereplicator *r = worked(c);
    enum err err = reply->err;

    if (!r)
        return;
    if (!err)
        err = mark_record_read(slice_view(reply->value), &r->mark);
    mark_work_read(&r->work, err, reply->version, reply->revision, census_revision(r->census));
}

static void read_mark(void *ctx)
{
    struct rereplicator *r = ctx;

    work_call(r, mark_read);
    meta_get(r->client->meta, r->key, &r->call);
}

static void look(void *ctx)
{
    const struct rereplicator *r = ctx;

    census_look(r->census);
}

static void unmarked(struct meta_call *c, const struct meta_reply *reply)
{
    struct rereplicator *r = worked(c);

    if (r)
        mark_work_removed(&r->work, reply->err);
}

static void remove_mark(void *ctx, int64_t version)
{
    struct rereplicator *r = ctx;

    work_call(r, unmarked);
    meta_remove(r->client->meta, r->key, version, &r->call);
}

static void note_repair(struct rereplicator *r)
{
    metric_add(&r->counts->repaired, 1);
    log_event(LOG_INFO, "ledger.repaired", F_I64("ledger", r->ledger),
              F_U64("moved", r->report.moved), F_U64("entries", r->report.entries),
              F_U64("bytes", r->report.bytes));
}

static void end_work(void *ctx, enum mark_work_end how, enum err err)
{
    struct rereplicator *r = ctx;

    if (how == MARK_WORK_LATER)
        put_off(r, err);
    else if (how == MARK_WORK_NEWER)
        r->stale = true;
    else
        forget(r, r->ledger);
    if (how == MARK_WORK_DONE)
        note_repair(r);
    unlock(r);
}

static void repaired(void *ctx, enum err err)
{
    struct rereplicator *r = ctx;

    r->repair = NULL;
    metric_add(&r->counts->entries, (int64_t)r->report.entries);
    metric_add(&r->counts->bytes, (int64_t)r->report.bytes);
    mark_work_repaired(&r->work, err);
}

static bool is_bad(void *ctx, const char *bookie)
{
    struct rereplicator *r = ctx;
    uint32_t number = census_number(r->census, bookie);

    return census_is_leaving(r->census, number) ||
           (!census_is_here(r->census, number) && mark_record_has(&r->mark, bookie));
}

static void repair(void *ctx)
{
    struct rereplicator *r = ctx;
    const struct later *l = later_of(r, r->ledger);
    const struct replicator_how how = {.may_fence = l && l->fence};
    const struct repair_conf conf = {
        .is_bad = is_bad, .ctx = r, .rate = &r->rate, .window = r->conf->entries};

    r->report = (struct repair_report){0};
    r->repair = repair_start(r->client, r->ledger, how, &conf, &r->report, repaired, r);
}

static const struct mark_work_effects to_work = {
    .read = read_mark, .look = look, .repair = repair, .remove = remove_mark, .end = end_work};

static void locked(struct meta_call *c, const struct meta_reply *reply)
{
    struct rereplicator *r = container_of(c, struct rereplicator, call);

    if (!came_back(r))
        return;
    if (reply->err || path_mark(r->ledger, r->key)) {
        go_on(r); /* somebody else is at it */
        return;
    }
    r->state = REREPLICATOR_WORKING;
    mark_work_start(&r->work, &to_work, r);
}

static void lock(struct rereplicator *r, int64_t ledger)
{
    r->ledger = ledger;
    if (path_mark_lock(ledger, r->key))
        return;
    call(r, REREPLICATOR_LOCKING, locked);
    meta_hold(r->client->meta, r->key, lock_record_write(r->conf->name), &r->call);
}

/* ---- which one ------------------------------------------------------------------------------- */

static void swap(int64_t *a, int64_t *b)
{
    int64_t was = *a;

    *a = *b;
    *b = was;
}

/* In another order in each process, so that they seldom want the same one. */
static void listed(struct meta_call *c, const struct meta_reply *reply)
{
    struct rereplicator *r = container_of(c, struct rereplicator, call);

    if (!came_back(r))
        return;
    r->n = r->next = 0;
    mem_free(r->after);
    r->after = NULL;
    if (!reply->err && reply->more && reply->count > 0)
        r->after = mem_string(reply->items[reply->count - 1].key);
    for (size_t i = 0; !reply->err && i < reply->count && i < PAGE; i++)
        if (!path_mark_id(reply->items[i].key, &r->page[r->n]))
            r->n++;
    for (unsigned i = r->n; i > 1; i--)
        swap(&r->page[i - 1], &r->page[rng_below(&r->seed, i)]);
    go_on(r);
}

static void list_from(struct rereplicator *r, const char *after)
{
    call(r, REREPLICATOR_LISTING, listed);
    meta_range(r->client->meta, PATH_UNDERREPLICATED, after, PAGE, true, &r->call);
}

static bool is_due(struct rereplicator *r, int64_t ledger)
{
    const struct later *l = later_of(r, ledger);

    return !l || l->due_us <= loop_now(loop_of(r));
}

static void rest(struct rereplicator *r)
{
    uint64_t now = loop_now(loop_of(r)), due = now + WAIT_MAX_US;

    for (unsigned i = 0; i < r->later_n; i++)
        if (r->later[i].due_us > now && r->later[i].due_us < due)
            due = r->later[i].due_us;
    r->state = REREPLICATOR_RESTING;
    loop_after(loop_of(r), &r->timer, r->stale ? 0 : due - now);
}

static bool may_work(const struct rereplicator *r)
{
    return census_is_ready(r->census) && !census_is_paused(r->census) &&
           ledger_client_ready(r->client);
}

static void go_on(struct rereplicator *r)
{
    while (r->next < r->n && !is_due(r, r->page[r->next]))
        r->next++;
    if (!may_work(r)) {
        r->n = r->next = 0;
        rest(r);
    } else if (r->next < r->n) {
        lock(r, r->page[r->next++]);
    } else if (r->after) {
        list_from(r, r->after);
    } else {
        rest(r);
    }
}

static void rested(struct timer *t)
{
    struct rereplicator *r = container_of(t, struct rereplicator, timer);

    r->stale = false;
    if (may_work(r))
        list_from(r, NULL);
    else
        loop_after(loop_of(r), &r->timer, r->conf->retry_us);
}

static void marks_changed(struct meta_watch *w, const struct meta_change *c)
{
    struct rereplicator *r = container_of(w, struct rereplicator, watch);

    if (c->kind == META_CHANGED_REMOVED)
        return;
    r->stale = true;
    if (r->state == REREPLICATOR_RESTING)
        loop_after(loop_of(r), &r->timer, 0);
}

void rereplicator_census_changed(struct rereplicator *r)
{
    if (r->state == REREPLICATOR_RESTING)
        loop_after(loop_of(r), &r->timer, 0);
    if (r->state != REREPLICATOR_WORKING || r->calling)
        return;
    if (!census_is_paused(r->census)) {
        mark_work_census(&r->work, census_revision(r->census));
        return;
    }
    repair_abandon(&r->repair);
    mark_work_stop(&r->work);
    unlock(r);
}

struct rereplicator *rereplicator_new(struct ledger_client *client, struct census *census,
                                      const struct autorecovery_conf *conf,
                                      struct autorecovery_counts *counts)
{
    struct rereplicator *r = mem_new(struct rereplicator);

    r->client = client;
    r->census = census;
    r->conf = conf;
    r->counts = counts;
    r->rate.bytes_per_s = conf->repair_rate;
    r->seed = rng_seed();
    r->timer.run = rested;
    r->mark.ctime_ms = -1;
    r->watch = (struct meta_watch){.home = loop_of(r), .changed = marks_changed};
    meta_watch(client->meta, PATH_UNDERREPLICATED, &r->watch);
    rest(r);
    return r;
}

void rereplicator_drop(struct rereplicator **rereplicator)
{
    struct rereplicator *r = *rereplicator;

    *rereplicator = NULL;
    if (!r)
        return;
    meta_unwatch(r->client->meta, &r->watch);
    loop_cancel(loop_of(r), &r->timer);
    repair_abandon(&r->repair);
    r->gone = true;
    if (r->state == REREPLICATOR_RESTING || (r->state == REREPLICATOR_WORKING && !r->calling))
        end(r);
}
