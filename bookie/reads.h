/* reads.h - threads that read entry logs, so that no loop waits for a disk.
 *
 *   reads_submit -> queue -> [read thread] index block, one pread of a window -> job->done()
 *
 * A window is what one read brings in: the entry that was asked for and the ones that lie
 * behind it, as far as the index block still names those places.
 *
 * Memory:  a job is the caller's and stays put until done(), which takes the window.
 * Threads: submit from any; done() on job->home.
 * Limits:  the callers'; at most READ_WINDOWS windows are held, then threads wait.
 */
#ifndef BOOKIE_READS_H
#define BOOKIE_READS_H

#include "bookie/device.h"
#include "common/loop.h"
#include "proto/entry_list.h"

enum { READ_WINDOWS = 64 };

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
    struct read_found found[INDEX_BLOCK]; /* the first is the one that was asked for */
};

struct read_job {
    struct device *device; /* where the ledger lives */
    int64_t ledger, entry;
    struct loop *home;
    void (*done)(struct read_job *job);
    enum err err;               /* ERR_NO_ENTRY; ERR_CHECKSUM and ERR_IO: not known */
    struct read_window *window; /* NULL on error */
    struct read_job *next;      /* private, as the next two */
    bool lists;                 /* part of a list_job */
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
void reads_submit(struct reads *r, struct read_job *job);
void reads_list(struct reads *r, struct list_job *job);
void reads_give_back(struct reads *r, struct read_window **w); /* takes */
void reads_close(struct reads **r); /* after the last submit; every done() has run */

#endif
