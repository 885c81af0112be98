/* placement.h - which bookies a new ledger is spread over. */
#ifndef LEDGER_PLACEMENT_H
#define LEDGER_PLACEMENT_H

#include <stddef.h>

#include "common/err.h"
#include "ledger/quorum.h"

struct placement_bookie {
    uint32_t bookie; /* the caller's number for it */
    uint32_t uses;   /* ledgers of ours that are written there now */
    bool suspect;    /* failed a short while ago: only when there is nobody else */
};

/* The n best of `live`, reordered in place so that they come first: those without suspicion
 * before the others, the least used before the busier, the rest by lot (`seed` advances).
 * ERR_NOT_ENOUGH_BOOKIES when there are fewer. */
MUST_CHECK enum err placement_choose(struct placement_bookie *live, size_t count, unsigned n,
                                     uint64_t *seed, uint32_t *out);

#endif
