#include "bookie/request.h"
#include "common/memory_guard.h"

enum { READS_WHEN_LOW = 16, TAIL_ENTRIES = 256 };

static void read_next(struct station *st, struct ledger *l);
static void waits_no_more(struct station *st);

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

/* An entry that was added again is newer in the write cache than in the window; one that has left
 * the write cache since the window was asked for may be older there too. */
static void keep_current(struct request *r, const struct read_window *w)
{
    struct storage_shard *sh = request_shard(r);
    if (sh->thaws != r->thaws)
        return;
    read_cache_window(&sh->read, w->bytes);
    for (unsigned i = 0; i < w->n; i++)
        if (!write_cache_find(&sh->caches[r->ledger->device->number], r->job.ledger,
                              w->found[i].entry))
            read_cache_put(&sh->read, r->job.ledger, w->found[i].entry,
                           slice_of(w->slab, w->found[i].at, w->found[i].length));
}

/* Gives the entry that was asked for; the window's others are kept for those who come next. */
static struct slice keep_window(struct request *r)
{
    struct read_window *w = r->job.window;
    keep_current(r, w);
    struct slice first = slice_of(w->slab, w->found[0].at, w->found[0].length);
    reads_give_back(r->at->handlers->conf.reads, &r->job.window);
    return first;
}

static void was_read(struct read_job *job)
{
    struct request *r = container_of(job, struct request, job);
    struct station *st = r->at;
    struct ledger *l = r->ledger;
    l->reading_in &= (uint8_t) ~(1u << job->lane);
    waits_no_more(st);
    if (!job->err)
        found(r, keep_window(r));
    else /* what is damaged is not known; only the index may say that there is no such entry */
        missed(r, job->err == ERR_NO_ENTRY ? ERR_NO_ENTRY : ERR_IO);
    read_next(st, l);
}

/* Who fences takes a ledger over and waits for it; who copies for others says so. */
static enum read_lane lane_of(const struct request *r)
{
    if (r->head.flags & BOOKIE_DO_FENCING)
        return LANE_TAIL;
    if (r->head.flags & BOOKIE_HIGH_PRIORITY)
        return LANE_REPAIR;
    return r->ledger->row.last - wanted(r) < TAIL_ENTRIES ? LANE_TAIL : LANE_CATCH_UP;
}

static bool is_busy(const struct request *r)
{
    return r->ledger->reading_in & 1u << lane_of(r);
}

static void submit(struct request *r)
{
    const enum read_lane lane = lane_of(r);
    r->ledger->reading_in |= (uint8_t)(1u << lane);
    r->thaws = request_shard(r)->thaws;
    r->job = (struct read_job){.device = r->ledger->device,
                               .ledger = r->head.ledger,
                               .entry = wanted(r),
                               .lane = lane,
                               .home = r->at->loop,
                               .done = was_read};
    metric_add(&r->at->handlers->conf.metrics->read_cache_misses, 1);
    reads_submit(r->at->handlers->conf.reads, &r->job);
}

static void waits_no_more(struct station *st)
{
    st->pending_reads--;
    metric_add(&st->handlers->conf.metrics->pending_reads, -1);
}

/* Those who waited often find their entry in the window that has just come. */
static void read_next(struct station *st, struct ledger *l)
{
    list_each(&l->reading, n)
    {
        struct request *r = list_entry(n, struct request, waiting);
        if (!st->is_closed && is_busy(r))
            continue;
        list_remove(n);
        if (st->is_closed) {
            missed(r, ERR_CLOSED);
        } else if (!answer_from_memory(r)) {
            submit(r);
            continue;
        }
        waits_no_more(st);
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
    if (is_busy(r))
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
