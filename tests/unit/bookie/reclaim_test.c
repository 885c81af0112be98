#include "bookie/reclaim.h"

#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "bookie/ledger_tomb.h"
#include "bookie/log_writer.h"
#include "bookie/reads.h"
#include "common/mem.h"
#include "tests/lib/suite.h"
#include "tests/unit/bookie/store.h"

/* Ledgers are written by turns, so that each log has something of each; then some go. */
enum { ENTRIES = 300, STEPS_MAX = 2000 };

/* Instead of libc's, for RocksDB: all else is on a disk in memory.  0: it goes well. */
static int sync_errno;
int fdatasync(int fd)
{
    if (!sync_errno)
        return (int)syscall(SYS_fdatasync, fd);
    errno = sync_errno;
    return -1;
}

static struct store *store;
static struct reclaim reclaim;
static struct reclaim_stats stats;
static uint64_t paced;

static enum err pace(void *ctx, uint64_t bytes)
{
    (void)ctx;
    paced += bytes;
    return ERR_OK;
}

static void set_up(void)
{
    struct device *d = &store->storage->devices[0];
    memset(&stats, 0, sizeof stats);
    reclaim_init(&reclaim, fake_disk_of(store->disk), d->conf.dir, d->log, d->index, &stats);
    reclaim.compaction.pace = pace;
}

static void fill(int64_t ledgers)
{
    for (int64_t e = 0; e < ENTRIES; e++)
        for (int64_t l = 0; l < ledgers; l++)
            if (store_add(store, l, e) == ERR_BUSY) {
                ck_assert_int_eq(storage_flush(store->storage), ERR_OK);
                ck_assert_int_eq(store_add(store, l, e), ERR_OK);
            }
    store_wait(store);
    ck_assert_int_eq(storage_flush(store->storage), ERR_OK);
}

static void begin(int64_t ledgers)
{
    store = store_new(1, 1);
    ck_assert_int_eq(store_start(store), ERR_OK);
    fill(ledgers);
    set_up();
}

static void delete (int64_t ledger)
{
    const struct ledger_tomb tomb = {.kind = TOMB_DELETED, .fenced = true};
    ck_assert_int_eq(ledger_tomb_put(reclaim.index, ledger, &tomb), ERR_OK);
    ck_assert_int_eq(entry_index_forget(reclaim.index, ledger), ERR_OK);
    for (int64_t e = 0; e < STORE_ENTRIES; e++)
        store->acked[ledger][e] = false;
}

/* A new start closes the log that was written last. */
static void restart(bool crash)
{
    if (crash)
        store_crash(store);
    else
        store_stop(store);
    ck_assert_int_eq(store_start(store), ERR_OK);
    set_up();
}

/* Of four ledgers in each log one is left. */
static void begin_with_garbage(void)
{
    begin(4);
    restart(false);
    for (int64_t l = 0; l < 3; l++)
        delete (l);
}

struct listing {
    uint64_t logs, bytes;
};

static void note(void *ctx, const char *name)
{
    struct listing *l = ctx;
    struct disk *d = fake_disk_of(store->disk);
    struct disk_file *f;
    uint64_t size;
    if (!strstr(name, ".log"))
        return;
    char *path = mem_format("ledgers/%s", name);
    ck_assert_int_eq(d->ops->open(d, path, DISK_READ, &f), ERR_OK);
    ck_assert_int_eq(d->ops->size(f, &size), ERR_OK);
    d->ops->close(&f);
    mem_free(path);
    l->logs++;
    l->bytes += size;
}

/* The fake disk lists under its lock: names first. */
struct names {
    char at[64][64];
    unsigned n;
};

static void take_name(void *ctx, const char *name)
{
    struct names *all = ctx;
    ck_assert_uint_lt(all->n, 64);
    snprintf(all->at[all->n++], 64, "%s", name);
}

static struct listing list_logs(void)
{
    static struct names names;
    struct disk *d = fake_disk_of(store->disk);
    struct listing l = {0};
    names.n = 0;
    ck_assert_int_eq(d->ops->list(d, "ledgers", take_name, &names), ERR_OK);
    for (unsigned i = 0; i < names.n; i++)
        note(&l, names.at[i]);
    return l;
}

START_TEST(a_log_that_is_closed_says_what_is_in_it)
{
    struct file_ids ids;
    struct log_usage usage;
    uint64_t size;
    begin(3);
    restart(false); /* seals the last one too */
    ck_assert_int_eq(entry_log_closed(reclaim.log, &ids), ERR_OK);
    ck_assert_uint_gt(ids.n, 1);
    for (size_t i = 0; i < ids.n; i++) {
        ck_assert_int_eq(entry_log_usage(reclaim.log, ids.at[i], &usage), ERR_OK);
        ck_assert_uint_eq(usage.n, 3);
        ck_assert_int_eq(entry_log_size(reclaim.log, ids.at[i], &size), ERR_OK);
        ck_assert_uint_lt(log_usage_bytes(&usage), size);
        ck_assert_int_eq(usage.at[2].ledger, 2);
        log_usage_end(&usage);
    }
    file_ids_end(&ids);
    store_check(store, false);
    store_drop(&store);
}
END_TEST

START_TEST(logs_without_live_ledgers_go)
{
    begin(3);
    restart(false);
    ck_assert_int_eq(reclaim_run(&reclaim, 0, 0), ERR_OK);
    ck_assert_int_eq(metric_get(&stats.removed_logs), 0);
    const struct listing before = list_logs();
    for (int64_t l = 0; l < 3; l++)
        delete (l);
    ck_assert_int_eq(reclaim_run(&reclaim, 0, 0), ERR_OK);
    ck_assert_int_eq(metric_get(&stats.removed_logs), (int64_t)before.logs);
    ck_assert_int_eq(metric_get(&stats.removed_bytes), (int64_t)before.bytes);
    ck_assert_uint_eq(list_logs().logs, 0);
    store_drop(&store);
}
END_TEST

START_TEST(what_is_left_of_a_log_moves)
{
    begin(6);
    restart(false);
    for (int64_t l = 0; l < 5; l++)
        delete (l);
    const struct listing before = list_logs();
    paced = 0;
    ck_assert_int_eq(reclaim_run(&reclaim, 0.1, 0), ERR_OK); /* none has less */
    ck_assert_int_eq(metric_get(&stats.compacted_logs), 0);
    ck_assert_int_eq(reclaim_run(&reclaim, 0.5, 0), ERR_OK);
    ck_assert_int_eq(metric_get(&stats.compacted_logs), (int64_t)before.logs);
    ck_assert_int_eq(metric_get(&stats.moved), ENTRIES);
    ck_assert_uint_eq(paced, (uint64_t)metric_get(&stats.moved_bytes));
    ck_assert_uint_lt(list_logs().bytes, before.bytes / 4);
    store_check(store, false);
    restart(true);
    store_check(store, false);
    ck_assert_int_eq(reclaim_run(&reclaim, 0.5, 0), ERR_OK); /* and not again */
    ck_assert_int_eq(metric_get(&stats.compacted_logs), 0);
    ck_assert_int_eq(metric_get(&stats.removed_logs), 0);
    store_check(store, false);
    store_drop(&store);
}
END_TEST

/* After a crash at any step everything is where the index says, and nothing is left over. */
START_TEST(a_crash_at_any_step_of_a_compaction)
{
    bool touched = true;
    unsigned after = (unsigned)_i;
    for (; touched && after < STEPS_MAX; after += 8) {
        begin_with_garbage();
        const unsigned before = fake_disk_calls(store->disk, FAKE_ANY);
        fake_disk_fail(store->disk, FAKE_ANY, after, 1000000);
        const enum err err = reclaim_run(&reclaim, 0.9, 0);
        touched = fake_disk_calls(store->disk, FAKE_ANY) - before > after;
        (void)err;
        fake_disk_fail(store->disk, FAKE_ANY, 0, 0);
        fake_disk_tear(store->disk, after);
        restart(true);
        reclaim.retries = true;
        store_check(store, false);
        ck_assert_int_eq(reclaim_run(&reclaim, 0.9, 0), ERR_OK);
        store_check(store, false);
        restart(true);
        reclaim.retries = true;
        store_check(store, false);
        ck_assert_int_eq(reclaim_run(&reclaim, 0.9, 0), ERR_OK);
        ck_assert_uint_lt(list_logs().bytes, 180 << 10); /* 100 KiB live */
        store_drop(&store);
    }
    ck_assert_uint_lt(after, STEPS_MAX);
}
END_TEST

START_TEST(a_single_failure_at_any_step_loses_nothing)
{
    bool touched = true;
    for (unsigned after = (unsigned)_i; touched; after += 8) {
        begin_with_garbage();
        const unsigned before = fake_disk_calls(store->disk, FAKE_ANY);
        fake_disk_fail(store->disk, FAKE_ANY, after, 1);
        const enum err err = reclaim_run(&reclaim, 0.9, 0);
        touched = fake_disk_calls(store->disk, FAKE_ANY) - before > after;
        (void)err;
        fake_disk_fail(store->disk, FAKE_ANY, 0, 0);
        store_check(store, false);
        ck_assert_int_eq(reclaim_run(&reclaim, 0.9, 0), ERR_OK);
        store_check(store, false);
        restart(true);
        store_check(store, false);
        store_drop(&store);
    }
}
END_TEST

START_TEST(a_record_that_is_damaged_stays_an_error_and_stops_nothing)
{
    begin_with_garbage();
    struct entry_place at;
    ck_assert_int_eq(entry_index_find(reclaim.index, 3, 5, &at), ERR_OK);
    char *path = entry_log_path("ledgers", at.log);
    fake_disk_flip(store->disk, path, at.offset + ENTRY_LOG_RECORD + 30);
    mem_free(path);
    const struct listing before = list_logs();
    ck_assert_int_eq(reclaim_run(&reclaim, 0.9, 0), ERR_OK);
    ck_assert_int_eq(metric_get(&stats.unreadable), 1);
    ck_assert_int_eq(metric_get(&stats.compacted_logs), (int64_t)before.logs - 1);
    ck_assert_int_eq(metric_get(&stats.moved), ENTRIES - 1);
    ck_assert_int_eq(store_look(store, 3, 5), ERR_CHECKSUM);
    store->acked[3][5] = false;
    store_check(store, false);
    restart(true);
    ck_assert_int_eq(reclaim_run(&reclaim, 0.9, 0), ERR_OK); /* it is not tried again */
    ck_assert_int_eq(metric_get(&stats.quarantined), 1);
    ck_assert_int_eq(metric_get(&stats.unreadable), 0);
    ck_assert_int_eq(store_look(store, 3, 5), ERR_CHECKSUM);
    store_check(store, false);
    delete (3);
    ck_assert_int_eq(reclaim_run(&reclaim, 0.9, 0), ERR_OK);
    ck_assert_uint_eq(list_logs().logs, 0);
    store_drop(&store);
}
END_TEST

/* What is added again while a log is compacted lies in a newer log: that one counts. */
/* The index says that entries could not be moved, and finds after a start that they were. */
START_TEST(a_move_that_failed_may_have_been_done)
{
    begin_with_garbage();
    sync_errno = EIO;
    for (unsigned i = 0; i < 3; i++)
        ck_assert_int_eq(reclaim_run(&reclaim, 0.9, 0), ERR_OK);
    ck_assert_int_eq(metric_get(&stats.compacted_logs), 0);
    ck_assert_int_gt(metric_get(&stats.failures), 0);
    store_check(store, false);
    sync_errno = 0;
    restart(true);
    store_check(store, false);
    ck_assert_int_eq(reclaim_run(&reclaim, 0.9, 0), ERR_OK);
    store_check(store, false);
    ck_assert_uint_lt(list_logs().bytes, 180 << 10); /* 100 KiB live */
    store_drop(&store);
}
END_TEST

/* RocksDB goes on by itself once there is space, and what was not moved does not stay. */
START_TEST(a_move_that_failed_and_is_done_again)
{
    begin_with_garbage();
    sync_errno = ENOSPC;
    ck_assert_int_eq(reclaim_run(&reclaim, 0.9, 0), ERR_OK);
    ck_assert_int_gt(metric_get(&stats.failures), 0);
    sync_errno = 0;
    while (metric_get(&stats.compacted_logs) == 0) {
        ck_assert_int_eq(reclaim_run(&reclaim, 0.9, 0), ERR_OK);
        poll(NULL, 0, 1);
    }
    store_check(store, false);
    ck_assert_int_eq(reclaim_run(&reclaim, 0.9, 0), ERR_OK);
    ck_assert_uint_lt(list_logs().bytes, 180 << 10);
    restart(true);
    store_check(store, false);
    store_drop(&store);
}
END_TEST

START_TEST(a_newer_place_is_not_overwritten)
{
    struct entry_place old, moved = {.log = 99, .offset = 64, .length = 40}, at;
    bool did = true;
    begin(1);
    ck_assert_int_eq(entry_index_find(reclaim.index, 0, 7, &old), ERR_OK);
    ck_assert_int_eq(store_add(store, 0, 7), ERR_OK);
    store_wait(store);
    ck_assert_int_eq(storage_flush(store->storage), ERR_OK);
    ck_assert_int_eq(entry_index_move(reclaim.index, 0, 7, &old, &moved, &did), ERR_OK);
    ck_assert_int_eq(entry_index_commit(reclaim.index), ERR_OK);
    ck_assert(!did);
    ck_assert_int_eq(entry_index_find(reclaim.index, 0, 7, &at), ERR_OK);
    ck_assert_uint_ne(at.log, 99);
    store_check(store, false);
    store_drop(&store);
}
END_TEST

START_TEST(a_full_disk_is_emptied_with_the_reserve)
{
    begin(4);
    restart(false);
    reclaim.reserve_bytes = 300 << 10;
    ck_assert_int_eq(reclaim_run(&reclaim, 0, 0), ERR_OK);
    for (int64_t l = 0; l < 3; l++)
        delete (l);
    const struct listing before = list_logs();
    struct disk *d = fake_disk_of(store->disk);
    uint64_t free_bytes, total;
    ck_assert_int_eq(d->ops->space(d, "ledgers", &free_bytes, &total), ERR_OK);
    fake_disk_budget(store->disk, total - free_bytes);
    struct disk_file *f;
    ck_assert_int_eq(d->ops->open(d, "ledgers/gc.reserve", DISK_READ, &f), ERR_OK);
    d->ops->close(&f);
    ck_assert_int_eq(reclaim_run(&reclaim, 0.9, 0), ERR_OK);
    ck_assert_int_eq(metric_get(&stats.failures), 0);
    ck_assert_int_eq(metric_get(&stats.compacted_logs), (int64_t)before.logs);
    ck_assert_int_eq(d->ops->open(d, "ledgers/gc.reserve", DISK_READ, &f), ERR_NOT_FOUND);
    store_check(store, false);
    ck_assert_uint_lt(list_logs().bytes, before.bytes / 2);
    store_drop(&store);
}
END_TEST

/* ---- readers -------------------------------------------------------------------------------- */

static atomic_uint read_answers, read_errors;
static _Atomic enum err read_error;

struct reader {
    struct read_job job;
    struct reads *reads;
};

static void was_read(struct read_job *job)
{
    struct reader *r = container_of(job, struct reader, job);
    if (job->err) {
        atomic_store(&read_error, job->err);
        atomic_fetch_add(&read_errors, 1);
    } else {
        reads_give_back(r->reads, &job->window);
    }
    atomic_fetch_add(&read_answers, 1);
}

START_TEST(who_reads_a_log_while_it_goes_finds_the_entry)
{
    (void)_i;
    static struct reader readers[ENTRIES];
    struct reads *reads;
    begin_with_garbage();
    ck_assert_int_eq(reads_open(&reads, &store->loops, 2, 4096), ERR_OK);
    for (int64_t e = 0; e < ENTRIES; e++) {
        struct reader *r = &readers[e];
        *r = (struct reader){.reads = reads,
                             .job = {.ledger = 3,
                                     .entry = e,
                                     .device = &store->storage->devices[0],
                                     .home = store->loops.at[0],
                                     .done = was_read}};
        reads_submit(reads, &r->job);
    }
    ck_assert_int_eq(reclaim_run(&reclaim, 0.9, 0), ERR_OK);
    while (atomic_load(&read_answers) < ENTRIES)
        ;
    ck_assert_uint_eq(atomic_load(&read_errors), 0);
    ck_assert_int_gt(metric_get(&stats.compacted_logs), 1);
    reads_close(&reads);
    store_drop(&store);
}
END_TEST

int main(void)
{
    return suite_run(
        "reclaim",
        (suite_case[]){SUITE_CASE(a_log_that_is_closed_says_what_is_in_it),
                       SUITE_CASE(logs_without_live_ledgers_go),
                       SUITE_CASE(what_is_left_of_a_log_moves),
                       SUITE_LOOP(a_crash_at_any_step_of_a_compaction, 8),
                       SUITE_LOOP(a_single_failure_at_any_step_loses_nothing, 8),
                       SUITE_CASE(a_record_that_is_damaged_stays_an_error_and_stops_nothing),
                       SUITE_CASE(a_move_that_failed_may_have_been_done),
                       SUITE_CASE(a_move_that_failed_and_is_done_again),
                       SUITE_CASE(a_newer_place_is_not_overwritten),
                       SUITE_CASE(a_full_disk_is_emptied_with_the_reserve),
                       SUITE_LOOP(who_reads_a_log_while_it_goes_finds_the_entry, 5),
                       {0}});
}
