/* ml_record.h - ManagedLedgerInfo, the value of a managed ledger's node, and our view of it.
 *
 * The record is kept as it was read, so that what others put there (offload contexts, fields
 * that we do not know) comes back on every write.
 *
 * Facts: pulsar-broker.md B.2.
 */
#ifndef BROKER_MANAGED_LEDGER_ML_RECORD_H
#define BROKER_MANAGED_LEDGER_ML_RECORD_H

#include "broker/managed_ledger/segments.h"
#include "common/err.h"
#include "metadata/records.h"

/* "index": the last index that was given to a confirmed entry, as Pulsar's broker stores it. */
#define ML_RECORD_INDEX "index"

/* "lgm.owner": a token drawn at each opening, so that no two owners ever write the same bytes: that
 * is how a write in doubt is told from somebody else's (ml_node.h); then those of the owners
 * before, which tell a newer owner from an older one in a store that was put back (lineage.h). */
#define ML_RECORD_OWNER "lgm.owner"

/* A ledger without a close time has closed_ms 0: only recovery knows its end.  ERR_MALFORMED
 * when ids do not rise. */
MUST_CHECK enum err ml_record_segments(const ManagedLedger__ManagedLedgerInfo *r,
                                       struct segments *into);
/* Names exactly these ledgers; an open one without entries, size and time. */
void ml_record_set_segments(ManagedLedger__ManagedLedgerInfo *r, const struct segments *s);

const char *ml_record_property(const ManagedLedger__ManagedLedgerInfo *r, const char *key);
void ml_record_set_property(ManagedLedger__ManagedLedgerInfo *r, const char *key,
                            const char *value); /* NULL: removes it */

#endif
