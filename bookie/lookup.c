#include "bookie/request.h"
#include "common/memory_guard.h"

enum { READS_WHEN_LOW = 16 };

static void read_next(struct station *st, struct ledger *l);

/* Of a batch that goes on it is the one that is missing. */
static int64_t wanted(const struct request *r)
{
    if (r->batch)
        return r->head.entry + (int64_t)r->batch->n;
    return r->head.entry == -1 ? r->ledger->row.last : r->head.entry;
}

static void found(struct request *r, struct slice entry)
{
    if (r->batch)
        batch_take(r, entry);
    else
        request_finish_with(r, entry);
}

static void missed(struct request *r, enum err err)
{
    if (r->batch)
        batch_end(r, err);
    else
        request_finish(r, err);
}

static bool answer_from_memory(struct request *r)
{
    const struct slice *entry = storage_look(r->at->handlers->conf.storage, r->ledger, wanted(r));
    if (!entry)
        return false;
    metric_add(&r->at->handlers->conf.metrics->read_cache_hits, 1);
    found(r, slice_share(*entry));
    return true;
}

/* Gives the entry that was asked for; the window's others are kept for those who come next. */
static struct slice keep_window(struct request *r)
{
    struct read_window *w = r->job.window;
    struct read_cache *cache = &request_shard(r)->read;
    read_cache_window(cache, w->bytes);
    for (unsigned i = 0; i < w->n; i++)
        read_cache_put(cache, r->job.ledger, w->found[i].entry,
                       slice_of(w->slab, w->found[i].at, w->found[i].length));
    struct slice first = slice_of(w->slab, w->found[0].at, w->found[0].length);
    reads_give_back(r->at->handlers->conf.reads, &r->job.window);
    return first;
}

static void was_read(struct read_job *job)
{
    struct request *r = container_of(job, struct request, job);
    struct station *st = r->at;
    struct ledger *l = r->ledger;
    l->is_reading = false;
    st->pending_reads--;
    metric_add(&st->handlers->conf.metrics->pending_reads, -1);
    if (!job->err)
        found(r, keep_window(r));
    else /* what is damaged is not known; only the index may say that there is no such entry */
        missed(r, job->err == ERR_NO_ENTRY ? ERR_NO_ENTRY : ERR_IO);
    read_next(st, l);
}

static void submit(struct request *r)
{
    r->ledger->is_reading = true;
    r->job = (struct read_job){.device = r->ledger->device,
                               .ledger = r->head.ledger,
                               .entry = wanted(r),
                               .home = r->at->loop,
                               .done = was_read};
    metric_add(&r->at->handlers->conf.metrics->read_cache_misses, 1);
    reads_submit(r->at->handlers->conf.reads, &r->job);
}

/* Those who waited often find their entry in the window that has just come. */
static void read_next(struct station *st, struct ledger *l)
{
    while (!l->is_reading) {
        struct list_node *n = list_pop_front(&l->reading);
        if (!n)
            return;
        struct request *r = list_entry(n, struct request, waiting);
        if (st->is_closed) {
            missed(r, ERR_CLOSED);
        } else if (!answer_from_memory(r)) {
            submit(r);
            continue;
        }
        st->pending_reads--;
        metric_add(&st->handlers->conf.metrics->pending_reads, -1);
    }
}

/* Fencing is how a ledger gets a new owner: that goes on. */
static bool may_read(const struct request *r)
{
    const struct handlers_conf *c = &r->at->handlers->conf;
    const bool few = memory_guard_level(c->memory) >= MEMORY_LOW &&
                     !(r->head.flags & BOOKIE_DO_FENCING) && c->pending_reads > READS_WHEN_LOW;

    return r->at->pending_reads < (few ? READS_WHEN_LOW : c->pending_reads);
}

void lookup_on_disk(struct request *r)
{
    struct station *st = r->at;
    if (st->is_closed) {
        missed(r, ERR_CLOSED);
        return;
    }
    if (!may_read(r)) {
        missed(r, ERR_BUSY);
        return;
    }
    st->pending_reads++;
    metric_add(&st->handlers->conf.metrics->pending_reads, 1);
    if (r->ledger->is_reading)
        list_push_back(&r->ledger->reading, &r->waiting);
    else
        submit(r);
}

void lookup_in(struct request *r)
{
    if (r->head.op == BOOKIE_BATCH_READ) {
        batch_go_on(r);
        return;
    }
    const int64_t entry = wanted(r);
    if (r->head.entry < -1)
        request_finish(r, ERR_MALFORMED);
    else if (r->head.entry == -1 && r->ledger->row.limbo) /* there may have been later ones */
        request_finish(r, ERR_UNKNOWN_STATE);
    else if (entry < 0 || entry > r->ledger->row.last)
        request_finish(r, ERR_NO_ENTRY);
    else if (!answer_from_memory(r))
        lookup_on_disk(r);
}

void lookup_begin(struct request *r)
{
    const enum err err = ledgers_find(&request_shard(r)->ledgers, r->head.ledger, &r->ledger);
    if (err)
        request_finish(r, err == ERR_NO_LEDGER || err == ERR_BUSY ? err : ERR_IO);
    else
        lookup_in(r);
}
