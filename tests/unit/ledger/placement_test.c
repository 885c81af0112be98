/* What is true of every ensemble of random clusters, and of some that are not random. */
#include "ledger/placement.h"

#include <string.h>

#include "common/rng.h"
#include "tests/lib/suite.h"

enum { MOST = 10, CLUSTERS = 3000 };

struct cluster {
    struct placement_rules rules;
    size_t count;
    struct placement_bookie at[MOST];
    uint32_t member[ENSEMBLE_MAX];
    uint64_t seed;
};

static struct quorum random_quorum(uint64_t *seed)
{
    struct quorum q = {.ensemble = 1 + (unsigned)rng_below(seed, 5)};

    q.write = 1 + (unsigned)rng_below(seed, q.ensemble);
    q.ack = 1 + (unsigned)rng_below(seed, q.write);
    return q;
}

static struct cluster random_cluster(uint64_t seed)
{
    struct cluster c = {.seed = seed};
    uint64_t *s = &c.seed;
    unsigned hosts = 1 + (unsigned)rng_below(s, MOST), racks = 1 + (unsigned)rng_below(s, 4);

    c.rules = (struct placement_rules){.quorum = random_quorum(s),
                                       .distinct_hosts = rng_below(s, 2),
                                       .racks = rng_below(s, 2),
                                       .regions = rng_below(s, 2),
                                       .racks_min = 1 + (unsigned)rng_below(s, 3),
                                       .enforce_racks = rng_below(s, 2),
                                       .by_free_space = rng_below(s, 2)};
    c.count = rng_below(s, MOST + 1);
    for (size_t i = 0; i < c.count; i++)
        c.at[i] = (struct placement_bookie){.bookie = (uint32_t)i,
                                            .host = (uint32_t)rng_below(s, hosts),
                                            .rack = (uint32_t)rng_below(s, racks),
                                            .tier = rng_below(s, 8) ? (uint32_t)rng_below(s, 2)
                                                                    : PLACEMENT_EXCLUDED,
                                            .uses = (uint32_t)rng_below(s, 4),
                                            .free = rng_below(s, 4) * 1000000000,
                                            .suspect = rng_below(s, 4) == 0};
    for (size_t i = 0; i < c.count; i++)
        c.at[i].region = c.at[i].rack / 2;
    for (unsigned i = 0; i < ENSEMBLE_MAX; i++)
        c.member[i] = PLACEMENT_NOBODY;
    return c;
}

static unsigned racks_of(const struct cluster *c, const uint32_t *member, unsigned start)
{
    uint32_t seen = 0;

    for (unsigned k = 0; k < c->rules.quorum.write; k++)
        seen |= 1u << c->at[member[(start + k) % c->rules.quorum.ensemble]].rack;
    return (unsigned)__builtin_popcount(seen);
}

static bool is_allowed(const struct cluster *c, const uint32_t *member)
{
    struct quorum q = c->rules.quorum;
    unsigned want = c->rules.racks_min < q.write ? c->rules.racks_min : q.write;

    for (unsigned i = 0; i < q.ensemble; i++)
        for (unsigned k = 0; k < i; k++) {
            if (member[i] == member[k])
                return false;
            if (c->rules.distinct_hosts && c->at[member[i]].host == c->at[member[k]].host)
                return false;
        }
    for (unsigned i = 0; i < q.ensemble && c->rules.racks && c->rules.enforce_racks; i++)
        if (racks_of(c, member, i) < want)
            return false;
    return true;
}

/* Some ensemble is as the rules say: all of them are looked at. */
static bool is_possible(const struct cluster *c, uint32_t *member, unsigned slot)
{
    if (slot == c->rules.quorum.ensemble)
        return is_allowed(c, member);
    for (uint32_t b = 0; b < c->count; b++) {
        bool taken = c->at[b].tier == PLACEMENT_EXCLUDED;
        for (unsigned i = 0; i < slot; i++)
            taken |= member[i] == b;
        member[slot] = b;
        if (!taken && is_possible(c, member, slot + 1))
            return true;
    }
    return false;
}

/* It finds an ensemble when there is one, and that one is as the rules say. */
START_TEST(found_when_there_is_one)
{
    unsigned found = 0;

    for (uint64_t seed = 1; seed <= CLUSTERS; seed++) {
        struct cluster c = random_cluster(seed);
        uint32_t any[ENSEMBLE_MAX];
        enum err err = placement_fill(&c.rules, c.at, c.count, c.member, &c.seed);
        ck_assert_msg((err == ERR_OK) == is_possible(&c, any, 0), "cluster %lu: %s",
                      (unsigned long)seed, err_name(err));
        if (err) {
            ck_assert(err == ERR_NOT_ENOUGH_BOOKIES);
            ck_assert_uint_eq(c.member[0], PLACEMENT_NOBODY);
            continue;
        }
        found++;
        ck_assert_msg(is_allowed(&c, c.member), "cluster %lu", (unsigned long)seed);
        for (unsigned i = 0; i < c.rules.quorum.ensemble; i++)
            ck_assert_uint_ne(c.at[c.member[i]].tier, PLACEMENT_EXCLUDED);
    }
    ck_assert_uint_gt(found, CLUSTERS / 4);
}
END_TEST

/* Who stays, stays where it is, and counts. */
START_TEST(replaces_one)
{
    unsigned replaced = 0;

    for (uint64_t seed = 1; seed <= CLUSTERS; seed++) {
        struct cluster c = random_cluster(seed);
        struct quorum q = c.rules.quorum;
        if (placement_fill(&c.rules, c.at, c.count, c.member, &c.seed))
            continue;
        unsigned slot = (unsigned)rng_below(&c.seed, q.ensemble);
        uint32_t before[ENSEMBLE_MAX];
        memcpy(before, c.member, sizeof before);
        c.at[before[slot]].tier = PLACEMENT_EXCLUDED;
        c.member[slot] = PLACEMENT_NOBODY;
        if (placement_fill(&c.rules, c.at, c.count, c.member, &c.seed))
            continue;
        replaced++;
        ck_assert(is_allowed(&c, c.member));
        for (unsigned i = 0; i < q.ensemble; i++)
            ck_assert(i == slot ? c.member[i] != before[i] : c.member[i] == before[i]);
    }
    ck_assert_uint_gt(replaced, CLUSTERS / 10);
}
END_TEST

static void choose(struct cluster *c, unsigned n)
{
    c->rules.quorum = (struct quorum){n, n, n};
    for (unsigned i = 0; i < n; i++)
        c->member[i] = PLACEMENT_NOBODY;
    ck_assert(placement_fill(&c->rules, c->at, c->count, c->member, &c->seed) == ERR_OK);
}

static uint32_t chosen(const struct cluster *c)
{
    uint32_t all = 0;

    for (unsigned i = 0; i < c->rules.quorum.ensemble; i++)
        all |= 1u << c->member[i];
    return all;
}

/* Each stands alone. */
static struct cluster plain(size_t count, uint64_t seed)
{
    struct cluster c = {.count = count, .seed = seed};

    for (uint32_t i = 0; i < count; i++)
        c.at[i] = (struct placement_bookie){.bookie = i, .host = i};
    return c;
}

START_TEST(least_used_unsuspected)
{
    for (uint64_t seed = 1; seed < 200; seed++) {
        struct cluster c = plain(5, seed);
        c.at[0].uses = 5;
        c.at[1].uses = c.at[4].uses = 1;
        c.at[2].suspect = true;
        c.at[3].uses = 2;
        choose(&c, 2);
        ck_assert_uint_eq(chosen(&c), 1u << 1 | 1u << 4);
        choose(&c, 4);
        ck_assert_uint_eq(chosen(&c), 0x1f & ~(1u << 2));
        choose(&c, 5);
        ck_assert_uint_eq(c.member[4], 2); /* when there is nobody else */
    }
}
END_TEST

START_TEST(equals_share_by_lot)
{
    unsigned times[4] = {0};
    struct cluster c = plain(4, 7);

    for (int i = 0; i < 4000; i++) {
        choose(&c, 1);
        times[c.member[0]]++;
    }
    for (int i = 0; i < 4; i++)
        ck_assert_uint_gt(times[i], 800);
}
END_TEST

/* Twice the space, twice as often; without end only up to three times the median. */
START_TEST(lots_by_free_space)
{
    unsigned times[4] = {0};
    struct cluster c = plain(4, 7);
    static const uint64_t free[4] = {100, 200, 100, 10000};

    c.rules.by_free_space = true;
    c.rules.free_multiple = 3;
    for (int i = 0; i < 4; i++)
        c.at[i].free = free[i] * 1000000000;
    for (int i = 0; i < 10000; i++) {
        choose(&c, 1);
        times[c.member[0]]++;
    }
    ck_assert_uint_gt(times[1], times[0] * 3 / 2);
    ck_assert_uint_gt(times[3], times[1] * 3 / 2);
    ck_assert_uint_lt(times[3], times[1] * 3);
    ck_assert_uint_gt(times[0], 500);
}
END_TEST

/* Without a limit what it has counts in full, and one of whom nothing is known is as the others. */
START_TEST(lots_without_a_limit)
{
    unsigned times[4] = {0};
    struct cluster c = plain(4, 7);

    c.rules.by_free_space = true;
    c.at[0].free = c.at[1].free = 1ull << 40;
    c.at[2].free = 1ull << 45;
    for (int i = 0; i < 10000; i++) {
        choose(&c, 1);
        times[c.member[0]]++;
    }
    ck_assert_uint_gt(times[2], 8500);
    ck_assert_uint_gt(times[3], 150);
    ck_assert_uint_lt(times[3], 600);
}
END_TEST

/* Two racks of two: each write set of two has both; so has what takes a failed one's place. */
START_TEST(racks_in_every_write_set)
{
    for (uint64_t seed = 1; seed < 200; seed++) {
        struct cluster c = plain(5, seed);
        for (uint32_t i = 0; i < 5; i++)
            c.at[i].rack = i % 2;
        c.at[0].uses = c.at[2].uses = 9; /* a rack matters more than load */
        c.rules = (struct placement_rules){.quorum = {4, 2, 2}, .racks = true, .racks_min = 2};
        memset(c.member, 0xff, sizeof c.member);
        ck_assert(placement_fill(&c.rules, c.at, 5, c.member, &c.seed) == ERR_OK);
        for (unsigned i = 0; i < 4; i++)
            ck_assert_uint_eq(racks_of(&c, c.member, i), 2);
        unsigned slot = 0; /* of one in rack 0, which has one more */
        while (c.at[c.member[slot]].rack)
            slot++;
        c.at[c.member[slot]].tier = PLACEMENT_EXCLUDED;
        c.member[slot] = PLACEMENT_NOBODY;
        c.rules.enforce_racks = true;
        ck_assert(placement_fill(&c.rules, c.at, 5, c.member, &c.seed) == ERR_OK);
        ck_assert_uint_eq(c.at[c.member[slot]].rack, 0);
    }
}
END_TEST

/* Regions first: with two of them no rack of the one is taken three times. */
START_TEST(regions_before_racks)
{
    for (uint64_t seed = 1; seed < 200; seed++) {
        struct cluster c = plain(6, seed);
        unsigned in_first = 0;
        for (uint32_t i = 0; i < 6; i++) {
            c.at[i].rack = i < 4 ? i : 4; /* four racks in region 0, one in region 1 */
            c.at[i].region = i >= 4;
        }
        c.rules.racks = c.rules.regions = true;
        choose(&c, 4);
        for (unsigned i = 0; i < 4; i++)
            in_first += c.at[c.member[i]].region == 0;
        ck_assert_uint_eq(in_first, 2);
    }
}
END_TEST

/* A preferred group first, the second one only for what the first has not. */
START_TEST(groups_in_their_order)
{
    for (uint64_t seed = 1; seed < 200; seed++) {
        struct cluster c = plain(6, seed);
        c.at[0].tier = c.at[1].tier = c.at[2].tier = 1;
        c.at[3].suspect = true;
        c.at[5].tier = PLACEMENT_EXCLUDED;
        choose(&c, 2);
        ck_assert_uint_eq(chosen(&c), 1u << 3 | 1u << 4);
        choose(&c, 4);
        ck_assert_uint_eq(chosen(&c) >> 3, 3);
    }
}
END_TEST

START_TEST(hosts_as_far_as_there_are)
{
    for (uint64_t seed = 1; seed < 200; seed++) {
        struct cluster c = plain(4, seed);
        c.at[1].host = c.at[0].host;
        choose(&c, 3);
        ck_assert(chosen(&c) != 0xb && chosen(&c) != 0x7); /* not 0 and 1 */
        choose(&c, 4);
        c.rules.distinct_hosts = true;
        c.member[0] = c.member[1] = c.member[2] = c.member[3] = PLACEMENT_NOBODY;
        ck_assert(placement_fill(&c.rules, c.at, 4, c.member, &c.seed) == ERR_NOT_ENOUGH_BOOKIES);
    }
}
END_TEST

int main(void)
{
    return suite_run("placement", (suite_case[]){SUITE_CASE(found_when_there_is_one),
                                                 SUITE_CASE(replaces_one),
                                                 SUITE_CASE(least_used_unsuspected),
                                                 SUITE_CASE(equals_share_by_lot),
                                                 SUITE_CASE(lots_by_free_space),
                                                 SUITE_CASE(lots_without_a_limit),
                                                 SUITE_CASE(racks_in_every_write_set),
                                                 SUITE_CASE(regions_before_racks),
                                                 SUITE_CASE(groups_in_their_order),
                                                 SUITE_CASE(hosts_as_far_as_there_are),
                                                 {0}});
}
