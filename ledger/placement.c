#include "ledger/placement.h"

#include <stdlib.h>
#include <string.h>

#include "common/mem.h"
#include "common/rng.h"

enum {
    STRICT_TRIES = 16, /* with the best for each slot, until each write set has its racks */
    LOOSE_TRIES = 64,  /* then with anyone of the same tier, as good as suspected or not */
    TRIES = 1024,      /* then, if it must be so, with anyone */
    COSTS = 5
};

/* Of a candidate for a slot, in order of weight. */
struct cost {
    uint32_t at[COSTS];
};

struct search {
    const struct placement_rules *rules;
    const struct placement_bookie *all;
    size_t count;
    const struct placement_bookie *member[ENSEMBLE_MAX]; /* NULL: nobody yet */
    uint64_t median_free;                                /* 0: it does not matter */
    unsigned racks;                                      /* that a write set is to have */
    unsigned try;
    uint64_t *seed;
};

static const struct placement_bookie *find(const struct search *s, uint32_t bookie)
{
    for (size_t i = 0; i < s->count; i++)
        if (s->all[i].bookie == bookie)
            return &s->all[i];
    return NULL;
}

/* Some write set has both. */
static bool meet(struct quorum q, unsigned a, unsigned b)
{
    unsigned far = (b + q.ensemble - a) % q.ensemble;

    return far < q.write || q.ensemble - far < q.write;
}

static bool may_join(const struct search *s, const struct placement_bookie *c)
{
    if (c->tier == PLACEMENT_EXCLUDED)
        return false;
    for (unsigned i = 0; i < s->rules->quorum.ensemble; i++) {
        const struct placement_bookie *m = s->member[i];
        if (m && (m->bookie == c->bookie || (s->rules->distinct_hosts && m->host == c->host)))
            return false;
    }
    return true;
}

static struct cost cost_of(const struct search *s, const struct placement_bookie *c, unsigned slot)
{
    struct cost k = {{c->tier, c->suspect}};

    for (unsigned i = 0; i < s->rules->quorum.ensemble; i++) {
        const struct placement_bookie *m = s->member[i];
        if (!m)
            continue;
        k.at[2] += s->rules->regions && m->region == c->region;
        k.at[3] += s->rules->racks && m->rack == c->rack && meet(s->rules->quorum, slot, i);
        k.at[4] += m->host == c->host;
    }
    for (unsigned i = 0; i < COSTS; i++)
        if (s->try >= (i < 2 ? LOOSE_TRIES : STRICT_TRIES))
            k.at[i] = 0;
    return k;
}

static int compare(const struct cost *a, const struct cost *b)
{
    for (unsigned i = 0; i < COSTS; i++)
        if (a->at[i] != b->at[i])
            return a->at[i] < b->at[i] ? -1 : 1;
    return 0;
}

/* How much of a lot it has among its equals. */
static uint64_t weight_of(const struct search *s, const struct placement_bookie *c)
{
    const uint64_t part = s->median_free / 1000 + 1, multiple = s->rules->free_multiple;
    const uint64_t is = (c->free ? c->free : s->median_free) / part;
    const uint64_t most = multiple ? multiple * (s->median_free / part) : UINT32_MAX;

    if (s->median_free == 0)
        return 1;
    return (is < most ? is : most) + 1;
}

/* One of the best for a slot, NULL when nobody is left.  Drawn in one pass: the n-th of equals
 * takes the place of the one held with the chance that its weight gives it. */
static const struct placement_bookie *best_for(const struct search *s, unsigned slot)
{
    const struct placement_bookie *best = NULL;
    struct cost least = {{0}};
    uint64_t sum = 0;

    for (size_t i = 0; i < s->count; i++) {
        const struct placement_bookie *c = &s->all[i];
        if (!may_join(s, c))
            continue;
        struct cost cost = cost_of(s, c, slot);
        int order = best ? compare(&cost, &least) : -1;
        if (order == 0 && !s->rules->by_free_space && s->try == 0 && c->uses != best->uses)
            order = c->uses < best->uses ? -1 : 1;
        if (order > 0)
            continue;
        sum = (order < 0 ? 0 : sum) + weight_of(s, c);
        if (order < 0 || rng_below(s->seed, sum) < weight_of(s, c))
            best = c;
        least = cost;
    }
    return best;
}

static bool fill(struct search *s)
{
    for (unsigned slot = 0; slot < s->rules->quorum.ensemble; slot++) {
        if (s->member[slot])
            continue;
        s->member[slot] = best_for(s, slot);
        if (!s->member[slot])
            return false;
    }
    return true;
}

/* Racks that write sets are short of, in all. */
static unsigned racks_missing(const struct search *s)
{
    struct quorum q = s->rules->quorum;
    unsigned missing = 0;

    for (unsigned start = 0; start < q.ensemble; start++) {
        unsigned racks = 0;
        for (unsigned k = 0; k < q.write; k++) {
            bool seen = false;
            for (unsigned i = 0; i < k; i++)
                seen |= s->member[(start + i) % q.ensemble]->rack ==
                        s->member[(start + k) % q.ensemble]->rack;
            racks += !seen;
        }
        missing += racks < s->racks ? s->racks - racks : 0;
    }
    return missing;
}

static unsigned least_of(unsigned a, unsigned b)
{
    return a < b ? a : b;
}

/* In a write set: no more than there are, unless it must be so. */
static unsigned racks_wanted(const struct placement_rules *rules,
                             const struct placement_bookie *all, size_t count)
{
    unsigned want = least_of(rules->racks_min, rules->quorum.write), there = 0;

    if (!rules->racks || rules->enforce_racks)
        return rules->racks ? want : 0;
    for (size_t i = 0; i < count && there < want; i++) {
        bool first = true;
        for (size_t k = 0; k < i && first; k++)
            first = all[k].rack != all[i].rack;
        there += first;
    }
    return least_of(want, there);
}

static int by_size(const void *a, const void *b)
{
    const uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;

    return (x > y) - (x < y);
}

/* 0: nobody's is known. */
static uint64_t median_free(const struct placement_bookie *all, size_t count)
{
    uint64_t *known = mem_alloc((count + 1) * sizeof *known), median = 0;
    size_t n = 0;

    for (size_t i = 0; i < count; i++)
        if (all[i].free > 0)
            known[n++] = all[i].free;
    qsort(known, n, sizeof *known, by_size);
    if (n > 0)
        median = known[(n - 1) / 2] / 2 + known[n / 2] / 2 + 1;
    mem_free(known);
    return median;
}

enum err placement_fill(const struct placement_rules *rules, const struct placement_bookie *all,
                        size_t count, uint32_t member[ENSEMBLE_MAX], uint64_t *seed)
{
    struct search begin = {.rules = rules,
                           .all = all,
                           .count = count,
                           .median_free = rules->by_free_space ? median_free(all, count) : 0,
                           .racks = racks_wanted(rules, all, count),
                           .seed = seed};
    struct search best = begin;
    unsigned least = UINT32_MAX, tries = rules->enforce_racks ? TRIES : LOOSE_TRIES;

    for (unsigned i = 0; i < rules->quorum.ensemble; i++)
        if (member[i] != PLACEMENT_NOBODY)
            begin.member[i] = find(&begin, member[i]);
    for (unsigned try = 0; try < tries && least > 0; try++) {
        struct search s = begin;
        s.try = try;
        if (!fill(&s))
            break; /* there are too few: whom to take first does not matter */
        unsigned missing = racks_missing(&s);
        if (missing < least)
            best = s;
        least = missing < least ? missing : least;
    }
    if (least == UINT32_MAX || (least > 0 && rules->enforce_racks))
        return ERR_NOT_ENOUGH_BOOKIES;
    for (unsigned i = 0; i < rules->quorum.ensemble; i++)
        if (best.member[i])
            member[i] = best.member[i]->bookie;
    return ERR_OK;
}
