/* When to audit, and for whom. */
#include "ledger/auditor.h"

#include "common/rng.h"
#include "tests/lib/suite.h"

enum { DELAY = 100, PERIOD = 10000, RETRY = 30 };

static struct auditor a;

static void begin(void)
{
    auditor_init(&a, DELAY, PERIOD, RETRY, 0, 0);
    for (uint32_t i = 0; i < 4; i++)
        auditor_saw(&a, i, true, false, 0);
    ck_assert_uint_eq(auditor_due(&a, 0), 0);
    auditor_began(&a, 0);
    auditor_ended(&a, true, 0);
}

static void lose(uint32_t bookie, uint64_t now)
{
    auditor_saw(&a, bookie, false, false, now);
}

START_TEST(with_everybody_there_only_the_period_counts)
{
    begin();
    ck_assert_uint_eq(auditor_due(&a, 5), PERIOD);
    auditor_drop(&a);
}
END_TEST

START_TEST(a_lost_one_is_waited_for)
{
    begin();
    lose(1, 50);
    ck_assert_uint_eq(auditor_due(&a, 60), 150);
    auditor_saw(&a, 1, true, false, 70);
    ck_assert_uint_eq(auditor_due(&a, 80), PERIOD);
    lose(1, 90);
    ck_assert_uint_eq(auditor_due(&a, 95), 190);
    auditor_began(&a, 190);
    ck_assert_uint_eq(auditor_due(&a, 190), AUDITOR_NEVER);
    ck_assert(auditor_is_after(&a, 1) && !auditor_is_after(&a, 2));
    auditor_ended(&a, true, 200);
    ck_assert_uint_eq(auditor_due(&a, 200), PERIOD);
    auditor_drop(&a);
}
END_TEST

START_TEST(one_that_came_back_is_lost_anew)
{
    begin();
    lose(1, 50);
    auditor_began(&a, 150);
    auditor_ended(&a, true, 160);
    auditor_saw(&a, 1, true, false, 300);
    lose(1, 400);
    ck_assert_uint_eq(auditor_due(&a, 400), 500);
    auditor_drop(&a);
}
END_TEST

START_TEST(two_are_not)
{
    begin();
    lose(1, 50);
    lose(2, 60);
    ck_assert_uint_eq(auditor_due(&a, 60), 60);
    auditor_began(&a, 60);
    ck_assert(auditor_is_after(&a, 1) && auditor_is_after(&a, 2));
    auditor_drop(&a);
}
END_TEST

START_TEST(an_audit_that_failed_is_done_again)
{
    begin();
    lose(1, 50);
    auditor_began(&a, 150);
    auditor_ended(&a, false, 160);
    ck_assert_uint_eq(auditor_due(&a, 160), 160 + RETRY);
    auditor_drop(&a);
}
END_TEST

START_TEST(one_that_was_lost_again_meanwhile_is_audited_again)
{
    begin();
    lose(1, 50);
    auditor_began(&a, 150);
    auditor_saw(&a, 1, true, false, 155);
    lose(1, 156);
    auditor_ended(&a, true, 160);
    ck_assert_uint_eq(auditor_due(&a, 160), 256);
    auditor_drop(&a);
}
END_TEST

START_TEST(one_that_leaves_is_audited_until_nothing_names_it)
{
    begin();
    auditor_saw(&a, 3, true, true, 50);
    ck_assert_uint_eq(auditor_due(&a, 50), 50);
    auditor_began(&a, 50);
    ck_assert(auditor_is_after(&a, 3));
    auditor_ended(&a, true, 60);
    ck_assert_uint_eq(auditor_due(&a, 60), 60 + RETRY);
    auditor_began(&a, 90);
    auditor_ended(&a, true, 95);
    ck_assert_uint_eq(auditor_due(&a, 95), PERIOD);
    auditor_drop(&a);
}
END_TEST

/* Its recoverer may have given the bookie entries, and names it when he has found the end: nobody
 * would mark the ledger then. */
START_TEST(a_recovery_may_name_it_later)
{
    begin();
    lose(1, 50);
    auditor_began(&a, 150);
    auditor_in_recovery(&a);
    auditor_ended(&a, true, 160);
    ck_assert_uint_eq(auditor_due(&a, 160), 160 + RETRY);
    auditor_began(&a, 190);
    ck_assert(auditor_is_after(&a, 1));
    auditor_in_recovery(&a);
    auditor_ended(&a, true, 200);
    ck_assert_uint_eq(auditor_due(&a, 200), 200 + 2 * RETRY);
    auditor_began(&a, 260);
    ck_assert(auditor_is_after(&a, 1));
    auditor_ended(&a, true, 270);
    ck_assert_uint_eq(auditor_due(&a, 270), PERIOD);
    auditor_drop(&a);
}
END_TEST

/* However many are lost: between audits that settle nothing there is time. */
START_TEST(recoveries_do_not_make_it_run_all_the_time)
{
    begin();
    lose(1, 50);
    lose(2, 50);
    auditor_began(&a, 60);
    auditor_in_recovery(&a);
    auditor_ended(&a, true, 70);
    ck_assert_uint_eq(auditor_due(&a, 71), 70 + RETRY);
    auditor_drop(&a);
}
END_TEST

START_TEST(paused_means_never)
{
    begin();
    lose(1, 50);
    lose(2, 50);
    auditor_pause(&a, true);
    ck_assert_uint_eq(auditor_due(&a, 99), AUDITOR_NEVER);
    auditor_pause(&a, false);
    ck_assert_uint_eq(auditor_due(&a, 99), 99);
    auditor_drop(&a);
}
END_TEST

START_TEST(the_first_audit_takes_those_for_lost_that_only_ledgers_know)
{
    auditor_init(&a, DELAY, 0, RETRY, 0, 7);
    auditor_began(&a, 7);
    ck_assert(!auditor_is_after(&a, 9));
    lose(9, 8);
    auditor_ended(&a, true, 9);
    ck_assert_uint_eq(auditor_due(&a, 9), 108);
    auditor_drop(&a);
}
END_TEST

START_TEST(those_that_were_never_seen_may_be_starting)
{
    auditor_init(&a, DELAY, 0, RETRY, 40, 0);
    lose(0, 0);
    lose(1, 0);
    auditor_began(&a, 0);
    ck_assert(!auditor_is_after(&a, 0) && !auditor_is_after(&a, 1));
    auditor_ended(&a, true, 1);
    ck_assert_uint_eq(auditor_due(&a, 1), 40);
    auditor_saw(&a, 1, true, false, 20);
    ck_assert_uint_eq(auditor_due(&a, 21), 140);
    lose(1, 30);
    ck_assert_uint_eq(auditor_due(&a, 31), 40);
    auditor_began(&a, 40);
    ck_assert(auditor_is_after(&a, 0) && auditor_is_after(&a, 1));
    auditor_drop(&a);
}
END_TEST

/* However short they have been away. */
START_TEST(one_that_is_asked_for_is_for_all_that_are_away)
{
    begin();
    lose(1, 50);
    auditor_ask(&a);
    ck_assert_uint_eq(auditor_due(&a, 51), 51);
    auditor_began(&a, 51);
    ck_assert(auditor_is_after(&a, 1) && !auditor_is_after(&a, 2));
    auditor_ended(&a, true, 60);
    ck_assert_uint_eq(auditor_due(&a, 60), 51 + PERIOD);
    auditor_drop(&a);
}
END_TEST

START_TEST(one_that_is_asked_for_during_another_follows_it)
{
    begin();
    auditor_ask(&a);
    auditor_began(&a, 10);
    auditor_ask(&a);
    ck_assert_uint_eq(auditor_due(&a, 11), AUDITOR_NEVER);
    auditor_ended(&a, true, 20);
    ck_assert_uint_eq(auditor_due(&a, 20), 20);
    auditor_pause(&a, true);
    ck_assert_uint_eq(auditor_due(&a, 20), AUDITOR_NEVER);
    auditor_drop(&a);
}
END_TEST

START_TEST(one_that_leaves_is_empty_when_no_ledger_names_it_or_may_do_so)
{
    begin();
    ck_assert(!auditor_is_empty(&a, 3) && !auditor_is_empty(&a, 99));
    auditor_saw(&a, 3, true, true, 50);
    auditor_began(&a, 50);
    ck_assert(auditor_is_after(&a, 3));
    auditor_ended(&a, true, 60);
    ck_assert(!auditor_is_empty(&a, 3));
    auditor_began(&a, 90);
    auditor_in_recovery(&a);
    auditor_ended(&a, true, 95);
    ck_assert(!auditor_is_empty(&a, 3));
    auditor_began(&a, 130);
    auditor_ended(&a, true, 140);
    ck_assert(auditor_is_empty(&a, 3));
    ck_assert_uint_eq(auditor_due(&a, 140), PERIOD);
    auditor_again(&a, 3, 140);
    ck_assert(!auditor_is_empty(&a, 3));
    ck_assert_uint_eq(auditor_due(&a, 140), 140 + RETRY);
    auditor_drop(&a);
}
END_TEST

/* Whoever stays away is audited once its time is over, however others come and go. */
START_TEST(nobody_is_forgotten)
{
    for (uint64_t seed = 0; seed < 2000; seed++) {
        uint64_t dice = seed, now = 0, lost_at = 0;
        bool audited = false;
        begin();
        for (unsigned step = 0; step < 200; step++) {
            now += rng_below(&dice, 20);
            if (step == 20)
                lose(0, lost_at = now);
            if (rng_below(&dice, 6) == 0)
                auditor_saw(&a, 1 + (uint32_t)rng_below(&dice, 3), rng_below(&dice, 2), false, now);
            if (auditor_due(&a, now) > now)
                continue;
            auditor_began(&a, now);
            bool after = auditor_is_after(&a, 0), good = rng_below(&dice, 4) > 0;
            now += rng_below(&dice, 5);
            auditor_ended(&a, good, now);
            audited |= after && good;
        }
        ck_assert(now < lost_at + DELAY + 500 || audited);
        auditor_drop(&a);
    }
}
END_TEST

int main(void)
{
    return suite_run(
        "auditor",
        (suite_case[]){SUITE_CASE(with_everybody_there_only_the_period_counts),
                       SUITE_CASE(a_lost_one_is_waited_for),
                       SUITE_CASE(two_are_not),
                       SUITE_CASE(one_that_came_back_is_lost_anew),
                       SUITE_CASE(an_audit_that_failed_is_done_again),
                       SUITE_CASE(one_that_was_lost_again_meanwhile_is_audited_again),
                       SUITE_CASE(one_that_leaves_is_audited_until_nothing_names_it),
                       SUITE_CASE(a_recovery_may_name_it_later),
                       SUITE_CASE(recoveries_do_not_make_it_run_all_the_time),
                       SUITE_CASE(paused_means_never),
                       SUITE_CASE(the_first_audit_takes_those_for_lost_that_only_ledgers_know),
                       SUITE_CASE(those_that_were_never_seen_may_be_starting),
                       SUITE_CASE(one_that_is_asked_for_is_for_all_that_are_away),
                       SUITE_CASE(one_that_is_asked_for_during_another_follows_it),
                       SUITE_CASE(one_that_leaves_is_empty_when_no_ledger_names_it_or_may_do_so),
                       SUITE_CASE(nobody_is_forgotten),
                       {0}});
}
