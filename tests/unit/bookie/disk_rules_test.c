#include "bookie/disk_rules.h"

#include "tests/lib/suite.h"

/* Directories of 1000 bytes: warned above 800, full above 900, roomy again at 700; the reserve is
 * 50, a journal needs 20. */
static struct disk_rules r;

static void begin(unsigned ledgers, unsigned journals, bool any_full)
{
    disk_rules_init(&r, &(struct disk_rules_conf){.threshold = 0.9,
                                                  .warn = 0.8,
                                                  .low_water = 0.7,
                                                  .reserve = 50,
                                                  .journal_room = 20,
                                                  .any_full = any_full});
    for (unsigned i = 0; i < ledgers; i++)
        disk_rules_add(&r, false);
    for (unsigned i = 0; i < journals; i++)
        disk_rules_add(&r, true);
    for (unsigned i = 0; i < ledgers + journals; i++)
        disk_rules_saw(&r, i, 1000, 1000, ERR_OK);
}

static void used(unsigned dir, uint64_t bytes, enum err failure)
{
    disk_rules_saw(&r, dir, 1000 - bytes, 1000, failure);
}

static void expect(bool writable, bool reserve, unsigned dirs)
{
    const struct disk_verdict v = disk_rules_decide(&r);
    ck_assert_int_eq(v.writable, writable);
    ck_assert_int_eq(v.reserve, reserve);
    ck_assert_uint_eq(v.writable_dirs, dirs);
}

START_TEST(between_two_marks_it_stays_what_it_is)
{
    begin(1, 1, true);
    expect(true, true, 1);
    used(0, 850, ERR_OK);
    ck_assert_int_eq(r.dirs[0].level, DISK_WARNED);
    expect(true, true, 1);
    used(0, 910, ERR_OK);
    expect(false, true, 0);
    used(0, 750, ERR_OK);
    expect(false, true, 0);
    used(0, 690, ERR_OK);
    expect(true, true, 1);
    used(0, 890, ERR_OK);
    expect(true, true, 1);
}
END_TEST

START_TEST(the_reserve_goes_last)
{
    begin(1, 1, true);
    used(0, 940, ERR_OK);
    expect(false, true, 0);
    used(0, 960, ERR_OK);
    expect(false, false, 0);
    used(0, 940, ERR_OK);
    expect(false, true, 0);
}
END_TEST

START_TEST(one_full_of_several)
{
    begin(3, 1, _i == 0);
    used(1, 960, ERR_OK);
    expect(_i != 0, true, 2);
    used(0, 960, ERR_OK);
    used(2, 960, ERR_OK);
    expect(false, false, 0);
    used(2, 100, ERR_OK);
    expect(_i != 0, true, 1);
}
END_TEST

START_TEST(one_bad_of_several)
{
    begin(2, 1, true);
    used(0, 100, ERR_IO);
    ck_assert_int_eq(r.dirs[0].level, DISK_FAILED);
    expect(true, true, 1); /* a bad one is not a full one: the others go on */
    used(1, 100, ERR_IO);
    expect(false, false, 0);
    used(1, 100, ERR_OK);
    expect(true, true, 1);
}
END_TEST

START_TEST(a_write_without_space_counts_more_than_numbers)
{
    begin(1, 1, true);
    used(0, 100, ERR_NO_SPACE);
    expect(false, true, 0);
    used(0, 970, ERR_NO_SPACE);
    expect(false, false, 0);
    used(0, 100, ERR_OK);
    expect(true, true, 1);
}
END_TEST

START_TEST(a_journal_without_space)
{
    begin(2, 2, false);
    used(3, 990, ERR_OK); /* its files are there already */
    expect(true, true, 2);
    used(3, 990, ERR_NO_SPACE);
    expect(false, false, 2);
    used(3, 970, ERR_NO_SPACE); /* nobody writes, so nobody finds out: there is room */
    expect(true, true, 2);
}
END_TEST

START_TEST(what_cannot_be_asked_stays)
{
    begin(1, 1, true);
    used(0, 990, ERR_OK);
    expect(false, false, 0);
    disk_rules_saw(&r, 0, 0, 0, ERR_OK);
    expect(false, false, 0);
    disk_rules_saw(&r, 0, 0, 0, ERR_IO);
    ck_assert_int_eq(r.dirs[0].level, DISK_FAILED);
}
END_TEST

START_TEST(a_low_water_mark_is_no_higher_than_the_threshold)
{
    disk_rules_init(&r, &(struct disk_rules_conf){.threshold = 0.5, .low_water = 0.9, .warn = 0.4});
    ck_assert(r.conf.low_water <= 0.5);
}
END_TEST

START_TEST(when_it_will_turn)
{
    begin(1, 1, true);
    used(0, 500, ERR_OK);
    ck_assert_uint_eq(disk_rules_turns_in(&r, 0, 500, 1000), UINT64_MAX); /* it does not fill */
    ck_assert_uint_eq(disk_rules_turns_in(&r, 0, 400, 1000), UINT64_MAX); /* it empties */
    used(0, 700, ERR_OK);
    const uint64_t us = disk_rules_turns_in(&r, 0, 500, 1000); /* 200 a ms, 200 are left */
    ck_assert_uint_ge(us, 990);
    ck_assert_uint_le(us, 1010);
    used(0, 920, ERR_OK); /* full: 30 are left of the reserve */
    ck_assert_uint_eq(disk_rules_turns_in(&r, 0, 110, 1000), 1000);
    used(0, 960, ERR_OK);
    ck_assert_uint_eq(disk_rules_turns_in(&r, 0, 80, 1000), UINT64_MAX);
    used(1, 900, ERR_OK);
    ck_assert_uint_eq(disk_rules_turns_in(&r, 1, 500, 1000), UINT64_MAX); /* a journal */
}
END_TEST

int main(void)
{
    return suite_run("disk_rules",
                     (suite_case[]){SUITE_CASE(between_two_marks_it_stays_what_it_is),
                                    SUITE_CASE(the_reserve_goes_last),
                                    SUITE_LOOP(one_full_of_several, 2),
                                    SUITE_CASE(one_bad_of_several),
                                    SUITE_CASE(a_write_without_space_counts_more_than_numbers),
                                    SUITE_CASE(a_journal_without_space),
                                    SUITE_CASE(what_cannot_be_asked_stays),
                                    SUITE_CASE(when_it_will_turn),
                                    SUITE_CASE(a_low_water_mark_is_no_higher_than_the_threshold),
                                    {0}});
}
