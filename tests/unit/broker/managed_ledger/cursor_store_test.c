#include "broker/managed_ledger/cursor_store.h"

#include <string.h>

#include "broker/managed_ledger/cursor_delta.h"
#include "broker/managed_ledger/cursor_record.h"
#include "common/mem.h"
#include "common/rng.h"
#include "tests/lib/suite.h"

/* A world where every write may fail, or happen and seem to fail; after any of them the power
 * may go: what is read back must be the state after some change, none that is confirmed lost. */

enum { LEDGERS = 3, PER_LEDGER = 3000, BITS = LEDGERS * PER_LEDGER, FILES = 1000, FILE_MAX = 2048 };
enum doing { NOTHING, CREATE, APPEND, POINT, LOOK, PAUSE };

struct file {
    int64_t id;
    bool there;
    struct slice *at;
    unsigned n;
};

struct state {
    uint8_t acked[BITS / 8 + 1];
};

struct world {
    struct cursor_store store;
    struct segments segments;
    struct file files[FILES];
    unsigned n;
    struct slice node;
    bool node_there, node_foreign;
    int64_t version;

    enum doing doing;
    struct slice out[8];
    unsigned n_out;
    int64_t out_ledger;
    struct slice attempt;
    int64_t attempt_version;
    enum cursor_store_target target;
    bool gathering, ended;
    enum err end_err;

    struct state *history; /* after each change */
    int64_t *labels;       /* likewise: the number that stands for its properties */
    int64_t label;
    size_t room;
    uint64_t seed;
    int64_t max_entries;
    uint64_t replay_bytes;
    unsigned trouble; /* answers of a hundred that are bad */
};

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

static ManagedLedger__ManagedCursorInfo *record_of(struct slice value)
{
    ManagedLedger__ManagedCursorInfo *r;
    ck_assert_int_eq(cursor_record_read(slice_view(value), &r), ERR_OK);
    return r;
}

static void do_point(struct cursor_store *s, enum cursor_store_target what, int64_t ledger)
{
    struct world *w = world_of(s);
    ManagedLedger__ManagedCursorInfo *r = record_of(w->node);

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
    ManagedLedger__ManagedCursorInfo *r = record_of(w->node);

    /* Nothing is deleted that the node names. */
    ck_assert(!w->node_there || r->cursorsledgerid != ledger);
    managed_ledger__managed_cursor_info__free_unpacked(r, NULL);
    file_of(w, ledger)->there = false;
}

static struct slice do_form(struct cursor_store *s)
{
    ManagedLedger__ManagedCursorInfo *r = record_of(world_of(s)->node);
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

static void read_back(struct world *w, struct cursor_acks *acks, bool *clean)
{
    ManagedLedger__ManagedCursorInfo *r = record_of(w->node);
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
    ManagedLedger__ManagedCursorInfo *r = record_of(w->node);

    ck_assert_int_ge(r->lastactive, w->labels[w->store.durable]);
    managed_ledger__managed_cursor_info__free_unpacked(r, NULL);
}

static void check_read_back(struct world *w)
{
    struct cursor_acks acks;
    struct state now;
    bool clean, found = false;

    if (!w->node_there || w->node_foreign || w->store.behind)
        return;
    check_label(w);
    read_back(w, &acks, &clean);
    now = state_of(&acks);
    for (uint64_t k = w->store.durable; k <= w->store.seq && !found; k++)
        found = memcmp(&w->history[k], &now, sizeof now) == 0;
    ck_assert(found);
    cursor_acks_drop(&acks);
}

/* ---- answers --------------------------------------------------------------------------------- */

static bool in(struct world *w, unsigned of_hundred)
{
    return rng_below(&w->seed, 100) < of_hundred;
}

static void answer_create(struct world *w)
{
    if (in(w, w->trouble)) {
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
    bool bad = in(w, w->trouble);
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
    check_read_back(w);
    cursor_store_appended(&w->store, !bad ? ERR_OK : in(w, 20) ? ERR_FENCED : ERR_TIMEOUT);
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
    bool bad = in(w, w->trouble);

    if (!bad || in(w, 50))
        apply_point(w);
    check_read_back(w);
    cursor_store_pointed(&w->store, bad ? ERR_UNKNOWN_STATE : ERR_OK);
}

static void answer_look(struct world *w)
{
    enum cursor_store_seen seen = SEEN_BEFORE;

    if (in(w, w->trouble)) {
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

static void answer(struct world *w)
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
static void note(struct world *w)
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

static void relabel(struct world *w)
{
    w->label++;
    cursor_store_relabel(&w->store);
}

static void use(struct world *w)
{
    struct position at[64];
    uint64_t what = rng_below(&w->seed, 200);
    unsigned n = 1 + (unsigned)rng_below(&w->seed, in(w, 50) ? 3 : 64);

    for (unsigned i = 0; i < n; i++)
        at[i] = somewhere(w);
    if (what < 1)
        cursor_store_reset(&w->store, at[0]);
    else if (what < 2)
        cursor_store_ack_upto(&w->store, (struct position){at[0].ledger, at[0].entry / 8});
    else if (what < 6)
        relabel(w);
    else
        cursor_store_ack(&w->store, at, n);
    note(w);
    if (in(w, 50))
        cursor_store_want(&w->store);
}

static void start(struct world *w, struct cursor_acks *acks, int64_t named, bool clean)
{
    ManagedLedger__ManagedCursorInfo *r = record_of(w->node);

    cursor_store_init(&w->store, &ops, acks, w->max_entries, named, cursor_record_mark_delete(r),
                      clean);
    if (w->replay_bytes)
        w->store.replay_bytes = w->replay_bytes;
    w->label = r->lastactive;
    managed_ledger__managed_cursor_info__free_unpacked(r, NULL);
    w->doing = NOTHING;
    w->gathering = w->ended = false;
    note(w);
}

static void reopen(struct world *w)
{
    ManagedLedger__ManagedCursorInfo *r = record_of(w->node);
    int64_t named = r->cursorsledgerid;
    struct cursor_acks acks;
    bool clean;

    if (w->doing == APPEND)
        for (unsigned i = 0; i < w->n_out; i++)
            slice_drop(&w->out[i]);
    check_read_back(w);
    read_back(w, &acks, &clean);
    cursor_store_drop(&w->store);
    start(w, &acks, named, clean);
    managed_ledger__managed_cursor_info__free_unpacked(r, NULL);
}

static struct world *world_new(uint64_t seed, unsigned trouble)
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

static void world_drop(struct world *w)
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

static void step(struct world *w)
{
    if (w->doing != NOTHING && in(w, 60))
        answer(w);
    else if (w->gathering && in(w, 30)) {
        w->gathering = false;
        cursor_store_due(&w->store);
    } else {
        use(w);
    }
}

static void settle(struct world *w)
{
    while (!w->ended && (w->doing != NOTHING || w->gathering)) {
        if (w->gathering)
            cursor_store_due(&w->store);
        w->gathering = false;
        answer(w);
    }
}

START_TEST(confirmed_acks_survive_any_crash)
{
    struct world *w = world_new((uint64_t)_i + 1, (unsigned)_i % 4 * 12);

    for (int i = 0; i < 1000; i++) {
        step(w);
        ck_assert(!w->ended);
        if (in(w, 1))
            reopen(w);
    }
    w->trouble = 0;
    cursor_store_want(&w->store);
    settle(w);
    ck_assert_uint_eq(w->store.durable, w->store.seq);
    check_read_back(w);
    world_drop(w);
}
END_TEST

static unsigned files_there(const struct world *w)
{
    unsigned n = 0;
    for (unsigned i = 0; i < w->n; i++)
        n += w->files[i].there;
    return n;
}

START_TEST(closes_in_pulsars_form_whatever_is_under_way)
{
    struct world *w = world_new((uint64_t)_i + 1, 0);
    ManagedLedger__ManagedCursorInfo *r;

    for (int i = 0; i < 20 + _i * 4; i++)
        step(w);
    cursor_store_end(&w->store, ENDING_CLOSE);
    w->trouble = _i % 2 ? 10 : 0;
    settle(w);
    ck_assert(w->ended);
    if (w->end_err == ERR_OK) {
        bool clean;
        struct cursor_acks acks;
        ck_assert_uint_eq(w->store.durable, w->store.seq);
        check_read_back(w);
        read_back(w, &acks, &clean);
        ck_assert(clean);
        cursor_acks_drop(&acks);
        r = record_of(w->node);
        ck_assert_int_eq(r->cursorsledgerid >= 0,
                         cursor_acks_holes(&w->store.acks) > CURSOR_STORE_INLINE_MAX);
        ck_assert_uint_eq(files_there(w), r->cursorsledgerid >= 0);
        managed_ledger__managed_cursor_info__free_unpacked(r, NULL);
    } else {
        ck_assert_uint_gt(w->trouble, 0);
        check_read_back(w);
    }
    world_drop(w);
}
END_TEST

START_TEST(an_untouched_cursor_closes_without_a_write)
{
    struct world *w = world_new(1, 0);

    cursor_store_end(&w->store, ENDING_CLOSE);
    ck_assert(w->ended);
    ck_assert_int_eq(w->end_err, ERR_OK);
    world_drop(w);
}
END_TEST

START_TEST(deletes_whatever_is_under_way)
{
    struct world *w = world_new((uint64_t)_i + 1, 0);

    for (int i = 0; i < _i * 3; i++)
        step(w);
    cursor_store_end(&w->store, ENDING_DELETE);
    w->trouble = _i % 2 ? 10 : 0;
    settle(w);
    ck_assert(w->ended);
    if (w->end_err == ERR_OK) {
        ck_assert(!w->node_there);
        ck_assert_uint_eq(files_there(w), 0);
    }
    world_drop(w);
}
END_TEST

/* ---- the metadata store is put back ---- */

struct kept {
    struct slice node;
    int64_t version;
    bool there[FILES];
};

static struct kept keep(const struct world *w)
{
    struct kept k = {.node = slice_share(w->node), .version = w->version};

    for (unsigned i = 0; i < w->n; i++)
        k.there[i] = w->files[i].there;
    return k;
}

/* Ledgers that were made since are forgotten, those deleted since are there again. */
static void put_back(struct world *w, struct kept *k)
{
    slice_drop(&w->node);
    w->node = k->node;
    w->version = k->version;
    for (unsigned i = 0; i < w->n; i++)
        w->files[i].there = k->there[i];
}

static void tell_behind(struct world *w)
{
    ManagedLedger__ManagedCursorInfo *r = record_of(w->node);

    cursor_store_rewound(&w->store, r->cursorsledgerid, cursor_record_mark_delete(r));
    managed_ledger__managed_cursor_info__free_unpacked(r, NULL);
}

/* A write of the node that was under way meets the old one, and looks. */
static void find_out(struct world *w)
{
    if (w->doing == POINT) {
        w->doing = NOTHING;
        cursor_store_pointed(&w->store, ERR_BAD_VERSION);
    }
    if (w->doing == LOOK || w->doing == PAUSE)
        w->doing = NOTHING;
    tell_behind(w);
}

START_TEST(what_a_store_has_forgotten_is_written_again)
{
    struct world *w = world_new((uint64_t)_i + 1, 0);
    struct kept k;

    for (int i = 0; i < 5 + _i % 50; i++)
        step(w);
    k = keep(w);
    for (int i = 0; i < 3 + _i % 31; i++)
        step(w);
    w->trouble = _i % 2 ? 10 : 0;
    put_back(w, &k);
    find_out(w);
    cursor_store_want(&w->store);
    settle(w);
    ck_assert(!w->ended);
    ck_assert(!w->store.behind);
    ck_assert_uint_eq(w->store.durable, w->store.seq);
    check_read_back(w);
    for (int i = 0; i < 100; i++)
        step(w);
    w->trouble = 0;
    if (w->doing == PAUSE)
        answer(w);
    cursor_store_end(&w->store, _i % 3 ? ENDING_CLOSE : ENDING_DELETE);
    settle(w);
    ck_assert(w->ended);
    check_read_back(w);
    world_drop(w);
}
END_TEST

static void ack(struct world *w, int64_t entry)
{
    cursor_store_ack(&w->store, &(struct position){0, entry}, 1);
    note(w);
    cursor_store_want(&w->store);
}

START_TEST(one_write_in_flight_and_all_else_in_the_next)
{
    struct world *w = world_new(1, 0);

    ack(w, 5);
    ck_assert_int_eq(w->doing, CREATE);
    ack(w, 7);
    answer(w);
    ck_assert_int_eq(w->doing, APPEND); /* the snapshot has both */
    ack(w, 9);
    answer(w);
    ck_assert_int_eq(w->doing, POINT);
    ck_assert_uint_eq(w->store.durable, 0);
    answer(w);
    ck_assert_uint_eq(w->store.durable, 2);
    ck_assert_int_eq(w->doing, APPEND);
    ack(w, 11);
    ack(w, 13);
    answer(w);
    ck_assert_uint_eq(w->store.durable, 3);
    answer(w);
    ck_assert_uint_eq(w->store.durable, 5);
    ck_assert_int_eq(w->doing, NOTHING);
    ck_assert_uint_eq(w->files[0].n, 3);
    world_drop(w);
}
END_TEST

START_TEST(acks_that_nobody_waits_for_gather)
{
    struct world *w = world_new(1, 0);

    cursor_store_ack(&w->store, &(struct position){0, 5}, 1);
    note(w);
    ck_assert(w->gathering);
    ck_assert_int_eq(w->doing, NOTHING);
    w->gathering = false;
    cursor_store_due(&w->store);
    ck_assert_int_eq(w->doing, CREATE);
    settle(w);
    ck_assert_uint_eq(w->store.durable, 1);
    world_drop(w);
}
END_TEST

START_TEST(another_owner_ends_it)
{
    struct world *w = world_new(1, 0);

    ack(w, 5);
    settle(w);
    ack(w, 7);
    w->node_foreign = true;
    w->doing = NOTHING;
    slice_drop(&w->out[0]);
    cursor_store_appended(&w->store, ERR_FENCED);
    ck_assert_int_eq(w->doing, LOOK);
    answer(w);
    ck_assert(w->ended);
    ck_assert_int_eq(w->end_err, ERR_FENCED);
    ck_assert_uint_eq(w->store.durable, 1);
    ack(w, 9);
    ck_assert_int_eq(w->doing, NOTHING);
    world_drop(w);
}
END_TEST

/* What waits for it is answered once the node says it; an idle cursor needs no ledger for that. */
START_TEST(properties_go_to_the_node)
{
    struct world *w = world_new(1, 0);

    relabel(w);
    note(w);
    cursor_store_want(&w->store);
    ck_assert_int_eq(w->doing, POINT);
    ck_assert_int_eq(w->target, TARGET_INLINE);
    answer(w);
    ck_assert_uint_eq(w->store.durable, 1);
    check_read_back(w);

    ack(w, 5);
    settle(w);
    relabel(w);
    note(w);
    cursor_store_want(&w->store);
    ck_assert_int_eq(w->doing, APPEND);
    answer(w);
    ck_assert_int_eq(w->doing, POINT);
    ck_assert_int_eq(w->target, TARGET_LEDGER);
    ck_assert_uint_eq(w->store.durable, 2);
    answer(w);
    ck_assert_uint_eq(w->store.durable, 3);
    check_read_back(w);
    world_drop(w);
}
END_TEST

START_TEST(a_reset_back_is_told_to_the_node_too)
{
    struct world *w = world_new(1, 0);
    ManagedLedger__ManagedCursorInfo *r;

    cursor_store_ack_upto(&w->store, (struct position){1, 700});
    note(w);
    cursor_store_want(&w->store);
    settle(w);
    cursor_store_reset(&w->store, (struct position){0, 40});
    note(w);
    cursor_store_want(&w->store);
    settle(w);
    r = record_of(w->node);
    ck_assert_int_eq(r->cursorsledgerid, 100);
    ck_assert_int_eq(r->markdeleteledgerid, 0);
    ck_assert_int_eq(r->markdeleteentryid, 40);
    managed_ledger__managed_cursor_info__free_unpacked(r, NULL);
    check_read_back(w);
    world_drop(w);
}
END_TEST

START_TEST(what_must_be_replayed_stays_short)
{
    struct world *w = world_new(1, 0);
    struct file *f = &w->files[0];
    int64_t start = 0;
    unsigned snapshots = 0;

    w->store.max_entries = FILE_MAX;
    for (int64_t i = 0; i < 1400; i++) {
        struct cursor_delta_head head;
        ack(w, 1 + i);
        settle(w);
        ck_assert_int_eq(cursor_delta_head(slice_view(f->at[f->n - 1]), &head), ERR_OK);
        ck_assert_int_eq(cursor_delta_start(slice_view(f->at[f->n - 1]), f->n - 1, &start), ERR_OK);
        ck_assert_int_lt(f->n - start, 1000);
        snapshots += head.kind == CURSOR_DELTA_SNAPSHOT;
    }
    ck_assert_uint_eq(w->n, 1);
    ck_assert_uint_ge(snapshots, 1);
    ck_assert_uint_le(snapshots, 4);
    check_read_back(w);
    world_drop(w);
}
END_TEST

/* A large state, a part of whose snapshot is missing at the ledger's end. */
START_TEST(a_torn_snapshot_leaves_the_one_before)
{
    enum { LARGE = 10 * 1000 * 1000, STRIDE = 16 };
    struct world *w = world_new(1, 0);
    int64_t backlog;

    segments_add(&w->segments, (struct segment){.ledger = LEDGERS, .entries = LARGE});
    for (int64_t e = 1; e < LARGE; e += STRIDE)
        cursor_set_add(&w->store.acks.beyond, LEDGERS, e, e);
    ack(w, 5);
    settle(w);
    ck_assert_uint_eq(w->files[0].n, 2);
    ack(w, 7);
    settle(w);
    backlog = cursor_acks_backlog(&w->store.acks);
    w->store.snapshot_bytes = w->store.replay_bytes = 0;
    ack(w, 9);
    ck_assert_uint_eq(w->n_out, 2);
    for (unsigned stored = 0; stored <= 2; stored++) {
        struct cursor_acks acks;
        bool clean;
        if (stored)
            w->files[0].at[w->files[0].n++] = slice_share(w->out[stored - 1]);
        read_back(w, &acks, &clean);
        ck_assert_int_eq(cursor_acks_backlog(&acks), stored < 2 ? backlog : backlog - 1);
        cursor_acks_drop(&acks);
    }
    world_drop(w);
}
END_TEST

int main(void)
{
    return suite_run("cursor_store",
                     (suite_case[]){SUITE_CASE(one_write_in_flight_and_all_else_in_the_next),
                                    SUITE_LOOP(what_a_store_has_forgotten_is_written_again, 120),
                                    SUITE_CASE(acks_that_nobody_waits_for_gather),
                                    SUITE_CASE(an_untouched_cursor_closes_without_a_write),
                                    SUITE_CASE(another_owner_ends_it),
                                    SUITE_CASE(properties_go_to_the_node),
                                    SUITE_CASE(a_reset_back_is_told_to_the_node_too),
                                    SUITE_CASE(what_must_be_replayed_stays_short),
                                    SUITE_CASE(a_torn_snapshot_leaves_the_one_before),
                                    SUITE_LOOP(confirmed_acks_survive_any_crash, 48),
                                    SUITE_LOOP(closes_in_pulsars_form_whatever_is_under_way, 80),
                                    SUITE_LOOP(deletes_whatever_is_under_way, 40),
                                    {0}});
}
