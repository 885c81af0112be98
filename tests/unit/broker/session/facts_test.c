/* What is known of producers, consumers and subscriptions, and what there may be of them.  Raw
 * frames over a socket, in front of a real bookie. */
#include <stdio.h>
#include <string.h>

#include "common/mem.h"
#include "tests/lib/suite.h"
#include "tests/unit/broker/session/scene.h"

#define TOPIC   "persistent://public/default/t"
#define STATS   "/admin/v2/persistent/public/default/t/stats"
#define TEXT(s) ((char *)(uintptr_t)(s))

enum { EXCLUSIVE, SHARED };
enum { CONSUMER_BUSY = 5, SUBSCRIPTION_NOT_FOUND = 12, CONSUMER_NOT_FOUND = 13 };
enum { PRODUCER_BUSY = 16, NOT_ALLOWED = 22 };

static Pulsar__Proto__KeyValue *pair(const char *key, const char *value)
{
    static Pulsar__Proto__KeyValue one;

    one = (Pulsar__Proto__KeyValue)PULSAR__PROTO__KEY_VALUE__INIT;
    one.key = TEXT(key);
    one.value = TEXT(value);
    return &one;
}

static void put_subscribe(uint64_t id, const char *subscription, int type,
                          Pulsar__Proto__KeyValue *metadata, Pulsar__Proto__KeyValue *property)
{
    RAW(base, SUBSCRIBE, subscribe, CommandSubscribe, COMMAND_SUBSCRIBE, s);
    s.topic = TEXT(TOPIC);
    s.subscription = TEXT(subscription);
    s.subtype = (Pulsar__Proto__CommandSubscribe__SubType)type;
    s.consumer_id = id;
    s.request_id = 100 + id;
    s.consumer_name = TEXT("c");
    s.n_metadata = metadata ? 1 : 0;
    s.metadata = &metadata;
    s.n_subscription_properties = property ? 1 : 0;
    s.subscription_properties = &property;
    raw_put(r, &base);
}

static void share(uint64_t id, const char *subscription)
{
    put_subscribe(id, subscription, SHARED, NULL, NULL);
    raw_expect_success(r, 100 + id);
}

static void is_refused(uint64_t id, const char *subscription, int type, int code)
{
    put_subscribe(id, subscription, type, NULL, NULL);
    raw_expect_error(r, 100 + id, code);
}

static void publish_some(unsigned n)
{
    char text[16];

    raw_producer_ready(r, 500, TOPIC);
    for (unsigned i = 0; i < n; i++) {
        snprintf(text, sizeof(text), "m%u", i);
        raw_publish(r, 500, i, text);
    }
}

static const Pulsar__Proto__CommandConsumerStatsResponse *stats(uint64_t consumer)
{
    RAW(base, CONSUMER_STATS, consumerstats, CommandConsumerStats, COMMAND_CONSUMER_STATS, s);
    s.request_id = 77;
    s.consumer_id = consumer;
    raw_put(r, &base);
    const Pulsar__Proto__CommandConsumerStatsResponse *got =
        raw_expect(r, RAW_TYPE(CONSUMER_STATS_RESPONSE))->consumerstatsresponse;
    ck_assert_uint_eq(got->request_id, 77);
    return got;
}

static void says(const char *path, const char *text)
{
    char *answer = inn_get(inn, path);

    ck_assert_msg(strstr(answer, text), "no %s in %s", text, answer);
    mem_free(answer);
}

START_TEST(statistics_of_a_consumer)
{
    begin();
    ck_assert_int_eq(stats(1)->error_code, CONSUMER_NOT_FOUND);
    share(1, "s");
    publish_some(5);
    raw_flow(r, 1, 3);
    Pulsar__Proto__MessageIdData first = raw_message(r, "m0");
    raw_message(r, "m1");
    raw_message(r, "m2");
    raw_ack(r, 1, first, false);
    raw_flow(r, 1, 0);
    const Pulsar__Proto__CommandConsumerStatsResponse *got = stats(1);
    ck_assert(!got->has_error_code);
    ck_assert_str_eq(got->consumername, "c");
    ck_assert_str_eq(got->type, "Shared");
    ck_assert_uint_eq(got->availablepermits, 0);
    ck_assert_uint_eq(got->unackedmessages, 2);
    ck_assert_uint_eq(got->msgbacklog, 4);
    ck_assert(got->has_blockedconsumeronunackedmsgs && !got->blockedconsumeronunackedmsgs);
    ck_assert_int_eq(strncmp(got->address, "/127.0.0.1:", 11), 0);
    ck_assert_uint_eq(strlen(got->connectedsince), strlen("2026-07-29T08:00:00.123Z"));
    ck_assert(got->has_msgrateout && got->has_msgthroughputout && got->has_msgrateredeliver);
    ck_assert(got->has_msgrateexpired && got->has_messageackrate);
    raw_close_consumer(r, 1, 60);
    ck_assert_int_eq(stats(1)->error_code, CONSUMER_NOT_FOUND);
    finish();
}
END_TEST

START_TEST(rates_are_those_of_the_last_interval)
{
    begin_with("statsUpdateFrequencyInSecs=1");
    share(1, "s");
    raw_flow(r, 1, 1000);
    raw_producer_ready(r, 500, TOPIC);
    double out = 0, acked = 0;
    for (unsigned i = 0; (out == 0 || acked == 0) && i < 100000; i++) {
        raw_publish(r, 500, i, "m");
        raw_ack(r, 1, raw_message(r, "m"), false);
        raw_flow(r, 1, 1);
        const Pulsar__Proto__CommandConsumerStatsResponse *got = stats(1);
        out = got->msgrateout;
        acked = got->messageackrate;
    }
    ck_assert(out > 0 && acked > 0);
    finish();
}
END_TEST

START_TEST(who_is_inside_is_shown)
{
    begin();
    RAW(base, PRODUCER, producer, CommandProducer, COMMAND_PRODUCER, p);
    Pulsar__Proto__KeyValue *words = pair("where", "here");
    p.topic = TEXT(TOPIC);
    p.producer_id = 31;
    p.request_id = 1;
    p.producer_name = TEXT("pn");
    p.n_metadata = 1;
    p.metadata = &words;
    raw_put(r, &base);
    raw_expect(r, RAW_TYPE(PRODUCER_SUCCESS));
    put_subscribe(1, "s", EXCLUSIVE, pair("what", "this"), NULL);
    raw_expect_success(r, 101);
    raw_flow(r, 1, 100);
    raw_publish(r, 31, 0, "abc");
    Pulsar__Proto__MessageIdData id = raw_message(r, "abc");
    raw_ack(r, 1, id, false);
    static const char *const all[] = {"\"producerId\":31",
                                      "\"producerName\":\"pn\"",
                                      "\"accessMode\":\"Shared\"",
                                      "\"metadata\":{\"where\":\"here\"}",
                                      "\"consumerName\":\"c\"",
                                      "\"metadata\":{\"what\":\"this\"}",
                                      "\"availablePermits\":99",
                                      "\"avgMessagesPerEntry\":1",
                                      "\"activeConsumerName\":\"c\"",
                                      "\"address\":\"/127.0.0.1:",
                                      "\"clientVersion\":\"",
                                      "\"connectedSince\":\"2"};
    for (unsigned i = 0; i < sizeof(all) / sizeof(all[0]); i++)
        says(STATS, all[i]);
    char *text = inn_get(inn, STATS);
    ck_assert(!strstr(text, "\"lastAckedTimestamp\":0,"));
    ck_assert(!strstr(text, "\"lastConsumedTimestamp\":0,"));
    mem_free(text);
    finish();
}
END_TEST

START_TEST(metadata_has_a_limit)
{
    char *long_text = mem_alloc(64 * 1024 + 1);

    memset(long_text, 'x', 64 * 1024);
    begin();
    put_subscribe(1, "s", EXCLUSIVE, pair("k", long_text), NULL);
    raw_expect_error(r, 101, NOT_ALLOWED);
    put_subscribe(1, "s", EXCLUSIVE, NULL, pair("k", long_text));
    raw_expect_error(r, 101, NOT_ALLOWED);
    put_subscribe(1, "s", EXCLUSIVE, NULL, pair("#pulsar.internal.x", "1"));
    raw_expect_error(r, 101, NOT_ALLOWED);
    long_text[64 * 1024 - 1] = 0;
    put_subscribe(1, "s", EXCLUSIVE, pair("k", long_text), NULL);
    raw_expect_success(r, 101);
    mem_free(long_text);
    finish();
}
END_TEST

START_TEST(properties_of_a_subscription_are_those_of_its_first_consumer)
{
    begin();
    put_subscribe(1, "s", SHARED, NULL, pair("team", "red"));
    raw_expect_success(r, 101);
    put_subscribe(2, "s", SHARED, NULL, pair("team", "blue"));
    raw_expect_success(r, 102);
    says(STATS, "\"subscriptionProperties\":{\"team\":\"red\"}");
    raw_drop(&r);
    inn_stop_broker(inn);
    inn_start_broker(inn);
    says("/admin/v2/persistent/public/default/t/subscription/s/properties", "{\"team\":\"red\"}");
    finish();
}
END_TEST

START_TEST(a_limit_of_producers)
{
    begin_with(_i ? "maxSameAddressProducersPerTopic=1" : "maxProducersPerTopic=1");
    raw_producer_ready(r, 1, TOPIC);
    raw_producer(r, 2, 12, TOPIC, NULL);
    raw_expect_error(r, 12, PRODUCER_BUSY);
    raw_close_producer(r, 1, 13);
    raw_producer_ready(r, 2, TOPIC);
    finish();
}
END_TEST

START_TEST(a_limit_of_subscriptions)
{
    begin_with("maxSubscriptionsPerTopic=1");
    share(1, "s");
    is_refused(2, "another", SHARED, NOT_ALLOWED);
    share(3, "s");
    finish();
}
END_TEST

START_TEST(a_limit_of_consumers_from_one_place)
{
    begin_with("maxSameAddressConsumersPerTopic=2");
    share(1, "s");
    share(2, "another");
    is_refused(3, "s", SHARED, CONSUMER_BUSY);
    finish();
}
END_TEST

START_TEST(types_that_are_not_enabled)
{
    begin_with("subscriptionTypesEnabled=Shared,Failover");
    is_refused(1, "s", EXCLUSIVE, NOT_ALLOWED);
    share(1, "s");
    finish();
}
END_TEST

START_TEST(subscriptions_that_are_not_made_by_themselves)
{
    begin_with("allowAutoSubscriptionCreation=false");
    is_refused(1, "s", SHARED, SUBSCRIPTION_NOT_FOUND);
    finish();
}
END_TEST

int main(void)
{
    return suite_run("facts",
                     (suite_case[]){
                         SUITE_CASE(statistics_of_a_consumer),
                         SUITE_CASE(rates_are_those_of_the_last_interval),
                         SUITE_CASE(who_is_inside_is_shown),
                         SUITE_CASE(metadata_has_a_limit),
                         SUITE_CASE(properties_of_a_subscription_are_those_of_its_first_consumer),
                         SUITE_LOOP(a_limit_of_producers, 2),
                         SUITE_CASE(a_limit_of_subscriptions),
                         SUITE_CASE(a_limit_of_consumers_from_one_place),
                         SUITE_CASE(types_that_are_not_enabled),
                         SUITE_CASE(subscriptions_that_are_not_made_by_themselves),
                         {0},
                     });
}
