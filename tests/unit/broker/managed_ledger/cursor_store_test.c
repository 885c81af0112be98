#include "broker/managed_ledger/cursor_store.h"

#include <string.h>

#include "broker/managed_ledger/cursor_delta.h"
#include "broker/managed_ledger/cursor_record.h"
#include "common/mem.h"
#include "tests/lib/suite.h"
#include "tests/unit/broker/managed_ledger/cursor_world.h"

START_TEST(confirmed_acks_survive_any_crash)
{
    struct world *w = cursor_world_new((uint64_t)_i + 1, (unsigned)_i % 4 * 12);

    for (int i = 0; i < 1000; i++) {
        cursor_world_step(w);
        ck_assert(!w->ended);
        if (cursor_world_in(w, 1))
            cursor_world_reopen(w);
    }
    w->trouble = 0;
    cursor_store_want(&w->store);
    cursor_world_settle(w);
    ck_assert_uint_eq(w->store.durable, w->store.seq);
    cursor_world_check(w);
    cursor_world_drop(w);
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
    struct world *w = cursor_world_new((uint64_t)_i + 1, 0);
    ManagedLedger__ManagedCursorInfo *r;

    for (int i = 0; i < 20 + _i * 4; i++)
        cursor_world_step(w);
    cursor_store_end(&w->store, ENDING_CLOSE);
    w->trouble = _i % 2 ? 10 : 0;
    cursor_world_settle(w);
    ck_assert(w->ended);
    if (w->end_err == ERR_OK) {
        bool clean;
        struct cursor_acks acks;
        ck_assert_uint_eq(w->store.durable, w->store.seq);
        cursor_world_check(w);
        cursor_world_read_back(w, &acks, &clean);
        ck_assert(clean);
        cursor_acks_drop(&acks);
        r = cursor_world_record(w->node);
        ck_assert_int_eq(r->cursorsledgerid >= 0,
                         cursor_acks_holes(&w->store.acks) > CURSOR_STORE_INLINE_MAX);
        ck_assert_uint_eq(files_there(w), r->cursorsledgerid >= 0);
        managed_ledger__managed_cursor_info__free_unpacked(r, NULL);
    } else {
        ck_assert_uint_gt(w->trouble, 0);
        cursor_world_check(w);
    }
    cursor_world_drop(w);
}
END_TEST

START_TEST(an_untouched_cursor_closes_without_a_write)
{
    struct world *w = cursor_world_new(1, 0);

    cursor_store_end(&w->store, ENDING_CLOSE);
    ck_assert(w->ended);
    ck_assert_int_eq(w->end_err, ERR_OK);
    cursor_world_drop(w);
}
END_TEST

START_TEST(deletes_whatever_is_under_way)
{
    struct world *w = cursor_world_new((uint64_t)_i + 1, 0);

    for (int i = 0; i < _i * 3; i++)
        cursor_world_step(w);
    cursor_store_end(&w->store, ENDING_DELETE);
    w->trouble = _i % 2 ? 10 : 0;
    cursor_world_settle(w);
    ck_assert(w->ended);
    if (w->end_err == ERR_OK) {
        ck_assert(!w->node_there);
        ck_assert_uint_eq(files_there(w), 0);
    }
    cursor_world_drop(w);
}
END_TEST

static void ack(struct world *w, int64_t entry)
{
    cursor_store_ack(&w->store, &(struct position){0, entry}, 1);
    cursor_world_note(w);
    cursor_store_want(&w->store);
}

START_TEST(one_write_in_flight_and_all_else_in_the_next)
{
    struct world *w = cursor_world_new(1, 0);

    ack(w, 5);
    ck_assert_int_eq(w->doing, CREATE);
    ack(w, 7);
    cursor_world_answer(w);
    ck_assert_int_eq(w->doing, APPEND); /* the snapshot has both */
    ack(w, 9);
    cursor_world_answer(w);
    ck_assert_int_eq(w->doing, POINT);
    ck_assert_uint_eq(w->store.durable, 0);
    cursor_world_answer(w);
    ck_assert_uint_eq(w->store.durable, 2);
    ck_assert_int_eq(w->doing, APPEND);
    ack(w, 11);
    ack(w, 13);
    cursor_world_answer(w);
    ck_assert_uint_eq(w->store.durable, 3);
    cursor_world_answer(w);
    ck_assert_uint_eq(w->store.durable, 5);
    ck_assert_int_eq(w->doing, NOTHING);
    ck_assert_uint_eq(w->files[0].n, 3);
    cursor_world_drop(w);
}
END_TEST

START_TEST(acks_that_nobody_waits_for_gather)
{
    struct world *w = cursor_world_new(1, 0);

    cursor_store_ack(&w->store, &(struct position){0, 5}, 1);
    cursor_world_note(w);
    ck_assert(w->gathering);
    ck_assert_int_eq(w->doing, NOTHING);
    w->gathering = false;
    cursor_store_due(&w->store);
    ck_assert_int_eq(w->doing, CREATE);
    cursor_world_settle(w);
    ck_assert_uint_eq(w->store.durable, 1);
    cursor_world_drop(w);
}
END_TEST

START_TEST(another_owner_ends_it)
{
    struct world *w = cursor_world_new(1, 0);

    ack(w, 5);
    cursor_world_settle(w);
    ack(w, 7);
    w->node_foreign = true;
    w->doing = NOTHING;
    slice_drop(&w->out[0]);
    cursor_store_appended(&w->store, ERR_FENCED);
    ck_assert_int_eq(w->doing, LOOK);
    cursor_world_answer(w);
    ck_assert(w->ended);
    ck_assert_int_eq(w->end_err, ERR_FENCED);
    ck_assert_uint_eq(w->store.durable, 1);
    ack(w, 9);
    ck_assert_int_eq(w->doing, NOTHING);
    cursor_world_drop(w);
}
END_TEST

/* What waits for it is answered once the node says it; an idle cursor needs no ledger for that. */
START_TEST(properties_go_to_the_node)
{
    struct world *w = cursor_world_new(1, 0);

    cursor_world_relabel(w);
    cursor_world_note(w);
    cursor_store_want(&w->store);
    ck_assert_int_eq(w->doing, POINT);
    ck_assert_int_eq(w->target, TARGET_INLINE);
    cursor_world_answer(w);
    ck_assert_uint_eq(w->store.durable, 1);
    cursor_world_check(w);

    ack(w, 5);
    cursor_world_settle(w);
    cursor_world_relabel(w);
    cursor_world_note(w);
    cursor_store_want(&w->store);
    ck_assert_int_eq(w->doing, APPEND);
    cursor_world_answer(w);
    ck_assert_int_eq(w->doing, POINT);
    ck_assert_int_eq(w->target, TARGET_LEDGER);
    ck_assert_uint_eq(w->store.durable, 2);
    cursor_world_answer(w);
    ck_assert_uint_eq(w->store.durable, 3);
    cursor_world_check(w);
    cursor_world_drop(w);
}
END_TEST

START_TEST(a_reset_back_is_told_to_the_node_too)
{
    struct world *w = cursor_world_new(1, 0);
    ManagedLedger__ManagedCursorInfo *r;

    cursor_store_ack_upto(&w->store, (struct position){1, 700});
    cursor_world_note(w);
    cursor_store_want(&w->store);
    cursor_world_settle(w);
    cursor_store_reset(&w->store, (struct position){0, 40});
    cursor_world_note(w);
    cursor_store_want(&w->store);
    cursor_world_settle(w);
    r = cursor_world_record(w->node);
    ck_assert_int_eq(r->cursorsledgerid, 100);
    ck_assert_int_eq(r->markdeleteledgerid, 0);
    ck_assert_int_eq(r->markdeleteentryid, 40);
    managed_ledger__managed_cursor_info__free_unpacked(r, NULL);
    cursor_world_check(w);
    cursor_world_drop(w);
}
END_TEST

START_TEST(what_must_be_replayed_stays_short)
{
    struct world *w = cursor_world_new(1, 0);
    struct file *f = &w->files[0];
    int64_t start = 0;
    unsigned snapshots = 0;

    w->store.max_entries = FILE_MAX;
    for (int64_t i = 0; i < 1400; i++) {
        struct cursor_delta_head head;
        ack(w, 1 + i);
        cursor_world_settle(w);
        ck_assert_int_eq(cursor_delta_head(slice_view(f->at[f->n - 1]), &head), ERR_OK);
        ck_assert_int_eq(cursor_delta_start(slice_view(f->at[f->n - 1]), f->n - 1, &start), ERR_OK);
        ck_assert_int_lt(f->n - start, 1000);
        snapshots += head.kind == CURSOR_DELTA_SNAPSHOT;
    }
    ck_assert_uint_eq(w->n, 1);
    ck_assert_uint_ge(snapshots, 1);
    ck_assert_uint_le(snapshots, 4);
    cursor_world_check(w);
    cursor_world_drop(w);
}
END_TEST

/* A large state, a part of whose snapshot is missing at the ledger's end. */
START_TEST(a_torn_snapshot_leaves_the_one_before)
{
    enum { LARGE = 10 * 1000 * 1000, STRIDE = 16 };
    struct world *w = cursor_world_new(1, 0);
    int64_t backlog;

    segments_add(&w->segments, (struct segment){.ledger = LEDGERS, .entries = LARGE});
    for (int64_t e = 1; e < LARGE; e += STRIDE)
        cursor_set_add(&w->store.acks.beyond, LEDGERS, e, e);
    ack(w, 5);
    cursor_world_settle(w);
    ck_assert_uint_eq(w->files[0].n, 2);
    ack(w, 7);
    cursor_world_settle(w);
    backlog = cursor_acks_backlog(&w->store.acks);
    w->store.snapshot_bytes = w->store.replay_bytes = 0;
    ack(w, 9);
    ck_assert_uint_eq(w->n_out, 2);
    for (unsigned stored = 0; stored <= 2; stored++) {
        struct cursor_acks acks;
        bool clean;
        if (stored)
            w->files[0].at[w->files[0].n++] = slice_share(w->out[stored - 1]);
        cursor_world_read_back(w, &acks, &clean);
        ck_assert_int_eq(cursor_acks_backlog(&acks), stored < 2 ? backlog : backlog - 1);
        cursor_acks_drop(&acks);
    }
    cursor_world_drop(w);
}
END_TEST

int main(void)
{
    return suite_run("cursor_store",
                     (suite_case[]){SUITE_CASE(one_write_in_flight_and_all_else_in_the_next),
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
