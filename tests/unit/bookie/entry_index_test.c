#include "bookie/entry_index.h"

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include "common/mem.h"
#include "common/rng.h"
#include "tests/lib/suite.h"

/* The plain map that the index is compared with. */
enum { LEDGERS = 3, ENTRIES = 2000 };
static struct entry_place map[LEDGERS][ENTRIES]; /* log 0: absent */
static struct entry_index *ix;
static char dir[256];
static uint64_t seed;

static void reopen(void)
{
    entry_index_close(&ix);
    ck_assert_int_eq(entry_index_open(&ix, dir), ERR_OK);
}

static void begin(void)
{
    const char *tmp = getenv("TMPDIR");
    snprintf(dir, sizeof dir, "%s/lgm-index-XXXXXX", tmp ? tmp : "/tmp");
    ck_assert_ptr_nonnull(mkdtemp(dir));
    memset(map, 0, sizeof map);
    reopen();
}

static void end(void)
{
    entry_index_close(&ix);
    char *command = mem_format("rm -rf '%s'", dir);
    ck_assert_int_eq(system(command), 0);
    mem_free(command);
}

static void put(int64_t ledger, int64_t entry, struct entry_place at)
{
    ck_assert_int_eq(entry_index_put(ix, ledger, entry, &at), ERR_OK);
    map[ledger][entry] = at;
}

static bool same(const struct entry_place *a, const struct entry_place *b)
{
    return a->log == b->log && a->offset == b->offset && a->length == b->length;
}

static void compare(void)
{
    unsigned wrong = 0;
    for (int64_t l = 0; l < LEDGERS; l++) {
        for (int64_t e = 0; e < ENTRIES; e++) {
            struct entry_place at = {0};
            const enum err err = entry_index_find(ix, l, e, &at);
            const bool absent = map[l][e].log == 0;
            wrong += absent ? err != ERR_NO_ENTRY : err || !same(&at, &map[l][e]);
        }
    }
    ck_assert_uint_eq(wrong, 0);
}

/* A flush as the checkpoint makes it: sorted, records one behind the other. */
static void flush(uint64_t log, unsigned chance_in_100, int64_t from, int64_t to, int64_t step)
{
    uint64_t offset = 64;
    for (int64_t l = 0; l < LEDGERS; l++) {
        for (int64_t e = from; e < to; e += step) {
            if (rng_below(&seed, 100) >= chance_in_100)
                continue;
            const uint32_t length = (uint32_t)(32 + rng_below(&seed, 3) * 1000);
            put(l, e, (struct entry_place){log, offset, length});
            offset += 8 + length;
            if (rng_below(&seed, 10) == 0)
                offset += rng_below(&seed, 100000);
        }
    }
    ck_assert_int_eq(entry_index_commit(ix), ERR_OK);
}

START_TEST(is_the_map_it_should_be)
{
    begin();
    seed = (uint64_t)_i + 1;
    for (uint64_t log = 1; log < 12; log++) {
        const int64_t from = (int64_t)rng_below(&seed, ENTRIES);
        const int64_t to = from + (int64_t)rng_below(&seed, (uint64_t)(ENTRIES - from)) + 1;
        flush(log, (unsigned)rng_below(&seed, 101), from, to, 1 + (int64_t)rng_below(&seed, 3));
        if (rng_below(&seed, 3) == 0)
            reopen();
    }
    compare();
    end();
}
END_TEST

START_TEST(striped_entries_leave_gaps)
{
    begin();
    flush(1, 100, 0, ENTRIES, 3);
    compare();
    flush(2, 100, 1, ENTRIES, 3);
    compare();
    end();
}
END_TEST

START_TEST(an_entry_added_again_hides_no_neighbour)
{
    begin();
    flush(1, 100, 0, 600, 1);
    put(1, 300, (struct entry_place){2, 64, 50});
    ck_assert_int_eq(entry_index_commit(ix), ERR_OK);
    compare();
    end();
}
END_TEST

START_TEST(the_same_flush_twice_changes_nothing)
{
    begin();
    for (unsigned i = 0; i < 2; i++) {
        seed = 7;
        flush(5, 60, 100, 900, 2);
        compare();
    }
    end();
}
END_TEST

START_TEST(flushes_meet_inside_a_block)
{
    begin();
    for (int64_t e = 0; e < 1000; e += 50)
        flush((uint64_t)e + 1, 100, e, e + 50, 1);
    compare();
    end();
}
END_TEST

START_TEST(a_discarded_batch_leaves_no_trace)
{
    begin();
    flush(1, 100, 0, 300, 1);
    const struct entry_place at = {9, 9, 9};
    ck_assert_int_eq(entry_index_put(ix, 1, 10, &at), ERR_OK);
    ck_assert_int_eq(entry_index_put(ix, 1, 1999, &at), ERR_OK);
    entry_index_discard(ix);
    ck_assert_int_eq(entry_index_commit(ix), ERR_OK);
    compare();
    end();
}
END_TEST

static struct entry_place second(int64_t e)
{
    return (struct entry_place){.log = 2, .offset = (uint64_t)(64 + e * 100), .length = 99};
}

/* Another process, on a disk that takes no more bytes: 0 if the commit said that it failed. RocksDB
 * may end the process itself, and that is as good. */
static void commit_without_room(void)
{
    struct rlimit l = {0};
    if (entry_index_open(&ix, dir))
        _exit(2);
    for (int64_t e = 300; e < 600; e++) {
        const struct entry_place at = second(e);
        if (entry_index_put(ix, 0, e, &at))
            _exit(3);
    }
    signal(SIGXFSZ, SIG_IGN);
    if (getrlimit(RLIMIT_FSIZE, &l))
        _exit(4);
    l.rlim_cur = 1;
    if (setrlimit(RLIMIT_FSIZE, &l))
        _exit(5);
    _exit(entry_index_commit(ix) == ERR_OK);
}

/* What the disk did not take is not there afterwards, and nobody was told that it is. */
START_TEST(a_commit_that_fails_says_so)
{
    int status = 0;
    begin();
    for (int64_t e = 0; e < 300; e++)
        put(0, e, (struct entry_place){.log = 1, .offset = (uint64_t)(64 + e * 100), .length = 99});
    ck_assert_int_eq(entry_index_commit(ix), ERR_OK);
    entry_index_close(&ix);
    const pid_t child = fork();
    if (child == 0)
        commit_without_room();
    ck_assert_int_eq(waitpid(child, &status, 0), child);
    ck_assert(WIFSIGNALED(status) ? WTERMSIG(status) == SIGABRT : WEXITSTATUS(status) == 0);
    reopen();
    compare();
    for (int64_t e = 300; e < 600; e++)
        put(0, e, second(e));
    ck_assert_int_eq(entry_index_commit(ix), ERR_OK);
    compare();
    end();
}
END_TEST

START_TEST(keeps_rows)
{
    struct ledger_row row = {.id = 7, .key = {1, 2, 3}, .fenced = true, .last = 9, .lac = 8};
    struct ledger_row back;
    begin();
    ck_assert_int_eq(entry_index_row(ix, 7, &back), ERR_NO_LEDGER);
    entry_index_put_row(ix, &row);
    ck_assert_int_eq(entry_index_commit(ix), ERR_OK);
    reopen();
    ck_assert_int_eq(entry_index_row(ix, 7, &back), ERR_OK);
    ck_assert(back.fenced);
    ck_assert_int_eq(back.id, 7);
    ck_assert_int_eq(back.last, 9);
    ck_assert_int_eq(back.lac, 8);
    ck_assert_mem_eq(back.key, row.key, MASTER_KEY_SIZE);
    end();
}
END_TEST

/* ---- the bytes of a block ------------------------------------------------------------------- */

START_TEST(a_block_of_equal_entries_is_small)
{
    static struct index_block b, back;
    uint8_t bytes[INDEX_BLOCK_BYTES_MAX];
    for (unsigned i = 0; i < INDEX_BLOCK; i++)
        index_block_set(&b, i, (struct entry_place){3, 64 + i * 140, 132});
    const size_t len = index_block_write(&b, bytes);
    ck_assert_uint_le(len, 2 * INDEX_BLOCK + 10);
    ck_assert_int_eq(index_block_read(view_of(bytes, len), &back), ERR_OK);
    ck_assert_mem_eq(&b, &back, sizeof b);
    for (size_t cut = 0; cut < len; cut++) /* whatever is missing, it is noticed or less */
        if (!index_block_read(view_of(bytes, cut), &back))
            ck_assert(!index_block_has(&back, INDEX_BLOCK - 1));
}
END_TEST

START_TEST(the_largest_block_fits)
{
    static struct index_block b, back;
    static uint8_t bytes[INDEX_BLOCK_BYTES_MAX];
    for (unsigned i = 0; i < INDEX_BLOCK; i++)
        index_block_set(
            &b, i,
            (struct entry_place){UINT64_MAX - i, UINT64_MAX / 2 - i * 7, i % 2 ? UINT32_MAX : 0});
    const size_t len = index_block_write(&b, bytes);
    ck_assert_int_eq(index_block_read(view_of(bytes, len), &back), ERR_OK);
    ck_assert_mem_eq(&b, &back, sizeof b);
}
END_TEST

START_TEST(refuses_bytes_that_are_no_block)
{
    static struct index_block b;
    static const uint8_t none[] = {2}, too_far[] = {1, 0xff, 0xff, 0x7f, 0, 0},
                         negative[] = {1, 1, 5, 1 /* -1 */};
    ck_assert_int_eq(index_block_read(view_of(none, sizeof none), &b), ERR_CHECKSUM);
    ck_assert_int_eq(index_block_read(view_of(too_far, sizeof too_far), &b), ERR_CHECKSUM);
    ck_assert_int_eq(index_block_read(view_of(negative, sizeof negative), &b), ERR_CHECKSUM);
    ck_assert_int_eq(index_block_read(view_of(none, 0), &b), ERR_CHECKSUM);
}
END_TEST

/* What can be read can be written, and is then read as the same. */
static void read_and_write(struct view bytes)
{
    static struct index_block b, again;
    static uint8_t out[INDEX_BLOCK_BYTES_MAX];
    if (index_block_read(bytes, &b))
        return;
    const size_t len = index_block_write(&b, out);
    ck_assert_int_eq(index_block_read(view_of(out, len), &again), ERR_OK);
    for (unsigned i = 0; i < INDEX_BLOCK; i++)
        if (index_block_has(&b, i) != index_block_has(&again, i) ||
            (index_block_has(&b, i) && !same(&b.at[i], &again.at[i])))
            ck_abort_msg("id %u of a block changed", i);
}

START_TEST(any_bytes_are_read_or_refused)
{
    uint8_t bytes[64] = {1};
    seed = (uint64_t)_i + 1;
    for (unsigned round = 0; round < 2000; round++) {
        const size_t len = 1 + rng_below(&seed, sizeof bytes);
        for (size_t i = 1; i < len; i++)
            bytes[i] = (uint8_t)(rng_below(&seed, 2) ? rng_below(&seed, 8) : rng_next(&seed));
        read_and_write(view_of(bytes, len));
    }
}
END_TEST

int main(void)
{
    return suite_run("entry_index",
                     (suite_case[]){SUITE_LOOP(is_the_map_it_should_be, 12),
                                    SUITE_CASE(striped_entries_leave_gaps),
                                    SUITE_CASE(an_entry_added_again_hides_no_neighbour),
                                    SUITE_CASE(the_same_flush_twice_changes_nothing),
                                    SUITE_CASE(flushes_meet_inside_a_block),
                                    SUITE_CASE(a_discarded_batch_leaves_no_trace),
                                    SUITE_CASE(a_commit_that_fails_says_so),
                                    SUITE_CASE(keeps_rows),
                                    SUITE_CASE(a_block_of_equal_entries_is_small),
                                    SUITE_CASE(the_largest_block_fits),
                                    SUITE_CASE(refuses_bytes_that_are_no_block),
                                    SUITE_LOOP(any_bytes_are_read_or_refused, 5),
                                    {0}});
}
