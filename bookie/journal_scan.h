/* journal_scan.h - reads a journal back, and tells a torn end from a damaged middle.
 *
 *   ... record s | broken here | ... a valid record of a later group?  -> damaged: refuse
 *                              | nothing, or only more of the same group -> torn: the end
 *
 * One group is in flight at a time, and it is acknowledged as a whole: what is torn at the end
 * was never acknowledged.  What proves that something acknowledged is gone:
 *
 *   a later group, here or in a later file     it was written after the broken one was synced
 *   a proof behind it (journal_format.h)       so was this
 *   the header of a later file                 its first record has a higher sequence than found
 *   a device's mark                            `synced` is behind what was found
 *
 * What cannot be known: whether the last group was acknowledged, when nothing of these was written
 * after it.  It is cut off if it is damaged, and a last file that is gone is not missed; the event
 * "journal.tail_cut" says so where something was there.
 */
#ifndef BOOKIE_JOURNAL_SCAN_H
#define BOOKIE_JOURNAL_SCAN_H

#include "bookie/journal.h"
#include "bookie/journal_file.h"

/* As from.sequence: records begin with whatever number the first has, in whatever file. */
enum { JOURNAL_ANY = 0 };

/* *next is the sequence after the last valid record; from.sequence when there is none.  Every
 * record before the sequence `synced` was once synced, as far as anybody knows. */
MUST_CHECK enum err journal_scan(const struct journal_files *files, struct journal_mark from,
                                 uint64_t synced, uint32_t record_max, journal_record_fn *each,
                                 void *ctx, uint64_t *next);

#endif
