#include "tests/unit/broker/managed_ledger/log_house.h"

#include <sched.h>
#include <stdio.h>
#include <string.h>

#include "common/crc32c.h"
#include "common/mem.h"
#include "metadata/paths.h"
#include "proto/message.h"
#include "tests/lib/suite.h"

struct log_house log_house;
struct metadata *(*log_house_wrap_store)(struct metadata *inner);

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

void log_house_until(bool (*is_so)(void *ctx), void *ctx)
{
    struct ask a = {is_so, ctx, false};

    for (loop_call(log_house.loop, ask_it, &a); !a.so; loop_call(log_house.loop, ask_it, &a))
        sched_yield();
}

void log_house_call(void (*fn)(void *ctx), void *ctx)
{
    loop_call(log_house.loop, fn, ctx);
}

/* ---- log_house
 * -------------------------------------------------------------------------------------
 */

static void bookies_start(void *ctx)
{
    (void)ctx;
    for (unsigned i = 0; i < BOOKIES_MAX; i++)
        log_house.bookie[i] = fake_bookie_new(log_house.loop);
}

void log_house_join(unsigned i)
{
    char path[META_KEY_MAX];

    ck_assert(path_bookie(fake_bookie_id(log_house.bookie[i]), false, path) == ERR_OK);
    ck_assert(meta_put_wait(log_house.meta, path, (struct slice){0}, META_ABSENT) == ERR_OK);
    log_house.n++;
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
    o->client = ledger_client_new(log_house.loop, log_house.meta, NULL);
    o->env = ml_env_new(log_house.loop, o->client, log_house.meta, &log_house.conf);
}

static bool owner_sees_bookies(void *ctx)
{
    struct owner *o = ctx;

    return ledger_client_ready(o->client) && ledger_client_bookies(o->client) == log_house.n;
}

const struct ml_conf log_house_usual = {
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

void log_house_open_with(unsigned bookies, const struct ml_conf *conf)
{
    log_house.conf = *conf;
    log_house.loop = loop_new("test");
    loop_start(log_house.loop);
    ck_assert(meta_memory_open(&log_house.meta) == ERR_OK);
    if (log_house_wrap_store)
        log_house.meta = log_house_wrap_store(log_house.meta);
    log_house_call(bookies_start, NULL);
    for (unsigned i = 0; i < bookies; i++)
        log_house_join(i);
    for (unsigned i = 0; i < OWNERS; i++) {
        log_house_call(owner_start, &log_house.owner[i]);
        log_house_until(owner_sees_bookies, &log_house.owner[i]);
    }
}

void log_house_open(unsigned bookies)
{
    log_house_open_with(bookies, &log_house_usual);
}

/* ---- open, close, delete ------------------------------------------------------------------------
 */

void log_house_order_done(struct ml_call *c, enum err err, struct managed_ledger *m)
{
    struct order *o = container_of(c, struct order, call);

    o->done = true;
    o->err = err;
    if (m)
        o->owner->ml = m;
}

bool log_house_is_done(void *ctx)
{
    return ((struct order *)ctx)->done;
}

static void open_it(void *ctx)
{
    struct order *o = ctx;

    o->call.done = log_house_order_done;
    managed_ledger_open(o->owner->env, HOUSE_TOPIC, o->create, &o->owner->tell, &o->call);
    ck_assert(!o->done);
}

enum err log_house_own(unsigned who, bool create)
{
    struct order o = {.owner = &log_house.owner[who], .create = create};

    log_house_call(open_it, &o);
    log_house_until(log_house_is_done, &o);
    return o.err;
}

static void end_it(void *ctx)
{
    struct order *o = ctx;

    o->call.done = log_house_order_done;
    if (o->delete)
        managed_ledger_delete(&o->owner->ml, &o->call);
    else
        managed_ledger_close(&o->owner->ml, &o->call);
    ck_assert(!o->done);
}

enum err log_house_end(unsigned who, bool delete)
{
    struct order o = {.owner = &log_house.owner[who], .delete = delete};

    log_house_call(end_it, &o);
    log_house_until(log_house_is_done, &o);
    return o.err;
}

static void stop(void *ctx)
{
    (void)ctx;
    for (unsigned i = 0; i < OWNERS; i++) {
        ml_env_drop(&log_house.owner[i].env);
        ledger_client_drop(&log_house.owner[i].client);
    }
    for (unsigned i = 0; i < BOOKIES_MAX; i++)
        fake_bookie_drop(&log_house.bookie[i]);
}

void log_house_close(void)
{
    for (unsigned i = 0; i < OWNERS; i++)
        if (log_house.owner[i].ml)
            ck_assert(log_house_end(i, false) == (log_house.owner[i].failed ? ERR_FENCED : ERR_OK));
    log_house_call(stop, NULL);
    loop_drop(&log_house.loop);
    meta_close(&log_house.meta);
}

/* ---- adds ---------------------------------------------------------------------------------------
 */

static void add_done(struct ml_add *a, enum err err, struct position at, uint64_t index)
{
    struct one_add *one = container_of(a, struct one_add, add);

    ck_assert(!one->done);
    ck_assert_ptr_eq(one, &log_house.add[log_house.done]); /* in order */
    one->done = true;
    one->err = err;
    one->at = at;
    one->index = index;
    log_house.done++;
    if (!err)
        log_house.confirmed++;
    chain_drop(&a->payload);
}

static void add_one(struct managed_ledger *m)
{
    struct one_add *one = &log_house.add[log_house.added];
    struct ml_add *a = &one->add;
    int len = snprintf(one->text, sizeof(one->text), "the text of entry %u", log_house.added);

    ck_assert_uint_lt(log_house.added, ADDS_MAX);
    memset(a, 0, sizeof(*a));
    chain_push(&a->payload, slice_copy(one->text, 5));
    chain_push(&a->payload, slice_copy(one->text + 5, (size_t)len - 5));
    a->crc = crc32c(one->text, (size_t)len);
    a->messages = 1 + log_house.added % 3;
    a->done = add_done;
    one->refused = managed_ledger_add(m, a);
    if (one->refused)
        chain_drop(&a->payload);
    else
        log_house.added++;
    ck_assert(!one->done);
}

struct many {
    unsigned who, n;
};

static void add_many(void *ctx)
{
    struct many *many = ctx;

    for (unsigned i = 0; i < many->n; i++)
        add_one(log_house.owner[many->who].ml);
}

void log_house_start(unsigned who, unsigned n)
{
    log_house_call(add_many, &(struct many){who, n});
}

bool log_house_answered(void *ctx)
{
    (void)ctx;
    return log_house.done == log_house.added;
}

void log_house_add(unsigned who, unsigned n)
{
    log_house_start(who, n);
    log_house_until(log_house_answered, NULL);
}

/* ---- reads --------------------------------------------------------------------------------------
 */

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

void log_house_read_begin(void *ctx)
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

struct reading log_house_got;

void log_house_read(unsigned who, struct position from, unsigned max_entries, size_t max_bytes,
                    const struct cursor *skip)
{
    log_house_got.ml = log_house.owner[who].ml;
    log_house_got.read = (struct ml_read){
        .from = from, .max_entries = max_entries, .max_bytes = max_bytes, .skip = skip};
    log_house_call(log_house_read_begin, &log_house_got);
    log_house_until(is_read, &log_house_got);
}

/* Everything that was confirmed, once, in order, with dense indexes, in steps of `step`. */
void log_house_check(unsigned who, unsigned step)
{
    struct position from = POSITION_EARLIEST;
    unsigned seen = 0;
    uint64_t index = 0;

    for (;;) {
        log_house_read(who, from, step, 0, NULL);
        ck_assert_int_eq(log_house_got.err, ERR_OK);
        if (log_house_got.n == 0)
            break;
        for (unsigned i = 0; i < log_house_got.n; i++, seen++) {
            ck_assert_str_eq(log_house_got.text[i], log_house.add[seen].text);
            ck_assert(position_equal(log_house_got.at[i], log_house.add[seen].at));
            index += log_house.add[seen].add.messages;
            ck_assert_uint_eq(log_house_got.index[i], index - 1);
            ck_assert_uint_eq(log_house.add[seen].index, index - 1);
        }
        from = log_house_got.next;
    }
    ck_assert_uint_eq(seen, log_house.confirmed);
}

/* ---- cursors ----------------------------------------------------------------------------------
 */

struct cursor_order {
    struct ml_cursor_call call;
    struct cursor_ack_call ack;
    struct managed_ledger *ml;
    const char *name;
    struct position at;
    struct cursor *cursor;
    log_house_ack_how *how;
    bool done, delete;
    enum err err;
};

static void cursor_done(struct ml_cursor_call *c, enum err err, struct cursor *cursor)
{
    struct cursor_order *o = container_of(c, struct cursor_order, call);

    o->done = true;
    o->err = err;
    o->cursor = cursor;
}

static void cursor_it(void *ctx)
{
    struct cursor_order *o = ctx;

    o->call.done = cursor_done;
    if (o->delete)
        managed_ledger_cursor_delete(o->ml, o->name, &o->call);
    else
        managed_ledger_cursor_create(o->ml, o->name, o->at, &o->call);
    ck_assert(!o->done);
}

static bool cursor_is_done(void *ctx)
{
    return ((struct cursor_order *)ctx)->done;
}

enum err log_house_cursor(unsigned who, const char *name, struct position at, bool delete,
                          struct cursor **out)
{
    struct cursor_order o = {
        .ml = log_house.owner[who].ml, .name = name, .at = at, .delete = delete};

    log_house_call(cursor_it, &o);
    log_house_until(cursor_is_done, &o);
    if (out)
        *out = o.cursor;
    return o.err;
}

static void acked(struct cursor_ack_call *c, enum err err)
{
    struct cursor_order *o = container_of(c, struct cursor_order, ack);

    o->done = true;
    o->err = err;
}

static void ack_it(void *ctx)
{
    struct cursor_order *o = ctx;

    o->ack.done = acked;
    o->how(o->cursor, o->at, &o->ack);
}

void log_house_ack(struct cursor *c, unsigned i, log_house_ack_how *how)
{
    struct cursor_order o = {.cursor = c, .at = log_house.add[i].at, .how = how};

    log_house_call(ack_it, &o);
    log_house_until(cursor_is_done, &o);
    ck_assert_int_eq(o.err, ERR_OK);
}

/* ---- the node -----------------------------------------------------------------------------------
 */

ManagedLedger__ManagedLedgerInfo *log_house_node(int64_t *version)
{
    ManagedLedger__ManagedLedgerInfo *r = NULL;
    struct slice value = {0};
    char path[META_KEY_MAX];

    ck_assert(path_managed_ledger(HOUSE_TOPIC, path) == ERR_OK);
    if (meta_get_wait(log_house.meta, path, &value, version))
        return NULL;
    ck_assert(managed_ledger_record_read(slice_view(value), &r) == ERR_OK);
    slice_drop(&value);
    return r;
}

void log_house_node_free(ManagedLedger__ManagedLedgerInfo *r)
{
    managed_ledger__managed_ledger_info__free_unpacked(r, NULL);
}

size_t log_house_node_ledgers(void)
{
    int64_t version;
    ManagedLedger__ManagedLedgerInfo *r = log_house_node(&version);
    size_t n = r->n_ledgerinfo;

    log_house_node_free(r);
    return n;
}

bool log_house_has_ledger(int64_t id)
{
    char path[META_KEY_MAX];
    struct slice value = {0};
    int64_t version;

    ck_assert(path_ledger(id, path) == ERR_OK);
    enum err err = meta_get_wait(log_house.meta, path, &value, &version);
    slice_drop(&value);
    return err == ERR_OK;
}
