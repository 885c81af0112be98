/* journal_scan.h - reads a journal back, and tells a torn end from a damaged middle.
 *
 *   ... record s | broken here | ... a valid record of a later group?  -> damaged: refuse
 *                              | nothing, or only more of the same group -> torn: the end
 *
 * One group is in flight at a time, and it is acknowledged as a whole: what is torn at the end
 * was never acknowledged.  But a later group was written only after the broken one had been
 * synced, so its presence, here or in a later file, proves that something acknowledged is gone.
 */
#ifndef BOOKIE_JOURNAL_SCAN_H
#define BOOKIE_JOURNAL_SCAN_H

#include "bookie/journal.h"
#include "bookie/journal_file.h"

/* As from.sequence: records begin with whatever number the first has, in whatever file. */
enum { JOURNAL_ANY = 0 };

/* *next is the sequence after the last valid record; from.sequence when there is none. */
MUST_CHECK enum err journal_scan(const struct journal_files *files, struct journal_mark from,
                                 uint32_t record_max, journal_record_fn *each, void *ctx,
                                 uint64_t *next);

#endif
