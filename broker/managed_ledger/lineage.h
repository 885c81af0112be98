/* lineage.h - who had a managed ledger before whom, and which node may be written over; pure.
 *
 *   "c,b,a": c has it, and took it from b, who took it from a           (ML_RECORD_OWNER)
 *
 * The metadata store may be put back to an older state while owners live on.  Then a node is behind
 * what its owner knows, and the owner writes it forward; but only one of all who ever had it may:
 *
 *   node        mine       says to me
 *   a           c,b,a      from before my time: mine is the newer one     -> write it forward
 *   c, older    c,b,a      my own, of earlier                             -> write it forward
 *   d,a         c,b,a      d took it from a, knowing less than I do       -> the same, while it
 *                                                                            lists nothing of its
 * own c,b,a       b,a        c took it from me                              -> I am not the owner
 *   d           c,b,a      who is that?                                   -> I am not the owner
 *
 * Nothing is written forward over ledgers that are not known here, or whose end is another one.
 */
#ifndef BROKER_MANAGED_LEDGER_LINEAGE_H
#define BROKER_MANAGED_LEDGER_LINEAGE_H

#include <stdbool.h>
#include <stdint.h>

#include "broker/managed_ledger/segments.h"

enum { LINEAGE_MAX = 8, LINEAGE_TOKEN_MAX = 16, LINEAGE_TEXT = LINEAGE_MAX * 17 };

/* `token` before those of `before` (NULL: nobody), the oldest left out where there are too many. */
void lineage_add(const char *before, const char *token, char out[LINEAGE_TEXT]);

struct lineage_node {
    const char *owners; /* NULL or "": no owner has written it yet */
    int64_t version;
    const struct segments *row;
    int64_t newest; /* mine: no ledger above it was ever listed */
    bool terminated;
};

enum kin {
    KIN_SAME,   /* as I wrote or read it */
    KIN_BEHIND, /* to be written forward */
    KIN_OTHER   /* another owner's */
};
/* `went_back`: the store surely has, since mine was written or read. */
enum kin lineage_judge(const struct lineage_node *mine, const struct lineage_node *theirs,
                       bool went_back);

#endif
