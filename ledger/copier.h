/* copier.h - entries of one fragment, brought to where they should lie, as a pure state machine.
 *
 *   COPY:     every entry that `slot` should hold: from any replica --> to another bookie
 *   COMPARE:  every replica of every entry; those that lack it, or differ from at least Qa that
 *             agree, get it from the others
 *
 * What is written is what was read, header and digest included.  An entry that every replica
 * denies is lost: a copy ends there, a comparison goes on and tells at its end.
 *
 * Memory:  an item is the owner's word for an entry that was read, its digest verified: taken by
 *          copier_found(), given back by drop().
 * Threads: one at a time.  An effect must not call back into the copier.
 * Limits:  COPIER_WINDOW entries at a time.
 */
#ifndef LEDGER_COPIER_H
#define LEDGER_COPIER_H

#include <stdbool.h>
#include <stddef.h>

#include "common/err.h"
#include "ledger/quorum.h"

enum { COPIER_WINDOW = 256 };

struct copier_effects {
    /* There is room in what may be read now; else copier_go() comes when there is. */
    bool (*may)(void *ctx);
    void (*read)(void *ctx, unsigned slot, entry_id e); /* found or failed answers */
    /* To the slot's bookie; of a copy, to the newcomer.  copier_wrote() answers. */
    void (*write)(void *ctx, unsigned slot, entry_id e, void *item);
    bool (*same)(void *ctx, const void *a, const void *b); /* length and payload */
    void (*drop)(void *ctx, void *item);
    /* Replicas that contradict each other, and no Qa of them agree: nothing is written. */
    void (*differ)(void *ctx, entry_id e);
    void (*lost)(void *ctx, entry_id e); /* every replica denies it */
    /* What takes the place of one that cannot be read; NULL, as the function may be: nothing. */
    void *(*instead)(void *ctx, entry_id e);
    void (*done)(void *ctx, enum err err); /* the last effect */
};

struct copier_entry {
    enum { ENTRY_READING, ENTRY_WRITING, ENTRY_SETTLED } state;
    uint32_t asked, awaited; /* a bit a slot: reads, then writes */
    uint32_t negative;       /* said that it is not here, or what they have is damaged */
    enum err err;            /* NO_ENTRY as long as nothing else was said */
    void *item[ENSEMBLE_MAX];
};

struct copier_job {
    enum { COPIER_COPY, COPIER_COMPARE } what;
    struct quorum quorum;
    entry_id first, last; /* of the fragment; last < first: it is empty */
    unsigned slot;        /* COPY: whose entries */
    uint32_t avoid;       /* COPY: slots that are read last */
    bool sample;          /* COMPARE: only the first E and the last E entries */
    unsigned window;      /* entries at a time */
};

struct copier {
    struct copier_job job;
    bool done;
    entry_id base; /* all below are settled */
    entry_id next; /* to be begun */
    struct copier_entry ring[COPIER_WINDOW];
    enum err err;     /* the first failure that does not end it */
    uint64_t written; /* entries */
    const struct copier_effects *effects;
    void *ctx;
};

void copier_start(struct copier *c, const struct copier_job *job,
                  const struct copier_effects *effects, void *ctx);
void copier_go(struct copier *c);
void copier_found(struct copier *c, unsigned slot, entry_id e, void *item); /* takes item */
void copier_failed(struct copier *c, unsigned slot, entry_id e, enum err err);
void copier_wrote(struct copier *c, unsigned slot, entry_id e, enum err err);
void copier_stop(struct copier *c); /* gives back what it holds; no effect but drop() */

#endif
