#include "broker/managed_ledger/time_search.h"

enum { HINTS = 2 };

static int64_t unknown(const struct time_search *s, const struct segments *all)
{
    return segments_count(all, s->low, s->last);
}

static struct position entry_before(const struct segments *all, struct position p)
{
    return segments_at_or_before(all, (struct position){p.ledger, p.entry - 1});
}

void time_search_init(struct time_search *s, const struct segments *all, struct position last,
                      int64_t ms)
{
    *s = (struct time_search){.ms = ms, .low = segments_before_first(all), .last = last};
}

/* The first ledger that was not closed before that time. */
static const struct segment *likely(const struct time_search *s, const struct segments *all)
{
    for (unsigned i = 0; i < all->n; i++) {
        const struct segment *one = &all->at[i];
        if (one->open || one->closed_ms <= 0 || one->closed_ms >= s->ms)
            return one;
    }
    return segments_last(all);
}

/* The last entry before the likely ledger, then the last one in it: mostly all but that ledger is
 * known after two probes. */
static bool take_hint(struct time_search *s, const struct segments *all)
{
    while (s->hints < HINTS) {
        int64_t entry = s->hints++ == 0 ? -1 : INT64_MAX;
        s->asked = segments_at_or_before(all, (struct position){likely(s, all)->ledger, entry});
        if (position_compare(s->asked, s->last) > 0)
            s->asked = s->last;
        if (position_compare(s->asked, s->low) > 0 && s->asked.entry >= 0)
            return true;
    }
    return false;
}

bool time_search_next(struct time_search *s, const struct segments *all)
{
    int64_t n = unknown(s, all);

    if (n <= 0)
        return false;
    if (!take_hint(s, all))
        s->asked = segments_nth(all, s->low, (n + 1) / 2);
    return true;
}

void time_search_saw(struct time_search *s, const struct segments *all, struct position at,
                     int64_t ms)
{
    if (position_compare(at, s->last) > 0 || ms >= s->ms)
        s->last = entry_before(all, s->asked);
    else if (position_compare(at, s->low) > 0)
        s->low = at;
}

void time_search_saw_none(struct time_search *s, const struct segments *all)
{
    s->last = entry_before(all, s->asked);
}
