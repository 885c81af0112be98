/* reads.h - threads that read entry logs, so that no loop waits for a disk.
 *
 *   reads_submit -> lane -> [read thread] index block, one pread of a window -> job->done()
 *
 * Three lanes (read_lanes.h): who tails is never behind who catches up, whose pace a governor
 * (governor.h) keeps to what neither the journal nor the tail feels.
 *
 * A window is what one read brings in: the entry that was asked for and the ones that lie
 * behind it, as far as `ahead` has room for them and the index names those places: in the entry's
 * block and the next one.
 *
 * Memory:  a job is the caller's and stays put until done(), which takes the window.
 * Threads: submit and share from any; done() on job->home; add_us() on a read thread or on one
 *          that shares, one at a time.
 * Limits:  the callers'; at most READ_WINDOWS windows are held, then threads wait.
 */
#ifndef BOOKIE_READS_H
#define BOOKIE_READS_H

#include "bookie/device.h"
#include "bookie/read_lanes.h"
#include "common/loop.h"
#include "common/metric.h"
#include "proto/entry_list.h"

enum { READ_WINDOWS = 64, READ_FOUND_MAX = 2 * INDEX_BLOCK };

struct reads;

struct read_found {
    int64_t entry;
    uint32_t at; /* of the entry in the slab */
    uint32_t length;
};

struct read_window {
    struct slab *slab;
    size_t bytes;
    unsigned n;
    struct read_found found[READ_FOUND_MAX]; /* the first is the one that was asked for */
};

struct read_job {
    struct device *device; /* where the ledger lives */
    int64_t ledger, entry;
    enum read_lane lane;
    struct loop *home;
    void (*done)(struct read_job *job);
    enum err err;               /* ERR_NO_ENTRY; ERR_CHECKSUM and ERR_IO: not known */
    struct read_window *window; /* NULL on error */
    struct lane_node node;      /* private, as the next three */
    bool lists;                 /* part of a list_job */
    uint64_t asked_us;
    struct task task;
};

/* Which entries of a ledger are in the index, or are among some more. */
struct list_job {
    struct device *device;
    int64_t ledger;
    int64_t *more; /* in order; borrowed until done() */
    unsigned n;
    struct loop *home;
    void (*done)(struct list_job *job); /* takes out */
    enum err err;                       /* ERR_TOO_BIG: more than entry_list.h can say */
    struct slice out;
    struct read_job read; /* private */
};

MUST_CHECK enum err reads_open(struct reads **out, struct loops *loops, unsigned threads,
                               size_t ahead); /* loops: the homes of jobs */

/* What catching up must leave room for; NULL, as before the first call: nothing is held, and nobody
 * is asked any more when it returns. */
struct reads_duty {
    uint64_t floor;                /* bytes a second that catching up gets in any case */
    uint64_t (*add_us)(void *ctx); /* of an add, since it was asked last; 0: there was none */
    void *ctx;
};
void reads_govern(struct reads *r, const struct reads_duty *duty);
/* For what else moves bytes that nobody waits for: `bytes` more count as caught up; gives the bytes
 * a second that there may be now (GOVERNOR_NO_LIMIT).  Any thread. */
uint64_t reads_share(struct reads *r, uint64_t bytes);

struct reads_stats {
    struct histogram us[LANES]; /* from being asked to being read */
    struct metric braking;      /* 1: catching up is held */
    struct metric rate;         /* bytes a second that it may read; -1: no limit */
    struct metric corrupt;      /* reads that found damage */
    struct metric corrupt_logs; /* in so many logs; each is told once */
};
const struct reads_stats *reads_stats(const struct reads *r);
void reads_render(const struct reads *r, struct text *t);

void reads_submit(struct reads *r, struct read_job *job);
void reads_list(struct reads *r, struct list_job *job);
void reads_give_back(struct reads *r, struct read_window **w); /* takes */
void reads_close(struct reads **r); /* after the last submit; every done() has run */

#endif
