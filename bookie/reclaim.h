/* reclaim.h - the entry logs of one ledger device: those without live ledgers go, those with few
 * are compacted.
 *
 *   rows of the index = the ledgers that live -> what of each closed log is theirs, by its seal
 *     nothing: the log goes    less than the threshold: compaction.h    else: it stays
 *
 * A log without a seal (its bookie died) gets one with what the index names in it; one with
 * records that cannot be read (quarantined) is looked through in the index each time, since only
 * these are left in it.
 *
 * Space for all that on a full device: a file of `reserve` bytes that is given up for it.
 *
 * Threads: one.
 */
#ifndef BOOKIE_RECLAIM_H
#define BOOKIE_RECLAIM_H

#include "bookie/compaction.h"
#include "common/metric.h"

struct reclaim_stats { /* of all devices; metrics.h renders them */
    struct metric logs, log_bytes, live_bytes, ledgers, quarantined; /* gauges: of the last round */
    struct metric removed_logs, removed_bytes;                       /* without live ledgers */
    struct metric compacted_logs, compacted_bytes;                   /* taken back by moving */
    struct metric moved, moved_bytes;
    struct metric unreadable, failures;
};

struct reclaim {
    struct disk *disk;
    const char *dir;
    struct entry_log *log;
    struct entry_index *index;
    uint64_t reserve_bytes;
    bool retries; /* what could not be read once is tried again: a device may have had a bad hour */
    struct reclaim_stats *stats;
    struct compaction compaction;
};

/* dir, log and index outlive it; pace as compaction.h says. */
void reclaim_init(struct reclaim *r, struct disk *disk, const char *dir, struct entry_log *log,
                  struct entry_index *index, struct reclaim_stats *stats);

/* Before anything is deleted: it needs a little space too. */
void reclaim_prepare(struct reclaim *r);
/* One round.  threshold: share of a log that must be live for it to stay, 0: nothing is compacted;
 * until_us: by loop_clock(), then no other compaction is begun; 0: there is no end.
 * Gauges are added to: who owns the stats clears them first. */
MUST_CHECK enum err reclaim_run(struct reclaim *r, double threshold, uint64_t until_us);

#endif
