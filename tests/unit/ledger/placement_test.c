#include "ledger/placement.h"

#include "tests/lib/suite.h"

START_TEST(distinct_least_used_unsuspected)
{
    for (uint64_t seed = 1; seed < 200; seed++) {
        struct placement_bookie live[] = {{.bookie = 0, .uses = 5},
                                          {.bookie = 1, .uses = 1},
                                          {.bookie = 2, .uses = 0, .suspect = true},
                                          {.bookie = 3, .uses = 2},
                                          {.bookie = 4, .uses = 1}};
        uint64_t s = seed;
        uint32_t out[5], all = 0;
        ck_assert(placement_choose(live, 5, 2, &s, out) == ERR_OK);
        ck_assert_uint_eq(1u << out[0] | 1u << out[1], 1u << 1 | 1u << 4);
        ck_assert(placement_choose(live, 5, 4, &s, out) == ERR_OK);
        for (int i = 0; i < 4; i++)
            ck_assert_uint_ne(out[i], 2);
        ck_assert(placement_choose(live, 5, 5, &s, out) == ERR_OK);
        for (int i = 0; i < 5; i++)
            all |= 1u << out[i];
        ck_assert_uint_eq(all, 0x1f);
        ck_assert_uint_eq(out[4], 2); /* when there is nobody else */
    }
}
END_TEST

START_TEST(equals_share_by_lot)
{
    unsigned chosen[4] = {0};
    uint64_t seed = 7;

    for (int i = 0; i < 4000; i++) {
        struct placement_bookie live[4] = {
            {.bookie = 0}, {.bookie = 1}, {.bookie = 2}, {.bookie = 3}};
        uint32_t out;
        ck_assert(placement_choose(live, 4, 1, &seed, &out) == ERR_OK);
        chosen[out]++;
    }
    for (int i = 0; i < 4; i++)
        ck_assert_uint_gt(chosen[i], 800);
}
END_TEST

START_TEST(too_few)
{
    struct placement_bookie live[1] = {{.bookie = 0}};
    uint64_t seed = 1;
    uint32_t out[2];

    ck_assert(placement_choose(live, 1, 2, &seed, out) == ERR_NOT_ENOUGH_BOOKIES);
    ck_assert(placement_choose(live, 0, 1, &seed, out) == ERR_NOT_ENOUGH_BOOKIES);
}
END_TEST

int main(void)
{
    return suite_run("placement", (suite_case[]){SUITE_CASE(distinct_least_used_unsuspected),
                                                 SUITE_CASE(equals_share_by_lot),
                                                 SUITE_CASE(too_few),
                                                 {0}});
}
