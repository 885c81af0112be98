/* facts.h - what the cores need to know of a ledger's metadata.
 *
 * A bookie is a number here: its place in the table of whoever runs the core.
 */
#ifndef LEDGER_FACTS_H
#define LEDGER_FACTS_H

#include "ledger/quorum.h"

enum ledger_state { LEDGER_OPEN = 1, LEDGER_IN_RECOVERY = 2, LEDGER_CLOSED = 3 };

struct fragment {
    entry_id first; /* it ends where the next one begins */
    uint32_t bookie[ENSEMBLE_MAX];
};

struct ledger_facts {
    enum ledger_state state;
    struct quorum quorum;
    entry_id last;        /* CLOSED only, as the next */
    int64_t length;       /* payload bytes up to `last` */
    struct fragment tail; /* the last fragment */
};

#endif
