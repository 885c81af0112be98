/* recoverer.h - finding the true end of a ledger whose writer is gone or was replaced, as a pure
 * state machine.  bookkeeper.md D.4.
 *
 *   OPEN: mark IN_RECOVERY --> fence the last fragment --> read on from what is surely confirmed
 *         (every read fences) --> write each entry back to Qa bookies --> close
 *   IN_RECOVERY: the same without the mark; several recoverers may be at it, the close decides.
 *   CLOSED: its end is taken over.
 *
 * Entries are read from the ensemble that the metadata names and written to one kept in memory
 * only, in which failed bookies are replaced: committed early, a second recoverer would take the
 * empty newcomers' word for the end.  It goes into the metadata with the close.
 *
 * Memory:  an item is the owner's word for a payload that was read: taken by recoverer_found(),
 *          given back by drop().
 * Threads: one at a time.  An effect must not call back into the recoverer.
 * Limits:  RECOVERER_WINDOW entries at a time, RECOVERER_CHANGES replaced bookies.
 */
#ifndef LEDGER_RECOVERER_H
#define LEDGER_RECOVERER_H

#include <stddef.h>

#include "common/err.h"
#include "ledger/facts.h"

enum { RECOVERER_WINDOW = 32, RECOVERER_CHANGES = 32 };

struct recoverer_write {
    void *item;
    entry_id entry;
    entry_id lac;   /* below entry */
    int64_t length; /* as its writer had it */
    uint16_t flags; /* of the add: enum in proto/bookie_frame.h */
};

struct recoverer_effects {
    void (*mark)(void *ctx); /* compare-and-set OPEN to IN_RECOVERY; recoverer_marked() answers */
    void (*look)(void *ctx); /* read the metadata again; recoverer_saw() */
    /* Of the ensemble that the metadata has for e.  ENTRY_NONE: the last entry there is, answered
     * by recoverer_fenced(); else recoverer_found() or recoverer_not_found(). */
    void (*read)(void *ctx, unsigned slot, entry_id e, uint16_t flags);
    void (*write)(void *ctx, uint32_t bookie, const struct recoverer_write *w);
    /* A live bookie that is none of these, or false. */
    bool (*spare)(void *ctx, const uint32_t *not_these, unsigned n, uint32_t *out);
    void (*drop)(void *ctx, void *item);
    /* Compare-and-set IN_RECOVERY to CLOSED, with the changed fragments; recoverer_closed(). */
    void (*close)(void *ctx, entry_id last, int64_t length);
    void (*done)(void *ctx, enum err err, entry_id last, int64_t length); /* the last effect */
};

enum recoverer_state {
    RECOVERER_MARKING,
    RECOVERER_FENCING,
    RECOVERER_COPYING,
    RECOVERER_MEASURING, /* nothing was copied: the last entry is read for the length */
    RECOVERER_CLOSING,
    RECOVERER_LOOKING, /* a compare-and-set was lost, or may have been */
    RECOVERER_DONE
};

struct recoverer_entry {
    enum { COPY_READING, COPY_FOUND, COPY_ABSENT, COPY_UNSURE } state;
    uint32_t negative, unknown; /* a bit a slot that answered so */
    uint32_t acks;              /* of the copy; a bit a slot of the ensemble in memory */
    enum err err;
    void *item;
    int64_t length;
};

struct recoverer {
    enum recoverer_state state;
    struct ledger_facts facts; /* as last seen */
    uint32_t fenced, answered; /* a bit a slot */
    entry_id floor;            /* what was confirmed before anything was read */
    entry_id asked;            /* read up to here */
    entry_id pushed;           /* handed to the write-back up to here */
    entry_id lac;              /* copied and safe up to here */
    entry_id end;              /* the last that can have been confirmed, once has_end */
    bool has_end;
    unsigned ahead; /* grows with what is found: most ledgers end at once */
    int64_t length; /* of lac */
    struct recoverer_entry ring[RECOVERER_WINDOW];
    uint32_t dead; /* slots of the ensemble in memory that nobody could be found for */
    unsigned changes;
    struct fragment changed[RECOVERER_CHANGES]; /* in order of first */
    unsigned lost;
    uint32_t lost_bookie[RECOVERER_CHANGES];
    enum err err; /* the last failure seen */
    const struct recoverer_effects *effects;
    void *ctx;
};

void recoverer_start(struct recoverer *r, const struct ledger_facts *facts,
                     const struct recoverer_effects *effects, void *ctx);

void recoverer_marked(struct recoverer *r, enum err err);
void recoverer_saw(struct recoverer *r, enum err err, const struct ledger_facts *facts);
/* ERR_OK with the entry's lac; ERR_CHECKSUM: it did fence, but the entry is not to be trusted. */
void recoverer_fenced(struct recoverer *r, unsigned slot, enum err err, entry_id lac);
/* Its digest was verified; length is from its header.  Takes item. */
void recoverer_found(struct recoverer *r, unsigned slot, entry_id e, int64_t length, void *item);
void recoverer_not_found(struct recoverer *r, unsigned slot, entry_id e, enum err err);
void recoverer_wrote(struct recoverer *r, uint32_t bookie, entry_id e, enum err err);
void recoverer_closed(struct recoverer *r, enum err err);
/* Gives back what it holds; no effect but drop(). */
void recoverer_stop(struct recoverer *r);

/* The ensemble in memory. */
const uint32_t *recoverer_ensemble(const struct recoverer *r);

#endif
