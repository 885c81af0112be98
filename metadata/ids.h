/* ids.h - where the numbers of our ledgers come from.
 *
 * BookKeeper's long generator counts inside a high-order bucket: the ids n << 32 and up, of
 * the *largest* n for which /ledgers/idgen-long/HOB-<n> exists.  So we create two new buckets
 * at once, above all there are: the lower is ours and no generator looks at it ever again,
 * the upper is where a foreign client goes on.  In ours we count with a counter of our own,
 * whose numbers are whole ids: meta_counter(m, PATH_LEDGER_COUNTER, n, call) is all that a
 * ledger client needs.
 *
 * Threads: not a loop's; it waits.
 */
#ifndef METADATA_IDS_H
#define METADATA_IDS_H

#include "metadata/metadata.h"

/* Claims a bucket and starts the counter in it, unless that has been done. */
MUST_CHECK enum err ledger_ids_claim(struct metadata *m);

#endif
