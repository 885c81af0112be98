/* rng.h - random numbers: seeded ones for tests and spreading, the kernel's for identities. */
#ifndef COMMON_RNG_H
#define COMMON_RNG_H

#include <stddef.h>
#include <stdint.h>

/* splitmix64 (Steele, Lea, Flood 2014): any seed is fine, every call advances it. */
static inline uint64_t rng_next(uint64_t *seed)
{
    uint64_t z = *seed += 0x9e3779b97f4a7c15u;
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
    return z ^ (z >> 31);
}

static inline uint64_t rng_below(uint64_t *seed, uint64_t n)
{
    return rng_next(seed) % n;
}

void rng_bytes(void *into, size_t len); /* from the kernel */
uint64_t rng_seed(void);                /* from the kernel */

#endif
