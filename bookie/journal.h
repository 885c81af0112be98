/* journal.h - the write-ahead log of a bookie: durable before acknowledged.
 *
 *   journal_append -> draft (full: queue) -> [journal thread] one write, one sync a group
 *                                   -> loop_post -> write->done(), then conf.group_done()
 *
 * A group takes what waits when the previous sync has returned: alone at low load, large at
 * high load, never waiting for a clock.  Files are filled with zeros once and then recycled.
 * When nothing comes any more, the last group is proven (journal_format.h): not synced, so that
 * a next group hardly waits for it; at the end it is.
 *
 * Memory:  the write is the caller's and must stay put until done() (embed it in a request);
 *          its head is borrowed until then, its body taken.
 * Threads: journal_append() and journal_mark() from any; done() on write->home; journal_trim()
 *          from one at a time.
 * Limits:  conf.queue_bytes wait at most, then ERR_BUSY.  ERR_NO_SPACE (a file could not be
 *          made longer) fails its group and no more; any other failed write or sync is told to
 *          conf.failed() and nothing is done() after it.
 * Layout:  journal_format.h.
 */
#ifndef BOOKIE_JOURNAL_H
#define BOOKIE_JOURNAL_H

#include <stdbool.h>
#include <stdint.h>

#include "common/buf.h"
#include "common/disk.h"
#include "common/err.h"
#include "common/loop.h"
#include "common/metric.h"

struct journal;

/* Replay starts here: everything before it is in the entry logs. */
struct journal_mark {
    uint64_t file;
    uint64_t offset;
    uint64_t sequence; /* of the first record to replay */
};

struct journal_conf {
    const char *dir;
    uint64_t file_bytes;
    uint64_t group_bytes;
    uint64_t queue_bytes;
    uint32_t record_max; /* longest payload */
    bool direct;
    bool ahead;        /* the next file is made before it is needed, on a thread of its own */
    uint64_t prove_us; /* without work, before the last group is proven; 0: only at the end */
    uint64_t synced;   /* records before this sequence were synced once, as far as is known */
    bool may_lack;     /* a directory was lost: the mark, or files from it on, need not be there */
    uint64_t slow_us;  /* a write and its sync that take longer are logged; 0: none are */
    struct loops *loops;                              /* the homes of writes */
    void (*group_done)(void *ctx, struct loop *home); /* after the done()s of a group; or NULL */
    void (*failed)(void *ctx, enum err why);          /* on the journal thread, once */
    void *ctx;
};

/* A kind that is not written: it is done when everything appended before it has been synced. */
enum { JOURNAL_MARKER = 0 };

struct journal_write {
    uint8_t kind;
    bool is_early;    /* done() when it is written, and not yet synced */
    struct view head; /* borrowed until done() */
    struct slice body;
    struct loop *home;
    void (*done)(struct journal_write *w, enum err err);
    struct journal_write *next; /* private, as the next */
    enum err err;
};

struct journal_stats {
    struct metric bytes, records, groups, queued_bytes, queued;
    struct histogram sync_us;
};

typedef enum err journal_record_fn(void *ctx, uint8_t kind, struct view payload);

/* Looks at what is there.  Gives; disk and the strings of conf outlive it. */
MUST_CHECK enum err journal_open(struct journal **out, const struct journal_conf *conf,
                                 struct disk *disk, struct journal_mark from);
/* Every record from the mark on, in order.  ERR_CHECKSUM with the event "journal.corrupted" when
 * a record that was once acknowledged cannot be read. */
MUST_CHECK enum err journal_replay(struct journal *j, journal_record_fn *each, void *ctx);
MUST_CHECK enum err journal_start(struct journal *j); /* a new file, and the thread */
/* ERR_BUSY: nothing is taken, done() will not be called. */
MUST_CHECK enum err journal_append(struct journal *j, struct journal_write *w);
struct journal_mark journal_mark(struct journal *j);            /* behind the last synced group */
void journal_trim(struct journal *j, struct journal_mark upto); /* recycles what is before it */
void journal_close(struct journal **j); /* writes what is queued; every done() has run */
/* ERR_NO_SPACE: the last group found none; any thread. */
enum err journal_failure(const struct journal *j);
const struct journal_stats *journal_stats(const struct journal *j);

#endif
