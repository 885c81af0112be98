#include "bookie/checkpoint.h"

#include <assert.h>
#include <pthread.h>
#include <stdlib.h>
#include <time.h>

#include "bookie/storage.h"
#include "common/flight.h"
#include "common/log.h"
#include "common/mem.h"

enum { RETRY_MS = 200 };

/* What a run does, one after the other. */
enum step { STEP_FREEZE, STEP_LOG, STEP_INDEX, STEP_MARK, STEP_THAW, STEPS };

struct item {
    int64_t ledger;
    int64_t entry;
    const struct slice *bytes; /* in a frozen half */
};

struct checkpoint {
    struct storage *storage;
    struct device *device;

    bool is_frozen; /* an earlier run failed after its freeze */
    struct journal_mark marks[JOURNALS_MAX];
    struct ledger_row *rows;
    size_t rows_n, rows_room;
    struct item *items;
    size_t items_n, items_room;
    struct entry_map spare[STORAGE_SHARDS_MAX]; /* empty ones, but while their shard is frozen */
    uint64_t step_began, step_us[STEPS];        /* of this run */

    pthread_t thread;
    bool started;
    pthread_mutex_t lock; /* kicked, stopping, failure */
    pthread_cond_t woken;
    bool kicked, stopping;
    enum err failure; /* of the last run */
    struct checkpoint_stats stats;
};

static void step_ends(struct checkpoint *c, enum step s)
{
    const uint64_t now = loop_clock();
    c->step_us[s] = now - c->step_began;
    c->step_began = now;
}

/* One that takes longer than the time between them: adds will wait for the write cache. */
static void tell_if_slow(const struct checkpoint *c, uint64_t us)
{
    if (us <= c->storage->conf.flush_interval_ms * 1000)
        return;
    log_event(LOG_WARN, "checkpoint.slow", F_STR("dir", c->device->conf.dir),
              F_U64("total_ms", us / 1000), F_U64("freeze_ms", c->step_us[STEP_FREEZE] / 1000),
              F_U64("log_ms", c->step_us[STEP_LOG] / 1000),
              F_U64("index_ms", c->step_us[STEP_INDEX] / 1000),
              F_U64("mark_ms", c->step_us[STEP_MARK] / 1000),
              F_U64("thaw_ms", c->step_us[STEP_THAW] / 1000), F_U64("entries", c->items_n),
              F_U64("ledgers", c->rows_n));
}

/* ---- freezing ------------------------------------------------------------------------------- */

static void take_row(void *ctx, const struct ledger_row *row)
{
    struct checkpoint *c = ctx;
    if (c->rows_n == c->rows_room) {
        c->rows_room = c->rows_room ? c->rows_room * 2 : 64;
        c->rows = mem_resize(c->rows, c->rows_room * sizeof c->rows[0]);
    }
    c->rows[c->rows_n++] = *row;
}

static void take_items(struct checkpoint *c, const struct entry_map *m)
{
    if (c->items_n + m->n > c->items_room) {
        c->items_room = (c->items_n + m->n) * 2;
        c->items = mem_resize(c->items, c->items_room * sizeof c->items[0]);
    }
    for (uint32_t i = 0; i < m->n; i++)
        c->items[c->items_n++] =
            (struct item){m->slots[i].ledger, m->slots[i].entry, &m->slots[i].bytes};
}

static void freeze_shard(void *ctx, unsigned shard)
{
    struct checkpoint *c = ctx;
    struct storage *s = c->storage;
    struct storage_shard *sh = &s->shards[shard];
    struct write_cache *cache = &sh->caches[c->device->number];
    const size_t cost = write_cache_freeze(cache, &c->spare[shard]);
    atomic_fetch_sub(&c->device->active_bytes, cost);
    atomic_fetch_add(&c->device->frozen_bytes, cost);
    ledgers_freeze(&sh->ledgers, c->device, take_row, c);
    if (s->conf.room)
        s->conf.room(s->conf.ctx, shard);
}

static void thaw_shard(void *ctx, unsigned shard)
{
    struct checkpoint *c = ctx;
    struct storage *s = c->storage;
    struct storage_shard *sh = &s->shards[shard];
    write_cache_thaw(&sh->caches[c->device->number], &c->spare[shard]);
    sh->thaws++;
    ledgers_thaw(&sh->ledgers, c->device);
    if (s->conf.room) /* ledgers may be forgotten again */
        s->conf.room(s->conf.ctx, shard);
}

static int by_id(const void *a, const void *b)
{
    const struct item *x = a, *y = b;
    if (x->ledger != y->ledger)
        return x->ledger < y->ledger ? -1 : 1;
    return (x->entry > y->entry) - (x->entry < y->entry);
}

/* One ledger's entries come in order: then there is nothing to sort. */
static void sort_items(struct checkpoint *c)
{
    for (size_t i = 1; i < c->items_n; i++)
        if (by_id(&c->items[i - 1], &c->items[i]) > 0) {
            qsort(c->items, c->items_n, sizeof c->items[0], by_id);
            return;
        }
}

static void freeze(struct checkpoint *c, bool move_marks)
{
    const struct storage *s = c->storage;
    for (unsigned j = 0; j < s->n_journals; j++)
        c->marks[j] = move_marks ? journal_mark(s->journals[j]) : c->device->marks.of[j];
    c->rows_n = c->items_n = 0;
    storage_each_shard(c->storage, freeze_shard, c);
    for (unsigned i = 0; i < s->loops->n; i++)
        take_items(c, write_cache_frozen(&s->shards[i].caches[c->device->number]));
    sort_items(c);
    c->is_frozen = true;
}

/* ---- flushing ------------------------------------------------------------------------------- */

static enum err write_items(struct checkpoint *c)
{
    struct device *d = c->device;
    uint64_t bytes = 0;
    for (size_t i = 0; i < c->items_n; i++) {
        const struct item *it = &c->items[i];
        struct entry_place at;
        TRY(entry_log_append(d->log, slice_view(*it->bytes), &at));
        TRY(entry_index_put(d->index, it->ledger, it->entry, &at));
        bytes += it->bytes->len;
    }
    TRY(entry_log_sync(d->log));
    metric_add(&c->stats.entries, (int64_t)c->items_n);
    metric_add(&c->stats.bytes, (int64_t)bytes);
    return ERR_OK;
}

static enum err flush(struct checkpoint *c)
{
    struct device *d = c->device;
    const enum err err = write_items(c);
    step_ends(c, STEP_LOG);
    if (err) {
        entry_log_abandon(d->log);
        entry_index_discard(d->index);
        return err;
    }
    for (size_t i = 0; i < c->rows_n; i++)
        entry_index_put_row(d->index, &c->rows[i]);
    const enum err committed = c->items_n + c->rows_n > 0 ? entry_index_commit(d->index) : ERR_OK;
    if (!committed)
        entry_log_settle(d->log);
    step_ends(c, STEP_INDEX);
    return committed;
}

/* None of them goes back. */
static enum err move_marks(struct checkpoint *c)
{
    struct device *d = c->device;
    struct marks next = d->marks;
    bool is_further = false;
    for (unsigned j = 0; j < c->storage->n_journals; j++) {
        if (!mark_is_before(&d->marks.of[j], &c->marks[j]))
            continue;
        next.of[j] = c->marks[j];
        is_further = true;
    }
    if (!is_further)
        return ERR_OK;
    next.is_there = true;
    next.index = entry_index_sequence(d->index);
    TRY(device_store_marks(d, &next));
    storage_marks_moved(c->storage, d, &next);
    return ERR_OK;
}

static void note_result(struct checkpoint *c, enum err err)
{
    metric_add(err ? &c->stats.failures : &c->stats.runs, 1);
    pthread_mutex_lock(&c->lock);
    c->failure = err;
    pthread_mutex_unlock(&c->lock);
    if (err)
        log_event(LOG_ERROR, "checkpoint.failed", F_STR("dir", c->device->conf.dir), F_ERR(err));
}

enum err checkpoint_run(struct checkpoint *c, bool marks_move)
{
    const uint64_t began = loop_clock();
    c->step_began = began;
    if (!c->is_frozen)
        freeze(c, marks_move);
    step_ends(c, STEP_FREEZE);
    enum err err = flush(c);
    if (!err)
        err = move_marks(c);
    step_ends(c, STEP_MARK);
    flight_note("checkpoint: entries, err", (int64_t)c->items_n, err);
    note_result(c, err);
    if (err)
        return err;
    storage_each_shard(c->storage, thaw_shard, c);
    for (unsigned i = 0; i < c->storage->loops->n; i++)
        entry_map_clear(&c->spare[i]);
    atomic_store(&c->device->frozen_bytes, 0);
    c->is_frozen = false;
    step_ends(c, STEP_THAW);
    histogram_note(&c->stats.run_us, loop_clock() - began);
    tell_if_slow(c, loop_clock() - began);
    return ERR_OK;
}

/* ---- the thread ----------------------------------------------------------------------------- */

static struct timespec after_ms(uint64_t ms)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    t.tv_sec += (time_t)(ms / 1000);
    t.tv_nsec += (long)(ms % 1000) * 1000000;
    if (t.tv_nsec >= 1000000000) {
        t.tv_nsec -= 1000000000;
        t.tv_sec++;
    }
    return t;
}

/* Until it is time or somebody asks for it; false when stopping.  After a failure asking does not
 * make it faster. */
static bool wait_for_turn(struct checkpoint *c, enum err last)
{
    const struct timespec until = after_ms(last ? RETRY_MS : c->storage->conf.flush_interval_ms);
    int rc = 0;
    pthread_mutex_lock(&c->lock);
    while (rc == 0 && !c->stopping && (last || !c->kicked))
        rc = pthread_cond_timedwait(&c->woken, &c->lock, &until);
    c->kicked = false;
    const bool go_on = !c->stopping;
    pthread_mutex_unlock(&c->lock);
    return go_on;
}

static void *checkpoint_main(void *arg)
{
    struct checkpoint *c = arg;
    enum err err = ERR_OK;
    while (wait_for_turn(c, err))
        err = checkpoint_run(c, true);
    /* What a retry wrote may leave newer entries behind it; those the journal has. */
    if (err)
        err = checkpoint_run(c, true);
    if (!err)
        err = checkpoint_run(c, true);
    if (err)
        log_event(LOG_WARN, "checkpoint.left_to_replay", F_STR("dir", c->device->conf.dir),
                  F_ERR(err));
    return NULL;
}

struct checkpoint *checkpoint_open(struct storage *s, struct device *d)
{
    struct checkpoint *c = mem_new(struct checkpoint);
    pthread_condattr_t monotonic;
    c->storage = s;
    c->device = d;
    for (unsigned i = 0; i < STORAGE_SHARDS_MAX; i++)
        entry_map_init(&c->spare[i]);
    pthread_mutex_init(&c->lock, NULL);
    pthread_condattr_init(&monotonic);
    pthread_condattr_setclock(&monotonic, CLOCK_MONOTONIC);
    pthread_cond_init(&c->woken, &monotonic);
    pthread_condattr_destroy(&monotonic);
    return c;
}

enum err checkpoint_start(struct checkpoint *c)
{
    c->started = pthread_create(&c->thread, NULL, checkpoint_main, c) == 0;
    if (!c->started)
        return ERR_IO;
    pthread_setname_np(c->thread, "flush");
    return ERR_OK;
}

void checkpoint_kick(struct checkpoint *c)
{
    pthread_mutex_lock(&c->lock);
    c->kicked = true;
    pthread_mutex_unlock(&c->lock);
    pthread_cond_signal(&c->woken);
}

enum err checkpoint_failure(struct checkpoint *c)
{
    pthread_mutex_lock(&c->lock);
    const enum err err = c->failure;
    pthread_mutex_unlock(&c->lock);
    return err;
}

void checkpoint_stop(struct checkpoint *c)
{
    if (!c->started)
        return;
    pthread_mutex_lock(&c->lock);
    c->stopping = true;
    pthread_mutex_unlock(&c->lock);
    pthread_cond_signal(&c->woken);
    pthread_join(c->thread, NULL);
    c->started = false;
}

void checkpoint_close(struct checkpoint **checkpoint)
{
    struct checkpoint *c = *checkpoint;
    *checkpoint = NULL;
    if (!c)
        return;
    checkpoint_stop(c);
    pthread_cond_destroy(&c->woken);
    pthread_mutex_destroy(&c->lock);
    for (unsigned i = 0; i < STORAGE_SHARDS_MAX; i++)
        entry_map_end(&c->spare[i]);
    mem_free(c->rows);
    mem_free(c->items);
    mem_free(c);
}

const struct checkpoint_stats *checkpoint_stats(const struct checkpoint *c)
{
    return &c->stats;
}
