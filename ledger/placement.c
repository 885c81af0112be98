#include "ledger/placement.h"

#include "common/rng.h"

static void swap(struct placement_bookie *a, struct placement_bookie *b)
{
    struct placement_bookie t = *a;

    *a = *b;
    *b = t;
}

static void shuffle(struct placement_bookie *live, size_t count, uint64_t *seed)
{
    for (size_t i = count; i > 1; i--)
        swap(&live[i - 1], &live[rng_below(seed, i)]);
}

static bool is_better(const struct placement_bookie *a, const struct placement_bookie *b)
{
    if (a->suspect != b->suspect)
        return b->suspect;
    return a->uses < b->uses;
}

enum err placement_choose(struct placement_bookie *live, size_t count, unsigned n, uint64_t *seed,
                          uint32_t *out)
{
    if (count < n)
        return ERR_NOT_ENOUGH_BOOKIES;
    shuffle(live, count, seed);
    for (unsigned chosen = 0; chosen < n; chosen++) {
        size_t best = chosen;
        for (size_t i = chosen + 1; i < count; i++)
            if (is_better(&live[i], &live[best]))
                best = i;
        swap(&live[chosen], &live[best]);
        out[chosen] = live[chosen].bookie;
    }
    return ERR_OK;
}
