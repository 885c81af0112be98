/* Finding a time, against looking at every entry. */
#include "broker/managed_ledger/time_search.h"

#include "common/rng.h"
#include "tests/lib/suite.h"

enum { LEDGERS_MAX = 12, ENTRIES_MAX = 40 };

struct house {
    struct segments all;
    int64_t ms[LEDGERS_MAX * 2][ENTRIES_MAX];
    unsigned probes;
};

static int64_t *time_of(struct house *h, struct position p)
{
    return &h->ms[p.ledger / 3][p.entry];
}

static void drop(struct house *h)
{
    segments_clear(&h->all);
}

/* Ledgers 0, 3, 6 ...; the last one is open.  `skew`: how far the brokers' clocks are off. */
static void fill(struct house *h, uint64_t *rng, unsigned ledgers, int64_t skew)
{
    int64_t now = 1000;

    *h = (struct house){0};
    for (unsigned i = 0; i < ledgers; i++) {
        int64_t n = (int64_t)rng_below(rng, ENTRIES_MAX);
        for (int64_t e = 0; e < n; e++)
            h->ms[i][e] = now += (int64_t)rng_below(rng, 4);
        segments_add(&h->all, (struct segment){.ledger = 3 * i,
                                               .entries = n,
                                               .closed_ms = i + 1 < ledgers ? now + skew : 0,
                                               .open = i + 1 == ledgers});
    }
}

static struct position slowly(struct house *h, int64_t ms)
{
    struct position p = segments_before_first(&h->all), last = segments_last_entry(&h->all);

    for (;;) {
        struct position next = segments_next(&h->all, p);
        if (position_compare(next, last) > 0 || *time_of(h, next) >= ms)
            return p;
        p = next;
    }
}

static struct position search(struct house *h, int64_t ms)
{
    struct time_search s;

    h->probes = 0;
    time_search_init(&s, &h->all, segments_last_entry(&h->all), ms);
    while (time_search_next(&s, &h->all)) {
        const struct segment *one = segments_find(&h->all, s.asked.ledger);
        ck_assert(one && s.asked.entry >= 0 && s.asked.entry < one->entries);
        ck_assert_uint_lt(h->probes++, 20);
        time_search_saw(&s, &h->all, s.asked, *time_of(h, s.asked));
    }
    return s.low;
}

START_TEST(it_finds_what_looking_at_all_finds)
{
    static const int64_t skews[] = {0, 500, -500, 100000, -100000};
    struct house h;

    for (uint64_t seed = 0; seed < 400; seed++) {
        uint64_t rng = seed;
        fill(&h, &rng, (unsigned)rng_below(&rng, LEDGERS_MAX + 1), skews[seed % 5]);
        for (int64_t ms = 990; ms < 1900; ms += (int64_t)rng_below(&rng, 20) + 1) {
            struct position want = slowly(&h, ms), got = search(&h, ms);
            ck_assert_int_eq(got.ledger, want.ledger);
            ck_assert_int_eq(got.entry, want.entry);
        }
        drop(&h);
    }
}
END_TEST

START_TEST(true_clocks_leave_one_ledger_to_search)
{
    struct house h = {0};
    int64_t now = 1000;

    for (unsigned i = 0; i < LEDGERS_MAX; i++) {
        for (int64_t e = 0; e < 32; e++)
            h.ms[i][e] = now++;
        segments_add(&h.all, (struct segment){.ledger = 3 * i, .entries = 32, .closed_ms = now});
    }
    struct position got = search(&h, 1000 + 32 * 5 + 7);
    ck_assert_int_eq(got.ledger, 15);
    ck_assert_int_eq(got.entry, 6);
    ck_assert_uint_le(h.probes, 2 + 5);
    drop(&h);
}
END_TEST

START_TEST(ledgers_that_go_meanwhile_end_it_at_what_is_left)
{
    for (uint64_t seed = 0; seed < 300; seed++) {
        uint64_t rng = seed;
        struct house h;
        struct time_search s;
        unsigned probes = 0;
        fill(&h, &rng, LEDGERS_MAX, 0);
        int64_t ms = 1000 + (int64_t)rng_below(&rng, 500);
        time_search_init(&s, &h.all, segments_last_entry(&h.all), ms);
        while (time_search_next(&s, &h.all)) {
            ck_assert_uint_lt(probes++, 40);
            if (h.all.n > 1 && rng_below(&rng, 2))
                segments_drop_first(&h.all, 1);
            struct position at =
                segments_next(&h.all, (struct position){s.asked.ledger, s.asked.entry - 1});
            if (position_compare(at, segments_last_entry(&h.all)) > 0)
                time_search_saw_none(&s, &h.all);
            else
                time_search_saw(&s, &h.all, at, *time_of(&h, at));
        }
        struct position want = segments_next(&h.all, slowly(&h, ms));
        struct position got = segments_next(&h.all, s.low);
        ck_assert_int_eq(got.ledger, want.ledger);
        ck_assert_int_eq(got.entry, want.entry);
        drop(&h);
    }
}
END_TEST

START_TEST(what_cannot_be_read_is_not_passed_over)
{
    struct house h = {0};
    struct position got;

    segments_add(&h.all, (struct segment){.ledger = 0, .entries = 30, .open = true});
    for (int64_t e = 0; e < 30; e++)
        h.ms[0][e] = 100 + e;
    h.ms[0][15] = INT64_MAX;
    got = search(&h, 120);
    ck_assert_int_le(got.entry, 19);
    drop(&h);
}
END_TEST

int main(void)
{
    return suite_run("time_search",
                     (suite_case[]){
                         SUITE_CASE(it_finds_what_looking_at_all_finds),
                         SUITE_CASE(true_clocks_leave_one_ledger_to_search),
                         SUITE_CASE(ledgers_that_go_meanwhile_end_it_at_what_is_left),
                         SUITE_CASE(what_cannot_be_read_is_not_passed_over),
                         {0},
                     });
}
