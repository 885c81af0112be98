#include "bookie/device.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/mem.h"
#include "tests/lib/suite.h"
#include "tests/unit/bookie/store.h"
#include "tests/unit/common/captured.h"

/* Several journals, several devices: the numbers are BookKeeper's, of the holes that were found
 * there. */
static struct store *st;
static struct captured captured;

static void start(void)
{
    ck_assert_int_eq(store_start(st), ERR_OK);
    store_check(st, false);
}

static void begin(unsigned n_devices, unsigned n_journals)
{
    st = store_new(n_devices, n_journals);
    start();
}

static enum err flush(unsigned device)
{
    return checkpoint_run(st->storage->devices[device].checkpoint, true);
}

static struct journal_mark mark(unsigned device, unsigned journal)
{
    return st->storage->devices[device].marks.of[journal];
}

/* A full part of the cache makes room first, as long as that works. */
static enum err add(int64_t ledger, int64_t entry)
{
    enum err err = store_add(st, ledger, entry);
    if (err == ERR_BUSY) {
        err = storage_flush(st->storage);
        if (!err)
            err = store_add(st, ledger, entry);
    }
    return err;
}

static void add_some(int64_t first, int64_t n)
{
    for (int64_t e = first; e < first + n; e++)
        for (int64_t l = 0; l < STORE_LEDGERS; l++)
            ck_assert_int_eq(add(l, e), ERR_OK);
    store_wait(st);
}

/* A ledger that lives there. */
static int64_t ledger_on(unsigned device)
{
    for (int64_t l = 0; l < STORE_LEDGERS; l++)
        if (store_device(st, l)->number == device)
            return l;
    ck_abort_msg("none of the ledgers is on device %u", device);
    return -1;
}

START_TEST(ledgers_and_records_are_spread)
{
    unsigned on[2] = {0}, in[3] = {0};
    begin(2, 3);
    add_some(0, 1);
    for (int64_t l = 0; l < STORE_LEDGERS; l++) {
        on[store_device(st, l)->number]++;
        for (unsigned j = 0; j < 3; j++)
            in[j] += storage_journal(st->storage, l) == st->storage->journals[j];
    }
    ck_assert(on[0] > 0 && on[1] > 0);
    ck_assert(in[0] > 0 && in[1] > 0 && in[2] > 0);
    store_drop(&st);
}
END_TEST

START_TEST(keeps_what_it_acknowledged)
{
    begin(2, 3);
    for (unsigned round = 0; round < 4; round++) {
        add_some(round * 50, 50);
        if (round % 2)
            ck_assert_int_eq(flush(round / 2), ERR_OK);
        store_check(st, false);
        store_crash(st);
        start();
    }
    store_drop(&st);
}
END_TEST

/* #3329: what one device has flushed is no mark for the other. */
START_TEST(one_flushed_device_is_no_checkpoint_3329)
{
    begin(2, 2);
    add_some(0, 20);
    const struct journal_mark before[] = {mark(0, 0), mark(0, 1)};
    ck_assert_int_eq(flush(1), ERR_OK);
    ck_assert_uint_gt(mark(1, 0).sequence, before[0].sequence);
    ck_assert_uint_gt(mark(1, 1).sequence, before[1].sequence);
    ck_assert_uint_eq(mark(0, 0).sequence, before[0].sequence);
    ck_assert_uint_eq(mark(0, 1).sequence, before[1].sequence);
    store_crash(st);
    start(); /* and what device 0 had only in memory is there */
    store_drop(&st);
}
END_TEST

START_TEST(a_device_that_fails_holds_up_no_other)
{
    begin(2, 2);
    add_some(0, 20);
    const int64_t other = ledger_on(1);
    const struct journal_mark before = mark(0, 0);
    fake_disk_fail(st->disk, FAKE_WRITE, 0, 1);
    ck_assert_int_eq(flush(0), ERR_IO);
    for (int64_t e = 20; e < 300; e++) { /* many times its part of the cache */
        enum err err = store_add(st, other, e);
        if (err == ERR_BUSY) {
            ck_assert_int_eq(flush(1), ERR_OK);
            err = store_add(st, other, e);
        }
        ck_assert_int_eq(err, ERR_OK);
    }
    store_wait(st);
    ck_assert_int_eq(flush(1), ERR_OK);
    ck_assert_uint_eq(mark(0, 0).sequence, before.sequence);
    store_check(st, true);
    ck_assert_int_eq(flush(0), ERR_OK); /* what it had frozen, first */
    ck_assert_uint_gt(mark(0, 0).sequence, before.sequence);
    store_check(st, false);
    store_crash(st);
    start();
    store_drop(&st);
}
END_TEST

/* #4844: each journal counts its own files; how far another is says nothing. */
START_TEST(journals_are_not_compared_with_each_other_4844)
{
    begin(2, 2);
    int64_t busy = 0, quiet = 0;
    while (storage_journal(st->storage, busy) != st->storage->journals[0])
        busy++;
    while (storage_journal(st->storage, quiet) != st->storage->journals[1])
        quiet++;
    ck_assert_int_eq(add(quiet, 0), ERR_OK);
    for (int64_t e = 0; e < STORE_ENTRIES; e++) { /* a group each: a block of its own */
        ck_assert_int_eq(add(busy, e), ERR_OK);
        store_wait(st);
    }
    ck_assert_uint_gt(mark(store_device(st, busy)->number, 0).file, 3);
    ck_assert_uint_le(mark(0, 1).file, 1);
    ck_assert_int_eq(store_fence(st, quiet), ERR_OK);
    store_wait(st);
    ck_assert_int_eq(flush(store_device(st, busy)->number), ERR_OK);
    store_crash(st);
    start();
    store_drop(&st);
}
END_TEST

/* #4843: nothing in the caches, and the rows go down all the same, each to its device. */
START_TEST(rows_go_down_without_entries_4843)
{
    begin(2, 2);
    for (int64_t l = 0; l < STORE_LEDGERS; l++)
        ck_assert_int_eq(store_fence(st, l), ERR_OK);
    store_wait(st);
    ck_assert_int_eq(storage_flush(st->storage), ERR_OK);
    store_crash(st);
    start();
    ck_assert_uint_eq(st->storage->replayed, 0);
    for (int64_t l = 0; l < STORE_LEDGERS; l++)
        ck_assert(st->fenced[l]);
    store_drop(&st);
}
END_TEST

/* ---- marks and files ------------------------------------------------------------------------ */

struct listed {
    uint64_t least;
    unsigned n;
};

static void note_name(void *ctx, const char *name)
{
    struct listed *l = ctx;
    const uint64_t id = strtoull(name, NULL, 16);
    l->least = l->n++ == 0 || id < l->least ? id : l->least;
}

static struct listed list(unsigned journal)
{
    struct listed l = {0};
    struct disk *d = fake_disk_of(st->disk);
    ck_assert_int_eq(d->ops->list(d, st->journal_dirs[journal], note_name, &l), ERR_OK);
    return l;
}

START_TEST(files_go_only_behind_all_marks)
{
    begin(2, 1);
    add_some(0, 1);
    const int64_t a = ledger_on(0), b = ledger_on(1);
    const uint64_t first = list(0).least;
    for (int64_t e = 1; e < 200; e++) {
        ck_assert_int_eq(store_add(st, e % 8 ? a : b, e), ERR_OK);
        store_wait(st);
        ck_assert_int_eq(flush(0), ERR_OK);
    }
    ck_assert_uint_gt(mark(0, 0).file, mark(1, 0).file + 1);
    ck_assert_uint_eq(list(0).least, first); /* device 1 has nothing yet */
    ck_assert_int_eq(flush(1), ERR_OK);
    add_some(200, 40);
    ck_assert_int_eq(storage_flush(st->storage), ERR_OK);
    ck_assert_uint_gt(list(0).least, first);
    ck_assert_uint_le(list(0).n, 4);
    store_crash(st);
    start();
    store_drop(&st);
}
END_TEST

/* What is stored, and not what we think. */
static struct marks stored(unsigned device)
{
    struct marks m;
    char *path = mem_format("%s/mark", st->dirs[device]);
    ck_assert_int_eq(marks_load(fake_disk_of(st->disk), path, (const char *const *)st->journal_dirs,
                                st->n_journals, &m),
                     ERR_OK);
    mem_free(path);
    return m;
}

/* #4105: also over failures and restarts; and the file that a mark names is there. */
START_TEST(marks_never_go_back_4105)
{
    struct marks before[2];
    begin(2, 2);
    before[0] = stored(0);
    before[1] = stored(1);
    for (unsigned round = 0; round < 24; round++) {
        for (int64_t l = 0; l < STORE_LEDGERS; l++)
            ck_assert_int_eq(add(l, round), ERR_OK);
        store_wait(st);
        if (round % 3 == 0)
            fake_disk_fail(st->disk, round % 2 ? FAKE_SYNC : FAKE_RENAME, 0, 1);
        (void)!flush(round % 2);
        fake_disk_fail(st->disk, FAKE_SYNC, 0, 0);
        fake_disk_fail(st->disk, FAKE_RENAME, 0, 0);
        for (unsigned d = 0; d < 2; d++) {
            const struct marks now = stored(d);
            for (unsigned j = 0; j < 2; j++) {
                ck_assert(!mark_is_before(&now.of[j], &before[d].of[j]));
                ck_assert_uint_ge(now.of[j].sequence, before[d].of[j].sequence);
                ck_assert_uint_le(list(j).least, now.of[j].file);
            }
            before[d] = now;
        }
        if (round % 5 == 4) {
            store_crash(st);
            start();
        }
    }
    store_drop(&st);
}
END_TEST

/* ---- crashes -------------------------------------------------------------------------------- */

static void work(void)
{
    for (int64_t e = 0; e < 12 && atomic_load(&st->failures) == 0; e++) {
        for (int64_t l = 0; l < STORE_LEDGERS; l++)
            if (!st->fenced[l] && store_add(st, l, e) == ERR_BUSY)
                (void)!storage_flush(st->storage);
        if (e == 7)
            (void)!store_fence(st, 3);
        if (e % 3 == 2) {
            store_wait(st);
            (void)!flush((unsigned)(e / 3) % 2);
        }
    }
    store_wait(st);
    (void)!storage_flush(st->storage);
}

/* From this operation of the disk on nothing works any more; then the power goes. */
static bool dies_after(unsigned after, uint64_t tear)
{
    begin(2, 3);
    const unsigned before = fake_disk_calls(st->disk, FAKE_ANY);
    if (tear)
        fake_disk_tear(st->disk, tear);
    fake_disk_fail(st->disk, FAKE_ANY, after, UINT32_MAX);
    work();
    const bool untouched = fake_disk_calls(st->disk, FAKE_ANY) - before <= after;
    store_crash(st);
    fake_disk_fail(st->disk, FAKE_ANY, 0, 0);
    atomic_store(&st->failures, 0);
    start();
    store_crash(st);
    start(); /* what was replayed is replayed again */
    store_drop(&st);
    return untouched;
}

START_TEST(survives_a_crash_between_any_two_steps)
{
    for (unsigned after = (unsigned)_i; !dies_after(after, (uint64_t)_i); after += 4)
        ;
}
END_TEST

/* ---- directories that are added --------------------------------------------------------------*/

START_TEST(devices_and_journals_may_be_added)
{
    begin(1, 1);
    add_some(0, 30);
    store_crash(st);
    st->n_devices = 2;
    st->n_journals = 3;
    start();
    for (int64_t l = 0; l < STORE_LEDGERS; l++)
        ck_assert(store_device(st, l) != NULL);
    add_some(30, 30);
    ck_assert_int_eq(storage_flush(st->storage), ERR_OK);
    store_crash(st);
    start();
    store_drop(&st);
}
END_TEST

/* Replay puts ledgers that no index knows on the new device too, so it needs the journal from then
 * on: whatever opening is cut short at. */
static bool added_and_dies_after(unsigned after)
{
    begin(1, 2);
    add_some(0, 10);
    store_crash(st);
    st->n_devices = 2;
    const unsigned before = fake_disk_calls(st->disk, FAKE_ANY);
    fake_disk_fail(st->disk, FAKE_ANY, after, UINT32_MAX);
    const enum err err = store_start(st);
    const bool untouched = fake_disk_calls(st->disk, FAKE_ANY) - before <= after;
    ck_assert(!untouched || err == ERR_OK);
    store_crash(st);
    fake_disk_fail(st->disk, FAKE_ANY, 0, 0);
    atomic_store(&st->failures, 0);
    start();
    store_drop(&st);
    return untouched;
}

START_TEST(a_new_device_may_be_cut_short)
{
    for (unsigned after = 0; !added_and_dies_after(after); after++)
        ;
}
END_TEST

START_TEST(a_journal_may_not_be_left_out)
{
    begin(1, 2);
    store_crash(st);
    st->n_journals = 1;
    capture_start(&captured);
    const enum err err = store_start(st);
    ck_assert_ptr_nonnull(strstr(capture_end(&captured), "mark.unknown_journal"));
    ck_assert_int_eq(err, ERR_NOT_ALLOWED);
    store_drop(&st);
}
END_TEST

START_TEST(a_full_device_gets_no_new_ledgers)
{
    begin(2, 1);
    add_some(0, 1);
    const int64_t known = ledger_on(0);
    struct device *devices = st->storage->devices, *d;
    device_set_state(&devices[0], DEVICE_FULL);
    for (int64_t l = 1000; l < 1100; l++) {
        ck_assert_int_eq(device_for(devices, 2, l, &d), ERR_OK);
        ck_assert_uint_eq(d->number, 1);
    }
    ck_assert_uint_eq(store_device(st, known)->number, 0); /* which stays where it is */
    device_set_state(&devices[1], DEVICE_FULL);
    unsigned n[2] = {0};
    for (int64_t l = 1000; l < 1100; l++) { /* what recovery must write goes somewhere */
        ck_assert_int_eq(device_for(devices, 2, l, &d), ERR_OK);
        n[d->number]++;
    }
    ck_assert(n[0] > 20 && n[1] > 20);
    device_set_state(&devices[1], DEVICE_FAILED);
    ck_assert_int_eq(device_for(devices, 2, 1000, &d), ERR_OK);
    ck_assert_uint_eq(d->number, 0);
    device_set_state(&devices[0], DEVICE_FAILED);
    ck_assert_int_eq(device_for(devices, 2, 1000, &d), ERR_READ_ONLY);
    store_drop(&st);
}
END_TEST

int main(void)
{
    return suite_run("devices",
                     (suite_case[]){SUITE_CASE(ledgers_and_records_are_spread),
                                    SUITE_CASE(keeps_what_it_acknowledged),
                                    SUITE_CASE(one_flushed_device_is_no_checkpoint_3329),
                                    SUITE_CASE(a_device_that_fails_holds_up_no_other),
                                    SUITE_CASE(journals_are_not_compared_with_each_other_4844),
                                    SUITE_CASE(rows_go_down_without_entries_4843),
                                    SUITE_CASE(files_go_only_behind_all_marks),
                                    SUITE_CASE(marks_never_go_back_4105),
                                    {.name = "survives_a_crash_between_any_two_steps",
                                     .test = survives_a_crash_between_any_two_steps,
                                     .rounds = 4,
                                     .timeout_s = 120},
                                    SUITE_CASE(devices_and_journals_may_be_added),
                                    {.name = "a_new_device_may_be_cut_short",
                                     .test = a_new_device_may_be_cut_short,
                                     .rounds = 1,
                                     .timeout_s = 120},
                                    SUITE_CASE(a_journal_may_not_be_left_out),
                                    SUITE_CASE(a_full_device_gets_no_new_ledgers),
                                    {0}});
}
