/* The hands of dispatch/exclusive.h: one consumer. */
#include "broker/broker.h"
#include "broker/topic/explain.h"
#include "broker/topic/feed.h"
#include "broker/topic/subscription.h"

static struct feed *feed_of(struct exclusive *x)
{
    return container_of(x, struct feed, exclusive);
}

/* ---- effects ---- */

static struct delivery *sort(struct feed *f, struct ml_entry *entries, unsigned n)
{
    struct delivery *d = delivery_new(n);

    for (unsigned i = 0; i < n; i++) {
        struct feed_cut cut;
        feed_cut(f, &entries[i], &cut);
        switch (exclusive_entry(&f->exclusive, cut.item.at, cut.item.messages, cut.marker)) {
        case EXCLUSIVE_SEND:
            d->item[d->n++] = cut.item;
            break;
        case EXCLUSIVE_SKIP:
            cursor_ack(feed_subscription(f)->cursor, &cut.item.at, 1, NULL);
            feed_cut_drop(&cut);
            break;
        case EXCLUSIVE_LEAVE:
            feed_cut_drop(&cut);
            break;
        }
        slice_drop(&entries[i].payload);
    }
    return d;
}

static void read_done(struct ml_read *r, enum err err, struct ml_entry *entries, unsigned n,
                      struct position next)
{
    struct feed *f = container_of(r, struct feed, read);
    struct delivery *d = n > 0 ? sort(f, entries, n) : NULL;
    bool sent = d && d->n > 0;

    if (err)
        feed_read_failed(f, err);
    if (sent)
        topic_consumer_deliver(f->consumer, d);
    else
        mem_free(d);
    exclusive_read_done(&f->exclusive, err, next, sent);
}

static void do_read(struct exclusive *x, struct position from, unsigned max_entries)
{
    struct feed *f = feed_of(x);

    f->read = (struct ml_read){.from = from, .done = read_done};
    feed_read(f, max_entries);
}

static void do_cancel_read(struct exclusive *x)
{
    feed_cancel_read(feed_of(x));
}

static void do_retry_later(struct exclusive *x)
{
    feed_retry_later(feed_of(x));
}

static const struct exclusive_fx fx = {
    .read = do_read, .cancel_read = do_cancel_read, .retry_later = do_retry_later};

/* ---- events ---- */

static void begin(struct feed *f)
{
    exclusive_init(&f->exclusive, &fx, feed_batch(f), DELIVERIES_MAX);
}

static void end(struct feed *f)
{
    (void)f;
}

static void batch(struct feed *f, unsigned max)
{
    f->exclusive.batch_max = max;
}

static void join(struct feed *f, struct topic_consumer *c)
{
    f->consumer = c;
    exclusive_came(&f->exclusive, feed_first_wanted(f),
                   managed_ledger_max_readable(feed_subscription(f)->topic->ml));
}

static void leave(struct feed *f, struct topic_consumer *c)
{
    (void)c;
    loop_cancel(feed_env(f)->home, &f->retry);
    exclusive_left(&f->exclusive);
    f->consumer = NULL;
}

static void flow(struct feed *f, struct topic_consumer *c, uint32_t permits)
{
    (void)c;
    exclusive_flow(&f->exclusive, permits);
}

static void rewind_it(struct feed *f)
{
    if (f->consumer)
        exclusive_rewind(&f->exclusive, feed_first_wanted(f));
}

/* In order, so all of it, whatever was asked for. */
static void redeliver(struct feed *f, struct topic_consumer *c, const struct position *at,
                      unsigned n)
{
    (void)c, (void)at, (void)n;
    rewind_it(f);
}

static void delivered(struct feed *f, struct topic_consumer *c)
{
    (void)c;
    exclusive_delivered(&f->exclusive);
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

static void grew(struct feed *f)
{
    exclusive_grew(&f->exclusive, managed_ledger_max_readable(feed_subscription(f)->topic->ml));
}

static void halt(struct feed *f, bool halted)
{
    exclusive_halt(&f->exclusive, halted);
}

static void retry(struct feed *f)
{
    exclusive_retry(&f->exclusive);
}

static int64_t permits(const struct feed *f, const struct topic_consumer *c)
{
    (void)c;
    return f->exclusive.permits;
}

static void explain(struct feed *f, struct explanation *e)
{
    const struct exclusive *x = &f->exclusive;

    if (x->state == EXCLUSIVE_READING)
        explain_reading(f, e);
    else if (x->state == EXCLUSIVE_BACKING_OFF)
        e->reason = EXPLAIN_READ_FAILED;
    else if (x->out >= x->out_max)
        explain_consumer(e, EXPLAIN_NOT_DRAINING, f->consumer);
    else if (x->permits <= 0)
        explain_consumer(e, EXPLAIN_NO_PERMITS, f->consumer);
    else if (position_compare(x->next, x->end) > 0)
        explain_consumer(e, EXPLAIN_NOT_ACKNOWLEDGED, f->consumer);
}

const struct feed_ops feed_exclusive = {
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
    .retry = retry,
    .batch = batch,
    .permits = permits,
    .explain = explain,
};
