/* placement.h - which bookies an ensemble is made of: of a new ledger, or in a failed one's place.
 *
 *   candidates --groups, suspicion, regions, racks, hosts, load--> the empty slots of an ensemble
 *
 * Never the same bookie twice.  Each slot goes to the best one that is left, by this order: of a
 * preferred group; not suspected; fewest others of its region, then of its rack in the write sets
 * that it takes part in; not on another member's host; the least used, or by lot with the chances
 * that free space gives.
 *
 * Threads: pure.
 */
#ifndef LEDGER_PLACEMENT_H
#define LEDGER_PLACEMENT_H

#include <stddef.h>

#include "common/err.h"
#include "ledger/quorum.h"

#define PLACEMENT_NOBODY   UINT32_MAX
#define PLACEMENT_EXCLUDED UINT32_MAX

struct placement_bookie {
    uint32_t bookie;             /* the caller's number for it */
    uint32_t host, rack, region; /* equal numbers: the same one */
    uint32_t tier;               /* lower ones first; EXCLUDED: only a member can be of these */
    uint32_t uses;               /* ledgers of ours that are written there now */
    uint64_t free;               /* bytes; 0: not known, then the median */
    bool suspect;                /* failed a short while ago: only when there is nobody else */
};

struct placement_rules {
    struct quorum quorum;
    bool distinct_hosts; /* else as far as there are so many */
    bool racks, regions; /* are looked at */
    unsigned racks_min;  /* different ones in each write set... */
    bool enforce_racks;  /* ... or nobody is chosen; else as far as can be */
    bool by_free_space;
    unsigned free_multiple; /* of the median of free space: what more than that counts as; 0: all */
};

/* Fills the slots of `member` that are NOBODY; the others stay, and are among `all`.  `seed`
 * advances.  ERR_NOT_ENOUGH_BOOKIES: member is as it was. */
MUST_CHECK enum err placement_fill(const struct placement_rules *rules,
                                   const struct placement_bookie *all, size_t count,
                                   uint32_t member[ENSEMBLE_MAX], uint64_t *seed);

#endif
