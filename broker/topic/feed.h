/* feed.h - the hands of a subscription's dispatcher: reads, sends, acknowledges markers, waits.
 *
 *   feed.c            what those that read share: an entry as a client gets it, reads, retries
 *   feed_exclusive.c  one consumer     (dispatch/exclusive.h)
 *   feed_shared.c     several of them  (dispatch/shared.h)
 *   feed_fleeting.c    of a topic that is not stored: nothing to read, whatever the type
 *
 * A feed keeps its kind while a consumer is there; feed_become() changes it when none is.  What
 * a Shared one knows (redelivery counts) outlives its consumers, not that change.
 *
 * Threads: the topic's loop.
 */
#ifndef BROKER_TOPIC_FEED_H
#define BROKER_TOPIC_FEED_H

#include "broker/dispatch/exclusive.h"
#include "broker/dispatch/fleeting.h"
#include "broker/dispatch/shared.h"
#include "broker/managed_ledger/managed_ledger.h"
#include "broker/topic/consumer.h"

struct feed;
struct explanation;
struct publish;

struct feed_ops {
    void (*begin)(struct feed *f);
    void (*end)(struct feed *f); /* no consumer is there */
    void (*join)(struct feed *f, struct topic_consumer *c);
    void (*leave)(struct feed *f, struct topic_consumer *c);
    void (*flow)(struct feed *f, struct topic_consumer *c, uint32_t permits);
    /* n 0: everything that c has not acknowledged */
    void (*redeliver)(struct feed *f, struct topic_consumer *c, const struct position *at,
                      unsigned n);
    void (*delivered)(struct feed *f, struct topic_consumer *c);
    void (*acked)(struct feed *f, const struct position *at, unsigned n);
    void (*acked_part)(struct feed *f, struct position at, uint32_t left);
    void (*acked_upto)(struct feed *f, struct position at); /* by somebody who is no consumer */
    void (*rewind)(struct feed *f); /* its cursor was reset, whether a consumer is there or not */
    void (*grew)(struct feed *f);
    void (*halt)(struct feed *f, bool halted);
    void (*limit)(struct feed *f); /* topic_limit() may say something else; or NULL */
    void (*retry)(struct feed *f);
    void (*batch)(
        struct feed *f,
        unsigned max); /* entries one read asks for, from now on; NULL: it reads nothing */
    int64_t (*permits)(const struct feed *f, const struct topic_consumer *c);
    void (*explain)(struct feed *f, struct explanation *e);
};
extern const struct feed_ops feed_exclusive, feed_shared, feed_fleeting;

struct feed {
    enum consumer_type type;
    const struct feed_ops *ops;
    union {
        struct exclusive exclusive;
        struct shared *shared;
        struct fleeting fleeting;
    };
    bool halted;                     /* of one that passes: nothing goes to anybody */
    struct topic_consumer *consumer; /* of an exclusive one; NULL: none */
    struct ml_read read;
    void (*done)(struct ml_read *r, enum err err, struct ml_entry *entries, unsigned n,
                 struct position next); /* the kind's, of `read` */
    struct topics_read turn;
    size_t entry_bytes;  /* of the last read, an entry; 0: not known */
    uint64_t read_since; /* loop time */
    struct timer retry;
};

void feed_init(struct feed *f); /* Exclusive, until it becomes something else */
void feed_become(struct feed *f, enum consumer_type type);
void feed_drop(struct feed *f);

/* To one who can take it now, or nobody; borrows m. */
void feed_pass(struct feed *f, const struct publish *m);

/* ---- for the kinds ---- */

struct subscription *feed_subscription(struct feed *f);
const struct topics_env *feed_env(struct feed *f);

struct feed_cut {
    struct delivery_item item;
    bool marker;      /* not for a client: acknowledged at once */
    struct view uuid; /* of a chunk: borrows from the entry */
    bool last_chunk;
};
/* An entry as a client gets it; what is acknowledged of it is not counted. */
void feed_cut(struct feed *f, const struct ml_entry *e, struct feed_cut *out);
void feed_cut_drop(struct feed_cut *cut);

struct position feed_first_wanted(struct feed *f);
/* From f->read.from and f->read.only; its done() is the kind's. */
void feed_read(struct feed *f, unsigned max_entries);
/* dispatcherMaxReadBatchSize; of small entries as many more as BATCH_BYTES hold: a delivery goes
 * through two loops, and a hundred small messages a turn would be all that a consumer gets. */
enum { BATCH_BYTES = 1024 * 1024, BATCH_MAX = 2048 };
static inline unsigned feed_batch_of(unsigned set, size_t entry_bytes) /* 0: not known */
{
    const size_t fit = entry_bytes ? BATCH_BYTES / entry_bytes : 0;
    const unsigned most = fit < BATCH_MAX ? (unsigned)fit : BATCH_MAX;

    return most > set ? most : set;
}
unsigned feed_batch(struct feed *f);
void feed_read_failed(struct feed *f, enum err err);
void feed_cancel_read(struct feed *f);
void feed_retry_later(struct feed *f);

#endif
