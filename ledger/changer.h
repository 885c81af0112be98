/* changer.h - the writer puts other bookies into the metadata, as a pure state machine.
 *
 *   put the new fragment if nobody has touched the ledger --> done
 *        |
 *        +-- changed or not sure --> look: OPEN, the fragments as they were: put again
 *        |                                 OPEN, the last one as we want it: done
 *        |                                 IN_RECOVERY or CLOSED: FENCED
 *        |                                 gone: NO_LEDGER, for good
 *        +-- the store is away   --> wait, look
 *
 * Nothing that lies on the new bookies may be acknowledged before it is done.
 *
 * Threads: one at a time.  An effect must not call back into the changer.
 */
#ifndef LEDGER_CHANGER_H
#define LEDGER_CHANGER_H

#include "common/err.h"
#include "ledger/facts.h"

struct changer_effects {
    void (*put)(void *ctx);  /* compare-and-set from what was last seen; changer_put() answers */
    void (*look)(void *ctx); /* changer_saw() answers */
    void (*wait)(void *ctx, unsigned tries); /* longer each time; changer_waited() */
    /* ERR_OK; ERR_FENCED when another owner has it or it is gone; else of class RETRY. */
    void (*done)(void *ctx, enum err err);
};

struct changer {
    enum { CHANGER_PUTTING, CHANGER_LOOKING, CHANGER_WAITING, CHANGER_DONE } state;
    unsigned ensemble;
    struct fragment old, wanted;
    unsigned tries;
    const struct changer_effects *effects;
    void *ctx;
};

void changer_start(struct changer *c, unsigned ensemble, const struct fragment *old,
                   const struct fragment *wanted, const struct changer_effects *effects, void *ctx);
void changer_put(struct changer *c, enum err err);
void changer_saw(struct changer *c, enum err err, const struct ledger_facts *facts); /* facts: OK */
void changer_waited(struct changer *c);

#endif
