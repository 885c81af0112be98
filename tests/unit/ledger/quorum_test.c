#include "ledger/quorum.h"

#include "tests/lib/suite.h"

START_TEST(write_sets_rotate)
{
    struct quorum q = {.ensemble = 5, .write = 3, .ack = 2};

    ck_assert_uint_eq(quorum_write_set(q, 0), 0x07);
    ck_assert_uint_eq(quorum_write_set(q, 3), 0x19); /* 3, 4, 0 */
    ck_assert_uint_eq(quorum_write_set(q, 4), 0x13); /* 4, 0, 1 */
    ck_assert_uint_eq(quorum_write_set(q, 5), 0x07);
    ck_assert_uint_eq(quorum_slot(q, 4, 2), 1);
    ck_assert_uint_eq(quorum_slot(q, INT64_MAX, 1), (INT64_MAX % 5 + 1) % 5);
}
END_TEST

START_TEST(what_is_valid)
{
    ck_assert(quorum_valid((struct quorum){1, 1, 1}));
    ck_assert(quorum_valid((struct quorum){ENSEMBLE_MAX, 3, 2}));
    ck_assert(!quorum_valid((struct quorum){ENSEMBLE_MAX + 1, 3, 2}));
    ck_assert(!quorum_valid((struct quorum){3, 2, 0}));
    ck_assert(!quorum_valid((struct quorum){3, 2, 3}));
    ck_assert(!quorum_valid((struct quorum){2, 3, 2}));
    ck_assert(!quorum_valid((struct quorum){0, 0, 0}));
}
END_TEST

START_TEST(negatives_prove_absence)
{
    ck_assert_uint_eq(quorum_negatives((struct quorum){3, 3, 2}), 2);
    ck_assert_uint_eq(quorum_negatives((struct quorum){3, 2, 2}), 1);
    ck_assert_uint_eq(quorum_negatives((struct quorum){5, 4, 1}), 4);
}
END_TEST

/* By its meaning: there are Qa bookies, all in one write set, none of them fenced. */
static bool can_still_ack(struct quorum q, uint32_t fenced)
{
    for (uint32_t some = 1; some < 1u << q.ensemble; some++) {
        if ((unsigned)__builtin_popcount(some) != q.ack || some & fenced)
            continue;
        for (unsigned first = 0; first < q.ensemble; first++) {
            uint32_t set = 0;
            for (unsigned k = 0; k < q.write; k++)
                set |= 1u << (first + k) % q.ensemble;
            if ((some & set) == some)
                return true;
        }
    }
    return false;
}

START_TEST(coverage_for_all_up_to_six)
{
    for (struct quorum q = {.ensemble = 1}; q.ensemble <= 6; q.ensemble++)
        for (q.write = 1; q.write <= q.ensemble; q.write++)
            for (q.ack = 1; q.ack <= q.write; q.ack++)
                for (uint32_t fenced = 0; fenced < 1u << q.ensemble; fenced++) {
                    bool covered = quorum_fenced(q, fenced);
                    unsigned n = (unsigned)__builtin_popcount(fenced);
                    ck_assert(covered == !can_still_ack(q, fenced));
                    if (n >= q.ensemble - q.ack + 1) /* the conservative rule of BP-46 */
                        ck_assert(covered);
                    if (q.write == q.ensemble) /* where the two are the same */
                        ck_assert(covered == (n >= q.ensemble - q.ack + 1));
                }
}
END_TEST

int main(void)
{
    return suite_run("quorum", (suite_case[]){SUITE_CASE(write_sets_rotate),
                                              SUITE_CASE(what_is_valid),
                                              SUITE_CASE(negatives_prove_absence),
                                              SUITE_CASE(coverage_for_all_up_to_six),
                                              {0}});
}
