/* What /metrics says after traffic that is known, as a scraper reads it. */
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "common/mem.h"
#include "tests/lib/exposition.h"
#include "tests/lib/suite.h"
#include "tests/unit/broker/session/scene.h"

#define TOPIC  "persistent://public/default/t"
#define LABELS "{cluster=\"test\",namespace=\"public/default\",topic=\"" TOPIC "\"}"
#define OF_SUBSCRIPTION \
    "{cluster=\"test\",namespace=\"public/default\",topic=\"" TOPIC "\",subscription=\"sub\"}"
#define OF_NAMESPACE "{cluster=\"test\",namespace=\"public/default\"}"
#define OF_CLUSTER   "{cluster=\"test\"}"

static char *answer;

/* The body, checked; valid until the next. */
static const char *scrape(void)
{
    mem_free(answer);
    answer = inn_get(inn, "/metrics");
    const char *body = strstr(answer, "\r\n\r\n");
    ck_assert_ptr_nonnull(body);
    ck_assert_ptr_nonnull(strstr(answer, "200 OK"));
    exposition_check(body + 4);
    return body + 4;
}

static void end(void)
{
    mem_free(answer);
    answer = NULL;
    finish();
}

static void is(const char *text, const char *series, double value)
{
    const double found = exposition_value(text, series);
    ck_assert_msg(found == value, "%s is %g, not %g", series, found, value);
}

/* 10 messages published, 10 sent, 4 of them acknowledged. */
static void traffic(void)
{
    Pulsar__Proto__MessageIdData fourth = {0}, id;
    char text[16];

    raw_subscribed(r, 1, TOPIC, "sub");
    raw_producer_ready(r, 1, TOPIC);
    for (uint64_t i = 0; i < 10; i++) {
        snprintf(text, sizeof(text), "m%u", (unsigned)i);
        raw_publish(r, 1, i, text);
    }
    raw_flow(r, 1, 100);
    for (unsigned i = 0; i < 10; i++) {
        snprintf(text, sizeof(text), "m%u", i);
        id = raw_message(r, text);
        if (i == 3)
            fourth = id;
    }
    raw_ack(r, 1, fourth, true);
}

START_TEST(figures_are_those_of_the_traffic)
{
    begin();
    traffic();
    const char *t = scrape();
    is(t, "pulsar_in_messages_total" LABELS, 10);
    is(t, "pulsar_out_messages_total" LABELS, 10);
    const double bytes = exposition_value(t, "pulsar_in_bytes_total" LABELS);
    ck_assert(bytes > 10 * 20 && bytes < 10 * 200);
    is(t, "pulsar_producers_count" LABELS, 1);
    is(t, "pulsar_consumers_count" LABELS, 1);
    is(t, "pulsar_subscriptions_count" LABELS, 1);
    is(t, "pulsar_msg_backlog" LABELS, 6);
    is(t, "pulsar_subscription_back_log" OF_SUBSCRIPTION, 6);
    is(t, "pulsar_topics_count" OF_NAMESPACE, 1);
    is(t, "pulsar_ml_count" OF_CLUSTER, 1);
    is(t, "pulsar_broker_topics_count" OF_CLUSTER, 1);
    is(t, "pulsar_broker_publish_latency_count" OF_CLUSTER, 10);
    is(t, "pulsar_topic_load_times_count" OF_CLUSTER, 1);
    is(t, "pulsar_broker_msg_backlog" OF_CLUSTER, 6);
    ck_assert(exposition_value(t, "pulsar_metadata_store_ops_latency_ms_count{cluster=\"test\","
                                  "name=\"metadata-store\",type=\"put\",status=\"success\"}") > 1);
    const double stored = exposition_value(t, "pulsar_storage_logical_size" LABELS);
    ck_assert(stored >= bytes);
    is(t, "pulsar_storage_size" LABELS, stored); /* one copy */
    const double behind = exposition_value(t, "pulsar_storage_backlog_size" LABELS);
    ck_assert(behind > stored * 0.5 && behind < stored * 0.7);
    ck_assert(exposition_value(t, "process_resident_memory_bytes" OF_CLUSTER) > 1e6);
    ck_assert(exposition_value(t, "pulsar_ml_cache_used_size" OF_CLUSTER) > 0);
    end();
}
END_TEST

START_TEST(rates_are_of_the_last_interval)
{
    begin_with("statsUpdateFrequencyInSecs=1");
    traffic();
    const char *t;
    do { /* the interval that it was in has passed */
        t = scrape();
    } while (exposition_value(t, "pulsar_storage_write_latency_count" LABELS) == 0);
    double entries = 0, sizes = 0;
    static const char *const latency[] = {"le_0_5", "le_1",   "le_5",   "le_10",   "le_20",
                                          "le_50",  "le_100", "le_200", "le_1000", "overflow"};
    static const char *const size[] = {"128",   "512",    "1_kb", "2_kb",    "4_kb",
                                       "16_kb", "100_kb", "1_mb", "overflow"};
    for (size_t i = 0; i < sizeof(latency) / sizeof(latency[0]); i++) {
        char *name = mem_format("pulsar_storage_write_latency_%s" LABELS, latency[i]);
        entries += exposition_value(t, name);
        mem_free(name);
    }
    for (size_t i = 0; i < sizeof(size) / sizeof(size[0]); i++) {
        char *name = mem_format("pulsar_entry_size_le_%s" LABELS, size[i]);
        sizes += exposition_value(t, name);
        mem_free(name);
    }
    is(t, "pulsar_storage_write_latency_count" LABELS, entries);
    is(t, "pulsar_entry_size_count" LABELS, entries);
    ck_assert(sizes == entries && entries <= 10);
    ck_assert(exposition_value(t, "pulsar_entry_size_le_128" LABELS) == entries);
    const double rate = exposition_value(t, "pulsar_rate_in" LABELS);
    ck_assert(rate > 0); /* the first interval may be short */
    ck_assert(exposition_value(t, "pulsar_throughput_in" LABELS) > rate);
    is(t, "pulsar_broker_rate_in" OF_CLUSTER, rate);
    while (exposition_value(scrape(), "pulsar_rate_in" LABELS) > 0)
        sched_yield(); /* nothing came in the next one */
    is(scrape(), "pulsar_in_messages_total" LABELS, 10);
    end();
}
END_TEST

START_TEST(odd_names_do_not_break_it)
{
    static const char *const names[] = {"persistent://public/default/a\"b",
                                        "persistent://public/default/a\\b",
                                        "persistent://public/default/gr\xc3\xbc\xc3\x9f",
                                        "persistent://public/default/{x=\"1\"} 7"};

    begin();
    for (uint64_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
        raw_producer_ready(r, i, names[i]);
        raw_publish(r, i, 0, "x");
    }
    raw_subscribed(r, 1, names[0], "s\"\\\n");
    const char *t = scrape();
    is(t,
       "pulsar_in_messages_total{cluster=\"test\",namespace=\"public/default\","
       "topic=\"persistent://public/default/a\\\"b\"}",
       1);
    is(t,
       "pulsar_subscription_back_log{cluster=\"test\",namespace=\"public/default\","
       "topic=\"persistent://public/default/a\\\"b\",subscription=\"s\\\"\\\\\\n\"}",
       1);
    is(t, "pulsar_topics_count" OF_NAMESPACE, 4);
    end();
}
END_TEST

START_TEST(namespaces_when_topics_are_not_wanted)
{
    begin_with("exposeTopicLevelMetricsInPrometheus=false");
    traffic();
    for (uint64_t i = 0; i < 20; i++) { /* on both loops */
        char *name = mem_format("persistent://public/default/other-%u", (unsigned)i);
        raw_producer_ready(r, 10 + i, name);
        raw_publish(r, 10 + i, 0, "x");
        mem_free(name);
    }
    const char *t = scrape();
    is(t, "pulsar_in_messages_total" OF_NAMESPACE, 30);
    is(t, "pulsar_msg_backlog" OF_NAMESPACE, 6);
    is(t, "pulsar_producers_count" OF_NAMESPACE, 21);
    is(t, "pulsar_topics_count" OF_NAMESPACE, 21);
    ck_assert(!exposition_has(t, "pulsar_in_messages_total" LABELS));
    ck_assert(!exposition_has(t, "pulsar_subscription_back_log" OF_SUBSCRIPTION));
    end();
}
END_TEST

START_TEST(a_topic_that_goes_takes_its_series_along)
{
    begin();
    traffic();
    ck_assert(exposition_has(scrape(), "pulsar_in_messages_total" LABELS));
    inn_stop_broker(inn);
    inn_start_broker(inn);
    ck_assert(!exposition_has(scrape(), "pulsar_in_messages_total" LABELS));
    end();
}
END_TEST

/* ---- many topics: no loop stands still for long ---- */

struct pulse {
    struct timer timer;
    struct loop *loop;
    uint64_t last, longest;      /* by the clock: the machine's other work is in it */
    uint64_t busy_last, busiest; /* of the thread itself */
};

static uint64_t thread_us(void)
{
    struct timespec t;
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
    return (uint64_t)t.tv_sec * 1000000 + (uint64_t)t.tv_nsec / 1000;
}

static void beat(struct timer *t)
{
    struct pulse *p = container_of(t, struct pulse, timer);
    const uint64_t now = loop_clock(), busy = thread_us();

    if (p->last && now - p->last > p->longest)
        p->longest = now - p->last;
    if (p->busy_last && busy - p->busy_last > p->busiest)
        p->busiest = busy - p->busy_last;
    p->last = now;
    p->busy_last = busy;
    loop_after(p->loop, &p->timer, 200);
}

static void start_pulse(void *ctx)
{
    struct pulse *p = ctx;
    p->timer.run = beat;
    beat(&p->timer);
}

static void stop_pulse(void *ctx)
{
    struct pulse *p = ctx;
    loop_cancel(p->loop, &p->timer);
}

START_TEST(many_topics_come_in_steps)
{
    const char *wanted = getenv("LGM_TOPICS"); /* 10000 by hand: prints what it took */
    const unsigned n = wanted ? (unsigned)strtoul(wanted, NULL, 10) : 700;
    struct pulse pulse[2] = {0};

    begin();
    for (unsigned i = 0; i < n; i++) {
        char *name = mem_format("persistent://public/default/one-of-many-topics-%u", i);
        raw_producer_ready(r, i, name);
        mem_free(name);
    }
    for (unsigned i = 0; i < 2; i++) {
        pulse[i].loop = inn->loops.at[i];
        loop_call(inn->loops.at[i], start_pulse, &pulse[i]);
    }
    const uint64_t began = loop_clock();
    mem_free(answer);
    answer = inn_get(inn, "/metrics");
    const uint64_t took = loop_clock() - began;
    for (unsigned i = 0; i < 2; i++)
        loop_call(inn->loops.at[i], stop_pulse, &pulse[i]);
    const char *t = strstr(answer, "\r\n\r\n") + 4;
    exposition_check(t);
    is(t, "pulsar_topics_count" OF_NAMESPACE, n);
    if (wanted)
        printf("topics=%u bytes=%zu took_ms=%llu longest_us=%llu,%llu busiest_us=%llu,%llu\n", n,
               strlen(t), (unsigned long long)took / 1000, (unsigned long long)pulse[0].longest,
               (unsigned long long)pulse[1].longest, (unsigned long long)pulse[0].busiest,
               (unsigned long long)pulse[1].busiest);
    end();
}
END_TEST

int main(void)
{
    return suite_run("metrics", (suite_case[]){
                                    SUITE_CASE(figures_are_those_of_the_traffic),
                                    SUITE_CASE(rates_are_of_the_last_interval),
                                    SUITE_CASE(odd_names_do_not_break_it),
                                    SUITE_CASE(namespaces_when_topics_are_not_wanted),
                                    SUITE_CASE(a_topic_that_goes_takes_its_series_along),
                                    SUITE_CASE(many_topics_come_in_steps),
                                    {0},
                                });
}
