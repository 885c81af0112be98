#include "bookie/read_lanes.h"

#include <stddef.h>

#include "tests/lib/suite.h"

enum { SECOND = 1000 * 1000 };

static struct read_lanes l;
static struct lane_node jobs[64];
static unsigned put;

static void begin(unsigned threads)
{
    read_lanes_init(&l, threads);
    put = 0;
}

static void ask(enum read_lane lane, unsigned n)
{
    for (unsigned i = 0; i < n; i++)
        read_lanes_put(&l, lane, &jobs[put++]);
}

/* Which lane the next one is of; LANES: none may run. */
static enum read_lane next(uint64_t now)
{
    const struct lane_node *n = read_lanes_take(&l, now, false);
    return n ? n->lane : LANES;
}

static void done(enum read_lane lane, uint64_t bytes)
{
    const struct lane_node n = {.lane = lane};
    read_lanes_done(&l, &n, bytes);
}

START_TEST(whoever_waits_now_is_first)
{
    begin(4);
    ask(LANE_CATCH_UP, 3);
    ask(LANE_REPAIR, 1);
    ask(LANE_TAIL, 2);
    ck_assert_int_eq(next(0), LANE_TAIL);
    ck_assert_int_eq(next(0), LANE_TAIL);
    ck_assert_int_eq(next(0), LANE_CATCH_UP);
    ck_assert_int_eq(next(0), LANE_REPAIR);
    ck_assert_int_eq(next(0), LANE_CATCH_UP);
    ck_assert_int_eq(next(0), LANES); /* the fourth thread is the tail's */
    ask(LANE_TAIL, 1);
    ck_assert_int_eq(next(0), LANE_TAIL);
    done(LANE_REPAIR, 0);
    ck_assert_int_eq(next(0), LANE_CATCH_UP);
    ck_assert(read_lanes_empty(&l));
}
END_TEST

START_TEST(in_the_order_of_asking)
{
    begin(8);
    ask(LANE_CATCH_UP, 4);
    for (unsigned i = 0; i < 4; i++)
        ck_assert_ptr_eq(read_lanes_take(&l, 0, false), &jobs[i]);
}
END_TEST

START_TEST(repairs_have_a_quarter)
{
    begin(8);
    ask(LANE_REPAIR, 8);
    ck_assert_int_eq(next(0), LANE_REPAIR);
    ck_assert_int_eq(next(0), LANE_REPAIR);
    ck_assert_int_eq(next(0), LANES);
    done(LANE_REPAIR, 0);
    ck_assert_int_eq(next(0), LANE_REPAIR);
}
END_TEST

START_TEST(a_thread_alone_serves_all)
{
    begin(1);
    ask(LANE_CATCH_UP, 2);
    ask(LANE_REPAIR, 1);
    ck_assert_int_eq(next(0), LANE_CATCH_UP);
    ck_assert_int_eq(next(0), LANES);
    done(LANE_CATCH_UP, 0);
    ck_assert_int_eq(next(0), LANE_REPAIR);
    done(LANE_REPAIR, 0);
    ask(LANE_TAIL, 1);
    ck_assert_int_eq(next(0), LANE_TAIL);
    done(LANE_TAIL, 0);
    ck_assert_int_eq(next(0), LANE_CATCH_UP);
}
END_TEST

START_TEST(as_many_at_a_time_as_allowed)
{
    begin(8);
    read_lanes_limit(&l, 2, UINT64_MAX);
    ask(LANE_CATCH_UP, 5);
    ck_assert_int_eq(next(0), LANE_CATCH_UP);
    ck_assert_int_eq(next(0), LANE_CATCH_UP);
    ck_assert_int_eq(next(0), LANES);
    ck_assert_uint_eq(read_lanes_wait(&l, 0), UINT64_MAX);
    read_lanes_limit(&l, 3, UINT64_MAX);
    ck_assert_int_eq(next(0), LANE_CATCH_UP);
}
END_TEST

/* Windows of 1000 bytes at 10,000 bytes a second: ten a second, and no more after a rest. */
START_TEST(as_many_bytes_as_allowed)
{
    uint64_t now = SECOND;
    unsigned taken = 0;
    begin(4);
    read_lanes_limit(&l, 4, 10000);
    while (now < 4 * SECOND && put < 60) {
        ask(LANE_CATCH_UP, 1);
        while (next(now) == LANES) {
            const uint64_t until = read_lanes_wait(&l, now);
            ck_assert_uint_gt(until, now);
            ck_assert_uint_lt(until, now + SECOND);
            now = until;
        }
        taken++;
        done(LANE_CATCH_UP, 1000);
    }
    ck_assert_uint_ge(taken, 28);
    ck_assert_uint_le(taken, 32);
}
END_TEST

START_TEST(the_end_asks_nobody)
{
    begin(2);
    read_lanes_limit(&l, 1, 1);
    ask(LANE_CATCH_UP, 3);
    ask(LANE_REPAIR, 2);
    for (unsigned i = 0; i < 5; i++)
        ck_assert_ptr_nonnull(read_lanes_take(&l, 0, true));
    ck_assert_ptr_null(read_lanes_take(&l, 0, true));
}
END_TEST

int main(void)
{
    return suite_run("read_lanes", (suite_case[]){SUITE_CASE(whoever_waits_now_is_first),
                                                  SUITE_CASE(in_the_order_of_asking),
                                                  SUITE_CASE(repairs_have_a_quarter),
                                                  SUITE_CASE(a_thread_alone_serves_all),
                                                  SUITE_CASE(as_many_at_a_time_as_allowed),
                                                  SUITE_CASE(as_many_bytes_as_allowed),
                                                  SUITE_CASE(the_end_asks_nobody),
                                                  {0}});
}
