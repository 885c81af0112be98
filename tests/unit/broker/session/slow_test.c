/* A publish that took too long says where: in front of bookies that are late, silent or missing. */
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/mem.h"
#include "metadata/paths.h"
#include "tests/lib/fake_bookie.h"
#include "tests/lib/suite.h"
#include "tests/unit/broker/session/scene.h"
#include "tests/unit/common/captured.h"

#define TOPIC "persistent://public/default/t"

enum { SLOW_MS = 40, LATE_US = 120 * 1000 };

static struct captured captured;
static struct fake_bookie *fake[2];
static struct fake_bookie_knobs wanted;

static void make(void *ctx)
{
    struct fake_bookie **f = ctx;
    *f = fake_bookie_new(inn->loops.at[0]);
    *fake_bookie_knobs(*f) = wanted;
}

static void unmake(void *ctx)
{
    fake_bookie_drop(ctx);
}

/* One more bookie, which does what the knobs say. */
static void join(unsigned i, struct fake_bookie_knobs knobs)
{
    char path[META_KEY_MAX];

    wanted = knobs;
    loop_call(inn->loops.at[0], make, &fake[i]);
    ck_assert_int_eq(path_bookie(fake_bookie_id(fake[i]), false, path), ERR_OK);
    ck_assert_int_eq(meta_put_wait(inn->meta, path, (struct slice){0}, META_ABSENT), ERR_OK);
}

static void open_with(const char *ensemble, const char *write, const char *ack)
{
    char setting[64];

    inn = inn_new();
    inn_set(inn, ensemble);
    inn_set(inn, write);
    inn_set(inn, ack);
    snprintf(setting, sizeof(setting), "lgmSlowPublishMillis=%d", SLOW_MS);
    inn_set(inn, setting);
    inn_open(inn);
    r = raw_connect(broker_port(inn->broker));
    raw_producer_ready(r, 1, TOPIC);
}

static void close_all(void)
{
    raw_drop(&r);
    inn_stop_broker(inn);
    for (unsigned i = 0; i < 2; i++)
        if (fake[i])
            loop_call(inn->loops.at[0], unmake, &fake[i]);
    inn_drop(&inn);
}

static unsigned lines_of(const char *text, const char *event)
{
    unsigned n = 0;

    for (const char *at = text; (at = strstr(at, event)); at++)
        n++;
    return n;
}

static long long field(const char *line, const char *name)
{
    char key[40];

    snprintf(key, sizeof(key), " %s=", name);
    const char *at = strstr(line, key);
    ck_assert_ptr_nonnull(at);
    return strtoll(at + strlen(key), NULL, 10);
}

static void says(const char *line, const char *key, const char *value)
{
    char *whole = mem_format(" %s=%s ", key, value);
    ck_assert_msg(strstr(line, whole), "no%sin %.600s", whole, line);
    mem_free(whole);
}

START_TEST(a_late_bookie_is_named_once)
{
    open_with("managedLedgerDefaultEnsembleSize=2", "managedLedgerDefaultWriteQuorum=2",
              "managedLedgerDefaultAckQuorum=2");
    join(0, (struct fake_bookie_knobs){.add_us = LATE_US});
    capture_start(&captured);
    raw_publish(r, 1, 0, "late");
    const char *text = capture_end(&captured);
    ck_assert_uint_eq(lines_of(text, "publish.slow"), 1);
    const char *line = strstr(text, "publish.slow");
    says(line, "topic", TOPIC);
    says(line, "stage", "quorum");
    says(line, "bookie", fake_bookie_id(fake[0]));
    ck_assert_int_ge(field(line, "quorum_ms"), LATE_US / 1000 - 1);
    ck_assert_int_ge(field(line, "total_ms"), field(line, "quorum_ms"));
    ck_assert_int_eq(inn_metric(inn, "lgm_slow_publishes_total"), 1);
    close_all();
}
END_TEST

START_TEST(a_silent_bookie_is_named_beside_the_one_that_counted)
{
    open_with("managedLedgerDefaultEnsembleSize=3", "managedLedgerDefaultWriteQuorum=3",
              "managedLedgerDefaultAckQuorum=2");
    join(0, (struct fake_bookie_knobs){.add_us = LATE_US});
    join(1, (struct fake_bookie_knobs){.mute = true});
    capture_start(&captured);
    raw_publish(r, 1, 0, "late");
    const char *text = capture_end(&captured);
    ck_assert_uint_eq(lines_of(text, "publish.slow"), 1);
    const char *line = strstr(text, "publish.slow");
    says(line, "stage", "quorum");
    says(line, "bookie", fake_bookie_id(fake[0]));
    says(line, "silent", fake_bookie_id(fake[1]));
    close_all();
}
END_TEST

START_TEST(missing_bookies_are_the_stage)
{
    open_with("managedLedgerDefaultEnsembleSize=2", "managedLedgerDefaultWriteQuorum=2",
              "managedLedgerDefaultAckQuorum=2");
    capture_start(&captured);
    const uint64_t began = loop_clock();
    raw_send(r, 1, 0, "waits");
    while (loop_clock() - began < LATE_US)
        sched_yield();
    join(0, (struct fake_bookie_knobs){0});
    raw_receipt(r, 1, 0);
    const char *text = capture_end(&captured);
    ck_assert_uint_eq(lines_of(text, "publish.slow"), 1);
    const char *line = strstr(text, "publish.slow");
    says(line, "stage", "bookies_missing");
    ck_assert_int_ge(field(line, "bookies_missing_ms"), LATE_US / 1000 / 2);
    close_all();
}
END_TEST

START_TEST(lines_are_limited_and_the_rest_counted)
{
    open_with("managedLedgerDefaultEnsembleSize=2", "managedLedgerDefaultWriteQuorum=2",
              "managedLedgerDefaultAckQuorum=2");
    join(0, (struct fake_bookie_knobs){.add_us = LATE_US});
    capture_start(&captured);
    for (uint64_t i = 0; i < 200; i++)
        raw_send(r, 1, i, "one of many");
    for (uint64_t i = 0; i < 200; i++)
        raw_receipt(r, 1, i);
    const char *text = capture_end(&captured);
    ck_assert_uint_ge(lines_of(text, "publish.slow"), 1);
    ck_assert_uint_le(lines_of(text, "publish.slow"), 20); /* they may straddle a second */
    ck_assert_int_eq(inn_metric(inn, "lgm_slow_publishes_total"), 200);
    close_all();
}
END_TEST

START_TEST(what_is_quick_says_nothing)
{
    open_with("managedLedgerDefaultEnsembleSize=1", "managedLedgerDefaultWriteQuorum=1",
              "managedLedgerDefaultAckQuorum=1");
    inn_stop_broker(inn);
    inn_set(inn, "lgmSlowPublishMillis=0"); /* off: whatever the machine does meanwhile */
    inn_start_broker(inn);
    raw_drop(&r);
    r = raw_connect(broker_port(inn->broker));
    raw_producer_ready(r, 1, TOPIC);
    capture_start(&captured);
    raw_publish(r, 1, 0, "quick");
    ck_assert_uint_eq(lines_of(capture_end(&captured), "publish.slow"), 0);
    close_all();
}
END_TEST

int main(void)
{
    return suite_run("slow", (suite_case[]){
                                 SUITE_CASE(a_late_bookie_is_named_once),
                                 SUITE_CASE(a_silent_bookie_is_named_beside_the_one_that_counted),
                                 SUITE_CASE(missing_bookies_are_the_stage),
                                 SUITE_CASE(lines_are_limited_and_the_rest_counted),
                                 SUITE_CASE(what_is_quick_says_nothing),
                                 {0},
                             });
}
