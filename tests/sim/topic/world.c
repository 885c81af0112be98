/* loop.h on a virtual clock, for many loops on one thread. */
#include <assert.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "common/log.h"
#include "common/mem.h"
#include "common/rng.h"
#include "tests/sim/topic/topic.h"

struct sim_topic topic;

struct loop {
    bool dead;
    uint64_t frozen_until;
    struct round_end *ends;
};

struct event {
    uint64_t at, order;
    struct loop *loop;
    void (*run)(void *arg);
    void *arg;
    size_t slot; /* of a timer; 0: of something else */
};

static struct event events[EVENTS];
static unsigned n_events;
static uint64_t orders;
static struct loop *current;

void topic_say(const char *fmt, ...)
{
    va_list ap;

    if (!topic.loud)
        return;
    printf("[%9lu] ", (unsigned long)topic.now);
    va_start(ap, fmt);
    vprintf(fmt, ap);
    va_end(ap);
    putchar('\n');
}

void topic_fault(const char *fmt, ...)
{
    va_list ap;

    if (topic.fault)
        return;
    va_start(ap, fmt);
    vsnprintf(topic.text, sizeof topic.text, fmt, ap);
    va_end(ap);
    topic.fault = topic.text;
}

unsigned topic_roll(unsigned n)
{
    return (unsigned)rng_below(&topic.seed, n);
}

bool topic_chance(unsigned per_mille)
{
    return !topic.healed && topic_roll(1000) < per_mille;
}

unsigned topic_delay(void)
{
    unsigned most = topic.healed ? 200 : topic.knobs.slow_us * (topic_roll(20) == 0 ? 20 : 1);

    return 1 + topic_roll(most);
}

/* ---- events ---- */

static bool is_before(const struct event *a, const struct event *b)
{
    return a->at != b->at ? a->at < b->at : a->order < b->order;
}

static void swap(struct event *a, struct event *b)
{
    struct event t = *a;

    *a = *b;
    *b = t;
}

static void push(struct event e)
{
    unsigned i = n_events++;

    assert(n_events < EVENTS);
    events[i] = e;
    for (; i > 0 && is_before(&events[i], &events[(i - 1) / 2]); i = (i - 1) / 2)
        swap(&events[i], &events[(i - 1) / 2]);
}

static struct event pop(void)
{
    struct event first = events[0];
    unsigned i = 0;

    events[0] = events[--n_events];
    for (unsigned child = 1; child < n_events; child = 2 * i + 1) {
        if (child + 1 < n_events && is_before(&events[child + 1], &events[child]))
            child++;
        if (!is_before(&events[child], &events[i]))
            break;
        swap(&events[child], &events[i]);
        i = child;
    }
    return first;
}

static void later_slot(struct loop *l, uint64_t us, void (*run)(void *arg), void *arg, size_t slot)
{
    push((struct event){topic.now + us, orders++, l, run, arg, slot});
}

void topic_later(struct loop *l, uint64_t us, void (*run)(void *arg), void *arg)
{
    later_slot(l, us, run, arg, 0);
}

static void run_ends(struct loop *l)
{
    while (l && l->ends) {
        struct round_end *t = l->ends;
        l->ends = t->next;
        t->queued = false;
        t->run(t);
    }
}

/* What a frozen loop has to do waits, in its order. */
static void take(struct event e)
{
    topic.now = e.at;
    if (e.loop && e.loop->dead)
        return;
    if (e.loop && e.loop->frozen_until > topic.now) {
        e.at = e.loop->frozen_until;
        push(e);
        return;
    }
    current = e.loop;
    e.run(e.arg);
    run_ends(e.loop);
    current = NULL;
}

void topic_run(void)
{
    while (n_events > 0 && !topic.fault && !topic.over)
        take(pop());
    n_events = 0;
}

struct loop *topic_loop_new(void)
{
    return mem_new(struct loop);
}

void topic_loop_kill(struct loop *l)
{
    l->dead = true;
}

void topic_loop_freeze(struct loop *l, uint64_t us)
{
    l->frozen_until = topic.now + us;
}

/* ---- loop.h ---- */

static void run_task(void *arg)
{
    struct task *t = arg;

    t->run(t);
}

void loop_post(struct loop *l, struct task *t)
{
    topic_later(l, 0, run_task, t);
}

static void run_timer(void *arg)
{
    struct timer *t = arg;

    t->slot = 0;
    t->run(t);
}

static void nothing(void *arg)
{
    (void)arg;
}

void loop_cancel(struct loop *l, struct timer *t)
{
    (void)l;
    for (unsigned i = 0; i < n_events && t->slot; i++)
        if (events[i].slot == t->slot)
            events[i].run = nothing;
    t->slot = 0;
}

void loop_after(struct loop *l, struct timer *t, uint64_t us)
{
    static size_t slots;

    loop_cancel(l, t);
    t->slot = ++slots;
    later_slot(l, us, run_timer, t, t->slot);
}

void loop_at_round_end(struct loop *l, struct round_end *t)
{
    if (t->queued)
        return;
    t->queued = true;
    t->next = l->ends;
    l->ends = t;
}

uint64_t loop_now(const struct loop *l)
{
    (void)l;
    return topic.now;
}

uint64_t loop_clock(void)
{
    return topic.now;
}

uint64_t loop_wall_ms(void)
{
    return 1700000000000u + topic.now / 1000;
}

bool loop_is_mine(const struct loop *l)
{
    return current == l;
}

struct loop *loop_mine(void)
{
    return current;
}

/* Part of the story. */
void log_write(enum log_level level, const char *name, const struct log_field *fields)
{
    (void)level;
    (void)fields;
    topic_say("  %s", name);
}

/* ---- what else would not be the same twice ---- */

uint64_t rng_seed(void)
{
    return rng_next(&topic.seed);
}

void rng_bytes(void *into, size_t len)
{
    uint8_t *at = into;

    while (len-- > 0)
        *at++ = (uint8_t)rng_next(&topic.seed);
}
