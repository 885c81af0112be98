/* Three nodes of etcd that are killed and frozen while a store is used.  A number is raised by
 * compare-and-set all the time by the only one who writes it: each answer must be "yes". */
#include <sched.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "common/mem.h"
#include "metadata/etcd.h"
#include "metadata/metadata.h"
#include "tests/lib/etcd.h"
#include "tests/lib/suite.h"
#include "tests/unit/metadata/ask.h"
#include "tests/unit/metadata/listener.h"

#define is_err(call, e) ck_assert_str_eq(err_name((call).err), err_name(e))

static struct test_etcd etcd;
static char url[256];
static struct metadata *m;

static struct metadata *open_store(uint64_t session_ms)
{
    struct metadata *store = NULL;
    const struct meta_etcd_conf conf = {.url = url, .session_timeout_us = session_ms * 1000};

    ck_assert_int_eq(meta_etcd_open(&store, &conf), ERR_OK);
    return store;
}

static void begin_etcd(void)
{
    ck_assert(test_etcd_start(&etcd, 3, NULL));
    test_etcd_leader(&etcd);
    test_etcd_url(&etcd, "/t", url, sizeof url);
}

static void begin(void)
{
    begin_etcd();
    m = open_store(2000);
}

static void end(void)
{
    meta_close(&m);
    test_etcd_stop(&etcd);
}

/* ---- the writer ----------------------------------------------------------------------------- */

struct writer {
    struct meta_call call;
    struct task start;
    struct loop *loop;
    atomic_bool stop, stopped;
    atomic_int done;
    uint64_t longest_us, began_us;
};

static void write_next(struct writer *w);

static void written(struct meta_call *c, const struct meta_reply *r)
{
    struct writer *w = container_of(c, struct writer, call);
    uint64_t took = loop_clock() - w->began_us;

    ck_assert_str_eq(err_name(r->err), "OK");
    ck_assert_int_eq(r->version, atomic_load(&w->done));
    if (took > w->longest_us)
        w->longest_us = took;
    atomic_fetch_add(&w->done, 1);
    if (atomic_load(&w->stop))
        atomic_store(&w->stopped, true);
    else
        write_next(w);
}

static void write_next(struct writer *w)
{
    char text[16];
    int n = atomic_load(&w->done);

    snprintf(text, sizeof text, "%d", n);
    w->began_us = loop_clock();
    meta_put(m, "/sum", slice_text(text), n - 1, &w->call);
}

static void write_first(struct task *t)
{
    write_next(container_of(t, struct writer, start));
}

static void writer_begin(struct writer *w)
{
    *w = (struct writer){.loop = loop_new("writer"), .start.run = write_first};
    w->call = (struct meta_call){.home = w->loop, .done = written};
    loop_start(w->loop);
    loop_post(w->loop, &w->start);
}

static void await_more(struct writer *w, int more)
{
    int from = atomic_load(&w->done);

    while (atomic_load(&w->done) < from + more)
        sched_yield();
}

/* What etcd has is what was answered. */
static void writer_end(struct writer *w)
{
    char last[16];

    atomic_store(&w->stop, true);
    while (!atomic_load(&w->stopped))
        sched_yield();
    loop_drop(&w->loop);
    snprintf(last, sizeof last, "%d", atomic_load(&w->done) - 1);
    ck_assert_str_eq(ask_get(m, "/sum").text, last);
    ck_assert_int_eq(ask_get(m, "/sum").version, atomic_load(&w->done) - 1);
    printf("%d puts, the longest took %llu ms\n", atomic_load(&w->done),
           (unsigned long long)w->longest_us / 1000);
}

/* Each number once and in order: the watch saw what the writer did. */
static void heard_all(struct listener *l, const struct writer *w)
{
    char what[48];

    for (int i = 0; i < atomic_load(&w->done); i++) {
        snprintf(what, sizeof what, "put /sum=%d", i);
        listener_await(l, what);
        ck_assert_uint_eq(listener_count(l, what), 1);
    }
    ck_assert_uint_eq(listener_count(l, "unsure /sum"), 0);
}

/* ---- trouble -------------------------------------------------------------------------------- */

/* Each node in turn, so the one in use is among them, and the leader several times. */
START_TEST(nodes_are_killed)
{
    struct writer w;

    begin();
    struct listener *l = listener_new(m, "/sum");
    is_err(ask_hold(m, "/held", "x"), ERR_OK);
    writer_begin(&w);
    await_more(&w, 20);
    for (unsigned round = 0; round < 6; round++) {
        unsigned victim = round % 2 ? round / 2 : (unsigned)test_etcd_leader(&etcd);
        if (round < 4)
            test_etcd_kill(&etcd, victim);
        else
            test_etcd_terminate(&etcd, victim);
        await_more(&w, 20);
        test_etcd_run(&etcd, victim);
        test_etcd_await(&etcd, victim);
    }
    writer_end(&w);
    heard_all(l, &w);
    ck_assert_str_eq(ask_get(m, "/held").text, "x");
    ck_assert_int_eq(ask_get(m, "/held").version, 0);
    listener_drop(&l);
    end();
}
END_TEST

START_TEST(nodes_are_frozen)
{
    struct writer w;

    begin();
    struct listener *l = listener_new(m, "/sum");
    writer_begin(&w);
    await_more(&w, 20);
    for (unsigned round = 0; round < 6; round++) {
        unsigned victim = round % 2 ? round / 2 : (unsigned)test_etcd_leader(&etcd);
        test_etcd_freeze(&etcd, victim);
        await_more(&w, 20);
        char what[48];
        snprintf(what, sizeof what, "put /sum=%d", atomic_load(&w.done));
        listener_await(l, what); /* heard while the node is frozen still */
        test_etcd_thaw(&etcd, victim);
        await_more(&w, 20);
    }
    writer_end(&w);
    listener_drop(&l);
    end();
}
END_TEST

START_TEST(all_nodes_are_away_for_a_while)
{
    struct writer w;

    begin();
    struct listener *l = listener_new(m, "/sum");
    is_err(ask_hold(m, "/held", "x"), ERR_OK);
    writer_begin(&w);
    await_more(&w, 20);
    for (unsigned i = 0; i < 3; i++)
        test_etcd_kill(&etcd, i);
    int before = atomic_load(&w.done);
    struct answered late = {.err = ERR_OK};
    struct metadata *hasty = NULL;
    const struct meta_etcd_conf conf = {.url = url, .operation_timeout_us = 3000000};
    ck_assert_int_eq(meta_etcd_open(&hasty, &conf), ERR_OK);
    late = ask_get(hasty, "/sum"); /* three seconds */
    is_err(late, ERR_NOT_READY);
    ck_assert_int_le(atomic_load(&w.done), before + 1);
    for (unsigned i = 0; i < 3; i++)
        test_etcd_run(&etcd, i);
    await_more(&w, 50);
    writer_end(&w);
    heard_all(l, &w);
    is_err(ask_get(hasty, "/sum"), ERR_OK);
    while (ask_get(hasty, "/held").err)
        sched_yield();
    ck_assert_str_eq(ask_get(hasty, "/held").text, "x");
    listener_drop(&l);
    meta_close(&hasty);
    end();
}
END_TEST

/* A store that went back: who watches is told, hears again, and no revision is below one before. */
START_TEST(emptied_under_a_watch)
{
    uint64_t before, after;

    begin();
    struct listener *l = listener_new(m, "/x");
    for (unsigned i = 0; i < 50; i++)
        is_err(ask_put(m, "/x", "1", META_ANY), ERR_OK);
    before = ask_get(m, "/x").revision;
    listener_await(l, "put /x=1");
    test_etcd_empty(&etcd);
    listener_await(l, "unsure /x");
    is_err(ask_get(m, "/x"), ERR_NOT_FOUND);
    is_err(ask_put(m, "/x", "2", META_ABSENT), ERR_OK);
    listener_await(l, "put /x=2");
    after = ask_get(m, "/x").revision;
    ck_assert_uint_gt(after, before);
    ck_assert_uint_eq(listener_count(l, "unsure /x"), 1);
    listener_drop(&l);
    end();
}
END_TEST

/* ---- a process that dies -------------------------------------------------------------------- */

static void hold_and_wait(int told)
{
    struct metadata *mine = open_store(1000);
    struct answered a = ask_hold(mine, "/h/dead", "x");

    if (a.err || write(told, "y", 1) != 1)
        _exit(1);
    pause();
}

START_TEST(a_dead_process_holds_nothing)
{
    int told[2];
    char byte;

    begin_etcd();
    ck_assert_int_eq(pipe(told), 0);
    pid_t child = fork(); /* while there are no threads */
    if (child == 0)
        hold_and_wait(told[1]);
    close(told[1]);
    ck_assert_int_eq(read(told[0], &byte, 1), 1);
    close(told[0]);
    m = open_store(2000);
    struct listener *l = listener_new(m, "/h/");
    is_err(ask_hold(m, "/h/alive", "x"), ERR_OK);
    is_err(ask_hold(m, "/h/dead", "y"), ERR_EXISTS);
    kill(child, SIGKILL);
    uint64_t began = loop_clock();
    waitpid(child, NULL, 0);
    listener_await(l, "removed /h/dead");
    uint64_t took = loop_clock() - began;
    printf("the key of a dead process went after %llu ms\n", (unsigned long long)took / 1000);
    ck_assert_uint_lt(took, 10000000);
    ck_assert_str_eq(ask_get(m, "/h/alive").text, "x");
    ck_assert_uint_eq(listener_count(l, "removed /h/alive"), 0);
    listener_drop(&l);
    end();
}
END_TEST

/* ---- how long nobody can write -------------------------------------------------------------- */

START_TEST(a_killed_leader_is_replaced_soon)
{
    enum { ROUNDS = 5 };

    begin();
    is_err(ask_put(m, "/k", "0", META_ANY), ERR_OK);
    for (int i = 0; i < ROUNDS; i++) {
        unsigned leader = (unsigned)test_etcd_leader(&etcd);
        uint64_t began = loop_clock();
        test_etcd_kill(&etcd, leader);
        is_err(ask_put(m, "/k", "1", META_ANY), ERR_OK);
        uint64_t took = loop_clock() - began;
        printf("first put %llu ms after the leader was killed\n", (unsigned long long)took / 1000);
        ck_assert_uint_lt(took, 10000000);
        test_etcd_run(&etcd, leader);
        test_etcd_await(&etcd, leader);
    }
    end();
}
END_TEST

int main(void)
{
    if (!test_etcd_start(&etcd, 0, NULL))
        return test_etcd_skip();
    test_etcd_stop(&etcd);
    return suite_run("etcd_cluster",
                     (suite_case[]){SUITE_SLOW(nodes_are_killed, 120),
                                    SUITE_SLOW(nodes_are_frozen, 120),
                                    SUITE_SLOW(all_nodes_are_away_for_a_while, 120),
                                    SUITE_SLOW(emptied_under_a_watch, 60),
                                    SUITE_SLOW(a_dead_process_holds_nothing, 60),
                                    SUITE_SLOW(a_killed_leader_is_replaced_soon, 120),
                                    {0}});
}
