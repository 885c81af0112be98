/* replicator.h - bringing one ledger back to full replication, as a pure state machine.
 * bookkeeper.md F.
 *
 *   look at the metadata --> a member that is bad, of a fragment with a known end:
 *                              copy its entries to another bookie, then name that one in the
 *                              metadata; look again
 *                        --> one of the last fragment of a ledger that is not closed:
 *                              its writer may see to it, so once BUSY; then fence, find the end,
 *                              close; look again
 *                        --> nobody: compare the first and the last entries of each fragment
 *                              (all of them where one was lacking, or when thorough)
 *                        --> OK: whoever marked it may take the mark away
 *
 * The metadata changes only after every entry of the slot is stored by the newcomer, and only from
 * the very version that the copy was decided on: so no fragment ever names a bookie without its
 * entries, and what a writer or recoverer did meanwhile is never undone.
 *
 * Threads: one at a time.  An effect must not call back into the replicator.
 * Limits:  REPLICATOR_LOOKS looks, then BUSY: a ledger that changes all the time is for later.
 */
#ifndef LEDGER_REPLICATOR_H
#define LEDGER_REPLICATOR_H

#include "common/err.h"
#include "ledger/facts.h"

enum { REPLICATOR_LOOKS = 1000 };

struct replicator_effects {
    void (*look)(void *ctx);                    /* read the metadata; replicator_saw() */
    bool (*is_bad)(void *ctx, uint32_t bookie); /* gone, or on its way out */
    /* Somebody for a slot, who is none of the members, or false. */
    bool (*spare)(void *ctx, const uint32_t *members, unsigned slot, uint32_t *out);
    /* Entries first..last of the fragment; `avoid`: slots to be read last.  replicator_copied(). */
    void (*copy)(void *ctx, const struct fragment *f, entry_id last, unsigned slot, uint32_t to,
                 uint32_t avoid);
    /* Compare-and-set from the version last seen; replicator_changed(). */
    void (*change)(void *ctx, unsigned fragment, unsigned slot, uint32_t to);
    void (*recover)(void *ctx); /* fence and close it; replicator_recovered() */
    void (*compare)(void *ctx, const struct fragment *f, entry_id last, bool sample);
    void (*done)(void *ctx, enum err err); /* the last effect */
};

enum replicator_state {
    REPLICATOR_LOOKING,
    REPLICATOR_COPYING,
    REPLICATOR_CHANGING,
    REPLICATOR_RECOVERING,
    REPLICATOR_COMPARING,
    REPLICATOR_DONE
};

struct replicator_how {
    bool may_fence; /* the writer of an open ledger had its time */
    bool thorough;  /* compare every entry */
};

struct replicator {
    enum replicator_state state;
    struct replicator_how how;
    struct ledger_facts facts;        /* as last seen, with the next two */
    const struct fragment *fragments; /* borrowed from the answer until the next look */
    unsigned n;
    unsigned looks;
    unsigned fragment, slot; /* of the copy under way */
    uint32_t to;
    entry_id compared; /* fragments that begin below it were */
    bool sample;       /* is being compared */
    enum err err;      /* of comparisons: the first */
    const struct replicator_effects *effects;
    void *ctx;
};

void replicator_start(struct replicator *r, struct replicator_how how,
                      const struct replicator_effects *effects, void *ctx);
/* NO_LEDGER: it was deleted, and needs nothing any more. */
void replicator_saw(struct replicator *r, enum err err, const struct ledger_facts *facts,
                    const struct fragment *fragments, unsigned n);
void replicator_copied(struct replicator *r, enum err err);
void replicator_changed(struct replicator *r, enum err err);
void replicator_recovered(struct replicator *r, enum err err);
void replicator_compared(struct replicator *r, enum err err, uint64_t repaired);

#endif
