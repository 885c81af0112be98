#include <fcntl.h>
#include <ftw.h>
#include <sched.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "metadata/metadata.h"
#include "metadata/rocks_value.h"
#include "tests/lib/suite.h"
#include "tests/unit/metadata/ask.h"
#include "tests/unit/metadata/conformance.h"

static char dir[512], store_dir[544];

static int remove_one(const char *path, const struct stat *s, int kind, struct FTW *f)
{
    (void)s, (void)kind, (void)f;
    return remove(path);
}

static void make_dir(void)
{
    const char *under = getenv("TMPDIR");

    snprintf(dir, sizeof dir, "%s/lgm-meta-XXXXXX", under ? under : "/tmp");
    ck_assert_ptr_nonnull(mkdtemp(dir));
    snprintf(store_dir, sizeof store_dir, "%s/new/store", dir);
}

static void remove_dir(void)
{
    nftw(dir, remove_one, 16, FTW_DEPTH | FTW_PHYS);
}

static struct metadata *open_store(void)
{
    struct metadata *m = NULL;

    ck_assert_int_eq(meta_rocks_open(&m, store_dir), ERR_OK);
    return m;
}

START_TEST(conforms)
{
    make_dir();
    struct metadata *m = open_store();
    conformance_run(_i, m);
    meta_close(&m);
    remove_dir();
}
END_TEST

START_TEST(survives_close)
{
    make_dir();
    struct metadata *m = open_store();
    ask_put(m, "/a", "1", META_ANY);
    ask_put(m, "/a", "2", META_ANY);
    ask_put(m, "/gone", "x", META_ANY);
    ask_remove(m, "/gone", META_ANY);
    ask_counter(m, "/n", 7);
    uint64_t revision = ask_hold(m, "/held", "x").revision;
    meta_close(&m);

    m = open_store();
    ck_assert_str_eq(ask_range(m, "/", NULL, 9, false).text, "/a=2@1 /n=7@0");
    ck_assert_int_eq(ask_counter(m, "/n", 1).first, 7);
    ck_assert_uint_gt(ask_put(m, "/a", "3", 1).revision, revision);
    meta_close(&m);
    remove_dir();
}
END_TEST

/* The child says each number that was acknowledged, until it is killed. */
static void put_for_ever(int say)
{
    struct metadata *m = open_store();

    for (int32_t i = 0;; i++) {
        char key[32], value[32];
        snprintf(key, sizeof key, "/k/%08d", i);
        snprintf(value, sizeof value, "value %d", i);
        if (ask_put(m, key, value, META_ABSENT).err || ask_counter(m, "/n", 10).err)
            _exit(1);
        if (write(say, &i, sizeof i) != sizeof i)
            _exit(1);
    }
}

static int32_t kill_after(int32_t puts)
{
    int32_t acked = -1, i;
    int ends[2], status;

    ck_assert_int_eq(pipe(ends), 0);
    pid_t child = fork();
    if (child == 0)
        put_for_ever(ends[1]);
    close(ends[1]);
    while (read(ends[0], &i, sizeof i) == sizeof i) {
        acked = i;
        if (i == puts)
            kill(child, SIGKILL);
    }
    close(ends[0]);
    waitpid(child, &status, 0);
    ck_assert(WIFSIGNALED(status));
    return acked;
}

START_TEST(survives_kill)
{
    make_dir();
    int32_t acked = kill_after(20 + 30 * _i);
    struct metadata *m = open_store();
    for (int32_t i = 0; i <= acked; i++) {
        char key[32], value[32];
        snprintf(key, sizeof key, "/k/%08d", i);
        snprintf(value, sizeof value, "value %d", i);
        ck_assert_str_eq(ask_get(m, key).text, value);
    }
    ck_assert_int_ge(ask_counter(m, "/n", 1).first, (acked + 1) * 10);
    meta_close(&m);
    remove_dir();
}
END_TEST

START_TEST(is_open_once)
{
    struct metadata *second = NULL;
    int status;

    make_dir();
    struct metadata *m = open_store();
    ck_assert_int_eq(meta_rocks_open(&second, store_dir), ERR_EXISTS);
    pid_t child = fork();
    if (child == 0)
        _exit(meta_rocks_open(&second, store_dir) == ERR_EXISTS ? 0 : 1);
    waitpid(child, &status, 0);
    ck_assert_int_eq(status, 0);
    ck_assert_int_eq(ask_put(m, "/a", "still mine", META_ANY).err, ERR_OK);
    meta_close(&m);
    m = open_store();
    meta_close(&m);
    remove_dir();
}
END_TEST

/* Flips a byte in the middle of every file whose name ends so; says how many. */
static const char *ending;
static int damaged;

static int damage_one(const char *path, const struct stat *s, int kind, struct FTW *f)
{
    size_t len = strlen(path);
    uint8_t byte;

    (void)f;
    if (kind != FTW_F || s->st_size == 0 || strcmp(path + len - strlen(ending), ending) != 0)
        return 0;
    int fd = open(path, O_RDWR);
    ck_assert_int_eq(pread(fd, &byte, 1, s->st_size / 2), 1);
    byte ^= 0x40;
    ck_assert_int_eq(pwrite(fd, &byte, 1, s->st_size / 2), 1);
    close(fd);
    damaged++;
    return 0;
}

START_TEST(damage_is_refused)
{
    struct metadata *m;

    make_dir();
    m = open_store();
    for (int i = 0; i < 50; i++)
        ask_put(m, "/a", "a value that is long enough to be hit by the damage", META_ANY);
    meta_close(&m);
    ending = ".log";
    damaged = 0;
    nftw(store_dir, damage_one, 16, FTW_PHYS);
    ck_assert_int_gt(damaged, 0);
    ck_assert_int_eq(meta_rocks_open(&m, store_dir), ERR_CHECKSUM);
    remove_dir();
}
END_TEST

/* No file may grow any more, as on a full disk: puts fail, and what was there is read. */
START_TEST(full_disk_is_an_answer)
{
    struct rlimit none = {.rlim_cur = 4096, .rlim_max = 4096};

    make_dir();
    struct metadata *m = open_store();
    ask_put(m, "/a", "1", META_ANY);
    signal(SIGXFSZ, SIG_IGN);
    ck_assert_int_eq(setrlimit(RLIMIT_FSIZE, &none), 0);
    enum err e = ERR_OK;
    for (int i = 0; !e && i < 1000; i++)
        e = ask_put(m, "/b", "some text to fill the log with", META_ANY).err;
    ck_assert(e == ERR_IO || e == ERR_NO_SPACE);
    ck_assert_int_ne(ask_counter(m, "/n", 1).err, ERR_OK);
    ck_assert_int_ne(ask_hold(m, "/h", "x").err, ERR_OK);
    ck_assert_int_eq(ask_get(m, "/h").err, ERR_NOT_FOUND);
    ck_assert_str_eq(ask_get(m, "/a").text, "1");
    meta_close(&m);
    remove_dir();
}
END_TEST

/* A small disk of our own, seen by this process only; false where that is not allowed. */
static bool mount_small_disk(void)
{
    int how = CLONE_NEWNS | (geteuid() == 0 ? 0 : CLONE_NEWUSER);

    return unshare(how) == 0 && mount("none", "/", NULL, MS_REC | MS_PRIVATE, NULL) == 0 &&
           mount("tmpfs", dir, "tmpfs", 0, "size=8m") == 0;
}

static void fill_disk(const char *path)
{
    static const char zeros[4096];
    int fd = open(path, O_CREAT | O_WRONLY, 0600);

    while (write(fd, zeros, sizeof zeros) > 0)
        continue;
    close(fd);
}

/* Puts are refused, reads are not, and all goes on when there is room again. */
START_TEST(a_full_disk_passes)
{
    char path[600];

    make_dir();
    if (!mount_small_disk()) {
        fprintf(stderr, "skipped: no small disk may be mounted here\n");
        remove_dir();
        return;
    }
    struct metadata *m = open_store();
    ask_put(m, "/a", "1", META_ANY);
    ask_put(m, "/b", "1", META_ANY);
    snprintf(path, sizeof path, "%s/filler", dir);
    fill_disk(path);
    ck_assert_int_eq(ask_put(m, "/a", "2", META_ANY).err, ERR_NO_SPACE);
    ck_assert_int_eq(ask_counter(m, "/n", 1).err, ERR_NO_SPACE);
    ck_assert_str_eq(ask_get(m, "/a").text, "1");
    ck_assert_int_eq(unlink(path), 0);
    ck_assert_int_eq(ask_put(m, "/a", "2", 0).err, ERR_OK);
    ck_assert_int_eq(ask_remove(m, "/b", META_ANY).err, ERR_OK);
    meta_close(&m);
    m = open_store();
    ck_assert_str_eq(ask_range(m, "/", NULL, 9, false).text, "/a=2@1");
    meta_close(&m);
    umount(dir);
    remove_dir();
}
END_TEST

START_TEST(a_place_that_cannot_be_made_is_an_error)
{
    struct metadata *m;

    ck_assert_int_ne(meta_rocks_open(&m, "/proc/no/such/place"), ERR_OK);
}
END_TEST

START_TEST(values_carry_their_format)
{
    uint8_t bytes[ROCKS_HEADER + 2];
    struct rocks_header h = {.version = 7, .revision = 1000000007}, back;
    struct view value;

    rocks_header_write(&h, bytes);
    memcpy(bytes + ROCKS_HEADER, "hi", 2);
    ck_assert_int_eq(rocks_value_read(view_of(bytes, sizeof bytes), &back, &value), ERR_OK);
    ck_assert_int_eq(back.version, 7);
    ck_assert_uint_eq(back.revision, 1000000007);
    ck_assert_uint_eq(value.len, 2);
    for (size_t n = 0; n < ROCKS_HEADER; n++)
        ck_assert_int_eq(rocks_value_read(view_of(bytes, n), &back, &value), ERR_MALFORMED);
    bytes[2] = 9;
    ck_assert_int_eq(rocks_value_read(view_of(bytes, sizeof bytes), &back, &value), ERR_OK);
    bytes[3] = 2;
    ck_assert_int_eq(rocks_value_read(view_of(bytes, sizeof bytes), &back, &value),
                     ERR_UNSUPPORTED_VERSION);
    bytes[0] = 0;
    ck_assert_int_eq(rocks_value_read(view_of(bytes, sizeof bytes), &back, &value), ERR_MALFORMED);
}
END_TEST

int main(void)
{
    return suite_run("rocksdb", (suite_case[]){SUITE_LOOP(conforms, conformance_count()),
                                               SUITE_CASE(survives_close),
                                               SUITE_LOOP(survives_kill, 4),
                                               SUITE_CASE(is_open_once),
                                               SUITE_CASE(damage_is_refused),
                                               SUITE_CASE(full_disk_is_an_answer),
                                               SUITE_CASE(a_full_disk_passes),
                                               SUITE_CASE(a_place_that_cannot_be_made_is_an_error),
                                               SUITE_CASE(values_carry_their_format),
                                               {0}});
}
