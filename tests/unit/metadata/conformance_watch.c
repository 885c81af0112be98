#include "tests/unit/metadata/conformance_watch.h"

#include <check.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdio.h>

#include "common/mem.h"
#include "tests/unit/metadata/ask.h"

/* A watch that writes down what it hears. */
struct ear {
    struct meta_watch watch;
    struct metadata *m;
    const char *prefix;
    atomic_int heard;
    atomic_bool unsure;
    size_t len;
    char text[1024];
    uint64_t revision;
};

static void changed(struct meta_watch *w, const struct meta_change *c)
{
    static const char *kinds[] = {"put", "removed", "unsure"};
    struct ear *e = container_of(w, struct ear, watch);

    ck_assert(loop_is_mine(w->home));
    ck_assert_uint_ge(c->revision, e->revision);
    e->revision = c->revision;
    if (e->len < sizeof e->text)
        e->len += (size_t)snprintf(
            e->text + e->len, sizeof e->text - e->len, "%s %s=%.*s@%d\n", kinds[c->kind], c->key,
            (int)c->value.len, c->value.len ? (const char *)c->value.base : "", (int)c->version);
    if (c->kind == META_CHANGED_UNSURE)
        atomic_store(&e->unsure, true);
    atomic_fetch_add(&e->heard, 1);
}

static void listen_now(void *ctx)
{
    struct ear *e = ctx;

    meta_watch(e->m, e->prefix, &e->watch);
}

static void stop_now(void *ctx)
{
    struct ear *e = ctx;

    meta_unwatch(e->m, &e->watch);
}

static struct ear *ear_new(struct metadata *m, struct loop *home, const char *prefix)
{
    struct ear *e = mem_new(struct ear);

    e->m = m;
    e->prefix = prefix;
    e->watch.home = home;
    e->watch.changed = changed;
    loop_call(home, listen_now, e);
    return e;
}

static void ear_drop(struct ear **e)
{
    loop_call((*e)->watch.home, stop_now, *e);
    mem_free(*e);
    *e = NULL;
}

static void wait_for(struct ear *e, int events)
{
    while (atomic_load(&e->heard) < events)
        sched_yield();
}

static void nothing(void *ctx)
{
    (void)ctx;
}

static struct loop *a_loop(void)
{
    struct loop *l = loop_new("ear");

    loop_start(l);
    return l;
}

void watches_hear_in_order(struct metadata *m)
{
    struct loop *l = a_loop();

    ask_put(m, "/w/before", "x", META_ANY);
    struct ear *e = ear_new(m, l, "/w/");
    struct ear *other = ear_new(m, l, "/w/b");
    struct meta_op ops[] = {{META_PUT, "/w/c", slice_text("3"), META_ABSENT},
                            {META_REMOVE, "/w/before", {0}, META_ANY},
                            {META_CHECK, "/w/a", {0}, META_ANY}};
    ask_put(m, "/w/a", "1", META_ANY);
    ask_put(m, "/v/a", "no", META_ANY);
    ask_put(m, "/w/a", "2", META_ANY);
    ask_put(m, "/w/a", "refused", 9);
    ask_txn(m, ops, 3);
    ask_counter(m, "/w/n", 5);
    ask_remove(m, "/w/a", META_ANY);
    wait_for(e, 6);
    wait_for(other, 1);
    loop_call(l, nothing, NULL);
    ck_assert_str_eq(e->text, "put /w/a=1@0\nput /w/a=2@1\nput /w/c=3@0\n"
                              "removed /w/before=@0\nput /w/n=5@0\nremoved /w/a=@1\n");
    ck_assert_str_eq(other->text, "removed /w/before=@0\n");
    ear_drop(&e);
    ear_drop(&other);
    loop_drop(&l);
}

void watches_hear_of_held_keys(struct metadata *m)
{
    struct loop *l = a_loop();
    struct ear *e = ear_new(m, l, "/h/");

    ask_hold(m, "/h/a", "1");
    ask_hold(m, "/h/a", "2");
    ask_release(m, "/h/a");
    wait_for(e, 3);
    ck_assert_str_eq(e->text, "put /h/a=1@0\nput /h/a=2@1\nremoved /h/a=@1\n");
    ear_drop(&e);
    loop_drop(&l);
}

/* The home loop is kept busy while changes are posted to it; then the watch ends, and its
 * memory with it, before any of them has run. */
struct busy {
    struct ear *ear;
    atomic_bool inside, go_on;
};

static void stop_when_told(void *ctx)
{
    struct busy *b = ctx;

    atomic_store(&b->inside, true);
    while (!atomic_load(&b->go_on))
        sched_yield();
    meta_unwatch(b->ear->m, &b->ear->watch);
    ck_assert_int_eq(atomic_load(&b->ear->heard), 0);
    mem_free(b->ear);
}

struct busy_task {
    struct task task;
    struct busy busy;
};

static void run_busy(struct task *t)
{
    stop_when_told(&container_of(t, struct busy_task, task)->busy);
}

void watches_hear_nothing_after_unwatch(struct metadata *m)
{
    struct loop *l = a_loop();
    struct busy_task b = {.task.run = run_busy};

    b.busy.ear = ear_new(m, l, "/w/");
    loop_post(l, &b.task);
    while (!atomic_load(&b.busy.inside))
        sched_yield();
    struct loop *free_one = a_loop();
    struct ear *other = ear_new(m, free_one, "/w/"); /* told after the busy one */
    for (int i = 0; i < 20; i++)
        ask_put(m, "/w/a", "1", META_ANY);
    wait_for(other, 20);
    ck_assert_uint_eq(b.busy.ear->watch.posted, 20);
    atomic_store(&b.busy.go_on, true);
    loop_call(l, nothing, NULL);
    ask_put(m, "/w/a", "1", META_ANY);
    wait_for(other, 21);
    loop_call(l, nothing, NULL);
    ear_drop(&other);
    loop_drop(&free_one);
    loop_drop(&l);
}

enum { FLOOD = 5000 };

struct flood {
    struct meta_call call[FLOOD];
    atomic_int left;
};
static struct flood flood;

static void flooded(struct meta_call *c, const struct meta_reply *r)
{
    (void)c;
    ck_assert_int_eq(r->err, ERR_OK);
    atomic_fetch_sub(&flood.left, 1);
}

static void hold_up(struct task *t)
{
    struct busy *b = &container_of(t, struct busy_task, task)->busy;

    atomic_store(&b->inside, true);
    while (!atomic_load(&b->go_on))
        sched_yield();
}

void slow_watches_are_told_to_list(struct metadata *m)
{
    struct loop *l = a_loop(), *caller = a_loop();
    struct ear *e = ear_new(m, l, "/w/");
    struct busy_task b = {.task.run = hold_up};

    loop_post(l, &b.task);
    while (!atomic_load(&b.busy.inside))
        sched_yield();
    atomic_store(&flood.left, FLOOD);
    for (int i = 0; i < FLOOD; i++) {
        flood.call[i] = (struct meta_call){.home = caller, .done = flooded};
        meta_put(m, "/w/a", slice_text("v"), META_ANY, &flood.call[i]);
    }
    while (atomic_load(&flood.left))
        sched_yield();
    ck_assert_int_eq(atomic_load(&e->heard), 0);
    atomic_store(&b.busy.go_on, true);
    while (!atomic_load(&e->unsure))
        sched_yield();
    loop_call(l, nothing, NULL);
    int heard = atomic_load(&e->heard);
    ck_assert_int_lt(heard, FLOOD);
    ask_put(m, "/w/a", "after", META_ANY);
    wait_for(e, heard + 1);
    ear_drop(&e);
    loop_drop(&caller);
    loop_drop(&l);
}

/* Events that are on their way when the store closes say nothing, and need no store. */
void watches_end_with_the_store(struct metadata *m)
{
    struct loop *l = a_loop();
    struct ear *e = ear_new(m, l, "/w/");

    for (int i = 0; i < 20; i++)
        ask_put(m, "/w/a", "1", META_ANY);
    ear_drop(&e);
    ask_put(m, "/w/a", "1", META_ANY);
    loop_drop(&l);
}
