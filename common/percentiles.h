/* percentiles.h - a log-linear histogram of three digits: what a measurement keeps of its times.
 *
 *   0 .. 2047 each by itself | 2048 .. 4095 by twos | 4096 .. 8191 by fours | ... 2^40
 *
 * A figure is never more than 0.1 % above what was noted.  The histogram in metric.h has 25 buckets
 * and costs nothing to scrape; this one has 32,000 and is for those who look at a tail.
 *
 * Memory:  a quarter of a MiB each, taken at birth.
 * Threads: one.
 * Limits:  what is larger than 2^40 counts as 2^40; largest and sum stay exact.
 */
#ifndef COMMON_PERCENTILES_H
#define COMMON_PERCENTILES_H

#include <stdint.h>

struct percentiles {
    uint64_t *counts;
    uint64_t n, sum, largest;
};

void percentiles_init(struct percentiles *p); /* gives counts */
void percentiles_drop(struct percentiles *p);
void percentiles_clear(struct percentiles *p);

void percentiles_note(struct percentiles *p, uint64_t value);
void percentiles_merge(struct percentiles *into, const struct percentiles *more);

/* The value that a part `q` (0 to 1) of what was noted does not exceed; 0 of nothing. */
uint64_t percentiles_at(const struct percentiles *p, double q);
double percentiles_mean(const struct percentiles *p); /* 0 of nothing */

#endif
