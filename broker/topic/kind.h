/* kind.h - what differs between a topic that is stored and one that only passes messages on.
 *
 *   topic_stored     kind_stored.c     a managed ledger: publishes are added, cursors read them
 *   topic_fleeting   kind_fleeting.c   nothing: a publish goes at once to whoever can take it now,
 *                                      of every subscription; subscriptions live in memory
 *
 * Everything else of a topic (loading, guests, access, leaving, rates) does not know of it.
 *
 * Threads: the topic's loop.
 */
#ifndef BROKER_TOPIC_KIND_H
#define BROKER_TOPIC_KIND_H

#include "broker/topic/feed.h"
#include "broker/topic/producer.h"
#include "broker/topic/topic.h"

struct topic_kind {
    void (*load)(struct topic *t); /* answer with topic_is_loaded() or topic_is_not_loaded() */
    void (*close)(struct topic *t, bool delete); /* answer, later, with topic_is_closed() */
    void (*configure)(struct topic *t);          /* as its policies say */
    const char *(*state)(const struct topic *t); /* a word, for those who look */
    void (*idle)(struct topic *t);               /* now and then: is it wanted any more? */

    int64_t (*epoch)(const struct topic *t);             /* of its last exclusive producer */
    void (*store_epoch)(struct topic *t, int64_t epoch); /* answer, later, topic_epoch_stored() */
    void (*welcome)(struct topic_producer *p);           /* goes on with topic_producer_ask() */
    void (*publish)(struct topic_producer *p, struct publish *m);

    void (*subscribe)(struct topic *t, struct topic_consumer *c);
    /* All but the one who asks were sent away; goes on with subscription_deleted(). */
    void (*unsubscribe)(struct subscription *s, struct consumer_ask *a);
    void (*ask)(struct topic_consumer *c, struct consumer_ask *a);
    const struct feed_ops *const *feeds; /* by consumer type */
    void (*subscriptions)(const struct topic *t, void (*each)(void *ctx, const char *name),
                          void *ctx);
};
extern const struct topic_kind topic_stored, topic_fleeting;

#endif
