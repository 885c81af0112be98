#include "bookie/disk_watch.h"

#include <sched.h>
#include <stdatomic.h>

#include "tests/lib/suite.h"

/* A disk that is as full as it is told to be. */
static _Atomic uint64_t used;
static atomic_bool unaskable, full;

static struct {
    atomic_int asked, changes;
    atomic_bool writable, reserve;
} seen;

static enum err space(struct disk *d, const char *path, uint64_t *free_bytes, uint64_t *total)
{
    (void)d, (void)path;
    atomic_fetch_add(&seen.asked, 1);
    if (atomic_load(&unaskable))
        return ERR_IO;
    *total = 1000;
    *free_bytes = *total - atomic_load(&used);
    return ERR_OK;
}

static const struct disk_ops ops = {.space = space};
static struct disk disk = {.ops = &ops};
static struct loops loops;
static struct disk_watch *watch;

static bool is_full(void *ctx)
{
    (void)ctx;
    return atomic_load(&full);
}

static void changed(void *ctx, bool writable, bool reserve)
{
    (void)ctx;
    atomic_store(&seen.writable, writable);
    atomic_store(&seen.reserve, reserve);
    atomic_fetch_add(&seen.changes, 1);
}

static void begin(uint64_t at)
{
    struct disk_watch_conf conf = {.disk = &disk,
                                   .dir = "/d",
                                   .threshold = 0.9,
                                   .low_water = 0.7,
                                   .reserve_bytes = 50,
                                   .interval_us = 1000,
                                   .is_full = is_full,
                                   .changed = changed};
    atomic_store(&used, at);
    atomic_store(&seen.writable, true);
    loops_start(&loops, "watch", 1);
    conf.loop = loops.at[0];
    watch = disk_watch_open(&conf);
}

static void end(void)
{
    disk_watch_close(&watch);
    loops_stop(&loops);
}

/* The look that may be under way, and one that has seen what we changed, have ended. */
static void let_it_look(void)
{
    const int before = atomic_load(&seen.asked);
    while (atomic_load(&seen.asked) < before + 3)
        sched_yield();
}

static void expect(uint64_t at, bool writable, bool reserve, int changes)
{
    atomic_store(&used, at);
    let_it_look();
    ck_assert_int_eq(atomic_load(&seen.writable), writable);
    ck_assert_int_eq(atomic_load(&seen.changes), changes);
    if (changes)
        ck_assert_int_eq(atomic_load(&seen.reserve), reserve);
}

START_TEST(read_only_above_one_mark_writable_below_another)
{
    begin(0);
    expect(890, true, true, 0);
    expect(910, false, true, 1);
    expect(890, false, true, 1); /* between the marks it stays what it is */
    expect(710, false, true, 1);
    expect(690, true, true, 2);
    expect(890, true, true, 2);
    end();
}
END_TEST

START_TEST(the_reserve_goes_last)
{
    begin(940);
    expect(940, false, true, 1);
    expect(960, false, false, 2);
    expect(940, false, true, 3);
    end();
}
END_TEST

START_TEST(a_write_without_space_counts_more_than_numbers)
{
    begin(0);
    atomic_store(&full, true);
    expect(100, false, false, 1);
    atomic_store(&full, false);
    expect(100, true, true, 2);
    end();
}
END_TEST

START_TEST(a_disk_that_cannot_be_asked_changes_nothing)
{
    begin(0);
    expect(990, false, false, 1);
    atomic_store(&unaskable, true);
    expect(0, false, false, 1);
    atomic_store(&unaskable, false);
    expect(0, true, true, 2);
    end();
}
END_TEST

int main(void)
{
    return suite_run("disk_watch", (suite_case[]){
                                       SUITE_CASE(read_only_above_one_mark_writable_below_another),
                                       SUITE_CASE(the_reserve_goes_last),
                                       SUITE_CASE(a_write_without_space_counts_more_than_numbers),
                                       SUITE_CASE(a_disk_that_cannot_be_asked_changes_nothing),
                                       {0},
                                   });
}
