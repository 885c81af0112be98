#include "broker/managed_ledger/cursor_acks.h"

#include <assert.h>

void cursor_acks_init(struct cursor_acks *a, const struct segments *segments,
                      struct position mark_delete)
{
    *a = (struct cursor_acks){.segments = segments, .mark_delete = mark_delete};
}

void cursor_acks_drop(struct cursor_acks *a)
{
    cursor_set_drop(&a->beyond);
    cursor_parts_drop(&a->parts);
}

static int64_t first_ledger(const struct cursor_acks *a)
{
    return a->segments->n ? a->segments->at[0].ledger : 0;
}

static bool exists(const struct cursor_acks *a, struct position p)
{
    const struct segment *s = segments_find(a->segments, p.ledger);

    return s && p.entry >= 0 && p.entry < s->entries && p.entry <= CURSOR_SET_ENTRY_MAX;
}

/* Over everything that is acknowledged next to the mark-delete position. */
static void advance(struct cursor_acks *a)
{
    while (a->beyond.n) {
        struct position next = segments_next(a->segments, a->mark_delete);
        int64_t end = cursor_set_first_absent(&a->beyond, next.ledger, next.entry);
        if (end == next.entry)
            break;
        a->mark_delete = (struct position){next.ledger, end - 1};
        cursor_set_remove_upto(&a->beyond, a->mark_delete);
    }
}

/* What was trimmed stands in nobody's way any more, acknowledged or not. */
static void pass_trimmed(struct cursor_acks *a)
{
    if (a->mark_delete.ledger >= first_ledger(a))
        return;
    cursor_parts_remove_upto(&a->parts, (struct position){first_ledger(a), -1});
    if (!a->beyond.n)
        return;
    cursor_set_remove_upto(&a->beyond, (struct position){first_ledger(a), -1});
    advance(a);
}

bool cursor_acks_one(struct cursor_acks *a, struct position p)
{
    pass_trimmed(a);
    if (position_compare(p, a->mark_delete) <= 0 || !exists(a, p))
        return false;
    cursor_parts_remove(&a->parts, p);
    if (!position_equal(p, segments_next(a->segments, a->mark_delete)))
        return cursor_set_add(&a->beyond, p.ledger, p.entry, p.entry) > 0;
    a->mark_delete = p;
    advance(a);
    return true;
}

enum cursor_parts_outcome cursor_acks_part(struct cursor_acks *a, struct position p,
                                           const uint64_t *words, unsigned n)
{
    enum cursor_parts_outcome outcome;

    pass_trimmed(a);
    if (cursor_acks_has(a, p) || !exists(a, p))
        return PARTS_SAME;
    outcome = cursor_parts_and(&a->parts, p, words, n);
    if (outcome == PARTS_EMPTY && !cursor_acks_one(a, p))
        return PARTS_SAME;
    return outcome;
}

bool cursor_acks_upto(struct cursor_acks *a, struct position p)
{
    struct position end = segments_last_entry(a->segments);

    if (position_equal(p, POSITION_LATEST))
        p = end;
    if (position_compare(p, end) > 0)
        return false;
    p = segments_at_or_before(a->segments, p);
    if (position_compare(p, a->mark_delete) <= 0)
        return false;
    a->mark_delete = p;
    cursor_set_remove_upto(&a->beyond, p);
    cursor_parts_remove_upto(&a->parts, p);
    advance(a);
    return true;
}

void cursor_acks_reset(struct cursor_acks *a, struct position mark_delete)
{
    a->mark_delete = segments_at_or_before(a->segments, mark_delete);
    cursor_acks_drop(a);
}

bool cursor_acks_has(const struct cursor_acks *a, struct position p)
{
    return position_compare(p, a->mark_delete) <= 0 || cursor_set_has(&a->beyond, p);
}

struct position cursor_acks_next(const struct cursor_acks *a, struct position p)
{
    if (position_compare(p, a->mark_delete) < 0)
        p = a->mark_delete;
    for (;;) {
        struct position next = segments_next(a->segments, p);
        int64_t end = cursor_set_first_absent(&a->beyond, next.ledger, next.entry);
        if (end == next.entry)
            return next;
        p = (struct position){next.ledger, end - 1};
    }
}

int64_t cursor_acks_backlog(const struct cursor_acks *a)
{
    struct position end = segments_last_entry(a->segments);

    if (position_compare(end, a->mark_delete) <= 0)
        return 0;
    return segments_count(a->segments, a->mark_delete, end) -
           (int64_t)cursor_set_count(&a->beyond, first_ledger(a));
}

uint64_t cursor_acks_holes(const struct cursor_acks *a)
{
    return cursor_set_runs(&a->beyond, first_ledger(a));
}

void cursor_acks_load_upto(struct cursor_acks *a, struct position mark_delete)
{
    if (position_compare(mark_delete, a->mark_delete) <= 0)
        return;
    a->mark_delete = mark_delete;
    cursor_set_remove_upto(&a->beyond, mark_delete);
    cursor_parts_remove_upto(&a->parts, mark_delete);
}

void cursor_acks_load_reset(struct cursor_acks *a, struct position mark_delete)
{
    a->mark_delete = mark_delete;
    cursor_acks_drop(a);
}

void cursor_acks_load_part(struct cursor_acks *a, struct position p, const uint64_t *words,
                           unsigned n)
{
    (void)cursor_parts_set(&a->parts, p, words, n); /* what has no room is delivered again */
}

/* What was stored may be of entries that were acknowledged later, or are gone. */
static void settle_parts(struct cursor_acks *a)
{
    const struct cursor_part *part = cursor_parts_next(&a->parts, NULL), *next;

    for (; part; part = next) {
        next = cursor_parts_next(&a->parts, part);
        if (cursor_acks_has(a, part->at) || !exists(a, part->at))
            cursor_parts_remove(&a->parts, part->at);
    }
}

void cursor_acks_load_range(struct cursor_acks *a, struct position lower, struct position upper)
{
    const struct segment *start;

    if (position_compare(lower, a->mark_delete) < 0)
        lower = a->mark_delete;
    start = segments_find(a->segments, lower.ledger);
    for (unsigned i = start ? (unsigned)(start - a->segments->at) : 0; i < a->segments->n; i++) {
        const struct segment *s = &a->segments->at[i];
        int64_t first = 0, last = s->entries - 1;
        if (s->ledger < lower.ledger)
            continue;
        if (s->ledger > upper.ledger)
            break;
        if (s->ledger == lower.ledger && lower.entry >= 0)
            first = lower.entry < last ? lower.entry + 1 : last + 1;
        if (s->ledger == upper.ledger && upper.entry < last)
            last = upper.entry;
        cursor_set_add(&a->beyond, s->ledger, first, last);
    }
}

void cursor_acks_settle(struct cursor_acks *a)
{
    a->mark_delete = segments_at_or_before(a->segments, a->mark_delete);
    cursor_set_remove_upto(&a->beyond, a->mark_delete);
    advance(a);
    settle_parts(a);
}
