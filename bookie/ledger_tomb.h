/* ledger_tomb.h - a ledger that is on its way out, or went, as the index keeps it.
 *
 *   u8 format | u8 kind | u8 flags (1: it was fenced) | i64 ms since 1970
 *
 *   TRASHED --delay--> GOING --its blocks and row are gone--> DELETED
 *      \--in the metadata again--> no tomb
 *   MOVED: other bookies have it all; it may be brought here again, by recovery adds alone
 *
 * What went is not made anew by a writer that comes late: it is fenced, and what is asked of it
 * is no ledger's.
 */
#ifndef BOOKIE_LEDGER_TOMB_H
#define BOOKIE_LEDGER_TOMB_H

#include "bookie/entry_index.h"

enum tomb_kind { TOMB_TRASHED = 1, TOMB_GOING, TOMB_DELETED, TOMB_MOVED };

struct ledger_tomb {
    enum tomb_kind kind;
    bool fenced;
    uint64_t since_ms;
};

MUST_CHECK enum err ledger_tomb_put(struct entry_index *ix, int64_t ledger,
                                    const struct ledger_tomb *t);
MUST_CHECK enum err ledger_tomb_get(struct entry_index *ix, int64_t ledger,
                                    struct ledger_tomb *out); /* ERR_NOT_FOUND */
MUST_CHECK enum err ledger_tomb_read(struct view value, struct ledger_tomb *out);

#endif
