/* read_lanes.h - which read of the disk is next.  Pure: the queues and their limits.
 *
 *   TAIL      near the end of a ledger, or fencing: somebody waits for it now.  First, always
 *   REPAIR    copies for others: a quarter of the threads at most
 *   CATCH_UP  the rest: `catch_up` at a time and as many bytes as the governor allows
 *
 * REPAIR and CATCH_UP take turns.  One thread of several is left to TAIL, so that it never stands
 * behind windows of the others; a thread alone serves all.
 *
 * Memory:  jobs are the callers'; a queue links them.
 * Threads: one at a time: its owner's lock.
 */
#ifndef BOOKIE_READ_LANES_H
#define BOOKIE_READ_LANES_H

#include <stdbool.h>
#include <stdint.h>

enum read_lane { LANE_TAIL, LANE_REPAIR, LANE_CATCH_UP, LANES };

struct lane_node {
    struct lane_node *next; /* private, as the next */
    enum read_lane lane;
};

struct lane {
    struct lane_node *first, **end;
    unsigned waiting, running;
};

struct read_lanes {
    struct lane at[LANES];
    unsigned threads;
    unsigned catch_up;   /* at a time */
    uint64_t bytes_s;    /* UINT64_MAX: no limit */
    int64_t allowance;   /* bytes; what one read takes too much, the next ones wait for */
    uint64_t allowed_at; /* us */
    bool repairs_turn;
};

void read_lanes_init(struct read_lanes *l, unsigned threads);
void read_lanes_limit(struct read_lanes *l, unsigned catch_up, uint64_t bytes_s);
void read_lanes_put(struct read_lanes *l, enum read_lane lane, struct lane_node *n);
/* The next one, which runs from now on; NULL: none may.  all: whatever the limits say. */
struct lane_node *read_lanes_take(struct read_lanes *l, uint64_t now_us, bool all);
void read_lanes_done(struct read_lanes *l, const struct lane_node *n, uint64_t bytes);
bool read_lanes_empty(const struct read_lanes *l); /* none waits */
/* Until when only the clock can help; UINT64_MAX: something else must happen. */
uint64_t read_lanes_wait(const struct read_lanes *l, uint64_t now_us);

#endif
