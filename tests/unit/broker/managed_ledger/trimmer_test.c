/* Which ledgers go, and when a ledger is rolled: the rules of pulsar-broker.md B.4 and B.5. */
#include "broker/managed_ledger/trimmer.h"

#include "broker/managed_ledger/managed_ledger.h"
#include "broker/managed_ledger/roller.h"
#include "tests/lib/suite.h"

enum { NOW = 10 * 1000 * 1000 };

static struct segments s;

/* Ledgers 10, 20, 30, 40 (open) of 5 entries and 100 bytes; closed 3000, 2000, 1000 ms ago. */
static void row(void)
{
    segments_clear(&s);
    for (int64_t i = 0; i < 3; i++)
        segments_add(&s, (struct segment){.ledger = 10 + 10 * i,
                                          .entries = 5,
                                          .bytes = 100,
                                          .closed_ms = NOW - 3000 + 1000 * i});
    segments_add(&s, (struct segment){.ledger = 40, .entries = 5, .bytes = 100, .open = true});
}

static unsigned trimmed(struct position acked, int64_t ms, int64_t bytes)
{
    struct ml_conf conf = {.retention_ms = ms, .retention_bytes = bytes};

    row();
    return trimmer_count(&s, acked, &conf, NOW);
}

START_TEST(only_what_every_cursor_has_acknowledged)
{
    ck_assert_uint_eq(trimmed(POSITION_EARLIEST, 0, 0), 0);
    ck_assert_uint_eq(trimmed((struct position){10, 3}, 0, 0), 0);
    ck_assert_uint_eq(trimmed((struct position){10, 4}, 0, 0), 1); /* all of it: as in the next */
    ck_assert_uint_eq(trimmed((struct position){20, -1}, 0, 0), 1);
    ck_assert_uint_eq(trimmed((struct position){30, 2}, 0, 0), 2);
    ck_assert_uint_eq(trimmed((struct position){40, 4}, 0, 0), 3); /* never the current one */
    ck_assert_uint_eq(trimmed(POSITION_LATEST, 0, 0), 3);
}
END_TEST

START_TEST(retention_by_time)
{
    ck_assert_uint_eq(trimmed(POSITION_LATEST, -1, -1), 0);
    ck_assert_uint_eq(trimmed(POSITION_LATEST, 2500, -1), 1);
    ck_assert_uint_eq(trimmed(POSITION_LATEST, 3000, -1), 0);
    ck_assert_uint_eq(trimmed(POSITION_LATEST, 500, -1), 3);
}
END_TEST

START_TEST(retention_by_size)
{
    ck_assert_uint_eq(trimmed(POSITION_LATEST, -1, 400), 0);
    ck_assert_uint_eq(trimmed(POSITION_LATEST, -1, 300), 1);
    ck_assert_uint_eq(trimmed(POSITION_LATEST, -1, 250), 1);
    ck_assert_uint_eq(trimmed(POSITION_LATEST, -1, 100), 3);
}
END_TEST

START_TEST(either_limit_is_enough)
{
    ck_assert_uint_eq(trimmed(POSITION_LATEST, 2500, 200), 2);
    ck_assert_uint_eq(trimmed(POSITION_LATEST, 1500, 400), 2);
}
END_TEST

START_TEST(the_last_one_stays_also_when_it_is_closed)
{
    struct ml_conf conf = {0};

    row();
    s.at[3].open = false;
    s.at[3].closed_ms = 1;
    ck_assert_uint_eq(trimmer_count(&s, POSITION_LATEST, &conf, NOW), 3);
    segments_clear(&s);
    ck_assert_uint_eq(trimmer_count(&s, POSITION_LATEST, &conf, NOW), 0);
}
END_TEST

static bool due(int64_t entries, int64_t bytes, int64_t age_ms)
{
    struct ml_conf conf = {.max_entries_per_ledger = 100,
                           .max_bytes_per_ledger = 1000,
                           .min_rollover_ms = 600,
                           .max_rollover_ms = 100 * 1000};

    return roller_due(&conf, &(struct roller_ledger){
                                 .id = 77, .entries = entries, .bytes = bytes, .age_ms = age_ms});
}

START_TEST(rolls_when_full_and_not_too_young)
{
    ck_assert(!due(99, 999, 5000));
    ck_assert(due(100, 10, 600));
    ck_assert(due(1, 1000, 600));
    ck_assert(!due(100, 1000, 599));
}
END_TEST

START_TEST(rolls_when_old_but_not_when_empty)
{
    ck_assert(!due(1, 1, 99 * 1000));
    ck_assert(due(1, 1, 105 * 1000));
    ck_assert(!due(0, 0, 999 * 1000));
}
END_TEST

START_TEST(the_greatest_age_differs_by_ledger)
{
    struct ml_conf conf = {
        .max_entries_per_ledger = 100, .max_bytes_per_ledger = 1000, .max_rollover_ms = 102400};
    unsigned rolled = 0;

    for (int64_t id = 0; id < 100; id++)
        rolled += roller_due(
            &conf, &(struct roller_ledger){.id = id, .entries = 1, .bytes = 1, .age_ms = 104900});
    ck_assert_uint_gt(rolled, 20);
    ck_assert_uint_lt(rolled, 80);
}
END_TEST

int main(void)
{
    return suite_run("trimmer", (suite_case[]){
                                    SUITE_CASE(only_what_every_cursor_has_acknowledged),
                                    SUITE_CASE(retention_by_time),
                                    SUITE_CASE(retention_by_size),
                                    SUITE_CASE(either_limit_is_enough),
                                    SUITE_CASE(the_last_one_stays_also_when_it_is_closed),
                                    SUITE_CASE(rolls_when_full_and_not_too_young),
                                    SUITE_CASE(rolls_when_old_but_not_when_empty),
                                    SUITE_CASE(the_greatest_age_differs_by_ledger),
                                    {0},
                                });
}
