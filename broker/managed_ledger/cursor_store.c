#include "broker/managed_ledger/cursor_store.h"

#include <assert.h>

#include "broker/managed_ledger/cursor_delta.h"
#include "common/mem.h"

enum {
    REPLAY_BYTES = 64 * 1024,
    REPLAY_RATIO = 2,  /* besides, as much as so many snapshots */
    ENTRY_COST = 64,   /* a small entry costs a reader more than its bytes */
    ROLL_AGAIN = 1000, /* entries until the next try to roll */
    ENDING_TRIES = 4,
};

#define STEP(state) (1u << (state))
static const uint32_t may_become[] = {
    [STORE_IDLE] = STEP(STORE_CREATING) | STEP(STORE_WRITING) | STEP(STORE_POINTING),
    [STORE_CREATING] = STEP(STORE_FILLING) | STEP(STORE_IDLE) | STEP(STORE_PAUSED),
    [STORE_FILLING] = STEP(STORE_POINTING) | STEP(STORE_CREATING) | STEP(STORE_PAUSED) |
                      STEP(STORE_LOOKING) | STEP(STORE_IDLE),
    [STORE_POINTING] = STEP(STORE_IDLE) | STEP(STORE_LOOKING),
    [STORE_LOOKING] =
        STEP(STORE_IDLE) | STEP(STORE_POINTING) | STEP(STORE_CREATING) | STEP(STORE_PAUSED),
    [STORE_WRITING] = STEP(STORE_IDLE) | STEP(STORE_POINTING) | STEP(STORE_CREATING) |
                      STEP(STORE_PAUSED) | STEP(STORE_LOOKING),
    [STORE_PAUSED] =
        STEP(STORE_CREATING) | STEP(STORE_LOOKING) | STEP(STORE_POINTING) | STEP(STORE_IDLE),
    [STORE_ENDED] = 0,
};

static void become(struct cursor_store *s, enum cursor_store_state next)
{
    assert(next == STORE_ENDED ? s->state != STORE_ENDED : may_become[s->state] & STEP(next));
    assert(s->durable <= s->seq);
    s->state = next;
}

void cursor_store_init(struct cursor_store *s, const struct cursor_store_ops *ops,
                       const struct cursor_acks *acks, int64_t max_entries, int64_t named,
                       struct position fallback, bool clean)
{
    *s = (struct cursor_store){
        .ops = ops,
        .acks = *acks,
        .max_entries = max_entries,
        .replay_bytes = REPLAY_BYTES,
        .clean = clean,
        .named = named,
        .fallback = fallback,
        .current = CURSOR_STORE_NO_LEDGER,
        .next = CURSOR_STORE_NO_LEDGER,
        .snapshot = CURSOR_DELTA_NOWHERE,
        .durable_mark_delete = acks->mark_delete,
    };
}

void cursor_store_drop(struct cursor_store *s)
{
    cursor_acks_drop(&s->acks);
    cursor_set_drop(&s->fresh);
    cursor_set_drop(&s->fresh_parts);
}

static void end(struct cursor_store *s, enum err err)
{
    become(s, STORE_ENDED);
    s->ops->ended(s, err);
}

/* ---- writing ------------------------------------------------------------------------------- */

static void note_write(struct cursor_store *s, const struct slice *entries, unsigned n, bool whole)
{
    s->out.seq = s->seq;
    s->out.mark_delete = s->acks.mark_delete;
    s->out.reset = s->reset;
    s->out.relabel = s->relabel;
    s->out.whole = whole;
    s->out.entries = n;
    s->out.bytes = 0;
    for (unsigned i = 0; i < n; i++)
        s->out.bytes += entries[i].len;
    cursor_set_drop(&s->fresh);
    cursor_set_drop(&s->fresh_parts);
    s->reset = s->relabel = false;
    s->due = false;
}

static int64_t ledger_under_way(const struct cursor_store *s)
{
    return s->next != CURSOR_STORE_NO_LEDGER ? s->next : s->current;
}

/* Pulsar's form is the last entry of a cursor that is closed and too large for its node. */
static bool write_form(struct cursor_store *s)
{
    struct slice form = s->ops->form(s);

    if (!form.len)
        return false;
    note_write(s, &form, 1, true);
    s->ops->append(s, ledger_under_way(s), &form, 1);
    return true;
}

static void write_whole(struct cursor_store *s)
{
    int64_t before = s->next != CURSOR_STORE_NO_LEDGER ? CURSOR_DELTA_NOWHERE : s->snapshot;
    struct slice *parts;
    unsigned n;

    s->out.final = s->ending == ENDING_CLOSE;
    if (s->out.final && write_form(s))
        return;
    n = cursor_delta_snapshot(before, &s->acks, &parts);
    assert(n > 0);
    note_write(s, parts, n, true);
    s->ops->append(s, ledger_under_way(s), parts, n);
    mem_free(parts);
}

static bool snapshot_is_due(const struct cursor_store *s)
{
    return s->delta_bytes > s->replay_bytes + REPLAY_RATIO * s->snapshot_bytes;
}

static void write_changes(struct cursor_store *s)
{
    struct slice delta = {0};

    become(s, STORE_WRITING);
    if (!snapshot_is_due(s))
        delta = cursor_delta_changes(s->snapshot, s->reset, s->acks.mark_delete, &s->fresh,
                                     &s->acks.parts, &s->fresh_parts);
    if (!delta.len) {
        write_whole(s);
        return;
    }
    s->out.final = false;
    note_write(s, &delta, 1, false);
    s->ops->append(s, s->current, &delta, 1);
}

static void create(struct cursor_store *s)
{
    become(s, STORE_CREATING);
    s->ops->create(s);
}

static void point(struct cursor_store *s, enum cursor_store_target what)
{
    become(s, STORE_POINTING);
    s->target = what;
    s->ops->point(s, what, ledger_under_way(s));
}

static void look(struct cursor_store *s)
{
    become(s, STORE_LOOKING);
    s->ops->look(s);
}

static bool gave_up_ending(struct cursor_store *s, enum err err)
{
    if (s->ending == ENDING_NOT || s->failures < ENDING_TRIES)
        return false;
    end(s, err);
    return true;
}

static void pause_in(struct cursor_store *s, enum cursor_store_state in, enum err why)
{
    s->failures++;
    if (gave_up_ending(s, why))
        return;
    become(s, STORE_PAUSED);
    s->paused_in = in;
    s->ops->pause(s, why);
}

/* ---- what next ----------------------------------------------------------------------------- */

static bool fits_node(const struct cursor_store *s)
{
    return cursor_acks_holes(&s->acks) <= CURSOR_STORE_INLINE_MAX &&
           s->acks.parts.words <= CURSOR_STORE_INLINE_MAX;
}

static void write_node(struct cursor_store *s, bool final)
{
    s->out.final = final;
    note_write(s, NULL, 0, true);
    point(s, TARGET_INLINE);
}

static void finish(struct cursor_store *s)
{
    if (s->ending == ENDING_DELETE) {
        point(s, TARGET_GONE);
    } else if (s->clean && s->seq == 0) {
        end(s, ERR_OK);
    } else if (fits_node(s)) {
        write_node(s, true);
    } else if (s->current == CURSOR_STORE_NO_LEDGER) {
        create(s);
    } else {
        become(s, STORE_WRITING);
        write_whole(s);
    }
}

/* The ledger that is written to is named by nobody any more. */
static void write_anew(struct cursor_store *s)
{
    if (s->current != CURSOR_STORE_NO_LEDGER && s->current != s->behind_named)
        s->ops->discard(s, s->current);
    s->current = CURSOR_STORE_NO_LEDGER;
    s->named = s->behind_named;
    s->fallback = s->behind_fallback;
    s->snapshot = CURSOR_DELTA_NOWHERE;
    s->clean = false;
    s->anew = true;
    if (s->ending != ENDING_NOT)
        finish(s);
    else if (fits_node(s))
        write_node(s, false);
    else
        create(s);
}

static void count_at_once(struct cursor_store *s)
{
    note_write(s, NULL, 0, true);
    s->durable = s->out.seq;
    s->durable_mark_delete = s->out.mark_delete;
}

static void go_on(struct cursor_store *s)
{
    if (s->state != STORE_IDLE)
        return;
    if (s->passing) {
        count_at_once(s);
    } else if (s->behind) {
        write_anew(s);
    } else if (s->ending != ENDING_NOT) {
        finish(s);
    } else if (s->seq == s->durable) {
        s->due = false;
    } else if (s->wanted <= s->durable && !s->due) {
        if (!s->gathering)
            s->ops->gather(s);
        s->gathering = true;
    } else if (s->relabel && s->current == CURSOR_STORE_NO_LEDGER && fits_node(s)) {
        write_node(s, false);
    } else if (s->current == CURSOR_STORE_NO_LEDGER || s->entries >= s->roll_at) {
        create(s);
    } else {
        write_changes(s);
    }
}

/* What was under way is durable. */
static void confirm(struct cursor_store *s)
{
    s->failures = 0;
    s->durable = s->out.seq;
    s->durable_mark_delete = s->out.mark_delete;
    become(s, STORE_IDLE);
    s->ops->durable(s);
    if (s->ending == ENDING_CLOSE && s->out.final)
        end(s, ERR_OK);
    else
        go_on(s);
}

/* ---- answers ------------------------------------------------------------------------------- */

static void try_ending_again(struct cursor_store *s, enum err err)
{
    s->failures++;
    if (gave_up_ending(s, err))
        return;
    become(s, STORE_IDLE);
    go_on(s);
}

/* An end that came meanwhile may need no ledger. */
static bool is_needed(const struct cursor_store *s)
{
    return s->ending == ENDING_NOT || (s->ending == ENDING_CLOSE && !fits_node(s));
}

/* The store may have forgotten a ledger that was made before it was put back. */
static bool is_forgotten(const struct cursor_store *s)
{
    return s->behind && !s->anew;
}

void cursor_store_created(struct cursor_store *s, enum err err, int64_t ledger)
{
    assert(s->state == STORE_CREATING);
    if (err == ERR_OK && is_needed(s) && !is_forgotten(s)) {
        s->next = ledger;
        become(s, STORE_FILLING);
        write_whole(s);
    } else if (err == ERR_OK) {
        s->ops->discard(s, ledger);
        become(s, STORE_IDLE);
        go_on(s);
    } else if (s->ending != ENDING_NOT) {
        try_ending_again(s, err);
    } else if (s->current != CURSOR_STORE_NO_LEDGER) {
        s->roll_at = s->entries + ROLL_AGAIN;
        become(s, STORE_IDLE);
        go_on(s);
    } else {
        pause_in(s, STORE_CREATING, err);
    }
}

static void count_entries(struct cursor_store *s)
{
    if (s->out.whole) {
        s->snapshot = s->entries;
        s->snapshot_bytes = s->out.bytes;
        s->delta_bytes = 0;
    } else {
        s->delta_bytes += s->out.bytes + ENTRY_COST;
    }
    s->entries += s->out.entries;
}

/* What a failed write took from `fresh` is known to no delta any more, so that the ledger before
 * cannot go on either when a roll fails. */
static void drop_ledgers(struct cursor_store *s)
{
    if (s->next != CURSOR_STORE_NO_LEDGER)
        s->ops->discard(s, s->next);
    if (s->current != CURSOR_STORE_NO_LEDGER)
        s->ops->drop(s, s->current);
    s->next = s->current = CURSOR_STORE_NO_LEDGER;
}

/* What was to be named is given up. */
static void begin_again(struct cursor_store *s)
{
    if (s->next != CURSOR_STORE_NO_LEDGER)
        s->ops->discard(s, s->next);
    s->next = CURSOR_STORE_NO_LEDGER;
    s->target = TARGET_NONE;
    become(s, STORE_IDLE);
    go_on(s);
}

static void ledger_failed(struct cursor_store *s, enum err err)
{
    drop_ledgers(s);
    s->target = TARGET_NONE;
    if (err == ERR_FENCED)
        look(s);
    else if (s->ending != ENDING_NOT)
        try_ending_again(s, err);
    else if (s->failures++ > 0)
        pause_in(s, STORE_CREATING, err);
    else
        create(s);
}

void cursor_store_appended(struct cursor_store *s, enum err err)
{
    assert(s->state == STORE_FILLING || s->state == STORE_WRITING);
    if (err) {
        ledger_failed(s, err);
    } else if (is_forgotten(s)) {
        begin_again(s);
    } else if (s->state == STORE_FILLING) {
        point(s, TARGET_LEDGER);
    } else {
        count_entries(s);
        if (s->out.relabel ||
            (s->out.reset && position_compare(s->out.mark_delete, s->fallback) < 0))
            point(s, TARGET_LEDGER);
        else
            confirm(s);
    }
}

static void named_ledger(struct cursor_store *s)
{
    int64_t old = s->named;

    s->fallback = s->out.mark_delete;
    if (s->next == CURSOR_STORE_NO_LEDGER)
        return;
    s->named = s->current = s->next;
    s->next = CURSOR_STORE_NO_LEDGER;
    s->entries = 0;
    s->roll_at = s->max_entries;
    count_entries(s);
    if (old != CURSOR_STORE_NO_LEDGER)
        s->ops->discard(s, old);
}

/* Written over what the store said: what that named goes, unless it goes anyway. */
static void is_not_behind(struct cursor_store *s)
{
    if (!s->behind)
        return;
    s->behind = false;
    if (s->behind_named != CURSOR_STORE_NO_LEDGER && s->behind_named != s->named &&
        s->behind_named != s->current && s->behind_named != s->next)
        s->ops->discard(s, s->behind_named);
}

static void point_done(struct cursor_store *s)
{
    is_not_behind(s);
    if (s->target == TARGET_LEDGER) {
        named_ledger(s);
        confirm(s);
        return;
    }
    if (s->named != CURSOR_STORE_NO_LEDGER)
        s->ops->discard(s, s->named);
    s->named = s->current = CURSOR_STORE_NO_LEDGER;
    s->fallback = s->out.mark_delete;
    if (s->target == TARGET_INLINE)
        confirm(s);
    else
        end(s, ERR_OK);
}

void cursor_store_pointed(struct cursor_store *s, enum err err)
{
    assert(s->state == STORE_POINTING);
    if (err)
        look(s);
    else
        point_done(s);
}

void cursor_store_looked(struct cursor_store *s, enum err err, enum cursor_store_seen seen)
{
    assert(s->state == STORE_LOOKING);
    if (err) {
        pause_in(s, STORE_LOOKING, err);
    } else if (seen == SEEN_OTHER) {
        end(s, ERR_FENCED);
    } else if (s->target == TARGET_NONE) {
        if (s->ending != ENDING_NOT)
            try_ending_again(s, ERR_FENCED);
        else
            create(s);
    } else if (seen == SEEN_WRITTEN) {
        point_done(s);
    } else if (s->failures++ > 0) {
        pause_in(s, STORE_POINTING, ERR_UNKNOWN_STATE);
    } else {
        point(s, s->target);
    }
}

void cursor_store_resume(struct cursor_store *s)
{
    if (s->state != STORE_PAUSED)
        return;
    if (s->paused_in == STORE_LOOKING)
        look(s);
    else if (s->paused_in == STORE_POINTING)
        point(s, s->target);
    else
        create(s);
}

void cursor_store_due(struct cursor_store *s)
{
    s->gathering = false;
    s->due = true;
    go_on(s);
}

void cursor_store_rewound(struct cursor_store *s, int64_t named, struct position fallback)
{
    assert(s->state != STORE_POINTING);
    if (s->state == STORE_ENDED)
        return;
    s->behind = true;
    s->anew = false;
    s->behind_named = named;
    s->behind_fallback = fallback;
    if (s->state == STORE_LOOKING || s->state == STORE_PAUSED)
        begin_again(s);
    else
        go_on(s);
}

/* ---- commands ------------------------------------------------------------------------------ */

/* What comes too late changes nothing: it will be delivered again. */
static bool takes(const struct cursor_store *s)
{
    return s->state != STORE_ENDED && s->ending == ENDING_NOT;
}

static void changed(struct cursor_store *s)
{
    s->seq++;
    go_on(s);
}

static void note_acked(struct cursor_store *s, struct position p)
{
    if (position_compare(p, s->acks.mark_delete) > 0)
        cursor_set_add(&s->fresh, p.ledger, p.entry, p.entry);
}

static void forget_passed(struct cursor_store *s, struct position before)
{
    if (position_compare(before, s->acks.mark_delete) >= 0)
        return;
    cursor_set_remove_upto(&s->fresh, s->acks.mark_delete);
    cursor_set_remove_upto(&s->fresh_parts, s->acks.mark_delete);
}

void cursor_store_ack(struct cursor_store *s, const struct position *at, unsigned n)
{
    struct position before = s->acks.mark_delete;
    bool any = false;

    if (!takes(s))
        return;
    for (unsigned i = 0; i < n; i++) {
        if (!cursor_acks_one(&s->acks, at[i]))
            continue;
        any = true;
        note_acked(s, at[i]);
    }
    forget_passed(s, before);
    if (any)
        changed(s);
}

bool cursor_store_ack_part(struct cursor_store *s, struct position at, const uint64_t *words,
                           unsigned n)
{
    struct position before = s->acks.mark_delete;
    enum cursor_parts_outcome outcome;

    if (!takes(s))
        return false;
    outcome = cursor_acks_part(&s->acks, at, words, n);
    if (outcome == PARTS_EMPTY)
        note_acked(s, at);
    else if (outcome == PARTS_KEPT)
        cursor_set_add(&s->fresh_parts, at.ledger, at.entry, at.entry);
    forget_passed(s, before);
    if (outcome == PARTS_EMPTY || outcome == PARTS_KEPT)
        changed(s);
    return outcome != PARTS_FULL;
}

void cursor_store_ack_upto(struct cursor_store *s, struct position p)
{
    struct position before = s->acks.mark_delete;

    if (!takes(s) || !cursor_acks_upto(&s->acks, p))
        return;
    forget_passed(s, before);
    changed(s);
}

void cursor_store_reset(struct cursor_store *s, struct position mark_delete)
{
    if (!takes(s))
        return;
    cursor_acks_reset(&s->acks, mark_delete);
    cursor_set_drop(&s->fresh);
    cursor_set_drop(&s->fresh_parts);
    s->reset = true;
    changed(s);
}

void cursor_store_relabel(struct cursor_store *s)
{
    if (!takes(s))
        return;
    s->relabel = true;
    changed(s);
}

bool cursor_store_want(struct cursor_store *s)
{
    s->wanted = s->seq;
    if (s->seq == s->durable)
        return true;
    go_on(s);
    return false;
}

void cursor_store_end(struct cursor_store *s, enum cursor_store_ending how)
{
    if (s->state == STORE_ENDED)
        return;
    s->ending = how;
    if (s->state == STORE_PAUSED && s->paused_in == STORE_CREATING)
        become(s, STORE_IDLE);
    go_on(s);
}
