/* entry_log.h - where entries end up: files that are written once, sorted, in one go a flush.
 *
 *   0000000000000003.log
 *   header: u32 magic | u16 version, u16 oldest reader | u64 log id | u32 crc | zeros to 64
 *   record: u32 crc of the rest | u32 length | the entry, which begins with ledger and entry id
 *   after the last record of a flush: zeros to a block of 4096
 *
 *   append* --> sync: the records are durable, and only then may the index name them
 *          \-> abandon: a write failed; nothing of this flush counts, the next goes to a new log
 *
 * Threads: append, sync and abandon on the flush thread; read from any.
 * Limits:  a log rolls at log_limit; HANDLES files are kept open for reading.
 */
#ifndef BOOKIE_ENTRY_LOG_H
#define BOOKIE_ENTRY_LOG_H

#include <stdint.h>

#include "bookie/index_block.h"
#include "common/buf.h"
#include "common/disk.h"
#include "common/err.h"

enum { ENTRY_LOG_RECORD = 8, ENTRY_LOG_HEADER = 64 };

struct entry_log;

/* dir outlives it; gives. */
MUST_CHECK enum err entry_log_open(struct entry_log **out, struct disk *disk, const char *dir,
                                   uint64_t log_limit);
void entry_log_close(struct entry_log **l);
MUST_CHECK enum err entry_log_append(struct entry_log *l, struct view entry,
                                     struct entry_place *at);
MUST_CHECK enum err entry_log_sync(struct entry_log *l);
void entry_log_abandon(struct entry_log *l);

/* Bytes from the record at `at` on: at least the record, at most about `ahead`, less at the
 * end of the log.  Gives *out, its first *got bytes are read.  ERR_CHECKSUM when the log is not
 * there or is too short: what an index names exists, so that is damage and never "no entry". */
MUST_CHECK enum err entry_log_read(struct entry_log *l, const struct entry_place *at, size_t ahead,
                                   struct slab **out, size_t *got);
/* The entry of the record that begins at `record`; ERR_CHECKSUM when it is not that entry. */
MUST_CHECK enum err entry_log_check(struct view record, uint32_t length, int64_t ledger,
                                    int64_t entry, struct view *out);

#endif
