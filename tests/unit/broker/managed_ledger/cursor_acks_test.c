#include "broker/managed_ledger/cursor_acks.h"

#include "common/loop.h"
#include "common/mem.h"
#include "common/rng.h"
#include "tests/lib/suite.h"

enum { LEDGERS = 12, ENTRIES = 40 };

static struct segment closed(int64_t ledger, int64_t entries)
{
    return (struct segment){.ledger = ledger, .entries = entries, .closed_ms = 1};
}

static struct position at(int64_t ledger, int64_t entry)
{
    return (struct position){ledger, entry};
}

#define ck_position(got, ledger_, entry_)         \
    do {                                          \
        struct position got_ = (got);             \
        ck_assert_int_eq(got_.ledger, (ledger_)); \
        ck_assert_int_eq(got_.entry, (entry_));   \
    } while (0)

START_TEST(goes_on_over_ends_and_empty_ledgers)
{
    struct segments s = {0};
    struct cursor_acks a;

    segments_add(&s, closed(3, 2));
    segments_add(&s, closed(5, 0));
    segments_add(&s, closed(8, 3));
    cursor_acks_init(&a, &s, at(3, -1));
    ck_assert(cursor_acks_one(&a, at(8, 0)));
    ck_assert(cursor_acks_one(&a, at(3, 1)));
    ck_assert(!cursor_acks_one(&a, at(3, 1)));
    ck_assert_uint_eq(cursor_acks_holes(&a), 2);
    ck_assert_int_eq(cursor_acks_backlog(&a), 3);
    ck_position(cursor_acks_next(&a, at(3, 0)), 8, 1);
    ck_assert(cursor_acks_one(&a, at(3, 0)));
    ck_position(a.mark_delete, 8, 0);
    ck_assert_uint_eq(cursor_acks_holes(&a), 0);
    cursor_acks_drop(&a);
    segments_clear(&s);
}
END_TEST

START_TEST(ignores_what_does_not_exist)
{
    struct segments s = {0};
    struct cursor_acks a;

    segments_add(&s, closed(3, 2));
    segments_add(&s, closed(8, 3));
    cursor_acks_init(&a, &s, at(3, -1));
    ck_assert(!cursor_acks_one(&a, at(3, 2)));
    ck_assert(!cursor_acks_one(&a, at(3, -1)));
    ck_assert(!cursor_acks_one(&a, at(4, 0)));
    ck_assert(!cursor_acks_one(&a, at(2, 0)));
    ck_assert(!cursor_acks_one(&a, at(-7, -7)));
    ck_assert(!cursor_acks_one(&a, POSITION_LATEST));
    ck_assert(!cursor_acks_upto(&a, at(8, 3)));
    ck_assert(!cursor_acks_upto(&a, at(9, 0)));
    ck_assert(!cursor_acks_upto(&a, POSITION_EARLIEST));
    ck_assert_int_eq(cursor_acks_backlog(&a), 5);
    ck_assert(cursor_acks_upto(&a, at(4, 7))); /* between: all of ledger 3 */
    ck_position(a.mark_delete, 3, 1);
    ck_assert(cursor_acks_upto(&a, POSITION_LATEST));
    ck_position(a.mark_delete, 8, 2);
    cursor_acks_drop(&a);
    segments_clear(&s);
}
END_TEST

START_TEST(resets_to_places_that_exist)
{
    struct segments s = {0};
    struct cursor_acks a;

    segments_add(&s, closed(3, 2));
    segments_add(&s, closed(8, 3));
    cursor_acks_init(&a, &s, at(3, -1));
    ck_assert(cursor_acks_one(&a, at(8, 1)));
    cursor_acks_reset(&a, POSITION_LATEST);
    ck_position(a.mark_delete, 8, 2);
    ck_assert_int_eq(cursor_acks_backlog(&a), 0);
    cursor_acks_reset(&a, POSITION_EARLIEST);
    ck_position(a.mark_delete, 3, -1);
    ck_assert_int_eq(cursor_acks_backlog(&a), 5);
    ck_assert(!cursor_acks_has(&a, at(8, 1)));
    cursor_acks_drop(&a);
    segments_clear(&s);
}
END_TEST

START_TEST(settles_what_was_stored)
{
    struct segments s = {0};
    struct cursor_acks a;

    segments_add(&s, closed(5, 3));
    segments_add(&s, closed(6, 0));
    segments_add(&s, closed(8, 4));
    cursor_acks_init(&a, &s, at(2, 17)); /* trimmed since */
    cursor_acks_load_range(&a, at(3, -1), at(3, 5));
    cursor_acks_load_range(&a, at(5, 1), at(8, 1)); /* crosses ledgers */
    cursor_acks_load_range(&a, at(8, 2), at(8, 900));
    cursor_acks_settle(&a);
    ck_position(a.mark_delete, 5, -1);
    ck_assert_int_eq(cursor_acks_backlog(&a), 3);
    ck_assert_uint_eq(cursor_acks_holes(&a), 3);
    cursor_acks_load_reset(&a, at(8, 900)); /* past the end */
    cursor_acks_settle(&a);
    ck_position(a.mark_delete, 8, 3);
    cursor_acks_drop(&a);
    segments_clear(&s);
}
END_TEST

/* ---- against a plain set --------------------------------------------------------------------- */

struct model {
    struct segments segments;
    struct cursor_acks acks;
    struct position mark_delete; /* what is acknowledged besides acked[] */
    bool acked[LEDGERS][ENTRIES];
    int64_t next_ledger;
    uint64_t seed;
};

static bool model_has(const struct model *m, struct position p)
{
    return position_compare(p, m->mark_delete) <= 0 || m->acked[p.ledger][p.entry];
}

static bool model_exists(const struct model *m, struct position p)
{
    const struct segment *s = segments_find(&m->segments, p.ledger);
    return s && p.entry >= 0 && p.entry < s->entries;
}

static void check(struct model *m)
{
    struct position next = {-1, -1}, last = {-1, -1}, from;
    int64_t backlog = 0;
    uint64_t holes = 0;

    from = at((int64_t)rng_below(&m->seed, LEDGERS), (int64_t)rng_below(&m->seed, ENTRIES + 2) - 1);
    for (unsigned i = 0; i < m->segments.n; i++) {
        bool before = false;
        last = at(m->segments.at[i].ledger, m->segments.at[i].entries);
        for (int64_t e = 0; e < m->segments.at[i].entries; e++) {
            struct position p = at(m->segments.at[i].ledger, e);
            bool has = model_has(m, p), hole = has && position_compare(p, m->acks.mark_delete) > 0;
            ck_assert_int_eq(cursor_acks_has(&m->acks, p), has);
            backlog += !has;
            holes += hole && !before;
            before = hole;
            if (!has && next.ledger < 0 && position_compare(p, from) > 0)
                next = p;
        }
    }
    if (next.ledger < 0)
        next = last;
    ck_assert_int_eq(cursor_acks_backlog(&m->acks), backlog);
    ck_assert_uint_eq(cursor_acks_holes(&m->acks), holes);
    ck_position(cursor_acks_next(&m->acks, from), next.ledger, next.entry);
}

/* All that can be is in the mark-delete position: after an acknowledgement. */
static void check_advanced(const struct model *m)
{
    struct position next = segments_next(&m->segments, m->acks.mark_delete);
    ck_assert(!model_exists(m, next) || !model_has(m, next));
}

static void roll(struct model *m)
{
    struct segment *last = segments_last(&m->segments);

    if (m->next_ledger >= LEDGERS)
        return;
    if (last)
        last->open = false;
    segments_add(&m->segments, (struct segment){.ledger = m->next_ledger, .open = true});
    m->next_ledger += 1 + (int64_t)rng_below(&m->seed, 2);
}

static void ack_upto(struct model *m, struct position p)
{
    bool moved = cursor_acks_upto(&m->acks, p);

    if (position_compare(p, segments_last_entry(&m->segments)) > 0) {
        ck_assert(!moved);
    } else {
        p = segments_at_or_before(&m->segments, p);
        if (position_compare(p, m->mark_delete) > 0)
            m->mark_delete = p;
    }
    if (moved)
        check_advanced(m);
}

static void reset(struct model *m, struct position p)
{
    cursor_acks_reset(&m->acks, p);
    m->mark_delete = segments_at_or_before(&m->segments, p);
    for (int l = 0; l < LEDGERS; l++)
        for (int e = 0; e < ENTRIES; e++)
            m->acked[l][e] = false;
}

static void step(struct model *m)
{
    struct segment *last = segments_last(&m->segments);
    struct position p =
        at((int64_t)rng_below(&m->seed, LEDGERS), (int64_t)rng_below(&m->seed, ENTRIES));
    uint64_t what = rng_below(&m->seed, 200);

    if (what < 60) {
        if (last->entries < ENTRIES)
            last->entries++;
    } else if (what < 64) {
        roll(m);
    } else if (what < 66) {
        if (m->segments.n > 1)
            segments_drop_first(&m->segments, 1);
    } else if (what < 69) {
        ack_upto(m, p);
    } else if (what < 70) {
        reset(m, p);
    } else {
        bool fresh = model_exists(m, p) && !model_has(m, p);
        ck_assert_int_eq(cursor_acks_one(&m->acks, p), fresh);
        if (fresh) {
            m->acked[p.ledger][p.entry] = true;
            check_advanced(m);
        }
    }
}

START_TEST(agrees_with_a_plain_set)
{
    struct model m = {.seed = (uint64_t)_i + 1};

    roll(&m);
    m.mark_delete = segments_before_first(&m.segments);
    cursor_acks_init(&m.acks, &m.segments, m.mark_delete);
    for (int i = 0; i < 1500; i++) {
        step(&m);
        check(&m);
    }
    cursor_acks_drop(&m.acks);
    segments_clear(&m.segments);
}
END_TEST

/* ---- size and speed -------------------------------------------------------------------------- */

enum { MANY_LEDGERS = 30, PER_LEDGER = 50000, ACKS = 1000000 };

static size_t bytes_of(const struct cursor_acks *a)
{
    size_t bytes = 0;
    for (unsigned i = 0; i < a->beyond.n; i++)
        bytes += roaring_bitmap_size_in_bytes(a->beyond.at[i].entries);
    return bytes;
}

START_TEST(a_million_random_acks_are_quick_and_small)
{
    struct segments s = {0};
    struct cursor_acks a;
    uint64_t seed = 7, start = loop_clock(), fresh = 0;

    for (int64_t i = 0; i < MANY_LEDGERS; i++)
        segments_add(&s, closed(100 + i, PER_LEDGER));
    cursor_acks_init(&a, &s, at(100, -1));
    while (fresh < ACKS)
        fresh += cursor_acks_one(&a, at(100 + (int64_t)rng_below(&seed, MANY_LEDGERS),
                                        (int64_t)rng_below(&seed, PER_LEDGER)));
    ck_assert_uint_gt(cursor_acks_holes(&a), 300000);
    ck_assert_int_eq(cursor_acks_backlog(&a), (int64_t)MANY_LEDGERS * PER_LEDGER - ACKS);
    ck_assert_uint_lt(bytes_of(&a), 300 * 1024);
    for (struct position p = cursor_acks_next(&a, at(100, -1)); p.entry < PER_LEDGER;
         p = cursor_acks_next(&a, p)) {
        fresh++;
        ck_assert(cursor_acks_one(&a, p));
    }
    ck_assert_uint_eq(fresh, (uint64_t)MANY_LEDGERS * PER_LEDGER);
    ck_assert_int_eq(cursor_acks_backlog(&a), 0);
    ck_assert_uint_lt(loop_clock() - start, 20u * 1000 * 1000);
    cursor_acks_drop(&a);
    segments_clear(&s);
}
END_TEST

int main(void)
{
    return suite_run("cursor_acks",
                     (suite_case[]){SUITE_CASE(goes_on_over_ends_and_empty_ledgers),
                                    SUITE_CASE(ignores_what_does_not_exist),
                                    SUITE_CASE(resets_to_places_that_exist),
                                    SUITE_CASE(settles_what_was_stored),
                                    SUITE_LOOP(agrees_with_a_plain_set, 40),
                                    SUITE_CASE(a_million_random_acks_are_quick_and_small),
                                    {0}});
}
