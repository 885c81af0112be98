#include "broker/managed_ledger/cursor_set.h"

#include <assert.h>
#include <string.h>

#include "common/mem.h"

/* Where the ledger is, or would be. */
static unsigned place_of(const struct cursor_set *s, int64_t ledger)
{
    unsigned low = 0, high = s->n;

    while (low < high) {
        unsigned middle = low + (high - low) / 2;
        if (s->at[middle].ledger < ledger)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

static struct cursor_set_ledger *find(const struct cursor_set *s, int64_t ledger)
{
    unsigned i = place_of(s, ledger);

    return i < s->n && s->at[i].ledger == ledger ? &s->at[i] : NULL;
}

static struct cursor_set_ledger *find_or_make(struct cursor_set *s, int64_t ledger)
{
    unsigned i = place_of(s, ledger);

    if (i < s->n && s->at[i].ledger == ledger)
        return &s->at[i];
    if (s->n == s->room) {
        s->room = s->room ? s->room * 2 : 4;
        s->at = mem_resize(s->at, s->room * sizeof(*s->at));
    }
    memmove(s->at + i + 1, s->at + i, (s->n - i) * sizeof(*s->at));
    s->n++;
    s->at[i] = (struct cursor_set_ledger){.ledger = ledger, .entries = roaring_bitmap_create()};
    return &s->at[i];
}

static void drop_first(struct cursor_set *s, unsigned n)
{
    for (unsigned i = 0; i < n; i++)
        roaring_bitmap_free(s->at[i].entries);
    s->n -= n;
    memmove(s->at, s->at + n, s->n * sizeof(*s->at));
}

void cursor_set_drop(struct cursor_set *s)
{
    if (s->n)
        drop_first(s, s->n);
    mem_free(s->at);
    *s = (struct cursor_set){0};
}

/* Runs that begin in or reach into [first, last]. */
static uint64_t runs_within(const struct cursor_set_ledger *l, int64_t first, int64_t last)
{
    roaring_uint32_iterator_t it;
    uint64_t runs = 0;
    int64_t expected = -1;

    roaring_init_iterator(l->entries, &it);
    if (!roaring_move_uint32_iterator_equalorlarger(&it, (uint32_t)first))
        return 0;
    for (; it.has_value && it.current_value <= last; roaring_advance_uint32_iterator(&it)) {
        runs += it.current_value != expected;
        expected = (int64_t)it.current_value + 1;
    }
    return runs;
}

static uint64_t add_one(struct cursor_set_ledger *l, uint32_t entry)
{
    if (!roaring_bitmap_add_checked(l->entries, entry))
        return 0;
    l->count++;
    l->runs++;
    l->runs -= entry > 0 && roaring_bitmap_contains(l->entries, entry - 1);
    l->runs -= roaring_bitmap_contains(l->entries, entry + 1);
    return 1;
}

uint64_t cursor_set_add(struct cursor_set *s, int64_t ledger, int64_t first, int64_t last)
{
    struct cursor_set_ledger *l;
    uint64_t fresh;

    first = first < 0 ? 0 : first;
    last = last > CURSOR_SET_ENTRY_MAX ? CURSOR_SET_ENTRY_MAX : last;
    if (first > last)
        return 0;
    l = find_or_make(s, ledger);
    if (first == last)
        return add_one(l, (uint32_t)first);
    l->runs -= runs_within(l, first ? first - 1 : 0, last + 1);
    l->runs++;
    fresh = (uint64_t)(last - first) + 1 -
            roaring_bitmap_range_cardinality(l->entries, (uint64_t)first, (uint64_t)last + 1);
    roaring_bitmap_add_range_closed(l->entries, (uint32_t)first, (uint32_t)last);
    l->count += fresh;
    return fresh;
}

/* True when nothing is left of it. */
static bool remove_front(struct cursor_set_ledger *l, int64_t last)
{
    uint32_t lowest = roaring_bitmap_minimum(l->entries), upto;

    if (last < lowest)
        return false;
    if (last >= roaring_bitmap_maximum(l->entries))
        return true;
    upto = (uint32_t)last;
    l->runs -= runs_within(l, lowest, last);
    l->runs +=
        roaring_bitmap_contains(l->entries, upto) && roaring_bitmap_contains(l->entries, upto + 1);
    l->count -= roaring_bitmap_range_cardinality(l->entries, lowest, (uint64_t)upto + 1);
    roaring_bitmap_remove_range_closed(l->entries, lowest, upto);
    return false;
}

void cursor_set_remove_upto(struct cursor_set *s, struct position p)
{
    unsigned gone = place_of(s, p.ledger);

    if (gone < s->n && s->at[gone].ledger == p.ledger && remove_front(&s->at[gone], p.entry))
        gone++;
    if (gone)
        drop_first(s, gone);
}

static void drop_at(struct cursor_set *s, unsigned i)
{
    roaring_bitmap_free(s->at[i].entries);
    s->n--;
    memmove(s->at + i, s->at + i + 1, (s->n - i) * sizeof(*s->at));
}

bool cursor_set_remove(struct cursor_set *s, struct position p)
{
    struct cursor_set_ledger *l = find(s, p.ledger);
    uint32_t entry = (uint32_t)p.entry;

    if (!l || p.entry < 0 || p.entry > CURSOR_SET_ENTRY_MAX ||
        !roaring_bitmap_remove_checked(l->entries, entry))
        return false;
    l->count--;
    l->runs--;
    l->runs += entry > 0 && roaring_bitmap_contains(l->entries, entry - 1);
    l->runs += roaring_bitmap_contains(l->entries, entry + 1);
    if (l->count == 0)
        drop_at(s, (unsigned)(l - s->at));
    return true;
}

bool cursor_set_first(const struct cursor_set *s, struct position from, struct position *out)
{
    for (unsigned i = place_of(s, from.ledger); i < s->n; i++) {
        const struct cursor_set_ledger *l = &s->at[i];
        int64_t first = l->ledger == from.ledger && from.entry > 0 ? from.entry : 0;
        roaring_uint32_iterator_t it;
        if (first > CURSOR_SET_ENTRY_MAX)
            continue;
        roaring_init_iterator(l->entries, &it);
        if (!roaring_move_uint32_iterator_equalorlarger(&it, (uint32_t)first))
            continue;
        *out = (struct position){l->ledger, it.current_value};
        return true;
    }
    return false;
}

bool cursor_set_has(const struct cursor_set *s, struct position p)
{
    const struct cursor_set_ledger *l = find(s, p.ledger);

    return l && p.entry >= 0 && p.entry <= CURSOR_SET_ENTRY_MAX &&
           roaring_bitmap_contains(l->entries, (uint32_t)p.entry);
}

/* Gallops: a run of a million is passed in some twenty questions. */
int64_t cursor_set_first_absent(const struct cursor_set *s, int64_t ledger, int64_t from)
{
    const struct cursor_set_ledger *l = find(s, ledger);
    uint64_t at = (uint64_t)from, step = 1;

    if (!l || from < 0 || from > CURSOR_SET_ENTRY_MAX)
        return from;
    while (roaring_bitmap_contains_range(l->entries, at, at + step) &&
           at + step <= CURSOR_SET_ENTRY_MAX) {
        at += step;
        step *= 2;
    }
    for (; step; step /= 2)
        if (at + step - 1 <= CURSOR_SET_ENTRY_MAX &&
            roaring_bitmap_contains_range(l->entries, at, at + step))
            at += step;
    return (int64_t)at;
}

uint64_t cursor_set_count(const struct cursor_set *s, int64_t ledger)
{
    uint64_t count = 0;

    for (unsigned i = place_of(s, ledger); i < s->n; i++)
        count += s->at[i].count;
    return count;
}

uint64_t cursor_set_runs(const struct cursor_set *s, int64_t ledger)
{
    uint64_t runs = 0;

    for (unsigned i = place_of(s, ledger); i < s->n; i++)
        runs += s->at[i].runs;
    return runs;
}

struct cursor_set_walk cursor_set_walk(const struct cursor_set *s)
{
    return (struct cursor_set_walk){.set = s};
}

bool cursor_set_walk_next(struct cursor_set_walk *w)
{
    while (w->i < w->set->n) {
        const struct cursor_set_ledger *l = &w->set->at[w->i];
        if (!w->begun)
            roaring_init_iterator(l->entries, &w->it);
        w->begun = true;
        if (w->it.has_value) {
            w->ledger = l->ledger;
            w->first = w->last = w->it.current_value;
            while (roaring_advance_uint32_iterator(&w->it) && w->it.current_value == w->last + 1)
                w->last++;
            return true;
        }
        w->i++;
        w->begun = false;
    }
    return false;
}
