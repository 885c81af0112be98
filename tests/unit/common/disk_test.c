#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "common/disk.h"
#include "common/mem.h"
#include "tests/lib/fake_disk.h"
#include "tests/lib/suite.h"
#include "tests/unit/common/captured.h"

/* The same cases on the real disk and on the fake one: _i is 0 or 1. */
static struct disk *disk;
static struct fake_disk *fake;
static char dir[80];

static void remove_tree(const char *path)
{
    char command[160];
    snprintf(command, sizeof command, "rm -rf '%s'", path);
    ck_assert_int_eq(system(command), 0);
}

static void start(int is_fake)
{
    const char *tmp = getenv("TMPDIR");
    if (is_fake) {
        fake = fake_disk_new();
        disk = fake_disk_of(fake);
        snprintf(dir, sizeof dir, "/data");
        ck_assert_int_eq(disk->ops->mkdir(disk, dir), ERR_OK);
        return;
    }
    disk = disk_real();
    snprintf(dir, sizeof dir, "%.40s/disk-XXXXXX", tmp ? tmp : "/tmp");
    ck_assert_ptr_nonnull(mkdtemp(dir));
}

static void stop(int is_fake)
{
    if (is_fake)
        fake_disk_drop(&fake);
    else
        remove_tree(dir);
}

static const char *in_dir(const char *name)
{
    static char paths[4][160];
    static unsigned next;
    char *path = paths[next++ % 4];
    snprintf(path, sizeof paths[0], "%s/%s", dir, name);
    return path;
}

static struct disk_file *opened(const char *name, unsigned how)
{
    struct disk_file *f = NULL;
    ck_assert_int_eq(disk->ops->open(disk, in_dir(name), how, &f), ERR_OK);
    return f;
}

static enum err put(struct disk_file *f, uint64_t at, const char *text)
{
    const struct iovec iov = {.iov_base = (void *)(uintptr_t)text, .iov_len = strlen(text)};
    return disk->ops->write(f, at, &iov, 1);
}

static void expect_text(const char *name, const char *text)
{
    char *got = NULL;
    size_t len = 0;
    ck_assert_int_eq(disk_load(disk, in_dir(name), 1 << 20, &got, &len), ERR_OK);
    ck_assert_uint_eq(len, strlen(text));
    ck_assert_str_eq(got, text);
    mem_free(got);
}

static void expect_missing(const char *name)
{
    struct disk_file *f;
    ck_assert_int_eq(disk->ops->open(disk, in_dir(name), DISK_READ, &f), ERR_NOT_FOUND);
}

START_TEST(what_is_written_is_read)
{
    char into[32] = "";
    size_t got;
    uint64_t size;
    start(_i);
    struct disk_file *f = opened("a", DISK_CREATE);
    struct iovec iov[4] = {
        {(void *)(uintptr_t) "one", 3}, {NULL, 0}, {(void *)(uintptr_t) "two", 3}, {NULL, 0}};
    ck_assert_ptr_eq(f->disk, disk);
    ck_assert_int_eq(disk->ops->write(f, 4, iov, 4), ERR_OK);
    ck_assert_int_eq(disk->ops->size(f, &size), ERR_OK);
    ck_assert_uint_eq(size, 10);
    ck_assert_int_eq(disk->ops->read(f, 3, into, 20, &got), ERR_OK);
    ck_assert_uint_eq(got, 7);
    ck_assert_mem_eq(into, "\0onetwo", 7);
    ck_assert_int_eq(disk->ops->read(f, 100, into, 20, &got), ERR_OK);
    ck_assert_uint_eq(got, 0);
    ck_assert_int_eq(disk->ops->truncate(f, 7), ERR_OK);
    ck_assert_int_eq(disk->ops->truncate(f, 9), ERR_OK);
    ck_assert_int_eq(disk->ops->read(f, 0, into, 20, &got), ERR_OK);
    ck_assert_uint_eq(got, 9);
    ck_assert_mem_eq(into, "\0\0\0\0one\0\0", 9);
    ck_assert_int_eq(disk->ops->sync(f), ERR_OK);
    disk->ops->close(&f);
    ck_assert_ptr_null(f);
    disk->ops->close(&f);
    stop(_i);
}
END_TEST

START_TEST(a_thousand_pieces_in_one_write)
{
    static struct iovec iov[1000];
    char *bytes = NULL;
    size_t len;
    start(_i);
    struct disk_file *f = opened("a", DISK_CREATE);
    for (int i = 0; i < 1000; i++)
        iov[i] = (struct iovec){(void *)(uintptr_t) & "0123456789"[i % 10], 1};
    ck_assert_int_eq(disk->ops->write(f, 0, iov, 1000), ERR_OK);
    disk->ops->close(&f);
    ck_assert_int_eq(disk_load(disk, in_dir("a"), 1000, &bytes, &len), ERR_OK);
    ck_assert_uint_eq(len, 1000);
    for (int i = 0; i < 1000; i++)
        ck_assert_int_eq(bytes[i], '0' + i % 10);
    mem_free(bytes);
    stop(_i);
}
END_TEST

START_TEST(opening_says_what_is_there)
{
    struct disk_file *f = NULL;
    start(_i);
    expect_missing("a");
    ck_assert_int_eq(disk->ops->open(disk, in_dir("a"), DISK_WRITE, &f), ERR_NOT_FOUND);
    f = opened("a", DISK_CREATE);
    disk->ops->close(&f);
    ck_assert_int_eq(disk->ops->open(disk, in_dir("a"), DISK_CREATE, &f), ERR_EXISTS);
    f = opened("a", DISK_READ);
    ck_assert_int_ne(put(f, 0, "x"), ERR_OK);
    disk->ops->close(&f);
    ck_assert_int_eq(disk->ops->remove(disk, in_dir("a")), ERR_OK);
    ck_assert_int_eq(disk->ops->remove(disk, in_dir("a")), ERR_NOT_FOUND);
    ck_assert_int_ne(disk->ops->open(disk, in_dir("no/such"), DISK_CREATE, &f), ERR_OK);
    ck_assert_int_ne(disk->ops->rename(disk, in_dir("no"), in_dir("yes")), ERR_OK);
    stop(_i);
}
END_TEST

static void add_name(void *ctx, const char *name)
{
    char *sum = ctx;
    sum[strlen(sum)] = name[0];
}

START_TEST(directories)
{
    char names[16] = "";
    uint64_t free_bytes, total;
    start(_i);
    ck_assert_int_eq(disk->ops->mkdir(disk, in_dir("d/e/f")), ERR_OK);
    ck_assert_int_eq(disk->ops->mkdir(disk, in_dir("d/e/f")), ERR_OK);
    ck_assert_int_eq(disk->ops->mkdir(disk, in_dir("d/e/")), ERR_OK);
    struct disk_file *f = opened("d/x", DISK_CREATE);
    disk->ops->close(&f);
    ck_assert_int_eq(disk->ops->list(disk, in_dir("d"), add_name, names), ERR_OK);
    ck_assert(strcmp(names, "ex") == 0 || strcmp(names, "xe") == 0);
    ck_assert_int_eq(disk->ops->list(disk, in_dir("q"), add_name, names), ERR_NOT_FOUND);
    ck_assert_int_ne(disk->ops->mkdir(disk, in_dir("d/x/y")), ERR_OK);
    ck_assert_int_ne(disk->ops->remove(disk, in_dir("d/e")), ERR_OK);
    ck_assert_int_eq(disk->ops->remove(disk, in_dir("d/e/f")), ERR_OK);
    ck_assert_int_eq(disk->ops->remove(disk, in_dir("d/e")), ERR_OK);
    ck_assert_int_eq(disk->ops->rename(disk, in_dir("d/x"), in_dir("z")), ERR_OK);
    expect_missing("d/x");
    expect_text("z", "");
    ck_assert_int_eq(disk->ops->sync_dir(disk, dir), ERR_OK);
    ck_assert_int_eq(disk->ops->space(disk, dir, &free_bytes, &total), ERR_OK);
    ck_assert_uint_le(free_bytes, total);
    ck_assert_uint_gt(total, 0);
    stop(_i);
}
END_TEST

START_TEST(storing_replaces_at_once)
{
    char *bytes = NULL;
    size_t len;
    start(_i);
    ck_assert_int_eq(disk_store(disk, in_dir("cookie"), "first", 5), ERR_OK);
    expect_text("cookie", "first");
    struct disk_file *f = opened("cookie.new", DISK_CREATE);
    disk->ops->close(&f);
    ck_assert_int_eq(disk_store(disk, in_dir("cookie"), "second", 6), ERR_OK);
    expect_text("cookie", "second");
    expect_missing("cookie.new");
    ck_assert_int_eq(disk_load(disk, in_dir("cookie"), 5, &bytes, &len), ERR_TOO_BIG);
    ck_assert_int_eq(disk_load(disk, in_dir("nothing"), 5, &bytes, &len), ERR_NOT_FOUND);
    ck_assert_int_eq(disk_store(disk, in_dir("empty"), "", 0), ERR_OK);
    expect_text("empty", "");
    stop(_i);
}
END_TEST

/* ---- the real one -----------------------------------------------------------------------------
 */

static struct captured captured;

START_TEST(failures_are_told_with_path_and_errno)
{
    struct disk_file *f;
    start(0);
    capture_start(&captured);
    expect_missing("quiet");
    ck_assert_int_eq(disk->ops->open(disk, in_dir("no/such"), DISK_CREATE, &f), ERR_NOT_FOUND);
    ck_assert_int_eq(disk->ops->open(disk, "/dev/full", DISK_WRITE, &f), ERR_OK);
    ck_assert_int_eq(put(f, 0, "x"), ERR_NO_SPACE);
    disk->ops->close(&f);
    const char *text = capture_end(&captured);
    ck_assert_ptr_null(strstr(text, "quiet"));
    ck_assert_ptr_nonnull(strstr(text, "disk.failed op=open path="));
    ck_assert_ptr_nonnull(strstr(text, "/no/such errno=ENOENT"));
    ck_assert_ptr_nonnull(strstr(text, "disk.failed op=write path=/dev/full errno=ENOSPC"));
    stop(0);
}
END_TEST

/* /proc takes no O_DIRECT. */
START_TEST(a_refused_direct_open_is_an_answer)
{
    struct disk_file *f;
    const enum err e =
        disk_real()->ops->open(disk_real(), "/proc/self/status", DISK_READ | DISK_DIRECT, &f);
    ck_assert_int_eq(e, ERR_NOT_ALLOWED);
}
END_TEST

START_TEST(a_lock_is_held_by_one)
{
    int lock = -1, status;
    start(0);
    ck_assert_int_eq(disk_lock(in_dir("LOCK"), &lock), ERR_OK);
    const pid_t child = fork();
    if (child == 0) {
        int other = -1;
        _exit(disk_lock(in_dir("LOCK"), &other) == ERR_EXISTS ? 0 : 1);
    }
    ck_assert_int_eq(waitpid(child, &status, 0), child);
    ck_assert_int_eq(status, 0);
    int second = -1;
    ck_assert_int_eq(disk_lock(in_dir("LOCK"), &second), ERR_EXISTS);
    disk_unlock(&lock);
    ck_assert_int_eq(lock, -1);
    disk_unlock(&lock);
    ck_assert_int_eq(disk_lock(in_dir("LOCK"), &second), ERR_OK);
    disk_unlock(&second);
    ck_assert_int_ne(disk_lock(in_dir("no/LOCK"), &second), ERR_OK);
    stop(0);
}
END_TEST

/* ---- the fake one -----------------------------------------------------------------------------
 */

START_TEST(a_crash_keeps_what_was_synced)
{
    start(1);
    struct disk_file *f = opened("a", DISK_CREATE), *g = opened("lost", DISK_CREATE);
    ck_assert_int_eq(put(f, 0, "kept"), ERR_OK);
    ck_assert_int_eq(disk->ops->sync(f), ERR_OK);
    ck_assert_int_eq(disk->ops->sync_dir(disk, dir), ERR_OK);
    ck_assert_int_eq(put(f, 4, " gone"), ERR_OK);
    ck_assert_int_eq(put(g, 0, "unsynced"), ERR_OK);
    struct disk_file *h = opened("nameless", DISK_CREATE);
    ck_assert_int_eq(put(h, 0, "synced"), ERR_OK);
    ck_assert_int_eq(disk->ops->sync(h), ERR_OK);
    expect_text("a", "kept gone");
    fake_disk_crash(fake);
    expect_text("a", "kept");
    expect_text("lost", "");
    expect_missing("nameless");
    ck_assert_int_eq(put(f, 0, "x"), ERR_IO);
    ck_assert_int_eq(disk->ops->sync(f), ERR_IO);
    disk->ops->close(&f);
    disk->ops->close(&g);
    disk->ops->close(&h);
    stop(1);
}
END_TEST

START_TEST(names_need_a_directory_sync)
{
    start(1);
    ck_assert_int_eq(disk_store(disk, in_dir("a"), "old", 3), ERR_OK);
    ck_assert_int_eq(disk_store(disk, in_dir("b"), "new", 3), ERR_OK);
    ck_assert_int_eq(disk->ops->rename(disk, in_dir("b"), in_dir("a")), ERR_OK);
    expect_text("a", "new");
    fake_disk_crash(fake);
    expect_text("a", "old");
    expect_text("b", "new");
    ck_assert_int_eq(disk->ops->remove(disk, in_dir("a")), ERR_OK);
    fake_disk_crash(fake);
    expect_text("a", "old");
    ck_assert_int_eq(disk->ops->remove(disk, in_dir("a")), ERR_OK);
    ck_assert_int_eq(disk->ops->sync_dir(disk, dir), ERR_OK);
    fake_disk_crash(fake);
    expect_missing("a");
    stop(1);
}
END_TEST

/* Over many seeds each sector of an unsynced write is seen both kept and lost. */
START_TEST(unsynced_sectors_tear)
{
    enum { SECTORS = 8 };
    unsigned kept[SECTORS] = {0}, whole = 0;
    char old[SECTORS * 512 + 1], new[SECTORS * 512 + 1];
    memset(old, 'o', sizeof old);
    memset(new, 'n', sizeof new);
    old[SECTORS * 512] = new[SECTORS * 512] = '\0';
    for (uint64_t seed = 0; seed < 64; seed++) {
        char *got = NULL;
        size_t len;
        start(1);
        ck_assert_int_eq(disk_store(disk, in_dir("a"), old, strlen(old)), ERR_OK);
        struct disk_file *f = opened("a", DISK_WRITE);
        ck_assert_int_eq(put(f, 0, new), ERR_OK);
        fake_disk_tear(fake, seed);
        fake_disk_crash(fake);
        ck_assert_int_eq(disk_load(disk, in_dir("a"), 1 << 20, &got, &len), ERR_OK);
        ck_assert_uint_eq(len, SECTORS * 512);
        for (size_t s = 0; s < SECTORS; s++) {
            const char *want = got[s * 512] == 'n' ? new : old;
            ck_assert_mem_eq(got + s * 512, want, 512);
            kept[s] += want == new;
        }
        whole += strcmp(got, new) == 0;
        mem_free(got);
        disk->ops->close(&f);
        stop(1);
    }
    for (unsigned s = 0; s < SECTORS; s++) {
        ck_assert_uint_gt(kept[s], 5);
        ck_assert_uint_lt(kept[s], 59);
    }
    ck_assert_uint_lt(whole, 5);
}
END_TEST

START_TEST(a_failed_sync_keeps_nothing_for_good)
{
    start(1);
    struct disk_file *f = opened("a", DISK_CREATE);
    ck_assert_int_eq(disk->ops->sync_dir(disk, dir), ERR_OK);
    ck_assert_int_eq(put(f, 0, "lost"), ERR_OK);
    fake_disk_fail(fake, FAKE_SYNC, 0, 1);
    ck_assert_int_eq(disk->ops->sync(f), ERR_IO);
    ck_assert_int_eq(disk->ops->sync(f), ERR_OK);
    fake_disk_crash(fake);
    expect_text("a", "");
    disk->ops->close(&f);
    stop(1);
}
END_TEST

START_TEST(a_full_disk_and_a_rotten_bit)
{
    uint64_t free_bytes, total;
    start(1);
    fake_disk_budget(fake, 10);
    struct disk_file *f = opened("a", DISK_CREATE);
    ck_assert_int_eq(put(f, 0, "12345678"), ERR_OK);
    ck_assert_int_eq(put(f, 8, "123"), ERR_NO_SPACE);
    ck_assert_int_eq(put(f, 4, "abcd"), ERR_OK);
    ck_assert_int_eq(disk->ops->truncate(f, 100), ERR_NO_SPACE);
    ck_assert_int_eq(disk->ops->space(disk, dir, &free_bytes, &total), ERR_OK);
    ck_assert_uint_eq(free_bytes, 2);
    fake_disk_flip(fake, in_dir("a"), 0);
    expect_text("a", "0234abcd");
    disk->ops->close(&f);
    ck_assert_int_eq(disk->ops->remove(disk, in_dir("a")), ERR_OK);
    ck_assert_int_eq(disk->ops->space(disk, dir, &free_bytes, &total), ERR_OK);
    ck_assert_uint_eq(free_bytes, 10);
    fake_disk_refuse_direct(fake);
    ck_assert_int_eq(disk->ops->open(disk, in_dir("a"), DISK_CREATE | DISK_DIRECT, &f),
                     ERR_NOT_ALLOWED);
    stop(1);
}
END_TEST

/* Whatever call of a store fails, and whenever the power goes then: old or new, never less. */
START_TEST(a_store_is_all_or_nothing_at_every_failure)
{
    bool touched = true;
    for (unsigned after = 0; touched; after++) {
        char *got = NULL;
        size_t len;
        start(1);
        ck_assert_int_eq(disk_store(disk, in_dir("a"), "old", 3), ERR_OK);
        const unsigned calls = fake_disk_calls(fake, FAKE_ANY);
        fake_disk_fail(fake, FAKE_ANY, after, 1);
        const enum err e = disk_store(disk, in_dir("a"), "new", 3);
        touched = fake_disk_calls(fake, FAKE_ANY) - calls > after;
        ck_assert(touched || e == ERR_OK);
        fake_disk_fail(fake, FAKE_ANY, 0, 0);
        fake_disk_tear(fake, after);
        fake_disk_crash(fake);
        ck_assert_int_eq(disk_load(disk, in_dir("a"), 10, &got, &len), ERR_OK);
        ck_assert(strcmp(got, "new") == 0 || (e && strcmp(got, "old") == 0));
        mem_free(got);
        ck_assert_int_eq(disk_store(disk, in_dir("a"), "more", 4), ERR_OK);
        expect_text("a", "more");
        stop(1);
    }
}
END_TEST

int main(void)
{
    return suite_run("disk", (suite_case[]){
                                 SUITE_LOOP(what_is_written_is_read, 2),
                                 SUITE_LOOP(a_thousand_pieces_in_one_write, 2),
                                 SUITE_LOOP(opening_says_what_is_there, 2),
                                 SUITE_LOOP(directories, 2),
                                 SUITE_LOOP(storing_replaces_at_once, 2),
                                 SUITE_CASE(failures_are_told_with_path_and_errno),
                                 SUITE_CASE(a_refused_direct_open_is_an_answer),
                                 SUITE_CASE(a_lock_is_held_by_one),
                                 SUITE_CASE(a_crash_keeps_what_was_synced),
                                 SUITE_CASE(names_need_a_directory_sync),
                                 SUITE_CASE(unsynced_sectors_tear),
                                 SUITE_CASE(a_failed_sync_keeps_nothing_for_good),
                                 SUITE_CASE(a_full_disk_and_a_rotten_bit),
                                 SUITE_CASE(a_store_is_all_or_nothing_at_every_failure),
                                 {0},
                             });
}
