/* governor.h - how fast catch-up reads may be, so that writing and tailing do not feel them.  Pure.
 *
 *   every INTERVAL: what catching up has read, how long adds and tail reads took
 *                --> reads at a time, bytes a second
 *
 *   a latency is in bounds while it is at most half as long again as its quiet level, or SLACK
 *   more, whichever allows more; its quiet level is how it is while nobody catches up; when that
 *   is long ago, catching up falls back to the floor for PROBE intervals, to find out again
 *
 *   the first       begins at the floor, and while it is in bounds its rate doubles
 *   out of bounds   the rate is cut to 7/10 of what was read, down to the floor; half the reads at
 *                   a time
 *   in bounds       from then on the rate grows by a tenth, if it was used; one more read at a time
 *   nobody writes and nobody tails: no limit
 *
 * The floor is what who catches up gets in any case.
 */
#ifndef BOOKIE_GOVERNOR_H
#define BOOKIE_GOVERNOR_H

#include <stdbool.h>
#include <stdint.h>

enum {
    GOVERNOR_INTERVAL_US = 100 * 1000,
    GOVERNOR_WINDOWS = 100, /* intervals that a quiet level is good for */
    GOVERNOR_PROBE = 6,
    GOVERNOR_LEFT = 10,           /* intervals without anybody: the next one is a first one */
    GOVERNOR_BEGIN = 1024 * 1024, /* bytes a second, where the floor is lower */
    GOVERNOR_SLACK_US = 1000,
};
#define GOVERNOR_NO_LIMIT UINT64_MAX

struct governor_conf {
    unsigned most;  /* reads at a time, at least 1 */
    uint64_t floor; /* bytes a second */
};

/* What one interval was like; a latency of 0: there was none. */
struct governor_sample {
    uint64_t us;    /* how long it was */
    uint64_t bytes; /* read for those who catch up */
    uint64_t add_us, tail_us;
};

/* A latency, smoothed, and how it is when nothing disturbs. */
struct governor_sense {
    uint64_t now_us, quiet_us; /* 0: not known */
};

struct governor {
    struct governor_conf conf;
    struct governor_sense adds, tail;
    unsigned reads;   /* at a time */
    uint64_t bytes_s; /* GOVERNOR_NO_LIMIT: none */
    bool is_braking;
    bool is_first;     /* it has not been out of bounds yet */
    unsigned left;     /* intervals since somebody caught up */
    unsigned age;      /* intervals since somebody found out how quiet it is */
    unsigned probing;  /* intervals left; then: */
    uint64_t resume_s; /* the rate from before */
};

void governor_init(struct governor *g, const struct governor_conf *conf);
void governor_step(struct governor *g, const struct governor_sample *s);

#endif
