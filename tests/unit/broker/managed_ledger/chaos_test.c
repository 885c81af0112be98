/* Two brokers that take a topic from each other, bookies that fail, and a store that loses
 * answers: whatever was confirmed is there, once, in order, with dense indexes. */
#include <sched.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>

#include "common/mem.h"
#include "common/rng.h"
#include "proto/message.h"
#include "tests/lib/suite.h"
#include "tests/unit/broker/managed_ledger/log_house.h"

/* ---- a store that loses answers
 * ------------------------------------------------------------------ */

struct flaky {
    struct metadata base;
    struct metadata *inner;
    uint64_t seed;
    atomic_uint percent;
    atomic_bool away;   /* for the managed ledger's own node */
    atomic_bool linger; /* the next that makes a cursor is not done before the test does it */
    struct meta_op lingering[2];
    char lingering_keys[2][META_KEY_MAX];
    size_t n_lingering;
    struct meta_call done;
    atomic_bool is_done;
};

struct flaky_call {
    struct meta_call inner;
    struct meta_call *outer;
    struct task late;
    enum err instead; /* of the store's answer, if that was ERR_OK */
};

static struct flaky flaky;

static void answered(struct meta_call *c, const struct meta_reply *r)
{
    struct flaky_call *f = container_of(c, struct flaky_call, inner);
    struct meta_call *outer = f->outer;
    struct meta_reply reply = *r;

    if (!r->err && f->instead)
        reply = (struct meta_reply){.err = f->instead};
    mem_free(f);
    outer->done(outer, &reply);
}

static void not_done(struct task *t)
{
    struct flaky_call *f = container_of(t, struct flaky_call, late);
    struct meta_reply reply = {.err = f->instead};
    struct meta_call *outer = f->outer;

    mem_free(f);
    outer->done(outer, &reply);
}

static struct flaky_call *wrap(struct meta_call *c, enum err instead)
{
    struct flaky_call *f = mem_new(struct flaky_call);

    *f = (struct flaky_call){.inner = {.home = c->home, .done = answered},
                             .outer = c,
                             .late.run = not_done,
                             .instead = instead};
    return f;
}

static bool strikes(const char *key)
{
    return strncmp(key, "/managed-ledgers/", 17) == 0 &&
           rng_below(&flaky.seed, 100) < flaky.percent;
}

/* A request that is slow on its way: nobody knows, and it comes. */
static bool lingers(const struct meta_op *ops, size_t n, struct meta_call *c)
{
    if (ops[0].expected != META_ABSENT || n > 2 || !atomic_exchange(&flaky.linger, false))
        return false;
    for (size_t i = 0; i < n; i++) {
        flaky.lingering[i] = ops[i];
        flaky.lingering[i].key = flaky.lingering_keys[i];
        snprintf(flaky.lingering_keys[i], META_KEY_MAX, "%s", ops[i].key);
    }
    flaky.n_lingering = n;
    loop_post(c->home, &wrap(c, ERR_UNKNOWN_STATE)->late);
    return true;
}

static void arrived(struct meta_call *c, const struct meta_reply *r)
{
    (void)c, (void)r;
    flaky.is_done = true;
}

static void arrive(void *ctx)
{
    (void)ctx;
    flaky.done = (struct meta_call){.home = log_house.loop, .done = arrived};
    meta_txn(flaky.inner, flaky.lingering, flaky.n_lingering, &flaky.done);
}

static bool has_arrived(void *ctx)
{
    (void)ctx;
    return flaky.is_done;
}

static void put(struct metadata *m, const char *key, struct slice value, int64_t expected,
                struct meta_call *c)
{
    const struct meta_op op = {.key = key, .value = value, .expected = expected};
    (void)m;
    if (lingers(&op, 1, c))
        return;
    if (flaky.away && strcmp(key, "/managed-ledgers/" HOUSE_TOPIC) == 0) {
        slice_drop(&value);
        loop_post(c->home, &wrap(c, ERR_NOT_READY)->late);
        return;
    }
    if (!strikes(key)) {
        meta_put(flaky.inner, key, value, expected, c);
        return;
    }
    enum err instead = rng_below(&flaky.seed, 2) ? ERR_UNKNOWN_STATE : ERR_NOT_READY;
    struct flaky_call *f = wrap(c, instead);
    if (instead == ERR_UNKNOWN_STATE && rng_below(&flaky.seed, 2)) {
        meta_put(flaky.inner, key, value, expected, &f->inner);
        return;
    }
    slice_drop(&value);
    loop_post(c->home, &f->late);
}

static void get(struct metadata *m, const char *key, struct meta_call *c)
{
    (void)m;
    meta_get(flaky.inner, key, c);
}

static void take_out(struct metadata *m, const char *key, int64_t expected, struct meta_call *c)
{
    (void)m;
    meta_remove(flaky.inner, key, expected, c);
}

static void range(struct metadata *m, const char *prefix, const char *after, size_t limit,
                  bool keys_only, struct meta_call *c)
{
    (void)m;
    meta_range(flaky.inner, prefix, after, limit, keys_only, c);
}

static void txn(struct metadata *m, const struct meta_op *ops, size_t n, struct meta_call *c)
{
    (void)m;
    if (!lingers(ops, n, c))
        meta_txn(flaky.inner, ops, n, c);
}

static void counter(struct metadata *m, const char *key, int64_t n, struct meta_call *c)
{
    (void)m;
    meta_counter(flaky.inner, key, n, c);
}

static void watch(struct metadata *m, const char *prefix, struct meta_watch *w)
{
    (void)m;
    meta_watch(flaky.inner, prefix, w);
}

static void unwatch(struct metadata *m, struct meta_watch *w)
{
    (void)m;
    meta_unwatch(flaky.inner, w);
}

static void close_inner(struct metadata *m)
{
    (void)m;
    meta_close(&flaky.inner);
}

static struct metadata *flaky_over(struct metadata *inner)
{
    static const struct meta_ops ops = {
        .get = get,
        .put = put,
        .remove = take_out,
        .range = range,
        .txn = txn,
        .counter = counter,
        .watch = watch,
        .unwatch = unwatch,
        .close = close_inner,
    };
    flaky.base.ops = &ops;
    flaky.inner = inner;
    return &flaky.base;
}

/* ---- lives
 * --------------------------------------------------------------------------------------- */

static void fail_an_add(void *ctx)
{
    uint64_t *seed = ctx;
    struct fake_bookie_knobs *k = fake_bookie_knobs(log_house.bookie[rng_below(seed, 3)]);

    k->on_add = (struct fault){.after = (unsigned)rng_below(seed, 20), .times = 1};
    k->add_status = 101;
}

static void cut(void *ctx)
{
    fake_bookie_cut(log_house.bookie[rng_below((uint64_t *)ctx, 3)]);
}

/* Every confirmed add in order; between them at most adds that nobody was told of, because their
 * owner lost the topic; the indexes dense over all of it. */
static void check(unsigned who)
{
    struct position from = POSITION_EARLIEST;
    unsigned seen = 0;
    uint64_t index = 0;

    for (;;) {
        log_house_read(who, from, 50, 0, NULL);
        ck_assert(!log_house_got.err || err_class(log_house_got.err) == CLASS_RETRY);
        for (unsigned i = 0; i < log_house_got.n; i++) {
            while (seen < log_house.added &&
                   strcmp(log_house_got.text[i], log_house.add[seen].text) != 0)
                ck_assert_int_ne(log_house.add[seen++].err, ERR_OK); /* never a confirmed one */
            ck_assert_uint_lt(seen, log_house.added);
            struct one_add *one = &log_house.add[seen++];
            index += one->add.messages;
            ck_assert_uint_eq(log_house_got.index[i], index - 1);
            ck_assert(one->err || position_equal(one->at, log_house_got.at[i]));
        }
        from = log_house_got.next;
        if (!log_house_got.err && log_house_got.n == 0)
            break;
    }
    for (; seen < log_house.added; seen++)
        ck_assert_int_ne(log_house.add[seen].err, ERR_OK);
}

/* The other broker takes the topic; the old one finds out by itself, or is told to go. */
static unsigned take_over(unsigned who, uint64_t *seed)
{
    unsigned next = 1 - who;
    enum err err;

    if (rng_below(seed, 2)) {
        err = log_house_end(who, false);
        ck_assert(err == ERR_OK || err == ERR_FENCED || err_class(err) == CLASS_RETRY);
    }
    do
        err = log_house_own(next, true);
    while (err == ERR_FENCED || err_class(err) == CLASS_RETRY); /* the old one was at it, too */
    ck_assert_int_eq(err, ERR_OK);
    log_house_until(log_house_answered, NULL);
    if (log_house.owner[who].ml)
        log_house_start(who, 2); /* in vain */
    log_house_until(log_house_answered, NULL);
    if (log_house.owner[who].ml) {
        err = log_house_end(who, false);
        ck_assert(err != ERR_OK);
    }
    log_house.owner[who].failed = ERR_OK;
    return next;
}

/* One that reads while everything else goes on: whatever it gets is in order. */
static struct reading roaming = {.done = true};

static bool has_roamed(void *ctx)
{
    (void)ctx;
    return roaming.done;
}

static void roam(unsigned who)
{
    log_house_until(has_roamed, NULL);
    for (unsigned i = 1; i < roaming.n; i++)
        ck_assert_int_lt(position_compare(roaming.at[i - 1], roaming.at[i]), 0);
    roaming.ml = log_house.owner[who].ml;
    roaming.read = (struct ml_read){.from = POSITION_EARLIEST, .max_entries = ADDS_MAX};
    log_house_call(log_house_read_begin, &roaming);
}

static void live(uint64_t seed)
{
    struct ml_conf conf = log_house_usual;
    unsigned who = 0;

    conf.max_entries_per_ledger = 8;
    conf.quorum = (struct quorum){3, 2, 2};
    conf.cache_bytes = seed % 2 ? conf.cache_bytes : 0;
    log_house_open_with(3, &conf);
    flaky.seed = seed;
    flaky.percent = (unsigned)(seed % 3) * 15;
    while (log_house_own(0, true) != ERR_OK)
        ck_assert_uint_gt(flaky.percent, 0);
    while (log_house.added < ADDS_MAX - 20) {
        switch (rng_below(&seed, 10)) {
        case 0:
            log_house_call(fail_an_add, &seed);
            break;
        case 1:
            log_house_call(cut, &seed);
            break;
        case 2:
            who = take_over(who, &seed);
            break;
        case 3:
            log_house_until(log_house_answered, NULL);
            check(who);
            break;
        case 4:
        case 5:
            roam(who);
            break;
        default:
            log_house_start(who, 1 + (unsigned)rng_below(&seed, 12));
            break;
        }
    }
    flaky.percent = 0;
    log_house_until(log_house_answered, NULL);
    log_house_until(has_roamed, NULL);
    check(who);
    who = take_over(who, &seed);
    check(who);
    log_house_close();
}

START_TEST(confirmed_is_confirmed)
{
    log_house_wrap_store = flaky_over;
    live((uint64_t)_i + 1);
}
END_TEST

static bool trimmed(void *ctx)
{
    (void)ctx;
    return managed_ledger_segments(log_house.owner[0].ml)->n == 1;
}

START_TEST(a_ledger_goes_only_after_the_node_has_let_it_go)
{
    struct ml_conf conf = log_house_usual;
    struct cursor *c;

    log_house_wrap_store = flaky_over;
    conf.max_entries_per_ledger = 5;
    conf.retention_ms = conf.retention_bytes = 0;
    log_house_open_with(3, &conf);
    ck_assert_int_eq(log_house_own(0, true), ERR_OK);
    ck_assert_int_eq(log_house_cursor(0, "s", POSITION_EARLIEST, false, &c), ERR_OK);
    for (log_house_add(0, 5);
         log_house.add[log_house.added - 1].at.ledger == log_house.add[0].at.ledger;)
        log_house_add(0, 1);
    flaky.away = true;
    log_house_ack(c, log_house.added - 1, cursor_ack_upto);
    log_house_until(trimmed, NULL);
    log_house_add(0, 1);
    ck_assert(log_house_has_ledger(log_house.add[0].at.ledger));
    flaky.away = false;
    while (log_house_has_ledger(log_house.add[0].at.ledger))
        sched_yield();
    log_house_close();
}
END_TEST

START_TEST(a_late_request_brings_no_deleted_cursor_back)
{
    struct cursor *c;
    enum err err;
    struct slice value = {0};
    int64_t version;

    log_house_wrap_store = flaky_over;
    log_house_open(3);
    ck_assert_int_eq(log_house_own(0, true), ERR_OK);
    flaky.linger = true;
    ck_assert_int_eq(log_house_cursor(0, "s", POSITION_EARLIEST, false, &c), ERR_OK);
    ck_assert_uint_gt(flaky.n_lingering, 0);
    ck_assert_int_eq(log_house_cursor(0, "s", POSITION_EARLIEST, true, NULL), ERR_OK);
    log_house_call(arrive, NULL);
    log_house_until(has_arrived, NULL);
    err = meta_get_wait(flaky.inner, "/managed-ledgers/" HOUSE_TOPIC "/s", &value, &version);
    ck_assert_int_eq(err, ERR_NOT_FOUND);
    log_house_close();
}
END_TEST

int main(void)
{
    return suite_run("managed_ledger_chaos",
                     (suite_case[]){
                         SUITE_CASE(a_ledger_goes_only_after_the_node_has_let_it_go),
                         SUITE_CASE(a_late_request_brings_no_deleted_cursor_back),
                         SUITE_LOOP(confirmed_is_confirmed, 12),
                         {0},
                     });
}
