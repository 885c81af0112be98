#include "bookie/storage.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "bookie/reads.h"
#include "common/mem.h"
#include "tests/lib/fake_disk.h"
#include "tests/lib/suite.h"
#include "tests/unit/common/captured.h"

/* A storage on a disk in memory (the index is RocksDB's and on a real one), driven by one loop
 * that is this thread's until storage_serve(). */
enum { LEDGERS = 3, ENTRIES = 400, HALF = 64 << 10 };

static struct fake_disk *disk;
static struct loops loops;
static struct storage *storage;
static char dir[256], index_dir[300], index_dir_1[300];
static const char *const dirs[] = {"ledgers", "ledgers1"};
static const char *const index_dirs[] = {index_dir, index_dir_1};
static const char *const journal_dirs[] = {"journal", "journal1", "journal2"};
static unsigned n_devices = 1, n_journals = 1;
static const uint8_t key[MASTER_KEY_SIZE] = {1, 2, 3};
static atomic_bool acked[LEDGERS][ENTRIES], fenced[LEDGERS];
static atomic_uint failures, waiting;

struct one {
    struct journal_write write;
    uint8_t head[FENCE_RECORD];
    int64_t ledger, entry; /* -1: a fence */
};
static struct one ones[4096]; /* those that a failed journal never ends need no end */
static unsigned n_ones;
static struct captured captured;

static void begin(void)
{
    const char *tmp = getenv("TMPDIR");
    snprintf(dir, sizeof dir, "%s/lgm-storage-XXXXXX", tmp ? tmp : "/tmp");
    ck_assert_ptr_nonnull(mkdtemp(dir));
    snprintf(index_dir, sizeof index_dir, "%s/index", dir);
    snprintf(index_dir_1, sizeof index_dir_1, "%s/index1", dir);
    disk = fake_disk_new();
    loops_start(&loops, "loop", 1);
    memset(acked, 0, sizeof acked);
    memset(fenced, 0, sizeof fenced);
    atomic_store(&failures, 0);
    atomic_store(&waiting, 0);
    n_ones = 0;
}

static void end(void)
{
    loops_stop(&loops);
    fake_disk_drop(&disk);
    char *command = mem_format("rm -rf '%s'", dir);
    ck_assert_int_eq(system(command), 0);
    mem_free(command);
}

static void failed(void *ctx, enum err why)
{
    (void)ctx;
    (void)why;
    atomic_fetch_add(&failures, 1);
}

static uint64_t flush_interval_ms = 3600000;

static enum err start(void)
{
    const struct storage_conf conf = {
        .disk = fake_disk_of(disk),
        .dirs = dirs,
        .index_dirs = index_dirs,
        .n_devices = n_devices,
        .journal_dirs = journal_dirs,
        .n_journals = n_journals,
        .half_bytes = HALF,
        .read_cache_bytes = HALF,
        .log_limit = 200 << 10,
        .flush_interval_ms = flush_interval_ms,
        .journal = {.file_bytes = 256 << 10,
                    .group_bytes = 32 << 10,
                    .queue_bytes = 4 << 20,
                    .record_max = 64 << 10,
                    .loops = &loops,
                    .failed = failed},
    };
    return storage_open(&storage, &conf);
}

static void crash(void)
{
    if (storage)
        storage_stop(storage);
    storage_close(&storage);
    fake_disk_crash(disk);
}

static void done(struct journal_write *w, enum err err)
{
    struct one *o = container_of(w, struct one, write);
    if (!err && o->entry >= 0)
        acked[o->ledger][o->entry] = true;
    else if (!err)
        fenced[o->ledger] = true;
    atomic_fetch_sub(&waiting, 1);
}

static void wait_all(void)
{
    while (atomic_load(&waiting) > 0 && atomic_load(&failures) == 0)
        sched_yield();
}

static size_t entry_size(int64_t entry)
{
    return 40 + (size_t)(entry % 7) * 100;
}

static struct slice make_entry(int64_t ledger, int64_t entry)
{
    uint8_t bytes[1000];
    memset(bytes, (int)(ledger * 31 + entry), sizeof bytes);
    entry_prefix(&(struct entry_header){ledger, entry, entry - 1, 0}, 0, 0, bytes);
    return slice_copy(bytes, entry_size(entry));
}

static void journal_it(struct one *o, uint8_t kind, size_t head, struct slice body)
{
    memcpy(o->head, key, MASTER_KEY_SIZE);
    o->write = (struct journal_write){.kind = kind,
                                      .head = view_of(o->head, head),
                                      .body = body,
                                      .home = loops.at[0],
                                      .done = done};
    atomic_fetch_add(&waiting, 1);
    ck_assert_int_eq(journal_append(storage_journal(storage, o->ledger), &o->write), ERR_OK);
}

/* As a handler does it; a full cache makes room first. */
static enum err add(int64_t ledger, int64_t entry)
{
    struct ledger *l;
    struct one *o = &ones[n_ones++ % 4096];
    o->ledger = ledger;
    o->entry = entry;
    struct ledgers *t = &storage_shard(storage, ledger)->ledgers;
    enum err err = ledgers_claim(t, ledger, key, &l);
    if (!err)
        err = storage_put(storage, l, entry, entry - 1, make_entry(ledger, entry));
    if (!err)
        journal_it(o, RECORD_ADD, MASTER_KEY_SIZE, make_entry(ledger, entry));
    return err;
}

static enum err fence(int64_t ledger)
{
    struct ledger *l;
    struct one *o = &ones[n_ones++ % 4096];
    struct ledgers *t = &storage_shard(storage, ledger)->ledgers;
    const enum err err = ledgers_claim(t, ledger, key, &l);
    TRY(err);
    l->row.fenced = true;
    l->fence = LEDGER_FENCED;
    ledger_changed(t, l);
    o->ledger = ledger;
    o->entry = -1;
    for (unsigned i = 0; i < 8; i++)
        o->head[MASTER_KEY_SIZE + i] = (uint8_t)((uint64_t)ledger >> (56 - 8 * i));
    journal_it(o, RECORD_FENCE, FENCE_RECORD, (struct slice){0});
    return ERR_OK;
}

static enum err look(int64_t ledger, int64_t entry)
{
    struct entry_place at;
    struct slab *s;
    size_t got;
    struct view v;
    struct ledger *l;
    TRY(ledgers_find(&storage_shard(storage, ledger)->ledgers, ledger, &l));
    const struct slice *found = storage_look(storage, l, entry);
    if (found)
        return found->len == entry_size(entry) ? ERR_OK : ERR_CHECKSUM;
    TRY(entry_index_find(l->device->index, ledger, entry, &at));
    TRY(entry_log_read(l->device->log, &at, 0, &s, &got));
    const enum err err = entry_log_check(view_of(slab_bytes(s), got), at.length, ledger, entry, &v);
    slab_drop(&s);
    return err;
}

/* With `broken` a look may fail, but it never says that there is no such entry. */
static void check_with(bool broken)
{
    for (int64_t l = 0; l < LEDGERS; l++) {
        struct ledger *ledger;
        const enum err err = ledgers_find(&storage_shard(storage, l)->ledgers, l, &ledger);
        ck_assert(!fenced[l] || (!err && ledger->row.fenced && ledger->fence == LEDGER_FENCED));
        int64_t highest = -1;
        for (int64_t e = 0; e < ENTRIES; e++) {
            if (!acked[l][e])
                continue;
            const enum err found = look(l, e);
            ck_assert(!found || (broken && found == ERR_IO));
            highest = e;
        }
        ck_assert(highest < 0 || (!err && ledger->row.last >= highest));
    }
}

static void check(void)
{
    check_with(false);
}

START_TEST(keeps_what_it_acknowledged)
{
    begin();
    for (unsigned round = 0; round < 4; round++) {
        ck_assert_int_eq(start(), ERR_OK);
        check();
        for (int64_t e = round * 100; e < (round + 1) * 100; e++)
            for (int64_t l = 0; l < LEDGERS; l++)
                if (add(l, e) == ERR_BUSY) {
                    ck_assert_int_eq(storage_flush(storage), ERR_OK);
                    ck_assert_int_eq(add(l, e), ERR_OK);
                }
        wait_all();
        check();
        crash();
    }
    ck_assert_int_eq(start(), ERR_OK);
    check();
    ck_assert_int_eq(look(1, ENTRIES), ERR_NO_ENTRY);
    crash();
    end();
}
END_TEST

START_TEST(an_empty_cache_still_flushes_fences)
{
    begin();
    ck_assert_int_eq(start(), ERR_OK);
    ck_assert_int_eq(fence(2), ERR_OK);
    wait_all();
    const struct journal_mark before = storage->devices[0].marks.of[0];
    ck_assert_int_eq(storage_flush(storage), ERR_OK);
    const struct journal_mark after = storage->devices[0].marks.of[0];
    ck_assert_uint_gt(after.sequence, before.sequence);
    crash();
    ck_assert_int_eq(start(), ERR_OK);
    ck_assert_uint_eq(storage->replayed, 0); /* it came from the index, not from the journal */
    ck_assert(fenced[2]);
    check();
    crash();
    end();
}
END_TEST

START_TEST(a_busy_cache_says_so)
{
    begin();
    ck_assert_int_eq(start(), ERR_OK);
    int64_t e = 0;
    while (add(0, e) == ERR_OK)
        e++;
    ck_assert_int_gt(e, 100);
    ck_assert_int_eq(storage_flush(storage), ERR_OK);
    ck_assert_int_eq(add(0, e), ERR_OK);
    wait_all();
    check();
    crash();
    end();
}
END_TEST

START_TEST(a_replay_may_be_larger_than_the_cache)
{
    begin();
    ck_assert_int_eq(start(), ERR_OK);
    for (int64_t e = 0; e < 120; e++)
        for (int64_t l = 0; l < LEDGERS; l++)
            if (add(l, e) == ERR_BUSY) {
                ck_assert_int_eq(checkpoint_run(storage->devices[0].checkpoint, false), ERR_OK);
                ck_assert_int_eq(add(l, e), ERR_OK);
            }
    wait_all();
    crash();
    ck_assert_int_eq(start(), ERR_OK);
    ck_assert_uint_eq(storage->replayed, 360);
    check();
    crash();
    end();
}
END_TEST

/* One operation of the disk fails, whichever: the mark stays where it may be, a retry or a new
 * start finds everything that was acknowledged. */
static bool run_with_fault(enum fake_op op, unsigned after)
{
    begin();
    ck_assert_int_eq(start(), ERR_OK);
    const unsigned before = fake_disk_calls(disk, op);
    fake_disk_fail(disk, op, after, 1);
    for (int64_t e = 0; e < 24 && atomic_load(&failures) == 0; e++) {
        if (e == 12 && fence(1))
            break;
        for (int64_t l = 0; l < LEDGERS && (l != 1 || e < 12); l++)
            if (add(l, e) == ERR_BUSY)
                (void)!storage_flush(storage);
        if (e % 8 == 7) {
            const struct journal_mark m = storage->devices[0].marks.of[0];
            const enum err err = storage_flush(storage);
            const struct journal_mark now = storage->devices[0].marks.of[0];
            ck_assert(err || now.sequence >= m.sequence);
            ck_assert(!err || now.sequence == m.sequence);
            check_with(true);
            ck_assert_int_eq(err ? storage_flush(storage) : err, ERR_OK);
        }
    }
    wait_all();
    const bool untouched = fake_disk_calls(disk, op) - before <= after;
    crash();
    fake_disk_fail(disk, op, 0, 0);
    atomic_store(&failures, 0);
    ck_assert_int_eq(start(), ERR_OK);
    check();
    crash();
    end();
    return untouched;
}

START_TEST(survives_any_failure)
{
    static const enum fake_op ops[] = {FAKE_OPEN,   FAKE_WRITE,  FAKE_SYNC,
                                       FAKE_RENAME, FAKE_REMOVE, FAKE_SYNC_DIR};
    for (unsigned after = 0; !run_with_fault(ops[_i], after); after += 1 + after / 6)
        ;
}
END_TEST

START_TEST(damage_is_not_absence)
{
    begin();
    ck_assert_int_eq(start(), ERR_OK);
    ck_assert_int_eq(add(0, 1), ERR_OK);
    wait_all();
    ck_assert_int_eq(storage_flush(storage), ERR_OK);
    ck_assert_int_eq(look(0, 1), ERR_OK);
    fake_disk_flip(disk, "ledgers/0000000000000001.log", 64 + 8 + 20);
    ck_assert_int_eq(look(0, 1), ERR_CHECKSUM);
    struct disk *d = fake_disk_of(disk);
    storage_stop(storage);
    storage_close(&storage);
    ck_assert_int_eq(d->ops->remove(d, "ledgers/0000000000000001.log"), ERR_OK);
    ck_assert_int_eq(start(), ERR_OK);
    ck_assert_int_eq(look(0, 1), ERR_NOT_FOUND);
    ck_assert_int_eq(look(0, 2), ERR_NO_ENTRY);
    crash();
    end();
}
END_TEST

START_TEST(a_mark_that_cannot_be_read_stops_the_start)
{
    begin();
    ck_assert_int_eq(start(), ERR_OK);
    crash();
    fake_disk_flip(disk, "ledgers/mark", 10);
    ck_assert_int_eq(start(), ERR_CHECKSUM);
    end();
}
END_TEST

/* Its files are RocksDB's, which starts without some of them as if nothing had been there. */
static void index_loses(const char *files)
{
    begin();
    ck_assert_int_eq(start(), ERR_OK);
    ck_assert_int_eq(add(0, 1), ERR_OK);
    wait_all();
    ck_assert_int_eq(storage_flush(storage), ERR_OK);
    crash();
    char *command = mem_format("rm -r '%s'%s", index_dir, files);
    ck_assert_int_eq(system(command), 0);
    mem_free(command);
    capture_start(&captured);
    const enum err err = start();
    const char *said = capture_end(&captured);
    ck_assert_int_eq(err, ERR_CHECKSUM);
    ck_assert_ptr_nonnull(strstr(said, "entry_index.lost"));
    end();
}

START_TEST(an_index_that_is_gone_stops_the_start)
{
    index_loses("");
    index_loses("/*.log");
}
END_TEST

START_TEST(a_failed_flush_leaves_no_files)
{
    begin();
    ck_assert_int_eq(start(), ERR_OK);
    int64_t e = 0;
    while (add(0, e) == ERR_OK)
        e++;
    wait_all();
    for (unsigned i = 0; i < 5; i++) {
        fake_disk_fail(disk, FAKE_WRITE, 0, 1);
        ck_assert_int_eq(storage_flush(storage), ERR_IO);
    }
    ck_assert_int_eq(storage_flush(storage), ERR_OK);
    struct disk_file *f;
    struct disk *d = fake_disk_of(disk);
    ck_assert_int_eq(d->ops->open(d, "ledgers/0000000000000003.log", DISK_READ, &f), ERR_NOT_FOUND);
    check();
    crash();
    end();
}
END_TEST

/* ---- reads ---------------------------------------------------------------------------------- */

struct read_of {
    struct read_job job;
    struct reads *reads;
    enum err err;
    unsigned n;
    atomic_bool is_done;
};

static void was_read(struct read_job *job)
{
    struct read_of *r = container_of(job, struct read_of, job);
    r->err = job->err;
    r->n = job->window ? job->window->n : 0;
    reads_give_back(r->reads, &job->window);
    atomic_store(&r->is_done, true);
}

static unsigned read_one(struct reads *reads, int64_t entry, enum err expected)
{
    struct read_of r = {.job = {.device = &storage->devices[0],
                                .ledger = 0,
                                .entry = entry,
                                .home = loops.at[0],
                                .done = was_read},
                        .reads = reads};
    reads_submit(reads, &r.job);
    while (!atomic_load(&r.is_done))
        sched_yield();
    ck_assert_int_eq(r.err, expected);
    return r.n;
}

START_TEST(a_read_brings_in_what_lies_behind)
{
    struct reads *reads;
    begin();
    ck_assert_int_eq(start(), ERR_OK);
    for (int64_t e = 0; e < 100; e += 2)
        ck_assert_int_eq(add(0, e), ERR_OK);
    wait_all();
    ck_assert_int_eq(storage_flush(storage), ERR_OK);
    ck_assert_int_eq(reads_open(&reads, &loops, 2, 64 << 10), ERR_OK);
    ck_assert_uint_eq(read_one(reads, 0, ERR_OK), 50);
    ck_assert_uint_eq(read_one(reads, 90, ERR_OK), 5);
    ck_assert_uint_eq(read_one(reads, 1, ERR_NO_ENTRY), 0);
    ck_assert_uint_eq(read_one(reads, 5000, ERR_NO_ENTRY), 0);
    for (int64_t e = 0; e < 200; e++) /* windows are given back, or this would stop at 64 */
        read_one(reads, e % 50 * 2, ERR_OK);
    fake_disk_flip(disk, "ledgers/0000000000000001.log", 64 + 8 + 20);
    read_one(reads, 0, ERR_CHECKSUM);
    reads_close(&reads);
    crash();
    end();
}
END_TEST

START_TEST(a_checkpoint_longer_than_its_interval_is_logged)
{
    begin();
    flush_interval_ms = 5;
    ck_assert_int_eq(start(), ERR_OK);
    ck_assert_int_eq(add(0, 1), ERR_OK);
    wait_all();
    capture_start(&captured);
    fake_disk_slow(disk, 20000);
    ck_assert_int_eq(storage_flush(storage), ERR_OK);
    const char *line = strstr(capture_end(&captured), "checkpoint.slow");
    ck_assert_ptr_nonnull(line);
    unsigned log_ms = 0;
    ck_assert_int_eq(sscanf(strstr(line, " log_ms="), " log_ms=%u", &log_ms), 1);
    ck_assert_uint_ge(log_ms, 20);
    ck_assert_ptr_nonnull(strstr(line, " entries=1 ledgers=1"));
    ck_assert_ptr_null(strstr(line + 1, "checkpoint.slow"));
    fake_disk_slow(disk, 0);
    crash();
    end();
}
END_TEST

int main(void)
{
    return suite_run("storage",
                     (suite_case[]){SUITE_CASE(keeps_what_it_acknowledged),
                                    SUITE_CASE(an_empty_cache_still_flushes_fences),
                                    SUITE_CASE(a_busy_cache_says_so),
                                    SUITE_CASE(a_replay_may_be_larger_than_the_cache),
                                    {.name = "survives_any_failure",
                                     .test = survives_any_failure,
                                     .rounds = 6,
                                     .timeout_s = 120},
                                    SUITE_CASE(damage_is_not_absence),
                                    SUITE_CASE(a_mark_that_cannot_be_read_stops_the_start),
                                    SUITE_CASE(an_index_that_is_gone_stops_the_start),
                                    SUITE_CASE(a_failed_flush_leaves_no_files),
                                    SUITE_CASE(a_read_brings_in_what_lies_behind),
                                    SUITE_CASE(a_checkpoint_longer_than_its_interval_is_logged),
                                    {0}});
}
