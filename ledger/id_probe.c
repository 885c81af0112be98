#include "ledger/id_probe.h"

#include "common/mem.h"

enum { LONGEST_US = 1000 * 1000 };

/* One bookie's answers. */
struct answers {
    struct id_probe *probe;
    unsigned left; /* to come */
    bool failed;   /* one at least says nothing of the id */
};

struct question {
    struct link_request request;
    struct answers *of;
};

struct id_probe {
    struct ledger_client *client;
    unsigned bookies, enough, answered;
    unsigned n; /* questions */
    bool used;
    struct answers *answers;
    struct question *questions;
    struct timer timer;
    struct task end;
    bool ending;
    void (*done)(void *ctx, bool used);
    void *ctx;
};

static void ended(struct task *t)
{
    struct id_probe *p = container_of(t, struct id_probe, end);
    struct ledger_client *c = p->client;
    void (*done)(void *ctx, bool used) = p->done;
    void *ctx = p->ctx;
    bool used = p->used;

    loop_cancel(c->loop, &p->timer);
    for (unsigned i = 0; i < p->n; i++)
        link_cancel(&p->questions[i].request);
    mem_free(p->answers);
    mem_free(p->questions);
    mem_free(p);
    done(ctx, used);
    client_release(c);
}

static void end(struct id_probe *p)
{
    if (!p->ending)
        loop_post(p->client->loop, &p->end);
    p->ending = true;
}

static void late(struct timer *t)
{
    end(container_of(t, struct id_probe, timer));
}

/* NO_ENTRY: the ledger was fenced there, or all of it is gone. */
static void answered(struct link_request *request, enum err err, struct slice body)
{
    struct answers *a = container_of(request, struct question, request)->of;
    struct id_probe *p = a->probe;

    (void)body;
    if (err == ERR_OK || err == ERR_NO_ENTRY)
        p->used = true;
    else if (err != ERR_NO_LEDGER)
        a->failed = true;
    if (--a->left == 0 && !a->failed)
        p->answered++;
    if (p->used || p->answered >= p->enough)
        end(p);
}

static void ask(struct id_probe *p, struct bookie_link *link, struct answers *a, int64_t first,
                unsigned n)
{
    *a = (struct answers){.probe = p, .left = n};
    for (unsigned i = 0; i < n; i++) {
        struct question *q = &p->questions[p->n++];
        *q = (struct question){.request.done = answered, .of = a};
        link_read(link, &q->request, 0, first + i, ENTRY_NONE, NULL);
    }
}

static unsigned writable(const struct bookies *b)
{
    unsigned n = 0;

    for (uint32_t i = 0; i < bookies_count(b); i++)
        n += bookies_is_writable(b, i);
    return n;
}

void id_probe_start(struct ledger_client *c, int64_t first, unsigned n, unsigned ack,
                    void (*done)(void *ctx, bool used), void *ctx)
{
    struct id_probe *p = mem_new(struct id_probe);
    const unsigned all = writable(c->bookies);
    unsigned at = 0;

    client_hold(c);
    *p = (struct id_probe){.client = c,
                           .bookies = all,
                           .enough = all >= ack ? all - ack + 1 : 0,
                           .answers = mem_alloc((all + 1) * sizeof *p->answers),
                           .questions = mem_alloc((all * n + 1) * sizeof *p->questions),
                           .timer.run = late,
                           .end.run = ended,
                           .done = done,
                           .ctx = ctx};
    for (uint32_t i = 0; i < bookies_count(c->bookies); i++)
        if (bookies_is_writable(c->bookies, i))
            ask(p, bookies_link(c->bookies, i, LINK_PLAIN), &p->answers[at++], first, n);
    if (p->enough == 0)
        end(p);
    loop_after(c->loop, &p->timer, LONGEST_US);
}
