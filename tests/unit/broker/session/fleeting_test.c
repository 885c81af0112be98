/* Non-persistent topics over the wire: what is published goes to who is there, or nowhere. */
#include <stdio.h>
#include <string.h>

#include "common/loop.h"
#include "common/mem.h"
#include "tests/lib/suite.h"
#include "tests/unit/broker/session/scene.h"

#define T     "non-persistent://public/default/t"
#define STATS "/admin/v2/non-persistent/public/default/t/stats"

enum { NOT_ALLOWED = 22, TOPIC_NOT_FOUND = 11, PRODUCER_FENCED = 25 };

/* A consumer of its own connection, whose permits have arrived. */
static struct raw *consumer(const char *subscription, uint32_t permits)
{
    struct raw *k = another();

    raw_subscribed(k, 1, T, subscription);
    if (permits > 0)
        raw_flow(k, 1, permits);
    raw_expect_nothing(k);
    return k;
}

static void receipt_at(uint64_t sequence, int64_t id)
{
    const raw_command *c = raw_expect(r, RAW_TYPE(SEND_RECEIPT));

    ck_assert_uint_eq(c->send_receipt->sequence_id, sequence);
    ck_assert_uint_eq(c->send_receipt->message_id->ledgerid, (uint64_t)id);
    ck_assert_uint_eq(c->send_receipt->message_id->entryid, (uint64_t)id);
}

/* The n-th number under that key. */
static long long figure(const char *key, unsigned nth)
{
    char *all = inn_get(inn, STATS), word[64];
    long long n = -1;

    snprintf(word, sizeof(word), "\"%s\":", key);
    const char *at = all;
    for (unsigned i = 0; at && i <= nth; i++)
        at = strstr(at + (i > 0), word);
    if (at)
        sscanf(at + strlen(word), "%lld", &n);
    mem_free(all);
    return n;
}

START_TEST(each_subscription_gets_it_at_once)
{
    begin();
    raw_producer_ready(r, 1, T);
    raw_publish(r, 1, 0, "before anybody");
    struct raw *a = consumer("a", 10), *b = consumer("b", 10);
    for (uint64_t i = 1; i <= 3; i++) {
        char text[16];
        snprintf(text, sizeof(text), "m%llu", (unsigned long long)i);
        raw_send(r, 1, i, text);
        receipt_at(i, 0);
        Pulsar__Proto__MessageIdData id = raw_message(a, text);
        ck_assert_uint_eq(id.ledgerid, 0);
        raw_message(b, text);
        raw_ack(a, 1, id, false); /* is answered, whatever it means */
    }
    raw_expect_nothing(a);
    raw_drop(&a);
    raw_drop(&b);
    finish();
}
END_TEST

/* All of them in one frame's time, so that they are delivered together. */
START_TEST(many_at_once_come_in_order)
{
    enum { N = 300 };
    char text[16];

    begin();
    raw_producer_ready(r, 1, T);
    struct raw *k = consumer("s", N);
    for (uint64_t i = 0; i < N; i++) {
        snprintf(text, sizeof(text), "m%u", (unsigned)i);
        raw_send(r, 1, i, text);
    }
    for (uint64_t i = 0; i < N; i++) {
        snprintf(text, sizeof(text), "m%u", (unsigned)i);
        raw_message(k, text);
    }
    for (uint64_t i = 0; i < N; i++)
        receipt_at(i, 0);
    raw_drop(&k);
    finish();
}
END_TEST

START_TEST(without_permits_it_is_dropped_and_counted)
{
    begin();
    raw_producer_ready(r, 1, T);
    struct raw *k = consumer("s", 2);
    for (uint64_t i = 0; i < 5; i++)
        raw_publish(r, 1, i, "m");
    raw_message(k, "m");
    raw_message(k, "m");
    raw_expect_nothing(k);
    ck_assert_int_eq(figure("msgDropCounter", 0), 0); /* of the publisher */
    ck_assert_int_eq(figure("msgDropCounter", 1), 3); /* of the subscription */
    ck_assert_int_eq(figure("msgDropCounter", 2), 3); /* of the topic */
    ck_assert_int_eq(figure("msgInCounter", 0), 5);
    raw_flow(k, 1, 1);
    raw_expect_nothing(k);
    raw_publish(r, 1, 5, "now");
    raw_message(k, "now");
    raw_drop(&k);
    finish();
}
END_TEST

START_TEST(too_many_at_a_time_are_dropped_before)
{
    begin_with("maxConcurrentNonPersistentMessagePerConnection=0");
    raw_producer_ready(r, 1, T);
    struct raw *k = consumer("s", 10);
    for (uint64_t i = 0; i < 3; i++) {
        raw_send(r, 1, i, "m");
        receipt_at(i, -1);
    }
    raw_expect_nothing(k);
    ck_assert_int_eq(figure("msgDropCounter", 0), 3);
    ck_assert_int_eq(figure("msgInCounter", 0), 0);
    raw_drop(&k);
    finish();
}
END_TEST

START_TEST(an_absent_place_has_no_last_message)
{
    begin();
    struct raw *k = consumer("s", 0);
    RAW(base, GET_LAST_MESSAGE_ID, getlastmessageid, CommandGetLastMessageId,
        COMMAND_GET_LAST_MESSAGE_ID, g);
    g.consumer_id = 1;
    g.request_id = 9;
    raw_put(k, &base);
    raw_expect_error(k, 9, NOT_ALLOWED);
    raw_drop(&k);
    finish();
}
END_TEST

START_TEST(unsubscribing_forgets_it)
{
    begin();
    raw_producer_ready(r, 1, T);
    struct raw *k = consumer("s", 5), *other = consumer("other", 5);
    RAW(base, UNSUBSCRIBE, unsubscribe, CommandUnsubscribe, COMMAND_UNSUBSCRIBE, u);
    u.consumer_id = 1;
    u.request_id = 7;
    raw_put(k, &base);
    raw_expect_success(k, 7);
    raw_publish(r, 1, 0, "m");
    raw_message(other, "m");
    raw_expect_nothing(k);
    char *names = inn_get(inn, "/admin/v2/non-persistent/public/default/t/subscriptions");
    ck_assert_ptr_nonnull(strstr(names, "[\"other\"]"));
    mem_free(names);
    raw_drop(&k);
    raw_drop(&other);
    finish();
}
END_TEST

START_TEST(a_compacted_form_is_refused)
{
    begin();
    RAW(base, SUBSCRIBE, subscribe, CommandSubscribe, COMMAND_SUBSCRIBE, s);
    s.topic = (char *)(uintptr_t)T;
    s.subscription = (char *)(uintptr_t) "s";
    s.request_id = 3;
    s.has_read_compacted = true;
    s.read_compacted = true;
    raw_put(r, &base);
    raw_expect_error(r, 3, NOT_ALLOWED);
    finish();
}
END_TEST

START_TEST(exclusive_producers_have_it_alone)
{
    begin();
    for (uint64_t i = 1; i <= 2; i++) {
        RAW(base, PRODUCER, producer, CommandProducer, COMMAND_PRODUCER, p);
        p.topic = (char *)(uintptr_t)T;
        p.producer_id = p.request_id = i;
        p.has_producer_access_mode = true;
        p.producer_access_mode = PULSAR__PROTO__PRODUCER_ACCESS_MODE__Exclusive;
        raw_put(r, &base);
        if (i == 1)
            ck_assert_uint_eq(
                raw_expect(r, RAW_TYPE(PRODUCER_SUCCESS))->producer_success->topic_epoch, 0);
        else
            raw_expect_error(r, i, PRODUCER_FENCED);
    }
    finish();
}
END_TEST

START_TEST(it_may_be_switched_off)
{
    begin_with("enableNonPersistentTopics=false");
    raw_producer(r, 1, 4, T, NULL);
    raw_expect_error(r, 4, NOT_ALLOWED);
    raw_producer_ready(r, 2, "persistent://public/default/t");
    finish();
}
END_TEST

START_TEST(it_is_made_as_the_rules_say)
{
    begin_with("allowAutoTopicCreation=false");
    raw_producer(r, 1, 4, T, NULL);
    raw_expect_error(r, 4, TOPIC_NOT_FOUND);
    finish();
}
END_TEST

START_TEST(nobody_leaves_it_forgotten)
{
    begin_with("statsUpdateFrequencyInSecs=1");
    raw_producer_ready(r, 1, T);
    ck_assert_int_eq(inn_metric(inn, "pulsar_broker_topics_count"), 1);
    raw_close_producer(r, 1, 8);
    while (inn_metric(inn, "pulsar_broker_topics_count") > 0)
        raw_expect_nothing(r);
    raw_producer_ready(r, 2, T);
    finish();
}
END_TEST

/* It takes a few megabytes on its way; the rest is dropped, and each is counted. */
START_TEST(who_does_not_read_costs_no_memory)
{
    enum { N = 600, SIZE = 100 * 1024 };
    char *text = mem_alloc(SIZE + 1);
    long long got = 0;

    memset(text, 'x', SIZE);
    begin();
    raw_producer_ready(r, 1, T);
    struct raw *k = consumer("s", 100000);
    for (uint64_t i = 0; i < N; i++)
        raw_publish(r, 1, i, text);
    const long long dropped = figure("msgDropCounter", 2);
    ck_assert_int_gt(dropped, N / 2);
    for (; got < N - dropped; got++)
        raw_message(k, text);
    raw_expect_nothing(k);
    ck_assert_int_eq(figure("msgOutCounter", 0), got);
    raw_publish(r, 1, N, "again");
    raw_message(k, "again");
    raw_drop(&k);
    finish();
    mem_free(text);
}
END_TEST

int main(void)
{
    return suite_run("fleeting", (suite_case[]){
                                     SUITE_CASE(each_subscription_gets_it_at_once),
                                     SUITE_CASE(many_at_once_come_in_order),
                                     SUITE_CASE(without_permits_it_is_dropped_and_counted),
                                     SUITE_CASE(too_many_at_a_time_are_dropped_before),
                                     SUITE_CASE(an_absent_place_has_no_last_message),
                                     SUITE_CASE(unsubscribing_forgets_it),
                                     SUITE_CASE(a_compacted_form_is_refused),
                                     SUITE_CASE(exclusive_producers_have_it_alone),
                                     SUITE_CASE(it_may_be_switched_off),
                                     SUITE_CASE(it_is_made_as_the_rules_say),
                                     SUITE_CASE(nobody_leaves_it_forgotten),
                                     SUITE_CASE(who_does_not_read_costs_no_memory),
                                     {0},
                                 });
}
