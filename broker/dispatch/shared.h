/* shared.h - which of several consumers gets which entry of a Shared subscription.
 *
 *              read, in order         sent             acknowledged
 *   [ new ] ------------------> ( ) ---------> [ held ] ----------> forgotten
 *                                |               | given back, or its consumer left
 *                    not sent    v               v
 *                             [       replay       ] --asked--> read again, before new ones
 *
 * Each entry that was looked at and is not acknowledged is known, in exactly one place: held by
 * one consumer, in `replay`, or in `asked` (of the replay read under way).  So none is lost and
 * none is at two consumers.
 *
 * Who gets the next one: consumers that can take one (permits above zero, not blocked by its
 * unacknowledged messages, room on its connection) of the best level (`priority`, 0 first), by
 * turns of `turn_max` entries; chunks of one message go to one consumer (pins.h).
 *
 * Permits and unacknowledged messages count messages; an entry is a batch, so that both may
 * overshoot by one.  At `max_unacked` a consumer, and at `max_unacked_all` everybody, is blocked
 * until half is acknowledged or given back.
 *
 * Due is a state, never a remembered wake-up: shared_check() derives every counter anew.
 *
 * Pure: no clock, no I/O.  Effects never call back into the core in the same stack.
 * Memory: consumers are embedded in their owners, from shared_came() to shared_left().
 * Limits: known_max entries are known; with more nothing new is read.
 */
#ifndef BROKER_DISPATCH_SHARED_H
#define BROKER_DISPATCH_SHARED_H

#include <stdbool.h>
#include <stdint.h>

#include "broker/dispatch/pins.h"
#include "broker/managed_ledger/cursor_set.h"
#include "common/err.h"
#include "common/list.h"
#include "common/table.h"

struct shared;

struct shared_fx {
    void (*read)(struct shared *s, struct position from, unsigned max_entries);
    /* Of the entries in `only`, which stays (and may lose some) until the read is done. */
    void (*replay)(struct shared *s, const struct cursor_set *only, unsigned max_entries);
    void (*cancel_read)(struct shared *s);
    void (*retry_later)(struct shared *s); /* then shared_retry() */
};

struct shared_conf {
    unsigned batch_max; /* entries one read asks for */
    unsigned turn_max;  /* entries a consumer gets in a row */
    unsigned out_max;   /* deliveries on their way to one connection at a time */
    unsigned known_max;
    int64_t max_unacked, max_unacked_all; /* messages; 0: no limit */
};

enum shared_state {
    SHARED_IDLE,
    SHARED_READING,   /* new entries */
    SHARED_REPLAYING, /* those in `asked` */
    SHARED_BACKING_OFF,
};

struct shared_consumer {
    int32_t priority;
    int64_t permits; /* messages; below zero after a batch that was larger */
    int64_t unacked; /* messages of what it holds */
    bool blocked;
    unsigned out;
    bool sending;           /* something of the read under way goes to it */
    bool takes;             /* is counted in `takers` */
    struct list_node node;  /* shared.consumers */
    struct list_node holds; /* known.node */
};

struct known;
struct shared {
    const struct shared_fx *fx;
    struct shared_conf conf;
    enum shared_state state;
    bool halted;
    struct list_node consumers; /* by priority, then as they came */
    unsigned n_consumers, takers;
    struct shared_consumer *turn; /* whose it is, or was last */
    unsigned given;               /* entries, in this turn */
    struct position next;         /* the first entry that was never looked at */
    struct position end;          /* the last that may be read */
    bool dry;                     /* the last read found nothing up to `end`: until it grows */
    struct known *known, *spare;
    unsigned spares;
    struct cursor_set replay, asked;
    unsigned n_replay, n_asked;
    unsigned seen, sent; /* entries of the read under way */
    bool stuck;          /* a replay found no taker, and none has changed since */
    int64_t unacked;     /* messages */
    bool blocked;
    unsigned per_entry; /* messages, times 16, on average */
    struct pins pins;
};

/* One entry of a read.  `messages`: those of it that are not acknowledged yet. */
struct shared_seen {
    struct position at;
    uint32_t messages;
    bool marker;
    struct view uuid; /* of a chunk; else empty */
    bool last_chunk;
};
enum shared_verdict { SHARED_SEND, SHARED_SKIP, SHARED_LEAVE };
struct shared_choice {
    enum shared_verdict verdict;
    struct shared_consumer *to; /* SEND */
    uint32_t redeliveries;
};

void shared_init(struct shared *s, const struct shared_fx *fx, const struct shared_conf *conf);
void shared_drop(struct shared *s); /* no consumer is there */

void shared_came(struct shared *s, struct shared_consumer *c, int32_t priority);
void shared_left(struct shared *s, struct shared_consumer *c); /* what it held is replayed */
void shared_flow(struct shared *s, struct shared_consumer *c, uint32_t permits);
void shared_grew(struct shared *s, struct position end);
/* Begins anew at `next`: forgets what it knew, holders included. */
void shared_rewind(struct shared *s, struct position next);
void shared_halt(struct shared *s, bool halted); /* nothing is read until it goes on */
void shared_limit(struct shared *s, const struct shared_conf *conf); /* other limits, from now on */
void shared_retry(struct shared *s);

void shared_acked(struct shared *s, const struct position *at, unsigned n);
void shared_acked_upto(struct shared *s, struct position at);
/* Of a batch: `left` messages are not acknowledged. */
void shared_acked_part(struct shared *s, struct position at, uint32_t left);
/* Those of `at` that c holds are sent again, to anybody, and counted; n 0: all it holds. */
void shared_redeliver(struct shared *s, struct shared_consumer *c, const struct position *at,
                      unsigned n);

/* Each entry of a finished read in order, then shared_read_done(): `next`: where it ended. */
struct shared_choice shared_entry(struct shared *s, const struct shared_seen *e);
void shared_read_done(struct shared *s, enum err err, struct position next);
/* One delivery is with the kernel, or was dropped. */
void shared_delivered(struct shared *s, struct shared_consumer *c);

bool shared_takes(const struct shared *s, const struct shared_consumer *c);
bool shared_is_full(const struct shared *s);
unsigned shared_n_known(const struct shared *s);
/* The redeliveries of an entry, 0 when it is not known. */
uint32_t shared_redeliveries(const struct shared *s, struct position at);
void shared_check(const struct shared *s); /* asserts all that must hold; walks all of it */

#endif
