/* Messages that are not stored: whom each goes to, and when to nobody. */
#include "broker/dispatch/fleeting.h"

#include <string.h>

#include "common/mem.h"
#include "tests/lib/suite.h"

enum { ROOM = 1000, A_MESSAGE = 100 };

static struct fleeting p;
static struct fleeting_consumer a, b, c;

static void begin(void)
{
    fleeting_init(&p, ROOM);
    fleeting_came(&p, &a, 0);
    fleeting_came(&p, &b, 0);
}

static struct fleeting_consumer *one(void)
{
    return fleeting_choose(&p, 1, A_MESSAGE, FLEETING_PLENTY);
}

START_TEST(without_permits_nobody_gets_it)
{
    begin();
    ck_assert_ptr_null(one());
    fleeting_flow(&b, 2);
    ck_assert_ptr_eq(one(), &b);
    ck_assert_ptr_eq(one(), &b);
    ck_assert_ptr_null(one());
}
END_TEST

START_TEST(each_has_its_turn)
{
    begin();
    fleeting_flow(&a, 10);
    fleeting_flow(&b, 10);
    ck_assert_ptr_eq(one(), &a);
    ck_assert_ptr_eq(one(), &b);
    ck_assert_ptr_eq(one(), &a);
    fleeting_came(&p, &c, 0);
    fleeting_flow(&c, 10);
    ck_assert_ptr_eq(one(), &b);
    ck_assert_ptr_eq(one(), &a);
    ck_assert_ptr_eq(one(), &c);
    fleeting_left(&b);
    ck_assert_ptr_eq(one(), &a);
    ck_assert_ptr_eq(one(), &c);
}
END_TEST

START_TEST(a_better_level_comes_first)
{
    begin();
    fleeting_came(&p, &c, -1);
    fleeting_flow(&a, 1);
    fleeting_flow(&c, 2);
    ck_assert_ptr_eq(one(), &c);
    ck_assert_ptr_eq(one(), &c);
    ck_assert_ptr_eq(one(), &a);
    ck_assert_ptr_null(one());
}
END_TEST

START_TEST(a_batch_may_take_permits_below_zero)
{
    begin();
    fleeting_flow(&a, 3);
    ck_assert_ptr_eq(fleeting_choose(&p, 10, A_MESSAGE, FLEETING_PLENTY), &a);
    ck_assert_int_eq(a.permits, -7);
    fleeting_flow(&a, 7);
    ck_assert_ptr_null(one());
    fleeting_flow(&a, 1);
    ck_assert_ptr_eq(one(), &a);
}
END_TEST

START_TEST(a_full_connection_gets_no_more)
{
    begin();
    fleeting_flow(&a, 1000);
    for (unsigned i = 0; i < ROOM / A_MESSAGE; i++)
        ck_assert_ptr_eq(one(), &a);
    ck_assert_ptr_null(one());
    fleeting_delivered(&a, A_MESSAGE);
    ck_assert_ptr_eq(one(), &a);
    ck_assert_ptr_null(one());
    fleeting_flow(&b, 1);
    ck_assert_ptr_eq(one(), &b);
}
END_TEST

START_TEST(a_large_one_goes_alone)
{
    begin();
    fleeting_flow(&a, 10);
    ck_assert_ptr_eq(fleeting_choose(&p, 1, 50 * ROOM, FLEETING_PLENTY), &a);
    ck_assert_ptr_null(one());
    fleeting_delivered(&a, 50 * ROOM);
    ck_assert_ptr_eq(one(), &a);
    ck_assert_ptr_null(fleeting_choose(&p, 1, ROOM, FLEETING_PLENTY));
}
END_TEST

START_TEST(when_memory_is_scarce_the_idle_get_it)
{
    begin();
    fleeting_flow(&a, 10);
    ck_assert_ptr_eq(fleeting_choose(&p, 1, A_MESSAGE, FLEETING_SCARCE), &a);
    ck_assert_ptr_null(fleeting_choose(&p, 1, A_MESSAGE, FLEETING_SCARCE));
    fleeting_flow(&b, 10);
    ck_assert_ptr_null(fleeting_choose(&p, 1, A_MESSAGE, FLEETING_NONE));
    ck_assert_ptr_eq(fleeting_choose(&p, 1, A_MESSAGE, FLEETING_SCARCE), &b);
}
END_TEST

START_TEST(permits_do_not_overflow)
{
    begin();
    for (unsigned i = 0; i < 1000; i++)
        fleeting_flow(&a, UINT32_MAX);
    ck_assert_int_gt(a.permits, 0);
    ck_assert_int_lt(a.permits, (int64_t)1 << 42);
}
END_TEST

int main(void)
{
    return suite_run("fleeting", (suite_case[]){
                                     SUITE_CASE(without_permits_nobody_gets_it),
                                     SUITE_CASE(each_has_its_turn),
                                     SUITE_CASE(a_better_level_comes_first),
                                     SUITE_CASE(a_batch_may_take_permits_below_zero),
                                     SUITE_CASE(a_full_connection_gets_no_more),
                                     SUITE_CASE(a_large_one_goes_alone),
                                     SUITE_CASE(when_memory_is_scarce_the_idle_get_it),
                                     SUITE_CASE(permits_do_not_overflow),
                                     {0},
                                 });
}
