#include "bookie/read_lanes.h"

#include <stddef.h>

enum { A_SECOND = 1000 * 1000, A_MOMENT = 1000, BURST_US = 50 * 1000 };

void read_lanes_init(struct read_lanes *l, unsigned threads)
{
    *l = (struct read_lanes){.threads = threads, .catch_up = threads, .bytes_s = UINT64_MAX};
    for (unsigned i = 0; i < LANES; i++)
        l->at[i].end = &l->at[i].first;
}

void read_lanes_limit(struct read_lanes *l, unsigned catch_up, uint64_t bytes_s)
{
    l->catch_up = catch_up ? catch_up : 1;
    if (l->bytes_s == UINT64_MAX)
        l->allowance = 0;
    l->bytes_s = bytes_s;
}

void read_lanes_put(struct read_lanes *l, enum read_lane lane, struct lane_node *n)
{
    struct lane *at = &l->at[lane];
    n->lane = lane;
    n->next = NULL;
    *at->end = n;
    at->end = &n->next;
    at->waiting++;
}

static struct lane_node *pop(struct lane *at)
{
    struct lane_node *n = at->first;
    at->first = n->next;
    if (!at->first)
        at->end = &at->first;
    at->waiting--;
    at->running++;
    return n;
}

static void allow(struct read_lanes *l, uint64_t now_us)
{
    const uint64_t since = now_us - l->allowed_at;
    const uint64_t us = since > A_SECOND ? A_SECOND : since;
    const int64_t most = (int64_t)(l->bytes_s / (A_SECOND / BURST_US));
    l->allowed_at = now_us;
    l->allowance += (int64_t)(l->bytes_s / A_SECOND * us + l->bytes_s % A_SECOND * us / A_SECOND);
    if (l->allowance > most)
        l->allowance = most;
}

static bool has_thread(const struct read_lanes *l)
{
    const unsigned busy = l->at[LANE_REPAIR].running + l->at[LANE_CATCH_UP].running;
    return l->threads == 1 ? busy == 0 : busy < l->threads - 1;
}

static bool may_repair(const struct read_lanes *l)
{
    const struct lane *at = &l->at[LANE_REPAIR];
    const unsigned most = l->threads > 4 ? l->threads / 4 : 1;
    return at->waiting > 0 && at->running < most;
}

static bool may_catch_up(struct read_lanes *l, uint64_t now_us)
{
    const struct lane *at = &l->at[LANE_CATCH_UP];
    if (at->waiting == 0 || at->running >= l->catch_up)
        return false;
    if (l->bytes_s == UINT64_MAX)
        return true;
    allow(l, now_us);
    return l->allowance > 0;
}

static struct lane_node *take_any(struct read_lanes *l)
{
    for (unsigned i = 0; i < LANES; i++)
        if (l->at[i].waiting > 0)
            return pop(&l->at[i]);
    return NULL;
}

struct lane_node *read_lanes_take(struct read_lanes *l, uint64_t now_us, bool all)
{
    if (all || l->at[LANE_TAIL].waiting > 0)
        return take_any(l);
    if (!has_thread(l))
        return NULL;
    const bool repair = may_repair(l), catch_up = may_catch_up(l, now_us);
    if (!repair && !catch_up)
        return NULL;
    const bool is_repair = repair && (l->repairs_turn || !catch_up);
    l->repairs_turn = !is_repair;
    return pop(&l->at[is_repair ? LANE_REPAIR : LANE_CATCH_UP]);
}

void read_lanes_done(struct read_lanes *l, const struct lane_node *n, uint64_t bytes)
{
    l->at[n->lane].running--;
    if (n->lane == LANE_CATCH_UP && l->bytes_s != UINT64_MAX)
        l->allowance -= (int64_t)bytes;
}

bool read_lanes_empty(const struct read_lanes *l)
{
    return l->at[LANE_TAIL].waiting + l->at[LANE_REPAIR].waiting + l->at[LANE_CATCH_UP].waiting ==
           0;
}

uint64_t read_lanes_wait(const struct read_lanes *l, uint64_t now_us)
{
    const struct lane *at = &l->at[LANE_CATCH_UP];
    if (at->waiting == 0 || at->running >= l->catch_up || !has_thread(l) ||
        l->bytes_s == UINT64_MAX)
        return UINT64_MAX;
    const uint64_t lacks = l->allowance > 0 ? 0 : (uint64_t)-l->allowance + 1;
    const uint64_t per_moment = l->bytes_s / A_MOMENT + 1;
    return now_us + (lacks / per_moment + 1) * A_MOMENT;
}
