#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include "common/buf.h"
#include "common/mem.h"
#include "common/memory_guard.h"
#include "common/memory_limit.h"
#include "common/process.h"
#include "common/slab_pool.h"
#include "tests/lib/suite.h"
#include "tests/unit/common/captured.h"

#define MIB ((uint64_t)1 << 20)

/* ---- levels ---- */

START_TEST(a_level_ends_lower_than_it_begins)
{
    const struct {
        uint64_t used;
        enum memory_level then;
    } steps[] = {
        {0, MEMORY_PLENTY},   {799, MEMORY_PLENTY}, {800, MEMORY_LOW},    {761, MEMORY_LOW},
        {759, MEMORY_PLENTY}, {799, MEMORY_PLENTY}, {879, MEMORY_LOW},    {880, MEMORY_SCARCE},
        {841, MEMORY_SCARCE}, {839, MEMORY_LOW},    {940, MEMORY_SHORT},  {901, MEMORY_SHORT},
        {899, MEMORY_SCARCE}, {2000, MEMORY_SHORT}, {100, MEMORY_PLENTY}, {5000, MEMORY_SHORT},
        {850, MEMORY_SCARCE}, {780, MEMORY_LOW},    {500, MEMORY_PLENTY}};
    enum memory_level level = MEMORY_PLENTY;

    for (size_t i = 0; i < sizeof(steps) / sizeof(steps[0]); i++) {
        level = memory_level_next(level, steps[i].used, 1000);
        ck_assert_msg(level == steps[i].then, "step %zu: %s", i, memory_level_name(level));
    }
}
END_TEST

START_TEST(without_a_limit_there_is_plenty)
{
    ck_assert_int_eq(memory_level_next(MEMORY_PLENTY, UINT64_MAX, 0), MEMORY_PLENTY);
    ck_assert_int_eq(memory_level_next(MEMORY_PLENTY, (uint64_t)1 << 50, UINT64_MAX),
                     MEMORY_PLENTY);
    ck_assert_int_eq(memory_guard_level(NULL), MEMORY_PLENTY);
}
END_TEST

/* ---- limits ---- */

static void put(const char *root, const char *path, const char *text)
{
    char *file = mem_format("%s/%s", root, path);

    for (char *at = file + strlen(root) + 1; (at = strchr(at, '/')) != NULL; *at++ = '/') {
        *at = '\0';
        mkdir(file, 0777);
    }
    FILE *f = fopen(file, "w");
    ck_assert_ptr_nonnull(f);
    fputs(text, f);
    fclose(f);
    mem_free(file);
}

static void clear(const char *root)
{
    char *command = mem_format("rm -rf '%s'", root);

    ck_assert_int_eq(system(command), 0);
    mem_free(command);
}

START_TEST(the_least_of_a_group_and_those_above_it_counts)
{
    char root[] = "/tmp/lgm-memory-XXXXXX";

    ck_assert_ptr_nonnull(mkdtemp(root));
    put(root, "a/memory.max", "500\n");
    put(root, "a/b/memory.max", "max\n");
    put(root, "a/b/c/memory.max", "700\n");
    put(root, "other/memory.max", "1\n");
    ck_assert_uint_eq(memory_limit_under(root, "0::/a/b/c\n", 1000), 500);
    ck_assert_uint_eq(memory_limit_under(root, "0::/a/b\n", 1000), 500);
    ck_assert_uint_eq(memory_limit_under(root, "0::/a/b/c\n", 400), 400);
    ck_assert_uint_eq(memory_limit_under(root, "0::/\n", 1000), 1000);
    ck_assert_uint_eq(memory_limit_under(root, "", 1000), 1000);
    ck_assert_uint_eq(memory_limit_under(root, "nonsense\n0::/a\n:\n", 1000), 500);
    put(root, "a/memory.max", "lots\n");
    ck_assert_uint_eq(memory_limit_under(root, "0::/a/b/c\n", 1000), 700);
    clear(root);
}
END_TEST

START_TEST(a_container_that_does_not_see_its_group_has_the_root_s)
{
    char root[] = "/tmp/lgm-memory-XXXXXX";

    ck_assert_ptr_nonnull(mkdtemp(root));
    put(root, "memory.max", "300\n");
    ck_assert_uint_eq(memory_limit_under(root, "0::/docker/0123\n", 1000), 300);
    clear(root);
}
END_TEST

START_TEST(version_1_has_its_own_tree)
{
    char root[] = "/tmp/lgm-memory-XXXXXX";

    ck_assert_ptr_nonnull(mkdtemp(root));
    put(root, "memory/memory.limit_in_bytes", "9223372036854771712\n");
    put(root, "memory/x/memory.limit_in_bytes", "600\n");
    put(root, "x/memory.max", "1\n"); /* nobody's */
    ck_assert_uint_eq(memory_limit_under(root, "9:cpu,memory:/x/y\n4:cpuset:/x\n", 1000), 600);
    ck_assert_uint_eq(memory_limit_under(root, "9:memory:/x\n0::/\n", 1000), 600);
    ck_assert_uint_eq(memory_limit_under(root, "9:memoryless:/x\n", 1000), 1000);
    ck_assert_uint_eq(memory_limit_under(root, "9:memory:/\n", 1000), 1000);
    clear(root);
}
END_TEST

START_TEST(this_process_has_a_limit_and_is_under_it)
{
    const uint64_t limit = memory_limit_find(), before = process_anonymous();
    char *block = mem_alloc(64 * MIB);

    memset(block, 1, 64 * MIB);
    ck_assert_uint_gt(before, 0);
    ck_assert_uint_gt(process_anonymous(), before + 60 * MIB);
    ck_assert_uint_lt(process_anonymous(), limit);
    mem_free(block);
}
END_TEST

/* ---- the guard ---- */

static _Atomic uint64_t pretended;

static uint64_t pretend(void)
{
    return atomic_load(&pretended);
}

struct listener {
    struct memory_ear ear;
    _Atomic int heard, times;
};

static void heard(struct memory_ear *e, enum memory_level level)
{
    struct listener *l = container_of(e, struct listener, ear);

    ck_assert(loop_is_mine(e->home));
    atomic_store(&l->heard, (int)level);
    atomic_fetch_add(&l->times, 1);
}

struct place {
    struct loops loops;
    struct memory_guard guard;
    struct listener listeners[2];
    struct metric level, limit;
};

static void begin(struct place *p, int64_t limit_mb)
{
    *p = (struct place){0};
    loops_start(&p->loops, "io", 2);
    memory_guard_init(&p->guard, &(struct memory_guard_conf){.limit_mb = limit_mb,
                                                             .used = pretend,
                                                             .level = &p->level,
                                                             .limit = &p->limit});
    for (unsigned i = 0; i < 2; i++) {
        p->listeners[i].ear = (struct memory_ear){.home = p->loops.at[i], .heard = heard};
        memory_guard_listen(&p->guard, &p->listeners[i].ear);
    }
    memory_guard_start(&p->guard, p->loops.at[0]);
}

static void end(struct place *p)
{
    memory_guard_stop(&p->guard);
    loops_stop(&p->loops);
}

static void uses(struct place *p, uint64_t bytes, enum memory_level level)
{
    atomic_store(&pretended, bytes);
    for (unsigned i = 0; i < 2; i++)
        while (atomic_load(&p->listeners[i].heard) != (int)level)
            usleep(1000);
    ck_assert_int_eq(memory_guard_level(&p->guard), level);
    ck_assert_int_eq(metric_get(&p->level), level);
}

START_TEST(every_loop_hears_of_a_change)
{
    struct captured *c = mem_new(struct captured);
    struct place p;

    atomic_store(&pretended, 0);
    capture_start(c);
    begin(&p, 100);
    ck_assert_int_eq(metric_get(&p.limit), 100 << 20);
    uses(&p, 81 * MIB, MEMORY_LOW);
    uses(&p, 95 * MIB, MEMORY_SHORT);
    uses(&p, 85 * MIB, MEMORY_SCARCE);
    uses(&p, 10 * MIB, MEMORY_PLENTY);
    ck_assert_int_ge(atomic_load(&p.listeners[1].times), 4);
    end(&p);
    const char *text = capture_end(c);
    ck_assert_ptr_nonnull(strstr(text, "memory.limit_taken limit_mb=100"));
    ck_assert_ptr_nonnull(
        strstr(text, "memory.level_changed level=short before=low used_mb=95 limit_mb=100"));
    mem_free(c);
}
END_TEST

START_TEST(it_does_not_look_when_it_may_not)
{
    struct place p;

    atomic_store(&pretended, UINT64_MAX);
    begin(&p, -1);
    ck_assert_int_eq(memory_guard_level(&p.guard), MEMORY_PLENTY);
    ck_assert_int_eq(metric_get(&p.limit), 0);
    ck_assert_uint_eq(memory_guard_quarter(&p.guard, UINT64_MAX), UINT64_MAX);
    end(&p);
    begin(&p, 1); /* the first look is at the start */
    ck_assert_int_eq(memory_guard_level(&p.guard), MEMORY_SHORT);
    ck_assert_uint_eq(memory_guard_quarter(&p.guard, MIB), MIB / 4);
    ck_assert_uint_eq(memory_guard_quarter(&p.guard, 1000), 1000);
    end(&p);
}
END_TEST

static bool is_open(int fd)
{
    char byte;

    return recv(fd, &byte, 1, MSG_DONTWAIT) != 0;
}

START_TEST(connections_are_closed_when_it_is_scarce)
{
    struct captured *c = mem_new(struct captured);
    struct metric level_shown, limit_shown;
    struct memory_guard g;
    int pair[2];

    memory_guard_init(&g,
                      &(struct memory_guard_conf){.level = &level_shown, .limit = &limit_shown});
    capture_start(c);
    for (int level = MEMORY_PLENTY; level <= MEMORY_SHORT; level++) {
        ck_assert_int_eq(socketpair(AF_UNIX, SOCK_STREAM, 0, pair), 0);
        atomic_store(&g.level, level);
        ck_assert_int_eq(memory_guard_turns_away(&g, pair[0]), level >= MEMORY_SCARCE);
        ck_assert_int_eq(is_open(pair[1]), level < MEMORY_SCARCE);
        if (level < MEMORY_SCARCE)
            close(pair[0]);
        close(pair[1]);
    }
    const char *first = strstr(capture_end(c), "memory.connection_closed level=scarce");
    ck_assert_ptr_nonnull(first);
    mem_free(c);
}
END_TEST

/* ---- memory that is kept for reuse ---- */

START_TEST(a_trimmed_pool_gives_its_slabs_back)
{
    enum { N = 256, BIG = 256 * 1024 };
    struct slab *all[N];

    for (unsigned i = 0; i < N; i++) {
        all[i] = slab_new(BIG);
        memset(slab_bytes(all[i]), 1, BIG);
    }
    for (unsigned i = 0; i < N; i++)
        slab_drop(&all[i]);
    const uint64_t kept = process_anonymous();
    slab_pool_trim();
    ck_assert_uint_lt(process_anonymous() + 20 * MIB, kept);
    all[0] = slab_new(BIG);
    slab_drop(&all[0]);
}
END_TEST

int main(void)
{
    return suite_run("memory",
                     (suite_case[]){
                         SUITE_CASE(a_level_ends_lower_than_it_begins),
                         SUITE_CASE(without_a_limit_there_is_plenty),
                         SUITE_CASE(the_least_of_a_group_and_those_above_it_counts),
                         SUITE_CASE(a_container_that_does_not_see_its_group_has_the_root_s),
                         SUITE_CASE(version_1_has_its_own_tree),
                         SUITE_CASE(this_process_has_a_limit_and_is_under_it),
                         SUITE_CASE(every_loop_hears_of_a_change),
                         SUITE_CASE(it_does_not_look_when_it_may_not),
                         SUITE_CASE(connections_are_closed_when_it_is_scarce),
                         SUITE_CASE(a_trimmed_pool_gives_its_slabs_back),
                         {0},
                     });
}
