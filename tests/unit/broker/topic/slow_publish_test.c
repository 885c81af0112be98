/* Where the time of a publish went, from its stamps. */
#include "broker/topic/slow_publish.h"
#include "common/log_limit.h"
#include "tests/lib/suite.h"

static struct publish usual(void)
{
    return (struct publish){
        .came_us = 1000000,
        .add = {.added_us = 1010000,
                .done_us = 1100000,
                .append = {.sent_us = 1020000, .safe_us = 1080000}},
    };
}

START_TEST(the_stages_add_up)
{
    const struct publish m = usual();
    uint64_t us[STAGES], sum = 0;

    slow_publish_stages(&m, 1105000, us);
    ck_assert_uint_eq(us[STAGE_HELD], 10000);
    ck_assert_uint_eq(us[STAGE_QUEUE], 10000);
    ck_assert_uint_eq(us[STAGE_QUORUM], 60000);
    ck_assert_uint_eq(us[STAGE_ORDER], 20000);
    ck_assert_uint_eq(us[STAGE_REPLY], 5000);
    for (unsigned i = 0; i < STAGES; i++)
        sum += us[i];
    ck_assert_uint_eq(sum, 105000);
}
END_TEST

START_TEST(waiting_for_a_ledger_is_no_queueing)
{
    struct publish m = usual();
    uint64_t us[STAGES];

    m.add.append.sent_us = 1060000;
    m.add.waits = (struct ml_waits){.ms = {20, 5, 7, 8}};
    m.add.lost_ms = 6;
    slow_publish_stages(&m, 1105000, us);
    ck_assert_uint_eq(us[STAGE_BOOKIES], 20000);
    ck_assert_uint_eq(us[STAGE_CLOSE], 5000);
    ck_assert_uint_eq(us[STAGE_CREATE], 7000);
    ck_assert_uint_eq(us[STAGE_NODE], 8000);
    ck_assert_uint_eq(us[STAGE_LOST], 6000);
    ck_assert_uint_eq(us[STAGE_QUEUE], 4000);
}
END_TEST

/* Confirmed when its ledger was closed: no Qa-th answer was seen. */
START_TEST(no_quorum_is_no_time_before_the_clock_began)
{
    struct publish m = usual();
    uint64_t us[STAGES];

    m.add.append.safe_us = 0;
    m.add.lost_ms = 40;
    m.add.waits.ms[ML_WAIT_CLOSE] = 30;
    slow_publish_stages(&m, 1105000, us);
    ck_assert_uint_eq(us[STAGE_QUEUE], 0);
    ck_assert_uint_eq(us[STAGE_QUORUM], 0);
    ck_assert_uint_eq(us[STAGE_ORDER], 0);
    ck_assert_uint_eq(us[STAGE_LOST], 40000);
}
END_TEST

START_TEST(stamps_of_two_loops_may_be_a_round_apart)
{
    struct publish m = usual();
    uint64_t us[STAGES];

    m.add.added_us = m.came_us - 1;
    m.add.append.sent_us = m.came_us - 2;
    slow_publish_stages(&m, 1099999, us);
    ck_assert_uint_eq(us[STAGE_HELD], 0);
    ck_assert_uint_eq(us[STAGE_QUEUE], 0);
    ck_assert_uint_eq(us[STAGE_REPLY], 0);
}
END_TEST

START_TEST(one_that_never_came_in_was_held)
{
    const struct publish m = {.came_us = 1000000};
    uint64_t us[STAGES];

    slow_publish_stages(&m, 3000000, us);
    ck_assert_uint_eq(us[STAGE_HELD], 2000000);
    ck_assert_uint_eq(us[STAGE_REPLY], 0);
}
END_TEST

START_TEST(a_limit_counts_what_it_left_out)
{
    struct log_limit l = {0};
    uint64_t left_out = 99;
    unsigned passed = 0;

    for (unsigned i = 0; i < 25; i++)
        passed += log_limit_pass(&l, 10, 5000000 + i, &left_out);
    ck_assert_uint_eq(passed, 10);
    ck_assert_uint_eq(left_out, 0);
    ck_assert(log_limit_pass(&l, 10, 6000000, &left_out));
    ck_assert_uint_eq(left_out, 15);
    ck_assert(log_limit_pass(&l, 10, 6000001, &left_out));
    ck_assert_uint_eq(left_out, 0);
}
END_TEST

int main(void)
{
    return suite_run("slow_publish", (suite_case[]){
                                         SUITE_CASE(the_stages_add_up),
                                         SUITE_CASE(waiting_for_a_ledger_is_no_queueing),
                                         SUITE_CASE(no_quorum_is_no_time_before_the_clock_began),
                                         SUITE_CASE(stamps_of_two_loops_may_be_a_round_apart),
                                         SUITE_CASE(one_that_never_came_in_was_held),
                                         SUITE_CASE(a_limit_counts_what_it_left_out),
                                         {0},
                                     });
}
