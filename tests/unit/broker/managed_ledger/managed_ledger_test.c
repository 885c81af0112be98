/* The whole managed ledger over the real ledger client, fake bookies and the memory store. */
#include <sched.h>
#include <string.h>

#include "broker/managed_ledger/ml_record.h"
#include "common/mem.h"
#include "metadata/paths.h"
#include "tests/lib/shaky_meta.h"
#include "tests/lib/suite.h"
#include "tests/unit/broker/managed_ledger/log_house.h"

static void deleted(struct ledger_call *c, enum err err, struct ledger *l)
{
    ck_assert(err == ERR_OK && l == NULL);
    *(bool *)c->private = true;
}

struct removal {
    struct ledger_call call;
    int64_t id;
    bool done;
};

static void remove_it(void *ctx)
{
    struct removal *r = ctx;

    r->call = (struct ledger_call){.done = deleted, .private = &r->done};
    ledger_delete(log_house.owner[0].client, r->id, &r->call);
}

static bool is_removed(void *ctx)
{
    return ((struct removal *)ctx)->done;
}

static void ledger_remove(int64_t id)
{
    struct removal r = {.id = id};

    log_house_call(remove_it, &r);
    log_house_until(is_removed, &r);
}

/* ---- the tests ----------------------------------------------------------------------------------
 */

START_TEST(what_is_added_can_be_read)
{
    log_house_open(3);
    ck_assert_int_eq(log_house_own(0, false), ERR_TOPIC_NOT_FOUND);
    ck_assert_int_eq(log_house_own(0, true), ERR_OK);
    ck_assert_uint_eq(log_house_node_ledgers(), 0); /* an idle topic costs no ledger */
    log_house_add(0, 50);
    ck_assert_uint_eq(log_house.confirmed, 50);
    ck_assert_uint_gt(log_house.owner[0].grew, 0);
    ck_assert_uint_eq(log_house_node_ledgers(), 1);
    log_house_check(0, 7);
    log_house_check(0, 400);
    log_house_close();
}
END_TEST

/* ---- its end ---- */

struct termination {
    struct ml_terminate call;
    struct managed_ledger *ml;
    bool done;
    enum err err;
    struct position last;
};

static void terminated(struct ml_terminate *call, enum err err, struct position last)
{
    struct termination *t = container_of(call, struct termination, call);

    t->err = err;
    t->last = last;
    t->done = true;
}

static void begin_termination(void *ctx)
{
    struct termination *t = ctx;

    t->call.done = terminated;
    managed_ledger_terminate(log_house.owner[0].ml, &t->call);
}

static bool is_terminated(void *ctx)
{
    return ((struct termination *)ctx)->done;
}

static struct termination terminate(void)
{
    struct termination t = {0};

    log_house_call(begin_termination, &t);
    log_house_until(is_terminated, &t);
    return t;
}

START_TEST(a_terminated_one_stores_what_it_took_and_no_more)
{
    log_house_open(3);
    ck_assert_int_eq(log_house_own(0, true), ERR_OK);
    log_house_start(0, 30); /* on their way */
    struct termination t = terminate();
    ck_assert_int_eq(t.err, ERR_OK);
    ck_assert_uint_eq(log_house.confirmed, 30);
    ck_assert_int_eq(t.last.entry, 29);
    log_house_start(0, 1);
    ck_assert_int_eq(log_house.add[30].refused, ERR_TERMINATED);
    struct termination again = terminate();
    ck_assert_int_eq(again.err, ERR_OK);
    ck_assert_int_eq(position_compare(again.last, t.last), 0);
    log_house_check(0, 7);
    ck_assert_int_eq(log_house_end(0, false), ERR_OK);
    ManagedLedger__ManagedLedgerInfo *r = log_house_node(NULL);
    ck_assert_ptr_nonnull(r->terminatedposition);
    ck_assert_int_eq(r->terminatedposition->entryid, 29);
    log_house_node_free(r);
    ck_assert_int_eq(log_house_own(0, false), ERR_OK); /* and stays so */
    log_house.add[30].refused = ERR_OK;
    log_house_start(0, 1);
    ck_assert_int_eq(log_house.add[30].refused, ERR_TERMINATED);
    log_house_check(0, 400);
    log_house_close();
}
END_TEST

START_TEST(an_empty_one_may_be_terminated)
{
    log_house_open(3);
    ck_assert_int_eq(log_house_own(0, true), ERR_OK);
    struct termination t = terminate();
    ck_assert_int_eq(t.err, ERR_OK);
    ck_assert_int_eq(t.last.entry, -1);
    ck_assert_int_eq(log_house_end(0, true), ERR_OK);
    log_house_close();
}
END_TEST

START_TEST(a_read_keeps_to_its_limits)
{
    log_house_open(3);
    ck_assert_int_eq(log_house_own(0, true), ERR_OK);
    log_house_add(0, 20);
    log_house_read(0, POSITION_EARLIEST, 3, 0, NULL);
    ck_assert_uint_eq(log_house_got.n, 3);
    ck_assert_int_eq(log_house_got.next.entry, 3);
    log_house_read(0, POSITION_EARLIEST, 20, 1, NULL); /* one at least */
    ck_assert_uint_eq(log_house_got.n, 1);
    log_house_read(0, POSITION_EARLIEST, 20, 100, NULL);
    ck_assert_uint_gt(log_house_got.n, 1);
    ck_assert_uint_lt(log_house_got.n, 20);
    log_house_read(0, POSITION_LATEST, 20, 0,
                   NULL); /* behind everything: nothing, and where to go on */
    ck_assert_uint_eq(log_house_got.n, 0);
    ck_assert_int_eq(log_house_got.next.entry, 20);
    log_house_add(0, 1);
    log_house_read(0, log_house_got.next, 20, 0, NULL);
    ck_assert_uint_eq(log_house_got.n, 1);
    log_house_close();
}
END_TEST

START_TEST(the_next_broker_goes_on_where_it_was_closed)
{
    log_house_open(3);
    ck_assert_int_eq(log_house_own(0, true), ERR_OK);
    log_house_add(0, 10);
    ck_assert_int_eq(log_house_end(0, false), ERR_OK);
    int64_t version;
    ManagedLedger__ManagedLedgerInfo *r = log_house_node(&version);
    ck_assert_uint_eq(r->n_ledgerinfo, 1);
    ck_assert_int_eq(r->ledgerinfo[0]->entries, 10);
    ck_assert(r->ledgerinfo[0]->size > 0 && r->ledgerinfo[0]->timestamp > 0);
    ck_assert_str_eq(ml_record_property(r, "index"), "18");
    log_house_node_free(r);
    ck_assert_int_eq(log_house_own(1, false), ERR_OK);
    log_house_check(1, 100);
    log_house_add(1, 10);
    ck_assert(log_house.add[10].at.ledger > log_house.add[9].at.ledger);
    log_house_check(1, 4);
    log_house_close();
}
END_TEST

START_TEST(a_takeover_fences_the_old_owner)
{
    log_house_open(3);
    ck_assert_int_eq(log_house_own(0, true), ERR_OK);
    log_house_add(0, 10);
    ck_assert_int_eq(log_house_own(1, false), ERR_OK);
    log_house_check(1, 100);
    unsigned before = log_house.added;
    log_house_start(0, 3);
    log_house_until(log_house_answered, NULL);
    for (unsigned i = before; i < log_house.added; i++)
        ck_assert_int_eq(log_house.add[i].err, ERR_FENCED);
    ck_assert_int_eq(log_house.owner[0].failed, ERR_FENCED);
    log_house_start(0, 1);
    ck_assert_int_eq(log_house.add[log_house.added].refused, ERR_FENCED);
    log_house.added = log_house.done = before; /* what was refused is no part of the log */
    memset(&log_house.add[before], 0, sizeof(log_house.add[0]) * 4);
    log_house_add(1, 5);
    log_house_check(1, 100);
    log_house_close();
}
END_TEST

START_TEST(an_owner_without_a_ledger_is_stopped_by_the_node)
{
    log_house_open(3);
    ck_assert_int_eq(log_house_own(0, true), ERR_OK);
    ck_assert_int_eq(log_house_own(1, false), ERR_OK);
    log_house_start(0, 1);
    log_house_until(log_house_answered, NULL);
    ck_assert_int_eq(log_house.add[0].err, ERR_FENCED);
    ck_assert_int_eq(log_house.owner[0].failed, ERR_FENCED);
    log_house_close();
}
END_TEST

/* A full ledger takes adds until the next one is there, so how many it gets is not fixed. */
static void add_over(unsigned ledgers)
{
    unsigned seen = 1;

    for (log_house_add(0, 5); seen < ledgers; log_house_add(0, 1))
        seen += log_house.added > 5 && log_house.add[log_house.added - 1].at.ledger >
                                           log_house.add[log_house.added - 2].at.ledger;
}

START_TEST(a_full_ledger_is_followed_by_another)
{
    struct ml_conf conf = log_house_usual;
    conf.max_entries_per_ledger = 5;
    log_house_open_with(3, &conf);
    ck_assert_int_eq(log_house_own(0, true), ERR_OK);
    add_over(5);
    log_house_start(0, 100);
    log_house_until(log_house_answered, NULL);
    ck_assert_uint_gt(log_house_node_ledgers(), 4);
    log_house_check(0, 10);
    log_house_check(0, 400);
    ck_assert_int_eq(log_house_end(0, false), ERR_OK);
    ck_assert_int_eq(log_house_own(1, false), ERR_OK);
    log_house_check(1, 30);
    log_house_close();
}
END_TEST

static bool trimmed(void *ctx)
{
    (void)ctx;
    return managed_ledger_segments(log_house.owner[0].ml)->n == 1;
}

static bool first_is_gone(void *ctx)
{
    (void)ctx;
    return !log_house.owner[0].ml || managed_ledger_segments(log_house.owner[0].ml)->at[0].ledger >
                                         log_house.add[0].at.ledger;
}

START_TEST(what_nobody_needs_is_trimmed)
{
    struct ml_conf conf = log_house_usual;
    conf.max_entries_per_ledger = 5;
    conf.retention_ms = conf.retention_bytes = 0;
    log_house_open_with(3, &conf);
    ck_assert_int_eq(log_house_own(0, true), ERR_OK);
    add_over(4);
    log_house_until(first_is_gone, NULL);
    log_house_until(trimmed, NULL);
    while (log_house_has_ledger(log_house.add[0].at.ledger))
        sched_yield();
    while (log_house_node_ledgers() != 1)
        sched_yield();
    log_house_read(0, POSITION_EARLIEST, 1, 0, NULL); /* goes to the first that is left */
    ck_assert_uint_eq(log_house_got.n, 1);
    ck_assert_int_eq(log_house_got.err, ERR_OK);
    /* All that could tell the index is gone, but for the node. */
    unsigned before = log_house.added;
    ck_assert_int_eq(log_house_end(0, false), ERR_OK);
    ck_assert_int_eq(log_house_own(0, false), ERR_OK);
    log_house_add(0, 1);
    ck_assert_uint_eq(log_house.add[before].index,
                      log_house.add[before - 1].index + log_house.add[before].add.messages);
    log_house_close();
}
END_TEST

static void break_adds(void *ctx)
{
    (void)ctx;
    fake_bookie_knobs(log_house.bookie[0])->on_add = (struct fault){.after = 7, .times = 1};
    fake_bookie_knobs(log_house.bookie[0])->add_status = 101;
}

START_TEST(a_failed_ledger_ends_and_nothing_is_lost)
{
    log_house_open(2);
    ck_assert_int_eq(log_house_own(0, true), ERR_OK);
    log_house_call(break_adds, NULL);
    log_house_start(0, 100);
    log_house_until(log_house_answered, NULL);
    ck_assert_uint_eq(log_house.confirmed, 100);
    ck_assert_int_gt(log_house.add[99].at.ledger, 0);
    log_house_check(0, 16);
    log_house_close();
}
END_TEST

static void break_the_first_add(void *ctx)
{
    (void)ctx;
    fake_bookie_knobs(log_house.bookie[0])->on_add = (struct fault){.times = 1};
    fake_bookie_knobs(log_house.bookie[0])->add_status = 101;
}

START_TEST(a_ledger_that_came_to_nothing_goes_with_the_next_one)
{
    log_house_open(2);
    ck_assert_int_eq(log_house_own(0, true), ERR_OK);
    log_house_call(break_the_first_add, NULL);
    log_house_add(0, 3);
    ck_assert_uint_eq(log_house.confirmed, 3);
    ck_assert_int_gt(log_house.add[0].at.ledger, 0);
    while (log_house_has_ledger(0))
        sched_yield();
    ck_assert_uint_eq(log_house_node_ledgers(), 1);
    log_house_check(0, 2);
    log_house_close();
}
END_TEST

START_TEST(producers_wait_until_there_are_enough_bookies)
{
    log_house_open(1);
    ck_assert_int_eq(log_house_own(0, true), ERR_OK);
    log_house_start(0, 10);
    log_house_join(1);
    log_house_until(log_house_answered, NULL);
    ck_assert_uint_eq(log_house.confirmed, 10);
    log_house_check(0, 100);
    log_house_close();
}
END_TEST

START_TEST(what_waits_is_bounded)
{
    struct ml_conf conf = log_house_usual;
    conf.pending_bytes = 200;
    log_house_open_with(0, &conf);
    ck_assert_int_eq(log_house_own(0, true), ERR_OK);
    log_house_start(0, 20);
    ck_assert_int_eq(log_house.add[log_house.added].refused, ERR_BUSY);
    ck_assert_uint_gt(log_house.added, 1);
    ck_assert_uint_lt(log_house.added, 20);
    ck_assert_int_eq(log_house_end(0, false), ERR_OK); /* refuses them */
    log_house_until(log_house_answered, NULL);
    ck_assert_int_eq(log_house.add[0].err, ERR_CLOSED);
    log_house_close();
}
END_TEST

static void set_it(void *ctx)
{
    struct order *o = ctx;

    o->call.done = log_house_order_done;
    managed_ledger_set_property(o->owner->ml, "pulsar.topic.epoch", "3", &o->call);
    ck_assert(!o->done);
}

START_TEST(a_property_is_there_for_the_next_owner)
{
    log_house_open(2);
    ck_assert_int_eq(log_house_own(0, true), ERR_OK);
    struct order o = {.owner = &log_house.owner[0]};
    log_house_call(set_it, &o);
    log_house_until(log_house_is_done, &o);
    ck_assert_int_eq(o.err, ERR_OK);
    ck_assert_int_eq(log_house_own(1, false), ERR_OK);
    ck_assert_str_eq(managed_ledger_property(log_house.owner[1].ml, "pulsar.topic.epoch"), "3");
    o = (struct order){.owner = &log_house.owner[0]};
    log_house_call(set_it, &o);
    log_house_until(log_house_is_done, &o);
    ck_assert_int_eq(o.err, ERR_FENCED);
    log_house_close();
}
END_TEST

START_TEST(a_deleted_topic_leaves_nothing)
{
    log_house_open(2);
    ck_assert_int_eq(log_house_own(0, true), ERR_OK);
    log_house_add(0, 5);
    ck_assert_int_eq(log_house_end(0, true), ERR_OK);
    int64_t version;
    ck_assert_ptr_null(log_house_node(&version));
    ck_assert(!log_house_has_ledger(log_house.add[0].at.ledger));
    ck_assert_int_eq(log_house_own(0, false), ERR_TOPIC_NOT_FOUND);
    log_house_close();
}
END_TEST

START_TEST(only_the_owner_deletes)
{
    log_house_open(2);
    ck_assert_int_eq(log_house_own(0, true), ERR_OK);
    log_house_add(0, 5);
    ck_assert_int_eq(log_house_end(0, false), ERR_OK);
    ck_assert_int_eq(log_house_own(0, false), ERR_OK);
    ck_assert_int_eq(log_house_own(1, false), ERR_OK);
    ck_assert_int_eq(log_house_end(0, true), ERR_FENCED);
    log_house_check(1, 10);
    log_house_add(1, 1);
    log_house_check(1, 10);
    log_house_close();
}
END_TEST

START_TEST(a_lost_last_ledger_does_not_close_the_topic)
{
    log_house_open(2);
    ck_assert_int_eq(log_house_own(0, true), ERR_OK);
    log_house_add(0, 5);
    ck_assert_int_eq(log_house_end(0, false), ERR_OK);
    ledger_remove(log_house.add[0].at.ledger);
    ck_assert_int_eq(log_house_own(1, false), ERR_OK);
    ck_assert_uint_eq(log_house_node_ledgers(), 1); /* its id is what the next one must be above */
    log_house_add(1, 1);
    ck_assert(log_house.add[5].at.ledger > log_house.add[0].at.ledger);
    ck_assert_uint_eq(log_house.add[5].index,
                      log_house.add[4].index + log_house.add[5].add.messages);
    while (log_house_node_ledgers() != 1)
        sched_yield();
    log_house_close();
}
END_TEST

static void read_and_cancel(void *ctx)
{
    struct reading *r = ctx;

    log_house_read_begin(r);
    managed_ledger_read_cancel(r->ml, &r->read);
}

START_TEST(a_cancelled_read_is_not_heard_of_again)
{
    log_house_open(2);
    ck_assert_int_eq(log_house_own(0, true), ERR_OK);
    log_house_add(0, 5);
    struct reading *r = mem_new(struct reading);
    r->ml = log_house.owner[0].ml;
    r->read = (struct ml_read){.from = POSITION_EARLIEST, .max_entries = 10};
    log_house_call(read_and_cancel, r);
    log_house_check(0, 100);
    ck_assert(!r->done);
    mem_free(r);
    log_house_close();
}
END_TEST

/* ---- with cursors -------------------------------------------------------------------------------
 */

static void ack_one(struct cursor *c, struct position at, struct cursor_ack_call *call)
{
    cursor_ack(c, &at, 1, call);
}

static void check_only_odd(unsigned who, struct cursor *c, unsigned n)
{
    log_house_read(who, POSITION_EARLIEST, ADDS_MAX, 0, c);
    ck_assert_int_eq(log_house_got.err, ERR_OK);
    ck_assert_uint_eq(log_house_got.n, n / 2);
    for (unsigned i = 0; i < log_house_got.n; i++)
        ck_assert_str_eq(log_house_got.text[i], log_house.add[2 * i + 1].text);
}

static bool is_fenced(void *ctx)
{
    (void)ctx;
    return log_house.owner[0].failed == ERR_FENCED;
}

START_TEST(a_cursor_leaves_out_what_it_acknowledged_also_for_the_next_owner)
{
    struct cursor *c;

    log_house_open(3);
    ck_assert_int_eq(log_house_own(0, true), ERR_OK);
    ck_assert_int_eq(log_house_cursor(0, "my/sub", POSITION_EARLIEST, false, &c), ERR_OK);
    ck_assert_int_eq(log_house_cursor(0, "my/sub", POSITION_EARLIEST, false, NULL), ERR_EXISTS);
    log_house_add(0, 20);
    for (unsigned i = 0; i < 20; i += 2)
        log_house_ack(c, i, ack_one);
    check_only_odd(0, c, 20);
    ck_assert_int_eq(log_house_own(1, false), ERR_OK); /* as after a kill -9 of the first */
    c = managed_ledger_cursor(log_house.owner[1].ml, "my/sub");
    ck_assert_ptr_nonnull(c);
    check_only_odd(1, c, 20);
    ck_assert_int_eq(log_house_end(1, false), ERR_OK);
    ck_assert_int_eq(log_house_own(1, false), ERR_OK); /* and after a clean close */
    c = managed_ledger_cursor(log_house.owner[1].ml, "my/sub");
    check_only_odd(1, c, 20);
    log_house_start(0, 1);
    log_house_until(is_fenced, NULL);
    log_house_close();
}
END_TEST

START_TEST(a_cursor_holds_ledgers_until_it_has_acknowledged_them)
{
    struct ml_conf conf = log_house_usual;
    struct cursor *c;

    conf.max_entries_per_ledger = 5;
    conf.retention_ms = conf.retention_bytes = 0;
    log_house_open_with(3, &conf);
    ck_assert_int_eq(log_house_own(0, true), ERR_OK);
    ck_assert_int_eq(log_house_cursor(0, "s", POSITION_EARLIEST, false, &c), ERR_OK);
    ck_assert_int_eq(log_house_cursor(0, "late", POSITION_EARLIEST, false, NULL), ERR_OK);
    add_over(4);
    log_house_check(0, 7);
    log_house_ack(c, log_house.added - 1, cursor_ack_upto);
    log_house_check(0, 7); /* the other one still needs them */
    ck_assert_int_eq(log_house_cursor(0, "late", POSITION_EARLIEST, true, NULL), ERR_OK);
    log_house_until(first_is_gone, NULL);
    log_house_until(trimmed, NULL);
    ck_assert_int_eq(log_house_cursor(0, "late", POSITION_EARLIEST, true, NULL),
                     ERR_SUBSCRIPTION_NOT_FOUND);
    ck_assert_int_eq(log_house_own(1, false), ERR_OK);
    ck_assert_ptr_nonnull(managed_ledger_cursor(log_house.owner[1].ml, "s"));
    ck_assert_ptr_null(managed_ledger_cursor(log_house.owner[1].ml, "late"));
    log_house_start(0, 1);
    log_house_until(is_fenced, NULL);
    log_house_close();
}
END_TEST

static struct shaky_meta *shaky;

static struct metadata *shaky_over(struct metadata *inner)
{
    shaky = shaky_meta_new(inner);
    return &shaky->base;
}

static void doubt(void *ctx)
{
    (void)ctx;
    shaky_meta_doubt(shaky);
}

/* What an owner has written is in ledgers that a restored store does not know: it asks at once, and
 * writes no further. */
START_TEST(a_store_that_may_have_gone_back_is_asked)
{
    log_house_wrap_store = shaky_over;
    log_house_open(3);
    ck_assert_int_eq(log_house_own(0, true), ERR_OK);
    log_house_add(0, 10);
    log_house_call(doubt, NULL);
    log_house_add(0, 10); /* it knows what is there: nothing has changed */
    ck_assert_int_eq(log_house.owner[0].failed, ERR_OK);
    ck_assert_int_eq(log_house_own(1, false), ERR_OK);
    ck_assert_int_eq(log_house.owner[0].failed, ERR_OK);
    log_house_call(doubt, NULL);
    log_house_until(is_fenced, NULL);
    log_house_close();
    log_house_wrap_store = NULL;
}
END_TEST

int main(void)
{
    return suite_run(
        "managed_ledger",
        (suite_case[]){
            SUITE_CASE(what_is_added_can_be_read),
            SUITE_CASE(a_terminated_one_stores_what_it_took_and_no_more),
            SUITE_CASE(an_empty_one_may_be_terminated),
            SUITE_CASE(a_read_keeps_to_its_limits),
            SUITE_CASE(the_next_broker_goes_on_where_it_was_closed),
            SUITE_CASE(a_takeover_fences_the_old_owner),
            SUITE_CASE(an_owner_without_a_ledger_is_stopped_by_the_node),
            SUITE_CASE(a_full_ledger_is_followed_by_another),
            SUITE_CASE(what_nobody_needs_is_trimmed),
            SUITE_CASE(a_failed_ledger_ends_and_nothing_is_lost),
            SUITE_CASE(a_ledger_that_came_to_nothing_goes_with_the_next_one),
            SUITE_CASE(producers_wait_until_there_are_enough_bookies),
            SUITE_CASE(what_waits_is_bounded),
            SUITE_CASE(a_property_is_there_for_the_next_owner),
            SUITE_CASE(a_deleted_topic_leaves_nothing),
            SUITE_CASE(only_the_owner_deletes),
            SUITE_CASE(a_lost_last_ledger_does_not_close_the_topic),
            SUITE_CASE(a_cancelled_read_is_not_heard_of_again),
            SUITE_CASE(a_cursor_leaves_out_what_it_acknowledged_also_for_the_next_owner),
            SUITE_CASE(a_cursor_holds_ledgers_until_it_has_acknowledged_them),
            SUITE_CASE(a_store_that_may_have_gone_back_is_asked),
            {0},
        });
}
