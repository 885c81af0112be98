#include "bookie/governor.h"

#include "tests/lib/suite.h"

enum { MIB = 1024 * 1024, QUIET = 1000 /* us of a sync */ };

static struct governor g;

static void begin(void)
{
    governor_init(&g, &(struct governor_conf){.most = 4, .floor = 4 * MIB});
}

static void step(uint64_t bytes_s, uint64_t add_us, uint64_t tail_us)
{
    governor_step(&g, &(struct governor_sample){.us = GOVERNOR_INTERVAL_US,
                                                .bytes = bytes_s / 10,
                                                .add_us = add_us,
                                                .tail_us = tail_us});
}

/* A device whose syncs take longer the more is read beside them; who catches up takes all that he
 * is given, up to `most`.  Gives what he had in the end. */
static uint64_t live(unsigned steps, uint64_t most, uint64_t us_per_mib, uint64_t *latency)
{
    uint64_t sum = 0, slow = 0;
    for (unsigned i = 0; i < steps; i++) {
        const uint64_t rate = g.bytes_s < most ? g.bytes_s : most;
        const uint64_t us = QUIET + rate / MIB * us_per_mib;
        step(rate, us, 0);
        if (i >= steps / 2) {
            sum += rate;
            slow += us;
        }
    }
    *latency = slow / (steps - steps / 2);
    return sum / (steps - steps / 2);
}

START_TEST(who_disturbs_nobody_is_not_held)
{
    uint64_t us;
    begin();
    step(0, QUIET, 0);
    ck_assert_uint_eq(live(200, 400 * MIB, 1, &us), 400 * MIB);
    ck_assert_uint_eq(g.reads, 4);
}
END_TEST

START_TEST(who_disturbs_is_slowed_until_it_is_bearable)
{
    uint64_t us;
    begin();
    for (unsigned i = 0; i < 10; i++)
        step(0, QUIET, 0);
    const uint64_t rate = live(400, 400 * MIB, 50, &us); /* unheld: 21 times as long */
    ck_assert_uint_lt(us, 2 * QUIET + GOVERNOR_SLACK_US);
    ck_assert_uint_ge(rate, 5 * MIB);
    ck_assert_uint_lt(rate, 60 * MIB);
}
END_TEST

START_TEST(the_floor_is_his)
{
    begin();
    step(0, QUIET, 0);
    for (unsigned i = 0; i < 50; i++)
        step(4 * MIB, 100 * QUIET, 0);
    ck_assert_uint_eq(g.bytes_s, 4 * MIB);
    ck_assert_uint_eq(g.reads, 1);
}
END_TEST

START_TEST(tail_reads_count_as_much)
{
    begin();
    for (unsigned i = 0; i < 10; i++)
        step(0, QUIET, 500);
    for (unsigned i = 0; i < 10; i++)
        step(100 * MIB, QUIET, 20000);
    ck_assert(g.is_braking);
    ck_assert_uint_lt(g.bytes_s, 80 * MIB);
    for (unsigned i = 0; i < 80; i++) /* after twenty, and before it is found out again */
        step(g.bytes_s, QUIET, 500);
    ck_assert(!g.is_braking);
    ck_assert_uint_gt(g.bytes_s, 200 * MIB);
    ck_assert_uint_eq(g.reads, 4);
}
END_TEST

START_TEST(nobody_writes)
{
    begin();
    step(0, QUIET, 0);
    for (unsigned i = 0; i < 20; i++)
        step(100 * MIB, 100 * QUIET, 0);
    ck_assert_uint_ne(g.bytes_s, GOVERNOR_NO_LIMIT);
    step(100 * MIB, 0, 0);
    ck_assert_uint_eq(g.bytes_s, GOVERNOR_NO_LIMIT);
    ck_assert_uint_eq(g.reads, 4);
}
END_TEST

/* Slow for another reason, and without anybody who catches up. */
START_TEST(blames_nobody_who_is_not_there)
{
    begin();
    step(0, QUIET, 0);
    for (unsigned i = 0; i < 20; i++)
        step(0, 50 * QUIET, 0);
    ck_assert(!g.is_braking);
    for (unsigned i = 0; i < 6; i++)
        step(g.bytes_s, 50 * QUIET, 0);
    ck_assert_uint_eq(g.bytes_s, 4 * MIB << 6);
}
END_TEST

/* Somebody writes: the first one doubles from the floor on, and so does the next one after a pause,
 * but not after a moment. */
START_TEST(begins_low)
{
    begin();
    step(0, QUIET, 0);
    ck_assert_uint_eq(g.bytes_s, 4 * MIB);
    ck_assert_uint_eq(g.reads, 1);
    step(4 * MIB, QUIET, 0);
    step(8 * MIB, QUIET, 0);
    ck_assert_uint_eq(g.bytes_s, 16 * MIB);
    step(1 * MIB, QUIET, 0); /* it was not used */
    ck_assert_uint_eq(g.bytes_s, 16 * MIB);
    for (unsigned i = 0; i < GOVERNOR_LEFT - 1; i++)
        step(0, QUIET, 0);
    ck_assert_uint_eq(g.bytes_s, 16 * MIB);
    step(0, QUIET, 0);
    ck_assert_uint_eq(g.bytes_s, 4 * MIB);
    step(4 * MIB, QUIET, 0);
    ck_assert_uint_eq(g.bytes_s, 8 * MIB);
    for (unsigned i = 0; i < 4; i++)
        step(8 * MIB, 50 * QUIET, 0);
    ck_assert_uint_eq(g.bytes_s, 4 * MIB);
    while (g.is_braking) /* who was too fast once grows by tenths */
        step(4 * MIB, QUIET, 0);
    ck_assert_uint_gt(g.bytes_s, 4 * MIB);
    ck_assert_uint_lt(g.bytes_s, 8 * MIB);
    for (unsigned i = 0; i < 20; i++)
        step(0, QUIET, 0);
    step(4 * MIB, QUIET, 0); /* and whoever comes after a pause doubles again */
    ck_assert_uint_eq(g.bytes_s, 8 * MIB);
}
END_TEST

/* It has become slower for another reason: what was read beside it was not to blame. */
START_TEST(a_device_that_stays_slow_is_what_it_is)
{
    begin();
    for (unsigned i = 0; i < 10; i++)
        step(0, QUIET, 0);
    for (unsigned i = 0; i < 2 * GOVERNOR_WINDOWS; i++)
        step(g.bytes_s < 50 * MIB ? g.bytes_s + MIB : 50 * MIB, 10 * QUIET, 0);
    ck_assert(!g.is_braking);
    ck_assert_uint_ge(g.bytes_s, 5 * MIB);
}
END_TEST

int main(void)
{
    return suite_run("governor",
                     (suite_case[]){SUITE_CASE(who_disturbs_nobody_is_not_held),
                                    SUITE_CASE(who_disturbs_is_slowed_until_it_is_bearable),
                                    SUITE_CASE(the_floor_is_his),
                                    SUITE_CASE(tail_reads_count_as_much),
                                    SUITE_CASE(nobody_writes),
                                    SUITE_CASE(begins_low),
                                    SUITE_CASE(blames_nobody_who_is_not_there),
                                    SUITE_CASE(a_device_that_stays_slow_is_what_it_is),
                                    {0}});
}
