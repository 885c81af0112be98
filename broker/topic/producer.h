/* producer.h - one producer on its topic: stores what it sends, in the order it was sent.
 *
 *   topic_producer_publish -> [held?] -> managed_ledger_add -> published(), in order
 *
 * A publish is held back, behind the producer's own and nobody else's, while
 *   - conf max_pending_publishes of this producer are with the managed ledger,
 *   - the loop's publish budget is used up, or
 *   - the managed ledger takes no more (bookies are missing: it waits without an error).
 * The session bounds how much a producer may have under way at all (session/put_off.h).
 *
 * Once a publish was refused, all later ones are: a producer that was told to go stores
 * nothing more, so what its client sends again after coming back is in order.
 *
 * It is let in as access.h says.  One that waits for the topic is in as a guest, told so by
 * opened() with `queued` set, and hears admitted() later, or go() with the reason in `gone`.  Its
 * initial subscription, if it names one, is there and durable before it is let in.
 *
 * Lifetime: that of a guest (guest.h).  The session embeds it and keeps it until ended(); a
 *          publish is the session's, lent from topic_producer_publish() to published(), which
 *          always comes, and before ended().  Publishes after guest_close() are not allowed;
 *          after go() they come back with ERR_CLOSED.
 * Threads: guest.h: open, publish and the callbacks on the connection's loop.
 */
#ifndef BROKER_TOPIC_PRODUCER_H
#define BROKER_TOPIC_PRODUCER_H

#include <stdatomic.h>

#include "common/table.h"

#include "broker/managed_ledger/managed_ledger.h"
#include "broker/topic/access.h"
#include "broker/topic/guest.h"
#include "broker/topic/topic_stats.h"

struct topic_producer;

struct publish {
    struct ml_add add; /* payload, crc and messages are the session's to fill and to drop */
    size_t bytes;      /* what it is charged with */
    bool dropped;      /* before it got here: only counted, and without its payload */
    uint64_t came_us;  /* 0: it never got here */
    enum err err;      /* the outcome, as the next */
    struct position at;
    struct task task; /* private, as the rest: there and back */
    struct topic_producer *producer;
    struct list_node node; /* the session's, then among the held, then the session's again */
};

struct topic_producer_front {
    struct guest_front guest;
    void (*published)(struct topic_producer *p, struct publish *m);
    void (*admitted)(struct topic_producer *p); /* one that was queued */
};

struct topic_producer {
    struct guest guest; /* front_ops is the `guest` of a topic_producer_front */
    uint64_t id;        /* its client's */
    char *name;         /* wanted, or NULL: set at opened(); the front's to free after ended() */
    enum access_mode mode;
    int64_t asked_epoch; /* it comes back with, or ACCESS_NO_EPOCH */
    const char *initial; /* subscription, or NULL; outlives the guest */

    bool queued;   /* set at opened() */
    int64_t epoch; /* set at opened() or admitted(): its own as an owner, or ACCESS_NO_EPOCH */
    struct {
        enum err err;
        const char *why; /* constant */
    } gone;              /* set at go() of one that was queued and not admitted */
    atomic_bool put_off; /* the front's word: there is no room for what it sends */

    struct list_node held; /* private, as the rest: the back's */
    UT_hash_handle hh;     /* in topic.by_name, while it is in */
    unsigned in_flight;
    struct traffic in;
    struct topics_held waiting;
    struct traffic dropped; /* of one on a topic that is not stored */
    struct access_seat seat;
    struct ml_cursor_call making;
    struct task admitted;
};

void topic_producer_open(struct topic_producer *p); /* after its fields were set */
void topic_producer_publish(struct topic_producer *p, struct publish *m);

/* ---- for kinds ---- */
void topic_producer_published(struct publish *m, enum err err); /* gives it back */
void topic_producer_ask(struct topic_producer *p);              /* as access.h says */
void topic_epoch_stored(struct topic *t, enum err err);
void topic_producer_store(struct topic_producer *p, struct publish *m); /* in a managed ledger */
void topic_producer_stored_welcome(struct topic_producer *p); /* and initial subscription */

/* ---- for topic.c ---- */
void topic_producers_ready(struct topic *t); /* it was opened */
/* Those who publish are told to go, those who wait are refused, as is who comes later. */
void topic_producers_go(struct topic *t, enum err err, const char *why);

static inline struct topic_producer *topic_producer_of(struct guest *g)
{
    return container_of(g, struct topic_producer, guest);
}

#endif
