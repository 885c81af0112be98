/* percentiles_test.c - three digits, from one to the top. */
#include "common/percentiles.h"

#include "tests/lib/suite.h"

START_TEST(of_nothing_all_is_nothing)
{
    struct percentiles p;
    percentiles_init(&p);
    ck_assert_uint_eq(percentiles_at(&p, 0.5), 0);
    ck_assert_uint_eq(percentiles_at(&p, 1), 0);
    ck_assert_double_eq(percentiles_mean(&p), 0);
    percentiles_drop(&p);
}
END_TEST

START_TEST(a_thousand_values_have_their_ranks)
{
    struct percentiles p;
    percentiles_init(&p);
    for (uint64_t i = 1000; i > 0; i--)
        percentiles_note(&p, i);
    ck_assert_uint_eq(percentiles_at(&p, 0), 1);
    ck_assert_uint_eq(percentiles_at(&p, 0.5), 500);
    ck_assert_uint_eq(percentiles_at(&p, 0.99), 990);
    ck_assert_uint_eq(percentiles_at(&p, 0.999), 999);
    ck_assert_uint_eq(percentiles_at(&p, 1), 1000);
    ck_assert_double_eq(percentiles_mean(&p), 500.5);
    percentiles_drop(&p);
}
END_TEST

/* Each value alone, with a larger one behind it so that the bucket's own bound is told. */
START_TEST(no_figure_is_off_by_more_than_a_thousandth)
{
    struct percentiles p;
    percentiles_init(&p);
    for (uint64_t value = 1; value < (uint64_t)1 << 40; value += 1 + value / 37) {
        percentiles_clear(&p);
        percentiles_note(&p, value);
        percentiles_note(&p, (uint64_t)1 << 40);
        uint64_t told = percentiles_at(&p, 0.5);
        ck_assert_uint_ge(told, value);
        ck_assert_double_le((double)told, (double)value * 1.001);
    }
    percentiles_drop(&p);
}
END_TEST

START_TEST(what_is_over_the_top_is_still_counted)
{
    struct percentiles p;
    percentiles_init(&p);
    percentiles_note(&p, UINT64_MAX / 4);
    ck_assert_uint_eq(p.largest, UINT64_MAX / 4);
    ck_assert_uint_ge(percentiles_at(&p, 0.5), (uint64_t)1 << 40);
    percentiles_drop(&p);
}
END_TEST

START_TEST(two_merge_into_what_one_would_have_been)
{
    struct percentiles a, b;
    percentiles_init(&a);
    percentiles_init(&b);
    for (uint64_t i = 1; i <= 500; i++) {
        percentiles_note(&a, i);
        percentiles_note(&b, 500 + i);
    }
    percentiles_merge(&a, &b);
    ck_assert_uint_eq(a.n, 1000);
    ck_assert_uint_eq(percentiles_at(&a, 0.75), 750);
    ck_assert_uint_eq(a.largest, 1000);
    ck_assert_double_eq(percentiles_mean(&a), 500.5);
    percentiles_drop(&a);
    percentiles_drop(&b);
}
END_TEST

int main(void)
{
    return suite_run("percentiles",
                     (suite_case[]){SUITE_CASE(of_nothing_all_is_nothing),
                                    SUITE_CASE(a_thousand_values_have_their_ranks),
                                    SUITE_CASE(no_figure_is_off_by_more_than_a_thousandth),
                                    SUITE_CASE(what_is_over_the_top_is_still_counted),
                                    SUITE_CASE(two_merge_into_what_one_would_have_been),
                                    {0}});
}
