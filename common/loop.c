#include "common/loop.h"

#include <assert.h>
#include <event2/event.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/eventfd.h>
#include <sys/timerfd.h>
#include <time.h>
#include <unistd.h>

#include "common/loop_inside.h"
#include "common/slab_pool.h"
#include "common/timer_heap.h"

/* Tasks that post tasks that post tasks: after so many generations the sockets get a turn. */
#define GENERATIONS_A_ROUND 16

struct tasks {
    struct task *first;
    struct task **end;
};

struct loop {
    char *name;
    unsigned index;
    struct event_base *base;
    struct event *wake_event, *timer_event;
    uint64_t timer_armed_us; /* when timer_fd will be readable; 0: at rest */
    int wake_fd, timer_fd;
    pthread_t thread;
    bool has_thread;
    _Atomic(const void *) owner; /* the address of the owning thread's `here` */
    atomic_bool stop;
    uint64_t now_us; /* 0: not read in this round */
    bool running;
    struct timer_heap timers;
    struct tasks local; /* posted from the loop's own thread */
    struct round_end *ends, **last_end;
    struct list_node guests;
    struct loop_reading reading;
    pthread_mutex_t lock; /* of the next two */
    struct tasks inbox;
    bool asleep;        /* whoever posts must wake it: a busy loop looks by itself */
    atomic_uint wakers; /* that are at it */
};

static _Thread_local struct loop *here;

static void tasks_init(struct tasks *q)
{
    q->first = NULL;
    q->end = &q->first;
}

static void tasks_push(struct tasks *q, struct task *t)
{
    t->next = NULL;
    *q->end = t;
    q->end = &t->next;
}

static void tasks_append(struct tasks *q, struct tasks *more)
{
    if (more->first) {
        *q->end = more->first;
        q->end = more->end;
    }
    tasks_init(more);
}

uint64_t loop_clock(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (uint64_t)t.tv_sec * 1000000 + (uint64_t)t.tv_nsec / 1000;
}

uint64_t loop_wall_ms(void)
{
    struct timespec t;
    clock_gettime(CLOCK_REALTIME, &t);
    return (uint64_t)t.tv_sec * 1000 + (uint64_t)t.tv_nsec / 1000000;
}

/* The reading is a cache: filling it does not change the loop. */
uint64_t loop_now(const struct loop *l)
{
    if (!l->running)
        return loop_clock();
    if (l->now_us == 0)
        ((struct loop *)(uintptr_t)l)->now_us = loop_clock();
    return l->now_us;
}

/* A loop that has no thread yet, or none any more, is its creator's or dropper's. */
bool loop_is_mine(const struct loop *l)
{
    const void *owner =
        atomic_load_explicit(&((struct loop *)(uintptr_t)l)->owner, memory_order_relaxed);
    return owner == (const void *)&here;
}

struct loop *loop_mine(void)
{
    return here;
}

const char *loop_name(const struct loop *l)
{
    return l->name;
}

unsigned loop_index(const struct loop *l)
{
    return l->index;
}

struct event_base *loop_base(struct loop *l)
{
    return l->base;
}

struct loop_reading *loop_reading(struct loop *l)
{
    return &l->reading;
}

void loop_invite(struct loop *l, struct loop_guest *g)
{
    list_push_back(&l->guests, &g->node);
}

static void own(struct loop *l)
{
    atomic_store_explicit(&l->owner, (const void *)&here, memory_order_relaxed);
}

static void wake(struct loop *l)
{
    uint64_t one = 1;
    ssize_t n = write(l->wake_fd, &one, sizeof one);
    (void)n; /* a full counter has woken it already */
}

static void on_wake(evutil_socket_t fd, short what, void *arg)
{
    uint64_t count;
    ssize_t n = read(fd, &count, sizeof count);
    (void)n;
    (void)what;
    (void)arg;
}

static void on_timer(evutil_socket_t fd, short what, void *arg)
{
    struct loop *l = arg;
    uint64_t count;
    ssize_t n = read(fd, &count, sizeof count);
    (void)n;
    (void)what;
    l->timer_armed_us = 0;
}

/* A peer that is gone is an error of one write, not a signal that ends the process. */
static void once_a_process(void)
{
    signal(SIGPIPE, SIG_IGN);
}

static void must(bool ok, const char *what)
{
    if (!ok) {
        fprintf(stderr, "a loop cannot start: no %s\n", what);
        abort();
    }
}

static void make_base(struct loop *l)
{
    struct event_config *config = event_config_new();
    must(config, "event config");
    event_config_set_flag(config, EVENT_BASE_FLAG_NOLOCK);
    l->base = event_base_new_with_config(config);
    event_config_free(config);
    must(l->base, "event base");
    l->wake_fd = eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC);
    l->timer_fd = timerfd_create(CLOCK_MONOTONIC, TFD_NONBLOCK | TFD_CLOEXEC);
    must(l->wake_fd >= 0 && l->timer_fd >= 0, "descriptor");
    l->wake_event = event_new(l->base, l->wake_fd, EV_READ | EV_PERSIST, on_wake, l);
    l->timer_event = event_new(l->base, l->timer_fd, EV_READ | EV_PERSIST, on_timer, l);
    must(l->wake_event && l->timer_event, "event");
    event_add(l->wake_event, NULL);
    event_add(l->timer_event, NULL);
}

struct loop *loop_new(const char *name)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    pthread_once(&once, once_a_process);

    struct loop *l = mem_new(struct loop);
    l->name = mem_string(name);
    make_base(l);
    tasks_init(&l->local);
    tasks_init(&l->inbox);
    list_init(&l->guests);
    l->last_end = &l->ends;
    pthread_mutex_init(&l->lock, NULL);
    own(l);
    return l;
}

/* ---- a round ------------------------------------------------------------------------------ */

static void take_inbox(struct loop *l)
{
    pthread_mutex_lock(&l->lock);
    l->asleep = false;
    tasks_append(&l->local, &l->inbox);
    pthread_mutex_unlock(&l->lock);
}

/* False when something has come meanwhile.  From here on whoever posts must wake it. */
static bool fall_asleep(struct loop *l)
{
    pthread_mutex_lock(&l->lock);
    l->asleep = !l->inbox.first;
    const bool asleep = l->asleep;
    pthread_mutex_unlock(&l->lock);
    return asleep;
}

static void run_generation(struct loop *l)
{
    struct tasks due;
    tasks_init(&due);
    tasks_append(&due, &l->local);
    for (struct task *t = due.first, *next; t; t = next) {
        next = t->next; /* t may be gone or posted again once it has run */
        t->run(t);
    }
}

static void run_tasks(struct loop *l)
{
    take_inbox(l);
    for (unsigned i = 0; l->local.first && i < GENERATIONS_A_ROUND; i++)
        run_generation(l);
}

/* Only what is due at the start: a timer that arms itself again waits for the next round. */
static void run_timers(struct loop *l)
{
    struct timer *t = timer_heap_first(&l->timers);
    if (!t)
        return;
    const uint64_t now = loop_now(l);
    for (; t && t->due_us <= now; t = timer_heap_first(&l->timers)) {
        timer_heap_remove(&l->timers, t);
        t->run(t);
    }
}

static void run_ends(struct loop *l)
{
    struct round_end *e = l->ends;
    l->ends = NULL;
    l->last_end = &l->ends;
    for (struct round_end *next; e; e = next) {
        next = e->next;
        e->queued = false;
        e->run(e);
    }
}

static bool has_more_to_do(const struct loop *l)
{
    return l->local.first || l->ends;
}

/* libevent's own timeouts are as coarse as the kernel's tick, hence a timerfd.  One that is
 * armed too early stays so: an idle wake-up costs less than a system call a request timer. */
static void arm_timer(struct loop *l)
{
    const struct timer *t = timer_heap_first(&l->timers);
    if (!t || (l->timer_armed_us != 0 && l->timer_armed_us <= t->due_us))
        return;
    l->timer_armed_us = t->due_us;
    struct itimerspec at = {.it_value = {.tv_sec = (time_t)(t->due_us / 1000000),
                                         .tv_nsec = (long)(t->due_us % 1000000) * 1000}};
    timerfd_settime(l->timer_fd, TFD_TIMER_ABSTIME, &at, NULL);
}

static void run_round(struct loop *l)
{
    int how = EVLOOP_ONCE;
    if (has_more_to_do(l) || !fall_asleep(l))
        how |= EVLOOP_NONBLOCK;
    else
        arm_timer(l);
    l->now_us = 0;
    event_base_loop(l->base, how);
    run_timers(l);
    run_tasks(l);
    run_ends(l);
    if (l->now_us != 0)
        slab_pool_age(l->now_us);
}

void loop_run(struct loop *l)
{
    own(l);
    struct loop *outer = here;
    here = l;
    l->running = true;
    while (!atomic_load_explicit(&l->stop, memory_order_acquire))
        run_round(l);
    atomic_store_explicit(&l->stop, false, memory_order_relaxed);
    l->running = false;
    here = outer;
}

/* ---- life --------------------------------------------------------------------------------- */

static void *thread_main(void *arg)
{
    struct loop *l = arg;
    char name[16];
    snprintf(name, sizeof name, "%s", l->name);
    pthread_setname_np(pthread_self(), name);
    loop_run(l);
    return NULL;
}

/* Signals that ask the process for something are the main thread's. */
static void block_signals(sigset_t *before)
{
    sigset_t all;
    sigfillset(&all);
    sigdelset(&all, SIGSEGV);
    sigdelset(&all, SIGBUS);
    sigdelset(&all, SIGABRT);
    sigdelset(&all, SIGFPE);
    sigdelset(&all, SIGILL);
    pthread_sigmask(SIG_SETMASK, &all, before);
}

void loop_start(struct loop *l)
{
    sigset_t before;
    assert(!l->has_thread);
    atomic_store_explicit(&l->owner, NULL, memory_order_relaxed);
    block_signals(&before);
    must(pthread_create(&l->thread, NULL, thread_main, l) == 0, "thread");
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    l->has_thread = true;
}

void loop_stop(struct loop *l)
{
    atomic_store_explicit(&l->stop, true, memory_order_release);
    wake(l);
}

/* False when nothing waited. */
static bool run_what_waits(struct loop *l)
{
    bool any = false;
    struct loop *outer = here;
    own(l);
    here = l;
    for (take_inbox(l); has_more_to_do(l); any = true) {
        run_tasks(l);
        run_ends(l);
    }
    here = outer;
    return any;
}

static void send_guests_away(struct loop *l)
{
    struct loop *outer = here;
    here = l;
    for (struct list_node *n; (n = list_pop_front(&l->guests));) {
        struct loop_guest *g = list_entry(n, struct loop_guest, node);
        g->leave(g);
    }
    here = outer;
}

void loop_drop(struct loop **lp)
{
    struct loop *l = *lp;
    *lp = NULL;
    if (!l)
        return;
    if (l->has_thread) {
        loop_stop(l);
        pthread_join(l->thread, NULL);
    }
    run_what_waits(l);
    send_guests_away(l);
    run_what_waits(l);
    while (atomic_load_explicit(&l->wakers, memory_order_acquire) > 0)
        sched_yield();
    slab_drop(&l->reading.slab);
    event_free(l->wake_event);
    event_free(l->timer_event);
    event_base_free(l->base);
    close(l->wake_fd);
    close(l->timer_fd);
    timer_heap_free(&l->timers);
    pthread_mutex_destroy(&l->lock);
    mem_free(l->name);
    mem_free(l);
}

/* ---- asking a loop for something ------------------------------------------------------------ */

void loop_post(struct loop *l, struct task *t)
{
    if (loop_is_mine(l)) {
        tasks_push(&l->local, t);
        return;
    }
    pthread_mutex_lock(&l->lock);
    const bool sleeps = l->asleep;
    if (sleeps) {
        l->asleep = false;
        atomic_fetch_add_explicit(&l->wakers, 1, memory_order_relaxed);
    }
    tasks_push(&l->inbox, t);
    pthread_mutex_unlock(&l->lock);
    if (!sleeps)
        return;
    wake(l); /* outside, or it would wake only to wait for the lock; loop_drop() waits for us */
    atomic_fetch_sub_explicit(&l->wakers, 1, memory_order_release);
}

struct call {
    struct task task;
    void (*fn)(void *ctx);
    void *ctx;
    pthread_mutex_t lock;
    pthread_cond_t changed;
    bool done;
};

static void run_call(struct task *t)
{
    struct call *c = container_of(t, struct call, task);
    c->fn(c->ctx);
    pthread_mutex_lock(&c->lock);
    c->done = true;
    pthread_cond_signal(&c->changed);
    pthread_mutex_unlock(&c->lock);
}

void loop_call(struct loop *l, void (*fn)(void *ctx), void *ctx)
{
    if (loop_is_mine(l)) {
        fn(ctx);
        return;
    }
    struct call c = {.task.run = run_call,
                     .fn = fn,
                     .ctx = ctx,
                     .lock = PTHREAD_MUTEX_INITIALIZER,
                     .changed = PTHREAD_COND_INITIALIZER};
    loop_post(l, &c.task);
    pthread_mutex_lock(&c.lock);
    while (!c.done)
        pthread_cond_wait(&c.changed, &c.lock);
    pthread_mutex_unlock(&c.lock);
    pthread_cond_destroy(&c.changed);
    pthread_mutex_destroy(&c.lock);
}

/* At least one microsecond on, so that a round of timers comes to an end. */
void loop_after(struct loop *l, struct timer *t, uint64_t us)
{
    assert(loop_is_mine(l));
    const uint64_t now = loop_now(l);
    const uint64_t wait = us > 0 ? us : 1;
    timer_heap_put(&l->timers, t, wait < UINT64_MAX - now ? now + wait : UINT64_MAX);
}

void loop_cancel(struct loop *l, struct timer *t)
{
    assert(loop_is_mine(l));
    timer_heap_remove(&l->timers, t);
}

void loop_at_round_end(struct loop *l, struct round_end *e)
{
    assert(loop_is_mine(l));
    if (e->queued)
        return;
    e->queued = true;
    e->next = NULL;
    *l->last_end = e;
    l->last_end = &e->next;
}

/* ---- groups --------------------------------------------------------------------------------- */

void loops_start(struct loops *g, const char *name, unsigned n)
{
    assert(n > 0);
    assert(n <= sizeof g->at / sizeof g->at[0]);
    g->n = n;
    for (unsigned i = 0; i < n; i++) {
        char *full = mem_format("%s-%u", name, i);
        g->at[i] = loop_new(full);
        g->at[i]->index = i;
        mem_free(full);
    }
    for (unsigned i = 0; i < n; i++)
        loop_start(g->at[i]);
}

/* True while what waits on one loop may still post to another. */
static bool any_waited(struct loops *g)
{
    bool any = false;
    for (unsigned i = 0; i < g->n; i++)
        any |= run_what_waits(g->at[i]);
    return any;
}

void loops_stop(struct loops *g)
{
    for (unsigned i = 0; i < g->n; i++)
        loop_stop(g->at[i]);
    for (unsigned i = 0; i < g->n; i++) {
        pthread_join(g->at[i]->thread, NULL);
        g->at[i]->has_thread = false;
    }
    while (any_waited(g))
        continue;
    for (unsigned i = 0; i < g->n; i++)
        loop_drop(&g->at[i]);
    g->n = 0;
}
