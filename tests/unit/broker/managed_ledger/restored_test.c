/* An owner lives on while the metadata store is put back to an older state: what the store has
 * forgotten is there again, for this owner and for the next one. */
#include <sched.h>
#include <string.h>

#include "broker/managed_ledger/remembered.h"
#include "common/mem.h"
#include "metadata/paths.h"
#include "tests/lib/shaky_meta.h"
#include "tests/lib/suite.h"
#include "tests/unit/broker/managed_ledger/log_house.h"

static struct shaky_meta *shaky;

static struct metadata *shaky_over(struct metadata *inner)
{
    shaky = shaky_meta_new(inner);
    return &shaky->base;
}

enum { LEDGER_ENTRIES = 10 };

static void open_house(void)
{
    struct ml_conf conf = log_house_usual;

    conf.max_entries_per_ledger = LEDGER_ENTRIES;
    log_house_wrap_store = shaky_over;
    log_house_open_with(3, &conf);
}

static void close_house(void)
{
    log_house_close();
    log_house_wrap_store = NULL;
}

static void doubt(void *ctx)
{
    (void)ctx;
    shaky_meta_doubt(shaky);
}

/* Once all adds are answered: a full ledger is rolled, and the next one waits for an add. */
static bool is_at_rest(void *ctx)
{
    const struct managed_ledger *m = ctx;
    const struct segment *last = segments_last(managed_ledger_segments(m));

    if (strcmp(managed_ledger_state(m), "LedgerOpened") == 0)
        return last->entries < LEDGER_ENTRIES;
    return strcmp(managed_ledger_state(m), "ClosedLedger") == 0;
}

static void prove(void *ctx)
{
    struct order *o = ctx;

    o->call.done = log_house_order_done;
    managed_ledger_prove(o->owner->ml, &o->call);
}

/* And its node is written: whoever opens the topic now does not meet a write of this owner. */
static void settle(unsigned who)
{
    struct order o = {.owner = &log_house.owner[who]};

    log_house_until(is_at_rest, o.owner->ml);
    log_house_call(prove, &o);
    log_house_until(log_house_is_done, &o);
    ck_assert_int_eq(o.err, ERR_OK);
}

/* In several ledgers, and then it writes to one. */
static void add_some(unsigned who, unsigned n)
{
    for (unsigned i = 0; i < n; i += 5) {
        log_house_add(who, 5);
        log_house_until(is_at_rest, log_house.owner[who].ml);
    }
}

struct shown {
    size_t ledgers;
    int64_t last;
};

static struct shown shown(void)
{
    ManagedLedger__ManagedLedgerInfo *r = log_house_node(NULL);
    struct shown s = {.last = -1};

    if (!r)
        return s;
    s.ledgers = r->n_ledgerinfo;
    if (s.ledgers)
        s.last = r->ledgerinfo[s.ledgers - 1]->ledgerid;
    log_house_node_free(r);
    return s;
}

static void await_node(struct shown wanted)
{
    for (struct shown now = shown(); now.ledgers < wanted.ledgers || now.last < wanted.last;
         now = shown())
        sched_yield();
}

/* The ledgers that the node names, by their metadata. */
static void check_ledgers(void)
{
    ManagedLedger__ManagedLedgerInfo *r = log_house_node(NULL);

    for (size_t i = 0; i < r->n_ledgerinfo; i++)
        ck_assert(log_house_has_ledger(r->ledgerinfo[i]->ledgerid));
    log_house_node_free(r);
}

static bool has_failed(void *ctx)
{
    return ((struct owner *)ctx)->failed != ERR_OK;
}

/* Whoever comes next finds all of it, and the one before is fenced, as ever. */
static void check_next_owner(unsigned who)
{
    struct owner *before = &log_house.owner[1 - who];

    settle(1 - who);
    ck_assert_int_eq(before->failed, ERR_OK);
    ck_assert_int_eq(log_house_own(who, false), ERR_OK);
    log_house_check(who, 7);
    check_ledgers();
    log_house_start(1 - who, 1);
    log_house_until(has_failed, before);
}

START_TEST(ledgers_made_since_are_written_back)
{
    open_house();
    ck_assert_int_eq(log_house_own(0, true), ERR_OK);
    add_some(0, 15);
    shaky_meta_keep(shaky);
    add_some(0, 40);
    struct shown before = shown();
    ck_assert_uint_gt(before.ledgers, 3);
    shaky_meta_put_back(shaky);
    ck_assert_uint_lt(shown().ledgers, before.ledgers);
    log_house_call(doubt, NULL);
    await_node(before);
    check_ledgers();
    log_house_add(0, 20);
    ck_assert_uint_eq(log_house.confirmed, 75);
    log_house_check(0, 400);
    check_next_owner(1);
    close_house();
}
END_TEST

/* Nobody has told the owner: its next write of the node finds out. */
START_TEST(a_write_of_the_node_finds_out_too)
{
    open_house();
    ck_assert_int_eq(log_house_own(0, true), ERR_OK);
    add_some(0, 15);
    shaky_meta_keep(shaky);
    add_some(0, 35);
    struct shown before = shown();
    shaky_meta_put_back(shaky);
    log_house_add(0, 50);
    await_node(before);
    ck_assert_uint_eq(log_house.confirmed, 100);
    check_next_owner(1);
    close_house();
}
END_TEST

static void open_second(void *ctx)
{
    struct order *o = ctx;

    o->owner = &log_house.owner[1];
    o->call.done = log_house_order_done;
    managed_ledger_open(o->owner->env, HOUSE_TOPIC, false, &o->owner->tell, &o->call);
}

/* The store says that somebody else is to serve it, who hears of that first. */
START_TEST(whoever_opens_it_then_gives_the_last_owner_time)
{
    open_house();
    ck_assert_int_eq(log_house_own(0, true), ERR_OK);
    add_some(0, 15);
    shaky_meta_keep(shaky);
    add_some(0, 200);
    shaky_meta_put_back(shaky);
    struct order second = {0};
    log_house_call(open_second, &second);
    log_house_call(doubt, NULL);
    log_house_until(log_house_is_done, &second);
    ck_assert_int_eq(second.err, ERR_OK);
    ck_assert_int_eq(log_house.owner[0].failed, ERR_OK);
    log_house_check(1, 7);
    check_ledgers();
    log_house_start(0, 1);
    log_house_until(has_failed, &log_house.owner[0]);
    close_house();
}
END_TEST

START_TEST(a_topic_made_since_is_made_again)
{
    open_house();
    shaky_meta_keep(shaky);
    ck_assert_int_eq(log_house_own(0, true), ERR_OK);
    add_some(0, 25);
    struct shown before = shown();
    shaky_meta_put_back(shaky);
    ck_assert_ptr_null(log_house_node(NULL));
    log_house_call(doubt, NULL);
    await_node(before);
    check_next_owner(1);
    close_house();
}
END_TEST

/* One that is gone and was not forgotten was deleted. */
START_TEST(a_topic_that_is_deleted_is_not_made_again)
{
    char path[META_KEY_MAX];

    open_house();
    ck_assert_int_eq(log_house_own(0, true), ERR_OK);
    log_house_add(0, 25);
    settle(0);
    ck_assert_int_eq(log_house_own(1, false), ERR_OK);
    ck_assert_int_eq(log_house_end(1, true), ERR_OK);
    log_house_call(doubt, NULL);
    log_house_until(has_failed, &log_house.owner[0]);
    ck_assert(path_managed_ledger(HOUSE_TOPIC, path) == ERR_OK);
    ck_assert_ptr_null(log_house_node(NULL));
    close_house();
}
END_TEST

/* ---- who may ---- */

/* The store says that the first one has it, who knows nothing of what the second wrote. */
START_TEST(an_older_owner_gives_way_to_the_last_one)
{
    open_house();
    ck_assert_int_eq(log_house_own(0, true), ERR_OK);
    log_house_add(0, 15);
    ck_assert_int_eq(log_house_end(0, false), ERR_OK);
    ck_assert_int_eq(log_house_own(0, true), ERR_OK); /* and writes nothing */
    shaky_meta_keep(shaky);
    ck_assert_int_eq(log_house_own(1, false), ERR_OK);
    add_some(1, 40);
    struct shown before = shown();
    shaky_meta_put_back(shaky);
    log_house_call(doubt, NULL);
    await_node(before);
    log_house_call(doubt, NULL);
    log_house_until(has_failed, &log_house.owner[0]);
    ck_assert_int_eq(log_house_end(0, false), ERR_FENCED);
    log_house.owner[0].failed = ERR_OK;
    log_house_add(1, 20);
    ck_assert_uint_eq(log_house.confirmed, 75);
    check_next_owner(0);
    close_house();
}
END_TEST

/* ---- cursors ---- */

static struct position mark_of(unsigned who, const char *name)
{
    struct cursor *c = managed_ledger_cursor(log_house.owner[who].ml, name);

    ck_assert_ptr_nonnull(c);
    return cursor_mark_delete(c);
}

/* As a node says it, or the ledger that it names: nobody else can know. */
static void await_cursor(const char *name, int64_t version)
{
    struct slice value = {0};
    char path[META_KEY_MAX];
    int64_t now = -1;

    ck_assert(path_cursor(HOUSE_TOPIC, name, path) == ERR_OK);
    while (meta_get_wait(log_house.meta, path, &value, &now) != ERR_OK || now < version) {
        slice_drop(&value);
        sched_yield();
    }
    slice_drop(&value);
}

static void ack_one(struct cursor *c, struct position at, struct cursor_ack_call *call)
{
    cursor_ack(c, &at, 1, call);
}

START_TEST(cursors_do_not_go_back)
{
    struct cursor *old, *new;

    open_house();
    ck_assert_int_eq(log_house_own(0, true), ERR_OK);
    log_house_add(0, 15);
    ck_assert_int_eq(log_house_cursor(0, "old", POSITION_EARLIEST, false, &old), ERR_OK);
    log_house_until(is_at_rest, log_house.owner[0].ml);
    shaky_meta_keep(shaky);
    ck_assert_int_eq(log_house_cursor(0, "new", POSITION_EARLIEST, false, &new), ERR_OK);
    add_some(0, 30);
    log_house_ack(old, 32, cursor_ack_upto);
    log_house_ack(old, 40, ack_one);
    log_house_ack(new, 12, cursor_ack_upto);
    log_house_until(is_at_rest, log_house.owner[0].ml);
    struct shown before = shown();
    shaky_meta_put_back(shaky);
    log_house_call(doubt, NULL);
    await_node(before);
    await_cursor("old", 1);
    await_cursor("new", 0);
    log_house_ack(new, 13, ack_one);
    log_house_ack(old, 33, ack_one);
    settle(0);
    ck_assert_int_eq(log_house_own(1, false), ERR_OK);
    ck_assert(position_equal(mark_of(1, "old"), log_house.add[33].at));
    ck_assert(
        cursor_is_acked(managed_ledger_cursor(log_house.owner[1].ml, "old"), log_house.add[40].at));
    ck_assert(position_equal(mark_of(1, "new"), log_house.add[13].at));
    log_house_check(1, 7);
    log_house_start(0, 1);
    log_house_until(has_failed, &log_house.owner[0]);
    close_house();
}
END_TEST

/* ---- what is remembered, and its bounds ---- */

static struct ledger_known known(int64_t ledger, size_t len)
{
    static uint8_t bytes[1 << 20];

    return (struct ledger_known){.ledger = ledger, .version = 2, .value = slice_copy(bytes, len)};
}

static void note(struct remembered *r, int64_t ledger, size_t len, int64_t now_ms)
{
    struct ledger_known k = known(ledger, len);

    remembered_note(r, &k, now_ms, now_ms);
    slice_drop(&k.value);
}

START_TEST(memory_of_ledgers_is_bounded)
{
    struct remembered r;
    size_t total = 0;

    remembered_init(&r, &total);
    for (int64_t i = 0; i < REMEMBERED_MAX + 10; i++)
        note(&r, i, 300, 1000);
    ck_assert_uint_eq(r.n, REMEMBERED_MAX);
    ck_assert_ptr_null(remembered_find(&r, 9));
    ck_assert_ptr_nonnull(remembered_find(&r, 10));
    note(&r, 10, 200, 1000); /* in place of what was known */
    ck_assert_uint_eq(r.n, REMEMBERED_MAX);
    ck_assert_int_eq(remembered_after(&r, 10)->ledger, 11);
    remembered_forget(&r, 11);
    ck_assert_int_eq(remembered_after(&r, 10)->ledger, 12);
    note(&r, 10000, 300, 1001 + REMEMBERED_MS); /* the others are too old now */
    ck_assert_uint_eq(r.n, 1);
    for (int64_t i = 10001; i < 10050; i++)
        note(&r, i, 1 << 20, 1001 + REMEMBERED_MS);
    ck_assert_uint_le(total, REMEMBERED_BYTES);
    ck_assert_ptr_nonnull(remembered_find(&r, 10049));
    remembered_drop(&r);
    ck_assert_uint_eq(total, 0);
}
END_TEST

int main(void)
{
    return suite_run("restored", (suite_case[]){
                                     SUITE_CASE(ledgers_made_since_are_written_back),
                                     SUITE_CASE(a_write_of_the_node_finds_out_too),
                                     SUITE_CASE(whoever_opens_it_then_gives_the_last_owner_time),
                                     SUITE_CASE(a_topic_made_since_is_made_again),
                                     SUITE_CASE(a_topic_that_is_deleted_is_not_made_again),
                                     SUITE_CASE(an_older_owner_gives_way_to_the_last_one),
                                     SUITE_CASE(cursors_do_not_go_back),
                                     SUITE_CASE(memory_of_ledgers_is_bounded),
                                     {0},
                                 });
}
