/* seen.h - the fingerprints of states that were there already; 0 is none.
 *
 * Two states that share one are taken for the same: with n states the chance that this ever
 * happens is about n * n / 2^65, a thousandth for a hundred and ninety million.
 *
 * Memory:  its own, twice as much whenever it is three quarters full, up to `most`; while it
 *          grows, half as much again.
 * Threads: one.
 */
#ifndef TESTS_SIM_EXHAUST_SEEN_H
#define TESTS_SIM_EXHAUST_SEEN_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct seen {
    uint64_t *at; /* room, a power of two */
    size_t room, n, most;
    bool full;
};

void seen_init(struct seen *s, size_t most);
void seen_drop(struct seen *s);
bool seen_add(struct seen *s, uint64_t code); /* false: it was there, or there is no room */

#endif
