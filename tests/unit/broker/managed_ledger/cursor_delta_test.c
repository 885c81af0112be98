#include "broker/managed_ledger/cursor_delta.h"

#include <string.h>

#include "broker/managed_ledger/cursor_record.h"
#include "broker/managed_ledger/cursor_roaring.h"
#include "common/mem.h"
#include "common/rng.h"
#include "tests/lib/suite.h"

enum { LEDGERS = 4, PER_LEDGER = 200000 };

static struct segments four(void)
{
    struct segments s = {0};
    for (int64_t l = 0; l < LEDGERS; l++)
        segments_add(&s, (struct segment){.ledger = l, .entries = PER_LEDGER});
    return s;
}

static struct position at(int64_t ledger, int64_t entry)
{
    return (struct position){ledger, entry};
}

static void same_acks(const struct cursor_acks *a, const struct cursor_acks *b)
{
    struct cursor_set_walk x = cursor_set_walk(&a->beyond), y = cursor_set_walk(&b->beyond);

    ck_assert(position_equal(a->mark_delete, b->mark_delete));
    ck_assert_uint_eq(cursor_acks_holes(a), cursor_acks_holes(b));
    ck_assert_int_eq(cursor_acks_backlog(a), cursor_acks_backlog(b));
    while (cursor_set_walk_next(&x)) {
        ck_assert(cursor_set_walk_next(&y));
        ck_assert_int_eq(x.ledger, y.ledger);
        ck_assert_int_eq(x.first, y.first);
        ck_assert_int_eq(x.last, y.last);
    }
    ck_assert(!cursor_set_walk_next(&y));
}

/* Single ones, runs, whole containers: all three kinds of them. */
static void ack_some(struct cursor_acks *a, uint64_t *seed)
{
    int64_t ledger = (int64_t)rng_below(seed, LEDGERS),
            first = (int64_t)rng_below(seed, PER_LEDGER);
    uint64_t kind = rng_below(seed, 10);
    int64_t len = kind == 0 ? 70000 : kind < 4 ? 1 + (int64_t)rng_below(seed, 500) : 1;

    cursor_acks_load_range(a, at(ledger, first - 1), at(ledger, first + len - 1));
    if (kind == 9)
        for (int i = 0; i < 5000; i++)
            cursor_acks_one(a, at(ledger, (int64_t)rng_below(seed, 60000) + 1));
    cursor_acks_settle(a);
}

static void replay(struct cursor_acks *into, const struct slice *entries, unsigned n)
{
    struct cursor_replay r;

    cursor_replay_init(&r, into);
    for (unsigned i = 0; i < n; i++)
        ck_assert_int_eq(cursor_replay_feed(&r, i, slice_view(entries[i])), ERR_OK);
    ck_assert_int_eq(cursor_replay_end(&r), ERR_OK);
    cursor_replay_drop(&r);
}

START_TEST(a_snapshot_comes_back)
{
    struct segments s = four();
    struct cursor_acks a, b;
    struct slice *parts;
    uint64_t seed = (uint64_t)_i + 1;
    unsigned n;

    cursor_acks_init(&a, &s, at(0, -1));
    cursor_acks_init(&b, &s, at(2, 7));
    for (int i = 0; i < _i; i++)
        ack_some(&a, &seed);
    n = cursor_delta_snapshot(CURSOR_DELTA_NOWHERE, &a, &parts);
    ck_assert_uint_eq(n, 1);
    replay(&b, parts, n);
    same_acks(&a, &b);
    slice_drop(&parts[0]);
    mem_free(parts);
    cursor_acks_drop(&a);
    cursor_acks_drop(&b);
    segments_clear(&s);
}
END_TEST

START_TEST(changes_add_up)
{
    struct segments s = four();
    struct cursor_acks a, b;
    struct cursor_set fresh = {0};
    struct slice entries[21], *parts;
    uint64_t seed = (uint64_t)_i + 1;

    cursor_acks_init(&a, &s, at(0, -1));
    cursor_acks_init(&b, &s, at(0, -1));
    ack_some(&a, &seed);
    ck_assert_uint_eq(cursor_delta_snapshot(-1, &a, &parts), 1);
    entries[0] = parts[0];
    mem_free(parts);
    for (unsigned i = 1; i <= 20; i++) {
        bool reset = rng_below(&seed, 10) == 0;
        if (reset)
            cursor_acks_reset(&a, at((int64_t)rng_below(&seed, LEDGERS), 50));
        for (int k = 0; k < 30; k++) {
            int64_t l = (int64_t)rng_below(&seed, LEDGERS), e = (int64_t)rng_below(&seed, 3000);
            if (cursor_acks_one(&a, at(l, e)))
                cursor_set_add(&fresh, l, e, e);
        }
        cursor_set_remove_upto(&fresh, a.mark_delete);
        entries[i] = cursor_delta_changes(0, reset, a.mark_delete, &fresh, NULL, NULL);
        ck_assert_uint_gt(entries[i].len, 0);
        cursor_set_drop(&fresh);
    }
    replay(&b, entries, 21);
    same_acks(&a, &b);
    for (unsigned i = 0; i <= 20; i++)
        slice_drop(&entries[i]);
    cursor_acks_drop(&a);
    cursor_acks_drop(&b);
    segments_clear(&s);
}
END_TEST

/* ---- a large one, in parts ------------------------------------------------------------------- */

struct large {
    struct segments segments;
    struct cursor_acks acks;
    struct slice *parts;
    unsigned n;
};

static void large_init(struct large *l)
{
    *l = (struct large){0};
    segments_add(&l->segments, (struct segment){.ledger = 9, .entries = 20 * 1000 * 1000});
    cursor_acks_init(&l->acks, &l->segments, at(9, -1));
    for (int64_t e = 1; e < 20 * 1000 * 1000; e += 16)
        cursor_set_add(&l->acks.beyond, 9, e, e);
    l->n = cursor_delta_snapshot(-1, &l->acks, &l->parts);
}

static void large_drop(struct large *l)
{
    for (unsigned i = 0; i < l->n; i++)
        slice_drop(&l->parts[i]);
    mem_free(l->parts);
    cursor_acks_drop(&l->acks);
    segments_clear(&l->segments);
}

START_TEST(a_large_snapshot_goes_in_parts)
{
    struct large l;
    struct cursor_acks back;
    int64_t start;

    large_init(&l);
    ck_assert_uint_eq(l.n, 3);
    for (unsigned i = 0; i < l.n; i++)
        ck_assert_uint_le(l.parts[i].len, CURSOR_DELTA_ENTRY_MAX);
    ck_assert_int_eq(cursor_delta_start(slice_view(l.parts[1]), 8, &start), ERR_NO_ENTRY);
    ck_assert_int_eq(cursor_delta_start(slice_view(l.parts[2]), 9, &start), ERR_OK);
    ck_assert_int_eq(start, 7);
    ck_assert_int_eq(cursor_delta_start(slice_view(l.parts[2]), 1, &start), ERR_MALFORMED);
    cursor_acks_init(&back, &l.segments, at(9, -1));
    replay(&back, l.parts, l.n);
    same_acks(&back, &l.acks);
    cursor_acks_drop(&back);
    large_drop(&l);
}
END_TEST

START_TEST(parts_out_of_order_are_refused)
{
    struct large l;
    struct cursor_acks back;
    struct cursor_replay r;
    struct cursor_set none = {0};
    struct slice changes = cursor_delta_changes(0, false, at(9, 3), &none, NULL, NULL);

    large_init(&l);
    cursor_acks_init(&back, &l.segments, at(9, -1));
    cursor_replay_init(&r, &back);
    ck_assert_int_eq(cursor_replay_feed(&r, 0, slice_view(l.parts[1])), ERR_MALFORMED);
    ck_assert_int_eq(cursor_replay_feed(&r, 0, slice_view(changes)), ERR_MALFORMED);
    ck_assert_int_eq(cursor_replay_feed(&r, 0, slice_view(l.parts[0])), ERR_OK);
    ck_assert_int_eq(cursor_replay_end(&r), ERR_NO_ENTRY);
    ck_assert_int_eq(cursor_replay_feed(&r, 1, slice_view(l.parts[2])), ERR_MALFORMED);
    ck_assert_int_eq(cursor_replay_feed(&r, 2, slice_view(l.parts[1])), ERR_MALFORMED);
    ck_assert_int_eq(cursor_replay_feed(&r, 1, slice_view(changes)), ERR_MALFORMED);
    ck_assert_int_eq(cursor_replay_feed(&r, 1, slice_view(l.parts[0])), ERR_MALFORMED);
    cursor_replay_drop(&r);
    cursor_acks_drop(&back);
    slice_drop(&changes);
    large_drop(&l);
}
END_TEST

/* ---- what is not ours, or not whole ---------------------------------------------------------- */

static struct slice small_changes(void)
{
    struct cursor_set fresh = {0};
    struct slice s;

    cursor_set_add(&fresh, 1, 7, 7);
    cursor_set_add(&fresh, 1, 9, 400);
    cursor_set_add(&fresh, 3, 2, 2);
    s = cursor_delta_changes(0, false, at(0, 3), &fresh, NULL, NULL);
    cursor_set_drop(&fresh);
    return s;
}

static enum err feed_after(const struct segments *s, struct view first, struct view second)
{
    struct cursor_acks acks;
    struct cursor_replay r;
    enum err err;

    cursor_acks_init(&acks, s, at(0, -1));
    cursor_replay_init(&r, &acks);
    err = cursor_replay_feed(&r, 0, first);
    if (!err && second.base)
        err = cursor_replay_feed(&r, 1, second);
    err = err ? err : cursor_replay_end(&r);
    cursor_replay_drop(&r);
    cursor_acks_drop(&acks);
    return err;
}

static struct slice small_snapshot(struct segments *s, bool bits)
{
    struct cursor_acks acks;
    struct slice *parts, one;
    uint64_t seed = 3;

    cursor_acks_init(&acks, s, at(0, -1));
    for (int64_t e = 2; bits && e < 20; e += 2)
        cursor_acks_one(&acks, at(1, e));
    if (bits)
        for (int i = 0; i < 4; i++)
            cursor_acks_one(&acks, at(2, (int64_t)rng_below(&seed, PER_LEDGER)));
    ck_assert_uint_eq(cursor_delta_snapshot(-1, &acks, &parts), 1);
    one = parts[0];
    mem_free(parts);
    cursor_acks_drop(&acks);
    return one;
}

START_TEST(every_truncation_and_surplus_is_malformed)
{
    struct segments s = four();
    struct slice snapshot = small_snapshot(&s, true), changes = small_changes();
    uint8_t longer[4096];
    struct view whole = slice_view(snapshot);

    ck_assert_int_eq(feed_after(&s, whole, slice_view(changes)), ERR_OK);
    for (size_t n = 0; n < snapshot.len; n++)
        ck_assert_int_eq(feed_after(&s, view_of(snapshot.base, n), view_of(NULL, 0)),
                         ERR_MALFORMED);
    for (size_t n = 0; n < changes.len; n++)
        ck_assert_int_eq(feed_after(&s, whole, view_of(changes.base, n)), ERR_MALFORMED);
    memcpy(longer, changes.base, changes.len);
    longer[changes.len] = 0;
    ck_assert_int_eq(feed_after(&s, whole, view_of(longer, changes.len + 1)), ERR_MALFORMED);
    memcpy(longer, snapshot.base, snapshot.len);
    longer[snapshot.len] = 0;
    ck_assert_int_eq(feed_after(&s, view_of(longer, snapshot.len + 1), view_of(NULL, 0)),
                     ERR_MALFORMED);
    slice_drop(&snapshot);
    slice_drop(&changes);
    segments_clear(&s);
}
END_TEST

START_TEST(a_newer_writer_says_who_may_read)
{
    struct segments s = four();
    struct slice snapshot = small_snapshot(&s, true), changes = small_changes();
    uint8_t later[4096];

    memcpy(later, changes.base, changes.len);
    later[changes.len] = 77; /* something that only newer ones know */
    later[4] = 3;
    ck_assert_int_eq(feed_after(&s, slice_view(snapshot), view_of(later, changes.len + 1)), ERR_OK);
    later[5] = 3;
    ck_assert_int_eq(feed_after(&s, slice_view(snapshot), view_of(later, changes.len + 1)),
                     ERR_UNSUPPORTED_VERSION);
    later[5] = 4; /* older than its own oldest reader */
    ck_assert_int_eq(feed_after(&s, slice_view(snapshot), view_of(later, changes.len + 1)),
                     ERR_MALFORMED);
    slice_drop(&snapshot);
    slice_drop(&changes);
    segments_clear(&s);
}
END_TEST

/* What a build wrote stays readable by those after it: docs/disk-format.md, "Cursor ledger". */
START_TEST(the_layout_is_as_documented)
{
    static const uint8_t changes_bytes[] = {
        'L', 'G', 'M', 'c', 2, 1, 1, 0, /* magic, version, oldest reader, kind, flags */
        0,   0,   0,   0,   0, 0, 0, 0, /* the snapshot */
        0,   0,   0,   0,   0, 0, 0, 0, /* mark-delete */
        0,   0,   0,   0,   0, 0, 0, 3, /* */
        2,                              /* ledgers */
        0,   0,   0,   0,   0, 0, 0, 1, 2, 7, 0, 0, 0x87, 3, /* 7; 9 to 400 */
        0,   0,   0,   0,   0, 0, 0, 3, 1, 2, 0,             /* 2 */
        0,                                                   /* parts of batches */
    };
    static const uint8_t snapshot_bytes[] = {
        'L',  'G',  'M',  'c',  2,    1,    2,    0,    /* magic ... kind, flags */
        0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, /* no snapshot before */
        0,    0,    0,    0,    0,    0,    0,    1,    /* part 0 of 1 */
        0,    0,    0,    0,    0,    0,    0,    0,    /* mark-delete (0,-1) */
        0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, /* */
        0,    0,    0,    0,                            /* ledgers */
        0,                                              /* parts of batches */
    };
    struct segments s = four();
    struct slice changes = small_changes(), snapshot = small_snapshot(&s, false);

    ck_assert_uint_eq(changes.len, sizeof changes_bytes);
    ck_assert_mem_eq(changes.base, changes_bytes, sizeof changes_bytes);
    ck_assert_uint_eq(snapshot.len, sizeof snapshot_bytes);
    ck_assert_mem_eq(snapshot.base, snapshot_bytes, sizeof snapshot_bytes);
    slice_drop(&changes);
    slice_drop(&snapshot);
    segments_clear(&s);
}
END_TEST

/* Version 1 had no parts of batches, and not their number either. */
START_TEST(what_version_1_wrote_is_read)
{
    struct segments s = four();
    struct slice snapshot = small_snapshot(&s, true), changes = small_changes();
    uint8_t first[4096], second[4096];

    memcpy(first, snapshot.base, snapshot.len);
    memcpy(second, changes.base, changes.len);
    first[4] = second[4] = 1;
    ck_assert_int_eq(
        feed_after(&s, view_of(first, snapshot.len - 1), view_of(second, changes.len - 1)), ERR_OK);
    ck_assert_int_eq(feed_after(&s, view_of(first, snapshot.len - 1), view_of(second, changes.len)),
                     ERR_MALFORMED);
    slice_drop(&changes);
    slice_drop(&snapshot);
    segments_clear(&s);
}
END_TEST

/* ---- parts of batches ------------------------------------------------------------------------ */

static void same_part(const struct cursor_acks *a, struct position p, uint64_t first,
                      uint64_t second)
{
    const struct cursor_part *part = cursor_parts_find(&a->parts, p);

    ck_assert_ptr_nonnull(part);
    ck_assert_uint_eq(part->n, second ? 2 : 1);
    ck_assert_uint_eq(part->words[0], first);
    if (second)
        ck_assert_uint_eq(part->words[1], second);
}

static enum cursor_parts_outcome part_left(struct cursor_acks *a, struct position p, uint64_t first,
                                           uint64_t second)
{
    return cursor_acks_part(a, p, (uint64_t[]){first, second}, 2);
}

START_TEST(parts_of_batches_come_back)
{
    struct segments s = four();
    struct cursor_acks a, b;
    struct cursor_set fresh = {0}, changed = {0};
    struct slice entries[2], *parts;

    cursor_acks_init(&a, &s, at(0, -1));
    cursor_acks_init(&b, &s, at(0, -1));
    ck_assert_int_eq(part_left(&a, at(1, 4), 6, 1), PARTS_KEPT);
    ck_assert_int_eq(part_left(&a, at(2, 0), 1, 0), PARTS_KEPT);
    ck_assert_int_eq(part_left(&a, at(2, 1), 15, 0), PARTS_KEPT);
    ck_assert_uint_eq(cursor_delta_snapshot(-1, &a, &parts), 1);
    entries[0] = parts[0];
    mem_free(parts);
    ck_assert_int_eq(part_left(&a, at(2, 1), 5, UINT64_MAX), PARTS_KEPT);
    ck_assert_int_eq(part_left(&a, at(2, 1), 7, 0), PARTS_SAME);
    ck_assert_int_eq(part_left(&a, at(3, 3), 0, UINT64_MAX), PARTS_KEPT);
    ck_assert_int_eq(part_left(&a, at(2, 0), 2, 0), PARTS_EMPTY);
    cursor_set_add(&fresh, 2, 0, 0);
    cursor_set_add(&changed, 2, 0, 1);
    cursor_set_add(&changed, 3, 3, 3);
    entries[1] = cursor_delta_changes(0, false, a.mark_delete, &fresh, &a.parts, &changed);
    replay(&b, entries, 2);
    same_acks(&a, &b);
    ck_assert_uint_eq(cursor_parts_count(&b.parts), 3);
    same_part(&b, at(1, 4), 6, 1);
    same_part(&b, at(2, 1), 5, 0);
    same_part(&b, at(3, 3), 0, UINT64_MAX);
    ck_assert(cursor_acks_has(&b, at(2, 0)));
    slice_drop(&entries[0]);
    slice_drop(&entries[1]);
    cursor_set_drop(&fresh);
    cursor_set_drop(&changed);
    cursor_acks_drop(&a);
    cursor_acks_drop(&b);
    segments_clear(&s);
}
END_TEST

START_TEST(parts_go_with_their_entries)
{
    struct segments s = four();
    struct cursor_acks a;

    cursor_acks_init(&a, &s, at(0, -1));
    for (int64_t e = 0; e < 10; e++)
        ck_assert_int_eq(part_left(&a, at(1, e), 6, 0), PARTS_KEPT);
    ck_assert_int_eq(part_left(&a, at(9, 0), 6, 0), PARTS_SAME); /* there is no such entry */
    ck_assert(cursor_acks_one(&a, at(1, 5)));
    ck_assert_int_eq(part_left(&a, at(1, 5), 6, 0), PARTS_SAME);
    ck_assert_uint_eq(cursor_parts_count(&a.parts), 9);
    ck_assert(cursor_acks_upto(&a, at(1, 7)));
    ck_assert_uint_eq(cursor_parts_count(&a.parts), 2);
    ck_assert_int_eq(part_left(&a, at(1, 8), 0, 0), PARTS_EMPTY);
    ck_assert_int_eq(a.mark_delete.entry, 8);
    cursor_acks_reset(&a, at(0, 0));
    ck_assert_uint_eq(cursor_parts_count(&a.parts), 0);
    ck_assert_uint_eq(a.parts.words, 0);
    cursor_acks_drop(&a);
    segments_clear(&s);
}
END_TEST

START_TEST(parts_have_a_limit)
{
    struct cursor_parts p = {0};
    uint64_t words[CURSOR_PART_WORDS + 1];
    int64_t e = 0;

    memset(words, 0xff, sizeof words);
    ck_assert_int_eq(cursor_parts_and(&p, at(1, 0), words, CURSOR_PART_WORDS + 1), PARTS_FULL);
    while (cursor_parts_and(&p, at(1, e), words, CURSOR_PART_WORDS) == PARTS_KEPT)
        e++;
    ck_assert_int_eq(e, CURSOR_PARTS_WORDS / CURSOR_PART_WORDS);
    ck_assert_uint_eq(cursor_part_left(cursor_parts_find(&p, at(1, 0)), 100), 100);
    words[0] = 5;
    ck_assert_int_eq(cursor_parts_and(&p, at(1, 0), words, 1), PARTS_KEPT);
    ck_assert_uint_eq(cursor_part_left(cursor_parts_find(&p, at(1, 0)), 2), 1);
    cursor_parts_drop(&p);
    ck_assert_uint_eq(p.words, 0);
}
END_TEST

START_TEST(parts_are_kept_in_pulsars_forms)
{
    struct segments s = four();
    struct cursor_acks a, b;
    ManagedLedger__ManagedCursorInfo empty, *r;

    cursor_acks_init(&a, &s, at(0, -1));
    cursor_acks_init(&b, &s, at(0, -1));
    ck_assert_int_eq(part_left(&a, at(1, 4), 6, 1), PARTS_KEPT);
    ck_assert(cursor_acks_one(&a, at(1, 6)));
    managed_ledger__managed_cursor_info__init(&empty);
    struct slice node = cursor_record_make(&empty, -1, a.mark_delete, &a);
    ck_assert_int_eq(cursor_record_read(slice_view(node), &r), ERR_OK);
    cursor_record_load(r, &b);
    same_acks(&a, &b);
    same_part(&b, at(1, 4), 6, 1);
    struct slice form = cursor_position_write(&a, r);
    cursor_acks_reset(&b, at(0, -1));
    ck_assert_int_eq(cursor_position_read(slice_view(form), &b, r), ERR_OK);
    same_part(&b, at(1, 4), 6, 1);
    managed_ledger__managed_cursor_info__free_unpacked(r, NULL);
    slice_drop(&node);
    slice_drop(&form);
    cursor_acks_drop(&a);
    cursor_acks_drop(&b);
    segments_clear(&s);
}
END_TEST

START_TEST(too_many_changes_ask_for_a_snapshot)
{
    struct cursor_set fresh = {0};

    for (int64_t e = 0; e < 300000; e += 2)
        cursor_set_add(&fresh, 1, e, e);
    ck_assert_uint_eq(cursor_delta_changes(0, false, at(0, 0), &fresh, NULL, NULL).len, 0);
    cursor_set_drop(&fresh);
}
END_TEST

/* ---- Pulsar's forms -------------------------------------------------------------------------- */

static struct cursor_acks holes_of(struct segments *s, int64_t from, int64_t n)
{
    struct cursor_acks a;
    cursor_acks_init(&a, s, at(0, -1));
    for (int64_t i = 0; i < n; i++)
        cursor_set_add(&a.beyond, from + i / (PER_LEDGER / 2), 1 + i % (PER_LEDGER / 2) * 2,
                       1 + i % (PER_LEDGER / 2) * 2);
    return a;
}

START_TEST(the_node_and_position_info_come_back)
{
    struct segments s = four();
    struct cursor_acks a = holes_of(&s, 1, 900), b, c;
    ManagedLedger__LongProperty mine, *properties[] = {&mine};
    ManagedLedger__ManagedCursorInfo base, *r;
    struct slice node, form;

    managed_ledger__managed_cursor_info__init(&base);
    managed_ledger__long_property__init(&mine);
    mine.name = "p";
    mine.value = 5;
    base.properties = properties;
    base.n_properties = 1;
    node = cursor_record_make(&base, -1, a.mark_delete, &a);
    form = cursor_position_write(&a, &base);
    ck_assert_uint_eq(form.base[0], 0x08);
    ck_assert(!cursor_delta_is_ours(slice_view(form)));
    ck_assert_int_eq(cursor_record_read(slice_view(node), &r), ERR_OK);
    ck_assert_int_eq(r->cursorsledgerid, -1);
    ck_assert_uint_eq(r->n_individualdeletedmessages, 900);
    ck_assert_int_eq(r->individualdeletedmessages[0]->lowerendpoint->entryid, 0);
    ck_assert_int_eq(r->individualdeletedmessages[0]->upperendpoint->entryid, 1);
    cursor_acks_init(&b, &s, at(0, 77));
    cursor_record_load(r, &b);
    same_acks(&a, &b);
    r->properties[0]->value = 6;
    cursor_acks_init(&c, &s, at(0, 77));
    ck_assert_int_eq(cursor_position_read(slice_view(form), &c, r), ERR_OK);
    same_acks(&a, &c);
    ck_assert_int_eq(r->properties[0]->value, 5);
    managed_ledger__managed_cursor_info__free_unpacked(r, NULL);
    slice_drop(&node);
    slice_drop(&form);
    cursor_acks_drop(&a);
    cursor_acks_drop(&b);
    cursor_acks_drop(&c);
    segments_clear(&s);
}
END_TEST

START_TEST(very_many_holes_become_words)
{
    struct segments s = four();
    struct cursor_acks a = holes_of(&s, 0, 300000), b;
    ManagedLedger__ManagedCursorInfo r;
    ManagedLedger__PositionInfo *p;
    struct slice form;

    managed_ledger__managed_cursor_info__init(&r);
    cursor_acks_init(&b, &s, at(3, 77));
    form = cursor_position_write(&a, &r);
    ck_assert_uint_gt(form.len, 0);
    ck_assert_uint_le(form.len, CURSOR_RECORD_ENTRY_MAX);
    p = managed_ledger__position_info__unpack(NULL, form.len, form.base);
    ck_assert_uint_eq(p->n_individualdeletedmessages, 0);
    ck_assert_uint_eq(p->n_individualdeletedmessageranges, 3);
    managed_ledger__position_info__free_unpacked(p, NULL);
    ck_assert_int_eq(cursor_position_read(slice_view(form), &b, &r), ERR_OK);
    same_acks(&a, &b);
    slice_drop(&form);
    cursor_acks_drop(&a);
    cursor_acks_drop(&b);
    segments_clear(&s);
}
END_TEST

START_TEST(a_log_of_a_newer_pulsar_is_refused)
{
    struct segments s = four();
    struct cursor_acks a;
    ManagedLedger__LongProperty kind, *properties[] = {&kind};
    ManagedLedger__ManagedCursorInfo r;
    struct slice form;

    managed_ledger__managed_cursor_info__init(&r);
    managed_ledger__long_property__init(&kind);
    kind.name = "entry-type";
    kind.value = 2;
    r.properties = properties;
    r.n_properties = 1;
    cursor_acks_init(&a, &s, at(0, -1));
    form = cursor_position_write(&a, &r);
    ck_assert_int_eq(cursor_position_read(slice_view(form), &a, &r), ERR_UNSUPPORTED_VERSION);
    ck_assert_int_eq(cursor_position_read(view_of("\x08", 1), &a, &r), ERR_MALFORMED);
    slice_drop(&form);
    segments_clear(&s);
}
END_TEST

int main(void)
{
    return suite_run("cursor_delta",
                     (suite_case[]){SUITE_LOOP(a_snapshot_comes_back, 20),
                                    SUITE_LOOP(changes_add_up, 20),
                                    SUITE_CASE(a_large_snapshot_goes_in_parts),
                                    SUITE_CASE(parts_out_of_order_are_refused),
                                    SUITE_CASE(every_truncation_and_surplus_is_malformed),
                                    SUITE_CASE(a_newer_writer_says_who_may_read),
                                    SUITE_CASE(the_layout_is_as_documented),
                                    SUITE_CASE(too_many_changes_ask_for_a_snapshot),
                                    SUITE_CASE(what_version_1_wrote_is_read),
                                    SUITE_CASE(parts_of_batches_come_back),
                                    SUITE_CASE(parts_go_with_their_entries),
                                    SUITE_CASE(parts_have_a_limit),
                                    SUITE_CASE(parts_are_kept_in_pulsars_forms),
                                    SUITE_CASE(the_node_and_position_info_come_back),
                                    SUITE_CASE(very_many_holes_become_words),
                                    SUITE_CASE(a_log_of_a_newer_pulsar_is_refused),
                                    {0}});
}
