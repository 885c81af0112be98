#include "bookie/journal.h"

#include <assert.h>
#include <pthread.h>
#include <stdatomic.h>
#include <string.h>
#include <time.h>

#include "bookie/journal_ahead.h"
#include "bookie/journal_draft.h"
#include "bookie/journal_file.h"
#include "bookie/journal_format.h"
#include "bookie/journal_scan.h"
#include "common/flight.h"
#include "common/log.h"
#include "common/mem.h"

/* A bookie that is hardly used writes no file full of zeros. */
enum { AHEAD_AFTER = 16 }; /* parts of the current one */

/* What is done, on its way to one loop. */
struct done_box {
    struct journal *journal;
    struct loop *home;
    struct journal_writes done; /* of this group: the journal thread's */
    pthread_mutex_t lock;
    struct journal_write *first, **end;
    bool posted;
    struct task task;
};

struct journal {
    struct journal_conf conf;
    struct journal_files files;
    struct journal_file current; /* .file NULL: none yet */
    struct journal_ahead *ahead; /* NULL: files are made when they are needed */
    bool is_ahead_asked;         /* for the file after this one */
    uint64_t sequence;           /* of the next record */
    struct journal_mark from;
    struct journal_draft drafts[2]; /* one fills while the other is written */

    pthread_t thread;
    bool started;
    pthread_mutex_t lock; /* open, drafts, queue, queued, closing, mark */
    pthread_cond_t woken; /* of the journal's thread */
    struct journal_draft *open;
    struct journal_writes queue; /* what did not fit into the open draft, and all after it */
    uint64_t queued, queued_n;   /* bytes, writes */
    bool closing;
    bool is_proven; /* the journal thread's: nothing was written since, or since the start */
    struct journal_mark mark;

    _Atomic enum err failure; /* of the last group */
    struct journal_stats stats;
    struct done_box boxes[64];
};

static void note_queue(struct journal *j)
{
    metric_set(&j->stats.queued_bytes, (int64_t)j->queued);
    metric_set(&j->stats.queued, (int64_t)j->queued_n);
}

/* ---- from the journal thread back to the loops ---------------------------------------------- */

static void box_empty(struct task *t)
{
    struct done_box *box = container_of(t, struct done_box, task);
    pthread_mutex_lock(&box->lock);
    struct journal_write *w = box->first;
    box->first = NULL;
    box->end = &box->first;
    box->posted = false;
    pthread_mutex_unlock(&box->lock);
    struct journal_conf conf = box->journal->conf; /* a done() may be the last to need us */
    struct loop *home = box->home;
    for (struct journal_write *next; w; w = next) {
        next = w->next;
        w->done(w, w->err);
    }
    if (conf.group_done)
        conf.group_done(conf.ctx, home);
}

static void boxes_init(struct journal *j)
{
    for (unsigned i = 0; i < j->conf.loops->n; i++) {
        struct done_box *box = &j->boxes[i];
        *box = (struct done_box){.journal = j, .home = j->conf.loops->at[i]};
        box->end = &box->first;
        journal_writes_init(&box->done);
        box->task.run = box_empty;
        pthread_mutex_init(&box->lock, NULL);
    }
}

static struct done_box *box_of(struct journal *j, const struct journal_write *w)
{
    struct done_box *box = &j->boxes[loop_index(w->home)];
    assert(box->home == w->home);
    return box;
}

static void box_put(struct done_box *box, struct journal_writes *done)
{
    pthread_mutex_lock(&box->lock);
    *box->end = done->first;
    box->end = done->end;
    const bool post = !box->posted;
    box->posted = true;
    pthread_mutex_unlock(&box->lock);
    journal_writes_init(done);
    if (post)
        loop_post(box->home, &box->task);
}

/* Sorted by loop first, so that each box is locked once. */
static void finish(struct journal *j, struct journal_write *w, enum err err)
{
    for (struct journal_write *next; w; w = next) {
        next = w->next;
        w->err = err;
        journal_writes_put(&box_of(j, w)->done, w);
    }
    for (unsigned i = 0; i < j->conf.loops->n; i++)
        if (j->boxes[i].done.first)
            box_put(&j->boxes[i], &j->boxes[i].done);
}

/* ---- the journal thread --------------------------------------------------------------------- */

/* It is evidence and no more: whatever becomes of it, the next group is written over it.  A file
 * without room for it is followed by one whose header says as much.  The draft that is not open is
 * empty. */
static void prove(struct journal *j, bool sync)
{
    const struct journal_record r = {.file = j->current.id,
                                     .sequence = j->sequence,
                                     .group = j->sequence,
                                     .kind = JOURNAL_PROOF};
    uint8_t *block = j->open == &j->drafts[0] ? j->drafts[1].bytes : j->drafts[0].bytes;
    struct iovec iov = {block, JOURNAL_BLOCK};
    j->is_proven = true;
    if (j->current.at + JOURNAL_BLOCK > j->current.filled)
        return;
    memset(block, 0, JOURNAL_BLOCK);
    journal_record_write(block, &r, (struct view){0}, (struct view){0});
    enum err err = j->current.file->disk->ops->write(j->current.file, j->current.at, &iov, 1);
    if (!err && sync)
        err = j->current.file->disk->ops->sync(j->current.file);
    if (err)
        log_event(LOG_WARN, "journal.unproven", F_STR("dir", j->conf.dir), F_ERR(err));
}

static struct timespec after(uint64_t us)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    const uint64_t ns = (uint64_t)t.tv_nsec + us % 1000000 * 1000;
    t.tv_sec += (time_t)(us / 1000000 + ns / 1000000000);
    t.tv_nsec = (long)(ns % 1000000000);
    return t;
}

static bool has_work(const struct journal *j)
{
    return j->open->writes.first || j->closing;
}

/* With the lock, which it lets go of while it writes the proof. */
static void wait_for_work(struct journal *j)
{
    while (!has_work(j)) {
        if (j->is_proven || j->conf.prove_us == 0) {
            pthread_cond_wait(&j->woken, &j->lock);
            continue;
        }
        const struct timespec until = after(j->conf.prove_us);
        int rc = 0;
        while (rc == 0 && !has_work(j))
            rc = pthread_cond_timedwait(&j->woken, &j->lock, &until);
        if (has_work(j))
            return;
        pthread_mutex_unlock(&j->lock);
        prove(j, false);
        pthread_mutex_lock(&j->lock);
    }
}

/* What waited for an empty draft. */
static void fill_from_queue(struct journal *j)
{
    size_t at;
    for (struct journal_write *w; (w = j->queue.first) != NULL;) {
        struct journal_write *next = w->next;
        if (!draft_reserve(j->open, w, &at))
            break;
        j->queue.first = next;
        draft_copy(j->open, at, w);
        j->open->copying--;
    }
    if (!j->queue.first)
        j->queue.end = &j->queue.first;
}

/* Its writes do not wait for the journal any more. */
static void uncount(struct journal *j, const struct journal_draft *d)
{
    j->queued -= d->cost;
    j->queued_n -= d->n;
    note_queue(j);
}

/* Waits for work, and takes it when it is all there; NULL when closing and nothing is left. */
static struct journal_draft *take_group(struct journal *j)
{
    pthread_mutex_lock(&j->lock);
    wait_for_work(j);
    struct journal_draft *d = j->open->writes.first ? j->open : NULL;
    if (d) {
        j->open = d == &j->drafts[0] ? &j->drafts[1] : &j->drafts[0];
        uncount(j, d);
        fill_from_queue(j);
        while (d->copying > 0)
            pthread_cond_wait(&j->woken, &j->lock);
    }
    pthread_mutex_unlock(&j->lock);
    return d;
}

static enum err roll(struct journal *j)
{
    if (j->current.file)
        j->current.file->disk->ops->close(&j->current.file);
    if (!j->ahead || !journal_ahead_take(j->ahead, j->current.id, &j->current))
        TRY(journal_file_make(&j->files, &j->current));
    j->is_ahead_asked = false;
    return journal_file_begin(&j->current, j->sequence);
}

/* A place for the group that certainly exists on the disk. */
static enum err make_room(struct journal *j, uint64_t bytes)
{
    const uint64_t whole = journal_blocks(bytes);
    if (j->ahead && !j->is_ahead_asked && j->current.at >= j->conf.file_bytes / AHEAD_AFTER) {
        journal_ahead_ask(j->ahead);
        j->is_ahead_asked = true;
    }
    const uint64_t end = j->current.at + whole;
    if (!j->current.file || end > j->conf.file_bytes ||
        (end > j->current.filled && j->ahead && journal_ahead_is_ready(j->ahead)))
        TRY(roll(j));
    return journal_file_fill(&j->current, j->current.at + whole, j->conf.file_bytes);
}

/* Where the time of a group went: what is in the queue meanwhile waited for it. */
static void tell_if_slow(struct journal *j, uint64_t write_us, uint64_t sync_us, size_t len)
{
    flight_note("journal group: records, us", (int64_t)(j->sequence - j->mark.sequence),
                (int64_t)(write_us + sync_us));
    if (j->conf.slow_us == 0 || write_us + sync_us < j->conf.slow_us)
        return;
    log_event(LOG_WARN, "journal.slow", F_STR("dir", j->conf.dir),
              F_U64("write_ms", write_us / 1000), F_U64("sync_ms", sync_us / 1000),
              F_U64("records", j->sequence - j->mark.sequence), F_U64("bytes", len),
              F_I64("queued", metric_get(&j->stats.queued)),
              F_I64("queued_bytes", metric_get(&j->stats.queued_bytes)));
}

static void drop_bodies(struct journal_write *w)
{
    for (; w; w = w->next)
        slice_drop(&w->body);
}

/* Those of the group who do not wait for the sync; the others stay in it, in their order. */
static void finish_early(struct journal *j, struct journal_writes *group)
{
    struct journal_writes early, others;
    journal_writes_init(&early);
    journal_writes_init(&others);
    for (struct journal_write *w = group->first, *next; w; w = next) {
        next = w->next;
        journal_writes_put(w->is_early ? &early : &others, w);
    }
    *group = others;
    if (!others.first)
        group->end = &group->first;
    finish(j, early.first, ERR_OK);
}

static enum err write_group(struct journal *j, struct journal_draft *d)
{
    const struct disk_ops *ops = j->current.file->disk->ops;
    const size_t len = draft_seal(d, j->current.id, &j->sequence);
    if (len == 0) /* markers, and what is before them is synced */
        return ERR_OK;
    const uint64_t began = loop_clock();
    j->is_proven = false;
    TRY(ops->write(j->current.file, j->current.at, &(struct iovec){d->bytes, len}, 1));
    const uint64_t written = loop_clock();
    if (d->has_early)
        finish_early(j, &d->writes);
    TRY(ops->sync(j->current.file));
    const uint64_t synced = loop_clock();
    histogram_note(&j->stats.sync_us, synced - began);
    tell_if_slow(j, written - began, synced - written, len);
    metric_add(&j->stats.bytes, (int64_t)len);
    metric_add(&j->stats.groups, 1);
    j->current.at += len;
    pthread_mutex_lock(&j->lock);
    metric_add(&j->stats.records, (int64_t)(j->sequence - j->mark.sequence));
    j->mark = (struct journal_mark){j->current.id, j->current.at, j->sequence};
    pthread_mutex_unlock(&j->lock);
    return ERR_OK;
}

/* ERR_OK: go on with the next.  Where there is no space nothing of it was written, and nothing was
 * numbered; a write that fails for that reason is as fatal as any. */
static enum err do_group(struct journal *j, struct journal_draft *d)
{
    const enum err room = make_room(j, d->len);
    atomic_store(&j->failure, room);
    if (room != ERR_NO_SPACE) {
        TRY(room);
        TRY(write_group(j, d));
    }
    finish(j, d->writes.first, room);
    draft_reset(d);
    return ERR_OK;
}

static void *journal_main(void *arg)
{
    struct journal *j = arg;
    for (struct journal_draft *d; (d = take_group(j));) {
        const enum err err = do_group(j, d);
        if (!err)
            continue;
        /* Whether the bytes are on the disk is not known and never will be. */
        log_event(LOG_ERROR, "journal.failed", F_STR("dir", j->conf.dir), F_ERR(err));
        j->conf.failed(j->conf.ctx, err);
        return NULL;
    }
    if (!j->is_proven)
        prove(j, true);
    return NULL;
}

/* ---- from outside --------------------------------------------------------------------------- */

static void make_drafts(struct journal *j)
{
    const uint64_t one = journal_record_size(j->conf.record_max);
    const uint64_t most = j->conf.group_bytes > one ? j->conf.group_bytes : one;
    for (unsigned i = 0; i < 2; i++)
        draft_init(&j->drafts[i], most, j->conf.group_bytes);
    j->open = &j->drafts[0];
}

enum err journal_open(struct journal **out, const struct journal_conf *conf, struct disk *disk,
                      struct journal_mark from)
{
    struct journal *j = mem_new(struct journal);
    j->conf = *conf;
    j->from = from;
    j->sequence = from.sequence;
    j->is_proven = true;
    journal_writes_init(&j->queue);
    pthread_mutex_init(&j->lock, NULL);
    pthread_condattr_t monotonic;
    pthread_condattr_init(&monotonic);
    pthread_condattr_setclock(&monotonic, CLOCK_MONOTONIC);
    pthread_cond_init(&j->woken, &monotonic);
    pthread_condattr_destroy(&monotonic);
    boxes_init(j);
    make_drafts(j);
    if (j->conf.file_bytes < JOURNAL_BLOCK + j->open->room)
        j->conf.file_bytes = JOURNAL_BLOCK + j->open->room;
    const enum err err = journal_files_open(&j->files, disk, conf->dir, conf->direct, from.file);
    if (err)
        journal_close(&j);
    *out = j;
    return err;
}

/* A process that was killed may have left a group that it had not synced: it has just been
 * believed, and the next file's header will prove that it was there. */
static enum err sync_replayed(struct journal *j)
{
    struct disk *d = j->files.disk;
    for (unsigned i = 0; i < j->files.n; i++) {
        struct disk_file *f;
        if (j->files.ids[i] < j->from.file)
            continue;
        char *path = journal_file_path(&j->files, j->files.ids[i]);
        enum err err = d->ops->open(d, path, DISK_READ, &f);
        mem_free(path);
        TRY(err);
        err = d->ops->sync(f);
        d->ops->close(&f);
        TRY(err);
    }
    return ERR_OK;
}

enum err journal_replay(struct journal *j, journal_record_fn *each, void *ctx)
{
    struct journal_mark from = j->from;
    const bool is_here = journal_files_have(&j->files, from.file);
    if (j->conf.may_lack && !is_here) /* what there is goes on with whatever number it has */
        from.sequence = JOURNAL_ANY;
    TRY(journal_scan(&j->files, from, j->conf.may_lack ? 0 : j->conf.synced, j->conf.record_max,
                     each, ctx, &j->sequence));
    if (j->sequence < j->from.sequence)
        j->sequence = j->from.sequence;
    return sync_replayed(j);
}

enum err journal_start(struct journal *j)
{
    TRY(roll(j));
    if (j->conf.ahead)
        j->ahead = journal_ahead_start(&j->files, j->conf.file_bytes);
    j->mark = (struct journal_mark){j->current.id, j->current.at, j->sequence};
    j->started = pthread_create(&j->thread, NULL, journal_main, j) == 0;
    if (!j->started)
        return ERR_IO;
    pthread_setname_np(j->thread, "journal");
    return ERR_OK;
}

/* Under the lock: true when it has a place at once. */
static bool enter(struct journal *j, struct journal_write *w, uint64_t cost, size_t *at)
{
    j->queued += cost;
    j->queued_n++;
    note_queue(j);
    if (!j->queue.first && draft_reserve(j->open, w, at))
        return true;
    journal_writes_put(&j->queue, w);
    return false;
}

/* Of a draft that was taken the thread waits for the last one; to one that is filling it is called
 * by the first, once that is there: a thread that wakes up twice a group costs more than the copy.
 */
static void copied(struct journal *j, struct journal_draft *d, bool is_first)
{
    pthread_mutex_lock(&j->lock);
    const bool is_last = --d->copying == 0 && d != j->open;
    pthread_mutex_unlock(&j->lock);
    const bool wake = is_first || is_last;
    if (wake)
        pthread_cond_signal(&j->woken);
}

enum err journal_append(struct journal *j, struct journal_write *w)
{
    size_t at;
    if (w->head.len + w->body.len > j->conf.record_max)
        return ERR_TOO_BIG;
    const uint64_t cost = journal_write_cost(w);
    pthread_mutex_lock(&j->lock);
    if (j->closing || j->queued + cost > j->conf.queue_bytes) {
        pthread_mutex_unlock(&j->lock);
        return ERR_BUSY;
    }
    struct journal_draft *d = j->open;
    const bool is_first = !d->writes.first;
    const bool has_place = enter(j, w, cost, &at);
    pthread_mutex_unlock(&j->lock);
    if (has_place) {
        draft_copy(d, at, w);
        copied(j, d, is_first);
    }
    return ERR_OK;
}

struct journal_mark journal_mark(struct journal *j)
{
    pthread_mutex_lock(&j->lock);
    const struct journal_mark m = j->mark;
    pthread_mutex_unlock(&j->lock);
    return m;
}

void journal_trim(struct journal *j, struct journal_mark upto)
{
    journal_files_free(&j->files, upto.file);
}

static void stop_thread(struct journal *j)
{
    if (!j->started)
        return;
    pthread_mutex_lock(&j->lock);
    j->closing = true;
    pthread_mutex_unlock(&j->lock);
    pthread_cond_signal(&j->woken);
    pthread_join(j->thread, NULL);
}

static void run_nothing(void *ctx)
{
    (void)ctx;
}

void journal_close(struct journal **journal)
{
    struct journal *j = *journal;
    *journal = NULL;
    if (!j)
        return;
    stop_thread(j);
    journal_ahead_stop(&j->ahead);
    for (unsigned i = 0; i < j->conf.loops->n; i++) {
        if (j->started) /* what was posted to this loop has run when this has */
            loop_call(j->conf.loops->at[i], run_nothing, NULL);
        pthread_mutex_destroy(&j->boxes[i].lock);
    }
    drop_bodies(j->queue.first); /* of a journal that has failed: they are never done */
    if (j->current.file)
        j->current.file->disk->ops->close(&j->current.file);
    journal_files_close(&j->files);
    pthread_cond_destroy(&j->woken);
    pthread_mutex_destroy(&j->lock);
    for (unsigned i = 0; i < 2; i++)
        draft_end(&j->drafts[i]);
    mem_free(j);
}

enum err journal_failure(const struct journal *j)
{
    return atomic_load(&((struct journal *)(uintptr_t)j)->failure);
}

const struct journal_stats *journal_stats(const struct journal *j)
{
    return &j->stats;
}
