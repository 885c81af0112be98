/* mark_file.h - where replay begins: a mark for every journal, kept with the ledgers it speaks of.
 *
 *   u32 magic | u16 version, u16 oldest reader | u64 index | u32 journals | u32 crc of the rest |
 *   for each journal:  u64 file | u64 offset | u64 sequence | u32 length, its directory
 *
 * `index` is how far the index was then (entry_index_sequence): one that is not as far any more
 * has lost what the journal does not bring back.  Versions 1 and 2 had one mark: of the first
 * journal, since there was one; version 1 had no index, which reads as 0.
 *
 * A journal goes by the name of its directory, so that others may be added before or behind it.
 *
 * Stored by temporary name and rename, so that it is the old one or the new one.
 */
#ifndef BOOKIE_MARK_FILE_H
#define BOOKIE_MARK_FILE_H

#include "bookie/journal.h"
#include "common/disk.h"

enum { JOURNALS_MAX = 16 };

struct marks {
    bool is_there; /* the file */
    uint64_t index;
    struct journal_mark of[JOURNALS_MAX]; /* in the caller's order; JOURNAL_BEGIN: not named */
};

#define JOURNAL_BEGIN ((struct journal_mark){0, 4096, 1}) /* replay everything */

/* Of these journals.  ERR_CHECKSUM, ERR_NOT_ALLOWED (it names a journal that is not among them,
 * with records that nobody would replay), with a log event. */
MUST_CHECK enum err marks_load(struct disk *d, const char *path, const char *const *journals,
                               unsigned n, struct marks *out);
MUST_CHECK enum err marks_store(struct disk *d, const char *path, const char *const *journals,
                                unsigned n, const struct marks *m);
bool mark_is_before(const struct journal_mark *a, const struct journal_mark *b);

#endif
