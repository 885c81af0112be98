/* Producers as their clients see them.  Raw frames over a socket, in front of a
 * real bookie. */
#include <stdio.h>
#include <string.h>

#include "common/mem.h"
#include "proto/message.h"
#include "tests/lib/suite.h"
#include "tests/unit/broker/session/scene.h"

#define TOPIC "persistent://public/default/t"

/* ---- producing ---- */

START_TEST(receipts_come_in_order)
{
    char text[16];

    begin_with("maxPendingPublishRequestsPerConnection=2"); /* the rest is held back */
    raw_producer_ready(r, 7, TOPIC);
    ck_assert_int_eq(strncmp(r->got->producer_success->producer_name, "test-", 5), 0);
    ck_assert_int_eq(r->got->producer_success->last_sequence_id, -1);
    for (uint64_t i = 0; i < 300; i++) {
        snprintf(text, sizeof(text), "m%u", (unsigned)i);
        raw_send(r, 7, i, text);
    }
    for (uint64_t i = 0; i < 300; i++)
        raw_receipt(r, 7, i);
    raw_close_producer(r, 7, 8);
    ck_assert_int_eq(inn_metric(inn, "pulsar_broker_producers_count"), 0);
    ck_assert_int_eq(inn_metric(inn, "pulsar_in_messages_total"), 300);
    finish();
}
END_TEST

START_TEST(a_wrong_checksum_is_refused_in_its_turn)
{
    begin();
    raw_producer_ready(r, 1, TOPIC);
    raw_send(r, 1, 0, "fine");
    RAW(base, SEND, send, CommandSend, COMMAND_SEND, s);
    s.producer_id = 1;
    s.sequence_id = 1;
    struct slice body = raw_body("spoilt", 1, 0);
    ((uint8_t *)(uintptr_t)body.base)[body.len - 1] ^= 1;
    raw_put_body(r, &base, body);
    raw_send(r, 1, 2, "fine again");
    raw_receipt(r, 1, 0);
    const raw_command *c = raw_expect(r, RAW_TYPE(SEND_ERROR));
    ck_assert_uint_eq(c->send_error->sequence_id, 1);
    ck_assert_int_eq((int)c->send_error->error, 9);
    raw_receipt(r, 1, 2);
    finish();
}
END_TEST

START_TEST(a_missing_checksum_is_made)
{
    begin();
    raw_producer_ready(r, 1, TOPIC);
    RAW(base, SEND, send, CommandSend, COMMAND_SEND, s);
    s.producer_id = 1;
    struct slice body = raw_body("bare", 0, 0);
    raw_put_body(r, &base, slice_part(body, FRAME_MAGIC_SIZE, body.len - FRAME_MAGIC_SIZE));
    slice_drop(&body);
    raw_receipt(r, 1, 0);
    raw_subscribed(r, 1, TOPIC, "s");
    raw_flow(r, 1, 10);
    raw_message(r, "bare");
    finish();
}
END_TEST

START_TEST(a_send_for_nobody_closes)
{
    begin();
    raw_send(r, 99, 0, "x");
    raw_expect_closed(r);
    finish();
}
END_TEST

START_TEST(a_send_with_broken_metadata_closes)
{
    static const uint8_t body[] = {0, 0, 0, 2, 0xff, 0xff, 'x'};

    begin();
    raw_producer_ready(r, 1, TOPIC);
    RAW(base, SEND, send, CommandSend, COMMAND_SEND, s);
    s.producer_id = 1;
    raw_put_body(r, &base, slice_copy(body, sizeof(body)));
    raw_expect_closed(r);
    finish();
}
END_TEST

START_TEST(producers_that_are_not_there_yet)
{
    begin();
    RAW(base, PRODUCER, producer, CommandProducer, COMMAND_PRODUCER, p);
    p.topic = (char *)(uintptr_t)TOPIC;
    Pulsar__Proto__Schema schema = PULSAR__PROTO__SCHEMA__INIT;
    schema.name = (char *)(uintptr_t) "s";
    schema.type = PULSAR__PROTO__SCHEMA__TYPE__Avro;
    p.schema = &schema;
    p.request_id = 2;
    raw_put(r, &base);
    raw_expect_error(r, 2, 22);
    schema.type = PULSAR__PROTO__SCHEMA__TYPE__String;
    p.request_id = 3;
    raw_put(r, &base);
    raw_expect(r, RAW_TYPE(PRODUCER_SUCCESS));
    finish();
}
END_TEST

START_TEST(creating_a_producer_twice_is_one)
{
    begin();
    raw_producer_ready(r, 1, TOPIC);
    char *name = mem_string(r->got->producer_success->producer_name);
    raw_producer(r, 1, 5, TOPIC, name);
    const raw_command *c = raw_expect(r, RAW_TYPE(PRODUCER_SUCCESS));
    ck_assert_str_eq(c->producer_success->producer_name, name);
    mem_free(name);
    ck_assert_int_eq(inn_metric(inn, "pulsar_broker_producers_count"), 1);
    finish();
}
END_TEST

START_TEST(a_name_is_taken_while_its_connection_lives)
{
    begin_with("connectionLivenessCheckTimeoutMillis=300");
    raw_producer(r, 1, 1, TOPIC, "me");
    raw_expect(r, RAW_TYPE(PRODUCER_SUCCESS));
    struct raw *n = another();
    raw_producer(n, 1, 1, TOPIC, "me");
    r->silent = true;
    raw_expect(r, RAW_TYPE(PING)); /* are you there? */
    raw_expect_nothing(r);
    raw_expect_error(n, 1, 16);
    raw_close_producer(r, 1, 2);
    raw_producer(n, 1, 2, TOPIC, "me");
    raw_expect(n, RAW_TYPE(PRODUCER_SUCCESS));
    raw_drop(&n);
    finish();
}
END_TEST

START_TEST(a_name_is_free_when_its_connection_is_dead)
{
    begin_with("connectionLivenessCheckTimeoutMillis=300");
    raw_producer(r, 1, 1, TOPIC, "me");
    raw_expect(r, RAW_TYPE(PRODUCER_SUCCESS));
    struct raw *n = another();
    raw_producer(n, 1, 1, TOPIC, "me");
    raw_expect(n, RAW_TYPE(PRODUCER_SUCCESS));
    raw_expect_closed(r);
    raw_drop(&n);
    finish();
}
END_TEST

START_TEST(publishes_wait_for_a_bookie_without_an_error)
{
    begin();
    raw_producer_ready(r, 1, TOPIC);
    raw_publish(r, 1, 0, "before");
    inn_stop_bookie(inn);
    for (uint64_t i = 1; i < 20; i++)
        raw_send(r, 1, i, "meanwhile");
    raw_expect_nothing(r);
    inn_start_bookie(inn);
    for (uint64_t i = 1; i < 20; i++)
        raw_receipt(r, 1, i);
    finish();
}
END_TEST

/* A second broker over the same metadata thinks that it owns the topic too: it fences the first
 * one's ledger, and the first lets everyone go.  Coming back, they fence the second. */
START_TEST(a_fenced_topic_lets_its_clients_go_and_is_loaded_anew)
{
    struct broker *other;

    begin();
    raw_producer_ready(r, 1, TOPIC);
    raw_subscribed(r, 2, TOPIC, "s");
    raw_flow(r, 2, 100);
    raw_publish(r, 1, 0, "one");
    raw_message(r, "one");
    ck_assert_int_eq(broker_start(&other, &inn->conf, inn->meta, &inn->loops), ERR_OK);
    struct raw *n = raw_connect(broker_port(other));
    raw_producer_ready(n, 1, TOPIC);
    raw_publish(n, 1, 0, "two");
    raw_send(r, 1, 1, "lost on the way, and sent again");
    bool producer = false, consumer = false;
    while (!producer || !consumer) {
        const raw_command *c = raw_get(r);
        producer |= c->type == RAW_TYPE(CLOSE_PRODUCER);
        consumer |= c->type == RAW_TYPE(CLOSE_CONSUMER);
        ck_assert(c->type == RAW_TYPE(CLOSE_PRODUCER) || c->type == RAW_TYPE(CLOSE_CONSUMER));
    }
    raw_send(r, 1, 2, "was under way when the producer was closed: ignored");
    raw_producer_ready(r, 1, TOPIC);
    raw_publish(r, 1, 1, "three");
    raw_subscribed(r, 2, TOPIC, "s");
    raw_flow(r, 2, 100);
    raw_message(r, "one");
    raw_message(r, "two");
    raw_message(r, "three");
    raw_drop(&n);
    broker_stop(&other);
    finish();
}
END_TEST

START_TEST(a_stop_does_not_wait_for_missing_bookies)
{
    begin();
    raw_producer_ready(r, 1, TOPIC);
    raw_publish(r, 1, 0, "before");
    inn_stop_bookie(inn);
    for (uint64_t i = 1; i < 20; i++)
        raw_send(r, 1, i, "meanwhile");
    raw_expect_nothing(r);
    inn_stop_broker(inn);
    raw_expect(r, RAW_TYPE(CLOSE_PRODUCER));
    raw_expect_closed(r);
    finish();
}
END_TEST

int main(void)
{
    return suite_run("producing",
                     (suite_case[]){
                         SUITE_CASE(receipts_come_in_order),
                         SUITE_CASE(a_wrong_checksum_is_refused_in_its_turn),
                         SUITE_CASE(a_missing_checksum_is_made),
                         SUITE_CASE(a_send_for_nobody_closes),
                         SUITE_CASE(a_send_with_broken_metadata_closes),
                         SUITE_CASE(producers_that_are_not_there_yet),
                         SUITE_CASE(creating_a_producer_twice_is_one),
                         SUITE_CASE(a_name_is_taken_while_its_connection_lives),
                         SUITE_CASE(a_name_is_free_when_its_connection_is_dead),
                         SUITE_CASE(publishes_wait_for_a_bookie_without_an_error),
                         SUITE_CASE(a_fenced_topic_lets_its_clients_go_and_is_loaded_anew),
                         SUITE_CASE(a_stop_does_not_wait_for_missing_bookies),
                         {0},
                     });
}
