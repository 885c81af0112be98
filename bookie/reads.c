#include "bookie/reads.h"

#include <pthread.h>
#include <stdbool.h>
#include <stddef.h>
#include <time.h>

#include "bookie/governor.h"
#include "common/flight.h"
#include "common/log.h"
#include "common/mem.h"

enum { THREADS_MAX = 64, BAD_LOGS_MAX = 256 };

/* A log with damage in it. */
struct bad_log {
    const struct entry_log *logs;
    uint64_t log;
};

struct reads {
    struct loops *loops;
    size_t ahead;
    pthread_t threads[THREADS_MAX];
    unsigned n;
    pthread_mutex_t lock; /* the rest */
    pthread_cond_t woken;
    struct read_lanes lanes;
    unsigned windows;
    bool closing;
    struct reads_duty duty;
    struct governor governor;
    uint64_t felt_at, caught_up; /* the interval since; bytes read in it */
    uint64_t tail_us, tail_n;    /* likewise */
    struct bad_log bad[BAD_LOGS_MAX];
    unsigned bad_n;
    struct reads_stats stats;
};

static bool is_same(const struct entry_place *a, const struct entry_place *b)
{
    return a->log == b->log && a->offset == b->offset;
}

/* True the first time: one bad block makes many reads fail. */
static bool is_news(struct reads *r, const struct entry_log *logs, uint64_t log)
{
    bool known = false;
    pthread_mutex_lock(&r->lock);
    for (unsigned i = 0; i < r->bad_n; i++)
        known |= r->bad[i].logs == logs && r->bad[i].log == log;
    if (!known && r->bad_n < BAD_LOGS_MAX)
        r->bad[r->bad_n++] = (struct bad_log){logs, log};
    metric_set(&r->stats.corrupt_logs, r->bad_n);
    pthread_mutex_unlock(&r->lock);
    return !known;
}

static enum err damaged(struct reads *r, const struct read_job *job, const struct entry_place *at)
{
    metric_add(&r->stats.corrupt, 1);
    if (is_news(r, job->device->log, at->log))
        log_event(LOG_ERROR, "entry_log.corrupted", F_STR("dir", job->device->conf.dir),
                  F_U64("log", at->log), F_U64("offset", at->offset), F_I64("ledger", job->ledger),
                  F_I64("entry", job->entry));
    return ERR_CHECKSUM;
}

static size_t end_of(const struct read_window *w)
{
    const struct read_found *last = &w->found[w->n - 1];
    return (size_t)last->at + last->length;
}

/* Of the block, from its entry `i` on, what lies right behind what the window has: no part of an
 * entry.  False: what comes next is not to be in it. */
static bool plan_window(struct read_window *w, const struct index_block *b, unsigned i,
                        int64_t base, const struct entry_place *first, size_t ahead)
{
    for (; i < INDEX_BLOCK; i++) {
        const struct entry_place *p = &b->at[i];
        if (!index_block_has(b, i))
            continue;
        if (w->n == READ_FOUND_MAX || p->log != first->log || p->offset < first->offset)
            return false;
        const uint64_t at = p->offset - first->offset + ENTRY_LOG_RECORD;
        if (w->n > 0 && at + p->length > ahead)
            return false;
        w->found[w->n++] = (struct read_found){base + i, (uint32_t)at, p->length};
    }
    return true;
}

/* Where the entry is, and what is to be read with it. */
static enum err find(const struct reads *r, const struct read_job *job, struct read_window *w,
                     struct entry_place *first)
{
    const unsigned i = (unsigned)((uint64_t)job->entry % INDEX_BLOCK);
    const uint64_t number = (uint64_t)job->entry / INDEX_BLOCK;
    const int64_t base = job->entry - (int64_t)i;
    struct index_block b;
    TRY(entry_index_block(job->device->index, job->ledger, number, &b));
    if (!index_block_has(&b, i))
        return ERR_NO_ENTRY;
    *first = b.at[i];
    w->n = 0;
    if (plan_window(w, &b, i, base, first, r->ahead) &&
        !entry_index_block(job->device->index, job->ledger, number + 1, &b))
        (void)plan_window(w, &b, 0, base + INDEX_BLOCK, first, r->ahead);
    return ERR_OK;
}

/* A log that is gone was compacted after the index was asked: ask again.  The same answer twice is
 * no move but damage. */
static enum err find_and_read(struct reads *r, const struct read_job *job, struct read_window *w,
                              struct entry_place *first)
{
    struct entry_place was = {0};
    for (;;) {
        TRY(find(r, job, w, first));
        const enum err err =
            entry_log_read(job->device->log, first, end_of(w), &w->slab, &w->bytes);
        if (err != ERR_NOT_FOUND)
            return err;
        if (is_same(&was, first))
            return damaged(r, job, first);
        was = *first;
    }
}

static enum err check(const struct read_window *w, const struct read_found *f, int64_t ledger)
{
    const size_t at = f->at - ENTRY_LOG_RECORD;
    struct view entry;
    if (at >= w->bytes)
        return ERR_CHECKSUM;
    return entry_log_check(view_of(slab_bytes(w->slab) + at, w->bytes - at), f->length, ledger,
                           f->entry, &entry);
}

static enum err read_window(struct reads *r, struct read_job *job, struct read_window *w)
{
    struct entry_place first;
    TRY(find_and_read(r, job, w, &first));
    if (check(w, &w->found[0], job->ledger))
        return damaged(r, job, &first);
    for (unsigned i = 1; i < w->n; i++)
        if (check(w, &w->found[i], job->ledger))
            w->n = i; /* cut off, or damaged: whoever asks for it will be told */
    return ERR_OK;
}

static void job_done(struct task *t)
{
    struct read_job *job = container_of(t, struct read_job, task);
    job->done(job);
}

/* Before the job goes home: then it is its owner's. */
static void run_ends(struct reads *r, const struct read_job *job, bool holds_window, size_t bytes)
{
    const uint64_t us = loop_clock() - job->asked_us;
    histogram_note(&r->stats.us[job->lane], us);
    pthread_mutex_lock(&r->lock);
    read_lanes_done(&r->lanes, &job->node, bytes);
    r->windows -= !holds_window;
    if (job->lane == LANE_TAIL) {
        r->tail_us += us;
        r->tail_n++;
    } else if (job->lane == LANE_CATCH_UP) {
        r->caught_up += bytes;
    }
    pthread_mutex_unlock(&r->lock);
    pthread_cond_signal(&r->woken);
}

/* ---- lists ---------------------------------------------------------------------------------- */

struct listing {
    const struct list_job *job;
    unsigned at; /* of job->more */
    struct entry_list list;
};

/* What is both in the index and among the others is told once. */
static enum err list_one(void *ctx, int64_t entry)
{
    struct listing *g = ctx;
    const struct list_job *job = g->job;
    for (; g->at < job->n && job->more[g->at] <= entry; g->at++)
        if (job->more[g->at] != entry && (g->at == 0 || job->more[g->at] != job->more[g->at - 1]))
            entry_list_add(&g->list, job->more[g->at]);
    entry_list_add(&g->list, entry);
    return g->list.err;
}

static void list_rest(struct listing *g)
{
    const struct list_job *job = g->job;
    for (; g->at < job->n; g->at++)
        if (g->at == 0 || job->more[g->at] != job->more[g->at - 1])
            entry_list_add(&g->list, job->more[g->at]);
}

static void list_done(struct task *t)
{
    struct read_job *read = container_of(t, struct read_job, task);
    struct list_job *job = container_of(read, struct list_job, read);
    job->done(job);
}

static void run_list(struct reads *r, struct list_job *job)
{
    struct listing g = {.job = job, .list = ENTRY_LIST_EMPTY};
    job->err = entry_index_each(job->device->index, job->ledger, list_one, &g);
    if (job->err) {
        entry_list_drop(&g.list);
    } else {
        list_rest(&g);
        job->err = entry_list_end(&g.list, &job->out);
    }
    run_ends(r, &job->read, false, 0);
    job->read.task.run = list_done;
    loop_post(job->home, &job->read.task);
}

void reads_list(struct reads *r, struct list_job *job)
{
    job->read = (struct read_job){.lists = true, .lane = LANE_REPAIR};
    reads_submit(r, &job->read);
}

/* ---- threads -------------------------------------------------------------------------------- */

static void run_job(struct reads *r, struct read_job *job)
{
    if (job->lists) {
        run_list(r, container_of(job, struct list_job, read));
        return;
    }
    flight_note("disk read: ledger, entry", job->ledger, job->entry);
    job->window = mem_new(struct read_window);
    job->err = read_window(r, job, job->window);
    const size_t bytes = job->window->bytes;
    if (job->err) {
        slab_drop(&job->window->slab);
        mem_free(job->window);
        job->window = NULL;
    }
    run_ends(r, job, job->window != NULL, bytes);
    job->task.run = job_done;
    loop_post(job->home, &job->task);
}

/* Under the lock: how it was since the last time, and what follows from it. */
static void govern(struct reads *r, uint64_t now)
{
    struct governor *g = &r->governor;
    if (!r->duty.add_us || now - r->felt_at < GOVERNOR_INTERVAL_US)
        return;
    const struct governor_sample s = {
        .us = now - r->felt_at,
        .bytes = r->caught_up,
        .add_us = r->duty.add_us(r->duty.ctx),
        .tail_us = r->tail_n ? r->tail_us / r->tail_n + 1 : 0,
    };
    governor_step(g, &s);
    read_lanes_limit(&r->lanes, g->reads, g->bytes_s);
    r->felt_at = now;
    r->caught_up = r->tail_us = r->tail_n = 0;
    metric_set(&r->stats.braking, g->is_braking);
    metric_set(&r->stats.rate, g->bytes_s == GOVERNOR_NO_LIMIT ? -1 : (int64_t)g->bytes_s);
    if (!read_lanes_empty(&r->lanes))
        pthread_cond_broadcast(&r->woken);
}

uint64_t reads_share(struct reads *r, uint64_t bytes)
{
    pthread_mutex_lock(&r->lock);
    r->caught_up += bytes;
    govern(r, loop_clock());
    const uint64_t rate = r->governor.bytes_s;
    pthread_mutex_unlock(&r->lock);
    return rate;
}

static void wait_for_work(struct reads *r, uint64_t now)
{
    const uint64_t until = r->windows < READ_WINDOWS ? read_lanes_wait(&r->lanes, now) : UINT64_MAX;
    if (until == UINT64_MAX) {
        pthread_cond_wait(&r->woken, &r->lock);
        return;
    }
    const struct timespec at = {.tv_sec = (time_t)(until / 1000000),
                                .tv_nsec = (long)(until % 1000000) * 1000};
    pthread_cond_timedwait(&r->woken, &r->lock, &at);
}

static struct read_job *take_job(struct reads *r)
{
    struct lane_node *n = NULL;
    pthread_mutex_lock(&r->lock);
    for (;;) {
        const uint64_t now = loop_clock();
        govern(r, now);
        if (r->windows < READ_WINDOWS || r->closing)
            n = read_lanes_take(&r->lanes, now, r->closing);
        if (n || r->closing)
            break;
        wait_for_work(r, now);
    }
    r->windows += n != NULL;
    pthread_mutex_unlock(&r->lock);
    return n ? container_of(n, struct read_job, node) : NULL;
}

static void *reads_main(void *arg)
{
    struct reads *r = arg;
    for (struct read_job *job; (job = take_job(r)) != NULL;)
        run_job(r, job);
    return NULL;
}

enum err reads_open(struct reads **out, struct loops *loops, unsigned threads, size_t ahead)
{
    struct reads *r = mem_new(struct reads);
    *r = (struct reads){.loops = loops, .ahead = ahead};
    pthread_condattr_t monotonic;
    read_lanes_init(&r->lanes, threads < THREADS_MAX ? threads : THREADS_MAX);
    metric_set(&r->stats.rate, -1);
    pthread_mutex_init(&r->lock, NULL);
    pthread_condattr_init(&monotonic);
    pthread_condattr_setclock(&monotonic, CLOCK_MONOTONIC);
    pthread_cond_init(&r->woken, &monotonic);
    pthread_condattr_destroy(&monotonic);
    *out = r;
    for (; r->n < threads && r->n < THREADS_MAX; r->n++) {
        if (pthread_create(&r->threads[r->n], NULL, reads_main, r)) {
            reads_close(out);
            return ERR_IO;
        }
        pthread_setname_np(r->threads[r->n], "read");
    }
    return ERR_OK;
}

void reads_govern(struct reads *r, const struct reads_duty *duty)
{
    const struct governor_conf conf = {.most = r->n > 1 ? r->n - 1 : 1,
                                       .floor = duty ? duty->floor : 0};
    pthread_mutex_lock(&r->lock);
    governor_init(&r->governor, &conf);
    read_lanes_limit(&r->lanes, r->governor.reads, r->governor.bytes_s);
    r->duty = duty ? *duty : (struct reads_duty){0};
    r->felt_at = loop_clock();
    pthread_mutex_unlock(&r->lock);
    pthread_cond_broadcast(&r->woken);
}

void reads_render(const struct reads *r, struct text *t)
{
    static const struct metric_def defs[] = {
        {"lgm_catch_up_reads_held", METRIC_GAUGE,
         "1: reads of older entries are held, so that writing does not feel them",
         offsetof(struct reads_stats, braking)},
        {"lgm_catch_up_reads_limit_bytes", METRIC_GAUGE,
         "bytes a second that they may read; -1: no limit", offsetof(struct reads_stats, rate)},
        {"lgm_corrupt_reads", METRIC_COUNTER, "reads that found damage in an entry log",
         offsetof(struct reads_stats, corrupt)},
        {"lgm_corrupt_entry_logs", METRIC_GAUGE, "entry logs in which damage was found",
         offsetof(struct reads_stats, corrupt_logs)},
    };
    static const char *const names[LANES] = {"lane=\"tail\"", "lane=\"repair\"",
                                             "lane=\"catch_up\""};
    metric_render(t, defs, sizeof defs / sizeof *defs, &r->stats, NULL);
    metric_head(t, "lgm_disk_read_latency_ms", "summary", "ms from being asked to being read");
    for (unsigned i = 0; i < LANES; i++)
        summary_lines(t, "lgm_disk_read_latency_ms", &r->stats.us[i], names[i]);
}

const struct reads_stats *reads_stats(const struct reads *r)
{
    return &r->stats;
}

void reads_submit(struct reads *r, struct read_job *job)
{
    job->window = NULL;
    job->asked_us = loop_clock();
    pthread_mutex_lock(&r->lock);
    read_lanes_put(&r->lanes, job->lane, &job->node);
    pthread_mutex_unlock(&r->lock);
    pthread_cond_signal(&r->woken);
}

void reads_give_back(struct reads *r, struct read_window **window)
{
    struct read_window *w = *window;
    *window = NULL;
    if (!w)
        return;
    slab_drop(&w->slab);
    mem_free(w);
    pthread_mutex_lock(&r->lock);
    r->windows--;
    pthread_mutex_unlock(&r->lock);
    pthread_cond_signal(&r->woken);
}

static void run_nothing(void *ctx)
{
    (void)ctx;
}

void reads_close(struct reads **reads)
{
    struct reads *r = *reads;
    *reads = NULL;
    if (!r)
        return;
    pthread_mutex_lock(&r->lock);
    r->closing = true;
    pthread_mutex_unlock(&r->lock);
    pthread_cond_broadcast(&r->woken);
    for (unsigned i = 0; i < r->n; i++)
        pthread_join(r->threads[i], NULL);
    for (unsigned i = 0; i < r->loops->n; i++) /* what was posted has run when this has */
        loop_call(r->loops->at[i], run_nothing, NULL);
    pthread_cond_destroy(&r->woken);
    pthread_mutex_destroy(&r->lock);
    mem_free(r);
}
