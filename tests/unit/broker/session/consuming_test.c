/* Consumers as their clients see them.  Raw frames over a socket, in front of a
 * real bookie. */
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "common/loop.h"
#include "common/mem.h"
#include "proto/message.h"
#include "tests/lib/suite.h"
#include "tests/unit/broker/session/scene.h"

#define TOPIC "persistent://public/default/t"

/* ---- consuming ---- */

static void publish_some(const char *topic, unsigned n)
{
    char text[16];

    raw_producer_ready(r, 500, topic);
    for (unsigned i = 0; i < n; i++) {
        snprintf(text, sizeof(text), "m%u", i);
        raw_publish(r, 500, i, text);
    }
    raw_close_producer(r, 500, 501);
}

static Pulsar__Proto__MessageIdData expect_some(unsigned from, unsigned to)
{
    Pulsar__Proto__MessageIdData id = PULSAR__PROTO__MESSAGE_ID_DATA__INIT;
    char text[16];

    for (unsigned i = from; i < to; i++) {
        snprintf(text, sizeof(text), "m%u", i);
        id = raw_message(r, text);
    }
    return id;
}

START_TEST(as_many_as_permitted_and_no_more)
{
    begin();
    publish_some(TOPIC, 10);
    raw_subscribed(r, 1, TOPIC, "s");
    raw_expect_nothing(r);
    raw_flow(r, 1, 3);
    expect_some(0, 3);
    usleep(50000);
    raw_expect_nothing(r);
    raw_flow(r, 1, 100);
    expect_some(3, 10);
    raw_expect_nothing(r);
    finish();
}
END_TEST

START_TEST(new_messages_come_by_themselves)
{
    begin();
    raw_subscribed(r, 1, TOPIC, "s");
    raw_flow(r, 1, 100);
    struct raw *n = another();
    raw_producer_ready(n, 1, TOPIC);
    for (uint64_t i = 0; i < 50; i++) {
        raw_publish(n, 1, i, "tail");
        raw_message(r, "tail");
    }
    raw_drop(&n);
    finish();
}
END_TEST

START_TEST(what_is_acknowledged_does_not_come_again)
{
    begin();
    publish_some(TOPIC, 10);
    raw_subscribed(r, 1, TOPIC, "s");
    raw_flow(r, 1, 100);
    Pulsar__Proto__MessageIdData first = expect_some(0, 4);
    Pulsar__Proto__MessageIdData hole = expect_some(4, 6);
    expect_some(6, 10);
    raw_ack(r, 1, first, true);
    raw_ack(r, 1, hole, false);
    raw_close_consumer(r, 1, 5);
    raw_subscribed(r, 2, TOPIC, "s");
    raw_flow(r, 2, 100);
    expect_some(4, 5);
    expect_some(6, 10);
    raw_expect_nothing(r);
    finish();
}
END_TEST

START_TEST(an_ack_of_no_known_type_does_nothing)
{
    begin();
    publish_some(TOPIC, 1);
    raw_subscribed(r, 1, TOPIC, "s");
    raw_flow(r, 1, 100);
    Pulsar__Proto__MessageIdData id = expect_some(0, 1), *ids[] = {&id};
    RAW(base, ACK, ack, CommandAck, COMMAND_ACK, ack);
    ack.consumer_id = 1;
    ack.ack_type = (Pulsar__Proto__CommandAck__AckType)7;
    ack.n_message_id = 1;
    ack.message_id = ids;
    raw_put(r, &base);
    raw_expect_nothing(r);
    ack.has_request_id = true;
    ack.request_id = 9;
    raw_put(r, &base);
    raw_expect(r, RAW_TYPE(ACK_RESPONSE));
    ck_assert_uint_eq(r->got->ackresponse->request_id, 9);
    ck_assert_int_eq(r->got->ackresponse->error, 22);
    raw_close_consumer(r, 1, 5);
    raw_subscribed(r, 1, TOPIC, "s");
    raw_flow(r, 1, 100);
    expect_some(0, 1);
    finish();
}
END_TEST

START_TEST(acknowledged_stays_acknowledged_over_a_restart_of_the_broker)
{
    begin();
    publish_some(TOPIC, 6);
    raw_subscribed(r, 1, TOPIC, "s");
    raw_flow(r, 1, 100);
    Pulsar__Proto__MessageIdData first = expect_some(0, 3);
    expect_some(3, 6);
    raw_ack(r, 1, first, true);
    raw_drop(&r);
    inn_stop_broker(inn);
    inn_start_broker(inn);
    r = another();
    raw_subscribed(r, 1, TOPIC, "s");
    raw_flow(r, 1, 100);
    expect_some(3, 6);
    raw_expect_nothing(r);
    finish();
}
END_TEST

START_TEST(a_partial_batch_is_not_acknowledged)
{
    int64_t left[] = {1};

    begin();
    publish_some(TOPIC, 2);
    raw_subscribed(r, 1, TOPIC, "s");
    raw_flow(r, 1, 100);
    Pulsar__Proto__MessageIdData id = expect_some(0, 1);
    expect_some(1, 2);
    id.n_ack_set = 1;
    id.ack_set = left;
    raw_ack(r, 1, id, false);
    raw_close_consumer(r, 1, 5);
    raw_subscribed(r, 1, TOPIC, "s");
    raw_flow(r, 1, 100);
    id = expect_some(0, 1);
    expect_some(1, 2);
    left[0] = 0;
    id.n_ack_set = 1;
    id.ack_set = left;
    raw_ack(r, 1, id, false);
    raw_close_consumer(r, 1, 5);
    raw_subscribed(r, 1, TOPIC, "s");
    raw_flow(r, 1, 100);
    expect_some(1, 2);
    raw_expect_nothing(r);
    finish();
}
END_TEST

START_TEST(redelivery_begins_at_the_first_not_acknowledged)
{
    begin();
    publish_some(TOPIC, 5);
    raw_subscribed(r, 1, TOPIC, "s");
    raw_flow(r, 1, 100);
    Pulsar__Proto__MessageIdData first = expect_some(0, 2);
    expect_some(2, 5);
    raw_ack(r, 1, first, true);
    RAW(base, REDELIVER_UNACKNOWLEDGED_MESSAGES, redeliverunacknowledgedmessages,
        CommandRedeliverUnacknowledgedMessages, COMMAND_REDELIVER_UNACKNOWLEDGED_MESSAGES, again);
    again.consumer_id = 1;
    again.has_consumer_epoch = true;
    again.consumer_epoch = 3;
    raw_put(r, &base);
    expect_some(2, 5);
    ck_assert(r->got->message->has_consumer_epoch);
    ck_assert_uint_eq(r->got->message->consumer_epoch, 3);
    raw_expect_nothing(r);
    finish();
}
END_TEST

START_TEST(markers_are_passed_over)
{
    Pulsar__Proto__MessageMetadata m = PULSAR__PROTO__MESSAGE_METADATA__INIT;

    begin();
    raw_producer_ready(r, 1, TOPIC);
    RAW(base, SEND, send, CommandSend, COMMAND_SEND, s);
    s.producer_id = 1;
    m.producer_name = (char *)(uintptr_t) "pulsar.marker";
    m.has_marker_type = true;
    m.marker_type = 10;
    raw_put_body(r, &base, message_body(&m, view_of("marker", 6)));
    raw_receipt(r, 1, 0);
    raw_publish(r, 1, 1, "message");
    raw_subscribed(r, 1, TOPIC, "s");
    raw_flow(r, 1, 1);
    raw_ack(r, 1, raw_message(r, "message"), false);
    raw_expect_nothing(r);
    finish();
}
END_TEST

START_TEST(one_consumer_at_a_time)
{
    begin_with("connectionLivenessCheckTimeoutMillis=300");
    publish_some(TOPIC, 3);
    raw_subscribed(r, 1, TOPIC, "s");
    struct raw *n = another();
    raw_subscribe(n, 1, 1, TOPIC, "s");
    r->silent = true;
    raw_expect(r, RAW_TYPE(PING));
    raw_expect_nothing(r);
    raw_expect_error(n, 1, 5);
    raw_subscribe(n, 1, 2, TOPIC, "s"); /* and now it does not answer */
    raw_expect_success(n, 2);
    raw_expect_closed(r);
    raw_drop(&r);
    r = n;
    raw_flow(r, 1, 10);
    expect_some(0, 3);
    finish();
}
END_TEST

START_TEST(subscriptions_that_are_refused)
{
    begin();
    raw_subscribe(r, 1, 1, TOPIC, "");
    raw_expect_error(r, 1, 16);
    raw_subscribe(r, 1, 2, TOPIC, "pulsar.repl.x");
    raw_expect_error(r, 2, 22);
    raw_subscribe(r, 1, 3, TOPIC, "pulsar.dedup");
    raw_expect_error(r, 3, 22);
    raw_subscribe(r, 1, 4, "persistent://nobody/nowhere/t", "s");
    raw_expect_error(r, 4, 11);
    RAW(base, SUBSCRIBE, subscribe, CommandSubscribe, COMMAND_SUBSCRIBE, s);
    s.topic = (char *)(uintptr_t)TOPIC;
    s.subscription = (char *)(uintptr_t) "s";
    s.request_id = 5;
    for (int type = 2; type < 6; type++) {
        s.subtype = (Pulsar__Proto__CommandSubscribe__SubType)type;
        raw_put(r, &base);
        raw_expect_error(r, 5, 22);
    }
    finish();
}
END_TEST

START_TEST(after_unsubscribe_it_begins_anew)
{
    begin();
    publish_some(TOPIC, 3);
    raw_subscribed(r, 1, TOPIC, "s");
    raw_flow(r, 1, 100);
    raw_ack(r, 1, expect_some(0, 3), true);
    RAW(base, UNSUBSCRIBE, unsubscribe, CommandUnsubscribe, COMMAND_UNSUBSCRIBE, u);
    u.consumer_id = 1;
    u.request_id = 30;
    raw_put(r, &base);
    raw_expect_success(r, 30);
    raw_flow(r, 1, 100); /* both late: they mean nothing */
    raw_close_consumer(r, 1, 31);
    raw_subscribed(r, 1, TOPIC, "s");
    raw_flow(r, 1, 100);
    expect_some(0, 3);
    finish();
}
END_TEST

static const raw_command *ask_last_id(void)
{
    RAW(base, GET_LAST_MESSAGE_ID, getlastmessageid, CommandGetLastMessageId,
        COMMAND_GET_LAST_MESSAGE_ID, g);
    g.consumer_id = 1;
    g.request_id = 40;
    raw_put(r, &base);
    return raw_expect(r, RAW_TYPE(GET_LAST_MESSAGE_ID_RESPONSE));
}

START_TEST(the_last_message_id)
{
    begin();
    raw_subscribed(r, 1, TOPIC, "s");
    const raw_command *c = ask_last_id();
    ck_assert_uint_eq(c->getlastmessageidresponse->last_message_id->ledgerid, UINT64_MAX);
    ck_assert_uint_eq(c->getlastmessageidresponse->last_message_id->entryid, UINT64_MAX);
    ck_assert_ptr_nonnull(c->getlastmessageidresponse->consumer_mark_delete_position);
    publish_some(TOPIC, 2);
    c = ask_last_id();
    ck_assert_uint_eq(c->getlastmessageidresponse->last_message_id->entryid, 1);
    ck_assert_int_eq(c->getlastmessageidresponse->last_message_id->batch_index, -1);
    raw_producer_ready(r, 1, TOPIC);
    RAW(base, SEND, send, CommandSend, COMMAND_SEND, s);
    s.producer_id = 1;
    s.has_num_messages = true;
    s.num_messages = 5;
    raw_put_body(r, &base, raw_body("batch", 0, 5));
    raw_receipt(r, 1, 0);
    c = ask_last_id();
    ck_assert_int_eq(c->getlastmessageidresponse->last_message_id->batch_index, 4);
    finish();
}
END_TEST

START_TEST(what_comes_late_means_nothing)
{
    Pulsar__Proto__MessageIdData id = PULSAR__PROTO__MESSAGE_ID_DATA__INIT;
    Pulsar__Proto__MessageIdData *ids[] = {&id};

    begin();
    raw_flow(r, 9, 100);
    RAW(ack, ACK, ack, CommandAck, COMMAND_ACK, a);
    a.consumer_id = 9;
    a.n_message_id = 1;
    a.message_id = ids;
    raw_put(r, &ack);
    RAW(again, REDELIVER_UNACKNOWLEDGED_MESSAGES, redeliverunacknowledgedmessages,
        CommandRedeliverUnacknowledgedMessages, COMMAND_REDELIVER_UNACKNOWLEDGED_MESSAGES, rd);
    rd.consumer_id = 9;
    raw_put(r, &again);
    raw_expect_nothing(r);
    raw_close_consumer(r, 9, 1);
    raw_close_producer(r, 9, 2);
    a.has_request_id = true; /* but who waits is answered */
    a.request_id = 3;
    raw_put(r, &ack);
    const raw_command *c = raw_expect(r, RAW_TYPE(ACK_RESPONSE));
    ck_assert_uint_eq(c->ackresponse->request_id, 3);
    ck_assert_int_eq((int)c->ackresponse->error, 13);
    finish();
}
END_TEST

START_TEST(acknowledging_the_future_is_harmless)
{
    Pulsar__Proto__MessageIdData id = PULSAR__PROTO__MESSAGE_ID_DATA__INIT;

    begin();
    publish_some(TOPIC, 2);
    raw_subscribed(r, 1, TOPIC, "s");
    id.ledgerid = INT64_MAX;
    id.entryid = INT64_MAX;
    raw_ack(r, 1, id, true);
    id.ledgerid = UINT64_MAX;
    raw_ack(r, 1, id, false);
    publish_some(TOPIC, 1);
    raw_flow(r, 1, 100);
    raw_message(r, "m0");
    raw_expect_nothing(r);
    finish();
}
END_TEST

START_TEST(a_part_of_no_entry_acknowledges_nothing)
{
    int64_t part = 1;

    begin();
    publish_some(TOPIC, 1);
    raw_subscribed(r, 1, TOPIC, "s");
    raw_flow(r, 1, 100);
    Pulsar__Proto__MessageIdData id = raw_message(r, "m0");
    id.entryid = (uint64_t)INT64_MIN;
    id.n_ack_set = 1;
    id.ack_set = &part;
    raw_ack(r, 1, id, true);
    raw_close_consumer(r, 1, 5);
    raw_subscribed(r, 1, TOPIC, "s");
    raw_flow(r, 1, 100);
    raw_message(r, "m0");
    finish();
}
END_TEST

static const char *const budgets[] = {NULL, "managedLedgerMaxReadsInFlightSizeInMB=1"};

START_TEST(who_does_not_read_is_not_sent_more)
{
    enum { N = 100, SIZE = 512 * 1024 };
    char *text = mem_alloc(SIZE + 1);

    memset(text, 'x', SIZE);
    begin_with(budgets[_i]);
    raw_producer_ready(r, 1, TOPIC);
    for (unsigned i = 0; i < N; i++)
        raw_publish(r, 1, i, text);
    struct raw *n = another();
    raw_subscribed(n, 1, TOPIC, "s");
    raw_flow(n, 1, 1000);
    long long sent = 0;
    for (long long before = -1; sent != before || sent == 0; usleep(100000)) {
        before = sent;
        sent = inn_metric(inn, "pulsar_out_bytes_total");
    }
    ck_assert_int_lt(sent, N / 2 * SIZE);
    for (unsigned i = 0; i < N; i++)
        raw_message(n, text);
    raw_drop(&n);
    mem_free(text);
    finish();
}
END_TEST

/* Its topic, which waits for what it has, can be unloaded meanwhile. */
START_TEST(who_does_not_read_can_still_be_closed)
{
    enum { N = 40, SIZE = 512 * 1024, LITTLE = 4096 };
    char *text = mem_alloc(SIZE + 1);
    const int little = LITTLE;

    memset(text, 'x', SIZE);
    begin();
    raw_producer_ready(r, 1, TOPIC);
    for (unsigned i = 0; i < N; i++)
        raw_publish(r, 1, i, text);
    struct raw *n = another();
    ck_assert_int_eq(setsockopt(n->fd, SOL_SOCKET, SO_RCVBUF, &little, sizeof(little)), 0);
    raw_subscribed(n, 1, TOPIC, "s");
    raw_flow(n, 1, 1000);
    while (inn_metric(inn, "lgm_dispatching_bytes") == 0)
        usleep(10000);
    RAW(close, CLOSE_CONSUMER, close_consumer, CommandCloseConsumer, COMMAND_CLOSE_CONSUMER, c);
    c.consumer_id = 1;
    c.request_id = 5;
    raw_put(n, &close);
    for (const uint64_t began = loop_clock(); inn_metric(inn, "lgm_dispatching_bytes") > 0;) {
        ck_assert_uint_lt(loop_clock() - began, 10000000);
        usleep(10000);
    }
    raw_drop(&n);
    mem_free(text);
    finish();
}
END_TEST

int main(void)
{
    return suite_run("consuming",
                     (suite_case[]){
                         SUITE_CASE(as_many_as_permitted_and_no_more),
                         SUITE_CASE(new_messages_come_by_themselves),
                         SUITE_CASE(what_is_acknowledged_does_not_come_again),
                         SUITE_CASE(an_ack_of_no_known_type_does_nothing),
                         SUITE_CASE(acknowledged_stays_acknowledged_over_a_restart_of_the_broker),
                         SUITE_CASE(a_partial_batch_is_not_acknowledged),
                         SUITE_CASE(redelivery_begins_at_the_first_not_acknowledged),
                         SUITE_CASE(markers_are_passed_over),
                         SUITE_CASE(one_consumer_at_a_time),
                         SUITE_CASE(subscriptions_that_are_refused),
                         SUITE_CASE(after_unsubscribe_it_begins_anew),
                         SUITE_CASE(the_last_message_id),
                         SUITE_CASE(what_comes_late_means_nothing),
                         SUITE_CASE(acknowledging_the_future_is_harmless),
                         SUITE_CASE(a_part_of_no_entry_acknowledges_nothing),
                         SUITE_CASE(who_does_not_read_can_still_be_closed),
                         SUITE_LOOP(who_does_not_read_is_not_sent_more, 2),
                         {0},
                     });
}
