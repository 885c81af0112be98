#include "bookie/request.h"

#include <string.h>

#include "common/mem.h"

enum { IDLE_MAX = 4096 };

static struct request *take_idle(struct station *st)
{
    struct list_node *n = list_pop_front(&st->idle);
    if (!n)
        return mem_new(struct request);
    st->idle_n--;
    struct request *r = list_entry(n, struct request, waiting);
    memset(r, 0, sizeof *r);
    return r;
}

static void give_idle(struct station *st, struct request *r)
{
    if (st->idle_n >= IDLE_MAX || st->is_closed) {
        mem_free(r);
        return;
    }
    list_push_back(&st->idle, &r->waiting);
    st->idle_n++;
}

void station_end(struct station *st)
{
    list_each(&st->idle, n) mem_free(list_entry(n, struct request, waiting));
    list_init(&st->idle);
}

struct request *request_new(struct session *s, const struct bookie_request *head)
{
    struct handlers *h = s->station->handlers;
    struct request *r = take_idle(s->station);
    r->from = s->station;
    r->at = &h->stations[(uint64_t)head->ledger % h->conf.loops->n];
    r->session = s;
    s->requests++;
    r->head = *head;
    r->head.body = (struct view){0}; /* the frame does not live as long */
    r->began = loop_now(s->station->loop);
    list_init(&r->waiting);
    return r;
}

static void begin_v3(struct request *r)
{
    switch (r->head.op) {
    case BOOKIE_WRITE_LAC:
        lac_write_begin(r);
        break;
    case BOOKIE_FORCE:
        force_begin(r);
        break;
    case BOOKIE_LIST:
        list_begin(r);
        break;
    default: /* READ, READ_LAC */
        if (r->v3->head.waits)
            poll_begin(r);
        else
            lookup_begin(r);
    }
}

static void begin(struct request *r)
{
    const bool fences = r->head.flags & BOOKIE_DO_FENCING;
    if (r->head.ledger < 0)
        request_finish(r, ERR_MALFORMED);
    else if (r->head.op == BOOKIE_ADD)
        add_begin(r);
    else if (fences)
        fence_begin(r);
    else if (r->v3)
        begin_v3(r);
    else
        lookup_begin(r);
}

static void arrived(struct task *t)
{
    begin(container_of(t, struct request, task));
}

void request_send(struct request *r)
{
    if (r->at == r->from) {
        begin(r);
        return;
    }
    r->task.run = arrived;
    loop_post(r->at->loop, &r->task);
}

static void count(const struct request *r)
{
    struct bookie_metrics *m = r->from->handlers->conf.metrics;
    const bool is_add = r->head.op == BOOKIE_ADD;
    const uint64_t us = loop_clock() - r->began;
    const bool is_negative = r->status == BOOKIE_NO_ENTRY || r->status == BOOKIE_NO_LEDGER;
    if (r->head.op > BOOKIE_READ && r->head.op != BOOKIE_BATCH_READ) {
        struct op_times *o = bookie_metrics_of(m, r->head.op);
        metric_add(&m->failed_requests, r->status != BOOKIE_OK);
        if (o)
            histogram_note(r->status && !is_negative ? &o->failed : &o->good, us);
        return;
    }
    if (r->head.flags & BOOKIE_DO_FENCING && !is_add)
        metric_add(&m->fence_requests, 1);
    if (r->status && !is_negative) {
        histogram_note(is_add ? &m->add_failed_us : &m->read_failed_us, us);
        metric_add(&m->failed_requests, 1);
    } else {
        histogram_note(is_add ? &m->add_us : &m->read_us, us);
    }
    metric_add(&m->read_bytes, (int64_t)(r->batch ? r->batch->bytes : r->answer.len));
}

static void answer_v2(struct request *r)
{
    if (r->head.op == BOOKIE_BATCH_READ)
        session_answer_batch(r);
    else
        session_answer(r->session, r->head.version, r->head.op, r->status, r->head.ledger,
                       r->head.entry, r->answer);
}

void request_answer(struct request *r)
{
    struct session *s = r->session;
    struct station *st = r->from;
    count(r);
    if (r->v3)
        v3_answer(r);
    else
        answer_v2(r);
    slice_drop(&r->body);
    give_idle(st, r);
    session_drop(s);
}

static void came_home(struct task *t)
{
    request_answer(container_of(t, struct request, task));
}

static void go_home(struct request *r)
{
    if (r->at == r->from) {
        request_answer(r);
        return;
    }
    r->task.run = came_home;
    loop_post(r->from->loop, &r->task);
}

/* Of a ledger in limbo nothing is denied: what it lacks may have been acknowledged here. */
static int32_t status_of(const struct request *r, enum err err)
{
    const bool denies = err == ERR_NO_ENTRY || err == ERR_NO_LEDGER;
    if (denies && r->ledger && r->ledger->row.limbo)
        err = ERR_UNKNOWN_STATE;
    return err == ERR_UNKNOWN_STATE && r->v3 ? BOOKIE_UNKNOWN : err_to_bookie(err);
}

void request_finish(struct request *r, enum err err)
{
    r->status = status_of(r, err);
    if (r->v3)
        v3_finishing(r);
    go_home(r);
}

void request_finish_with(struct request *r, struct slice entry)
{
    r->status = BOOKIE_OK;
    r->answer = entry;
    if (r->v3)
        v3_finishing(r);
    go_home(r);
}
