#include "tests/unit/broker/managed_ledger/cursor_world.h"

#include <string.h>

#include "broker/managed_ledger/cursor_delta.h"
#include "broker/managed_ledger/cursor_record.h"
#include "common/mem.h"
#include "common/rng.h"
#include "tests/lib/suite.h"

static struct world *world_of(struct cursor_store *s)
{
    return container_of(s, struct world, store);
}

static struct file *file_of(struct world *w, int64_t id)
{
    for (unsigned i = 0; i < w->n; i++)
        if (w->files[i].id == id)
            return &w->files[i];
    ck_abort_msg("no ledger %lld", (long long)id);
    return NULL;
}

/* ---- effects --------------------------------------------------------------------------------- */

static void begin(struct cursor_store *s, enum doing what)
{
    struct world *w = world_of(s);
    ck_assert(!w->ended);
    ck_assert_int_eq(w->doing, NOTHING);
    w->doing = what;
}

static void do_create(struct cursor_store *s)
{
    begin(s, CREATE);
}

static void do_append(struct cursor_store *s, int64_t ledger, const struct slice *entries,
                      unsigned n)
{
    struct world *w = world_of(s);
    begin(s, APPEND);
    ck_assert_uint_le(n, 8);
    memcpy(w->out, entries, n * sizeof(*entries));
    w->n_out = n;
    w->out_ledger = ledger;
}

ManagedLedger__ManagedCursorInfo *cursor_world_record(struct slice value)
{
    ManagedLedger__ManagedCursorInfo *r;
    ck_assert_int_eq(cursor_record_read(slice_view(value), &r), ERR_OK);
    return r;
}

static void do_point(struct cursor_store *s, enum cursor_store_target what, int64_t ledger)
{
    struct world *w = world_of(s);
    ManagedLedger__ManagedCursorInfo *r = cursor_world_record(w->node);

    begin(s, POINT);
    w->target = what;
    slice_drop(&w->attempt);
    r->has_lastactive = 1;
    r->lastactive = w->label;
    w->attempt = cursor_record_make(r, what == TARGET_LEDGER ? ledger : CURSOR_STORE_NO_LEDGER,
                                    s->out.mark_delete, what == TARGET_INLINE ? &s->acks : NULL);
    w->attempt_version = w->version;
    managed_ledger__managed_cursor_info__free_unpacked(r, NULL);
}

static void do_look(struct cursor_store *s)
{
    begin(s, LOOK);
}

static void do_pause(struct cursor_store *s, enum err why)
{
    (void)why;
    begin(s, PAUSE);
}

static void do_gather(struct cursor_store *s)
{
    ck_assert(!world_of(s)->gathering);
    world_of(s)->gathering = true;
}

static void do_drop(struct cursor_store *s, int64_t ledger)
{
    (void)file_of(world_of(s), ledger);
}

static void do_discard(struct cursor_store *s, int64_t ledger)
{
    struct world *w = world_of(s);
    ManagedLedger__ManagedCursorInfo *r = cursor_world_record(w->node);

    /* Nothing is deleted that the node names. */
    ck_assert(!w->node_there || r->cursorsledgerid != ledger);
    managed_ledger__managed_cursor_info__free_unpacked(r, NULL);
    file_of(w, ledger)->there = false;
}

static struct slice do_form(struct cursor_store *s)
{
    ManagedLedger__ManagedCursorInfo *r = cursor_world_record(world_of(s)->node);
    struct slice form = cursor_position_write(&s->acks, r);
    managed_ledger__managed_cursor_info__free_unpacked(r, NULL);
    return form;
}

static void do_durable(struct cursor_store *s)
{
    ck_assert(!world_of(s)->ended);
}

static void do_ended(struct cursor_store *s, enum err err)
{
    world_of(s)->ended = true;
    world_of(s)->end_err = err;
}

static const struct cursor_store_ops ops = {do_create, do_append,  do_point, do_look,
                                            do_pause,  do_gather,  do_drop,  do_discard,
                                            do_form,   do_durable, do_ended};

/* ---- the power goes -------------------------------------------------------------------------- */

void cursor_world_read_back(struct world *w, struct cursor_acks *acks, bool *clean)
{
    ManagedLedger__ManagedCursorInfo *r = cursor_world_record(w->node);
    struct file *f = r->cursorsledgerid >= 0 ? file_of(w, r->cursorsledgerid) : NULL;
    struct cursor_replay replay;
    int64_t start;

    cursor_acks_init(acks, &w->segments, POSITION_EARLIEST);
    *clean = true;
    if (!f) {
        cursor_record_load(r, acks);
    } else if (!cursor_delta_is_ours(slice_view(f->at[f->n - 1]))) {
        ck_assert_int_eq(cursor_position_read(slice_view(f->at[f->n - 1]), acks, r), ERR_OK);
    } else {
        *clean = false;
        ck_assert(f->there);
        ck_assert_int_eq(cursor_delta_start(slice_view(f->at[f->n - 1]), f->n - 1, &start), ERR_OK);
        cursor_replay_init(&replay, acks);
        for (; start < f->n; start++)
            ck_assert_int_eq(cursor_replay_feed(&replay, start, slice_view(f->at[start])), ERR_OK);
        ck_assert_int_eq(cursor_replay_end(&replay), ERR_OK);
        cursor_replay_drop(&replay);
    }
    managed_ledger__managed_cursor_info__free_unpacked(r, NULL);
}

static void set_bits(struct state *s, int64_t ledger, int64_t first, int64_t last)
{
    for (int64_t i = ledger * PER_LEDGER + first; i <= ledger * PER_LEDGER + last; i++)
        s->acked[i / 8] |= (uint8_t)(1 << i % 8);
}

static struct state state_of(const struct cursor_acks *acks)
{
    struct cursor_set_walk w = cursor_set_walk(&acks->beyond);
    struct state s = {{0}};

    for (int64_t l = 0; l < LEDGERS && l <= acks->mark_delete.ledger; l++)
        set_bits(&s, l, 0, l < acks->mark_delete.ledger ? PER_LEDGER - 1 : acks->mark_delete.entry);
    while (cursor_set_walk_next(&w))
        if (w.ledger < LEDGERS)
            set_bits(&s, w.ledger, w.first, w.last);
    return s;
}

/* Labels grow: an older one is one that was confirmed and lost. */
static void check_label(const struct world *w)
{
    ManagedLedger__ManagedCursorInfo *r = cursor_world_record(w->node);

    ck_assert_int_ge(r->lastactive, w->labels[w->store.durable]);
    managed_ledger__managed_cursor_info__free_unpacked(r, NULL);
}

void cursor_world_check(struct world *w)
{
    struct cursor_acks acks;
    struct state now;
    bool clean, found = false;

    if (!w->node_there || w->node_foreign || w->store.behind)
        return;
    check_label(w);
    cursor_world_read_back(w, &acks, &clean);
    now = state_of(&acks);
    for (uint64_t k = w->store.durable; k <= w->store.seq && !found; k++)
        found = memcmp(&w->history[k], &now, sizeof now) == 0;
    ck_assert(found);
    cursor_acks_drop(&acks);
}

/* ---- answers --------------------------------------------------------------------------------- */

bool cursor_world_in(struct world *w, unsigned of_hundred)
{
    return rng_below(&w->seed, 100) < of_hundred;
}

static void answer_create(struct world *w)
{
    if (cursor_world_in(w, w->trouble)) {
        cursor_store_created(&w->store, ERR_NOT_ENOUGH_BOOKIES, -1);
        return;
    }
    ck_assert_uint_lt(w->n, FILES);
    w->files[w->n] = (struct file){.id = 100 + w->n, .there = true};
    w->files[w->n].at = mem_alloc(FILE_MAX * sizeof(struct slice));
    w->n++;
    cursor_store_created(&w->store, ERR_OK, w->files[w->n - 1].id);
}

static void answer_append(struct world *w)
{
    bool bad = cursor_world_in(w, w->trouble);
    unsigned stored = bad ? (unsigned)rng_below(&w->seed, w->n_out + 1) : w->n_out;
    struct file *f = file_of(w, w->out_ledger);

    ck_assert_uint_le(f->n + stored, FILE_MAX);
    for (unsigned i = 0; i < w->n_out; i++) {
        ck_assert_uint_le(w->out[i].len, CURSOR_RECORD_ENTRY_MAX);
        if (i < stored)
            f->at[f->n++] = w->out[i];
        else
            slice_drop(&w->out[i]);
    }
    cursor_world_check(w);
    cursor_store_appended(&w->store, !bad                     ? ERR_OK
                                     : cursor_world_in(w, 20) ? ERR_FENCED
                                                              : ERR_TIMEOUT);
}

static void apply_point(struct world *w)
{
    if (w->target == TARGET_GONE) {
        w->node_there = false;
        return;
    }
    slice_drop(&w->node);
    w->node = slice_share(w->attempt);
    w->version++;
}

static void answer_point(struct world *w)
{
    bool bad = cursor_world_in(w, w->trouble);

    if (!bad || cursor_world_in(w, 50))
        apply_point(w);
    cursor_world_check(w);
    cursor_store_pointed(&w->store, bad ? ERR_UNKNOWN_STATE : ERR_OK);
}

static void answer_look(struct world *w)
{
    enum cursor_store_seen seen = SEEN_BEFORE;

    if (cursor_world_in(w, w->trouble)) {
        cursor_store_looked(&w->store, ERR_NOT_READY, SEEN_OTHER);
        return;
    }
    if (w->node_foreign)
        seen = SEEN_OTHER;
    else if (w->store.target != TARGET_NONE &&
             (!w->node_there || w->version == w->attempt_version + 1))
        seen = SEEN_WRITTEN;
    cursor_store_looked(&w->store, ERR_OK, seen);
}

void cursor_world_answer(struct world *w)
{
    enum doing what = w->doing;

    w->doing = NOTHING;
    if (what == CREATE)
        answer_create(w);
    else if (what == APPEND)
        answer_append(w);
    else if (what == POINT)
        answer_point(w);
    else if (what == LOOK)
        answer_look(w);
    else if (what == PAUSE)
        cursor_store_resume(&w->store);
}

/* ---- what users do --------------------------------------------------------------------------- */

/* The state after the change that is about to be made is known only once it was made, and by
 * then it may be on its way: so it is noted before anything can answer. */
void cursor_world_note(struct world *w)
{
    if (w->store.seq >= w->room) {
        w->room = w->room ? w->room * 2 : 64;
        w->history = mem_resize(w->history, w->room * sizeof(*w->history));
        w->labels = mem_resize(w->labels, w->room * sizeof(*w->labels));
    }
    w->labels[w->store.seq] = w->label;
    w->history[w->store.seq] = state_of(&w->store.acks);
}

static struct position somewhere(struct world *w)
{
    return (struct position){(int64_t)rng_below(&w->seed, LEDGERS),
                             (int64_t)rng_below(&w->seed, PER_LEDGER)};
}

void cursor_world_relabel(struct world *w)
{
    w->label++;
    cursor_store_relabel(&w->store);
}

static void use(struct world *w)
{
    struct position at[64];
    uint64_t what = rng_below(&w->seed, 200);
    unsigned n = 1 + (unsigned)rng_below(&w->seed, cursor_world_in(w, 50) ? 3 : 64);

    for (unsigned i = 0; i < n; i++)
        at[i] = somewhere(w);
    if (what < 1)
        cursor_store_reset(&w->store, at[0]);
    else if (what < 2)
        cursor_store_ack_upto(&w->store, (struct position){at[0].ledger, at[0].entry / 8});
    else if (what < 6)
        cursor_world_relabel(w);
    else
        cursor_store_ack(&w->store, at, n);
    cursor_world_note(w);
    if (cursor_world_in(w, 50))
        cursor_store_want(&w->store);
}

static void start(struct world *w, struct cursor_acks *acks, int64_t named, bool clean)
{
    ManagedLedger__ManagedCursorInfo *r = cursor_world_record(w->node);

    cursor_store_init(&w->store, &ops, acks, w->max_entries, named, cursor_record_mark_delete(r),
                      clean);
    if (w->replay_bytes)
        w->store.replay_bytes = w->replay_bytes;
    w->label = r->lastactive;
    managed_ledger__managed_cursor_info__free_unpacked(r, NULL);
    w->doing = NOTHING;
    w->gathering = w->ended = false;
    cursor_world_note(w);
}

void cursor_world_reopen(struct world *w)
{
    ManagedLedger__ManagedCursorInfo *r = cursor_world_record(w->node);
    int64_t named = r->cursorsledgerid;
    struct cursor_acks acks;
    bool clean;

    if (w->doing == APPEND)
        for (unsigned i = 0; i < w->n_out; i++)
            slice_drop(&w->out[i]);
    cursor_world_check(w);
    cursor_world_read_back(w, &acks, &clean);
    cursor_store_drop(&w->store);
    start(w, &acks, named, clean);
    managed_ledger__managed_cursor_info__free_unpacked(r, NULL);
}

struct world *cursor_world_new(uint64_t seed, unsigned trouble)
{
    struct world *w = mem_new(struct world);
    ManagedLedger__ManagedCursorInfo empty;
    struct cursor_acks acks;

    w->seed = seed;
    w->trouble = trouble;
    w->max_entries = 3 + (int64_t)rng_below(&w->seed, 12);
    w->replay_bytes = trouble ? 1 + rng_below(&w->seed, 1500) : 0;
    for (int64_t l = 0; l < LEDGERS; l++)
        segments_add(&w->segments, (struct segment){.ledger = l, .entries = PER_LEDGER});
    cursor_acks_init(&acks, &w->segments, (struct position){0, -1});
    managed_ledger__managed_cursor_info__init(&empty);
    w->node = cursor_record_make(&empty, CURSOR_STORE_NO_LEDGER, acks.mark_delete, &acks);
    w->node_there = true;
    start(w, &acks, CURSOR_STORE_NO_LEDGER, true);
    return w;
}

void cursor_world_drop(struct world *w)
{
    for (unsigned i = 0; i < w->n; i++)
        for (unsigned k = 0; k < w->files[i].n; k++)
            slice_drop(&w->files[i].at[k]);
    for (unsigned i = 0; i < w->n; i++)
        mem_free(w->files[i].at);
    if (w->doing == APPEND)
        for (unsigned i = 0; i < w->n_out; i++)
            slice_drop(&w->out[i]);
    cursor_store_drop(&w->store);
    segments_clear(&w->segments);
    slice_drop(&w->node);
    slice_drop(&w->attempt);
    mem_free(w->history);
    mem_free(w->labels);
    mem_free(w);
}

void cursor_world_step(struct world *w)
{
    if (w->doing != NOTHING && cursor_world_in(w, 60))
        cursor_world_answer(w);
    else if (w->gathering && cursor_world_in(w, 30)) {
        w->gathering = false;
        cursor_store_due(&w->store);
    } else {
        use(w);
    }
}

void cursor_world_settle(struct world *w)
{
    while (!w->ended && (w->doing != NOTHING || w->gathering)) {
        if (w->gathering)
            cursor_store_due(&w->store);
        w->gathering = false;
        cursor_world_answer(w);
    }
}
