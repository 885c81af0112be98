/* closer.h - the writer seals its ledger, as a pure state machine.
 *
 *   put CLOSED(last, length) if nobody has touched it --> done
 *        |
 *        +-- changed or not sure --> look: OPEN: put again
 *        |                                 CLOSED as we wanted it: done
 *        |                                 IN_RECOVERY, or CLOSED elsewhere: FENCED
 *        +-- the store is away   --> wait, look
 *
 * A writer never closes a ledger that is in recovery: the recoverer may have found an end that
 * the writer does not know.
 *
 * Threads: one at a time.  An effect must not call back into the closer.
 */
#ifndef LEDGER_CLOSER_H
#define LEDGER_CLOSER_H

#include "common/err.h"
#include "ledger/facts.h"

struct closer_effects {
    void (*put)(void *ctx);  /* compare-and-set from what was last seen; closer_put() answers */
    void (*look)(void *ctx); /* closer_saw() answers */
    void (*wait)(void *ctx, unsigned tries); /* longer each time; closer_waited() */
    void (*done)(void *ctx, enum err err);
};

struct closer {
    enum { CLOSER_PUTTING, CLOSER_LOOKING, CLOSER_WAITING, CLOSER_DONE } state;
    entry_id last;
    int64_t length;
    unsigned tries;
    const struct closer_effects *effects;
    void *ctx;
};

void closer_start(struct closer *c, entry_id last, int64_t length,
                  const struct closer_effects *effects, void *ctx);
void closer_put(struct closer *c, enum err err);
void closer_saw(struct closer *c, enum err err, const struct ledger_facts *facts); /* facts: OK */
void closer_waited(struct closer *c);

#endif
