/* store.h - a storage on a disk in memory (the indexes are RocksDB's and on a real one), what was
 * acknowledged by it, and whether it still is there.
 *
 * Driven by one loop, which is the test's thread until storage_serve().
 */
#ifndef TESTS_UNIT_BOOKIE_STORE_H
#define TESTS_UNIT_BOOKIE_STORE_H

#include <stdatomic.h>

#include "bookie/storage.h"
#include "tests/lib/fake_disk.h"

enum { STORE_LEDGERS = 8, STORE_ENTRIES = 400, STORE_HALF = 64 << 10, STORE_WRITES = 4096 };

struct store_write {
    struct store *store;
    struct journal_write write;
    uint8_t head[FENCE_RECORD];
    int64_t ledger, entry; /* -1: a fence */
};

struct store {
    char dir[256];
    struct fake_disk *disk;
    struct loops loops;
    struct storage *storage;
    unsigned n_devices, n_journals;
    uint64_t flush_interval_ms;
    uint64_t half_bytes;
    void (*room)(void *ctx, unsigned shard); /* as storage.h and journal.h have them; ctx: this */
    void (*group_done)(void *ctx, struct loop *home);
    char *dirs[DEVICES_MAX], *index_dirs[DEVICES_MAX], *journal_dirs[JOURNALS_MAX];
    atomic_bool acked[STORE_LEDGERS][STORE_ENTRIES], fenced[STORE_LEDGERS];
    atomic_uint failures, waiting;
    struct store_write writes[STORE_WRITES]; /* one that a failed journal never ends needs no end */
    unsigned n_writes;
};

extern const uint8_t store_key[MASTER_KEY_SIZE];

/* Directories are "ledgers", "ledgers1" ... and "journal", "journal1" ... */
struct store *store_new(unsigned n_devices, unsigned n_journals); /* gives; nothing is open */
void store_drop(struct store **s);
enum err store_start(struct store *s);
void store_stop(struct store *s);  /* in order, without a last checkpoint unless it serves */
void store_crash(struct store *s); /* nothing is written at the end, nor kept that was not synced */

/* As a handler does it. */
enum err store_add(struct store *s, int64_t ledger, int64_t entry);
enum err store_fence(struct store *s, int64_t ledger);
void store_wait(struct store *s); /* until all are done, or the journal has failed */
struct device *store_device(struct store *s, int64_t ledger);

enum err store_look(struct store *s, int64_t ledger, int64_t entry);
/* Everything that was acknowledged is there.  With `broken` a look may fail, but it never says
 * that there is no such entry. */
void store_check(struct store *s, bool broken);

#endif
