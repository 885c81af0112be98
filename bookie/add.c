#include <string.h>

#include "bookie/request.h"
#include "common/log.h"
#include "common/memory_guard.h"

static void durable(struct journal_write *w, enum err err)
{
    struct request *r = container_of(w, struct request, write);
    if (!err)
        metric_add(&r->from->handlers->conf.metrics->write_bytes, (int64_t)r->body_len);
    r->status = err_to_bookie(err);
    request_answer(r);
}

static bool may_write(const struct request *r)
{
    const struct handlers *h = r->at->handlers;
    if (atomic_load_explicit(&h->writable, memory_order_relaxed))
        return true;
    const bool urgent = r->head.flags & (BOOKIE_RECOVERY_ADD | BOOKIE_HIGH_PRIORITY);
    return urgent && atomic_load_explicit(&h->reserve, memory_order_relaxed);
}

/* Counted as it is taken: between two looks at the disk it may be a lot.  It goes to the journal,
 * perhaps on the same disk, and to an entry log. */
static enum err take_reserve(struct device *d, size_t len)
{
    const int64_t bytes = 2 * (int64_t)len;
    return atomic_fetch_sub_explicit(&d->reserve_left, bytes, memory_order_relaxed) >= bytes
               ? ERR_OK
               : ERR_READ_ONLY;
}

/* A directory that is full while others are not: its writers go to other bookies. */
static enum err may_go_to(const struct request *r, struct device *d)
{
    const bool urgent = r->head.flags & (BOOKIE_RECOVERY_ADD | BOOKIE_HIGH_PRIORITY);
    switch (atomic_load_explicit(&d->state, memory_order_relaxed)) {
    case DEVICE_WRITABLE:
        return ERR_OK;
    case DEVICE_FULL:
        return urgent ? take_reserve(d, r->body.len) : ERR_READ_ONLY;
    default:
        return ERR_IO;
    }
}

/* ERR_NOT_READY: the metadata is to be asked first. */
static enum err trust(const struct request *r)
{
    struct ledger *l = NULL;
    const enum err err = ledgers_find(&request_shard(r)->ledgers, r->head.ledger, &l);
    if (err && err != ERR_NO_LEDGER)
        return err;
    if (l && l->row.fenced)
        return ERR_FENCED;
    return vouch_is_needed(r, l) ? ERR_NOT_READY : ERR_OK;
}

/* Into the cache first: what the journal has synced when a checkpoint takes its mark must be in
 * what that checkpoint freezes. */
static enum err admit(struct request *r, bool is_new)
{
    struct storage *s = r->at->handlers->conf.storage;
    const bool is_recovery = r->head.flags & BOOKIE_RECOVERY_ADD;
    struct ledger *l;
    if (r->head.entry < 0)
        return ERR_MALFORMED;
    if (!may_write(r))
        return ERR_READ_ONLY;
    if (vouch_is_needed(r, NULL))
        TRY(trust(r));
    enum err err = ledgers_claim(&request_shard(r)->ledgers, r->head.ledger, r->head.key, &l);
    if (err == ERR_BUSY) /* all that are known are changed: their rows must go to the index */
        storage_kick(s);
    TRY(err);
    if (l->row.fenced && !is_recovery)
        return ERR_FENCED;
    l->is_vouched |= r->is_vouched;
    TRY(may_go_to(r, l->device));
    r->device = l->device;
    if (is_new && r->at->parked_on[l->device->number] > 0) /* not past those who wait already */
        return ERR_BUSY;
    TRY(storage_put(s, l, r->head.entry, r->lac, slice_share(r->body)));
    if (!list_empty(&l->watching))
        polls_wake(l);
    if (is_recovery) /* it may replace what a read has brought in */
        storage_forget_read(s, r->head.ledger, r->head.entry);
    r->write = (struct journal_write){
        .kind = RECORD_ADD,
        .is_early = r->v3 && r->v3->head.is_deferred,
        .head = view_of(r->head.key, MASTER_KEY_SIZE),
        .body = slice_share(r->body),
        .home = r->from->loop,
        .done = durable,
    };
    r->body_len = r->body.len;
    slice_drop(&r->body);
    err = journal_append(storage_journal(s, r->head.ledger), &r->write);
    if (err)
        slice_drop(&r->write.body);
    return err;
}

/* ---- waiting for the write cache ------------------------------------------------------------ */

/* What a parked add counts: its entry, and about what its request takes in memory. */
static uint64_t parked_cost(const struct request *r)
{
    return r->body.len + sizeof *r;
}

static void refuse(struct request *r, enum err err)
{
    if (err == ERR_BUSY)
        metric_add(&r->at->handlers->conf.metrics->rejected_adds, 1);
    request_finish(r, err);
}

static struct request *oldest(struct station *st)
{
    if (list_empty(&st->parked))
        return NULL;
    return list_entry(st->parked.next, struct request, waiting);
}

static void count_parked(struct request *r, int by)
{
    if (r->device)
        r->at->parked_on[r->device->number] += (unsigned)by;
}

static void unpark(struct station *st, struct request *r)
{
    list_remove(&r->waiting);
    count_parked(r, -1);
    st->parked_bytes -= parked_cost(r);
    metric_add(&st->handlers->conf.metrics->parked_adds, -1);
}

static void wait_for_oldest(struct station *st)
{
    const struct request *r = oldest(st);
    const uint64_t now = loop_clock();
    if (!r)
        return;
    const uint64_t until = r->began + st->handlers->conf.throttle_us;
    loop_after(st->loop, &st->parked_timer, until > now ? until - now : 0);
}

static void waited_too_long(struct timer *t)
{
    struct station *st = container_of(t, struct station, parked_timer);
    const uint64_t since = loop_clock() - st->handlers->conf.throttle_us;
    for (struct request *r; (r = oldest(st)) != NULL && r->began <= since;) {
        unpark(st, r);
        refuse(r, ERR_BUSY);
    }
    wait_for_oldest(st);
}

static void park(struct request *r)
{
    struct station *st = r->at;
    if (st->parked_bytes + parked_cost(r) > st->handlers->conf.park_bytes) {
        refuse(r, ERR_BUSY);
        return;
    }
    metric_add(&st->handlers->conf.metrics->throttled_adds, 1);
    metric_add(&st->handlers->conf.metrics->parked_adds, 1);
    st->parked_bytes += parked_cost(r);
    list_push_back(&st->parked, &r->waiting);
    count_parked(r, 1);
    st->parked_timer.run = waited_too_long;
    if (!timer_armed(&st->parked_timer))
        wait_for_oldest(st);
}

static bool has_memory(const struct request *r)
{
    return memory_guard_level(r->at->handlers->conf.memory) < MEMORY_SHORT ||
           r->head.flags & (BOOKIE_RECOVERY_ADD | BOOKIE_HIGH_PRIORITY);
}

void add_begin(struct request *r)
{
    if (!has_memory(r)) {
        refuse(r, ERR_BUSY);
        return;
    }
    r->device = NULL;
    const enum err err = admit(r, true);
    if (err == ERR_BUSY && r->body.len > 0)
        park(r); /* the cache is full; a journal that is full has let the body go */
    else if (err == ERR_NOT_READY)
        vouch_wait(r);
    else if (err)
        refuse(r, err);
}

struct waited {
    int64_t ledger, entry;
    uint64_t began;
};

static void tell_if_slow(struct station *st, const struct waited *w)
{
    const uint64_t slow_us = st->handlers->conf.slow_us, waited = loop_clock() - w->began;
    if (slow_us == 0 || waited < slow_us || st->parked_told)
        return;
    st->parked_told = true;
    log_event(LOG_WARN, "adds.throttled", F_I64("ledger", w->ledger), F_I64("entry", w->entry),
              F_U64("waited_ms", waited / 1000), F_U64("parked_bytes", st->parked_bytes),
              F_STR("reason", "the write cache is full: the checkpoint is slower than the adds"));
}

/* False: what it waits for has no room still.  Once it is admitted it is another thread's. */
static bool try_parked(struct station *st, struct request *r)
{
    const struct waited w = {r->head.ledger, r->head.entry, r->began};
    const uint64_t cost = parked_cost(r);
    struct list_node *before = r->waiting.prev;
    list_remove(&r->waiting);
    count_parked(r, -1);
    const enum err err = admit(r, false);
    if (err == ERR_BUSY && r->body.len > 0) {
        list_push_front(before, &r->waiting);
        count_parked(r, 1);
        return false;
    }
    st->parked_bytes -= cost;
    metric_add(&st->handlers->conf.metrics->parked_adds, -1);
    tell_if_slow(st, &w);
    if (err == ERR_NOT_READY)
        vouch_wait(r);
    else if (err)
        refuse(r, err);
    return true;
}

/* One device without room holds up its own adds and no others. */
void add_parked(struct station *st)
{
    uint32_t full = 0; /* a bit a device */
    for (struct list_node *n = st->parked.next, *next; n != &st->parked; n = next) {
        struct request *r = list_entry(n, struct request, waiting);
        next = n->next;
        if (r->device && full & 1u << r->device->number)
            continue;
        if (!try_parked(st, r) && r->device)
            full |= 1u << r->device->number;
    }
    if (list_empty(&st->parked))
        st->parked_told = false;
}

void add_drop_parked(struct station *st)
{
    loop_cancel(st->loop, &st->parked_timer);
    for (struct request *r; (r = oldest(st)) != NULL;) {
        unpark(st, r);
        request_finish(r, ERR_BUSY);
    }
}
