/* log_writer.h - writes entry logs one after the other: records in, synced, sealed when full.
 *
 *   append* --> sync --> settle: the index names what was written; a log before it may be judged
 *          \-> abandon: nothing since the last sync counts; the next record goes to a new log
 *
 * A flush has one, compaction has another: their logs lie in one directory and take their ids
 * from one counter.  A log that was written since the last settle is in flight: what the index
 * does not name yet is no garbage.
 *
 * Threads: one at a time; log_writer_is_at() from any.
 */
#ifndef BOOKIE_LOG_WRITER_H
#define BOOKIE_LOG_WRITER_H

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>

#include "bookie/index_block.h"
#include "bookie/log_usage.h"
#include "common/buf.h"
#include "common/disk.h"

struct log_writer {
    struct disk *disk;
    const char *dir;
    uint64_t limit;
    _Atomic uint64_t *last; /* the highest log id ever used in the directory */

    struct disk_file *file;  /* being written; NULL: the next append makes one */
    uint64_t log, end;       /* its id; where the next record goes */
    bool is_named;           /* its directory was synced */
    bool is_buffered;        /* the file system refuses O_DIRECT */
    uint8_t *memory, *stage; /* stage: memory, aligned; the bytes before `end` not written yet */
    size_t staged;
    struct log_usage usage; /* of the log being written */

    pthread_mutex_t lock; /* the next three */
    uint64_t *flying;     /* logs written since the last settle, that being written with them */
    size_t n, room;
    size_t kept; /* of these, how many a sync has covered: abandon leaves them */
};

void log_writer_init(struct log_writer *w, struct disk *disk, const char *dir, uint64_t limit,
                     _Atomic uint64_t *last);
void log_writer_end(struct log_writer *w, bool seal); /* seal: all that was written is synced */
MUST_CHECK enum err log_writer_append(struct log_writer *w, struct view entry,
                                      struct entry_place *at);
MUST_CHECK enum err log_writer_sync(struct log_writer *w);
void log_writer_settle(struct log_writer *w);
void log_writer_abandon(struct log_writer *w);
MUST_CHECK enum err log_writer_close(struct log_writer *w);        /* seals the log being written */
bool log_writer_is_full(const struct log_writer *w, size_t entry); /* would it close for this? */
/* That many bytes of what was written are named by nobody after all. */
void log_writer_unused(struct log_writer *w, int64_t ledger, const struct entry_place *at);
bool log_writer_is_at(struct log_writer *w, uint64_t log); /* is the log in flight? */

char *entry_log_path(const char *dir, uint64_t log); /* gives */

#endif
