#include "common/percentiles.h"

#include <math.h>
#include <string.h>

#include "common/mem.h"

enum {
    DIGIT_BITS = 11, /* below 2^11 every value has a bucket */
    HALF = 1 << (DIGIT_BITS - 1),
    TOP_BITS = 40,
    BUCKETS = 2 * HALF + (TOP_BITS - DIGIT_BITS + 1) * HALF,
};

static unsigned bucket_of(uint64_t value)
{
    const uint64_t top = (uint64_t)1 << TOP_BITS;
    if (value > top)
        value = top;
    if (value < 2 * HALF)
        return (unsigned)value;
    unsigned shift = 64U - (unsigned)__builtin_clzll(value) - DIGIT_BITS;
    return shift * HALF + (unsigned)(value >> shift);
}

/* The largest value that falls into it. */
static uint64_t upper_bound(unsigned bucket)
{
    if (bucket < 2 * HALF)
        return bucket;
    unsigned shift = bucket / HALF - 1;
    uint64_t digits = bucket - shift * HALF;
    return ((digits + 1) << shift) - 1;
}

void percentiles_init(struct percentiles *p)
{
    *p = (struct percentiles){.counts = mem_alloc(BUCKETS * sizeof *p->counts)};
}

void percentiles_drop(struct percentiles *p)
{
    mem_free(p->counts);
    *p = (struct percentiles){0};
}

void percentiles_clear(struct percentiles *p)
{
    memset(p->counts, 0, BUCKETS * sizeof *p->counts);
    p->n = p->sum = p->largest = 0;
}

void percentiles_note(struct percentiles *p, uint64_t value)
{
    p->counts[bucket_of(value)]++;
    p->n++;
    p->sum += value;
    if (value > p->largest)
        p->largest = value;
}

void percentiles_merge(struct percentiles *into, const struct percentiles *more)
{
    for (unsigned i = 0; i < BUCKETS; i++)
        into->counts[i] += more->counts[i];
    into->n += more->n;
    into->sum += more->sum;
    if (more->largest > into->largest)
        into->largest = more->largest;
}

uint64_t percentiles_at(const struct percentiles *p, double q)
{
    const double wanted = ceil(q * (double)p->n);
    uint64_t seen = 0;
    for (unsigned i = 0; i < BUCKETS && p->n > 0; i++) {
        seen += p->counts[i];
        if (seen > 0 && (double)seen >= wanted)
            return upper_bound(i) < p->largest ? upper_bound(i) : p->largest;
    }
    return p->largest;
}

double percentiles_mean(const struct percentiles *p)
{
    return p->n > 0 ? (double)p->sum / (double)p->n : 0;
}
