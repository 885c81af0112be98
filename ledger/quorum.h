/* quorum.h - how many bookies, which of them hold an entry, and when that is enough.
 *
 * Entry e of a fragment lies on ensemble slots (e + k) mod E, k = 0 .. Qw-1; it is safe once
 * Qa of them have it.  bookkeeper.md D.1, D.6.
 */
#ifndef LEDGER_QUORUM_H
#define LEDGER_QUORUM_H

#include <stdbool.h>
#include <stdint.h>

enum { ENSEMBLE_MAX = 16, ENTRY_NONE = -1 };

typedef int64_t entry_id; /* from 0; ENTRY_NONE for none */

struct quorum {
    unsigned ensemble; /* E:  bookies a fragment is spread over */
    unsigned write;    /* Qw: copies sent of each entry */
    unsigned ack;      /* Qa: copies stored before it counts */
};

bool quorum_valid(struct quorum q); /* E >= Qw >= Qa >= 1, E <= ENSEMBLE_MAX */
unsigned quorum_slot(struct quorum q, entry_id e, unsigned k);
uint32_t quorum_write_set(struct quorum q, entry_id e); /* a bit a slot */
/* Of one entry: so many explicit "not here" prove that it was never acknowledged. */
unsigned quorum_negatives(struct quorum q); /* (Qw - Qa) + 1 */
/* Of a ledger: no Qa bookies of any write set are left that would still take a plain add. */
bool quorum_fenced(struct quorum q, uint32_t fenced_slots);

#endif
