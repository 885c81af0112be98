/* gc_guard.h - may what is absent from the metadata be deleted?  Pure: no store, disk or clock.
 *
 *   here and not in a complete listing: ONCE --and not in the next--> TWICE
 *     --a direct read says absent--> TRASHED --the delay, then a direct read again--> GOING
 *   in a listing, or found by a read: forgotten; one that was in the trash is back
 *
 * What is remembered of the metadata store over restarts: its identity, its highest revision, and
 * a beacon, a random value that this bookie puts there anew with each round.  A store that is
 * another, has gone back, or shows a beacon that is not the last one is not believed: it was
 * emptied, or restored from an older copy that has not seen what was done since.  And when too
 * much vanishes at once nobody is believed.  Each of these halts, until an operator resumes.
 *
 * A listing that failed is none: it is not told here.
 */
#ifndef BOOKIE_GC_GUARD_H
#define BOOKIE_GC_GUARD_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { GC_INSTANCE_MAX = 64, GC_BEACON = 16 };

enum gc_halt {
    GC_GOES,
    GC_OTHER_STORE,
    GC_OLDER_STORE,
    GC_BEACON_LOST,
    GC_TOO_MANY,
    GC_MEMORY_LOST, /* what was remembered cannot be read */
    GC_HALTS
};
const char *gc_halt_text(enum gc_halt h);

/* Durable: gc_memory.h. */
struct gc_memory {
    bool is_known; /* false: nothing is remembered, what is seen next is believed */
    char instance[GC_INSTANCE_MAX + 1];
    uint64_t store; /* etcd's cluster id; 0: not told */
    uint64_t revision;
    uint8_t beacon[GC_BEACON]; /* what was put there; all zeros: none yet */
    uint8_t next[GC_BEACON];   /* what is being put there; either may be found */
    enum gc_halt halt;
};

/* What the store shows. */
struct gc_sight {
    const char *instance;
    uint64_t store, revision;
    const uint8_t *beacon; /* NULL: there is none */
};

enum gc_absence { GC_ONCE, GC_TWICE, GC_TRASHED, GC_GOING };

struct gc_absent {
    int64_t ledger;
    enum gc_absence how;
    bool is_listed_so; /* absent in the last listing, and not asked about since */
    uint64_t since_ms; /* in the trash */
};

struct gc_guard {
    struct gc_memory memory;
    double share;         /* of the ledgers here that may vanish at once... */
    uint64_t least;       /* ... or so many, if that is more */
    uint64_t delay_ms;    /* in the trash */
    bool lets_pass;       /* whatever vanishes in the next listing: an operator said so */
    uint64_t vanished;    /* in the last listing, for the first time */
    struct gc_absent *at; /* by ledger; owned */
    size_t n, room;
};

/* Sorted ledgers, and which of them a listing named. */
struct gc_ids {
    int64_t *at;
    bool *seen;
    size_t n, room;
};
void gc_ids_add(struct gc_ids *ids, int64_t ledger); /* in order, or sorted afterwards */
void gc_ids_sort(struct gc_ids *ids);
void gc_ids_see(struct gc_ids *ids, int64_t ledger); /* one that is not in it is nothing */
bool gc_ids_has(const struct gc_ids *ids, int64_t ledger);
void gc_ids_end(struct gc_ids *ids);

void gc_guard_end(struct gc_guard *g);
/* Before and after each listing; once halted it stays so. */
enum gc_halt gc_guard_saw(struct gc_guard *g, const struct gc_sight *s);
/* A complete listing: `here` was taken before it began.  each(): one that was in the trash is
 * back. */
enum gc_halt gc_guard_listed(struct gc_guard *g, const struct gc_ids *here,
                             void (*back)(void *ctx, int64_t ledger), void *ctx);
void gc_guard_remember(struct gc_guard *g, int64_t ledger, enum gc_absence how, uint64_t since_ms);

/* The next one after `after` that a direct read must be made of, or, GOING, that goes. */
const struct gc_absent *gc_guard_next(const struct gc_guard *g, int64_t after, uint64_t now_ms);
/* What it said; gives how the ledger is now. */
enum gc_absence gc_guard_asked(struct gc_guard *g, int64_t ledger, uint64_t now_ms);
void gc_guard_found(struct gc_guard *g, int64_t ledger); /* it is in the metadata after all */
void gc_guard_gone(struct gc_guard *g, int64_t ledger);
size_t gc_guard_trashed(const struct gc_guard *g);
void gc_guard_resume(struct gc_guard *g); /* the store is right as it is, and so is what vanished */

#endif
