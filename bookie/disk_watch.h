/* disk_watch.h - looks at the directories now and then, and says when it gets tight or one breaks.
 *
 *   free space, and how the last flush or journal write went --> disk_rules.h --> looked()
 *
 * It looks again after `interval_us`, or sooner where a directory fills so fast that it would be
 * past a line by then.
 *
 * Every change of a directory is an event, and so is every change of the whole.
 *
 * Threads: the loop's; open and close from no loop's.
 */
#ifndef BOOKIE_DISK_WATCH_H
#define BOOKIE_DISK_WATCH_H

#include "bookie/disk_rules.h"
#include "common/disk.h"
#include "common/loop.h"

struct disk_watch;

struct watched_dir {
    const char *path;
    bool is_journal;
};

struct disk_watch_conf {
    struct disk *disk;
    struct loop *loop;
    const struct watched_dir *dirs; /* the strings outlive it */
    unsigned n;
    struct disk_rules_conf rules;
    uint64_t interval_us;
    enum err (*failure)(void *ctx, unsigned dir); /* of what was written there last */
    void (*looked)(void *ctx, const struct disk_rules *r, const struct disk_verdict *v);
    void *ctx;
};

/* Gives; it has looked, and called looked(), when it returns. */
struct disk_watch *disk_watch_open(const struct disk_watch_conf *conf);
void disk_watch_close(struct disk_watch **w);

#endif
