/* Copying a fragment's entries: stories, and many small ledgers by seed. */
#include "ledger/copier.h"

#include <stdio.h>

#include "common/mem.h"
#include "common/rng.h"
#include "tests/lib/suite.h"

enum { ENTRIES = 40, SLOTS = 4, TARGET = SLOTS, QUEUE = 1024 };
enum { NOTHING = -1, DAMAGED = -2, AWAY = -3 };

/* What each slot's bookie has of each entry: a content, or one of the above; the target is the
 * bookie that a copy goes to.  Answers wait in a queue and come in any order. */
struct answer {
    bool write;
    unsigned slot;
    entry_id e;
    int content;
};

static struct house {
    struct copier c;
    struct quorum q;
    int has[SLOTS + 1][ENTRIES];
    struct answer queue[QUEUE];
    unsigned queued, items, reads, most;
    unsigned differs, losts;
    bool ended, stingy, failing_target;
    bool is_copy;
    entry_id skips; /* this one gets something else in its place */
    enum err err;
    uint64_t seed;
} h;

static bool may(void *ctx)
{
    (void)ctx;
    return !h.stingy || rng_below(&h.seed, 3) > 0;
}

static void push(struct answer a)
{
    ck_assert_uint_lt(h.queued, QUEUE);
    h.queue[h.queued++] = a;
    h.most = h.queued > h.most ? h.queued : h.most;
}

static void read_slot(void *ctx, unsigned slot, entry_id e)
{
    (void)ctx;
    ck_assert(quorum_write_set(h.q, e) & 1u << slot);
    h.reads++;
    push((struct answer){.slot = slot, .e = e});
}

static void write_slot(void *ctx, unsigned slot, entry_id e, void *item)
{
    (void)ctx;
    push((struct answer){.write = true, .slot = slot, .e = e, .content = *(int *)item});
}

static bool same(void *ctx, const void *a, const void *b)
{
    (void)ctx;
    return *(const int *)a == *(const int *)b;
}

static void drop(void *ctx, void *item)
{
    (void)ctx;
    ck_assert_uint_gt(h.items, 0);
    h.items--;
    mem_free(item);
}

static void differ(void *ctx, entry_id e)
{
    (void)ctx;
    (void)e;
    h.differs++;
}

static void lost(void *ctx, entry_id e)
{
    (void)ctx;
    for (unsigned s = 0; s < SLOTS; s++)
        if (quorum_write_set(h.q, e) & 1u << s)
            ck_assert_int_eq(h.has[s][e], NOTHING);
    h.losts++;
}

static void done(void *ctx, enum err err)
{
    (void)ctx;
    ck_assert(!h.ended);
    h.ended = true;
    h.err = err;
}

static void *instead(void *ctx, entry_id e)
{
    (void)ctx;
    if (e != h.skips)
        return NULL;
    int *item = mem_alloc(sizeof *item);
    *item = 1000;
    h.items++;
    return item;
}

static const struct copier_effects effects = {.may = may,
                                              .read = read_slot,
                                              .write = write_slot,
                                              .same = same,
                                              .drop = drop,
                                              .differ = differ,
                                              .lost = lost,
                                              .instead = instead,
                                              .done = done};

static void answer_read(const struct answer *a)
{
    int content = h.has[a->slot][a->e];

    if (content >= 0) {
        int *item = mem_alloc(sizeof *item);
        *item = content;
        h.items++;
        copier_found(&h.c, a->slot, a->e, item);
    } else {
        copier_failed(&h.c, a->slot, a->e,
                      content == NOTHING   ? ERR_NO_ENTRY
                      : content == DAMAGED ? ERR_CHECKSUM
                                           : ERR_TIMEOUT);
    }
}

static void answer_write(const struct answer *a)
{
    int *at = &h.has[h.is_copy ? TARGET : a->slot][a->e];
    bool fails = *at == AWAY || (h.failing_target && rng_below(&h.seed, 10) == 0);

    if (!fails)
        *at = a->content;
    copier_wrote(&h.c, a->slot, a->e, fails ? ERR_IO : ERR_OK);
}

static void play(void)
{
    for (unsigned stuck = 0; !h.ended && stuck < 1000; stuck++) {
        if (h.queued == 0) {
            copier_go(&h.c);
            continue;
        }
        unsigned i = (unsigned)rng_below(&h.seed, h.queued);
        struct answer a = h.queue[i];
        h.queue[i] = h.queue[--h.queued];
        if (a.write)
            answer_write(&a);
        else
            answer_read(&a);
        stuck = 0;
    }
    ck_assert(h.ended);
    ck_assert_uint_eq(h.items, 0);
}

static void begin(struct quorum q, uint64_t seed)
{
    h = (struct house){.q = q, .seed = seed, .skips = ENTRY_NONE};
    for (unsigned s = 0; s <= SLOTS; s++)
        for (entry_id e = 0; e < ENTRIES; e++)
            h.has[s][e] = s < q.ensemble && quorum_write_set(q, e) & 1u << s ? (int)e : NOTHING;
}

static void run(const struct copier_job *job)
{
    h.is_copy = job->what == COPIER_COPY;
    copier_start(&h.c, job, &effects, NULL);
    play();
}

/* ---- stories --------------------------------------------------------------------------------- */

static const struct quorum q322 = {3, 2, 2}, q332 = {3, 3, 2};

START_TEST(an_empty_fragment_is_copied_at_once)
{
    begin(q332, 1);
    run(&(struct copier_job){.what = COPIER_COPY, .quorum = q332, .first = 5, .last = 4});
    ck_assert_int_eq(h.err, ERR_OK);
    ck_assert_uint_eq(h.reads, 0);
}
END_TEST

START_TEST(only_the_slots_entries_are_copied)
{
    begin(q322, 2);
    run(&(struct copier_job){
        .what = COPIER_COPY, .quorum = q322, .first = 3, .last = 30, .slot = 1, .avoid = 2});
    ck_assert_int_eq(h.err, ERR_OK);
    for (entry_id e = 0; e < ENTRIES; e++) {
        bool mine = e >= 3 && e <= 30 && quorum_write_set(q322, e) & 2;
        ck_assert_int_eq(h.has[TARGET][e], mine ? (int)e : NOTHING);
    }
}
END_TEST

START_TEST(the_one_that_leaves_is_read_when_nobody_else_has_it)
{
    begin((struct quorum){2, 1, 1}, 3);
    run(&(struct copier_job){
        .what = COPIER_COPY, .quorum = h.q, .first = 0, .last = 9, .slot = 0, .avoid = 1});
    ck_assert_int_eq(h.err, ERR_OK);
    ck_assert_int_eq(h.has[TARGET][8], 8);
}
END_TEST

START_TEST(a_copy_ends_at_an_entry_that_is_lost)
{
    begin(q332, 4);
    for (unsigned s = 0; s < 3; s++)
        h.has[s][7] = NOTHING;
    run(&(struct copier_job){
        .what = COPIER_COPY, .quorum = q332, .first = 0, .last = 20, .slot = 0, .avoid = 1});
    ck_assert_int_eq(h.err, ERR_NO_ENTRY);
    ck_assert_uint_eq(h.losts, 1);
}
END_TEST

START_TEST(something_else_takes_the_place_of_a_lost_one)
{
    begin(q332, 4);
    for (unsigned s = 0; s < 3; s++)
        h.has[s][7] = s == 0 ? AWAY : NOTHING;
    h.skips = 7;
    run(&(struct copier_job){
        .what = COPIER_COPY, .quorum = q332, .first = 0, .last = 20, .slot = 0, .avoid = 1});
    ck_assert_int_eq(h.err, ERR_OK);
    ck_assert_int_eq(h.has[TARGET][7], 1000);
    ck_assert_int_eq(h.has[TARGET][8], 8);
    h.has[0][7] = NOTHING;
    h.ended = false;
    run(&(struct copier_job){.what = COPIER_COMPARE, .quorum = q332, .first = 0, .last = 20});
    ck_assert_int_eq(h.err, ERR_OK);
    ck_assert(h.has[0][7] == 1000 && h.has[1][7] == 1000 && h.has[2][7] == 1000);
}
END_TEST

START_TEST(who_does_not_answer_may_have_it)
{
    begin(q332, 5);
    h.has[0][7] = AWAY;
    h.has[1][7] = h.has[2][7] = NOTHING;
    run(&(struct copier_job){
        .what = COPIER_COPY, .quorum = q332, .first = 0, .last = 20, .slot = 0, .avoid = 1});
    ck_assert_int_eq(h.err, ERR_TIMEOUT);
    ck_assert_uint_eq(h.losts, 0);
}
END_TEST

START_TEST(what_is_lacking_or_damaged_is_written_again)
{
    begin(q332, 6);
    h.has[1][7] = NOTHING;
    h.has[2][8] = DAMAGED;
    h.has[0][9] = 99; /* against two that agree */
    run(&(struct copier_job){.what = COPIER_COMPARE, .quorum = q332, .first = 0, .last = 20});
    ck_assert_int_eq(h.err, ERR_OK);
    ck_assert_uint_eq(h.c.written, 3);
    ck_assert_int_eq(h.has[1][7], 7);
    ck_assert_int_eq(h.has[2][8], 8);
    ck_assert_int_eq(h.has[0][9], 9);
}
END_TEST

START_TEST(replicas_that_differ_without_a_quorum_stay)
{
    begin(q322, 7);
    h.has[0][6] = 99; /* entry 6 lies on 0 and 1 */
    run(&(struct copier_job){.what = COPIER_COMPARE, .quorum = q322, .first = 0, .last = 20});
    ck_assert_int_eq(h.err, ERR_CHECKSUM);
    ck_assert_uint_eq(h.differs, 1);
    ck_assert_int_eq(h.has[0][6], 99);
    ck_assert_int_eq(h.has[1][6], 6);
}
END_TEST

START_TEST(most_of_them_are_no_quorum)
{
    begin((struct quorum){4, 4, 3}, 7);
    h.has[0][6] = 98;
    h.has[1][6] = 99;
    run(&(struct copier_job){.what = COPIER_COMPARE, .quorum = h.q, .first = 0, .last = 20});
    ck_assert_int_eq(h.err, ERR_CHECKSUM);
    ck_assert_uint_eq(h.differs, 1);
    ck_assert(h.has[0][6] == 98 && h.has[1][6] == 99 && h.has[2][6] == 6);
}
END_TEST

START_TEST(a_comparison_goes_on_after_a_lost_entry)
{
    begin(q332, 8);
    for (unsigned s = 0; s < 3; s++)
        h.has[s][3] = NOTHING;
    h.has[1][12] = NOTHING;
    run(&(struct copier_job){.what = COPIER_COMPARE, .quorum = q332, .first = 0, .last = 20});
    ck_assert_int_eq(h.err, ERR_NO_ENTRY);
    ck_assert_uint_eq(h.losts, 1);
    ck_assert_int_eq(h.has[1][12], 12);
}
END_TEST

START_TEST(a_sample_looks_at_both_ends)
{
    begin(q332, 9);
    run(&(struct copier_job){
        .what = COPIER_COMPARE, .quorum = q332, .first = 0, .last = 39, .sample = true});
    ck_assert_int_eq(h.err, ERR_OK);
    ck_assert_uint_eq(h.reads, 6 * 3);
    begin(q332, 9);
    run(&(struct copier_job){
        .what = COPIER_COMPARE, .quorum = q332, .first = 0, .last = 4, .sample = true});
    ck_assert_uint_eq(h.reads, 5 * 3);
}
END_TEST

/* ---- many ------------------------------------------------------------------------------------ */

static void spoil(unsigned percent)
{
    static const int how[] = {NOTHING, DAMAGED, AWAY};

    for (unsigned s = 0; s < h.q.ensemble; s++)
        for (entry_id e = 0; e < ENTRIES; e++)
            if (h.has[s][e] >= 0 && rng_below(&h.seed, 100) < percent)
                h.has[s][e] = how[rng_below(&h.seed, 3)];
}

static struct quorum any_quorum(uint64_t *seed)
{
    struct quorum q;

    q.ensemble = 1 + (unsigned)rng_below(seed, SLOTS);
    q.write = 1 + (unsigned)rng_below(seed, q.ensemble);
    q.ack = 1 + (unsigned)rng_below(seed, q.write);
    return q;
}

/* OK means that every entry of the slot is at the target, as it was; else nothing is claimed. */
START_TEST(a_copy_that_says_ok_is_whole)
{
    for (uint64_t seed = 0; seed < 4000; seed++) {
        uint64_t dice = seed;
        begin(any_quorum(&dice), seed);
        struct copier_job job = {.what = COPIER_COPY, .quorum = h.q};
        job.slot = (unsigned)rng_below(&dice, h.q.ensemble);
        job.avoid = 1u << job.slot;
        job.first = (entry_id)rng_below(&dice, ENTRIES);
        job.last = job.first - 1 + (entry_id)rng_below(&dice, (uint64_t)(ENTRIES - job.first + 1));
        job.window = 1 + (unsigned)rng_below(&dice, 12);
        h.stingy = dice & 1;
        h.failing_target = seed % 3 == 0;
        spoil((unsigned)(seed % 4) * 10);
        run(&job);
        ck_assert_uint_le(h.most, job.window);
        for (entry_id e = job.first; !h.err && e <= job.last; e++)
            if (quorum_write_set(h.q, e) & 1u << job.slot)
                ck_assert_int_eq(h.has[TARGET][e], (int)e);
    }
}
END_TEST

/* OK means that every replica of every entry is there and the same. */
START_TEST(a_comparison_that_says_ok_left_nothing)
{
    for (uint64_t seed = 0; seed < 4000; seed++) {
        uint64_t dice = seed;
        begin(any_quorum(&dice), seed);
        struct copier_job job = {.what = COPIER_COMPARE, .quorum = h.q, .last = ENTRIES - 1};
        job.window = 1 + (unsigned)rng_below(&dice, 12);
        h.stingy = dice & 1;
        spoil((unsigned)(seed % 5) * 5);
        run(&job);
        for (entry_id e = 0; !h.err && e < ENTRIES; e++)
            for (unsigned s = 0; s < h.q.ensemble; s++)
                if (quorum_write_set(h.q, e) & 1u << s)
                    ck_assert_int_eq(h.has[s][e], (int)e);
    }
}
END_TEST

int main(void)
{
    return suite_run("copier",
                     (suite_case[]){SUITE_CASE(an_empty_fragment_is_copied_at_once),
                                    SUITE_CASE(only_the_slots_entries_are_copied),
                                    SUITE_CASE(the_one_that_leaves_is_read_when_nobody_else_has_it),
                                    SUITE_CASE(a_copy_ends_at_an_entry_that_is_lost),
                                    SUITE_CASE(something_else_takes_the_place_of_a_lost_one),
                                    SUITE_CASE(who_does_not_answer_may_have_it),
                                    SUITE_CASE(what_is_lacking_or_damaged_is_written_again),
                                    SUITE_CASE(replicas_that_differ_without_a_quorum_stay),
                                    SUITE_CASE(most_of_them_are_no_quorum),
                                    SUITE_CASE(a_comparison_goes_on_after_a_lost_entry),
                                    SUITE_CASE(a_sample_looks_at_both_ends),
                                    SUITE_CASE(a_copy_that_says_ok_is_whole),
                                    SUITE_CASE(a_comparison_that_says_ok_left_nothing),
                                    {0}});
}
