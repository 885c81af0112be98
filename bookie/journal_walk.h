/* journal_walk.h - every record of a journal file that is whole, whatever lies between them.
 *
 * Replay (journal_scan.h) asks what must be there; this asks what is there: for tools, and for
 * facts that stay true however old they are (a ledger's key, that it was fenced).  What a
 * recycled file held under an earlier id is not looked at.
 *
 * Memory:  a record is borrowed during its call.
 * Threads: one.
 */
#ifndef BOOKIE_JOURNAL_WALK_H
#define BOOKIE_JOURNAL_WALK_H

#include "bookie/file_window.h"
#include "bookie/journal_format.h"
#include "common/disk.h"
#include "common/err.h"

/* An error of it ends the walk. */
typedef enum err journal_walk_fn(void *ctx, uint64_t offset, const struct journal_record *r);

/* ERR_NOT_FOUND, ERR_UNSUPPORTED_VERSION.  record_max: longest payload. */
MUST_CHECK enum err journal_walk(struct disk *disk, const char *dir, uint64_t file,
                                 uint32_t record_max, journal_walk_fn *each, void *ctx);

/* The record at `at` of the journal file with that id; ERR_END: none is there. */
MUST_CHECK enum err journal_record_at(struct file_window *w, uint64_t at, uint64_t file,
                                      uint32_t record_max, struct journal_record *out);

#endif
