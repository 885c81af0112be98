/* storage.h - what a bookie keeps: ledgers, entries, and the way from memory to the devices.
 *
 *   storage_put --> write cache (a shard a loop, a part of it a device)
 *                          --checkpoint of the device--> entry log + index --> marks
 *   storage_look: active half, frozen half, read cache;  then reads.h: index and entry log
 *
 *   journals[]  a record goes to one, by its ledger's id: so it is behind what the ledger got
 * before devices[]   a ledger lives on one; each has a mark for every journal, and a journal file
 * goes when it is behind the marks of all devices
 *
 * Replay reads every journal from the least mark on.  What a device has already is put again,
 * which changes nothing: an entry is the same, a fence stays, a row only grows.  So it does not
 * depend on the choice of journal or device, and directories may be added between two starts.
 *
 * A shard belongs to a loop: ledger id modulo loops.  Before storage_serve() everything runs on
 * the starting thread.
 *
 * Threads: shards on their loop; a checkpoint a device, on its own thread.
 * Limits:  a half of the write cache takes half_bytes over all shards, the same part for each
 *          device, then ERR_BUSY: a device that is slow or fails holds up nobody else's entries.
 *          conf.room() tells a shard's loop that there is room again.
 */
#ifndef BOOKIE_STORAGE_H
#define BOOKIE_STORAGE_H

#include <pthread.h>
#include <stdatomic.h>

#include "bookie/checkpoint.h"
#include "bookie/device.h"
#include "bookie/journal.h"
#include "bookie/ledgers.h"
#include "bookie/read_cache.h"
#include "bookie/write_cache.h"

enum record_kind {
    RECORD_ADD = 1,   /* key, entry */
    RECORD_FENCE = 2, /* key, ledger */
    RECORD_LAC = 3    /* key, explicit LAC: ledger, LAC, ... */
};
enum { FENCE_RECORD = MASTER_KEY_SIZE + 8 };

struct storage_conf {
    struct disk *disk;
    const char *const *dirs;       /* n_devices: entry logs and the marks */
    const char *const *index_dirs; /* as many: RocksDB, always on the real disk */
    unsigned n_devices;
    const char *const *journal_dirs;
    unsigned n_journals;
    uint64_t half_bytes;
    uint64_t read_cache_bytes; /* all shards together */
    uint64_t log_limit;
    uint64_t flush_interval_ms;
    struct journal_conf journal; /* of each, without a dir; queue_bytes: of all together */
    void (*room)(void *ctx, unsigned shard); /* on the shard's loop; or NULL */
    void *ctx;
};

struct storage_shard {
    struct ledgers ledgers;
    struct write_cache *caches; /* one a device */
    struct read_cache read;
    uint64_t thaws; /* how often what was written left a cache */
};

enum { STORAGE_SHARDS_MAX = 64 };

struct storage {
    struct storage_conf conf;
    struct loops *loops;
    struct journal *journals[JOURNALS_MAX];
    unsigned n_journals;
    struct device devices[DEVICES_MAX];
    unsigned n_devices;
    uint64_t device_bytes;      /* that a half may hold for a device */
    pthread_mutex_t marks_lock; /* every device's marks */
    bool is_serving;
    uint64_t replayed;                               /* records */
    struct storage_shard shards[STORAGE_SHARDS_MAX]; /* one a loop */
};

/* Opens, replays the journals and flushes what it held.  conf's strings outlive it. */
MUST_CHECK enum err storage_open(struct storage **out, const struct storage_conf *conf);
MUST_CHECK enum err storage_serve(struct storage *s); /* from now on shards are their loops' */
/* A last checkpoint of each device; then the journals' threads end, and every done() has run. */
void storage_stop(struct storage *s);
void storage_close(struct storage **s); /* after a stop, when no loop uses it any more */

static inline struct storage_shard *storage_shard(struct storage *s, int64_t ledger)
{
    return &s->shards[(uint64_t)ledger % s->loops->n];
}

static inline struct journal *storage_journal(const struct storage *s, int64_t ledger)
{
    return s->journals[s->n_journals == 1 ? 0 : (uint32_t)ledger_hash(ledger) % s->n_journals];
}

/* Takes bytes, also when it is ERR_BUSY: the device's part of the write cache is full. */
MUST_CHECK enum err storage_put(struct storage *s, struct ledger *l, int64_t entry, int64_t lac,
                                struct slice bytes);
/* body: ledger, LAC and more, at most EXPLICIT_LAC_MAX.  A lower one than before changes nothing.
 */
void storage_put_lac(struct storage *s, struct ledger *l, struct view body);
/* In memory?  Borrows, NULL when not. */
const struct slice *storage_look(struct storage *s, const struct ledger *l, int64_t entry);
void storage_forget_read(struct storage *s, int64_t ledger, int64_t entry);
/* fn(ctx, shard) on every shard's loop, one after the other. */
void storage_each_shard(struct storage *s, void (*fn)(void *ctx, unsigned shard), void *ctx);
void storage_kick(struct storage *s); /* all devices' checkpoints, soon; any thread */
MUST_CHECK enum err storage_flush(struct storage *s); /* now; before storage_serve() */

/* For the checkpoints: a device's marks are stored; journal files behind the least of all are
 * recycled. */
void storage_marks_moved(struct storage *s, struct device *d, const struct marks *stored);

#endif
