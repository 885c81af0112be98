/* disk_watch.h - looks at the free space now and then, and says when it gets tight.
 *
 *   used above the threshold, or a checkpoint found no space -> read-only
 *   used below the low-water mark, and no write fails         -> writable again
 *
 * The reserve is what recovery may still write then: room for both halves of the write cache.
 *
 * Threads: the loop's; open and close from no loop's.
 */
#ifndef BOOKIE_DISK_WATCH_H
#define BOOKIE_DISK_WATCH_H

#include <stdbool.h>

#include "common/disk.h"
#include "common/loop.h"

struct disk_watch;

struct disk_watch_conf {
    struct disk *disk;
    struct loop *loop;
    const char *dir;
    double threshold; /* share of the device in use */
    double low_water; /* at most the threshold */
    uint64_t reserve_bytes;
    uint64_t interval_us;
    bool (*is_full)(void *ctx); /* did a write find no space? */
    void (*changed)(void *ctx, bool writable, bool reserve);
    void *ctx;
};

struct disk_watch *disk_watch_open(const struct disk_watch_conf *conf); /* gives; looks at once */
void disk_watch_close(struct disk_watch **w);

#endif
