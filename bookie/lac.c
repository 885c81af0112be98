#include <stdlib.h>
#include <string.h>

#include "bookie/request.h"
#include "common/mem.h"

enum { POLL_MS_MAX = 60000 };

/* ---- waiting for a higher one --------------------------------------------------------------- */

/* What it knows by now, with or without something new. */
static void poll_answer(struct request *r)
{
    const struct bookie_v3 *v3 = &r->v3->head;
    if (!v3->wants_next) {
        lookup_in(r);
    } else if (r->ledger->row.lac > v3->previous_lac && v3->previous_lac >= -1) {
        r->head.entry = v3->previous_lac + 1;
        lookup_in(r);
    } else {
        request_finish(r, ERR_OK);
    }
}

static void poll_end(struct request *r)
{
    loop_cancel(r->at->loop, &r->v3->timer);
    list_remove(&r->v3->polling);
    list_remove(&r->waiting);
    r->at->polls_n--;
    poll_answer(r);
}

static void waited(struct timer *t)
{
    poll_end(container_of(t, struct v3_part, timer)->request);
}

static void watch(struct request *r)
{
    struct v3_part *p = r->v3;
    const int64_t ms = p->head.timeout_ms < POLL_MS_MAX ? p->head.timeout_ms : POLL_MS_MAX;
    list_push_back(&r->ledger->watching, &r->waiting);
    list_push_back(&r->at->polls, &p->polling);
    r->at->polls_n++;
    p->timer.run = waited;
    loop_after(r->at->loop, &p->timer, (uint64_t)ms * 1000);
}

void poll_begin(struct request *r)
{
    const struct bookie_v3 *v3 = &r->v3->head;
    struct station *st = r->at;
    enum err err = ledgers_find(&request_shard(r)->ledgers, r->head.ledger, &r->ledger);
    if (!err && v3->wants_next && r->head.entry != -1)
        err = ERR_MALFORMED;
    if (!err && r->ledger->row.limbo)
        err = ERR_UNKNOWN_STATE;
    if (err) {
        request_finish(r, err);
        return;
    }
    const bool is_due = r->ledger->row.lac > v3->previous_lac || r->ledger->row.fenced ||
                        v3->timeout_ms <= 0 || st->is_closed;
    if (is_due)
        poll_answer(r);
    else if (st->polls_n >= st->handlers->conf.pending_reads)
        request_finish(r, ERR_BUSY);
    else
        watch(r);
}

/* Answering one may bring others: they stand behind those that are looked at. */
void polls_wake(struct ledger *l)
{
    struct list_node due;
    list_init(&due);
    list_each(&l->watching, n)
    {
        struct request *r = list_entry(n, struct request, waiting);
        if (l->row.lac <= r->v3->head.previous_lac && !l->row.fenced)
            continue;
        list_remove(n);
        list_push_back(&due, n);
    }
    while (!list_empty(&due))
        poll_end(list_entry(due.next, struct request, waiting));
}

void polls_stop(struct station *st)
{
    while (!list_empty(&st->polls))
        poll_end(list_entry(st->polls.next, struct v3_part, polling)->request);
}

/* ---- writing one, and waiting for what was not synced ---------------------------------------- */

static void durable(struct journal_write *w, enum err err)
{
    struct request *r = container_of(w, struct request, write);
    r->status = err_to_bookie(err);
    request_answer(r);
}

static void append(struct request *r, uint8_t kind, struct view head)
{
    r->write = (struct journal_write){
        .kind = kind,
        .head = head,
        .body = kind == JOURNAL_MARKER ? (struct slice){0} : slice_share(r->body),
        .home = r->from->loop,
        .done = durable,
    };
    const struct storage *s = r->at->handlers->conf.storage;
    const enum err err = journal_append(storage_journal(s, r->head.ledger), &r->write);
    if (!err)
        return;
    slice_drop(&r->write.body);
    request_finish(r, err);
}

void lac_write_begin(struct request *r)
{
    struct storage *s = r->at->handlers->conf.storage;
    struct ledger *l;
    enum err err = ERR_READ_ONLY;
    if (handlers_writable(r->at->handlers))
        err = ledgers_claim(&request_shard(r)->ledgers, r->head.ledger, r->head.key, &l);
    if (err) {
        request_finish(r, err);
        return;
    }
    storage_put_lac(s, l, slice_view(r->body));
    if (!list_empty(&l->watching))
        polls_wake(l);
    append(r, RECORD_LAC, view_of(r->head.key, MASTER_KEY_SIZE));
}

/* A ledger's records are in one journal, and what was appended before is synced before. */
void force_begin(struct request *r)
{
    append(r, JOURNAL_MARKER, (struct view){0});
}

/* ---- which entries are here ----------------------------------------------------------------- */

static int by_entry(const void *a, const void *b)
{
    const int64_t x = *(const int64_t *)a, y = *(const int64_t *)b;
    return (x > y) - (x < y);
}

static void take_entries(struct list_job *job, const struct entry_map *m, unsigned *room)
{
    for (uint32_t i = 0; i < m->n; i++) {
        if (m->slots[i].ledger != job->ledger || m->slots[i].bytes.len == 0)
            continue;
        if (job->n == *room) {
            *room = *room ? *room * 2 : 64;
            job->more = mem_resize(job->more, *room * sizeof job->more[0]);
        }
        job->more[job->n++] = m->slots[i].entry;
    }
}

static void list_next(struct station *st);

static void listed(struct list_job *job)
{
    struct request *r = container_of(job, struct v3_part, list)->request;
    struct station *st = r->at;
    mem_free(job->more);
    st->is_listing = false;
    if (job->err)
        request_finish(r, job->err == ERR_TOO_BIG ? ERR_BUSY : ERR_IO);
    else
        request_finish_with(r, job->out);
    list_next(st);
}

/* What is in memory is taken first: by the time the index is read it may have gone there. */
static void list_now(struct request *r)
{
    struct list_job *job = &r->v3->list;
    const struct device *d = r->v3->list.device;
    const struct write_cache *cache = &request_shard(r)->caches[d->number];
    unsigned room = 0;
    r->at->is_listing = true;
    job->ledger = r->head.ledger;
    job->home = r->at->loop;
    job->done = listed;
    take_entries(job, &cache->active, &room);
    take_entries(job, &cache->frozen, &room);
    if (job->n > 1)
        qsort(job->more, job->n, sizeof job->more[0], by_entry);
    reads_list(r->at->handlers->conf.reads, job);
}

static void list_next(struct station *st)
{
    struct list_node *n;
    while (!st->is_listing && (n = list_pop_front(&st->listings)) != NULL) {
        struct request *r = list_entry(n, struct request, waiting);
        st->listings_n--;
        if (st->is_closed)
            request_finish(r, ERR_CLOSED);
        else
            list_now(r);
    }
}

/* One at a time in a loop: it walks all that is in memory. */
void list_begin(struct request *r)
{
    struct station *st = r->at;
    struct ledger *l;
    enum err err = ledgers_find(&request_shard(r)->ledgers, r->head.ledger, &l);
    if (!err && l->row.limbo) /* a list denies what is not in it */
        err = ERR_UNKNOWN_STATE;
    if (!err && st->listings_n >= st->handlers->conf.pending_reads)
        err = ERR_BUSY;
    if (err) {
        request_finish(r, err);
        return;
    }
    r->v3->list = (struct list_job){.device = l->device};
    list_push_back(&st->listings, &r->waiting);
    st->listings_n++;
    list_next(st);
}
