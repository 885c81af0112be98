#include "bookie/handlers.h"

#include <unistd.h>

#include "bookie/request.h"
#include "common/mem.h"

static void round_ends(struct round_end *e)
{
    station_flush(container_of(e, struct station, round_end));
}

struct handlers *handlers_open(const struct handlers_conf *conf)
{
    struct handlers *h = mem_new(struct handlers);
    h->conf = *conf;
    atomic_init(&h->writable, true);
    for (unsigned i = 0; i < conf->loops->n; i++) {
        struct station *st = &h->stations[i];
        st->handlers = h;
        st->loop = conf->loops->at[i];
        st->round_end.run = round_ends;
        list_init(&st->sessions);
        list_init(&st->answered);
        list_init(&st->parked);
        list_init(&st->strangers);
        list_init(&st->polls);
        list_init(&st->listings);
        list_init(&st->idle);
    }
    return h;
}

/* An accepted socket on its way to the loop where it will live. */
struct arrival {
    struct station *station;
    int fd;
    struct task task;
};

static void settle(struct task *t)
{
    struct arrival *a = container_of(t, struct arrival, task);
    if (a->station->is_closed)
        close(a->fd);
    else
        session_new(a->station, a->fd);
    mem_free(a);
}

void handlers_accept(struct handlers *h, int fd)
{
    struct arrival *a = mem_new(struct arrival);
    a->station = &h->stations[atomic_fetch_add(&h->next_loop, 1) % h->conf.loops->n];
    a->fd = fd;
    a->task.run = settle;
    loop_post(a->station->loop, &a->task);
}

void handlers_room(struct handlers *h, unsigned shard)
{
    add_parked(&h->stations[shard]);
}

void handlers_group_done(struct handlers *h, struct loop *home)
{
    station_flush(&h->stations[loop_index(home)]);
}

void handlers_set_writable(struct handlers *h, bool writable, bool reserve)
{
    atomic_store(&h->reserve, reserve);
    atomic_store(&h->writable, writable);
    metric_set(&h->conf.metrics->server_status, writable);
}

bool handlers_writable(const struct handlers *h)
{
    return atomic_load(&((struct handlers *)(uintptr_t)h)->writable);
}

static void run_nothing(void *ctx)
{
    (void)ctx;
}

/* Whatever was on its way between loops has arrived when this returns. */
static void settle_all(const struct handlers *h)
{
    for (unsigned i = 0; i < 2 * h->conf.loops->n; i++)
        loop_call(h->conf.loops->at[i % h->conf.loops->n], run_nothing, NULL);
}

static void stop_station(void *ctx)
{
    struct station *st = ctx;
    st->is_closed = true;
    add_drop_parked(st);
    vouch_stop(st);
    polls_stop(st);
    station_flush(st);
    while (!list_empty(&st->sessions))
        session_close(list_entry(st->sessions.next, struct session, node));
}

void handlers_stop(struct handlers *h)
{
    for (unsigned i = 0; i < h->conf.loops->n; i++)
        loop_call(h->conf.loops->at[i], stop_station, &h->stations[i]);
    settle_all(h);
}

static void drop_station(void *ctx)
{
    struct station *st = ctx;
    add_drop_parked(st);
    station_end(st);
}

void handlers_close(struct handlers **handlers)
{
    struct handlers *h = *handlers;
    *handlers = NULL;
    if (!h)
        return;
    for (unsigned i = 0; i < h->conf.loops->n; i++)
        loop_call(h->conf.loops->at[i], drop_station, &h->stations[i]);
    settle_all(h);
    mem_free(h);
}
