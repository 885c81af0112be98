/* explain.h - the first reason why a subscription with backlog is not moving.
 *
 *   subscription_explain(topics, ask) --post--> the topic's loop: topic, subscription, its feed
 *   ask->done() <----------------------post----/
 *
 * Nothing is kept for it: it is read from the state that the dispatcher itself decides by.
 *
 * Memory:  an ask is its caller's until done(); `topic` and `subscription` are borrowed so long.
 * Threads: subscription_explain() on ask->home, where done() comes too.
 */
#ifndef BROKER_TOPIC_EXPLAIN_H
#define BROKER_TOPIC_EXPLAIN_H

#include "broker/topic/topics.h"

struct feed;
struct topic;
struct topic_consumer;

enum explain_reason {
    EXPLAIN_MOVING,     /* nothing stands in the way */
    EXPLAIN_NO_BACKLOG, /* everything is acknowledged */
    EXPLAIN_NO_CONSUMER,
    EXPLAIN_BEING_CHANGED, /* the subscription is being made or deleted */
    EXPLAIN_READING,       /* a read from the managed ledger is in flight, since_us */
    EXPLAIN_NO_ROOM,       /* a read waits: too much is on its way to consumers of this loop */
    EXPLAIN_READ_FAILED,   /* the last one did: it is tried again */
    EXPLAIN_SUBSCRIPTION_UNACKED, /* too many unacknowledged messages */
    EXPLAIN_CONSUMER_UNACKED,     /* the same of a consumer */
    EXPLAIN_NO_PERMITS,           /* the consumer takes no more */
    EXPLAIN_NOT_DRAINING,         /* its socket does not */
    EXPLAIN_TOO_MANY_KNOWN,       /* entries that are held or wait to be sent again */
    EXPLAIN_CHUNKS,               /* chunks wait for the consumer that has the ones before */
    EXPLAIN_NOT_ACKNOWLEDGED,     /* all was sent: it is for the consumers to acknowledge */
};

struct explanation {
    enum explain_reason reason;
    int64_t backlog; /* entries */
    unsigned consumers;
    char consumer[64]; /* the one that is in the way; empty: none by itself */
    uint64_t since_us; /* how long a read is in flight */
    int64_t unacked;   /* messages: of the consumer, or of the subscription */
    int64_t permits;   /* of the consumer */
};

struct explain_ask {
    struct loop *home;
    const char *topic; /* full */
    const char *subscription;
    /* ERR_TOPIC_NOT_FOUND and what else loading it may end with, ERR_SUBSCRIPTION_NOT_FOUND. */
    void (*done)(struct explain_ask *a, enum err err, const struct explanation *e);
    struct explanation answer; /* private, as the rest */
    enum err err;
    struct topics *at;
    struct topics_call call;
    struct task task;
};
void subscription_explain(const struct topics_map *topics, struct explain_ask *a);

/* "no-permits", and a sentence; `into` as large as you like. */
const char *explain_word(enum explain_reason reason);
void explain_sentence(const struct explanation *e, char *into, size_t size);

/* On the topic's loop, of a subscription that is at hand; ERR_SUBSCRIPTION_NOT_FOUND. */
MUST_CHECK enum err explain_here(const struct topic *t, const char *subscription,
                                 struct explanation *e);

/* ---- for feeds ---- */
void explain_reading(struct feed *f, struct explanation *e);
void explain_consumer(struct explanation *e, enum explain_reason why,
                      const struct topic_consumer *c);

#endif
