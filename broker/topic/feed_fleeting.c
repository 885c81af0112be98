/* The hands of dispatch/fleeting.h: of a topic that is not stored.
 *
 * What a round brings a consumer leaves at its end, as one delivery.  There is nothing to read,
 * to wait for or to send again, so most of what other feeds do is nothing here. */
#include <limits.h>

#include "broker/broker.h"
#include "broker/topic/explain.h"
#include "broker/topic/feed.h"
#include "broker/topic/producer.h"
#include "broker/topic/subscription.h"

static struct topic_consumer *consumer_of(struct fleeting_consumer *c)
{
    return container_of(c, struct topic_consumer, fleeting);
}

/* ---- a publish ---- */

/* From 0x0e01: magic and body, or both in one. */
static struct delivery_item item_of(const struct publish *m)
{
    const struct chain *p = &m->add.payload;
    struct delivery_item item = {.messages = m->add.messages};

    if (p->n > 1)
        item.magic = slice_share(p->at[0]);
    item.body = slice_share(p->at[p->n - 1]);
    return item;
}

static void send_gathered(struct topics_due *due)
{
    struct topic_consumer *c = container_of(due, struct topic_consumer, due);
    struct delivery *d = c->building;

    c->building = NULL;
    topic_consumer_deliver(c, d);
}

void feed_pass(struct feed *f, const struct publish *m)
{
    struct subscription *s = feed_subscription(f);
    const size_t charge = chain_len(&m->add.payload) + sizeof(struct delivery_item);
    const enum fleeting_room room =
        f->halted ? FLEETING_NONE : topics_fleeting_room(s->topic->topics);
    struct fleeting_consumer *to = fleeting_choose(&f->fleeting, m->add.messages, charge, room);

    if (!to) {
        traffic_note(&s->dropped, m->add.messages, chain_len(&m->add.payload));
        return;
    }
    struct topic_consumer *c = consumer_of(to);
    struct delivery_item item = item_of(m);
    topic_consumer_gets(c, &item, UINT_MAX);
    c->building->charge += charge;
    c->due.run = send_gathered;
    topics_at_round_end(s->topic->topics, &c->due);
}

/* ---- events ---- */

static void begin(struct feed *f)
{
    f->halted = false;
    fleeting_init(&f->fleeting, (size_t)feed_env(f)->conf->dispatch_bytes);
}

static void end(struct feed *f)
{
    (void)f;
}

static void join(struct feed *f, struct topic_consumer *c)
{
    fleeting_came(&f->fleeting, &c->fleeting, c->priority);
}

static void leave(struct feed *f, struct topic_consumer *c)
{
    (void)f;
    fleeting_left(&c->fleeting);
    list_remove(&c->due.node);
    if (c->building)
        delivery_drop(&c->building);
}

static void flow(struct feed *f, struct topic_consumer *c, uint32_t permits)
{
    (void)f;
    fleeting_flow(&c->fleeting, permits);
}

static void redeliver(struct feed *f, struct topic_consumer *c, const struct position *at,
                      unsigned n)
{
    (void)f, (void)c, (void)at, (void)n;
}

static void delivered(struct feed *f, struct topic_consumer *c)
{
    (void)f;
    fleeting_delivered(&c->fleeting, c->returned);
}

static void acked(struct feed *f, const struct position *at, unsigned n)
{
    (void)f, (void)at, (void)n;
}

static void acked_part(struct feed *f, struct position at, uint32_t left)
{
    (void)f, (void)at, (void)left;
}

static void acked_upto(struct feed *f, struct position at)
{
    (void)f, (void)at;
}

static void nothing(struct feed *f)
{
    (void)f;
}

static void halt(struct feed *f, bool halted)
{
    f->halted = halted;
}

static int64_t permits(const struct feed *f, const struct topic_consumer *c)
{
    (void)f;
    return c->fleeting.permits;
}

/* Who would get the next one: if he cannot take it nobody can. */
static void explain(struct feed *f, struct explanation *e)
{
    struct fleeting_consumer *first =
        list_entry(f->fleeting.consumers.next, struct fleeting_consumer, node);

    list_each(&f->fleeting.consumers, n)
    {
        struct fleeting_consumer *c = list_entry(n, struct fleeting_consumer, node);
        if (fleeting_takes(&f->fleeting, c, 0))
            return;
    }
    explain_consumer(e, first->permits > 0 ? EXPLAIN_NOT_DRAINING : EXPLAIN_NO_PERMITS,
                     consumer_of(first));
}

const struct feed_ops feed_fleeting = {
    .begin = begin,
    .end = end,
    .join = join,
    .leave = leave,
    .flow = flow,
    .redeliver = redeliver,
    .delivered = delivered,
    .acked = acked,
    .acked_part = acked_part,
    .acked_upto = acked_upto,
    .rewind = nothing,
    .grew = nothing,
    .halt = halt,
    .retry = nothing,
    .permits = permits,
    .explain = explain,
};
