/* consumer.h - one consumer on its subscription: gets entries, acknowledges them.
 *
 *   topic_consumer_ask(FLOW, ACK, ...) -> its subscription
 *   feed -> delivery -> deliver() -> MESSAGE frames -> topic_consumer_delivered() -> the feed goes
 * on
 *
 * A delivery goes back when the connection has taken it and has not more waiting than it
 * should: so a consumer that does not read its socket stops its own dispatch, and holds
 * memory for DELIVERIES_MAX deliveries and the connection's queue.
 *
 * Lifetime: that of a guest (guest.h).  An ask is the session's, lent until answered(); it
 *          always is, and before ended().  After guest_close() nothing may be asked: acks and
 *          permits that come later from the client are dropped by the session (clients.md 19).
 *          After go() asks are answered with ERR_NOT_READY.
 *          A delivery is the consumer's, lent from deliver() to topic_consumer_delivered(), which
 *          must come, also after guest_close().
 * Threads: guest.h: open, ask, delivered and the callbacks on the connection's loop.
 */
#ifndef BROKER_TOPIC_CONSUMER_H
#define BROKER_TOPIC_CONSUMER_H

#include "broker/dispatch/fleeting.h"
#include "broker/dispatch/shared.h"
#include "broker/managed_ledger/cursor.h"
#include "broker/managed_ledger/cursor_parts.h"
#include "broker/managed_ledger/managed_ledger.h"
#include "broker/topic/guest.h"
#include "broker/topic/topic_stats.h"

enum { DELIVERIES_MAX = 2 };

struct seek;
struct subscription;
struct topic_consumer;

enum consumer_type { CONSUMER_EXCLUSIVE, CONSUMER_SHARED };
const char *consumer_type_name(enum consumer_type type); /* as Pulsar calls it */

/* One entry as it goes to a client: from 0x0e01. */
struct delivery_item {
    struct position at;
    struct slice magic; /* for an entry that was stored without; else empty */
    struct slice body;
    uint32_t messages; /* that are not acknowledged */
    uint32_t redeliveries;
    unsigned n_left; /* words: which ones those are, when some of a batch are acknowledged */
    int64_t *left;
};

/* Of the batch there, the messages that are not acknowledged. */
struct ask_part {
    struct position at;
    unsigned n;
    uint64_t *words;
};

struct delivery {
    struct topic_consumer *consumer;
    struct task task;
    size_t bytes;  /* of the entries */
    size_t charge; /* the feed's */
    bool has_epoch;
    uint64_t epoch;
    struct list_node node; /* the session's while it has it, as the next */
    bool written;
    unsigned n;
    struct delivery_item item[];
};

enum consumer_ask_kind {
    ASK_FLOW,        /* permits */
    ASK_ACK,         /* at[0..n), and parts */
    ASK_ACK_UPTO,    /* at[0], and parts[0] behind it */
    ASK_REDELIVER,   /* at[0..n) of a Shared one; n 0: everything not acknowledged; epoch */
    ASK_UNSUBSCRIBE, /* force: other consumers are sent away, else it is busy */
    ASK_LAST_ID,     /* the topic's last message: answer in last, mark_delete */
    ASK_SEEK,        /* seek */
    ASK_REPORT,      /* what is known of it: answer in *report */
};

struct consumer_report {
    double out_rate, out_byte_rate, again_rate, acked_rate; /* messages and bytes a second */
    int64_t permits, unacked, backlog;                      /* backlog: of its subscription */
    bool blocked;                                           /* by what it has not acknowledged */
    char since[GUEST_SINCE_TEXT];
};

struct consumer_ask {
    enum consumer_ask_kind kind;
    uint64_t request; /* the session's */
    bool wanted;      /* the session's: its client waits for an answer */
    uint32_t permits;
    bool force;
    bool has_epoch;
    uint64_t epoch;

    enum err err; /* the outcome, as the next */
    struct position last, mark_delete;
    int32_t batch_index;            /* -1: the last message is in no batch */
    struct consumer_report *report; /* the ask's */

    struct task task; /* private, as the next: there and back */
    struct topic_consumer *consumer;
    struct cursor_ack_call ack;
    struct ml_read read;
    struct ml_cursor_call cursor_call;
    struct subscription *deleting;
    struct list_node node;
    struct seek *seek;      /* one block of memory with its words */
    struct ask_part *parts; /* one block of memory with their words */
    unsigned n_parts;
    unsigned n;
    struct position at[];
};

struct topic_consumer_front {
    struct guest_front guest;
    void (*deliver)(struct topic_consumer *c, struct delivery *d);
    void (*answered)(struct topic_consumer *c, struct consumer_ask *a);
    void (*reached_end)(struct topic_consumer *c); /* once: nothing more will come */
};

struct topic_consumer {
    struct guest guest;            /* front_ops is the `guest` of a topic_consumer_front */
    const char *subscription_name; /* outlives it, as the next */
    const char *name;
    enum consumer_type type;
    int32_t priority;
    const struct pairs *properties; /* of a new subscription, or NULL; outlives it */
    bool passing;                   /* its subscription is in memory only (a reader's) */
    struct position start;          /* the first entry of a new subscription */
    int64_t back_ms;                /* instead: what was published so long ago or later; 0: not */
    bool has_epoch;                 /* the client counts its redeliveries */
    uint64_t epoch;
    struct subscription *subscription; /* private, as the rest: the back's */
    struct list_node reading;          /* consumer_ask.node: ASK_LAST_ID */
    unsigned out;                      /* deliveries on their way */
    bool told_end;
    struct consuming consuming;
    struct task end_task;
    size_t returned; /* the charge of the delivery that has just come back */
    struct shared_consumer shared;
    struct fleeting_consumer fleeting;
    struct delivery *building; /* what it gets of the entries being sorted */
    struct topics_due due;     /* when that leaves, if nothing else says so */
};

void topic_consumer_open(struct topic_consumer *c);
void topic_consumer_ask(struct topic_consumer *c, struct consumer_ask *a);
void topic_consumer_ask_drop(struct consumer_ask **a); /* once answered */
void topic_consumer_delivered(struct topic_consumer *c, struct delivery *d);

/* ---- back ---- */
void topic_consumer_reached_end(struct topic_consumer *c); /* again is fine */
struct delivery *delivery_new(unsigned room);              /* gives; empty */
struct delivery *delivery_grow(struct delivery *d, unsigned room);
void delivery_item_drop(struct delivery_item *item);
void delivery_drop(struct delivery **d); /* one that was not sent */
/* One more of those to be delivered together, of `left` at most; takes what it holds. */
void topic_consumer_gets(struct topic_consumer *c, const struct delivery_item *item, unsigned left);
/* Of one that is in. */
void topic_consumer_report(const struct topic_consumer *c, struct consumer_report *out);
void topic_consumer_deliver(struct topic_consumer *c, struct delivery *d);
void topic_consumer_take(struct topic_consumer *c, struct consumer_ask *a); /* for kinds */
void topic_consumer_answer(struct consumer_ask *a, enum err err);           /* takes it */

static inline struct topic_consumer *topic_consumer_of(struct guest *g)
{
    return container_of(g, struct topic_consumer, guest);
}

#endif
