/* subscription.h - a cursor with a name, and the consumers that read through it.
 *
 *   MAKING --> READY --> DELETING --> gone
 *      \----------------------------------^  (the cursor could not be made)
 *              READY <--> SEEKING            (seek.h)
 *
 * A passing one (a reader's) has its cursor in memory and goes with its last consumer; after a
 * seek, which sends its reader away for a moment, it stays for PASSING_STAY_US.
 *
 * All its consumers are of one type; another one may come when none is there.
 *
 * Threads: the topic's loop.
 */
#ifndef BROKER_TOPIC_SUBSCRIPTION_H
#define BROKER_TOPIC_SUBSCRIPTION_H

#include "broker/topic/consumer.h"
#include "broker/topic/feed.h"
#include "broker/topic/seek.h"
#include "broker/topic/topic.h"

enum subscription_state {
    SUBSCRIPTION_MAKING,
    SUBSCRIPTION_READY,
    SUBSCRIPTION_SEEKING,
    SUBSCRIPTION_DELETING
};
enum { PASSING_STAY_US = 60 * 1000 * 1000 };

struct subscription {
    struct topic *topic;
    char *name;
    enum subscription_state state;
    struct list_node node;      /* topic.subscriptions */
    struct list_node waiting;   /* guest.node: consumers that came while it is made or moved */
    bool passing;               /* in memory only */
    struct cursor *cursor;      /* the managed ledger's, or ours: a passing one; NULL: the
                                 * topic is not stored */
    struct list_node consumers; /* guest.node */
    unsigned n_consumers;
    struct feed feed;           /* once READY */
    struct seek *seek;          /* while SEEKING */
    struct timer lonely;        /* a passing one without its reader */
    bool expiring;              /* messages that are too old are being looked for */
    struct consuming consuming; /* of all its consumers, since the topic was loaded */
    struct traffic dropped; /* for want of one that could take it; of a topic that is not stored */
};

struct subscription *subscription_find(const struct topic *t, const char *name); /* or NULL */
/* The same, and of a cursor that nobody has used yet since the topic was loaded. */
struct subscription *subscription_of(struct topic *t, const char *name);
/* Every cursor, also those in memory. */
void subscription_cursors(const struct topic *t, void (*each)(void *ctx, struct cursor *c),
                          void *ctx);
/* Admits, refuses or queues the consumer, now or once the cursor was made. */
void subscription_join(struct topic *t, struct topic_consumer *c);
/* The same with one that is there; and one that is there at once, cursor NULL: it has none. */
void subscription_take(struct subscription *s, struct topic_consumer *c);
struct subscription *subscription_new(struct topic *t, const char *name, struct cursor *cursor);
void subscription_leave(struct subscription *s, struct topic_consumer *c);
void subscription_delete(struct subscription *s, struct consumer_ask *a);        /* answers a */
void subscription_delete_cursor(struct subscription *s, struct consumer_ask *a); /* for kinds */
/* The same in two steps, for who deletes its cursor himself: all consumers are sent away. */
void subscription_begin_delete(struct subscription *s);
void subscription_deleted(struct subscription *s, enum err err); /* without err it is gone */
/* Of a terminated topic: who has seen all of it is told so. */
void subscription_check_end(struct subscription *s);
void subscription_limit(struct subscription *s); /* topic_limit() may say something else */
void subscription_grew(struct subscription *s);
void subscription_send_away(struct subscription *s);
/* For seek.c: those who waited come in; it may be gone. */
void subscription_moved(struct subscription *s);
void subscription_free(struct subscription *s); /* for topic.c: nobody is in it */

#endif
