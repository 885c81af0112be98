#include "broker/managed_ledger/segments.h"

#include <assert.h>
#include <string.h>

#include "common/mem.h"

void segments_add(struct segments *s, struct segment one)
{
    assert(s->n == 0 || s->at[s->n - 1].ledger < one.ledger);
    assert(one.entries >= 0);
    if (s->n == s->room) {
        s->room = s->room ? s->room * 2 : 4;
        s->at = mem_resize(s->at, s->room * sizeof(*s->at));
    }
    s->at[s->n++] = one;
}

void segments_drop_first(struct segments *s, unsigned n)
{
    assert(n <= s->n);
    if (n == 0)
        return;
    s->n -= n;
    memmove(s->at, s->at + n, s->n * sizeof(*s->at));
}

void segments_clear(struct segments *s)
{
    mem_free(s->at);
    *s = (struct segments){0};
}

/* Index of the first ledger that is not below this one; n when all are. */
static unsigned first_from(const struct segments *s, int64_t ledger)
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

struct segment *segments_find(const struct segments *s, int64_t ledger)
{
    unsigned i = first_from(s, ledger);

    return i < s->n && s->at[i].ledger == ledger ? &s->at[i] : NULL;
}

struct segment *segments_last(const struct segments *s)
{
    return s->n ? &s->at[s->n - 1] : NULL;
}

struct position segments_before_first(const struct segments *s)
{
    return s->n ? (struct position){s->at[0].ledger, -1} : POSITION_EARLIEST;
}

/* The last entry in the first n ledgers. */
static struct position last_entry_of(const struct segments *s, unsigned n)
{
    while (n-- > 0) {
        if (s->at[n].entries > 0)
            return (struct position){s->at[n].ledger, s->at[n].entries - 1};
    }
    return segments_before_first(s);
}

struct position segments_last_entry(const struct segments *s)
{
    return last_entry_of(s, s->n);
}

/* Where nothing was ever written yet, a place is its own successor's best guess. */
static struct position next_of_nothing(struct position p)
{
    if (p.entry < INT64_MAX)
        p.entry++;
    return p;
}

struct position segments_next(const struct segments *s, struct position p)
{
    unsigned i = first_from(s, p.ledger);
    int64_t entry = p.entry < 0 ? -1 : p.entry;

    if (s->n == 0)
        return next_of_nothing(p);
    if (i < s->n && s->at[i].ledger == p.ledger) {
        if (entry < s->at[i].entries - 1)
            return (struct position){p.ledger, entry + 1};
        i++;
    }
    while (i < s->n && s->at[i].entries == 0)
        i++;
    if (i < s->n)
        return (struct position){s->at[i].ledger, 0};
    return (struct position){s->at[s->n - 1].ledger, s->at[s->n - 1].entries};
}

struct position segments_at_or_before(const struct segments *s, struct position p)
{
    unsigned i = first_from(s, p.ledger);

    if (i < s->n && s->at[i].ledger == p.ledger && p.entry >= 0 && s->at[i].entries > 0) {
        int64_t last = s->at[i].entries - 1;
        return (struct position){p.ledger, p.entry < last ? p.entry : last};
    }
    return last_entry_of(s, i);
}

/* Entries at or before p. */
static int64_t count_upto(const struct segments *s, struct position p)
{
    int64_t count = 0;

    for (unsigned i = 0; i < s->n && s->at[i].ledger <= p.ledger; i++) {
        int64_t here = s->at[i].entries;
        if (s->at[i].ledger == p.ledger && p.entry < here)
            here = p.entry < 0 ? 0 : p.entry + 1;
        count += here;
    }
    return count;
}

int64_t segments_count(const struct segments *s, struct position after, struct position upto)
{
    if (position_compare(upto, after) <= 0)
        return 0;
    return count_upto(s, upto) - count_upto(s, after);
}

struct position segments_nth(const struct segments *s, struct position p, int64_t n)
{
    int64_t left = count_upto(s, p) + n;

    for (unsigned i = 0; i < s->n; i++) {
        if (left <= s->at[i].entries)
            return (struct position){s->at[i].ledger, left - 1};
        left -= s->at[i].entries;
    }
    return segments_last_entry(s);
}
