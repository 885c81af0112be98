/* mark_work.h - one mark, from the moment it is locked until it is let go, as a pure state machine.
 *
 *   read it --> gone: GONE
 *           --> the census is older than the mark: have it look again --> repair
 *   repaired --> remove the mark as it was read --> DONE
 *                                               --> it was written to meanwhile: NEWER, it stays
 *   anything else: LATER
 *
 * A bookie that a mark names and that seems to be here has come back - or the census has not heard
 * yet that it went, and who believed it would take the mark away from a ledger that lacks a copy.
 *
 * Threads: one at a time.  An effect must not call back into it.
 */
#ifndef LEDGER_MARK_WORK_H
#define LEDGER_MARK_WORK_H

#include <stdint.h>

#include "common/err.h"

enum mark_work_end {
    MARK_WORK_GONE,  /* there was none: others were faster */
    MARK_WORK_DONE,  /* nothing is lacking, and nobody says so any more */
    MARK_WORK_NEWER, /* it tells of something that the repair did not know */
    MARK_WORK_LATER  /* err says why; BUSY: its writer should have its time first */
};

struct mark_work_effects {
    void (*read)(void *ctx); /* mark_work_read() */
    void (*look)(void *ctx); /* the census, once more; mark_work_census() */
    void (*repair)(void *ctx);
    void (*remove)(void *ctx, int64_t version); /* if it has that one; mark_work_removed() */
    void (*end)(void *ctx, enum mark_work_end how, enum err err); /* the last effect */
};

enum mark_work_state {
    MARK_WORK_IDLE,
    MARK_WORK_READING,
    MARK_WORK_WAITING, /* for a census that is not older than the mark */
    MARK_WORK_REPAIRING,
    MARK_WORK_REMOVING
};

struct mark_work {
    enum mark_work_state state;
    int64_t version;   /* of the mark, as it was read */
    uint64_t revision; /* of the store, then */
    const struct mark_work_effects *effects;
    void *ctx;
};

void mark_work_start(struct mark_work *w, const struct mark_work_effects *effects, void *ctx);
/* `census`: what the census shows, by the store's revisions. */
void mark_work_read(struct mark_work *w, enum err err, int64_t version, uint64_t revision,
                    uint64_t census);
void mark_work_census(struct mark_work *w, uint64_t census);
void mark_work_repaired(struct mark_work *w, enum err err);
void mark_work_removed(struct mark_work *w, enum err err);
void mark_work_stop(struct mark_work *w); /* no further effect */

#endif
