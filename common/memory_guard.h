/* memory_guard.h - what a process takes on less of, the nearer its memory is to its limit.
 *
 *   % of the limit   level           given up from there on, and all that is above
 *        80          MEMORY_LOW      reads of what is not in memory
 *        88          MEMORY_SCARCE   new connections
 *        94          MEMORY_SHORT    adds
 *
 * Replicas see the same load, so running out must never be how load ends.  A level ends
 * MEMORY_BACK points under where it began.  What counts is what is resident and not of a file
 * (the kernel takes pages of files back by itself).  While it is LOW or worse, memory that is
 * kept for reuse goes back to the system.
 *
 * Memory:  embedded in what it guards; zeroed it is one that sees no limit, and so is NULL.
 * Threads: memory_guard_level() any; listen, start and stop from one that is no loop's, one after
 *          the other.
 * Limits:  looks ten times a second, from 60 % on fifty times: what comes in between should fit
 *          into what is above 94 %.
 */
#ifndef COMMON_MEMORY_GUARD_H
#define COMMON_MEMORY_GUARD_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "common/list.h"
#include "common/log_limit.h"
#include "common/loop.h"
#include "common/metric.h"

enum memory_level { MEMORY_PLENTY, MEMORY_LOW, MEMORY_SCARCE, MEMORY_SHORT };

enum { MEMORY_BACK = 4 };

/* Pure: the level after a look, when it was `now` before. */
enum memory_level memory_level_next(enum memory_level now, uint64_t used, uint64_t limit);
const char *memory_level_name(enum memory_level level);

struct memory_guard {
    _Atomic int level;
    uint64_t limit;    /* 0: it does not look */
    struct loop *home; /* NULL: not started */
    struct timer timer;
    uint64_t (*used)(void);
    struct metric *shown;
    struct list_node ears;
    unsigned looks; /* since it became LOW */
    struct log_limit lines;
};

/* Hears of every change, on its own loop, of quick ones of the last; and now and then while it is
 * LOW or worse. */
struct memory_ear {
    struct loop *home;
    void (*heard)(struct memory_ear *e, enum memory_level level);
    struct memory_guard *guard; /* private, as the rest */
    struct list_node node;
    struct task task;
    atomic_bool posted;
};

/* How it is set up. */
struct memory_guard_conf {
    int64_t limit_mb;       /* 0: memory_limit_find(); below: none is seen */
    uint64_t (*used)(void); /* bytes; NULL: process_anonymous() */
    struct metric *level, *limit;
};

void memory_guard_init(struct memory_guard *g, const struct memory_guard_conf *conf);
/* What may be taken of `bytes` when it may be a quarter of all at most. */
uint64_t memory_guard_quarter(const struct memory_guard *g, uint64_t bytes);
void memory_guard_listen(struct memory_guard *g, struct memory_ear *e);
void memory_guard_start(struct memory_guard *g, struct loop *home);
/* Ears hear nothing new; what was posted has run once their loops were called. */
void memory_guard_stop(struct memory_guard *g);

/* A connection that has come: closes fd when it is SCARCE. */
bool memory_guard_turns_away(struct memory_guard *g, int fd);

static inline enum memory_level memory_guard_level(const struct memory_guard *g)
{
    return g ? (enum memory_level)atomic_load_explicit(
                   &((struct memory_guard *)(uintptr_t)g)->level, memory_order_relaxed)
             : MEMORY_PLENTY;
}

#endif
