/* The row of ledgers against a plain list of every entry there is. */
#include "broker/managed_ledger/segments.h"

#include <string.h>

#include "common/rng.h"
#include "tests/lib/suite.h"

enum { MODEL_MAX = 400 };

struct model {
    struct position at[MODEL_MAX];
    int64_t n;
};

static struct segments s;
static struct model m;

static void build(uint64_t *seed)
{
    int64_t ledger = (int64_t)rng_below(seed, 3);
    unsigned ledgers = (unsigned)rng_below(seed, 7);

    segments_clear(&s);
    m.n = 0;
    for (unsigned i = 0; i < ledgers; i++, ledger += 1 + (int64_t)rng_below(seed, 3)) {
        int64_t entries = rng_below(seed, 3) ? (int64_t)rng_below(seed, 6) : 0;
        bool open = i + 1 == ledgers && rng_below(seed, 2);
        segments_add(&s, (struct segment){.ledger = ledger, .entries = entries, .open = open});
        for (int64_t e = 0; e < entries; e++)
            m.at[m.n++] = (struct position){ledger, e};
    }
    unsigned gone = (unsigned)rng_below(seed, s.n + 1) / 2;
    int64_t left = 0;
    for (int64_t i = 0; gone > 0 && i < m.n; i++)
        if (m.at[i].ledger >= s.at[gone].ledger)
            m.at[left++] = m.at[i];
    m.n = gone > 0 ? left : m.n;
    segments_drop_first(&s, gone);
}

static struct position any(uint64_t *seed)
{
    if (rng_below(seed, 20) == 0)
        return rng_below(seed, 2) ? POSITION_EARLIEST : POSITION_LATEST;
    return (struct position){(int64_t)rng_below(seed, 22) - 1, (int64_t)rng_below(seed, 9) - 2};
}

static void check_next(struct position p)
{
    struct position got = segments_next(&s, p);

    for (int64_t i = 0; i < m.n; i++) {
        if (position_compare(m.at[i], p) > 0) {
            ck_assert(position_equal(got, m.at[i]));
            return;
        }
    }
    if (s.n == 0)
        return;
    ck_assert_int_eq(got.ledger, segments_last(&s)->ledger);
    ck_assert_int_eq(got.entry, segments_last(&s)->entries);
}

static void check_before(struct position p)
{
    struct position expected = segments_before_first(&s);

    for (int64_t i = 0; i < m.n && position_compare(m.at[i], p) <= 0; i++)
        expected = m.at[i];
    ck_assert(position_equal(segments_at_or_before(&s, p), expected));
}

static void check_count(struct position a, struct position b)
{
    int64_t n = 0;

    for (int64_t i = 0; i < m.n; i++)
        n += position_compare(m.at[i], a) > 0 && position_compare(m.at[i], b) <= 0;
    ck_assert_int_eq(segments_count(&s, a, b), n);
}

START_TEST(counts_as_a_plain_list_does)
{
    uint64_t seed = 42 + (uint64_t)_i;

    for (unsigned round = 0; round < 300; round++) {
        build(&seed);
        ck_assert(position_equal(segments_last_entry(&s),
                                 m.n ? m.at[m.n - 1] : segments_before_first(&s)));
        for (unsigned i = 0; i < 30; i++) {
            struct position a = any(&seed), b = any(&seed);
            check_next(a);
            check_before(a);
            check_count(a, b);
            struct segment *found = segments_find(&s, a.ledger);
            ck_assert(!found || found->ledger == a.ledger);
        }
    }
    segments_clear(&s);
}
END_TEST

START_TEST(a_place_behind_everything_leads_on_to_the_next_ledger)
{
    segments_add(&s, (struct segment){.ledger = 3, .entries = 2});
    struct position p = segments_next(&s, POSITION_LATEST);
    ck_assert(position_equal(p, (struct position){3, 2}));
    segments_add(&s, (struct segment){.ledger = 9, .entries = 1, .open = true});
    p.entry--;
    ck_assert(position_equal(segments_next(&s, p), (struct position){9, 0}));
    segments_clear(&s);
}
END_TEST

START_TEST(of_no_ledger_at_all)
{
    ck_assert(position_equal(segments_before_first(&s), POSITION_EARLIEST));
    ck_assert(position_equal(segments_last_entry(&s), POSITION_EARLIEST));
    ck_assert(position_equal(segments_at_or_before(&s, POSITION_LATEST), POSITION_EARLIEST));
    ck_assert(position_equal(segments_next(&s, POSITION_EARLIEST), (struct position){-1, 0}));
    ck_assert(position_equal(segments_next(&s, POSITION_LATEST), POSITION_LATEST));
    ck_assert_int_eq(segments_count(&s, POSITION_EARLIEST, POSITION_LATEST), 0);
}
END_TEST

int main(void)
{
    return suite_run("segments",
                     (suite_case[]){
                         SUITE_LOOP(counts_as_a_plain_list_does, 10),
                         SUITE_CASE(a_place_behind_everything_leads_on_to_the_next_ledger),
                         SUITE_CASE(of_no_ledger_at_all),
                         {0},
                     });
}
