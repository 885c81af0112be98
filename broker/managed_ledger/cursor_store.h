/* cursor_store.h - making acknowledgements durable: what to write next, as a core without I/O.
 *
 *            ack               created            appended             pointed
 *   IDLE ----------> CREATING ----------> FILLING ----------> POINTING --------> IDLE
 *    |  ^                ^ a new ledger      a full snapshot     the node names it
 *    |  |                |
 *    v  | appended       | the ledger has failed, or is full
 *   WRITING -------------+
 *
 *   PAUSED:  until bookies come or time passes, then on as before
 *   LOOKING: an answer was lost or another owner seems near: what does the node say?
 *   ENDED:   closed, removed or taken by another owner
 *
 * One write is in flight; what is acknowledged meanwhile goes into the next.  A ledger begins
 * with a snapshot and only counts once the node names it, so that nothing is confirmed that a
 * reader would not find.  After a failure everything goes into a new ledger: a snapshot knows
 * all, so lost writes need not be remembered.  The node keeps a mark-delete position too, for
 * the day its ledger cannot be read; a reset below that is told to the node before it counts.
 * Properties are in the node alone, so that a change of them is, too.  Without a ledger to write to
 * the node then gets the whole state again, if it fits.
 *
 * Each event may have one effect that answers later by another event; effects never call back
 * in the same stack.
 */
#ifndef BROKER_MANAGED_LEDGER_CURSOR_STORE_H
#define BROKER_MANAGED_LEDGER_CURSOR_STORE_H

#include <stdbool.h>
#include <stdint.h>

#include "broker/managed_ledger/cursor_acks.h"
#include "common/buf.h"
#include "common/err.h"

#define CURSOR_STORE_NO_LEDGER ((int64_t)-1)
/* Holes that a node may hold, and batches of which some is acknowledged, by their words. */
enum { CURSOR_STORE_INLINE_MAX = 1000 };

enum cursor_store_state {
    STORE_IDLE,
    STORE_CREATING,
    STORE_FILLING,
    STORE_POINTING,
    STORE_LOOKING,
    STORE_WRITING,
    STORE_PAUSED,
    STORE_ENDED,
};

/* What the node is to say. */
enum cursor_store_target { TARGET_NONE, TARGET_LEDGER, TARGET_INLINE, TARGET_GONE };
enum cursor_store_ending { ENDING_NOT, ENDING_CLOSE, ENDING_DELETE };
/* What it says: what we last tried to write; what was there before; something else. */
enum cursor_store_seen { SEEN_WRITTEN, SEEN_BEFORE, SEEN_OTHER };

struct cursor_store;
struct cursor_store_ops {
    void (*create)(struct cursor_store *s); /* a ledger -> created() */
    /* Takes the slices, borrows the array; one after the other -> appended(). */
    void (*append)(struct cursor_store *s, int64_t ledger, const struct slice *entries, unsigned n);
    /* Compare and set the node; `ledger` is for TARGET_LEDGER -> pointed(). */
    void (*point)(struct cursor_store *s, enum cursor_store_target what, int64_t ledger);
    void (*look)(struct cursor_store *s);                    /* read the node -> looked() */
    void (*pause)(struct cursor_store *s, enum err why);     /* -> resume() */
    void (*gather)(struct cursor_store *s);                  /* wait a moment -> due() */
    void (*drop)(struct cursor_store *s, int64_t ledger);    /* its handle; no answer */
    void (*discard)(struct cursor_store *s, int64_t ledger); /* and delete it; no answer */
    struct slice (*form)(struct cursor_store *s); /* gives a PositionInfo; empty: too large */
    void (*durable)(struct cursor_store *s);      /* s->durable has moved */
    void (*ended)(struct cursor_store *s, enum err err); /* no further effect */
};

struct cursor_store {
    const struct cursor_store_ops *ops;
    struct cursor_acks acks;
    int64_t max_entries;
    uint64_t replay_bytes; /* of changes that a reader may always have to apply */
    enum cursor_store_state state;
    enum cursor_store_state paused_in; /* CREATING, POINTING or LOOKING */
    enum cursor_store_target target;
    enum cursor_store_ending ending;
    bool passing;             /* nothing is written: all of it counts at once */
    bool clean;               /* the node says all of it, in Pulsar's form */
    int64_t named;            /* by the node */
    struct position fallback; /* in the node */
    int64_t current;          /* takes writes; named, too */
    int64_t next;             /* is being filled */
    int64_t entries, roll_at; /* of current */
    int64_t snapshot;         /* its last complete one */
    uint64_t snapshot_bytes, delta_bytes;
    struct cursor_set fresh;       /* acknowledged since the last write, beyond the mark-delete */
    struct cursor_set fresh_parts; /* batches of which more was */
    bool reset;                    /* since the last write */
    bool relabel;                  /* what users wrote on the node differs from what it says */
    bool gathering, due;
    bool behind; /* the node is, since the store was put back; the last two are what it says */
    bool anew;   /* what is under way was begun since then */
    int64_t behind_named;
    struct position behind_fallback;
    uint64_t seq, wanted; /* changes; and up to where somebody waits */
    uint64_t durable;
    struct position durable_mark_delete;
    struct { /* what is under way */
        uint64_t seq;
        struct position mark_delete;
        bool reset, relabel, whole, final;
        unsigned entries;
        uint64_t bytes;
    } out;
    unsigned failures; /* in a row */
};

/* acks: put together already; taken.  `named` and `fallback` are what the node says. */
void cursor_store_init(struct cursor_store *s, const struct cursor_store_ops *ops,
                       const struct cursor_acks *acks, int64_t max_entries, int64_t named,
                       struct position fallback, bool clean);
void cursor_store_drop(struct cursor_store *s);

/* ---- commands ---- */

void cursor_store_ack(struct cursor_store *s, const struct position *at, unsigned n);
/* False: there is no room to remember it, or it comes too late. */
bool cursor_store_ack_part(struct cursor_store *s, struct position at, const uint64_t *words,
                           unsigned n);
void cursor_store_ack_upto(struct cursor_store *s, struct position p);
void cursor_store_reset(struct cursor_store *s, struct position mark_delete);
/* The owner puts other properties into the node from now on: it is to be written. */
void cursor_store_relabel(struct cursor_store *s);
/* Somebody waits for all until now: true when it is durable already. */
bool cursor_store_want(struct cursor_store *s);
/* Nothing but answers may come afterwards, until ended(). */
void cursor_store_end(struct cursor_store *s, enum cursor_store_ending how);

/* ---- answers ---- */

void cursor_store_created(struct cursor_store *s, enum err err, int64_t ledger);
void cursor_store_appended(struct cursor_store *s, enum err err);
void cursor_store_pointed(struct cursor_store *s, enum err err);
void cursor_store_looked(struct cursor_store *s, enum err err, enum cursor_store_seen seen);
void cursor_store_resume(struct cursor_store *s);
void cursor_store_due(struct cursor_store *s);

/* The metadata store was put back, and the node is from before what was written: `named` and
 * `fallback` are what it says now.  All of it is written again, over that.  In place of looked(),
 * or at any time but while the node is written or looked at. */
void cursor_store_rewound(struct cursor_store *s, int64_t named, struct position fallback);

#endif
