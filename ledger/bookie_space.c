#include "ledger/bookie_space.h"

#include "common/log.h"
#include "common/mem.h"
#include "proto/bookie_v3.h"

enum { SOONEST_US = 10 * 1000 };

struct question {
    struct link_request request;
    struct bookie_space *home;
    uint32_t bookie;
    uint64_t due_us; /* when it is asked next; UINT64_MAX: it is being asked */
};

struct bookie_space {
    struct loop *loop;
    struct bookies *table;
    uint64_t look_us, retry_us;
    uint32_t n;
    struct question **at; /* by the bookie's number */
    struct bookies_watch watch;
    struct timer timer;
};

static void look(struct bookie_space *s);

static void answered(struct link_request *request, enum err err, struct slice body)
{
    struct question *q = container_of(request, struct question, request);
    struct bookie_space *s = q->home;
    uint64_t bytes = 0, total;

    if (!err)
        err = bookie_info_read(slice_view(body), &bytes, &total);
    if (!err)
        bookies_set_free(s->table, q->bookie, bytes);
    else
        log_event(LOG_WARN, "bookie.space_unknown",
                  F_STR("bookie", bookies_id(s->table, q->bookie)), F_ERR(err));
    q->due_us = loop_now(s->loop) + (err ? s->retry_us : s->look_us);
    look(s);
}

static void ask(struct bookie_space *s, struct question *q)
{
    q->due_us = UINT64_MAX;
    q->request.done = answered;
    link_info(bookies_link(s->table, q->bookie, LINK_PLAIN), &q->request);
}

static void grow(struct bookie_space *s)
{
    const uint32_t n = bookies_count(s->table);

    if (n == s->n)
        return;
    s->at = mem_resize(s->at, n * sizeof(struct question *));
    for (; s->n < n; s->n++) {
        s->at[s->n] = mem_new(struct question);
        s->at[s->n]->home = s;
        s->at[s->n]->bookie = s->n;
    }
}

/* Asks whose turn it is; then the timer is for the next one. */
static void look(struct bookie_space *s)
{
    const uint64_t now = loop_now(s->loop);
    uint64_t next = UINT64_MAX;

    grow(s);
    for (uint32_t i = 0; i < s->n; i++) {
        struct question *q = s->at[i];
        if (!bookies_is_writable(s->table, i))
            continue;
        if (q->due_us <= now)
            ask(s, q);
        if (q->due_us < next)
            next = q->due_us;
    }
    loop_cancel(s->loop, &s->timer);
    if (next != UINT64_MAX)
        loop_after(s->loop, &s->timer, next - now > SOONEST_US ? next - now : SOONEST_US);
}

static void due(struct timer *t)
{
    look(container_of(t, struct bookie_space, timer));
}

static void changed(struct bookies_watch *w)
{
    look(container_of(w, struct bookie_space, watch));
}

struct bookie_space *bookie_space_new(struct loop *l, struct bookies *table, uint64_t look_us,
                                      uint64_t retry_us)
{
    struct bookie_space *s = mem_new(struct bookie_space);

    *s = (struct bookie_space){.loop = l,
                               .table = table,
                               .look_us = look_us,
                               .retry_us = retry_us,
                               .watch.changed = changed,
                               .timer.run = due};
    bookies_watch(table, &s->watch);
    return s;
}

void bookie_space_drop(struct bookie_space **space)
{
    struct bookie_space *s = *space;

    *space = NULL;
    if (!s)
        return;
    bookies_unwatch(s->table, &s->watch);
    loop_cancel(s->loop, &s->timer);
    for (uint32_t i = 0; i < s->n; i++) {
        link_cancel(&s->at[i]->request);
        mem_free(s->at[i]);
    }
    mem_free(s->at);
    mem_free(s);
}
