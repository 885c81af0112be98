/* A write to RocksDB fails after its record has reached RocksDB's log: the directory of that log
 * cannot be synced.  What is written after it is what a start finds. */
#include "common/rocks_writer.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "common/mem.h"
#include "tests/lib/suite.h"

static bool directories_fail;

/* Instead of libc's, for RocksDB too. */
int fsync(int fd)
{
    struct stat st;

    if (directories_fail && fstat(fd, &st) == 0 && S_ISDIR(st.st_mode)) {
        errno = ENOSPC;
        return -1;
    }
    return (int)syscall(SYS_fsync, fd);
}

static char dir[256];
static rocksdb_options_t *options;
static struct rocks_writer writer;

static void start(void)
{
    char *why = NULL;

    options = rocksdb_options_create();
    rocksdb_options_set_create_if_missing(options, 1);
    rocks_writer_init(&writer);
    writer.db = rocksdb_open(options, dir, &why);
    ck_assert_msg(!why, "%s", why);
}

static void stop(void)
{
    rocksdb_close(writer.db);
    rocks_writer_end(&writer);
    rocksdb_options_destroy(options);
}

static bool put(const char *key, const char *value, bool synced)
{
    rocksdb_writebatch_t *b = rocksdb_writebatch_create();

    rocksdb_writebatch_put(b, key, strlen(key), value, strlen(value));
    char *why = rocks_writer_write(&writer, b, synced);
    const bool is_there = !why;
    rocksdb_free(why);
    rocksdb_writebatch_destroy(b);
    return is_there;
}

static void check(const char *key, const char *value)
{
    char *why = NULL;
    size_t len;
    rocksdb_readoptions_t *read = rocksdb_readoptions_create();
    char *found = rocksdb_get(writer.db, read, key, strlen(key), &len, &why);

    ck_assert_ptr_null(why);
    ck_assert_ptr_nonnull(found);
    ck_assert_uint_eq(len, strlen(value));
    ck_assert_mem_eq(found, value, len);
    rocksdb_free(found);
    rocksdb_readoptions_destroy(read);
}

/* RocksDB finds out by itself that there is space, and takes writes again then. */
static void put_at_last(const char *key, const char *value)
{
    while (!put(key, value, true))
        usleep(1000);
}

START_TEST(what_is_written_after_a_failure_is_what_a_start_finds)
{
    const char *tmp = getenv("TMPDIR");

    snprintf(dir, sizeof dir, "%s/lgm-rocks-XXXXXX", tmp ? tmp : "/tmp");
    ck_assert_ptr_nonnull(mkdtemp(dir));
    start();
    ck_assert(put("a", "1", true));
    stop();
    start(); /* with a log that it has not synced the name of */
    directories_fail = true;
    ck_assert(!put("a", "2", true));
    ck_assert(!put("b", "2", false));
    directories_fail = false;
    put_at_last("a", "3");
    put_at_last("b", "3");
    stop();
    start();
    check("a", "3");
    check("b", "3");
    stop();
    char *command = mem_format("rm -rf '%s'", dir);
    ck_assert_int_eq(system(command), 0);
    mem_free(command);
}
END_TEST

int main(void)
{
    return suite_run("rocks_writer",
                     (suite_case[]){
                         SUITE_CASE(what_is_written_after_a_failure_is_what_a_start_finds),
                         {0},
                     });
}
