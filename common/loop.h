/* loop.h - one thread, one libevent base, and everything that lives on it.
 *
 * An object belongs to one loop from birth to death, and only that loop's
 * thread touches it: so nothing here has a lock.  Other threads say what they
 * want with loop_post(); a batch of posts costs one wake-up.  A task posted from
 * the loop's own thread runs later in the same round, never in the same stack.
 *
 * Threads: any for loop_post() and loop_call(); the loop's own for the rest.
 */
#ifndef COMMON_LOOP_H
#define COMMON_LOOP_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct event_base;
struct loop;

/* Something to do later, embedded in what it is about.  A task that is waiting
 * must not be posted again. */
struct task {
    void (*run)(struct task *t);
    struct task *next; /* private */
};

/* Runs once at its time; arm it again for more.  Zeroed memory is a timer at rest. */
struct timer {
    void (*run)(struct timer *t);
    uint64_t due_us; /* private, as the next */
    size_t slot;     /* place in the loop's heap, from 1; 0: at rest */
};

struct loop *loop_new(const char *name); /* gives; `name` is the thread's */
void loop_start(struct loop *l);         /* its own thread runs it until loop_drop() */
void loop_run(struct loop *l);           /* or the caller's does, until loop_stop() */
void loop_stop(struct loop *l);          /* any thread */
void loop_drop(struct loop **l);         /* stops and joins; runs the tasks that still wait */

void loop_post(struct loop *l, struct task *t); /* borrows t until it has run */
/* Runs fn(ctx) on the loop and returns when it has returned.  From the loop's own
 * thread it is a plain call.  For starting and stopping, never on a hot path. */
void loop_call(struct loop *l, void (*fn)(void *ctx), void *ctx);

void loop_after(struct loop *l, struct timer *t, uint64_t us); /* arms, or moves */
void loop_cancel(struct loop *l, struct timer *t);             /* at rest is fine */
static inline bool timer_armed(const struct timer *t)
{
    return t->slot != 0;
}

/* `t` runs at the end of this round, after every callback that is due: where writes
 * are gathered.  Posting it again before then is a no-op if it waits already
 * (t->queued). */
struct round_end {
    void (*run)(struct round_end *t);
    struct round_end *next; /* private */
    bool queued;            /* private */
};
void loop_at_round_end(struct loop *l, struct round_end *t);

uint64_t loop_now(const struct loop *l); /* us, never goes back; one reading a round */
uint64_t loop_clock(void);               /* us, the same clock read now; any thread */
uint64_t loop_wall_ms(void);             /* ms since 1970; any thread */
bool loop_is_mine(const struct loop *l);
struct loop *loop_mine(void); /* the loop whose thread this is, or NULL */
const char *loop_name(const struct loop *l);
unsigned loop_index(const struct loop *l);    /* place in its group; 0 outside one */
struct event_base *loop_base(struct loop *l); /* for conn, listener and http only */

/* A fixed set of loops that run. */
struct loops {
    unsigned n;
    struct loop *at[64];
};
void loops_start(struct loops *g, const char *name, unsigned n); /* threads name-0, name-1 ... */
void loops_stop(struct loops *g);                                /* joins; runs waiting tasks */

#endif
