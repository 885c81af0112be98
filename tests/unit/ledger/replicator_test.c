/* Bringing a ledger back to full replication: stories, and many ledgers by seed. */
#include "ledger/replicator.h"

#include "common/rng.h"
#include "tests/unit/ledger/tale.h"

enum { BOOKIES = 8, FRAGMENTS = 4 };

static struct tale tale;
static struct replicator r;
static struct ledger_facts facts;
static struct fragment fragments[FRAGMENTS];
static unsigned n;
static uint32_t bad; /* a bit a bookie */
static bool nobody;

static void look(void *ctx)
{
    tell(ctx, "look ");
}

static bool is_bad(void *ctx, uint32_t bookie)
{
    (void)ctx;
    return bad & 1u << bookie;
}

static bool is_member(const uint32_t *members, uint32_t bookie)
{
    for (unsigned i = 0; i < facts.quorum.ensemble; i++)
        if (members[i] == bookie)
            return true;
    return false;
}

static bool spare(void *ctx, const uint32_t *members, unsigned slot, uint32_t *out)
{
    (void)ctx;
    (void)slot;
    for (*out = 0; *out < BOOKIES && !nobody; (*out)++)
        if (!(bad & 1u << *out) && !is_member(members, *out))
            return true;
    return false;
}

static void copy(void *ctx, const struct fragment *f, entry_id last, unsigned slot, uint32_t to,
                 uint32_t avoid)
{
    tell(ctx, "copy%lld-%lld:%u->b%u(avoid%x) ", (long long)f->first, (long long)last, slot, to,
         avoid);
}

static void change(void *ctx, unsigned fragment, unsigned slot, uint32_t to)
{
    tell(ctx, "change%u:%u->b%u ", fragment, slot, to);
}

static void recover(void *ctx)
{
    tell(ctx, "recover ");
}

static void compare(void *ctx, const struct fragment *f, entry_id last, bool sample)
{
    tell(ctx, "%s%lld-%lld ", sample ? "sample" : "compare", (long long)f->first, (long long)last);
}

static void done(void *ctx, enum err err)
{
    tell(ctx, "done:%s", err_name(err));
}

static const struct replicator_effects effects = {.look = look,
                                                  .is_bad = is_bad,
                                                  .spare = spare,
                                                  .copy = copy,
                                                  .change = change,
                                                  .recover = recover,
                                                  .compare = compare,
                                                  .done = done};

/* Entries 0-9 on b0 b1 b2, the rest on b3 b1 b2. */
static void begin(enum ledger_state state, uint32_t bad_ones, struct replicator_how how)
{
    facts = (struct ledger_facts){.state = state, .quorum = {3, 3, 2}, .last = ENTRY_NONE};
    if (state == LEDGER_CLOSED)
        facts.last = 19;
    fragments[0] = (struct fragment){.first = 0, .bookie = {0, 1, 2}};
    fragments[1] = (struct fragment){.first = 10, .bookie = {3, 1, 2}};
    n = 2;
    facts.tail = fragments[1];
    bad = bad_ones;
    nobody = false;
    replicator_start(&r, how, &effects, &tale);
}

static void saw(void)
{
    replicator_saw(&r, ERR_OK, &facts, fragments, n);
}

static void compared(enum err err, uint64_t repaired)
{
    replicator_compared(&r, err, repaired);
}

START_TEST(a_whole_ledger_is_sampled)
{
    begin(LEDGER_CLOSED, 0, (struct replicator_how){0});
    saw();
    tells(&tale, "look sample0-9 ");
    compared(ERR_OK, 0);
    tells(&tale, "sample10-19 ");
    compared(ERR_OK, 0);
    tells(&tale, "done:OK");
}
END_TEST

START_TEST(a_copy_comes_before_the_change)
{
    begin(LEDGER_CLOSED, 1 << 0, (struct replicator_how){0});
    saw();
    tells(&tale, "look copy0-9:0->b3(avoid1) ");
    replicator_copied(&r, ERR_OK);
    tells(&tale, "change0:0->b3 ");
    fragments[0].bookie[0] = 3;
    replicator_changed(&r, ERR_OK);
    tells(&tale, "look ");
    saw();
    tells(&tale, "sample0-9 ");
}
END_TEST

START_TEST(a_copy_that_fails_changes_nothing)
{
    begin(LEDGER_CLOSED, 1 << 0, (struct replicator_how){0});
    saw();
    replicator_copied(&r, ERR_NO_ENTRY);
    tells(&tale, "look copy0-9:0->b3(avoid1) done:NO_ENTRY");
    replicator_changed(&r, ERR_OK); /* nobody asked */
    tells(&tale, "");
}
END_TEST

START_TEST(somebody_else_was_faster)
{
    begin(LEDGER_CLOSED, 1 << 3, (struct replicator_how){0});
    saw();
    tells(&tale, "look copy10-19:0->b0(avoid1) ");
    replicator_copied(&r, ERR_OK);
    replicator_changed(&r, ERR_BAD_VERSION);
    tells(&tale, "change1:0->b0 look ");
    fragments[1].bookie[0] = 5;
    saw();
    tells(&tale, "sample0-9 ");
}
END_TEST

START_TEST(the_writer_has_its_time)
{
    begin(LEDGER_OPEN, 1 << 3, (struct replicator_how){0});
    saw();
    tells(&tale, "look done:BUSY");
    begin(LEDGER_OPEN, 1 << 3, (struct replicator_how){.may_fence = true});
    saw();
    tells(&tale, "look recover ");
    facts.state = LEDGER_CLOSED;
    facts.last = 12;
    replicator_recovered(&r, ERR_OK);
    saw();
    tells(&tale, "look copy10-12:0->b0(avoid1) ");
}
END_TEST

START_TEST(an_open_ledgers_writer_is_left_alone_otherwise)
{
    begin(LEDGER_OPEN, 1 << 0, (struct replicator_how){.may_fence = true});
    saw();
    tells(&tale, "look copy0-9:0->b3(avoid1) ");
    replicator_copied(&r, ERR_OK);
    fragments[0].bookie[0] = 3;
    replicator_changed(&r, ERR_OK);
    saw();
    compared(ERR_OK, 0);
    tells(&tale, "change0:0->b3 look sample0-9 done:OK");
}
END_TEST

START_TEST(a_recovery_that_fails_is_for_later)
{
    begin(LEDGER_IN_RECOVERY, 1 << 3, (struct replicator_how){.may_fence = true});
    saw();
    replicator_recovered(&r, ERR_TIMEOUT);
    tells(&tale, "look recover done:TIMEOUT");
}
END_TEST

START_TEST(nobody_to_copy_to)
{
    begin(LEDGER_CLOSED, 1 << 1, (struct replicator_how){0});
    nobody = true;
    saw();
    tells(&tale, "look done:NOT_ENOUGH_BOOKIES");
}
END_TEST

START_TEST(what_lacks_at_an_edge_is_looked_for_everywhere)
{
    begin(LEDGER_CLOSED, 0, (struct replicator_how){0});
    saw();
    compared(ERR_OK, 2);
    tells(&tale, "look sample0-9 compare0-9 ");
    compared(ERR_OK, 5);
    tells(&tale, "sample10-19 ");
    compared(ERR_TIMEOUT, 0);
    tells(&tale, "done:TIMEOUT");
}
END_TEST

START_TEST(a_deleted_ledger_needs_nothing)
{
    begin(LEDGER_CLOSED, 0, (struct replicator_how){0});
    replicator_saw(&r, ERR_NO_LEDGER, NULL, NULL, 0);
    tells(&tale, "look done:OK");
}
END_TEST

/* ---- many ------------------------------------------------------------------------------------ */

static void build(uint64_t *dice)
{
    unsigned e = 1 + (unsigned)rng_below(dice, 4);

    facts = (struct ledger_facts){.state = 1 + (enum ledger_state)rng_below(dice, 3)};
    facts.quorum = (struct quorum){e, 1 + (unsigned)rng_below(dice, e), 1};
    n = 1 + (unsigned)rng_below(dice, FRAGMENTS);
    for (unsigned i = 0; i < n; i++) {
        fragments[i].first = (entry_id)i * 10;
        for (unsigned s = 0; s < e; s++)
            do
                fragments[i].bookie[s] = (uint32_t)rng_below(dice, BOOKIES);
            while (s > 0 && is_member((uint32_t[ENSEMBLE_MAX]){fragments[i].bookie[0],
                                                               s > 1 ? fragments[i].bookie[1] : 99,
                                                               s > 2 ? fragments[i].bookie[2] : 99},
                                      fragments[i].bookie[s]));
    }
    facts.last = facts.state == LEDGER_CLOSED ? (entry_id)n * 10 - 1 : ENTRY_NONE;
    bad = (uint32_t)rng_below(dice, 1 << BOOKIES) & (uint32_t)rng_below(dice, 1 << BOOKIES);
}

static bool all_good(unsigned i)
{
    for (unsigned s = 0; s < facts.quorum.ensemble; s++)
        for (unsigned k = 0; k <= s; k++)
            if ((k < s && fragments[i].bookie[k] == fragments[i].bookie[s]) ||
                bad & 1u << fragments[i].bookie[s])
                return false;
    return true;
}

/* Plays the world: copies succeed or fail, changes are lost now and then to somebody else. */
static bool play(uint64_t *dice)
{
    bool luck = rng_below(dice, 8) > 0;

    switch (r.state) {
    case REPLICATOR_LOOKING:
        saw();
        break;
    case REPLICATOR_COPYING:
        replicator_copied(&r, luck ? ERR_OK : ERR_TIMEOUT);
        break;
    case REPLICATOR_CHANGING:
        if (luck)
            fragments[r.fragment].bookie[r.slot] = r.to;
        replicator_changed(&r, luck ? ERR_OK : ERR_BAD_VERSION);
        break;
    case REPLICATOR_RECOVERING:
        facts.state = LEDGER_CLOSED;
        facts.last = (entry_id)n * 10 - 1 - (entry_id)rng_below(dice, 11);
        replicator_recovered(&r, ERR_OK);
        break;
    case REPLICATOR_COMPARING:
        compared(ERR_OK, rng_below(dice, 2));
        break;
    case REPLICATOR_DONE:
        return false;
    }
    return true;
}

/* OK is said only when every fragment whose end is known names good bookies, none twice, and the
 * last one of a ledger that is open too. */
START_TEST(ok_means_that_nothing_is_lacking)
{
    unsigned fine = 0;

    for (uint64_t seed = 0; seed < 20000; seed++) {
        uint64_t dice = seed;
        unsigned steps = 0;
        build(&dice);
        nobody = false;
        tale.n = 0;
        replicator_start(&r, (struct replicator_how){.may_fence = seed & 1, .thorough = seed & 2},
                         &effects, &tale);
        while (play(&dice))
            ck_assert_uint_lt(++steps, 500);
        bool ok = strstr(tale.text, "done:OK") != NULL;
        for (unsigned i = 0; i < n && ok; i++)
            ck_assert(all_good(i));
        fine += ok;
    }
    ck_assert_uint_gt(fine, 2000);
}
END_TEST

int main(void)
{
    return suite_run("replicator",
                     (suite_case[]){SUITE_CASE(a_whole_ledger_is_sampled),
                                    SUITE_CASE(a_copy_comes_before_the_change),
                                    SUITE_CASE(a_copy_that_fails_changes_nothing),
                                    SUITE_CASE(somebody_else_was_faster),
                                    SUITE_CASE(the_writer_has_its_time),
                                    SUITE_CASE(an_open_ledgers_writer_is_left_alone_otherwise),
                                    SUITE_CASE(a_recovery_that_fails_is_for_later),
                                    SUITE_CASE(nobody_to_copy_to),
                                    SUITE_CASE(what_lacks_at_an_edge_is_looked_for_everywhere),
                                    SUITE_CASE(a_deleted_ledger_needs_nothing),
                                    SUITE_CASE(ok_means_that_nothing_is_lacking),
                                    {0}});
}
