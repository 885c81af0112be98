/* sim.h - many small lives of a ledger: one writer, two recoverers, two re-replicators, an auditor,
 * six bookies and a metadata store in one process, on one seeded clock.  The same seed always tells
 * the same story.
 *
 *   actor --core's effect--> request --network--> bookie --journal, sync--> reply --> core's event
 *
 * The cores are those of ledger/; everything around them is made worse than life: requests and
 * answers are late, lost or out of order, connections are cut, bookies crash and forget what was
 * not synced, turn writes down, misread, lose their disk; the metadata store is slow and sometimes
 * does not know what it did.  At HEAL everything works again: every ledger must get closed and
 * read, and be back at full replication.
 *
 * Threads: one.
 */
#ifndef TESTS_SIM_SIM_H
#define TESTS_SIM_SIM_H

#include <stdbool.h>
#include <stdint.h>

#include "common/err.h"
#include "ledger/facts.h"
#include "tests/sim/life.h"
#include "tests/sim/tally.h"

/* An entry as a bookie has it.  Its payload is a number: the how-manieth of the writer's. */
struct image {
    bool here;
    bool plain; /* by its writer, not by a recovery */
    entry_id lac;
    int64_t length;
    unsigned value;
};

struct record {
    bool exists;
    int64_t version;
    enum ledger_state state;
    entry_id last;
    int64_t length;
    unsigned n;
    struct fragment fragment[FRAGMENTS];
};

/* A request to a bookie, from the moment it is sent until its sender has an answer. */
struct request {
    unsigned generation; /* a slot is used again */
    bool waiting;        /* no answer yet, and nobody gave it up */
    unsigned actor, life;
    unsigned bookie, slot;
    unsigned ledger;
    entry_id entry;
    unsigned n; /* so many from there on are asked for at once; 0: just it */
    bool add;
    uint16_t flags;
    struct image image; /* an add's */
};

struct reply {
    enum err err;
    struct image image;
    entry_id entry;        /* the one that was there, of a READ -1 */
    unsigned got, damaged; /* of several; a bit each */
    unsigned value[BATCH];
};

/* What the metadata says of a ledger that lacks copies. */
struct sim_mark {
    bool here;
    int64_t version;  /* never used again, even when the mark is gone */
    uint32_t bookies; /* that it lacks, a bit each */
};

struct meta_request {
    bool put;
    enum { META_RECORD, META_MARK, META_UNMARK } of;
    struct sim_mark mark;
    uint64_t revision; /* of the store, when it answered */
    unsigned actor, life;
    unsigned change; /* of the writer's bookies, so many have gone before; 0: something else */
    unsigned ledger;
    int64_t expected;
    struct record record;
};

struct sim;

struct event {
    unsigned time, order;
    void (*run)(struct sim *s, struct event *e);
    unsigned a, b;
    struct reply reply;
};

/* What a bookie has told its journal, in order. */
struct journal_line {
    unsigned ledger;
    entry_id entry; /* ENTRY_NONE: the fence */
    struct image image;
    unsigned request, generation; /* to be answered once it is durable */
    struct reply reply;
};

/* After its disk was lost. */
enum identity {
    IDENTITY_SOUND,
    IDENTITY_REFUSED,  /* its cookie is not where it should be */
    IDENTITY_SCANNING, /* told to start: looks through the metadata, and does not answer yet */
    IDENTITY_LEAVING   /* decommissioned, until no ledger names it */
};

struct sim_bookie {
    bool down;
    enum identity identity;
    unsigned scanned;            /* ledgers, of the scan */
    unsigned newest;             /* ledgers that there were when it had nothing any more */
    uint32_t in_recovery;        /* ledgers, when it began to leave */
    uint32_t unhealed;           /* ledgers of which copies may be lacking here; a bit each */
    bool lost[LEDGERS][ENTRIES]; /* was durable, went with the disk, and is not said to be back */
    unsigned frozen_until;
    bool syncing;
    unsigned life;
    bool fenced[LEDGERS], durable_fenced[LEDGERS];
    struct image memory[LEDGERS][ENTRIES], disk[LEDGERS][ENTRIES];
    bool lost_fence[LEDGERS]; /* was durable; whoever counted on it does so still */
    unsigned lines;
    struct journal_line journal[JOURNAL];
};

/* What really happened, for the checks. */
struct truth {
    unsigned sent;                 /* entries 0 .. sent-1 were handed to a bookie */
    unsigned value[ENTRIES];       /* of each */
    unsigned confirmed;            /* entries 0 .. confirmed-1 */
    struct fragment tail;          /* when it was marked for recovery: what the writer knows */
    bool covered;                  /* enough bookies have a durable fence */
    uint32_t late_copies[ENTRIES]; /* bookies with a plain copy that came after that */
    bool sealed;                   /* closed by its writer */
    bool touched;                  /* something has changed since the last check */
};

struct actor;

struct sim {
    uint64_t seed;
    unsigned without; /* a bit a PLAIN */
    unsigned entries; /* at most; 0: as the seed has it */
    struct knobs knobs;
    unsigned now, order;
    bool loud;
    const char *fault; /* the invariant that was broken; the run ends */
    char text[256];
    unsigned n; /* heap */
    struct event *heap;
    struct request *requests;
    unsigned next_request;
    struct meta_request *meta_requests;
    unsigned next_meta;
    struct record *records;
    unsigned ledgers;
    struct truth *truth;
    struct sim_bookie *bookie;
    uint64_t revision; /* of all that the store has */
    struct sim_mark mark[LEDGERS];
    unsigned lock[LEDGERS];             /* an actor's number, or 0 */
    unsigned lost_at[LEDGERS][BOOKIES]; /* marked for it while it was away since then, or 0 */
    struct audit *audit;
    unsigned cut_until[ACTORS][BOOKIES];
    struct actor *actor[ACTORS];
    struct tally *tally;
};

/* world.c */
struct sim *sim_new(struct tally *tally); /* gives */
void sim_drop(struct sim **s);
/* One life; NULL, or what went wrong. */
const char *sim_run(struct sim *s, uint64_t seed, bool loud);
unsigned roll(struct sim *s, unsigned n); /* 0 .. n-1 */
bool chance(struct sim *s, unsigned per_mille);
bool healed(const struct sim *s);
struct event *later(struct sim *s, unsigned delay, void (*run)(struct sim *s, struct event *e));
void say(struct sim *s, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
void fault(struct sim *s, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
unsigned size_of(unsigned value); /* of a payload */

/* network.c */
void request_send(struct sim *s, const struct request *q);
void reply_send(struct sim *s, unsigned request, unsigned generation, const struct reply *r);
void network_cut(struct sim *s, unsigned actor, unsigned bookie);

/* bookie.c */
void bookie_take(struct sim *s, unsigned request);
void bookie_crash(struct sim *s, unsigned b);
void bookie_freeze(struct sim *s, unsigned b);

/* amnesia.c */
void bookie_wipe(struct sim *s, unsigned b);
bool bookie_is_here(const struct sim *s, unsigned b); /* registered */
bool bookie_is_out(const struct sim *s, unsigned b);  /* for good, as it seems */
/* Instead of "it is not here": unknown, as long as its disk is not made up for. */
enum err bookie_denial(const struct sim_bookie *k, unsigned ledger, enum err no);
void amnesia_healed(struct sim *s, unsigned b, unsigned ledger); /* all that it lacked is there */
/* It may have been fenced here, by who is forgotten. */
bool bookie_may_have_fenced(const struct sim *s, unsigned b, unsigned ledger);
bool record_names(const struct sim *s, const struct record *r, unsigned b);
bool amnesia_is_over(const struct sim *s);

/* audit.c */
void audit_start(struct sim *s);
void audit_meta(struct sim *s, const struct meta_request *m, enum err err);
void audit_drop(struct sim *s);

/* mending.c */
void mending_start(struct sim *s);
void mending_reply(struct sim *s, const struct request *q, const struct reply *r);
void mending_meta(struct sim *s, const struct meta_request *m, enum err err);
void mending_recovered(struct sim *s, unsigned actor, enum err err);
bool mending_is_over(const struct sim *s);

/* metadata.c: answers come to the actor's ..._meta() */
void meta_ask(struct sim *s, const struct meta_request *m);
struct ledger_facts facts_of(const struct sim *s, const struct record *r);

/* writer.c, recovery.c */
void writer_start(struct sim *s);
void writer_reply(struct sim *s, const struct request *q, const struct reply *r);
void writer_meta(struct sim *s, const struct meta_request *m, enum err err);
void writer_kill(struct sim *s);
bool writer_sleeps(const struct sim *s);
void writer_past(struct sim *s, unsigned ledger); /* what was confirmed in a first fragment */
void recovery_start(struct sim *s, unsigned actor);
void recovery_begin(struct sim *s, unsigned actor); /* of its ledger, for a mender */
void recovery_stop(struct sim *s, unsigned actor);
void recovery_reply(struct sim *s, const struct request *q, const struct reply *r);
void recovery_meta(struct sim *s, const struct meta_request *m, enum err err);
bool recovery_is_over(const struct sim *s, unsigned actor);
void actors_drop(struct sim *s);
unsigned actor_life(const struct sim *s, unsigned actor);

/* check.c */
void check_durable(struct sim *s, unsigned bookie, const struct journal_line *line);
void check_put(struct sim *s, const struct meta_request *m);
void check_covered(struct sim *s, unsigned ledger); /* a recoverer believes that it is */
void check_confirmed(struct sim *s, unsigned ledger, entry_id e, unsigned value);
void check_all(struct sim *s); /* after every step: the ledgers that were touched */
void check_unmarked(struct sim *s, unsigned ledger);
void check_end(struct sim *s);

#endif
