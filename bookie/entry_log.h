/* entry_log.h - where entries end up: files that are written once, sorted, in one go a flush.
 *
 *   0000000000000003.log
 *   header: u32 magic | u16 version, u16 oldest reader | u64 log id | u32 crc | zeros to 64
 *   record: u32 crc of the rest | u32 length | the entry, which begins with ledger and entry id
 *   after the last record of a flush: zeros to a block of 4096
 *   seal:   log_seal.h, when it is full or was closed
 *
 *   append* --> sync: the records are durable, and only then may the index name them
 *          |      \-> settle: it does
 *          \-> abandon: a write failed; nothing of this flush counts, the next goes to a new log
 *
 * Threads: append, sync, settle and abandon on the flush thread; read from any; the rest on the
 *          thread of the garbage collector.
 * Limits:  a log rolls at log_limit; HANDLES files are kept open for reading.
 */
#ifndef BOOKIE_ENTRY_LOG_H
#define BOOKIE_ENTRY_LOG_H

#include <stdbool.h>
#include <stdint.h>

#include "bookie/file_ids.h"
#include "bookie/index_block.h"
#include "bookie/log_usage.h"
#include "common/buf.h"
#include "common/disk.h"
#include "common/err.h"

enum { ENTRY_LOG_RECORD = 8, ENTRY_LOG_HEADER = 64 };

struct entry_log;
struct log_writer;

/* dir outlives it; gives. */
MUST_CHECK enum err entry_log_open(struct entry_log **out, struct disk *disk, const char *dir,
                                   uint64_t log_limit);
void entry_log_close(struct entry_log **l); /* seals what was written last */
MUST_CHECK enum err entry_log_append(struct entry_log *l, struct view entry,
                                     struct entry_place *at);
MUST_CHECK enum err entry_log_sync(struct entry_log *l);
void entry_log_settle(struct entry_log *l); /* the index names all that was appended */
void entry_log_abandon(struct entry_log *l);

/* Bytes from the record at `at` on: at least the record, at most about `ahead`, less at the
 * end of the log.  Gives *out, its first *got bytes are read.  ERR_NOT_FOUND when the log is gone:
 * what it held is elsewhere now and the index knows where; if the index still says here, that is
 * damage.  ERR_CHECKSUM when it is too short: damage too, and never "no entry". */
MUST_CHECK enum err entry_log_read(struct entry_log *l, const struct entry_place *at, size_t ahead,
                                   struct slab **out, size_t *got);
/* The entry of the record that begins at `record`; ERR_CHECKSUM when it is not that entry. */
MUST_CHECK enum err entry_log_check(struct view record, uint32_t length, int64_t ledger,
                                    int64_t entry, struct view *out);
void entry_log_header(uint8_t into[ENTRY_LOG_HEADER], uint64_t log);
/* ERR_CHECKSUM: no header of this log; ERR_UNSUPPORTED_VERSION: written by a newer build. */
MUST_CHECK enum err entry_log_header_read(struct view head, uint64_t log);

/* ---- what is in the directory, and taking it back ---- */

/* Logs that are no longer written, all of whose records that count the index names.  Gives. */
MUST_CHECK enum err entry_log_closed(struct entry_log *l, struct file_ids *out);
MUST_CHECK enum err entry_log_size(struct entry_log *l, uint64_t log, uint64_t *bytes);
MUST_CHECK enum err entry_log_usage(struct entry_log *l, uint64_t log,
                                    struct log_usage *out); /* gives; ERR_NOT_FOUND: no seal */
/* Gives a closed log that had no seal one, with what the index says of it. */
MUST_CHECK enum err entry_log_seal(struct entry_log *l, uint64_t log, struct log_usage *usage);
/* Removed and its directory synced; who reads it just now goes on. */
MUST_CHECK enum err entry_log_remove(struct entry_log *l, uint64_t log);
struct log_writer *entry_log_compactor(struct entry_log *l); /* borrowed: the collector's writer */

#endif
