#include "broker/topic/feed.h"

#include "tests/lib/suite.h"

START_TEST(a_read_of_small_entries_is_as_large_as_one_of_large_ones)
{
    ck_assert_uint_eq(feed_batch_of(100, 0), 100);           /* nothing is known yet */
    ck_assert_uint_eq(feed_batch_of(100, 100 * 1024), 100);  /* what was set */
    ck_assert_uint_eq(feed_batch_of(100, 1024), 1024);       /* a mebibyte of them */
    ck_assert_uint_eq(feed_batch_of(100, 10), BATCH_MAX);    /* and no more than that */
    ck_assert_uint_eq(feed_batch_of(100000, 10), 100000);    /* who set more gets it */
    ck_assert_uint_eq(feed_batch_of(1, 5 * 1024 * 1024), 1); /* never none */
}
END_TEST

int main(void)
{
    return suite_run("feed",
                     (suite_case[]){
                         SUITE_CASE(a_read_of_small_entries_is_as_large_as_one_of_large_ones),
                         {0},
                     });
}
