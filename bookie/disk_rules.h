/* disk_rules.h - how full or broken directories make a bookie read-only, and when it may write
 * again.  Pure.
 *
 *   share in use   0 ----- low water ----- warn ----- threshold ----- 1
 *                  ROOMY                   WARNED     FULL: until it is under low water again
 *   a flush found no space: FULL until one has;  one failed otherwise: FAILED until one works
 *   a journal found no space: FULL until there is `journal_room`
 *
 *   any journal FULL                                   read-only, and no reserve
 *   a ledger directory FULL, and any_full; or all are  read-only
 *   ... and one of them has `reserve` free             recovery may still write
 *
 * A directory that cannot be asked stays as it was.
 */
#ifndef BOOKIE_DISK_RULES_H
#define BOOKIE_DISK_RULES_H

#include <stdbool.h>
#include <stdint.h>

#include "common/err.h"

enum { DISK_DIRS_MAX = 64 };

enum disk_level { DISK_ROOMY, DISK_WARNED, DISK_FULL, DISK_FAILED };

struct disk_rules_conf {
    double threshold, warn, low_water; /* shares of a device in use; low_water: at most threshold */
    uint64_t reserve;                  /* bytes: minUsableSizeForHighPriorityWrites */
    uint64_t journal_room;
    bool any_full; /* one full ledger directory of several makes the bookie read-only */
};

struct disk_dir {
    bool is_journal;
    enum disk_level level;
    uint64_t free_bytes, total; /* as last seen; total 0: never */
};

struct disk_rules {
    struct disk_rules_conf conf;
    struct disk_dir dirs[DISK_DIRS_MAX];
    unsigned n;
};

struct disk_verdict {
    bool writable, reserve;
    unsigned writable_dirs; /* of ledgers: ROOMY or WARNED */
};

void disk_rules_init(struct disk_rules *r, const struct disk_rules_conf *conf);
void disk_rules_add(struct disk_rules *r, bool is_journal);
/* What was found of a directory; total 0: it could not be asked.  failure: of the last flush to it
 * or write of its journal. */
void disk_rules_saw(struct disk_rules *r, unsigned dir, uint64_t free_bytes, uint64_t total,
                    enum err failure);
struct disk_verdict disk_rules_decide(const struct disk_rules *r);
double disk_dir_used(const struct disk_dir *d); /* 0 to 1 */
/* After so much time, if it goes on as since `before` was free, `us` ago, a ledger directory
 * reaches the next line: the threshold, then the reserve.  UINT64_MAX: not at all. */
uint64_t disk_rules_turns_in(const struct disk_rules *r, unsigned dir, uint64_t before,
                             uint64_t us);

#endif
