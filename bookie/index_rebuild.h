/* index_rebuild.h - makes lost indexes again, from what they were made of.
 *
 *   entry logs, in the order of their ids --> blocks; last entry and LAC of a ledger's row
 *   journal files, all that is whole in them --> keys, explicit LACs
 *   metadata store --> keys; ledgers that may have been fenced here before they had an entry
 *        all of it into index.new, and then
 *   integrity_file.h: what is not known  -->  index.new becomes index  -->  mark
 *
 * A crash in between leaves an index that is still lost, and it is done again.
 *
 * Of several copies of an entry the last one counts.  A fence may have stood in a row alone, so
 * every ledger is fenced: a writer that is still there goes on in another.  With that, and when
 * all logs are whole, a ledger that the metadata store knows is as it was.  Limbo (ledger_row.h)
 * are those that it does not know, for want of a key; those that lack entries which it says are
 * here, as when a log is gone; those that lack bytes which the seal of a damaged log counts; and
 * all of them when a damaged log has no seal, since what stood there may have been of any.
 *
 * Ledgers that were deleted stay so as far as the old index can still be read.  Else they come
 * back fenced and in limbo, if anything of them is still in a log, and the garbage collector takes
 * them again.
 *
 * Memory:  bounded by BATCH entries, and the ledgers in the journal.
 * Threads: not a loop's: it waits for the metadata store.  Nobody else uses the directories.
 */
#ifndef BOOKIE_INDEX_REBUILD_H
#define BOOKIE_INDEX_REBUILD_H

#include <stdbool.h>
#include <stdint.h>

#include "bookie/device.h"
#include "common/disk.h"
#include "common/err.h"

struct metadata;

struct rebuild_dir {
    const char *dir;       /* entry logs, mark */
    const char *index_dir; /* on the real disk */
    bool is_lost; /* its index is made again; that of others tells which ledgers they have */
};

struct rebuild_conf {
    struct disk *disk;
    const struct rebuild_dir *dirs;
    unsigned n;
    const char *const *journals; /* their `current` directories */
    unsigned n_journals;
    uint32_t record_max;
    struct metadata *meta; /* NULL: it cannot be asked; every row is in limbo */
    const char *bookie_id;
};

struct rebuild_report {
    uint64_t logs, bytes, records; /* looked at */
    uint64_t ledgers, limbo;       /* rows made; those in limbo */
    uint64_t damages, damaged_bytes;
};

/* Each damaged place is the event "entry_log.damaged".  ERR_IO, ERR_NO_SPACE, ERR_CHECKSUM (a
 * mark), or what the metadata store answers: nothing has changed then. */
MUST_CHECK enum err index_rebuild(const struct rebuild_conf *conf, struct rebuild_report *out);

/* Has the index of a directory lost something that the journal does not bring back?  Looks for
 * one that is gone, emptied, damaged, or behind the mark beside it. */
MUST_CHECK enum err index_is_lost(const struct rebuild_conf *conf, const struct rebuild_dir *dir,
                                  bool *lost);

/* At a start: looks at every directory, fills its is_lost, and rebuilds those that are; or, unless
 * it may, says "entry_index.lost" and gives ERR_CHECKSUM. */
MUST_CHECK enum err index_heal(const struct rebuild_conf *conf, struct rebuild_dir *dirs,
                               bool may_rebuild);

#endif
