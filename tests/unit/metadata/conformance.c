#include "tests/unit/metadata/conformance.h"

#include <check.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>

#include "common/mem.h"
#include "tests/unit/metadata/ask.h"
#include "tests/unit/metadata/conformance_watch.h"

#define is_err(call, e) ck_assert_str_eq(err_name((call).err), err_name(e))

/* ---- keys and versions ---------------------------------------------------------------------- */

static void versions_count_puts(struct metadata *m)
{
    is_err(ask_get(m, "/a"), ERR_NOT_FOUND);
    struct answered a = ask_put(m, "/a", "one", META_ABSENT);
    is_err(a, ERR_OK);
    ck_assert_int_eq(a.version, 0);
    is_err(ask_put(m, "/a", "no", META_ABSENT), ERR_BAD_VERSION);
    is_err(ask_put(m, "/a", "no", 1), ERR_BAD_VERSION);
    is_err(ask_put(m, "/b", "no", 0), ERR_BAD_VERSION);
    ck_assert_int_eq(ask_put(m, "/a", "two", 0).version, 1);
    ck_assert_int_eq(ask_put(m, "/a", "three", META_ANY).version, 2);
    ck_assert_int_eq(ask_put(m, "/b", "", META_ANY).version, 0);
    a = ask_get(m, "/a");
    is_err(a, ERR_OK);
    ck_assert_str_eq(a.text, "three");
    ck_assert_int_eq(a.version, 2);
    a = ask_get(m, "/b");
    is_err(a, ERR_OK);
    ck_assert_str_eq(a.text, "");
}

static void removed_keys_begin_again(struct metadata *m)
{
    is_err(ask_remove(m, "/a", META_ANY), ERR_NOT_FOUND);
    is_err(ask_remove(m, "/a", 3), ERR_NOT_FOUND);
    ask_put(m, "/a", "x", META_ABSENT);
    ask_put(m, "/a", "y", META_ANY);
    is_err(ask_remove(m, "/a", 0), ERR_BAD_VERSION);
    is_err(ask_remove(m, "/a", 1), ERR_OK);
    is_err(ask_get(m, "/a"), ERR_NOT_FOUND);
    ck_assert_int_eq(ask_put(m, "/a", "z", META_ABSENT).version, 0);
    is_err(ask_remove(m, "/a", META_ANY), ERR_OK);
}

static void revisions_never_go_back(struct metadata *m)
{
    uint64_t first = ask_put(m, "/a", "1", META_ANY).revision;
    uint64_t second = ask_put(m, "/b", "1", META_ANY).revision;
    uint64_t third = ask_remove(m, "/a", META_ANY).revision;

    ck_assert_uint_gt(second, first);
    ck_assert_uint_gt(third, second);
    ck_assert_uint_ge(ask_get(m, "/b").revision, third);
    ck_assert_uint_gt(ask_put(m, "/a", "2", META_ANY).revision, third);
}

static void limits_are_answered(struct metadata *m)
{
    char key[META_KEY_MAX + 2];
    struct slab *big = slab_new(META_VALUE_MAX + 1);
    struct meta_op op = {META_PUT, "/big", slice_of(big, 0, META_VALUE_MAX + 1), META_ANY};
    struct meta_op many[META_OPS_MAX + 1];

    memset(slab_bytes(big), 'x', META_VALUE_MAX + 1);
    slab_drop(&big);
    memset(key, 'k', sizeof key);
    key[META_KEY_MAX + 1] = '\0';
    is_err(ask_get(m, ""), ERR_INVALID_NAME);
    is_err(ask_get(m, key), ERR_TOO_BIG);
    is_err(ask_put(m, key, "x", META_ANY), ERR_TOO_BIG);
    is_err(ask_range(m, key, NULL, 10, false), ERR_TOO_BIG);
    is_err(ask_txn(m, &op, 1), ERR_TOO_BIG);
    for (size_t i = 0; i <= META_OPS_MAX; i++)
        many[i] = (struct meta_op){META_PUT, "/k", slice_text("v"), META_ANY};
    is_err(ask_txn(m, many, META_OPS_MAX + 1), ERR_TOO_BIG);
    key[META_KEY_MAX] = '\0';
    is_err(ask_put(m, key, "x", META_ABSENT), ERR_OK);
    is_err(ask_get(m, key), ERR_OK);
    is_err(ask_get(m, "/big"), ERR_NOT_FOUND);
}

static void values_of_full_size_come_back(struct metadata *m)
{
    struct slab *big = slab_new(META_VALUE_MAX);
    struct slice back = {0};
    int64_t version;

    memset(slab_bytes(big), 0xa5, META_VALUE_MAX);
    ck_assert_int_eq(meta_put_wait(m, "/big", slice_take(&big, META_VALUE_MAX), META_ABSENT),
                     ERR_OK);
    ck_assert_int_eq(meta_get_wait(m, "/big", &back, &version), ERR_OK);
    ck_assert_uint_eq(back.len, META_VALUE_MAX);
    ck_assert_uint_eq(back.base[0], 0xa5);
    ck_assert_uint_eq(back.base[META_VALUE_MAX - 1], 0xa5);
    slice_drop(&back);
}

/* ---- ranges --------------------------------------------------------------------------------- */

static void ranges_walk_a_prefix(struct metadata *m)
{
    static const char *keys[] = {"/p", "/p/b", "/p/a", "/p/c\xc3\xa9", "/p0", "/o", "/p/a/x"};
    struct answered a;

    for (size_t i = 0; i < sizeof keys / sizeof *keys; i++)
        ask_put(m, keys[i], "v", META_ABSENT);
    a = ask_range(m, "/p/", NULL, 100, false);
    ck_assert_str_eq(a.text, "/p/a=v@0 /p/a/x=v@0 /p/b=v@0 /p/c\xc3\xa9=v@0");
    ck_assert(!a.more);
    a = ask_range(m, "/p/", NULL, 2, true);
    ck_assert_str_eq(a.text, "/p/a=@0 /p/a/x=@0");
    ck_assert(a.more);
    a = ask_range(m, "/p/", "/p/a/x", 2, false);
    ck_assert_str_eq(a.text, "/p/b=v@0 /p/c\xc3\xa9=v@0");
    ck_assert(!a.more);
    ck_assert_str_eq(ask_range(m, "/p/", "/a", 1, true).text, "/p/a=@0");
    ck_assert_str_eq(ask_range(m, "/p/", "/z", 9, true).text, "");
    ck_assert_str_eq(ask_range(m, "/none", NULL, 9, true).text, "");
    ck_assert_str_eq(ask_range(m, "", NULL, 2, true).text, "/o=@0 /p=@0");
    is_err(ask_range(m, "/none", NULL, 9, true), ERR_OK);
}

/* ---- transactions --------------------------------------------------------------------------- */

static void transactions_happen_or_do_not(struct metadata *m)
{
    ask_put(m, "/a", "1", META_ABSENT);
    struct meta_op bad[] = {{META_PUT, "/b", slice_text("2"), META_ABSENT},
                            {META_REMOVE, "/a", {0}, 0},
                            {META_CHECK, "/a", {0}, 7}};
    is_err(ask_txn(m, bad, 3), ERR_BAD_VERSION);
    ck_assert_str_eq(ask_range(m, "/", NULL, 9, false).text, "/a=1@0");
    struct meta_op good[] = {{META_PUT, "/b", slice_text("2"), META_ABSENT},
                             {META_REMOVE, "/a", {0}, 0},
                             {META_CHECK, "/a", {0}, 0},
                             {META_CHECK, "/c", {0}, META_ABSENT}};
    is_err(ask_txn(m, good, 4), ERR_OK);
    ck_assert_str_eq(ask_range(m, "/", NULL, 9, false).text, "/b=2@0");
    struct meta_op twice[] = {{META_PUT, "/b", slice_text("3"), META_ANY},
                              {META_REMOVE, "/b", {0}, META_ANY}};
    is_err(ask_txn(m, twice, 2), ERR_NOT_ALLOWED);
    struct meta_op absent[] = {{META_REMOVE, "/gone", {0}, META_ANY},
                               {META_PUT, "/b", slice_text("4"), 0}};
    is_err(ask_txn(m, absent, 2), ERR_OK);
    ck_assert_str_eq(ask_range(m, "/", NULL, 9, false).text, "/b=4@1");
    is_err(ask_txn(m, NULL, 0), ERR_OK);
}

/* ---- held keys ------------------------------------------------------------------------------ */

static void held_keys_are_seen(struct metadata *m)
{
    ask_put(m, "/h/b", "kept", META_ABSENT);
    is_err(ask_hold(m, "/h/b", "x"), ERR_EXISTS);
    is_err(ask_hold(m, "/h/a", "x"), ERR_OK);
    is_err(ask_hold(m, "/h/c", "y"), ERR_OK);
    ck_assert_str_eq(ask_get(m, "/h/a").text, "x");
    ck_assert_str_eq(ask_range(m, "/h/", NULL, 9, false).text, "/h/a=x@0 /h/b=kept@0 /h/c=y@0");
    ck_assert_str_eq(ask_range(m, "/h/", "/h/a", 1, false).text, "/h/b=kept@0");
    ck_assert(ask_range(m, "/h/", NULL, 2, false).more);
    ck_assert_str_eq(ask_range(m, "/h/", "/h/b", 9, true).text, "/h/c=@0");
    is_err(ask_put(m, "/h/a", "no", META_ABSENT), ERR_BAD_VERSION);
    is_err(ask_hold(m, "/h/a", "again"), ERR_OK);
    ck_assert_str_eq(ask_get(m, "/h/a").text, "again");
}

static void held_keys_are_released(struct metadata *m)
{
    is_err(ask_release(m, "/h/a"), ERR_NOT_FOUND);
    ask_put(m, "/h/k", "kept", META_ABSENT);
    is_err(ask_release(m, "/h/k"), ERR_NOT_FOUND);
    ask_hold(m, "/h/a", "x");
    is_err(ask_release(m, "/h/a"), ERR_OK);
    is_err(ask_get(m, "/h/a"), ERR_NOT_FOUND);
    ask_hold(m, "/h/a", "x");
    is_err(ask_remove(m, "/h/a", META_ANY), ERR_OK);
    ck_assert_int_eq(ask_put(m, "/h/a", "kept now", META_ABSENT).version, 0);
    is_err(ask_hold(m, "/h/a", "x"), ERR_EXISTS);
    ck_assert_str_eq(ask_range(m, "/h/", NULL, 9, false).text, "/h/a=kept now@0 /h/k=kept@0");
}

/* ---- counters ------------------------------------------------------------------------------- */

static void counters_give_blocks(struct metadata *m)
{
    struct answered a = ask_counter(m, "/n", 10);

    is_err(a, ERR_OK);
    ck_assert_int_eq(a.first, 0);
    ck_assert_int_eq(ask_counter(m, "/n", 1).first, 10);
    ck_assert_int_eq(ask_counter(m, "/n", 5).first, 11);
    is_err(ask_counter(m, "/n", 0), ERR_NOT_ALLOWED);
    is_err(ask_counter(m, "/n", -1), ERR_NOT_ALLOWED);
    ck_assert_int_eq(ask_counter(m, "/n", 1).first, 16);
    ask_put(m, "/started", "4294967296", META_ABSENT);
    ck_assert_int_eq(ask_counter(m, "/started", 100).first, 4294967296);
    ask_put(m, "/bad", "seven", META_ABSENT);
    is_err(ask_counter(m, "/bad", 1), ERR_MALFORMED);
    ask_put(m, "/bad", "-7", META_ANY);
    is_err(ask_counter(m, "/bad", 1), ERR_MALFORMED);
    ask_put(m, "/full", "9223372036854775800", META_ABSENT);
    is_err(ask_counter(m, "/full", 8), ERR_TOO_BIG);
    ck_assert_int_eq(ask_counter(m, "/full", 7).first, 9223372036854775800);
}

/* ---- many at once --------------------------------------------------------------------------- */

enum { LOOPS = 4, ROUNDS = 100, PIPELINED = 200 };
/* A store may leave out a block when it could not know whether it had it. */
enum { NUMBERS = 2 * LOOPS * ROUNDS * 3 };

/* One loop that adds one to a number by compare-and-set until it has done so ROUNDS times. */
struct adder {
    struct meta_call call;
    struct task start;
    struct metadata *m;
    atomic_int *left;
    int done;
    int64_t expected, blocks[ROUNDS];
};

static void adder_read(struct adder *a);

static void added(struct meta_call *c, const struct meta_reply *r)
{
    struct adder *a = container_of(c, struct adder, call);

    ck_assert(loop_is_mine(c->home));
    ck_assert(r->err == ERR_OK || r->err == ERR_BAD_VERSION);
    if (!r->err && ++a->done == ROUNDS)
        atomic_fetch_sub(a->left, 1);
    else
        adder_read(a);
}

static void adder_write(struct meta_call *c, const struct meta_reply *r)
{
    struct adder *a = container_of(c, struct adder, call);
    char text[32] = "0";

    if (!r->err)
        snprintf(text, sizeof text, "%.*s", (int)r->value.len, (const char *)r->value.base);
    int value;
    ck_assert_int_eq(sscanf(text, "%d", &value), 1);
    snprintf(text, sizeof text, "%d", value + 1);
    c->done = added;
    meta_put(a->m, "/sum", slice_text(text), r->err ? META_ABSENT : r->version, c);
}

static void adder_read(struct adder *a)
{
    a->call.done = adder_write;
    meta_get(a->m, "/sum", &a->call);
}

static void adder_start(struct task *t)
{
    adder_read(container_of(t, struct adder, start));
}

static void wait_for_zero(atomic_int *left)
{
    while (atomic_load(left))
        sched_yield();
}

static void compare_and_set_loses_nothing(struct metadata *m)
{
    struct loops loops;
    struct adder adders[LOOPS] = {0};
    atomic_int left = LOOPS;

    loops_start(&loops, "adder", LOOPS);
    for (int i = 0; i < LOOPS; i++) {
        adders[i] = (struct adder){.m = m, .left = &left, .start.run = adder_start};
        adders[i].call.home = loops.at[i];
        loop_post(loops.at[i], &adders[i].start);
    }
    wait_for_zero(&left);
    loops_stop(&loops);
    ck_assert_str_eq(ask_get(m, "/sum").text, "400");
    ck_assert_int_eq(ask_get(m, "/sum").version, LOOPS * ROUNDS - 1);
}

struct taker {
    struct meta_call call;
    struct task start;
    struct metadata *m;
    atomic_int *left;
    atomic_uchar *taken;
    int done;
};

static void took(struct meta_call *c, const struct meta_reply *r)
{
    struct taker *t = container_of(c, struct taker, call);

    ck_assert_int_eq(r->err, ERR_OK);
    ck_assert_int_le(r->first + 3, NUMBERS);
    for (int64_t i = r->first; i < r->first + 3; i++)
        ck_assert_int_eq(atomic_fetch_add(&t->taken[i], 1), 0);
    if (++t->done == ROUNDS)
        atomic_fetch_sub(t->left, 1);
    else
        meta_counter(t->m, "/n", 3, c);
}

static void taker_start(struct task *task)
{
    struct taker *t = container_of(task, struct taker, start);

    meta_counter(t->m, "/n", 3, &t->call);
}

static void counters_give_a_number_once(struct metadata *m)
{
    struct loops loops;
    struct taker takers[LOOPS] = {0};
    atomic_uchar *taken = mem_alloc(NUMBERS * sizeof *taken);
    atomic_int left = LOOPS;

    loops_start(&loops, "taker", LOOPS);
    for (int i = 0; i < LOOPS; i++) {
        takers[i] = (struct taker){.m = m, .left = &left, .taken = taken, .start.run = taker_start};
        takers[i].call = (struct meta_call){.home = loops.at[i], .done = took};
        loop_post(loops.at[i], &takers[i].start);
    }
    wait_for_zero(&left);
    loops_stop(&loops);
    mem_free(taken);
    ck_assert_int_ge(ask_counter(m, "/n", 1).first, LOOPS * ROUNDS * 3);
}

/* Calls made without waiting happen in their order, and never answer in the caller's stack. */
struct pipe {
    struct task start;
    struct metadata *m;
    atomic_int left;
    bool calling;
    struct pipe_call {
        struct meta_call call;
        struct pipe *pipe;
        int number;
    } puts[PIPELINED], gets[PIPELINED], range;
};

static void piped(struct meta_call *c, const struct meta_reply *r)
{
    struct pipe_call *p = container_of(c, struct pipe_call, call);

    ck_assert(!p->pipe->calling);
    ck_assert_int_eq(r->err, ERR_OK);
    if (p == &p->pipe->range) {
        ck_assert_uint_eq(r->count, 1);
        ck_assert_int_eq(r->items[0].version, PIPELINED - 1);
    } else {
        ck_assert_int_eq(r->version, p->number);
    }
    atomic_fetch_sub(&p->pipe->left, 1);
}

static struct meta_call *pipe_call(struct pipe *p, struct pipe_call *c, int number)
{
    *c = (struct pipe_call){.pipe = p, .number = number};
    c->call = (struct meta_call){.home = loop_mine(), .done = piped};
    return &c->call;
}

static void pipe_start(struct task *t)
{
    struct pipe *p = container_of(t, struct pipe, start);

    p->calling = true;
    for (int i = 0; i < PIPELINED; i++) {
        meta_put(p->m, "/k", slice_text("v"), i - 1, pipe_call(p, &p->puts[i], i));
        meta_get(p->m, "/k", pipe_call(p, &p->gets[i], i));
    }
    meta_range(p->m, "/k", NULL, 10, false, pipe_call(p, &p->range, 0));
    p->calling = false;
}

static void calls_keep_their_order(struct metadata *m)
{
    struct pipe *p = mem_new(struct pipe);
    struct loop *l = loop_new("pipe");

    p->m = m;
    p->start.run = pipe_start;
    atomic_store(&p->left, 2 * PIPELINED + 1);
    loop_start(l);
    loop_post(l, &p->start);
    wait_for_zero(&p->left);
    loop_drop(&l);
    mem_free(p);
}

/* ---- the table ------------------------------------------------------------------------------ */

static void (*const cases[])(struct metadata *m) = {
    versions_count_puts,           removed_keys_begin_again,
    revisions_never_go_back,       limits_are_answered,
    values_of_full_size_come_back, ranges_walk_a_prefix,
    transactions_happen_or_do_not, held_keys_are_seen,
    held_keys_are_released,        counters_give_blocks,
    compare_and_set_loses_nothing, counters_give_a_number_once,
    calls_keep_their_order,        watches_hear_in_order,
    watches_hear_of_held_keys,     watches_hear_nothing_after_unwatch,
    slow_watches_are_told_to_list, watches_end_with_the_store,
};

int conformance_count(void)
{
    return (int)(sizeof cases / sizeof *cases);
}

void conformance_run(int i, struct metadata *m)
{
    cases[i](m);
}
