#include "bookie/gc.h"

#include <sys/resource.h>
#include <time.h>
#include <unistd.h>

#include "bookie/gc_inside.h"
#include "bookie/reads.h"
#include "common/log.h"
#include "common/mem.h"

enum {
    FIRST_WAIT_US = 1000 * 1000,
    LOOK_US = 10 * 1000 * 1000,
    ASK_AGAIN_US = 1000 * 1000,
    SHARE_STEP = 256 * 1024, /* bytes */
    NICE = 10,
};

uint64_t gc_now_ms(void)
{
    return loop_wall_ms();
}

struct gc_device *gc_device_of(struct gc *g, int64_t ledger)
{
    struct ledger_row row;
    struct ledger_tomb tomb;
    for (unsigned i = 0; i < g->n; i++)
        if (entry_index_row(g->devices[i].index, ledger, &row) != ERR_NO_LEDGER)
            return &g->devices[i];
    for (unsigned i = 0; i < g->n; i++)
        if (!ledger_tomb_get(g->devices[i].index, ledger, &tomb))
            return &g->devices[i];
    return &g->devices[0];
}

/* ---- waiting -------------------------------------------------------------------------------- */

static struct timespec at_us(uint64_t us)
{
    return (struct timespec){.tv_sec = (time_t)(us / 1000000),
                             .tv_nsec = (long)(us % 1000000) * 1000};
}

/* Until then, or until somebody stops it; with `asked`, or asks for something. */
static void wait_until(struct gc *g, uint64_t us, bool asked)
{
    const struct timespec until = at_us(us);
    int rc = 0;
    pthread_mutex_lock(&g->lock);
    while (rc == 0 && !g->stopping && !(asked && (g->asked || g->resumed)))
        rc = pthread_cond_timedwait(&g->woken, &g->lock, &until);
    pthread_mutex_unlock(&g->lock);
}

static void pause_us(void *ctx, uint64_t us)
{
    wait_until(ctx, loop_clock() + us, false);
}

bool gc_stops(struct gc *g)
{
    pthread_mutex_lock(&g->lock);
    const bool stops = g->stopping;
    pthread_mutex_unlock(&g->lock);
    return stops;
}

static bool stops(void *ctx)
{
    return gc_stops(ctx);
}

/* Of a kind that is suspended nothing more is moved. */
static bool is_suspended(struct gc *g, enum gc_depth depth)
{
    pthread_mutex_lock(&g->lock);
    const bool is = depth == GC_MAJOR ? g->state.major_suspended : g->state.minor_suspended;
    pthread_mutex_unlock(&g->lock);
    return is;
}

/* As they are now: gc_set(). */
static struct gc_settings settings(struct gc *g)
{
    pthread_mutex_lock(&g->lock);
    const struct gc_settings now = g->settings;
    pthread_mutex_unlock(&g->lock);
    return now;
}

/* Not before *due; the next one `us` later. */
static void keep_pace(struct gc *g, uint64_t *due, uint64_t us)
{
    const uint64_t now = loop_clock();
    if (*due > now)
        wait_until(g, *due, false);
    else
        *due = now;
    *due += us;
}

/* What is moved is read and written where the journal and the reads of others may feel it.  How
 * much there may be of it is asked again after a second at the latest, however little that was. */
static void share(struct gc *g, uint64_t bytes)
{
    g->unshared += bytes;
    if (!g->conf.reads || g->unshared < SHARE_STEP)
        return;
    const uint64_t rate = reads_share(g->conf.reads, g->unshared);
    const uint64_t us = rate ? g->unshared * 1000000 / rate : ASK_AGAIN_US;
    keep_pace(g, &g->share_at, us < ASK_AGAIN_US ? us : ASK_AGAIN_US);
    g->unshared = 0;
}

static enum err pace(void *ctx, uint64_t bytes)
{
    struct gc *g = ctx;
    const struct gc_settings c = settings(g);
    const int64_t rate = c.by_bytes ? c.bytes_rate : c.entries_rate;
    if (gc_stops(g) || (g->depth != GC_LISTING && is_suspended(g, g->depth)))
        return ERR_CLOSED;
    share(g, bytes);
    if (bytes > 0 && rate > 0)
        keep_pace(g, &g->pace_at, (c.by_bytes ? bytes : 1) * 1000000 / (uint64_t)rate);
    return ERR_OK;
}

static void damaged(void *ctx, int64_t ledger)
{
    gc_heal_note(ctx, ledger);
}

/* ---- the logs ------------------------------------------------------------------------------- */

static void clear_gauges(struct reclaim_stats *s)
{
    metric_set(&s->logs, 0);
    metric_set(&s->log_bytes, 0);
    metric_set(&s->live_bytes, 0);
    metric_set(&s->ledgers, 0);
    metric_set(&s->quarantined, 0);
}

static double threshold_of(struct gc *g)
{
    const struct gc_settings c = settings(g);
    if (g->depth == GC_LISTING || is_suspended(g, g->depth))
        return 0;
    return g->depth == GC_MAJOR ? c.major_threshold : c.minor_threshold;
}

static uint64_t end_of(struct gc *g)
{
    const struct gc_settings c = settings(g);
    const int64_t ms = g->depth == GC_MAJOR ? c.major_max_ms : c.minor_max_ms;
    return ms > 0 ? loop_clock() + (uint64_t)ms * 1000 : 0;
}

static void reclaim_all(struct gc *g)
{
    const double threshold = threshold_of(g);
    const uint64_t until = end_of(g);
    clear_gauges(&g->stats.logs);
    for (unsigned i = 0; i < g->n && !gc_stops(g); i++) {
        g->devices[i].reclaim.retries = g->depth == GC_MAJOR;
        const enum err err = reclaim_run(&g->devices[i].reclaim, threshold, until);
        if (err && err != ERR_CLOSED)
            log_event(LOG_WARN, "gc.failed", F_STR("dir", g->devices[i].dir), F_ERR(err));
    }
}

/* ---- the thread ----------------------------------------------------------------------------- */

static bool is_due(uint64_t since, int64_t seconds)
{
    return seconds > 0 && loop_clock() >= since + (uint64_t)seconds * 1000000;
}

static void began(struct gc *g, bool forced)
{
    pthread_mutex_lock(&g->lock);
    g->state.is_forced = forced;
    g->state.is_minor = g->depth == GC_MINOR;
    g->state.is_major = g->depth == GC_MAJOR;
    pthread_mutex_unlock(&g->lock);
}

/* A major one does what a minor one does. */
static void ended(struct gc *g)
{
    struct gc_state *s = &g->state;
    const int64_t now = (int64_t)gc_now_ms();
    pthread_mutex_lock(&g->lock);
    s->is_forced = s->is_minor = s->is_major = false;
    s->listings = metric_get(&g->stats.listings);
    s->last_listing_ms = now;
    s->halt = g->guard.memory.halt;
    s->vanished = g->guard.vanished;
    s->trashed = (uint64_t)metric_get(&g->stats.trashed);
    s->tombs = (uint64_t)metric_get(&g->stats.tombs);
    s->local = (uint64_t)metric_get(&g->stats.logs.ledgers);
    if (g->depth == GC_MAJOR) {
        s->majors++;
        s->last_major_ms = now;
        g->major_done = loop_clock();
    } else if (g->depth == GC_MINOR) {
        s->minors++;
        s->last_minor_ms = now;
    }
    if (g->depth >= GC_MINOR)
        g->minor_done = loop_clock();
    pthread_mutex_unlock(&g->lock);
    metric_set(&g->stats.minors, s->minors);
    metric_set(&g->stats.majors, s->majors);
}

/* What is asked for, or due; true when it was asked for. */
static bool choose(struct gc *g)
{
    const struct gc_settings c = settings(g);
    pthread_mutex_lock(&g->lock);
    const bool asked = g->asked, resumed = g->resumed;
    g->depth = asked ? g->asked_depth : GC_LISTING;
    g->asked = g->resumed = false;
    pthread_mutex_unlock(&g->lock);
    if (resumed) {
        gc_guard_resume(&g->guard);
        log_event(LOG_WARN, "gc.resumed", F_STR("bookie", g->conf.bookie_id));
        gc_round_tell(g);
    }
    if (is_due(g->major_done, c.major_s))
        g->depth = GC_MAJOR;
    else if (g->depth < GC_MINOR && is_due(g->minor_done, c.minor_s))
        g->depth = GC_MINOR;
    return asked;
}

static void run_round(struct gc *g)
{
    const uint64_t start = loop_clock();
    const bool asked = choose(g);
    began(g, asked);
    for (unsigned i = 0; i < g->n; i++) { /* not at the start, which is to be quick */
        g->devices[i].reclaim.reserve_bytes = (uint64_t)g->conf.conf->gc_reserve_mb * 1024 * 1024;
        reclaim_prepare(&g->devices[i].reclaim);
    }
    gc_round_run(g);
    reclaim_all(g);
    gc_heal_run(g);
    ended(g);
    histogram_note(&g->stats.round_us, loop_clock() - start);
}

static bool is_asked(struct gc *g)
{
    pthread_mutex_lock(&g->lock);
    const bool asked = g->asked || g->resumed || g->stopping;
    pthread_mutex_unlock(&g->lock);
    return asked;
}

/* Once, when the first directory gets tight: a round that found nothing is not made again at once.
 */
static void ask_if_tight(struct gc *g)
{
    bool is_tight = false;
    for (unsigned i = 0; i < g->n; i++)
        is_tight |= atomic_load(&g->conf.storage->devices[i].is_tight);
    if (is_tight && !g->was_tight)
        gc_run_now(g, GC_MINOR);
    g->was_tight = is_tight;
}

static uint64_t wait_us(struct gc *g)
{
    return (uint64_t)settings(g).wait_ms * 1000;
}

/* Until the next round; the store and the disks are looked at meanwhile, so that one that has gone
 * back has no time to come as far again. */
static void wait_for_round(struct gc *g)
{
    const uint64_t began = loop_clock();
    for (;;) {
        const uint64_t look = loop_clock() + LOOK_US, until = began + wait_us(g);
        ask_if_tight(g);
        wait_until(g, look < until ? look : until, true);
        if (look >= until || is_asked(g))
            return;
        gc_round_look(g);
    }
}

static void *gc_main(void *arg)
{
    struct gc *g = arg;
    /* Where there is not enough of the processor for all, others come first: this thread alone. */
    (void)setpriority(PRIO_PROCESS, (id_t)gettid(), NICE);
    const uint64_t wait = wait_us(g);
    gc_round_recall(g);
    wait_until(g, loop_clock() + (wait < FIRST_WAIT_US ? wait : FIRST_WAIT_US), true);
    g->depth = GC_LISTING;
    reclaim_all(g); /* what was left by a crash */
    for (;;) {
        wait_for_round(g);
        if (gc_stops(g))
            return NULL;
        run_round(g);
    }
}

/* ---- opening and closing -------------------------------------------------------------------- */

static void find_devices(struct gc *g)
{
    struct storage *s = g->conf.storage;
    for (; g->n < s->n_devices; g->n++)
        g->devices[g->n] = (struct gc_device){.dir = s->devices[g->n].conf.dir,
                                              .log = s->devices[g->n].log,
                                              .index = s->devices[g->n].index};
}

static struct gc_settings settings_of(const struct bookie_conf *c)
{
    return (struct gc_settings){.wait_ms = c->gc_wait_ms,
                                .minor_s = c->gc_minor_s,
                                .major_s = c->gc_major_s,
                                .minor_max_ms = c->gc_minor_max_ms,
                                .major_max_ms = c->gc_major_max_ms,
                                .entries_rate = c->gc_entries_rate,
                                .bytes_rate = c->gc_bytes_rate,
                                .by_bytes = c->gc_by_bytes,
                                .minor_threshold = c->gc_minor_threshold,
                                .major_threshold = c->gc_major_threshold};
}

static void set_up(struct gc *g)
{
    const struct bookie_conf *c = g->conf.conf;
    pthread_condattr_t monotonic;
    pthread_mutex_init(&g->lock, NULL);
    pthread_condattr_init(&monotonic);
    pthread_condattr_setclock(&monotonic, CLOCK_MONOTONIC);
    pthread_cond_init(&g->woken, &monotonic);
    pthread_condattr_destroy(&monotonic);
    g->guard = (struct gc_guard){.share = c->gc_vanish_share,
                                 .least = (uint64_t)c->gc_vanish_least,
                                 .delay_ms = (uint64_t)c->gc_trash_s * 1000};
    g->store = (struct gc_store){.meta = g->conf.meta,
                                 .bookie_id = g->conf.bookie_id,
                                 .per_second = (uint64_t)c->gc_metadata_rate,
                                 .pause = pause_us,
                                 .stops = stops,
                                 .ctx = g};
    g->settings = settings_of(c);
    g->minor_done = g->major_done = loop_clock();
    g->moved_at = loop_clock() + (uint64_t)c->gc_moved_wait_ms * 1000;
    find_devices(g);
    for (unsigned i = 0; i < g->n; i++) {
        struct gc_device *d = &g->devices[i];
        reclaim_init(&d->reclaim, g->conf.disk, d->dir, d->log, d->index, &g->stats.logs);
        d->reclaim.compaction.pace = pace;
        d->reclaim.compaction.damaged = damaged;
        d->reclaim.compaction.ctx = g;
    }
}

enum err gc_open(struct gc **out, const struct gc_conf *conf)
{
    struct gc *g = mem_new(struct gc);
    g->conf = *conf;
    *out = g;
    set_up(g);
    g->started = pthread_create(&g->thread, NULL, gc_main, g) == 0;
    if (!g->started) {
        gc_close(out);
        return ERR_IO;
    }
    pthread_setname_np(g->thread, "gc");
    return ERR_OK;
}

void gc_close(struct gc **gc)
{
    struct gc *g = *gc;
    *gc = NULL;
    if (!g)
        return;
    pthread_mutex_lock(&g->lock);
    g->stopping = true;
    pthread_mutex_unlock(&g->lock);
    pthread_cond_broadcast(&g->woken);
    if (g->started)
        pthread_join(g->thread, NULL);
    gc_guard_end(&g->guard);
    pthread_cond_destroy(&g->woken);
    pthread_mutex_destroy(&g->lock);
    mem_free(g);
}

/* ---- what others say ------------------------------------------------------------------------ */

void gc_run_now(struct gc *g, enum gc_depth depth)
{
    pthread_mutex_lock(&g->lock);
    if (!g->asked || depth > g->asked_depth)
        g->asked_depth = depth;
    g->asked = g->state.is_forced = true;
    pthread_mutex_unlock(&g->lock);
    pthread_cond_broadcast(&g->woken);
}

static void suspend(struct gc *g, bool minor, bool major, bool to)
{
    pthread_mutex_lock(&g->lock);
    if (minor)
        g->state.minor_suspended = to;
    if (major)
        g->state.major_suspended = to;
    pthread_mutex_unlock(&g->lock);
}

void gc_suspend(struct gc *g, bool minor, bool major)
{
    suspend(g, minor, major, true);
}

void gc_unsuspend(struct gc *g, bool minor, bool major)
{
    suspend(g, minor, major, false);
}

void gc_set(struct gc *g, const struct bookie_conf *conf)
{
    pthread_mutex_lock(&g->lock);
    g->settings = settings_of(conf);
    pthread_mutex_unlock(&g->lock);
}

void gc_state(struct gc *g, struct gc_state *out)
{
    pthread_mutex_lock(&g->lock);
    *out = g->state;
    pthread_mutex_unlock(&g->lock);
}

void gc_resume(struct gc *g)
{
    pthread_mutex_lock(&g->lock);
    g->resumed = true;
    pthread_mutex_unlock(&g->lock);
    pthread_cond_broadcast(&g->woken);
}
