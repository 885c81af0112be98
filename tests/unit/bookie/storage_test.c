#include "bookie/storage.h"

#include <sched.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "bookie/reads.h"
#include "common/mem.h"
#include "tests/lib/fake_disk.h"
#include "tests/lib/suite.h"
#include "tests/unit/bookie/store.h"
#include "tests/unit/common/captured.h"

/* A storage of one journal and one device. */
enum { LEDGERS = 3 };

static struct store *st;
static struct captured captured;

START_TEST(keeps_what_it_acknowledged)
{
    st = store_new(1, 1);
    for (unsigned round = 0; round < 4; round++) {
        ck_assert_int_eq(store_start(st), ERR_OK);
        store_check(st, false);
        for (int64_t e = round * 100; e < (round + 1) * 100; e++)
            for (int64_t l = 0; l < LEDGERS; l++)
                if (store_add(st, l, e) == ERR_BUSY) {
                    ck_assert_int_eq(storage_flush(st->storage), ERR_OK);
                    ck_assert_int_eq(store_add(st, l, e), ERR_OK);
                }
        store_wait(st);
        store_check(st, false);
        store_crash(st);
    }
    ck_assert_int_eq(store_start(st), ERR_OK);
    store_check(st, false);
    ck_assert_int_eq(store_look(st, 1, STORE_ENTRIES), ERR_NO_ENTRY);
    store_crash(st);
    store_drop(&st);
}
END_TEST

START_TEST(an_empty_cache_still_flushes_fences)
{
    st = store_new(1, 1);
    ck_assert_int_eq(store_start(st), ERR_OK);
    ck_assert_int_eq(store_fence(st, 2), ERR_OK);
    store_wait(st);
    const struct journal_mark before = st->storage->devices[0].marks.of[0];
    ck_assert_int_eq(storage_flush(st->storage), ERR_OK);
    const struct journal_mark after = st->storage->devices[0].marks.of[0];
    ck_assert_uint_gt(after.sequence, before.sequence);
    store_crash(st);
    ck_assert_int_eq(store_start(st), ERR_OK);
    ck_assert_uint_eq(st->storage->replayed, 0); /* it came from the index, not from the journal */
    ck_assert(st->fenced[2]);
    store_check(st, false);
    store_crash(st);
    store_drop(&st);
}
END_TEST

START_TEST(a_busy_cache_says_so)
{
    st = store_new(1, 1);
    ck_assert_int_eq(store_start(st), ERR_OK);
    int64_t e = 0;
    while (store_add(st, 0, e) == ERR_OK)
        e++;
    ck_assert_int_gt(e, 100);
    ck_assert_int_eq(storage_flush(st->storage), ERR_OK);
    ck_assert_int_eq(store_add(st, 0, e), ERR_OK);
    store_wait(st);
    store_check(st, false);
    store_crash(st);
    store_drop(&st);
}
END_TEST

START_TEST(a_replay_may_be_larger_than_the_cache)
{
    st = store_new(1, 1);
    ck_assert_int_eq(store_start(st), ERR_OK);
    for (int64_t e = 0; e < 120; e++)
        for (int64_t l = 0; l < LEDGERS; l++)
            if (store_add(st, l, e) == ERR_BUSY) {
                ck_assert_int_eq(checkpoint_run(st->storage->devices[0].checkpoint, false), ERR_OK);
                ck_assert_int_eq(store_add(st, l, e), ERR_OK);
            }
    store_wait(st);
    store_crash(st);
    ck_assert_int_eq(store_start(st), ERR_OK);
    ck_assert_uint_eq(st->storage->replayed, 360);
    store_check(st, false);
    store_crash(st);
    store_drop(&st);
}
END_TEST

/* One operation of the disk fails, whichever: the mark stays where it may be, a retry or a new
 * start finds everything that was acknowledged. */
static bool run_with_fault(enum fake_op op, unsigned after)
{
    st = store_new(1, 1);
    ck_assert_int_eq(store_start(st), ERR_OK);
    const unsigned before = fake_disk_calls(st->disk, op);
    fake_disk_fail(st->disk, op, after, 1);
    for (int64_t e = 0; e < 24 && atomic_load(&st->failures) == 0; e++) {
        if (e == 12 && store_fence(st, 1))
            break;
        for (int64_t l = 0; l < LEDGERS && (l != 1 || e < 12); l++)
            if (store_add(st, l, e) == ERR_BUSY)
                (void)!storage_flush(st->storage);
        if (e % 8 == 7) {
            const struct journal_mark m = st->storage->devices[0].marks.of[0];
            const enum err err = storage_flush(st->storage);
            const struct journal_mark now = st->storage->devices[0].marks.of[0];
            ck_assert(err || now.sequence >= m.sequence);
            ck_assert(!err || now.sequence == m.sequence);
            store_check(st, true);
            ck_assert_int_eq(err ? storage_flush(st->storage) : err, ERR_OK);
        }
    }
    store_wait(st);
    const bool untouched = fake_disk_calls(st->disk, op) - before <= after;
    store_crash(st);
    fake_disk_fail(st->disk, op, 0, 0);
    atomic_store(&st->failures, 0);
    ck_assert_int_eq(store_start(st), ERR_OK);
    store_check(st, false);
    store_crash(st);
    store_drop(&st);
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
    st = store_new(1, 1);
    ck_assert_int_eq(store_start(st), ERR_OK);
    ck_assert_int_eq(store_add(st, 0, 1), ERR_OK);
    store_wait(st);
    ck_assert_int_eq(storage_flush(st->storage), ERR_OK);
    ck_assert_int_eq(store_look(st, 0, 1), ERR_OK);
    fake_disk_flip(st->disk, "ledgers/0000000000000001.log", 64 + 8 + 20);
    ck_assert_int_eq(store_look(st, 0, 1), ERR_CHECKSUM);
    struct disk *d = fake_disk_of(st->disk);
    store_stop(st);
    ck_assert_int_eq(d->ops->remove(d, "ledgers/0000000000000001.log"), ERR_OK);
    ck_assert_int_eq(store_start(st), ERR_OK);
    ck_assert_int_eq(store_look(st, 0, 1), ERR_NOT_FOUND);
    ck_assert_int_eq(store_look(st, 0, 2), ERR_NO_ENTRY);
    store_crash(st);
    store_drop(&st);
}
END_TEST

START_TEST(a_mark_that_cannot_be_read_stops_the_start)
{
    st = store_new(1, 1);
    ck_assert_int_eq(store_start(st), ERR_OK);
    store_crash(st);
    fake_disk_flip(st->disk, "ledgers/mark", 10);
    ck_assert_int_eq(store_start(st), ERR_CHECKSUM);
    store_drop(&st);
}
END_TEST

/* Its files are RocksDB's, which starts without some of them as if nothing had been there. */
static void index_loses(const char *files)
{
    st = store_new(1, 1);
    ck_assert_int_eq(store_start(st), ERR_OK);
    ck_assert_int_eq(store_add(st, 0, 1), ERR_OK);
    store_wait(st);
    ck_assert_int_eq(storage_flush(st->storage), ERR_OK);
    store_crash(st);
    char *command = mem_format("rm -r '%s'%s", st->index_dirs[0], files);
    ck_assert_int_eq(system(command), 0);
    mem_free(command);
    capture_start(&captured);
    const enum err err = store_start(st);
    const char *said = capture_end(&captured);
    ck_assert_int_eq(err, ERR_CHECKSUM);
    ck_assert_ptr_nonnull(strstr(said, "entry_index.lost"));
    store_drop(&st);
}

START_TEST(an_index_that_is_gone_stops_the_start)
{
    index_loses("");
    index_loses("/*.log");
}
END_TEST

START_TEST(a_failed_flush_leaves_no_files)
{
    st = store_new(1, 1);
    ck_assert_int_eq(store_start(st), ERR_OK);
    int64_t e = 0;
    while (store_add(st, 0, e) == ERR_OK)
        e++;
    store_wait(st);
    for (unsigned i = 0; i < 5; i++) {
        fake_disk_fail(st->disk, FAKE_WRITE, 0, 1);
        ck_assert_int_eq(storage_flush(st->storage), ERR_IO);
    }
    ck_assert_int_eq(storage_flush(st->storage), ERR_OK);
    struct disk_file *f;
    struct disk *d = fake_disk_of(st->disk);
    ck_assert_int_eq(d->ops->open(d, "ledgers/0000000000000003.log", DISK_READ, &f), ERR_NOT_FOUND);
    store_check(st, false);
    store_crash(st);
    store_drop(&st);
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
    struct read_of r = {.job = {.device = &st->storage->devices[0],
                                .ledger = 0,
                                .entry = entry,
                                .home = st->loops.at[0],
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
    st = store_new(1, 1);
    ck_assert_int_eq(store_start(st), ERR_OK);
    for (int64_t e = 0; e < 100; e += 2)
        ck_assert_int_eq(store_add(st, 0, e), ERR_OK);
    store_wait(st);
    ck_assert_int_eq(storage_flush(st->storage), ERR_OK);
    ck_assert_int_eq(reads_open(&reads, &st->loops, 2, 64 << 10), ERR_OK);
    ck_assert_uint_eq(read_one(reads, 0, ERR_OK), 50);
    ck_assert_uint_eq(read_one(reads, 90, ERR_OK), 5);
    ck_assert_uint_eq(read_one(reads, 1, ERR_NO_ENTRY), 0);
    ck_assert_uint_eq(read_one(reads, 5000, ERR_NO_ENTRY), 0);
    for (int64_t e = 0; e < 200; e++) /* windows are given back, or this would stop at 64 */
        read_one(reads, e % 50 * 2, ERR_OK);
    fake_disk_flip(st->disk, "ledgers/0000000000000001.log", 64 + 8 + 20);
    read_one(reads, 0, ERR_CHECKSUM);
    reads_close(&reads);
    store_crash(st);
    store_drop(&st);
}
END_TEST

START_TEST(a_checkpoint_longer_than_its_interval_is_logged)
{
    st = store_new(1, 1);
    st->flush_interval_ms = 5;
    ck_assert_int_eq(store_start(st), ERR_OK);
    ck_assert_int_eq(store_add(st, 0, 1), ERR_OK);
    store_wait(st);
    capture_start(&captured);
    fake_disk_slow(st->disk, 20000);
    ck_assert_int_eq(storage_flush(st->storage), ERR_OK);
    const char *line = strstr(capture_end(&captured), "checkpoint.slow");
    ck_assert_ptr_nonnull(line);
    unsigned log_ms = 0;
    ck_assert_int_eq(sscanf(strstr(line, " log_ms="), " log_ms=%u", &log_ms), 1);
    ck_assert_uint_ge(log_ms, 20);
    ck_assert_ptr_nonnull(strstr(line, " entries=1 ledgers=1"));
    ck_assert_ptr_null(strstr(line + 1, "checkpoint.slow"));
    fake_disk_slow(st->disk, 0);
    store_crash(st);
    store_drop(&st);
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
