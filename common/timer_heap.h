/* timer_heap.h - which timer is next: a binary heap of timers that know their place.
 *
 * Threads: the owning loop's.  For loop.c.
 */
#ifndef COMMON_TIMER_HEAP_H
#define COMMON_TIMER_HEAP_H

#include "common/loop.h"

struct timer_heap {
    struct timer **at; /* at[1] is due first; at[0] is unused, so that slot 0 is "at rest" */
    size_t n, room;
};

void timer_heap_put(struct timer_heap *h, struct timer *t, uint64_t due_us); /* or moves it */
void timer_heap_remove(struct timer_heap *h, struct timer *t);               /* at rest is fine */
struct timer *timer_heap_first(const struct timer_heap *h); /* borrows; NULL when empty */
void timer_heap_free(struct timer_heap *h);

#endif
