#include "common/memory_guard.h"

#include <malloc.h>
#include <unistd.h>

#include "common/log.h"
#include "common/mem.h"
#include "common/memory_limit.h"
#include "common/process.h"
#include "common/slab_pool.h"

enum {
    LOOK_US = 100 * 1000,
    NEAR_US = 20 * 1000,
    NEAR = 60,
    GIVE_BACK_EVERY = 50,
    SHORT_EVERY = 10
};
enum { MIB = 1024 * 1024 };

/* ---- the levels ---- */

static const unsigned begins[] = {
    [MEMORY_PLENTY] = 0, [MEMORY_LOW] = 80, [MEMORY_SCARCE] = 88, [MEMORY_SHORT] = 94};

const char *memory_level_name(enum memory_level level)
{
    static const char *const names[] = {[MEMORY_PLENTY] = "plenty",
                                        [MEMORY_LOW] = "low",
                                        [MEMORY_SCARCE] = "scarce",
                                        [MEMORY_SHORT] = "short"};
    return names[level];
}

/* A limit may be all ones: no product with it fits. */
static bool reaches(uint64_t used, uint64_t limit, unsigned percent)
{
    return limit > 0 && (double)used * 100 >= (double)limit * percent;
}

enum memory_level memory_level_next(enum memory_level now, uint64_t used, uint64_t limit)
{
    enum memory_level level = now;

    while (level < MEMORY_SHORT && reaches(used, limit, begins[level + 1]))
        level++;
    while (level > MEMORY_PLENTY && !reaches(used, limit, begins[level] - MEMORY_BACK))
        level--;
    return level;
}

/* ---- those who hear of it ---- */

static void hear(struct task *t)
{
    struct memory_ear *e = container_of(t, struct memory_ear, task);

    atomic_store(&e->posted, false);
    if (memory_guard_level(e->guard) != MEMORY_PLENTY)
        slab_pool_trim();
    e->heard(e, memory_guard_level(e->guard));
}

static void tell(struct memory_guard *g)
{
    list_each(&g->ears, n)
    {
        struct memory_ear *e = list_entry(n, struct memory_ear, node);
        if (!atomic_exchange(&e->posted, true))
            loop_post(e->home, &e->task);
    }
}

static void add(void *ctx)
{
    struct memory_ear *e = ctx;

    list_push_back(&e->guard->ears, &e->node);
}

void memory_guard_listen(struct memory_guard *g, struct memory_ear *e)
{
    e->guard = g;
    e->task.run = hear;
    if (g->home)
        loop_call(g->home, add, e);
    else
        add(e);
}

/* ---- looking ---- */

static void change(struct memory_guard *g, enum memory_level to, uint64_t used)
{
    const enum memory_level from = memory_guard_level(g);

    log_event(to > from ? LOG_WARN : LOG_INFO, "memory.level_changed",
              F_STR("level", memory_level_name(to)), F_STR("before", memory_level_name(from)),
              F_U64("used_mb", used / MIB), F_U64("limit_mb", g->limit / MIB));
    atomic_store(&g->level, (int)to);
    metric_set(g->shown, to);
    slab_pool_lean(to != MEMORY_PLENTY);
    if (from == MEMORY_PLENTY)
        g->looks = 0;
    tell(g);
}

/* What caches let go of would otherwise stay ours, and the level with it. */
static void give_back(struct memory_guard *g, enum memory_level level)
{
    if (g->looks++ % (level == MEMORY_SHORT ? SHORT_EVERY : GIVE_BACK_EVERY))
        return;
    tell(g);
    slab_pool_trim();
    malloc_trim(0);
}

static void look(struct timer *t)
{
    struct memory_guard *g = container_of(t, struct memory_guard, timer);
    const uint64_t used = g->used();
    const enum memory_level now = memory_guard_level(g);
    const enum memory_level next = memory_level_next(now, used, g->limit);

    if (next != now)
        change(g, next, used);
    if (next != MEMORY_PLENTY)
        give_back(g, next);
    loop_after(g->home, &g->timer, reaches(used, g->limit, NEAR) ? NEAR_US : LOOK_US);
}

bool memory_guard_turns_away(struct memory_guard *g, int fd)
{
    const enum memory_level level = memory_guard_level(g);
    uint64_t left_out;

    if (level < MEMORY_SCARCE)
        return false;
    close(fd);
    if (log_limit_pass(&g->lines, 1, loop_clock(), &left_out))
        log_event(LOG_WARN, "memory.connection_closed", F_STR("level", memory_level_name(level)),
                  F_U64("more", left_out));
    return true;
}

/* ---- life ---- */

static void begin(void *ctx)
{
    struct memory_guard *g = ctx;

    look(&g->timer);
}

static void end(void *ctx)
{
    struct memory_guard *g = ctx;

    loop_cancel(g->home, &g->timer);
}

void memory_guard_init(struct memory_guard *g, const struct memory_guard_conf *conf)
{
    *g = (struct memory_guard){
        .timer.run = look,
        .used = conf->used ? conf->used : process_anonymous,
        .shown = conf->level,
    };
    list_init(&g->ears);
    if (conf->limit_mb >= 0)
        g->limit = conf->limit_mb ? (uint64_t)conf->limit_mb * MIB : memory_limit_find();
    metric_set(conf->limit, (int64_t)(g->limit < INT64_MAX ? g->limit : INT64_MAX));
}

uint64_t memory_guard_quarter(const struct memory_guard *g, uint64_t bytes)
{
    return g && g->limit > 0 && g->limit / 4 < bytes ? g->limit / 4 : bytes;
}

void memory_guard_start(struct memory_guard *g, struct loop *home)
{
    if (g->limit == 0)
        return;
    g->home = home;
    log_event(LOG_INFO, "memory.limit_taken", F_U64("limit_mb", g->limit / MIB));
    loop_call(home, begin, g);
}

void memory_guard_stop(struct memory_guard *g)
{
    if (g->home) {
        loop_call(g->home, end, g);
        slab_pool_lean(false);
    }
    g->home = NULL;
}
