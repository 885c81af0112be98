/* exclusive.h - when a subscription with one consumer reads, and which entries it sends.
 *
 *   came, flow, grew, sent back, read done --> due? --> fx.read(from, at most so many)
 *   each entry of a read --> SEND | SKIP (a marker: acknowledge it) | LEAVE (no permits: later)
 *
 * Due is a state, never a remembered wake-up: a consumer, permits above zero, room on its
 * connection, something readable at or after `next`, and no read under way.
 *
 * Permits count messages and a batch is one entry: the last one may take them below zero
 * (clients.md 14).  Reads are sized by what entries held so far on average.
 *
 * A rewind (another consumer, a redelivery) cancels the read under way: what it would have
 * brought is brought again.
 *
 * Pure: no clock, no I/O.  Effects never call back into the core in the same stack.
 */
#ifndef BROKER_DISPATCH_EXCLUSIVE_H
#define BROKER_DISPATCH_EXCLUSIVE_H

#include <stdbool.h>
#include <stdint.h>

#include "broker/managed_ledger/position.h"
#include "common/err.h"

struct exclusive;

struct exclusive_fx {
    void (*read)(struct exclusive *x, struct position from, unsigned max_entries);
    void (*cancel_read)(struct exclusive *x);
    void (*retry_later)(struct exclusive *x); /* then exclusive_retry() */
};

enum exclusive_state {
    EXCLUSIVE_EMPTY, /* no consumer */
    EXCLUSIVE_IDLE,  /* nothing is due */
    EXCLUSIVE_READING,
    EXCLUSIVE_BACKING_OFF, /* a read failed: until retry */
};

enum exclusive_verdict { EXCLUSIVE_SEND, EXCLUSIVE_SKIP, EXCLUSIVE_LEAVE };

struct exclusive {
    const struct exclusive_fx *fx;
    enum exclusive_state state;
    unsigned batch_max; /* entries one read asks for */
    unsigned out_max;   /* deliveries on their way to the connection at a time */
    unsigned out;
    int64_t permits;      /* messages; below zero after a batch that was larger */
    struct position next; /* the first entry not looked at */
    struct position end;  /* the last that may be read */
    bool halted;          /* nothing is read until it goes on */
    bool dry;             /* the last read found nothing up to `end`: until it grows */
    bool leaving;         /* entries of this read are left for the next */
    unsigned per_entry;   /* messages, times 16, on average */
};

void exclusive_init(struct exclusive *x, const struct exclusive_fx *fx, unsigned batch_max,
                    unsigned out_max);
/* next: the first entry it may get; end: the last one there is. */
void exclusive_came(struct exclusive *x, struct position next, struct position end);
void exclusive_left(struct exclusive *x);
void exclusive_flow(struct exclusive *x, uint32_t permits);
void exclusive_grew(struct exclusive *x, struct position end);
void exclusive_rewind(struct exclusive *x, struct position next);
void exclusive_retry(struct exclusive *x);
void exclusive_halt(struct exclusive *x, bool halted);

/* Each entry of a finished read in order, then exclusive_read_done(). */
enum exclusive_verdict exclusive_entry(struct exclusive *x, struct position at, uint32_t messages,
                                       bool marker);
/* sent: a delivery is on its way; next: where the read ended. */
void exclusive_read_done(struct exclusive *x, enum err err, struct position next, bool sent);
void exclusive_delivered(struct exclusive *x); /* one is with the kernel, or was dropped */

#endif
