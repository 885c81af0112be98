/* storage.h - what a bookie keeps: ledgers, entries, and the way from memory to the devices.
 *
 *   storage_put --> write cache (a shard a loop) --checkpoint--> entry log + index --> mark
 *   storage_look: active half, frozen half, read cache;  then reads.h: index and entry log
 *
 * A shard belongs to a loop: ledger id modulo loops.  Before storage_serve() everything runs on
 * the starting thread.
 *
 * Threads: shards on their loop; the checkpoint on its own thread.
 * Limits:  a half of the write cache takes half_bytes over all shards, then ERR_BUSY; conf.room()
 *          tells a shard's loop that there is room again.
 */
#ifndef BOOKIE_STORAGE_H
#define BOOKIE_STORAGE_H

#include <stdatomic.h>

#include "bookie/checkpoint.h"
#include "bookie/entry_index.h"
#include "bookie/entry_log.h"
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
    const char *dir;       /* entry logs and the mark */
    const char *index_dir; /* RocksDB, always on the real disk */
    uint64_t half_bytes;
    uint64_t read_cache_bytes; /* all shards together */
    uint64_t log_limit;
    uint64_t flush_interval_ms;
    struct journal_conf journal;
    void (*room)(void *ctx, unsigned shard); /* on the shard's loop; or NULL */
    void *ctx;
};

struct storage_shard {
    struct ledgers ledgers;
    struct write_cache cache;
    struct read_cache read;
};

struct storage {
    struct storage_conf conf;
    struct loops *loops;
    struct journal *journal;
    struct entry_log *log;
    struct entry_index *index;
    struct checkpoint *checkpoint;
    atomic_size_t active_bytes; /* of all active halves */
    atomic_size_t frozen_bytes;
    bool is_serving;
    uint64_t replayed; /* records */
    struct storage_shard shards[64];
};

/* Opens, replays the journal and flushes what it held.  conf's strings outlive it. */
MUST_CHECK enum err storage_open(struct storage **out, const struct storage_conf *conf);
MUST_CHECK enum err storage_serve(struct storage *s); /* from now on shards are their loops' */
/* A last checkpoint; then the journal's thread ends, and every done() has run. */
void storage_stop(struct storage *s);
void storage_close(struct storage **s); /* after a stop, when no loop uses it any more */

static inline struct storage_shard *storage_shard(struct storage *s, int64_t ledger)
{
    return &s->shards[(uint64_t)ledger % s->loops->n];
}

/* Takes bytes, also when it is ERR_BUSY: the write cache is full. */
MUST_CHECK enum err storage_put(struct storage *s, struct ledger *l, int64_t entry, int64_t lac,
                                struct slice bytes);
/* body: ledger, LAC and more, at most EXPLICIT_LAC_MAX.  A lower one than before changes nothing.
 */
void storage_put_lac(struct storage *s, struct ledger *l, struct view body);
/* In memory?  Borrows, NULL when not. */
const struct slice *storage_look(struct storage *s, int64_t ledger, int64_t entry);
void storage_forget_read(struct storage *s, int64_t ledger, int64_t entry);
/* fn(ctx, shard) on every shard's loop, one after the other. */
void storage_each_shard(struct storage *s, void (*fn)(void *ctx, unsigned shard), void *ctx);

#endif
