/* appender.h - appending to one ledger by quorum, as a pure state machine.  bookkeeper.md D.2.
 *
 *   append --> in flight --> Qa acks, of it and of all before --> confirmed, in order
 *                 |
 *                 +-- a bookie has failed, a spare is there --> CHANGING: nothing is confirmed
 *                 |      the metadata names the spare --> reset all, resend all, go on
 *                 +-- none is there, Qa others are: go on without it, and look for one
 *                 +-- nor Qa others --> FAILED: what is not confirmed fails, in order;
 *                 |                     lac stays as it is, for the close to write
 *                 +-- a bookie is fenced --> FENCED: the same, for good
 *
 * Slow is not dead: a bookie that has not answered yet ends nothing as long as Qa others do.
 *
 * Memory:  the ring is the owner's; appender_move() takes a larger one.  An item is the owner's
 *          word for an entry, given back by confirm() or fail().
 * Threads: one at a time.  An effect must not call back into the appender.
 * Limits:  the ring, and window_bytes (one entry is always let in): then ERR_BUSY.
 *          `changes_max` changes of bookies: then it fails, and goes on in another ledger.
 */
#ifndef LEDGER_APPENDER_H
#define LEDGER_APPENDER_H

#include <stddef.h>

#include "common/err.h"
#include "ledger/facts.h"

enum appender_state { APPENDER_OPEN, APPENDER_CHANGING, APPENDER_FAILED, APPENDER_FENCED };

struct appender_add {
    void *item;
    entry_id entry;
    entry_id lac;   /* last add confirmed, as known when this is sent */
    int64_t length; /* of the ledger, up to and with this entry */
};

struct appender_effects {
    /* To these slots of appender.tail; what was under way to another bookie there is void. */
    void (*send)(void *ctx, uint32_t slots, const struct appender_add *add);
    void (*confirm)(void *ctx, entry_id e, void *item);
    void (*fail)(void *ctx, entry_id e, void *item, enum err why);
    /* A bookie for `slot` of `next` that is none of its members, or false.  `must`: rather one
     * that failed of late than none. */
    bool (*spare)(void *ctx, const struct fragment *next, unsigned slot, bool must, uint32_t *out);
    /* Put `next` into the metadata, as the last fragment or, when it begins where the last one
     * does, in its place (changer.h); appender_changed() answers. */
    void (*change)(void *ctx, const struct fragment *next);
    /* It does without these slots from now on, for want of bookies; 0: with all again. */
    void (*lack)(void *ctx, uint32_t slots);
};

struct appender_slot {
    void *item;
    uint32_t acks; /* a bit a slot of the ensemble */
    uint32_t lost; /* refused there, and not sent again since */
    uint32_t size;
    int64_t length;
};

struct appender_conf {
    size_t window_bytes;
    unsigned changes_max;
    bool delay_changes; /* a failed bookie is replaced only when an entry cannot do without */
};

struct appender {
    struct quorum quorum;
    enum appender_state state;
    enum err why;           /* FAILED, FENCED */
    struct fragment tail;   /* where entries go; as the metadata has it */
    struct fragment wanted; /* CHANGING: what it shall be */
    uint32_t failed;        /* slots of tail whose bookie has failed and not answered since */
    uint32_t lacking;       /* of those, the ones that the owner was told of */
    unsigned changes;
    entry_id next;  /* what the next append will be called */
    entry_id lac;   /* 0..lac are safe */
    int64_t length; /* payload bytes of 0..lac */
    size_t bytes;   /* in flight */
    size_t room;    /* of the ring, a power of two */
    struct appender_slot *ring;
    struct appender_conf conf;
    const struct appender_effects *effects;
    void *ctx;
};

void appender_init(struct appender *a, struct quorum q, const struct fragment *tail,
                   const struct appender_conf *conf, const struct appender_effects *effects,
                   void *ctx);
/* A ring of `room` (a power of two, more than are in flight); the old one may be freed then. */
void appender_move(struct appender *a, struct appender_slot *ring, size_t room);

/* ERR_BUSY: the window is full.  Once failed, why.  Nothing has changed then. */
MUST_CHECK enum err appender_append(struct appender *a, void *item, uint32_t size);
/* Of whoever was sent it, however late. */
void appender_acked(struct appender *a, uint32_t bookie, entry_id e);
void appender_refused(struct appender *a, uint32_t bookie, entry_id e,
                      enum err why); /* or did not answer */
/* ERR_OK: the metadata says what was wanted.  Of class FATAL: another owner has the ledger. */
void appender_changed(struct appender *a, enum err err);
void appender_try(struct appender *a);                /* there may be a spare now */
void appender_stop(struct appender *a, enum err why); /* by the owner: it wants to close */

#endif
