/* gc.h - space of deleted ledgers is taken back: ledgers go, then logs, then what is left is moved.
 *
 *   every gcWaitTime, on a thread of its own:
 *     local ledgers -> all ledgers of the metadata -> gc_guard.h -> trash -> gone
 *     a device at a time: logs without live ledgers go; compaction.h empties those with few
 *
 * It halts, and says so, when the metadata store is not the one that it was, or is older, or when
 * too much vanishes at once; compaction goes on.  gc_resume() is the operator's word.
 *
 * Threads: open and close from no loop's; the rest from any.
 */
#ifndef BOOKIE_GC_H
#define BOOKIE_GC_H

#include "bookie/bookie.h"
#include "bookie/gc_guard.h"

struct gc;
struct reads;
struct storage;

struct gc_conf {
    const struct bookie_conf *conf;
    const char *bookie_id;
    struct disk *disk;
    struct storage *storage;
    struct metadata *meta;
    struct reads *reads; /* moving entries shares what catching up may have; NULL: it is not held */
};

enum gc_depth { GC_LISTING, GC_MINOR, GC_MAJOR }; /* each with those before it */

struct gc_state {
    bool is_forced, is_minor, is_major; /* what is under way, or asked for */
    bool minor_suspended, major_suspended;
    int64_t last_minor_ms, last_major_ms, last_listing_ms; /* ms since 1970; 0: never yet */
    int64_t minors, majors, listings;
    enum gc_halt halt;
    uint64_t vanished, local; /* ledgers, when it was halted by the brake */
    uint64_t trashed, tombs;
};

MUST_CHECK enum err gc_open(struct gc **out, const struct gc_conf *conf); /* gives; it runs */
void gc_close(struct gc **g);
/* As soon as it can, whatever the intervals say (it asks itself when a device gets tight); also
 * when the disk is full: whole logs go first, and the reserve is given up for the rest. */
void gc_run_now(struct gc *g, enum gc_depth depth);
void gc_suspend(struct gc *g, bool minor, bool major);
void gc_unsuspend(struct gc *g, bool minor, bool major);
/* Intervals, thresholds and rates; the time between rounds counts from the next look on. */
void gc_set(struct gc *g, const struct bookie_conf *conf);
void gc_state(struct gc *g, struct gc_state *out);
void gc_resume(struct gc *g); /* the store is right as it is now, and so is what has vanished */
void gc_render(struct gc *g, struct text *t);

#endif
