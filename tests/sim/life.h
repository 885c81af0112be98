/* life.h - how large a life is, what may go wrong in it, and what of that can be left out. */
#ifndef TESTS_SIM_LIFE_H
#define TESTS_SIM_LIFE_H

#include <stdbool.h>

#include "ledger/quorum.h"

enum {
    BOOKIES = 6,
    ACTORS = 7, /* 0 writes, 1 and 2 recover and read, 3 and 4 re-replicate */
    WRITER = 0,
    RECOVERERS = 1,
    MENDERS = 3,
    HEALER = 5, /* brings back what a bookie's disk had; at the end it compares everything */
    AUDITOR = 6,
    LEDGERS = 8,
    ENTRIES = 32, /* of a ledger */
    FRAGMENTS = 48,
    CHANGES = 8, /* of a ledger's bookies, by its writer */
    BATCH = 8,   /* entries that a reader asks a bookie for at once, at most */
    JOURNAL = 512,
    REQUESTS = 4096,
    EVENTS = 8192,
    HEAL = 3000,
    END = 12000 /* by then everything is closed, and read */
};

struct knobs {
    struct quorum quorum;
    unsigned lost, slow;           /* percent of messages; longest delay */
    unsigned far[ACTORS][BOOKIES]; /* what a link adds to it */
    unsigned timeout;
    unsigned refuse, misread; /* per mille of adds, of reads */
    unsigned batch;           /* 1 .. BATCH */
    unsigned one_each;        /* bookies that know no batch reads, a bit each */
    unsigned meta_away, meta_unsure;
    unsigned crashes, cuts, partitions, freezes; /* so many, at random times */
    bool wipes;                                  /* a disk is lost, then: */
    unsigned wiped;
    unsigned unheard;  /* this bookie, from 1, while the writer sleeps; 0: none */
    bool unmarked;     /* the auditor begins at HEAL */
    unsigned lockless; /* per mille of the times that a lock has gone with its session */
    unsigned alone;    /* per mille of the times that a spare is looked for: there is none */
    bool delay_changes;
    unsigned total;                        /* entries that the writer has */
    unsigned past;                         /* per mille of ledgers that have changed bookies */
    unsigned pause;                        /* of the writer, at most, between appends */
    unsigned writer_dies;                  /* when; 0: never */
    unsigned writer_stops, writer_goes_on; /* frozen from then on, until then; 0: never */
    unsigned recover_at[ACTORS];
};

/* What a life can be lived without, when a short story is looked for: PLAIN(name, how). */
#define PLAIN_LINES(PLAIN)                            \
    PLAIN(crashes, k->crashes = 0)                    \
    PLAIN(freezes, k->freezes = 0)                    \
    PLAIN(cuts, k->cuts = 0)                          \
    PLAIN(partitions, k->partitions = 0)              \
    PLAIN(losses, k->lost = 0)                        \
    PLAIN(refusals, k->refuse = 0)                    \
    PLAIN(misreadings, k->misread = 0)                \
    PLAIN(batches, k->batch = 1)                      \
    PLAIN(absences, k->meta_away = 0)                 \
    PLAIN(doubts, k->meta_unsure = 0)                 \
    PLAIN(past, k->past = 0)                          \
    PLAIN(death, k->writer_dies = 0)                  \
    PLAIN(deafness, k->unheard = 0)                   \
    PLAIN(sleep, k->writer_stops = 0)                 \
    PLAIN(distance, memset(k->far, 0, sizeof k->far)) \
    PLAIN(loneliness, k->alone = 0)                   \
    PLAIN(patience, k->delay_changes = false)         \
    PLAIN(wipes, k->wipes = false)                    \
    PLAIN(marks, k->unmarked = true)                  \
    PLAIN(haste, k->lockless = 0)                     \
    PLAIN(company, k->recover_at[2] = HEAL) /* one recoverer at first */

enum plain {
#define PLAIN_NAME(name, how) PLAIN_##name,
    PLAIN_LINES(PLAIN_NAME)
#undef PLAIN_NAME
        PLAINS
};

#endif
