#include "bookie/reads.h"

#include <pthread.h>
#include <stdbool.h>

#include "common/log.h"
#include "common/mem.h"

enum { THREADS_MAX = 64 };

struct reads {
    struct loops *loops;
    size_t ahead;
    pthread_t threads[THREADS_MAX];
    unsigned n;
    pthread_mutex_t lock; /* the rest */
    pthread_cond_t woken;
    struct read_job *first, **end;
    unsigned windows;
    bool closing;
};

/* What of the block lies in the window, from entry `i` on, and is whole. */
static void find_more(struct read_window *w, const struct index_block *b, unsigned i,
                      const struct read_job *job)
{
    const struct entry_place *first = &b->at[i];
    const int64_t base = job->entry - (int64_t)i;
    for (i++; i < INDEX_BLOCK; i++) {
        const struct entry_place *p = &b->at[i];
        struct view entry;
        if (!index_block_has(b, i))
            continue;
        if (p->log != first->log || p->offset < first->offset ||
            p->offset - first->offset >= w->bytes)
            break;
        const size_t at = p->offset - first->offset;
        const struct view record = view_of(slab_bytes(w->slab) + at, w->bytes - at);
        if (entry_log_check(record, p->length, job->ledger, base + i, &entry))
            break; /* cut off, or damaged: whoever asks for it will be told */
        w->found[w->n++] =
            (struct read_found){base + i, (uint32_t)(at + ENTRY_LOG_RECORD), p->length};
    }
}

static bool is_same(const struct entry_place *a, const struct entry_place *b)
{
    return a->log == b->log && a->offset == b->offset;
}

static enum err damaged(const struct read_job *job, const struct entry_place *at)
{
    log_event(LOG_ERROR, "entry_log.corrupted", F_STR("dir", job->device->conf.dir),
              F_U64("log", at->log), F_U64("offset", at->offset), F_I64("ledger", job->ledger),
              F_I64("entry", job->entry));
    return ERR_CHECKSUM;
}

/* A log that is gone was compacted after the index was asked: ask again.  The same answer twice is
 * no move but damage. */
static enum err find_and_read(struct reads *r, const struct read_job *job, struct index_block *b,
                              struct read_window *w)
{
    const unsigned i = (unsigned)((uint64_t)job->entry % INDEX_BLOCK);
    struct entry_place was = {0};
    for (;;) {
        TRY(entry_index_block(job->device->index, job->ledger, (uint64_t)job->entry / INDEX_BLOCK,
                              b));
        if (!index_block_has(b, i))
            return ERR_NO_ENTRY;
        const struct entry_place *p = &b->at[i];
        const enum err err = entry_log_read(job->device->log, p, r->ahead, &w->slab, &w->bytes);
        if (err != ERR_NOT_FOUND)
            return err;
        if (is_same(&was, p))
            return damaged(job, p);
        was = *p;
    }
}

static enum err read_window(struct reads *r, struct read_job *job, struct read_window *w)
{
    struct index_block b;
    struct view entry;
    const unsigned i = (unsigned)((uint64_t)job->entry % INDEX_BLOCK);
    TRY(find_and_read(r, job, &b, w));
    const struct entry_place *p = &b.at[i];
    const struct view record = view_of(slab_bytes(w->slab), w->bytes);
    if (entry_log_check(record, p->length, job->ledger, job->entry, &entry))
        return damaged(job, p);
    w->found[w->n++] = (struct read_found){job->entry, ENTRY_LOG_RECORD, p->length};
    find_more(w, &b, i, job);
    return ERR_OK;
}

static void job_done(struct task *t)
{
    struct read_job *job = container_of(t, struct read_job, task);
    job->done(job);
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
    pthread_mutex_lock(&r->lock);
    r->windows--; /* it held none */
    pthread_mutex_unlock(&r->lock);
    pthread_cond_signal(&r->woken);
    job->read.task.run = list_done;
    loop_post(job->home, &job->read.task);
}

void reads_list(struct reads *r, struct list_job *job)
{
    job->read = (struct read_job){.lists = true};
    reads_submit(r, &job->read);
}

/* ---- threads -------------------------------------------------------------------------------- */

static void run_job(struct reads *r, struct read_job *job)
{
    if (job->lists) {
        run_list(r, container_of(job, struct list_job, read));
        return;
    }
    job->window = mem_new(struct read_window);
    job->err = read_window(r, job, job->window);
    if (job->err)
        reads_give_back(r, &job->window);
    job->task.run = job_done;
    loop_post(job->home, &job->task);
}

static struct read_job *take_job(struct reads *r)
{
    pthread_mutex_lock(&r->lock);
    while (!r->closing && (!r->first || r->windows >= READ_WINDOWS))
        pthread_cond_wait(&r->woken, &r->lock);
    struct read_job *job = r->first;
    if (job) {
        r->first = job->next;
        if (!r->first)
            r->end = &r->first;
        r->windows++;
    }
    pthread_mutex_unlock(&r->lock);
    return job;
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
    r->end = &r->first;
    pthread_mutex_init(&r->lock, NULL);
    pthread_cond_init(&r->woken, NULL);
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

void reads_submit(struct reads *r, struct read_job *job)
{
    job->next = NULL;
    job->window = NULL;
    pthread_mutex_lock(&r->lock);
    *r->end = job;
    r->end = &job->next;
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
