#include "common/rng.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/random.h>

void rng_bytes(void *into, size_t len)
{
    uint8_t *at = into;
    while (len > 0) {
        ssize_t n = getrandom(at, len, 0);
        if (n < 0 && errno == EINTR)
            continue;
        if (n <= 0) {
            fprintf(stderr, "the kernel gives no random bytes\n");
            abort();
        }
        at += n;
        len -= (size_t)n;
    }
}

uint64_t rng_seed(void)
{
    uint64_t seed;
    rng_bytes(&seed, sizeof seed);
    return seed;
}
