/* One group of a journal: sealed when all of it is there, and what a write of it that fails means.
 */
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdatomic.h>
#include <string.h>
#include <sys/mman.h>

#include "bookie/journal.h"
#include "bookie/journal_format.h"
#include "tests/lib/fake_disk.h"
#include "tests/lib/suite.h"

enum { KIND = 1, PAGE = 4096, SYNC_US = 20000, WATCHED_US = 50000, WRITES = 4 };

static struct fake_disk *disk;
static struct loops loops;
static struct journal *journal;
static struct journal_write writes[WRITES];
static atomic_int done[WRITES]; /* 0: not yet; 1 + the error */
static atomic_uint failures;
static unsigned n_replayed;

static void was_done(struct journal_write *w, enum err err)
{
    atomic_store(&done[w - writes], 1 + (int)err);
}

static void failed(void *ctx, enum err why)
{
    (void)ctx;
    ck_assert_int_ne(why, ERR_OK);
    atomic_fetch_add(&failures, 1);
}

static enum err take(void *ctx, uint8_t kind, struct view payload)
{
    (void)ctx;
    (void)kind;
    (void)payload;
    n_replayed++;
    return ERR_OK;
}

static void open_again(void)
{
    const struct journal_conf conf = {.dir = "j",
                                      .file_bytes = 1 << 20,
                                      .group_bytes = 64 << 10,
                                      .queue_bytes = 16 << 20,
                                      .record_max = 64 << 10,
                                      .loops = &loops,
                                      .failed = failed};
    n_replayed = 0;
    const struct journal_mark from = {0, JOURNAL_BLOCK, 1};
    ck_assert_int_eq(journal_open(&journal, &conf, fake_disk_of(disk), from), ERR_OK);
    ck_assert_int_eq(journal_replay(journal, take, NULL), ERR_OK);
    ck_assert_int_eq(journal_start(journal), ERR_OK);
}

static void begin(void)
{
    disk = fake_disk_new();
    loops_start(&loops, "loop", 1);
    memset(done, 0, sizeof done);
    atomic_store(&failures, 0);
    open_again();
}

static void crash(void)
{
    fake_disk_fail(disk, FAKE_WRITE, 0, UINT32_MAX);
    journal_close(&journal);
    fake_disk_fail(disk, FAKE_WRITE, 0, 0);
    fake_disk_crash(disk);
}

static void end(void)
{
    journal_close(&journal);
    loops_stop(&loops);
    fake_disk_drop(&disk);
}

static void append(unsigned i, struct view head)
{
    writes[i] =
        (struct journal_write){.kind = KIND, .head = head, .home = loops.at[0], .done = was_done};
    ck_assert_int_eq(journal_append(journal, &writes[i]), ERR_OK);
}

static void wait_done(unsigned i)
{
    while (atomic_load(&done[i]) == 0 && atomic_load(&failures) == 0)
        sched_yield();
}

/* Until no more than so many wait for a group of theirs. */
static void wait_taken(int64_t left)
{
    while (metric_get(&journal_stats(journal)->queued) > left)
        sched_yield();
}

/* ---- a copy that takes its time -------------------------------------------------------------- */

/* Whoever reads this page waits until it is let go on. */
static uint8_t *slow_page;
static atomic_bool is_reading, may_read;

static void on_fault(int number, siginfo_t *info, void *context)
{
    (void)context;
    if ((uint8_t *)info->si_addr < slow_page || (uint8_t *)info->si_addr >= slow_page + PAGE) {
        signal(number, SIG_DFL);
        return;
    }
    atomic_store(&is_reading, true);
    while (!atomic_load(&may_read))
        sched_yield();
    mprotect(slow_page, PAGE, PROT_READ);
}

static void make_slow_page(void)
{
    const struct sigaction fault = {.sa_sigaction = on_fault, .sa_flags = SA_SIGINFO};
    slow_page = mmap(NULL, PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    ck_assert_ptr_ne(slow_page, MAP_FAILED);
    memset(slow_page, 'x', PAGE);
    ck_assert_int_eq(mprotect(slow_page, PAGE, PROT_NONE), 0);
    ck_assert_int_eq(sigaction(SIGSEGV, &fault, NULL), 0);
}

static void *append_slowly(void *arg)
{
    (void)arg;
    append(1, view_of(slow_page, PAGE));
    return NULL;
}

/* While the first group is being synced, the first record of the next one is on its way into the
 * draft; when the draft is taken, it still is. */
START_TEST(a_record_is_sealed_when_its_copy_is_there)
{
    static const uint8_t quick[] = "quick";
    pthread_t slow;
    begin();
    make_slow_page();
    fake_disk_slow(disk, SYNC_US);
    append(0, view_of(quick, sizeof quick));
    wait_taken(0);
    ck_assert_int_eq(pthread_create(&slow, NULL, append_slowly, NULL), 0);
    while (!atomic_load(&is_reading))
        sched_yield();
    wait_done(0);
    append(2, view_of(quick, sizeof quick));
    wait_taken(1);
    const uint64_t until = loop_clock() + WATCHED_US;
    while (loop_clock() < until && atomic_load(&done[1]) == 0)
        sched_yield();
    ck_assert_int_eq(atomic_load(&done[1]), 0);
    atomic_store(&may_read, true);
    pthread_join(slow, NULL);
    wait_done(1);
    wait_done(2);
    ck_assert_uint_eq(atomic_load(&failures), 0);
    crash();
    open_again();
    ck_assert_uint_eq(n_replayed, 3);
    end();
    munmap(slow_page, PAGE);
}
END_TEST

/* ---- a write that fails ---------------------------------------------------------------------- */

/* What of it is on the disk nobody knows: nothing is acknowledged, and nothing comes after it. */
static void a_failed_write_is_the_end(enum err how)
{
    static const uint8_t text[] = "text";
    begin();
    append(0, view_of(text, sizeof text));
    wait_done(0);
    fake_disk_fail_writes_as(disk, how);
    fake_disk_fail(disk, FAKE_WRITE, 0, 1);
    append(1, view_of(text, sizeof text));
    wait_done(1);
    ck_assert_uint_eq(atomic_load(&failures), 1);
    append(2, view_of(text, sizeof text));
    const uint64_t until = loop_clock() + WATCHED_US;
    while (loop_clock() < until)
        sched_yield();
    ck_assert_int_eq(atomic_load(&done[1]), 0);
    ck_assert_int_eq(atomic_load(&done[2]), 0);
    crash();
    open_again();
    ck_assert_uint_eq(n_replayed, 1);
    end();
}

START_TEST(no_space_for_a_write_is_the_end)
{
    a_failed_write_is_the_end(ERR_NO_SPACE);
}
END_TEST

START_TEST(a_write_that_fails_is_the_end)
{
    a_failed_write_is_the_end(ERR_IO);
}
END_TEST

/* A place that cannot be read is not the end of what was written. */
START_TEST(an_unreadable_place_is_no_torn_tail)
{
    static const uint8_t text[] = "text";
    begin();
    for (unsigned i = 0; i < 3; i++) {
        append(i, view_of(text, sizeof text));
        wait_done(i);
    }
    crash();
    const struct journal_conf conf = {.dir = "j", .record_max = 64 << 10, .loops = &loops};
    const struct journal_mark from = {0, JOURNAL_BLOCK, 1};
    ck_assert_int_eq(journal_open(&journal, &conf, fake_disk_of(disk), from), ERR_OK);
    fake_disk_fail(disk, FAKE_READ, 0, UINT32_MAX);
    ck_assert_int_eq(journal_replay(journal, take, NULL), ERR_IO);
    fake_disk_fail(disk, FAKE_READ, 0, 0);
    end();
}
END_TEST

int main(void)
{
    return suite_run("journal_group",
                     (suite_case[]){SUITE_CASE(a_record_is_sealed_when_its_copy_is_there),
                                    SUITE_CASE(no_space_for_a_write_is_the_end),
                                    SUITE_CASE(a_write_that_fails_is_the_end),
                                    SUITE_CASE(an_unreadable_place_is_no_torn_tail),
                                    {0}});
}
