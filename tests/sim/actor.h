/* actor.h - what the files of the actors share. */
#ifndef TESTS_SIM_ACTOR_H
#define TESTS_SIM_ACTOR_H

#include "ledger/appender.h"
#include "ledger/changer.h"
#include "ledger/closer.h"
#include "ledger/copier.h"
#include "ledger/mark_work.h"
#include "ledger/reader.h"
#include "ledger/recoverer.h"
#include "ledger/replicator.h"
#include "tests/sim/sim.h"

struct actor {
    struct sim *sim;
    unsigned number;
    unsigned life; /* answers to an earlier one are not heard */
    unsigned ledger;
    struct record record; /* as last seen in the metadata */
    unsigned held;        /* items that the cores have and must give back */

    /* The writer. */
    enum { CREATING, LOOKING, WRITING, ENDING, CLOSING, STOPPED } writer;
    struct appender appender;
    struct appender_slot ring[ENTRIES];
    struct closer closer;
    struct changer changer;
    unsigned changes; /* begun; answers to an earlier one are not heard */
    bool change_ended;
    enum err change_err;
    unsigned next, confirmed; /* values, over all ledgers */
    unsigned close_at;        /* the ledger's entries after which it closes by itself */

    /* A recoverer, and reader of what it has closed. */
    enum { IDLE, FINDING, RECOVERING, READING, OVER } recovery;
    struct recoverer recoverer;
    struct entry_reader reader;
    bool ended;
    enum err err;
    entry_id last, delivered;
    int64_t length;

    /* A re-replicator, or the healer. */
    enum { MEND_RESTING, MEND_MARK, MEND_LEDGER, MEND_OVER } mend;
    struct mark_work work;
    struct replicator replicator;
    struct copier *copier;
    uint32_t here, leaving, marked; /* bookies, as it knows */
    uint64_t census;                /* the store's revision that it knows of */
    uint32_t may_fence, scrubbed;   /* ledgers, a bit each */
    struct fragment from;
    uint32_t to;
    unsigned to_life; /* of that bookie, when the copy began */
    bool copying, copied, mended;
    enum err copy_err, mend_err;
};

/* Numbers as items of the cores. */
static inline void *item_of(unsigned value)
{
    return (void *)((uintptr_t)value + 1);
}
static inline unsigned value_of(const void *item)
{
    return (unsigned)((uintptr_t)item - 1);
}

/* recovery.c */
void recovery_take(struct actor *a, const struct request *q, const struct reply *r);

#endif
