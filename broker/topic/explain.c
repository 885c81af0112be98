#include "broker/topic/explain.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "broker/topic/subscription.h"

/* ---- in words ---- */

static const struct {
    const char *word, *sentence;
} reasons[] = {
    [EXPLAIN_MOVING] = {"moving", "nothing stands in its way"},
    [EXPLAIN_NO_BACKLOG] = {"no-backlog", "everything is acknowledged"},
    [EXPLAIN_NO_CONSUMER] = {"no-consumer", "no consumer is connected"},
    [EXPLAIN_BEING_CHANGED] = {"being-changed", "the subscription is being made, moved or deleted"},
    [EXPLAIN_READING] = {"reading", "a read from the bookies is in flight"},
    [EXPLAIN_NO_ROOM] = {"no-room", "consumers that do not read hold the memory for entries on "
                                    "their way (managedLedgerMaxReadsInFlightSizeInMB)"},
    [EXPLAIN_READ_FAILED] = {"read-failed", "the last read failed and is tried again every second"},
    [EXPLAIN_SUBSCRIPTION_UNACKED] = {"subscription-unacked",
                                      "too many messages of the subscription are unacknowledged"},
    [EXPLAIN_CONSUMER_UNACKED] = {"consumer-unacked",
                                  "the consumer has too many unacknowledged messages"},
    [EXPLAIN_NO_PERMITS] = {"no-permits", "the consumer has given no permits: its queue is full"},
    [EXPLAIN_NOT_DRAINING] = {"not-draining", "the consumer's connection takes no more bytes"},
    [EXPLAIN_TOO_MANY_KNOWN] = {"too-many-known",
                                "too many entries are held or wait to be sent again"},
    [EXPLAIN_CHUNKS] = {"chunks", "chunks wait for permits of the consumer that has the others"},
    [EXPLAIN_NOT_ACKNOWLEDGED] = {"not-acknowledged",
                                  "everything was sent and waits to be acknowledged"},
};

const char *explain_word(enum explain_reason reason)
{
    return reasons[reason].word;
}

void explain_sentence(const struct explanation *e, char *into, size_t size)
{
    int n = snprintf(into, size, "%s", reasons[e->reason].sentence);

    if (n < 0 || (size_t)n >= size)
        return;
    into += n;
    size -= (size_t)n;
    if (e->reason == EXPLAIN_READING)
        snprintf(into, size, ", for %" PRIu64 " ms", e->since_us / 1000);
    else if (e->consumer[0])
        snprintf(into, size, " (consumer %s, %" PRId64 " permits, %" PRId64 " unacknowledged)",
                 e->consumer, e->permits, e->unacked);
    else if (e->unacked > 0)
        snprintf(into, size, " (%" PRId64 " messages)", e->unacked);
}

/* ---- on the topic's loop ---- */

void explain_reading(struct feed *f, struct explanation *e)
{
    e->reason = topics_read_waits(&f->turn) ? EXPLAIN_NO_ROOM : EXPLAIN_READING;
    e->since_us = loop_now(feed_env(f)->home) - f->read_since;
}

void explain_consumer(struct explanation *e, enum explain_reason why,
                      const struct topic_consumer *c)
{
    const struct feed *f = &c->subscription->feed;

    e->reason = why;
    snprintf(e->consumer, sizeof(e->consumer), "%s", c->name ? c->name : "");
    e->permits = f->ops->permits(f, c);
    e->unacked = f->ops == &feed_shared ? c->shared.unacked : 0;
}

static void explain(struct subscription *s, struct explanation *e)
{
    *e = (struct explanation){.reason = EXPLAIN_MOVING, .consumers = s->n_consumers};
    if (s->state != SUBSCRIPTION_READY) {
        e->reason = EXPLAIN_BEING_CHANGED;
        return;
    }
    e->backlog = s->cursor ? cursor_backlog(s->cursor) : 0;
    if (s->cursor && e->backlog == 0) {
        e->reason = EXPLAIN_NO_BACKLOG;
    } else if (s->n_consumers == 0) {
        e->reason = EXPLAIN_NO_CONSUMER;
    } else {
        if (s->feed.ops == &feed_shared)
            e->unacked = s->feed.shared->unacked;
        s->feed.ops->explain(&s->feed, e);
    }
}

/* A cursor that nobody has used yet since the topic was loaded has no consumer either. */
static enum err explain_cursor(const struct topic *t, const char *name, struct explanation *e)
{
    struct cursor *c = t->ml ? managed_ledger_cursor(t->ml, name) : NULL;

    if (!c)
        return ERR_SUBSCRIPTION_NOT_FOUND;
    *e = (struct explanation){.backlog = cursor_backlog(c)};
    e->reason = e->backlog > 0 ? EXPLAIN_NO_CONSUMER : EXPLAIN_NO_BACKLOG;
    return ERR_OK;
}

enum err explain_here(const struct topic *t, const char *subscription, struct explanation *e)
{
    struct subscription *s = subscription_find(t, subscription);

    if (!s)
        return explain_cursor(t, subscription, e);
    explain(s, e);
    return ERR_OK;
}

/* ---- there and back ---- */

static void answer(struct task *task)
{
    struct explain_ask *a = container_of(task, struct explain_ask, task);
    a->done(a, a->err, &a->answer);
}

static void topic_came(struct topics_call *call, enum err err, struct topic *t, const char *why)
{
    struct explain_ask *a = container_of(call, struct explain_ask, call);

    (void)why;
    a->err = err ? err : explain_here(t, a->subscription, &a->answer);
    a->task.run = answer;
    loop_post(a->home, &a->task);
}

static void look(struct task *task)
{
    struct explain_ask *a = container_of(task, struct explain_ask, task);

    a->call = (struct topics_call){.name = a->topic, .done = topic_came};
    topics_get(a->at, &a->call);
}

void subscription_explain(const struct topics_map *topics, struct explain_ask *a)
{
    a->answer = (struct explanation){0};
    a->at = topics_of(topics, a->topic);
    a->task.run = look;
    loop_post(topics_loop(a->at), &a->task);
}
