#include <pthread.h>
#include <string.h>

#include "common/loop.h"
#include "common/mem.h"
#include "common/rng.h"
#include "common/timer_heap.h"
#include "tests/lib/suite.h"

#define POSTERS 4
#define POSTS   5000

struct counter {
    struct loop *loop;
    unsigned ran;
    unsigned last[POSTERS];
    bool in_order;
};

struct posted {
    struct task task;
    struct counter *counter;
    unsigned poster, number;
};

static void run_posted(struct task *t)
{
    struct posted *p = container_of(t, struct posted, task);
    struct counter *c = p->counter;
    ck_assert(loop_is_mine(c->loop));
    ck_assert_ptr_eq(loop_mine(), c->loop);
    c->in_order &= p->number == c->last[p->poster]++;
    c->ran++;
    mem_free(p);
}

static void *poster(void *arg)
{
    struct posted *like = arg;
    for (unsigned i = 0; i < POSTS; i++) {
        struct posted *p = mem_new(struct posted);
        *p = *like;
        p->number = i;
        p->task.run = run_posted;
        loop_post(p->counter->loop, &p->task);
    }
    return NULL;
}

/* What still waits when a loop is dropped runs all the same: nobody's memory is lost. */
START_TEST(every_post_runs_once_and_in_order)
{
    struct counter c = {.loop = loop_new("posts"), .in_order = true};
    pthread_t threads[POSTERS];
    struct posted likes[POSTERS];
    struct loop *loop = c.loop;
    loop_start(loop);
    for (unsigned i = 0; i < POSTERS; i++) {
        likes[i] = (struct posted){.counter = &c, .poster = i};
        pthread_create(&threads[i], NULL, poster, &likes[i]);
    }
    for (unsigned i = 0; i < POSTERS; i++)
        pthread_join(threads[i], NULL);
    loop_drop(&loop);
    ck_assert_ptr_null(loop);
    ck_assert_uint_eq(c.ran, POSTERS * POSTS);
    ck_assert(c.in_order);
}
END_TEST

static void add_one(void *ctx)
{
    unsigned *n = ctx;
    ck_assert_ptr_nonnull(loop_mine());
    (*n)++;
}

START_TEST(a_call_returns_when_it_has_run)
{
    struct loop *l = loop_new("calls");
    unsigned n = 0;
    loop_start(l);
    ck_assert(!loop_is_mine(l));
    for (unsigned i = 0; i < 1000; i++) {
        loop_call(l, add_one, &n);
        ck_assert_uint_eq(n, i + 1);
    }
    ck_assert_str_eq(loop_name(l), "calls");
    loop_drop(&l);
    loop_drop(&l);
}
END_TEST

/* What happened in which order, as letters. */
struct story {
    struct loop *loop;
    char text[64];
    struct task task, later;
    struct round_end end;
    struct timer timer, never;
    unsigned ran; /* by on_repost, in the round that ends with on_round_over */
};

static void tell(struct story *s, char c)
{
    s->text[strlen(s->text)] = c;
}

static void on_later(struct task *t)
{
    tell(container_of(t, struct story, later), 'l');
}

static void on_end(struct round_end *e)
{
    struct story *s = container_of(e, struct story, end);
    tell(s, 'e');
    loop_stop(s->loop);
}

static void on_task(struct task *t)
{
    struct story *s = container_of(t, struct story, task);
    tell(s, '(');
    loop_at_round_end(s->loop, &s->end);
    loop_at_round_end(s->loop, &s->end);
    loop_post(s->loop, &s->later);
    tell(s, ')');
}

/* An own post never runs in the same stack, but in the same round; ends come last, once. */
START_TEST(a_round_has_an_order)
{
    struct story s = {
        .loop = loop_new("round"), .task.run = on_task, .later.run = on_later, .end.run = on_end};
    loop_post(s.loop, &s.task);
    loop_run(s.loop);
    ck_assert_str_eq(s.text, "()le");
    loop_drop(&s.loop);
}
END_TEST

struct tick {
    struct timer timer;
    struct ticks *all;
    uint64_t due;
};

struct ticks {
    struct loop *loop;
    unsigned left;
    uint64_t last;
};

static void on_tick(struct timer *t)
{
    struct tick *k = container_of(t, struct tick, timer);
    ck_assert(!timer_armed(t));
    ck_assert_uint_ge(loop_now(k->all->loop), k->due);
    ck_assert_uint_ge(k->due, k->all->last);
    k->all->last = k->due;
    if (--k->all->left == 0)
        loop_stop(k->all->loop);
}

START_TEST(timers_run_in_order_and_not_early)
{
    enum { N = 200 };
    static struct tick ticks[N];
    struct ticks all = {.loop = loop_new("ticks"), .left = N - N / 4};
    uint64_t seed = 5;
    for (unsigned i = 0; i < N; i++) {
        const uint64_t us = rng_below(&seed, 30000);
        ticks[i] = (struct tick){.timer.run = on_tick, .all = &all};
        loop_after(all.loop, &ticks[i].timer, 1000000);
        loop_after(all.loop, &ticks[i].timer, us);
        ticks[i].due = ticks[i].timer.due_us;
    }
    for (unsigned i = 0; i < N; i += 4) {
        loop_cancel(all.loop, &ticks[i].timer);
        loop_cancel(all.loop, &ticks[i].timer);
    }
    loop_run(all.loop);
    ck_assert_uint_eq(all.left, 0);
    loop_drop(&all.loop);
}
END_TEST

static void on_again(struct timer *t)
{
    struct story *s = container_of(t, struct story, timer);
    tell(s, 't');
    if (strlen(s->text) < 20)
        loop_after(s->loop, t, 0);
    else
        loop_stop(s->loop);
}

START_TEST(a_timer_may_arm_itself_again)
{
    struct story s = {.loop = loop_new("again"), .timer.run = on_again, .never.run = on_again};
    loop_after(s.loop, &s.timer, 0);
    loop_after(s.loop, &s.never, UINT64_MAX);
    loop_run(s.loop);
    ck_assert_uint_eq(strlen(s.text), 20);
    ck_assert(timer_armed(&s.never));
    loop_drop(&s.loop);
}
END_TEST

static void on_repost(struct task *t)
{
    struct story *s = container_of(t, struct story, task);
    s->ran++;
    if (!s->text[0])
        loop_post(s->loop, t);
    else
        loop_stop(s->loop);
}

static void on_round_over(struct round_end *e)
{
    struct story *s = container_of(e, struct story, end);
    ck_assert_uint_le(s->ran, 1000);
    s->ran = 0;
    if (!s->text[0])
        loop_at_round_end(s->loop, e);
}

/* A task that posts itself for ever does not keep timers (nor sockets) waiting. */
START_TEST(tasks_do_not_starve_the_rest)
{
    struct story s = {.loop = loop_new("starve"),
                      .task.run = on_repost,
                      .timer.run = on_again,
                      .end.run = on_round_over};
    loop_at_round_end(s.loop, &s.end);
    loop_after(s.loop, &s.timer, 1000);
    loop_post(s.loop, &s.task);
    loop_run(s.loop);
    ck_assert_uint_ge(strlen(s.text), 1);
    loop_drop(&s.loop);
}
END_TEST

START_TEST(the_heap_gives_what_is_due_first)
{
    enum { N = 500 };
    static struct timer timers[N];
    struct timer_heap h = {0};
    uint64_t seed = 11, last = 0;
    for (unsigned round = 0; round < 20; round++) {
        for (unsigned i = 0; i < N; i++)
            if (rng_below(&seed, 3))
                timer_heap_put(&h, &timers[i], last + rng_below(&seed, 1000));
        for (unsigned i = 0; i < N / 2; i++)
            timer_heap_remove(&h, &timers[rng_below(&seed, N)]);
        for (unsigned i = 0; i < N / 4; i++) {
            struct timer *t = timer_heap_first(&h);
            ck_assert_ptr_nonnull(t);
            for (unsigned j = 0; j < N; j++)
                ck_assert(!timer_armed(&timers[j]) || timers[j].due_us >= t->due_us);
            last = t->due_us;
            timer_heap_remove(&h, t);
            ck_assert(!timer_armed(t));
        }
    }
    timer_heap_free(&h);
}
END_TEST

struct ping {
    struct task task;
    struct loops *group;
    unsigned left;
};

static void on_ping(struct task *t)
{
    struct ping *p = container_of(t, struct ping, task);
    const unsigned i = loop_index(loop_mine());
    ck_assert_ptr_eq(p->group->at[i], loop_mine());
    if (p->left > 0) {
        p->left--;
        loop_post(p->group->at[(i + 1) % p->group->n], t);
    }
}

/* Stopped in the middle, the ball still makes its last rounds: from loop to loop to the end. */
START_TEST(a_group_stops_with_posts_under_way)
{
    static struct ping pings[8];
    struct loops g = {0};
    loops_start(&g, "ring", 3);
    for (unsigned i = 0; i < 8; i++) {
        pings[i] = (struct ping){.task.run = on_ping, .group = &g, .left = 20000};
        loop_post(g.at[i % 3], &pings[i].task);
    }
    loops_stop(&g);
    for (unsigned i = 0; i < 8; i++)
        ck_assert_uint_eq(pings[i].left, 0);
}
END_TEST

START_TEST(clocks_go_forward)
{
    struct loop *l = loop_new("clock");
    const uint64_t before = loop_clock();
    ck_assert_uint_ge(loop_now(l), before);
    ck_assert_uint_gt(loop_wall_ms(), UINT64_C(1600000000000));
    loop_drop(&l);
}
END_TEST

int main(void)
{
    return suite_run("loop", (suite_case[]){
                                 SUITE_CASE(every_post_runs_once_and_in_order),
                                 SUITE_CASE(a_call_returns_when_it_has_run),
                                 SUITE_CASE(a_round_has_an_order),
                                 SUITE_CASE(timers_run_in_order_and_not_early),
                                 SUITE_CASE(a_timer_may_arm_itself_again),
                                 SUITE_CASE(tasks_do_not_starve_the_rest),
                                 SUITE_CASE(the_heap_gives_what_is_due_first),
                                 SUITE_CASE(a_group_stops_with_posts_under_way),
                                 SUITE_CASE(clocks_go_forward),
                                 {0},
                             });
}
