/* The whole managed ledger over the real ledger client, fake bookies and the memory store. */
#include <sched.h>
#include <stdio.h>
#include <string.h>

#include "broker/managed_ledger/cursor.h"
#include "broker/managed_ledger/managed_ledger.h"
#include "common/crc32c.h"
#include "common/mem.h"
#include "metadata/metadata.h"
#include "metadata/paths.h"
#include "metadata/records.h"
#include "proto/message.h"
#include "tests/lib/fake_bookie.h"
#include "tests/lib/suite.h"

#define NAME "public/default/persistent/t"

enum { BOOKIES_MAX = 3, ADDS_MAX = 400, OWNERS = 2 };

/* A broker's part: a client, an environment, one managed ledger. */
struct owner {
    struct ml_owner tell;
    struct ledger_client *client;
    struct ml_env *env;
    struct managed_ledger *ml;
    unsigned grew;
    enum err failed;
};

struct one_add {
    struct ml_add add;
    char text[40];
    bool done;
    enum err err, refused;
    struct position at;
    uint64_t index;
};

struct house {
    struct loop *loop;
    struct metadata *meta;
    struct fake_bookie *bookie[BOOKIES_MAX];
    unsigned n;
    struct owner owner[OWNERS];
    struct ml_conf conf;
    struct one_add add[ADDS_MAX];
    unsigned added, done, confirmed;
    unsigned upto; /* what is waited for */
};

static struct house h;

/* ---- the loop, from outside --------------------------------------------------------------------
 */

struct ask {
    bool (*is_so)(void *ctx);
    void *ctx;
    bool so;
};

static void ask_it(void *arg)
{
    struct ask *a = arg;

    a->so = a->is_so(a->ctx);
}

static void until(bool (*is_so)(void *ctx), void *ctx)
{
    struct ask a = {is_so, ctx, false};

    for (loop_call(h.loop, ask_it, &a); !a.so; loop_call(h.loop, ask_it, &a))
        sched_yield();
}

static void on_loop(void (*fn)(void *ctx), void *ctx)
{
    loop_call(h.loop, fn, ctx);
}

/* ---- house -------------------------------------------------------------------------------------
 */

static void bookies_start(void *ctx)
{
    (void)ctx;
    for (unsigned i = 0; i < BOOKIES_MAX; i++)
        h.bookie[i] = fake_bookie_new(h.loop);
}

static void bookie_join(unsigned i)
{
    char path[META_KEY_MAX];

    ck_assert(path_bookie(fake_bookie_id(h.bookie[i]), false, path) == ERR_OK);
    ck_assert(meta_put_wait(h.meta, path, (struct slice){0}, META_ABSENT) == ERR_OK);
    h.n++;
}

static void grew(struct ml_owner *t)
{
    container_of(t, struct owner, tell)->grew++;
}

static void failed(struct ml_owner *t, enum err err)
{
    struct owner *o = container_of(t, struct owner, tell);

    ck_assert(o->failed == ERR_OK);
    o->failed = err;
}

static void owner_start(void *ctx)
{
    struct owner *o = ctx;

    o->tell = (struct ml_owner){.grew = grew, .failed = failed};
    o->client = ledger_client_new(h.loop, h.meta, NULL);
    o->env = ml_env_new(h.loop, o->client, h.meta, &h.conf);
}

static bool owner_sees_bookies(void *ctx)
{
    struct owner *o = ctx;

    return ledger_client_ready(o->client) && ledger_client_bookies(o->client) == h.n;
}

static const struct ml_conf usual = {
    .quorum = {2, 2, 2},
    .max_entries_per_ledger = 1000,
    .max_bytes_per_ledger = 1 << 30,
    .max_rollover_ms = 3600 * 1000,
    .retention_ms = -1,
    .retention_bytes = -1,
    .pending_bytes = 1 << 20,
    .cache_bytes = 1 << 20,
    .cursor_max_entries = 1000,
    .cursor_delta_delay_us = 100,
};

static void house_open_with(unsigned bookies, const struct ml_conf *conf)
{
    h.conf = *conf;
    h.loop = loop_new("test");
    loop_start(h.loop);
    ck_assert(meta_memory_open(&h.meta) == ERR_OK);
    on_loop(bookies_start, NULL);
    for (unsigned i = 0; i < bookies; i++)
        bookie_join(i);
    for (unsigned i = 0; i < OWNERS; i++) {
        on_loop(owner_start, &h.owner[i]);
        until(owner_sees_bookies, &h.owner[i]);
    }
}

static void house_open(unsigned bookies)
{
    house_open_with(bookies, &usual);
}

/* ---- open, close, delete ------------------------------------------------------------------------
 */

struct order {
    struct ml_call call;
    struct owner *owner;
    bool create, delete, done;
    enum err err;
};

static void order_done(struct ml_call *c, enum err err, struct managed_ledger *m)
{
    struct order *o = container_of(c, struct order, call);

    o->done = true;
    o->err = err;
    if (m)
        o->owner->ml = m;
}

static bool is_done(void *ctx)
{
    return ((struct order *)ctx)->done;
}

static void open_it(void *ctx)
{
    struct order *o = ctx;

    o->call.done = order_done;
    managed_ledger_open(o->owner->env, NAME, o->create, &o->owner->tell, &o->call);
    ck_assert(!o->done);
}

static enum err open_by(unsigned who, bool create)
{
    struct order o = {.owner = &h.owner[who], .create = create};

    on_loop(open_it, &o);
    until(is_done, &o);
    return o.err;
}

static void end_it(void *ctx)
{
    struct order *o = ctx;

    o->call.done = order_done;
    if (o->delete)
        managed_ledger_delete(&o->owner->ml, &o->call);
    else
        managed_ledger_close(&o->owner->ml, &o->call);
    ck_assert(!o->done);
}

static enum err end_by(unsigned who, bool delete)
{
    struct order o = {.owner = &h.owner[who], .delete = delete};

    on_loop(end_it, &o);
    until(is_done, &o);
    return o.err;
}

static void stop(void *ctx)
{
    (void)ctx;
    for (unsigned i = 0; i < OWNERS; i++) {
        ml_env_drop(&h.owner[i].env);
        ledger_client_drop(&h.owner[i].client);
    }
    for (unsigned i = 0; i < BOOKIES_MAX; i++)
        fake_bookie_drop(&h.bookie[i]);
}

static void house_close(void)
{
    for (unsigned i = 0; i < OWNERS; i++)
        if (h.owner[i].ml)
            ck_assert(end_by(i, false) == (h.owner[i].failed ? ERR_FENCED : ERR_OK));
    on_loop(stop, NULL);
    loop_drop(&h.loop);
    meta_close(&h.meta);
}

/* ---- adds ---------------------------------------------------------------------------------------
 */

static void add_done(struct ml_add *a, enum err err, struct position at, uint64_t index)
{
    struct one_add *one = container_of(a, struct one_add, add);

    ck_assert(!one->done);
    ck_assert_ptr_eq(one, &h.add[h.done]); /* in order */
    one->done = true;
    one->err = err;
    one->at = at;
    one->index = index;
    h.done++;
    if (!err)
        h.confirmed++;
    chain_drop(&a->payload);
}

static void add_one(struct managed_ledger *m)
{
    struct one_add *one = &h.add[h.added];
    struct ml_add *a = &one->add;
    int len = snprintf(one->text, sizeof(one->text), "the text of entry %u", h.added);

    memset(a, 0, sizeof(*a));
    chain_push(&a->payload, slice_copy(one->text, 5));
    chain_push(&a->payload, slice_copy(one->text + 5, (size_t)len - 5));
    a->crc = crc32c(one->text, (size_t)len);
    a->messages = 1 + h.added % 3;
    a->done = add_done;
    one->refused = managed_ledger_add(m, a);
    if (one->refused)
        chain_drop(&a->payload);
    else
        h.added++;
    ck_assert(!one->done);
}

struct many {
    unsigned who, n;
};

static void add_many(void *ctx)
{
    struct many *many = ctx;

    for (unsigned i = 0; i < many->n; i++)
        add_one(h.owner[many->who].ml);
}

static void start_adding(unsigned who, unsigned n)
{
    on_loop(add_many, &(struct many){who, n});
}

static bool all_done(void *ctx)
{
    (void)ctx;
    return h.done == h.added;
}

static void add(unsigned who, unsigned n)
{
    start_adding(who, n);
    until(all_done, NULL);
}

/* ---- reads --------------------------------------------------------------------------------------
 */

struct reading {
    struct ml_read read;
    struct managed_ledger *ml;
    bool done;
    enum err err;
    unsigned n;
    struct position at[ADDS_MAX], next;
    uint64_t index[ADDS_MAX];
    char text[ADDS_MAX][40];
};

static void read_done(struct ml_read *r, enum err err, struct ml_entry *entries, unsigned n,
                      struct position next)
{
    struct reading *g = container_of(r, struct reading, read);

    g->done = true;
    g->err = err;
    g->n = n;
    g->next = next;
    for (unsigned i = 0; i < n; i++) {
        struct broker_entry b;
        struct view rest;
        ck_assert(broker_entry_read(slice_view(entries[i].payload), &b, &rest) == ERR_OK);
        ck_assert(b.present && b.timestamp > 0);
        g->index[i] = b.index;
        g->at[i] = entries[i].at;
        snprintf(g->text[i], sizeof(g->text[i]), "%.*s", (int)rest.len, (const char *)rest.base);
        slice_drop(&entries[i].payload);
    }
}

static void read_it(void *ctx)
{
    struct reading *g = ctx;

    g->done = false;
    g->read.done = read_done;
    managed_ledger_read(g->ml, &g->read);
    ck_assert(!g->done);
}

static bool is_read(void *ctx)
{
    return ((struct reading *)ctx)->done;
}

static struct reading g;

static void read_by(unsigned who, struct position from, unsigned max_entries, size_t max_bytes,
                    const struct cursor *skip)
{
    g.ml = h.owner[who].ml;
    g.read = (struct ml_read){
        .from = from, .max_entries = max_entries, .max_bytes = max_bytes, .skip = skip};
    on_loop(read_it, &g);
    until(is_read, &g);
}

/* Everything that was confirmed, once, in order, with dense indexes, in steps of `step`. */
static void check_all(unsigned who, unsigned step)
{
    struct position from = POSITION_EARLIEST;
    unsigned seen = 0;
    uint64_t index = 0;

    for (;;) {
        read_by(who, from, step, 0, NULL);
        ck_assert_int_eq(g.err, ERR_OK);
        if (g.n == 0)
            break;
        for (unsigned i = 0; i < g.n; i++, seen++) {
            ck_assert_str_eq(g.text[i], h.add[seen].text);
            ck_assert(position_equal(g.at[i], h.add[seen].at));
            index += h.add[seen].add.messages;
            ck_assert_uint_eq(g.index[i], index - 1);
            ck_assert_uint_eq(h.add[seen].index, index - 1);
        }
        from = g.next;
    }
    ck_assert_uint_eq(seen, h.confirmed);
}

/* ---- the node -----------------------------------------------------------------------------------
 */

static ManagedLedger__ManagedLedgerInfo *node_read(int64_t *version)
{
    ManagedLedger__ManagedLedgerInfo *r = NULL;
    struct slice value = {0};
    char path[META_KEY_MAX];

    ck_assert(path_managed_ledger(NAME, path) == ERR_OK);
    if (meta_get_wait(h.meta, path, &value, version))
        return NULL;
    ck_assert(managed_ledger_record_read(slice_view(value), &r) == ERR_OK);
    slice_drop(&value);
    return r;
}

static void node_free(ManagedLedger__ManagedLedgerInfo *r)
{
    managed_ledger__managed_ledger_info__free_unpacked(r, NULL);
}

static size_t node_ledgers(void)
{
    int64_t version;
    ManagedLedger__ManagedLedgerInfo *r = node_read(&version);
    size_t n = r->n_ledgerinfo;

    node_free(r);
    return n;
}

static bool ledger_exists(int64_t id)
{
    char path[META_KEY_MAX];
    struct slice value = {0};
    int64_t version;

    ck_assert(path_ledger(id, path) == ERR_OK);
    enum err err = meta_get_wait(h.meta, path, &value, &version);
    slice_drop(&value);
    return err == ERR_OK;
}

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
    ledger_delete(h.owner[0].client, r->id, &r->call);
}

static bool is_removed(void *ctx)
{
    return ((struct removal *)ctx)->done;
}

static void ledger_remove(int64_t id)
{
    struct removal r = {.id = id};

    on_loop(remove_it, &r);
    until(is_removed, &r);
}

/* ---- the tests ----------------------------------------------------------------------------------
 */

START_TEST(what_is_added_can_be_read)
{
    house_open(3);
    ck_assert_int_eq(open_by(0, false), ERR_TOPIC_NOT_FOUND);
    ck_assert_int_eq(open_by(0, true), ERR_OK);
    ck_assert_uint_eq(node_ledgers(), 0); /* an idle topic costs no ledger */
    add(0, 50);
    ck_assert_uint_eq(h.confirmed, 50);
    ck_assert_uint_gt(h.owner[0].grew, 0);
    ck_assert_uint_eq(node_ledgers(), 1);
    check_all(0, 7);
    check_all(0, 400);
    house_close();
}
END_TEST

START_TEST(a_read_keeps_to_its_limits)
{
    house_open(3);
    ck_assert_int_eq(open_by(0, true), ERR_OK);
    add(0, 20);
    read_by(0, POSITION_EARLIEST, 3, 0, NULL);
    ck_assert_uint_eq(g.n, 3);
    ck_assert_int_eq(g.next.entry, 3);
    read_by(0, POSITION_EARLIEST, 20, 1, NULL); /* one at least */
    ck_assert_uint_eq(g.n, 1);
    read_by(0, POSITION_EARLIEST, 20, 100, NULL);
    ck_assert_uint_gt(g.n, 1);
    ck_assert_uint_lt(g.n, 20);
    read_by(0, POSITION_LATEST, 20, 0, NULL); /* behind everything: nothing, and where to go on */
    ck_assert_uint_eq(g.n, 0);
    ck_assert_int_eq(g.next.entry, 20);
    add(0, 1);
    read_by(0, g.next, 20, 0, NULL);
    ck_assert_uint_eq(g.n, 1);
    house_close();
}
END_TEST

START_TEST(the_next_broker_goes_on_where_it_was_closed)
{
    house_open(3);
    ck_assert_int_eq(open_by(0, true), ERR_OK);
    add(0, 10);
    ck_assert_int_eq(end_by(0, false), ERR_OK);
    int64_t version;
    ManagedLedger__ManagedLedgerInfo *r = node_read(&version);
    ck_assert_uint_eq(r->n_ledgerinfo, 1);
    ck_assert_int_eq(r->ledgerinfo[0]->entries, 10);
    ck_assert(r->ledgerinfo[0]->size > 0 && r->ledgerinfo[0]->timestamp > 0);
    ck_assert_str_eq(r->properties[0]->key, "index");
    node_free(r);
    ck_assert_int_eq(open_by(1, false), ERR_OK);
    check_all(1, 100);
    add(1, 10);
    ck_assert(h.add[10].at.ledger > h.add[9].at.ledger);
    check_all(1, 4);
    house_close();
}
END_TEST

START_TEST(a_takeover_fences_the_old_owner)
{
    house_open(3);
    ck_assert_int_eq(open_by(0, true), ERR_OK);
    add(0, 10);
    ck_assert_int_eq(open_by(1, false), ERR_OK);
    check_all(1, 100);
    unsigned before = h.added;
    start_adding(0, 3);
    until(all_done, NULL);
    for (unsigned i = before; i < h.added; i++)
        ck_assert_int_eq(h.add[i].err, ERR_FENCED);
    ck_assert_int_eq(h.owner[0].failed, ERR_FENCED);
    start_adding(0, 1);
    ck_assert_int_eq(h.add[h.added].refused, ERR_FENCED);
    h.added = h.done = before; /* what was refused is no part of the log */
    memset(&h.add[before], 0, sizeof(h.add[0]) * 4);
    add(1, 5);
    check_all(1, 100);
    house_close();
}
END_TEST

START_TEST(an_owner_without_a_ledger_is_stopped_by_the_node)
{
    house_open(3);
    ck_assert_int_eq(open_by(0, true), ERR_OK);
    ck_assert_int_eq(open_by(1, false), ERR_OK);
    start_adding(0, 1);
    until(all_done, NULL);
    ck_assert_int_eq(h.add[0].err, ERR_FENCED);
    ck_assert_int_eq(h.owner[0].failed, ERR_FENCED);
    house_close();
}
END_TEST

START_TEST(a_full_ledger_is_followed_by_another)
{
    struct ml_conf conf = usual;
    conf.max_entries_per_ledger = 5;
    house_open_with(3, &conf);
    ck_assert_int_eq(open_by(0, true), ERR_OK);
    for (unsigned i = 0; i < 25; i++)
        add(0, 1);
    start_adding(0, 100);
    until(all_done, NULL);
    ck_assert_uint_gt(node_ledgers(), 4);
    check_all(0, 10);
    check_all(0, 400);
    ck_assert_int_eq(end_by(0, false), ERR_OK);
    ck_assert_int_eq(open_by(1, false), ERR_OK);
    check_all(1, 30);
    house_close();
}
END_TEST

static bool trimmed(void *ctx)
{
    (void)ctx;
    return managed_ledger_segments(h.owner[0].ml)->n == 1;
}

static bool first_is_gone(void *ctx)
{
    (void)ctx;
    return !h.owner[0].ml ||
           managed_ledger_segments(h.owner[0].ml)->at[0].ledger > h.add[0].at.ledger;
}

START_TEST(what_nobody_needs_is_trimmed)
{
    struct ml_conf conf = usual;
    conf.max_entries_per_ledger = 5;
    conf.retention_ms = conf.retention_bytes = 0;
    house_open_with(3, &conf);
    ck_assert_int_eq(open_by(0, true), ERR_OK);
    for (unsigned i = 0; i < 22; i++)
        add(0, 1);
    until(first_is_gone, NULL);
    until(trimmed, NULL);
    while (ledger_exists(h.add[0].at.ledger))
        sched_yield();
    while (node_ledgers() != 1)
        sched_yield();
    read_by(0, POSITION_EARLIEST, 1, 0, NULL); /* goes to the first that is left */
    ck_assert_uint_eq(g.n, 1);
    ck_assert_int_eq(g.err, ERR_OK);
    /* All that could tell the index is gone, but for the node. */
    unsigned before = h.added;
    ck_assert_int_eq(end_by(0, false), ERR_OK);
    ck_assert_int_eq(open_by(0, false), ERR_OK);
    add(0, 1);
    ck_assert_uint_eq(h.add[before].index, h.add[before - 1].index + h.add[before].add.messages);
    house_close();
}
END_TEST

static void break_adds(void *ctx)
{
    (void)ctx;
    fake_bookie_knobs(h.bookie[0])->on_add = (struct fault){.after = 7, .times = 1};
    fake_bookie_knobs(h.bookie[0])->add_status = 101;
}

START_TEST(a_failed_ledger_ends_and_nothing_is_lost)
{
    house_open(2);
    ck_assert_int_eq(open_by(0, true), ERR_OK);
    on_loop(break_adds, NULL);
    start_adding(0, 100);
    until(all_done, NULL);
    ck_assert_uint_eq(h.confirmed, 100);
    ck_assert_int_gt(h.add[99].at.ledger, 0);
    check_all(0, 16);
    house_close();
}
END_TEST

START_TEST(producers_wait_until_there_are_enough_bookies)
{
    house_open(1);
    ck_assert_int_eq(open_by(0, true), ERR_OK);
    start_adding(0, 10);
    bookie_join(1);
    until(all_done, NULL);
    ck_assert_uint_eq(h.confirmed, 10);
    check_all(0, 100);
    house_close();
}
END_TEST

START_TEST(what_waits_is_bounded)
{
    struct ml_conf conf = usual;
    conf.pending_bytes = 200;
    house_open_with(0, &conf);
    ck_assert_int_eq(open_by(0, true), ERR_OK);
    start_adding(0, 20);
    ck_assert_int_eq(h.add[h.added].refused, ERR_BUSY);
    ck_assert_uint_gt(h.added, 1);
    ck_assert_uint_lt(h.added, 20);
    ck_assert_int_eq(end_by(0, false), ERR_OK); /* refuses them */
    until(all_done, NULL);
    ck_assert_int_eq(h.add[0].err, ERR_CLOSED);
    house_close();
}
END_TEST

static void set_it(void *ctx)
{
    struct order *o = ctx;

    o->call.done = order_done;
    managed_ledger_set_property(o->owner->ml, "pulsar.topic.epoch", "3", &o->call);
    ck_assert(!o->done);
}

START_TEST(a_property_is_there_for_the_next_owner)
{
    house_open(2);
    ck_assert_int_eq(open_by(0, true), ERR_OK);
    struct order o = {.owner = &h.owner[0]};
    on_loop(set_it, &o);
    until(is_done, &o);
    ck_assert_int_eq(o.err, ERR_OK);
    ck_assert_int_eq(open_by(1, false), ERR_OK);
    ck_assert_str_eq(managed_ledger_property(h.owner[1].ml, "pulsar.topic.epoch"), "3");
    o = (struct order){.owner = &h.owner[0]};
    on_loop(set_it, &o);
    until(is_done, &o);
    ck_assert_int_eq(o.err, ERR_FENCED);
    house_close();
}
END_TEST

START_TEST(a_deleted_topic_leaves_nothing)
{
    house_open(2);
    ck_assert_int_eq(open_by(0, true), ERR_OK);
    add(0, 5);
    ck_assert_int_eq(end_by(0, true), ERR_OK);
    int64_t version;
    ck_assert_ptr_null(node_read(&version));
    ck_assert(!ledger_exists(h.add[0].at.ledger));
    ck_assert_int_eq(open_by(0, false), ERR_TOPIC_NOT_FOUND);
    house_close();
}
END_TEST

START_TEST(a_lost_last_ledger_does_not_close_the_topic)
{
    house_open(2);
    ck_assert_int_eq(open_by(0, true), ERR_OK);
    add(0, 5);
    ck_assert_int_eq(end_by(0, false), ERR_OK);
    ledger_remove(h.add[0].at.ledger);
    ck_assert_int_eq(open_by(1, false), ERR_OK);
    ck_assert_uint_eq(node_ledgers(), 1); /* its id is what the next one must be above */
    add(1, 1);
    ck_assert(h.add[5].at.ledger > h.add[0].at.ledger);
    ck_assert_uint_eq(h.add[5].index, h.add[4].index + h.add[5].add.messages);
    while (node_ledgers() != 1)
        sched_yield();
    house_close();
}
END_TEST

static void read_and_cancel(void *ctx)
{
    struct reading *r = ctx;

    read_it(r);
    managed_ledger_read_cancel(r->ml, &r->read);
}

START_TEST(a_cancelled_read_is_not_heard_of_again)
{
    house_open(2);
    ck_assert_int_eq(open_by(0, true), ERR_OK);
    add(0, 5);
    struct reading *r = mem_new(struct reading);
    r->ml = h.owner[0].ml;
    r->read = (struct ml_read){.from = POSITION_EARLIEST, .max_entries = 10};
    on_loop(read_and_cancel, r);
    check_all(0, 100);
    ck_assert(!r->done);
    mem_free(r);
    house_close();
}
END_TEST

int main(void)
{
    return suite_run("managed_ledger",
                     (suite_case[]){
                         SUITE_CASE(what_is_added_can_be_read),
                         SUITE_CASE(a_read_keeps_to_its_limits),
                         SUITE_CASE(the_next_broker_goes_on_where_it_was_closed),
                         SUITE_CASE(a_takeover_fences_the_old_owner),
                         SUITE_CASE(an_owner_without_a_ledger_is_stopped_by_the_node),
                         SUITE_CASE(a_full_ledger_is_followed_by_another),
                         SUITE_CASE(what_nobody_needs_is_trimmed),
                         SUITE_CASE(a_failed_ledger_ends_and_nothing_is_lost),
                         SUITE_CASE(producers_wait_until_there_are_enough_bookies),
                         SUITE_CASE(what_waits_is_bounded),
                         SUITE_CASE(a_property_is_there_for_the_next_owner),
                         SUITE_CASE(a_deleted_topic_leaves_nothing),
                         SUITE_CASE(a_lost_last_ledger_does_not_close_the_topic),
                         SUITE_CASE(a_cancelled_read_is_not_heard_of_again),
                         {0},
                     });
}
