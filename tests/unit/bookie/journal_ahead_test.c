#include "bookie/journal_ahead.h"

#include <sched.h>

#include "bookie/journal_format.h"
#include "common/mem.h"
#include "tests/lib/fake_disk.h"
#include "tests/lib/suite.h"

enum { MIB = 1024 * 1024 };

static struct fake_disk *disk;
static struct journal_files files;
static struct journal_ahead *ahead;

static void begin(void)
{
    disk = fake_disk_new();
    ck_assert_int_eq(journal_files_open(&files, fake_disk_of(disk), "j", true, 0), ERR_OK);
    ahead = journal_ahead_start(&files, MIB);
}

static void end(void)
{
    journal_ahead_stop(&ahead);
    journal_files_close(&files);
    fake_disk_drop(&disk);
}

static void ask(void)
{
    journal_ahead_ask(ahead);
    while (!journal_ahead_is_ready(ahead))
        sched_yield();
}

static void ask_in_vain(void)
{
    const unsigned before = fake_disk_calls(disk, FAKE_REMOVE);
    journal_ahead_ask(ahead);
    while (fake_disk_calls(disk, FAKE_REMOVE) == before)
        sched_yield();
    ck_assert(!journal_ahead_is_ready(ahead));
}

static uint64_t size_of(uint64_t id)
{
    struct disk *d = fake_disk_of(disk);
    struct disk_file *f;
    uint64_t size = 0;
    char *path = journal_file_path(&files, id);
    const enum err err = d->ops->open(d, path, DISK_READ, &f);
    mem_free(path);
    if (err)
        return 0;
    ck_assert_int_eq(d->ops->size(f, &size), ERR_OK);
    d->ops->close(&f);
    return size;
}

START_TEST(it_is_durable_and_as_long_as_files_are)
{
    struct journal_file j;
    begin();
    ask();
    ck_assert(journal_ahead_take(ahead, 0, &j));
    ck_assert_uint_eq(j.id, 1);
    ck_assert_uint_eq(j.filled, MIB);
    ck_assert_uint_eq(j.at, JOURNAL_BLOCK);
    ck_assert(!journal_ahead_take(ahead, 0, &j));
    j.file->disk->ops->close(&j.file);
    fake_disk_crash(disk);
    ck_assert_uint_eq(size_of(1), MIB);
    end();
}
END_TEST

START_TEST(files_are_used_in_the_order_of_their_ids)
{
    struct journal_file own, made;
    begin();
    ask();
    ck_assert_int_eq(journal_file_make(&files, &own), ERR_OK);
    ck_assert_uint_eq(own.id, 2);
    ck_assert(!journal_ahead_take(ahead, own.id, &made));
    ask();
    ck_assert(journal_ahead_take(ahead, own.id, &made));
    ck_assert_uint_eq(made.id, 3);
    made.file->disk->ops->close(&made.file);
    own.file->disk->ops->close(&own.file);
    journal_files_free(&files, 2);
    ck_assert(journal_files_have(&files, 1)); /* it waits for reuse */
    end();
}
END_TEST

START_TEST(a_free_file_is_taken_before_a_new_one_is_made)
{
    struct journal_file first, made;
    begin();
    ck_assert_int_eq(journal_file_make(&files, &first), ERR_OK);
    first.file->disk->ops->close(&first.file);
    journal_files_free(&files, 2);
    ask();
    ck_assert(journal_ahead_take(ahead, 1, &made));
    made.file->disk->ops->close(&made.file);
    ck_assert_uint_eq(made.id, 2);
    ck_assert_uint_eq(size_of(2), MIB); /* it was a short one */
    ck_assert_uint_eq(files.n, 1);
    end();
}
END_TEST

START_TEST(without_space_nothing_is_left_of_it)
{
    begin();
    fake_disk_budget(disk, 2 * MIB);
    ask_in_vain();
    ck_assert_uint_eq(files.n, 0);
    fake_disk_budget(disk, 64 * MIB);
    ask();
    end();
}
END_TEST

START_TEST(a_failed_write_or_sync_leaves_nothing)
{
    begin();
    fake_disk_fail(disk, FAKE_WRITE, 2, 1);
    ask_in_vain();
    fake_disk_fail(disk, FAKE_SYNC, 0, 1);
    ask_in_vain();
    ck_assert_uint_eq(files.n, 0);
    ask();
    end();
}
END_TEST

int main(void)
{
    return suite_run("journal_ahead",
                     (suite_case[]){SUITE_CASE(it_is_durable_and_as_long_as_files_are),
                                    SUITE_CASE(files_are_used_in_the_order_of_their_ids),
                                    SUITE_CASE(a_free_file_is_taken_before_a_new_one_is_made),
                                    SUITE_CASE(without_space_nothing_is_left_of_it),
                                    SUITE_CASE(a_failed_write_or_sync_leaves_nothing),
                                    {0}});
}
