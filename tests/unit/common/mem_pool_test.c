/* mem_pool_test.c - objects of one size: zeroed, apart, and given back chunk by chunk. */
#include "common/mem_pool.h"

#include <string.h>

#include "tests/lib/suite.h"

enum { MANY = 5000, SIZE = 200 };

static void *all[MANY];

static void take_all(struct mem_pool *p)
{
    for (unsigned i = 0; i < MANY; i++) {
        all[i] = mem_pool_take(p);
        for (unsigned k = 0; k < SIZE; k++)
            ck_assert_uint_eq(((unsigned char *)all[i])[k], 0);
        memset(all[i], (int)(i % 251) + 1, SIZE);
    }
}

START_TEST(objects_are_zeroed_and_do_not_overlap)
{
    struct mem_pool *p = mem_pool_new(SIZE);

    for (unsigned round = 0; round < 3; round++) {
        take_all(p);
        for (unsigned i = 0; i < MANY; i++)
            for (unsigned k = 0; k < SIZE; k++)
                ck_assert_uint_eq(((unsigned char *)all[i])[k], i % 251 + 1);
        for (unsigned i = 0; i < MANY; i += 2) /* holes in each chunk */
            mem_pool_give(all[i]);
        for (unsigned i = 1; i < MANY; i += 2)
            mem_pool_give(all[i]);
    }
    mem_pool_drop(&p);
    ck_assert_ptr_null(p);
}
END_TEST

START_TEST(what_is_empty_goes_back)
{
    struct mem_pool *p = mem_pool_new(SIZE);
    size_t one, most;

    mem_pool_give(mem_pool_take(p));
    one = mem_pool_bytes(p);
    take_all(p);
    most = mem_pool_bytes(p);
    for (unsigned i = 0; i < MANY; i++)
        mem_pool_give(all[i]);
    if (one > 0) { /* else a sanitizer wants each by itself */
        ck_assert_uint_gt(most, MANY * SIZE);
        ck_assert_uint_lt(most, MANY * (SIZE + 16) + 2 * one);
        ck_assert_uint_eq(mem_pool_bytes(p), one);
    }
    mem_pool_drop(&p);
}
END_TEST

START_TEST(holes_are_filled_before_it_grows)
{
    struct mem_pool *p = mem_pool_new(SIZE);
    size_t most;

    take_all(p);
    most = mem_pool_bytes(p);
    for (unsigned round = 0; round < 10; round++) {
        for (unsigned i = round; i < MANY; i += 2)
            mem_pool_give(all[i]);
        for (unsigned i = round; i < MANY; i += 2)
            all[i] = mem_pool_take(p);
        ck_assert_uint_eq(mem_pool_bytes(p), most);
    }
    for (unsigned i = 0; i < MANY; i++)
        mem_pool_give(all[i]);
    mem_pool_drop(&p);
}
END_TEST

START_TEST(an_object_outlives_whoever_made_the_pool)
{
    struct mem_pool *p = mem_pool_new(SIZE);
    unsigned char *last = mem_pool_take(p), *other = mem_pool_take(p);

    mem_pool_give(other);
    mem_pool_drop(&p);
    memset(last, 7, SIZE);
    ck_assert_uint_eq(last[SIZE - 1], 7);
    mem_pool_give(last);
    mem_pool_give(NULL);
}
END_TEST

START_TEST(large_ones_have_chunks_that_hold_some)
{
    struct mem_pool *p = mem_pool_new(100000);
    char *one = mem_pool_take(p), *two = mem_pool_take(p);

    memset(one, 1, 100000);
    memset(two, 2, 100000);
    ck_assert_int_eq(one[99999], 1);
    ck_assert_int_eq(two[0], 2);
    mem_pool_give(one);
    mem_pool_give(two);
    mem_pool_drop(&p);
}
END_TEST

int main(void)
{
    return suite_run("mem_pool",
                     (suite_case[]){SUITE_CASE(objects_are_zeroed_and_do_not_overlap),
                                    SUITE_CASE(what_is_empty_goes_back),
                                    SUITE_CASE(holes_are_filled_before_it_grows),
                                    SUITE_CASE(an_object_outlives_whoever_made_the_pool),
                                    SUITE_CASE(large_ones_have_chunks_that_hold_some),
                                    {0}});
}
