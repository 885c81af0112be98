/* The hands of dispatch/shared.h: several consumers. */
#include "broker/broker.h"
#include "broker/topic/explain.h"
#include "broker/topic/feed.h"
#include "broker/topic/subscription.h"

/* Entries that are known, when the settings put no limit on unacknowledged messages. */
enum { KNOWN_MAX = 1000 * 1000 };

/* Much larger than the other kinds: so it is not in the feed. */
struct apart {
    struct feed *feed;
    struct shared shared;
};

static struct feed *feed_of(struct shared *s)
{
    return container_of(s, struct apart, shared)->feed;
}

static struct topic_consumer *consumer_of(struct shared_consumer *c)
{
    return container_of(c, struct topic_consumer, shared);
}

/* ---- effects ---- */

static void sort_one(struct feed *f, const struct ml_entry *e, unsigned left)
{
    struct feed_cut cut;
    struct shared_choice choice;

    feed_cut(f, e, &cut);
    choice = shared_entry(f->shared, &(struct shared_seen){.at = cut.item.at,
                                                           .messages = cut.item.messages,
                                                           .marker = cut.marker,
                                                           .uuid = cut.uuid,
                                                           .last_chunk = cut.last_chunk});
    if (choice.verdict == SHARED_SEND) {
        cut.item.redeliveries = choice.redeliveries;
        topic_consumer_gets(consumer_of(choice.to), &cut.item, left);
        return;
    }
    if (choice.verdict == SHARED_SKIP)
        cursor_ack(feed_subscription(f)->cursor, &cut.item.at, 1, NULL);
    feed_cut_drop(&cut);
}

static void deliver(struct feed *f)
{
    list_each(&f->shared->consumers, n)
    {
        struct topic_consumer *c = consumer_of(list_entry(n, struct shared_consumer, node));
        struct delivery *d = c->building;
        c->building = NULL;
        if (d)
            topic_consumer_deliver(c, d);
    }
}

static void read_done(struct ml_read *r, enum err err, struct ml_entry *entries, unsigned n,
                      struct position next)
{
    struct feed *f = container_of(r, struct feed, read);

    if (err)
        feed_read_failed(f, err);
    for (unsigned i = 0; i < n; i++) {
        sort_one(f, &entries[i], n - i);
        slice_drop(&entries[i].payload);
    }
    if (n > 0)
        deliver(f);
    shared_read_done(f->shared, err, next);
}

static void do_read(struct shared *s, struct position from, unsigned max_entries)
{
    struct feed *f = feed_of(s);

    f->read = (struct ml_read){.from = from, .done = read_done};
    feed_read(f, max_entries);
}

static void do_replay(struct shared *s, const struct cursor_set *only, unsigned max_entries)
{
    struct feed *f = feed_of(s);

    f->read = (struct ml_read){.from = POSITION_EARLIEST, .only = only, .done = read_done};
    feed_read(f, max_entries);
}

static void do_cancel_read(struct shared *s)
{
    feed_cancel_read(feed_of(s));
}

static void do_retry_later(struct shared *s)
{
    feed_retry_later(feed_of(s));
}

static const struct shared_fx fx = {.read = do_read,
                                    .replay = do_replay,
                                    .cancel_read = do_cancel_read,
                                    .retry_later = do_retry_later};

/* ---- events ---- */

static struct shared_conf conf_of(struct feed *f)
{
    const struct broker_conf *conf = feed_env(f)->conf;
    const struct topic *t = feed_subscription(f)->topic;
    const int64_t all = topic_limit(t, NS_SUBSCRIPTION_UNACKED);

    return (struct shared_conf){
        .batch_max = feed_batch(f),
        .turn_max = (unsigned)conf->round_robin_batch,
        .out_max = DELIVERIES_MAX,
        .known_max = all > 0 && all < KNOWN_MAX ? (unsigned)all : KNOWN_MAX,
        .max_unacked = topic_limit(t, NS_UNACKED),
        .max_unacked_all = all,
    };
}

static void batch(struct feed *f, unsigned max)
{
    f->shared->conf.batch_max = max;
}

static void begin(struct feed *f)
{
    const struct shared_conf conf = conf_of(f);
    struct apart *a = mem_new(struct apart);

    a->feed = f;
    f->shared = &a->shared;
    shared_init(f->shared, &fx, &conf);
    f->shared->next = feed_first_wanted(f);
    f->shared->end = managed_ledger_max_readable(feed_subscription(f)->topic->ml);
}

static void end(struct feed *f)
{
    shared_drop(f->shared);
    mem_free(container_of(f->shared, struct apart, shared));
    f->shared = NULL;
}

static void join(struct feed *f, struct topic_consumer *c)
{
    shared_came(f->shared, &c->shared, c->priority);
}

static void leave(struct feed *f, struct topic_consumer *c)
{
    shared_left(f->shared, &c->shared);
}

static void flow(struct feed *f, struct topic_consumer *c, uint32_t permits)
{
    shared_flow(f->shared, &c->shared, permits);
}

static void redeliver(struct feed *f, struct topic_consumer *c, const struct position *at,
                      unsigned n)
{
    shared_redeliver(f->shared, &c->shared, at, n);
}

static void delivered(struct feed *f, struct topic_consumer *c)
{
    shared_delivered(f->shared, &c->shared);
}

static void acked(struct feed *f, const struct position *at, unsigned n)
{
    shared_acked(f->shared, at, n);
}

static void acked_part(struct feed *f, struct position at, uint32_t left)
{
    shared_acked_part(f->shared, at, left);
}

static void acked_upto(struct feed *f, struct position at)
{
    shared_acked_upto(f->shared, at);
}

static void rewind_it(struct feed *f)
{
    shared_rewind(f->shared, feed_first_wanted(f));
}

static void grew(struct feed *f)
{
    shared_grew(f->shared, managed_ledger_max_readable(feed_subscription(f)->topic->ml));
}

static void halt(struct feed *f, bool halted)
{
    shared_halt(f->shared, halted);
}

static void limit(struct feed *f)
{
    const struct shared_conf conf = conf_of(f);

    shared_limit(f->shared, &conf);
}

static void retry(struct feed *f)
{
    shared_retry(f->shared);
}

static int64_t permits(const struct feed *f, const struct topic_consumer *c)
{
    (void)f;
    return c->shared.permits;
}

/* The first consumer that cannot take one, by level: what stops the best stops the rest least. */
static void explain_takers(const struct shared *s, struct explanation *e)
{
    struct shared_consumer *c = list_entry(s->consumers.next, struct shared_consumer, node);
    enum explain_reason why = EXPLAIN_NO_PERMITS;

    if (c->blocked)
        why = EXPLAIN_CONSUMER_UNACKED;
    else if (c->out >= s->conf.out_max)
        why = EXPLAIN_NOT_DRAINING;
    explain_consumer(e, why, consumer_of(c));
}

static void explain(struct feed *f, struct explanation *e)
{
    const struct shared *s = f->shared;

    if (s->state == SHARED_READING || s->state == SHARED_REPLAYING)
        explain_reading(f, e);
    else if (s->state == SHARED_BACKING_OFF)
        e->reason = EXPLAIN_READ_FAILED;
    else if (s->blocked)
        e->reason = EXPLAIN_SUBSCRIPTION_UNACKED;
    else if (s->takers == 0)
        explain_takers(s, e);
    else if (shared_is_full(s))
        e->reason = EXPLAIN_TOO_MANY_KNOWN;
    else if (s->n_replay > 0)
        e->reason = EXPLAIN_CHUNKS;
    else if (position_compare(s->next, s->end) > 0)
        e->reason = EXPLAIN_NOT_ACKNOWLEDGED;
}

const struct feed_ops feed_shared = {
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
    .rewind = rewind_it,
    .grew = grew,
    .halt = halt,
    .limit = limit,
    .retry = retry,
    .batch = batch,
    .permits = permits,
    .explain = explain,
};
