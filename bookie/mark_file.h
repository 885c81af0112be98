/* mark_file.h - where replay begins, kept with the ledgers that it speaks of.
 *
 *   u32 magic | u16 version, u16 oldest reader | u64 file | u64 offset | u64 sequence |
 *   u64 index | u32 crc
 *
 * `index` is how far the index was then (entry_index_sequence): one that is not as far any more
 * has lost what the journal does not bring back.  Version 1 had no such field; it reads as 0.
 *
 * Stored by temporary name and rename, so that it is the old one or the new one.
 */
#ifndef BOOKIE_MARK_FILE_H
#define BOOKIE_MARK_FILE_H

#include "bookie/journal.h"
#include "common/disk.h"

/* Where there is none yet: everything in the journal.  ERR_CHECKSUM, with a log event. */
MUST_CHECK enum err mark_load(struct disk *d, const char *path, struct journal_mark *out,
                              uint64_t *index);
MUST_CHECK enum err mark_store(struct disk *d, const char *path, const struct journal_mark *m,
                               uint64_t index);
bool mark_is_before(const struct journal_mark *a, const struct journal_mark *b);

#endif
