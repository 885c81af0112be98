#include "bookie/disk_watch.h"

#include <sched.h>
#include <stdatomic.h>

#include "tests/lib/suite.h"

/* A disk that is as full as it is told to be. */
static _Atomic uint64_t used;
static atomic_bool unaskable;
static _Atomic enum err failure;

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

static enum err failure_of(void *ctx, unsigned dir)
{
    (void)ctx;
    return dir == 0 ? atomic_load(&failure) : ERR_OK;
}

static void looked(void *ctx, const struct disk_rules *r, const struct disk_verdict *v)
{
    (void)ctx;
    ck_assert_uint_eq(r->n, 2);
    const bool writable = atomic_exchange(&seen.writable, v->writable);
    const bool reserve = atomic_exchange(&seen.reserve, v->reserve);
    if (writable != v->writable || reserve != v->reserve)
        atomic_fetch_add(&seen.changes, 1);
}

static void begin(uint64_t at)
{
    static const struct watched_dir dirs[] = {{"/d", false}, {"/j", true}};
    struct disk_watch_conf conf = {
        .disk = &disk,
        .dirs = dirs,
        .n = 2,
        .rules = {.threshold = 0.9, .warn = 0.99, .low_water = 0.7, .reserve = 50},
        .interval_us = 1000,
        .failure = failure_of,
        .looked = looked};
    atomic_store(&used, at);
    atomic_store(&seen.writable, true);
    atomic_store(&seen.reserve, true);
    loops_start(&loops, "watch", 1);
    conf.loop = loops.at[0];
    watch = disk_watch_open(&conf);
    ck_assert_int_gt(atomic_load(&seen.asked), 0); /* before anybody asks */
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
    while (atomic_load(&seen.asked) < before + 5)
        sched_yield();
}

static void expect(uint64_t at, bool writable, bool reserve, int changes)
{
    atomic_store(&used, at);
    let_it_look();
    ck_assert_int_eq(atomic_load(&seen.writable), writable);
    ck_assert_int_eq(atomic_load(&seen.reserve), reserve);
    ck_assert_int_eq(atomic_load(&seen.changes), changes);
}

START_TEST(tells_when_it_turns)
{
    begin(0);
    expect(890, true, true, 0);
    expect(910, false, true, 1);
    expect(960, false, false, 2);
    expect(710, false, true, 3);
    expect(690, true, true, 4);
    end();
}
END_TEST

START_TEST(tells_of_writes_that_fail)
{
    begin(100);
    atomic_store(&failure, ERR_NO_SPACE);
    expect(100, false, true, 1);
    atomic_store(&failure, ERR_IO);
    expect(100, false, false, 2);
    atomic_store(&failure, ERR_OK);
    expect(100, true, true, 3);
    end();
}
END_TEST

START_TEST(a_disk_that_cannot_be_asked_changes_nothing)
{
    begin(990);
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
    return suite_run("disk_watch",
                     (suite_case[]){SUITE_CASE(tells_when_it_turns),
                                    SUITE_CASE(tells_of_writes_that_fail),
                                    SUITE_CASE(a_disk_that_cannot_be_asked_changes_nothing),
                                    {0}});
}
