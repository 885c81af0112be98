#include "common/timer_heap.h"

#include <assert.h>

#include "common/mem.h"

static void place(struct timer_heap *h, size_t slot, struct timer *t)
{
    h->at[slot] = t;
    t->slot = slot;
}

static void sift_up(struct timer_heap *h, struct timer *t)
{
    size_t slot = t->slot;
    while (slot > 1 && h->at[slot / 2]->due_us > t->due_us) {
        place(h, slot, h->at[slot / 2]);
        slot /= 2;
    }
    place(h, slot, t);
}

static void sift_down(struct timer_heap *h, struct timer *t)
{
    size_t slot = t->slot;
    while (slot * 2 <= h->n) {
        size_t child = slot * 2;
        if (child < h->n && h->at[child + 1]->due_us < h->at[child]->due_us)
            child++;
        if (h->at[child]->due_us >= t->due_us)
            break;
        place(h, slot, h->at[child]);
        slot = child;
    }
    place(h, slot, t);
}

void timer_heap_put(struct timer_heap *h, struct timer *t, uint64_t due_us)
{
    timer_heap_remove(h, t);
    if (h->n + 1 >= h->room) {
        h->room = h->room ? h->room * 2 : 64;
        h->at = mem_resize(h->at, h->room * sizeof(struct timer *));
    }
    t->due_us = due_us;
    place(h, ++h->n, t);
    sift_up(h, t);
}

void timer_heap_remove(struct timer_heap *h, struct timer *t)
{
    if (t->slot == 0)
        return;
    assert(t->slot <= h->n);
    assert(h->at[t->slot] == t);
    struct timer *last = h->at[h->n--];
    if (last != t) {
        place(h, t->slot, last);
        sift_up(h, last);
        sift_down(h, last);
    }
    t->slot = 0;
}

struct timer *timer_heap_first(const struct timer_heap *h)
{
    return h->n > 0 ? h->at[1] : NULL;
}

void timer_heap_free(struct timer_heap *h)
{
    mem_free(h->at);
    *h = (struct timer_heap){0};
}
