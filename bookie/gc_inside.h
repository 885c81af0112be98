/* gc_inside.h - what the files of garbage collection share. */
#ifndef BOOKIE_GC_INSIDE_H
#define BOOKIE_GC_INSIDE_H

#include <pthread.h>

#include "bookie/gc.h"
#include "bookie/gc_store.h"
#include "bookie/ledger_tomb.h"
#include "bookie/reclaim.h"
#include "bookie/storage.h"

enum { GC_DAMAGED_MAX = 64 };

struct gc_stats {
    struct reclaim_stats logs;
    struct metric deleted_ledgers, moved_ledgers, trashed, tombs, halted;
    struct metric healed;
    struct metric minors, majors, listings, failed_listings;
    struct histogram round_us;
};

/* A pair of entry log and index, and where they are. */
struct gc_device {
    const char *dir;
    struct entry_log *log;
    struct entry_index *index;
    struct reclaim reclaim;
};

/* What an operator may change while it runs. */
struct gc_settings {
    int64_t wait_ms, minor_s, major_s, minor_max_ms, major_max_ms, entries_rate, bytes_rate;
    bool by_bytes;
    double minor_threshold, major_threshold;
};

struct gc {
    struct gc_conf conf;
    struct gc_guard guard;
    struct gc_store store;
    struct gc_device devices[DEVICES_MAX];
    unsigned n;
    struct gc_stats stats;
    uint64_t minor_done, major_done; /* us; the last ones */
    uint64_t moved_at;               /* when it is due */
    enum gc_depth depth;             /* of the round under way */
    uint64_t pace_at;                /* when compaction may go on */
    uint64_t unshared, share_at;     /* bytes moved since it asked what it may have; as pace_at */
    int64_t damaged[GC_DAMAGED_MAX]; /* ledgers with records that compaction cannot read */
    unsigned damaged_n;
    bool was_tight;     /* a device, at the last look */
    uint64_t stored_at; /* when the guard's memory was, outside a round */

    pthread_t thread;
    bool started;
    pthread_mutex_t lock; /* the rest */
    pthread_cond_t woken;
    bool stopping, asked, resumed;
    enum gc_depth asked_depth;
    struct gc_settings settings;
    struct gc_state state;
};

/* Whose index has its row, or its tomb. */
struct gc_device *gc_device_of(struct gc *g, int64_t ledger);
bool gc_stops(struct gc *g);
uint64_t gc_now_ms(void);

/* gc_round.c: the metadata is asked, and what is gone there goes here. */
void gc_round_recall(struct gc *g); /* at the start: what is in the trash, or going */
void gc_round_run(struct gc *g);
void gc_round_look(struct gc *g); /* between two: is it still the same store? */
void gc_round_tell(struct gc *g); /* that it is halted, if it is */

/* gc_purge.c: one ledger leaves this bookie.  Begun: nobody finds it any more; ERR_BUSY: something
 * of it is on its way to the index, begin again later. */
MUST_CHECK enum err gc_purge_begin(struct gc *g, int64_t ledger);
/* kind: TOMB_GOING or TOMB_MOVED.  It has begun; on an error too. */
MUST_CHECK enum err gc_purge_end(struct gc *g, int64_t ledger, enum tomb_kind kind);
void gc_purge_cancel(struct gc *g, int64_t ledger);

/* gc_heal.c: damaged ledgers get their entries back from other bookies. */
void gc_heal_note(struct gc *g, int64_t ledger); /* more than GC_DAMAGED_MAX: in another round */
void gc_heal_run(struct gc *g);

/* gc_moved.c: ledgers that are whole on other bookies, and of which the metadata names us no
 * more. */
void gc_moved_run(struct gc *g, const struct gc_ids *here);

#endif
