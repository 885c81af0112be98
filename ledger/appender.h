/* appender.h - appending to one ledger by quorum, as a pure state machine.
 *
 *   append --> in flight --> Qa acks, of it and of all before --> confirmed, in order
 *                 |
 *                 +-- a bookie has failed --> FAILED: what is not confirmed fails, in order;
 *                 |                           lac stays as it is, for the close to write
 *                 +-- a bookie is fenced  --> FENCED: the same, for good
 *
 * Slow is not dead: a bookie that has not answered yet ends nothing as long as Qa others do.
 *
 * Memory:  the ring is the owner's; appender_move() takes a larger one.  An item is the owner's
 *          word for an entry, given back by confirm() or fail().
 * Threads: one at a time.  An effect must not call back into the appender.
 * Limits:  the ring, and window_bytes (one entry is always let in): then ERR_BUSY.
 */
#ifndef LEDGER_APPENDER_H
#define LEDGER_APPENDER_H

#include <stddef.h>

#include "common/err.h"
#include "ledger/quorum.h"

enum appender_state { APPENDER_OPEN, APPENDER_FAILED, APPENDER_FENCED };

struct appender_add {
    void *item;
    entry_id entry;
    entry_id lac;   /* last add confirmed, as known when this is sent */
    int64_t length; /* of the ledger, up to and with this entry */
};

struct appender_effects {
    void (*send)(void *ctx, uint32_t slots, const struct appender_add *add);
    void (*confirm)(void *ctx, entry_id e, void *item);
    void (*fail)(void *ctx, entry_id e, void *item, enum err why);
};

struct appender_slot {
    void *item;
    uint32_t acks; /* a bit a slot of the ensemble */
    uint32_t size;
};

struct appender {
    struct quorum quorum;
    enum appender_state state;
    enum err why;   /* FAILED, FENCED */
    entry_id next;  /* what the next append will be called */
    entry_id lac;   /* 0..lac are safe */
    int64_t length; /* payload bytes of 0..lac */
    size_t bytes;   /* in flight */
    size_t window_bytes;
    size_t room; /* of the ring, a power of two */
    struct appender_slot *ring;
    const struct appender_effects *effects;
    void *ctx;
};

void appender_init(struct appender *a, struct quorum q, size_t window_bytes,
                   const struct appender_effects *effects, void *ctx);
/* A ring of `room` (a power of two, more than are in flight); the old one may be freed then. */
void appender_move(struct appender *a, struct appender_slot *ring, size_t room);

/* ERR_BUSY: the window is full.  Once failed, why.  Nothing has changed then. */
MUST_CHECK enum err appender_append(struct appender *a, void *item, uint32_t size);
void appender_acked(struct appender *a, unsigned slot, entry_id e);
void appender_refused(struct appender *a, unsigned slot, enum err why); /* or did not answer */
void appender_stop(struct appender *a, enum err why); /* by the owner: it wants to close */

#endif
