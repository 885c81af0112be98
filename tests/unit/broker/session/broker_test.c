/* A broker as its clients see it, right and wrong: raw frames over a socket, in front of a real
 * bookie. */
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "common/crc32c.h"
#include "common/mem.h"
#include "metadata/paths.h"
#include "metadata/records.h"
#include "proto/message.h"
#include "tests/lib/suite.h"
#include "tests/unit/broker/session/inn.h"
#include "tests/unit/broker/session/raw.h"

#define TOPIC "persistent://public/default/t"

static struct inn *inn;
static struct raw *r;

static void begin_with(const char *setting)
{
    inn = inn_new();
    if (setting)
        inn_set(inn, setting);
    inn_open(inn);
    r = raw_connect(broker_port(inn->broker));
}

static void begin(void)
{
    begin_with(NULL);
}

static struct raw *another(void)
{
    return raw_connect(broker_port(inn->broker));
}

static void finish(void)
{
    if (r)
        raw_drop(&r);
    inn_drop(&inn);
}

/* ---- the handshake and the frames ---- */

START_TEST(connect_tells_what_the_broker_can)
{
    begin();
    ck_assert_int_eq(r->got->connected->protocol_version, 21);
    ck_assert_int_eq(r->got->connected->max_message_size, 5242880);
    ck_assert_int_eq(strncmp(r->got->connected->server_version, "Pulsar Server", 13), 0);
    ck_assert(
        r->got->connected->feature_flags->supports_get_partitioned_metadata_without_auto_creation);
    ck_assert(!r->got->connected->feature_flags->supports_topic_watchers);
    finish();
}
END_TEST

START_TEST(nothing_before_connect)
{
    begin();
    struct raw *n = raw_dial(broker_port(inn->broker));
    raw_lookup(n, 1, TOPIC);
    raw_expect_closed(n);
    raw_drop(&n);
    finish();
}
END_TEST

START_TEST(connect_only_once)
{
    begin();
    RAW(base, CONNECT, connect, CommandConnect, COMMAND_CONNECT, c);
    c.client_version = (char *)(uintptr_t) "raw";
    raw_put(r, &base);
    raw_expect_closed(r);
    finish();
}
END_TEST

START_TEST(frames_may_come_byte_by_byte)
{
    begin();
    RAW(base, PING, ping, CommandPing, COMMAND_PING, ping);
    struct slice frame = command_frame(&base);
    for (size_t i = 0; i < frame.len; i++) {
        raw_write(r, frame.base + i, 1);
        usleep(1000);
    }
    slice_drop(&frame);
    raw_expect(r, RAW_TYPE(PONG));
    finish();
}
END_TEST

START_TEST(garbage_closes_that_connection_only)
{
    static const struct {
        uint8_t bytes[16];
        size_t len;
    } bad[] = {
        {{0, 0, 0, 12, 0xff, 0xff, 0xff, 0xff, 1, 2, 3, 4, 5, 6, 7, 8}, 16}, /* command too long */
        {{0x7f, 0xff, 0xff, 0xff, 0, 0, 0, 4}, 8},                           /* frame too long */
        {{0, 0, 0, 8, 0, 0, 0, 4, 8, 99, 0, 0}, 12},                         /* unknown type */
        {{0, 0, 0, 6, 0, 0, 0, 2, 8, 6}, 10},                  /* SEND without its own */
        {{0, 0, 0, 2, 0, 0}, 6},                               /* no command size */
        {{0, 0, 0, 10, 0, 0, 0, 6, 8, 5, 42, 0x7f, 1, 1}, 14}, /* broken protobuf */
    };
    struct raw *n;

    begin();
    n = another();
    raw_write(n, bad[_i].bytes, bad[_i].len);
    raw_expect_closed(n);
    raw_drop(&n);
    raw_expect_nothing(r);
    finish();
}
END_TEST

START_TEST(one_connection_too_many)
{
    begin_with("brokerMaxConnections=1");
    struct raw *n = raw_dial(broker_port(inn->broker));
    RAW(base, CONNECT, connect, CommandConnect, COMMAND_CONNECT, c);
    c.client_version = (char *)(uintptr_t) "raw";
    raw_put(n, &base);
    raw_expect_error(n, UINT64_MAX, 22);
    raw_expect_closed(n);
    raw_drop(&n);
    raw_expect_nothing(r);
    finish();
}
END_TEST

START_TEST(silence_is_pinged_then_closed)
{
    begin_with("keepAliveIntervalSeconds=1");
    r->silent = true;
    raw_expect(r, RAW_TYPE(PING));
    raw_expect_closed(r);
    finish();
}
END_TEST

START_TEST(who_never_connects_is_closed)
{
    begin_with("keepAliveIntervalSeconds=1");
    struct raw *n = raw_dial(broker_port(inn->broker));
    raw_expect_closed(n);
    raw_drop(&n);
    finish();
}
END_TEST

/* ---- discovery ---- */

static void expect_lookup_error(uint64_t request, int code)
{
    const raw_command *c = raw_expect(r, RAW_TYPE(LOOKUP_RESPONSE));
    ck_assert_uint_eq(c->lookuptopicresponse->request_id, request);
    ck_assert_int_eq((int)c->lookuptopicresponse->response, 2);
    ck_assert_int_eq((int)c->lookuptopicresponse->error, code);
}

static void expect_partitions_error(uint64_t request, int code)
{
    const raw_command *c = raw_expect(r, RAW_TYPE(PARTITIONED_METADATA_RESPONSE));
    ck_assert_uint_eq(c->partitionmetadataresponse->request_id, request);
    ck_assert_int_eq((int)c->partitionmetadataresponse->response, 1);
    ck_assert_int_eq((int)c->partitionmetadataresponse->error, code);
}

static void expect_partitions(uint64_t request, unsigned n)
{
    const raw_command *c = raw_expect(r, RAW_TYPE(PARTITIONED_METADATA_RESPONSE));
    ck_assert_uint_eq(c->partitionmetadataresponse->request_id, request);
    ck_assert_int_eq((int)c->partitionmetadataresponse->response, 0);
    ck_assert_uint_eq(c->partitionmetadataresponse->partitions, n);
}

START_TEST(lookup_connects_here)
{
    char url[64];

    begin();
    snprintf(url, sizeof(url), "pulsar://127.0.0.1:%u", broker_port(inn->broker));
    raw_lookup(r, 5, TOPIC);
    const raw_command *c = raw_expect(r, RAW_TYPE(LOOKUP_RESPONSE));
    ck_assert_uint_eq(c->lookuptopicresponse->request_id, 5);
    ck_assert_int_eq((int)c->lookuptopicresponse->response, 1);
    ck_assert_str_eq(c->lookuptopicresponse->brokerserviceurl, url);
    ck_assert(c->lookuptopicresponse->authoritative);
    finish();
}
END_TEST

START_TEST(lookup_fails_in_its_own_form)
{
    begin();
    raw_lookup(r, 1, "persistent://nobody/nowhere/t");
    expect_lookup_error(1, 11);
    raw_lookup(r, 2, "a/b/c/d/e/f");
    expect_lookup_error(2, 17);
    raw_lookup(r, 3, "non-persistent://public/default/t");
    expect_lookup_error(3, 22);
    char *longer = mem_alloc(5000);
    memset(longer, 'x', 4999);
    raw_lookup(r, 4, longer);
    expect_lookup_error(4, 17);
    mem_free(longer);
    finish();
}
END_TEST

START_TEST(an_unknown_listener_is_named)
{
    begin();
    RAW(base, LOOKUP, lookuptopic, CommandLookupTopic, COMMAND_LOOKUP_TOPIC, l);
    l.topic = (char *)(uintptr_t)TOPIC;
    l.request_id = 9;
    l.advertised_listener_name = (char *)(uintptr_t) "test";
    raw_put(r, &base);
    expect_lookup_error(9, 6);
    ck_assert_ptr_nonnull(
        strstr(r->got->lookuptopicresponse->message, "the broker do not have test listener"));
    finish();
}
END_TEST

START_TEST(partitions_are_what_the_metadata_says)
{
    char key[META_KEY_MAX];
    struct topic_name name;

    begin();
    ck_assert_int_eq(topic_name_parse(TOPIC, &name), ERR_OK);
    ck_assert_int_eq(path_partitioned(&name, key), ERR_OK);
    topic_name_drop(&name);
    raw_partitions(r, 1, TOPIC, true);
    expect_partitions(1, 0);
    raw_partitions(r, 2, TOPIC, false);
    expect_partitions_error(2, 11);
    ck_assert_int_eq(meta_put_wait(inn->meta, key, partitioned_record_write(3), META_ABSENT),
                     ERR_OK);
    raw_partitions(r, 3, TOPIC, false);
    expect_partitions(3, 3);
    raw_partitions(r, 4, "persistent://nobody/nowhere/t", true);
    expect_partitions_error(4, 11);

    raw_producer_ready(r, 1, TOPIC "-partition-2");
    raw_producer(r, 2, 50, TOPIC "-partition-3", NULL);
    raw_expect_error(r, 50, 11);
    raw_producer(r, 3, 51, TOPIC, NULL);
    raw_expect_error(r, 51, 22);
    finish();
}
END_TEST

START_TEST(without_auto_creation_topics_must_exist)
{
    begin_with("allowAutoTopicCreation=false");
    raw_partitions(r, 1, TOPIC, true);
    expect_partitions_error(1, 11);
    raw_producer(r, 1, 2, TOPIC, NULL);
    raw_expect_error(r, 2, 11);
    raw_subscribe(r, 1, 3, TOPIC, "s");
    raw_expect_error(r, 3, 11);
    finish();
}
END_TEST

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
    p.request_id = 1;
    p.has_producer_access_mode = true;
    p.producer_access_mode = PULSAR__PROTO__PRODUCER_ACCESS_MODE__Exclusive;
    raw_put(r, &base);
    raw_expect_error(r, 1, 22);
    p.producer_access_mode = PULSAR__PROTO__PRODUCER_ACCESS_MODE__Shared;
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
    int64_t left[] = {2};

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
    for (int type = 1; type < 6; type++) {
        s.subtype = (Pulsar__Proto__CommandSubscribe__SubType)type;
        raw_put(r, &base);
        raw_expect_error(r, 5, 22);
    }
    s.subtype = PULSAR__PROTO__COMMAND_SUBSCRIBE__SUB_TYPE__Exclusive;
    s.has_durable = true;
    s.durable = false;
    raw_put(r, &base);
    raw_expect_error(r, 5, 22);
    s.durable = true;
    s.has_read_compacted = s.read_compacted = true;
    raw_put(r, &base);
    raw_expect_error(r, 5, 22);
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

START_TEST(who_does_not_read_is_not_sent_more)
{
    enum { N = 100, SIZE = 512 * 1024 };
    char *text = mem_alloc(SIZE + 1);

    memset(text, 'x', SIZE);
    begin();
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

/* ---- what is refused ---- */

static void expect_refusal(int answer, uint64_t request)
{
    const raw_command *c = raw_expect(r, answer);
    const ProtobufCFieldDescriptor *field =
        protobuf_c_message_descriptor_get_field(c->base.descriptor, (unsigned)answer);
    const ProtobufCMessage *m =
        *(ProtobufCMessage *const *)(const void *)((const char *)c + field->offset);
    const ProtobufCFieldDescriptor *id =
        protobuf_c_message_descriptor_get_field_by_name(m->descriptor, "request_id");
    const ProtobufCFieldDescriptor *error =
        protobuf_c_message_descriptor_get_field_by_name(m->descriptor, "error");

    if (!error)
        error = protobuf_c_message_descriptor_get_field_by_name(m->descriptor, "error_code");
    ck_assert_uint_eq(*(const uint64_t *)(const void *)((const char *)m + id->offset), request);
    ck_assert_int_eq(*(const int *)(const void *)((const char *)m + error->offset), 22);
}

#define REFUSED(TYPE_, member_, Struct_, INIT_, ANSWER_, ...) \
    do {                                                      \
        RAW(base, TYPE_, member_, Struct_, INIT_, c);         \
        c.request_id = ++request;                             \
        __VA_ARGS__;                                          \
        raw_put(r, &base);                                    \
        expect_refusal(RAW_TYPE(ANSWER_), request);           \
    } while (0)

#define TEXT(s) ((char *)(uintptr_t)(s))

START_TEST(what_is_not_there_yet_is_refused_in_its_own_form)
{
    uint64_t request = 0;
    Pulsar__Proto__Schema schema = PULSAR__PROTO__SCHEMA__INIT;

    begin();
    schema.name = TEXT("s");
    REFUSED(SEEK, seek, CommandSeek, COMMAND_SEEK, ERROR, (void)0);
    REFUSED(CONSUMER_STATS, consumerstats, CommandConsumerStats, COMMAND_CONSUMER_STATS,
            CONSUMER_STATS_RESPONSE, (void)0);
    REFUSED(GET_TOPICS_OF_NAMESPACE, gettopicsofnamespace, CommandGetTopicsOfNamespace,
            COMMAND_GET_TOPICS_OF_NAMESPACE, ERROR, c.namespace_ = TEXT("public/default"));
    REFUSED(GET_SCHEMA, getschema, CommandGetSchema, COMMAND_GET_SCHEMA, GET_SCHEMA_RESPONSE,
            c.topic = TEXT(TOPIC));
    REFUSED(GET_OR_CREATE_SCHEMA, getorcreateschema, CommandGetOrCreateSchema,
            COMMAND_GET_OR_CREATE_SCHEMA, GET_OR_CREATE_SCHEMA_RESPONSE, c.topic = TEXT(TOPIC);
            c.schema = &schema);
    REFUSED(NEW_TXN, newtxn, CommandNewTxn, COMMAND_NEW_TXN, NEW_TXN_RESPONSE, (void)0);
    REFUSED(ADD_PARTITION_TO_TXN, addpartitiontotxn, CommandAddPartitionToTxn,
            COMMAND_ADD_PARTITION_TO_TXN, ADD_PARTITION_TO_TXN_RESPONSE, (void)0);
    REFUSED(ADD_SUBSCRIPTION_TO_TXN, addsubscriptiontotxn, CommandAddSubscriptionToTxn,
            COMMAND_ADD_SUBSCRIPTION_TO_TXN, ADD_SUBSCRIPTION_TO_TXN_RESPONSE, (void)0);
    REFUSED(END_TXN, endtxn, CommandEndTxn, COMMAND_END_TXN, END_TXN_RESPONSE, (void)0);
    REFUSED(END_TXN_ON_PARTITION, endtxnonpartition, CommandEndTxnOnPartition,
            COMMAND_END_TXN_ON_PARTITION, END_TXN_ON_PARTITION_RESPONSE, (void)0);
    REFUSED(END_TXN_ON_SUBSCRIPTION, endtxnonsubscription, CommandEndTxnOnSubscription,
            COMMAND_END_TXN_ON_SUBSCRIPTION, END_TXN_ON_SUBSCRIPTION_RESPONSE, (void)0);
    REFUSED(TC_CLIENT_CONNECT_REQUEST, tcclientconnectrequest, CommandTcClientConnectRequest,
            COMMAND_TC_CLIENT_CONNECT_REQUEST, TC_CLIENT_CONNECT_RESPONSE, (void)0);
    REFUSED(WATCH_TOPIC_LIST, watchtopiclist, CommandWatchTopicList, COMMAND_WATCH_TOPIC_LIST,
            ERROR, c.namespace_ = TEXT("public/default");
            c.topics_pattern = TEXT(".*"));
    REFUSED(WATCH_TOPIC_LIST_CLOSE, watchtopiclistclose, CommandWatchTopicListClose,
            COMMAND_WATCH_TOPIC_LIST_CLOSE, ERROR, (void)0);
    raw_expect_nothing(r);
    finish();
}
END_TEST

/* ---- the end ---- */

START_TEST(a_broker_that_stops_tells_its_clients)
{
    begin();
    raw_producer_ready(r, 1, TOPIC);
    raw_subscribed(r, 2, TOPIC, "s");
    inn_stop_broker(inn);
    bool producer = false, consumer = false;
    for (int i = 0; i < 2; i++) {
        const raw_command *c = raw_get(r);
        producer |= c->type == RAW_TYPE(CLOSE_PRODUCER) && c->close_producer->producer_id == 1;
        consumer |= c->type == RAW_TYPE(CLOSE_CONSUMER) && c->close_consumer->consumer_id == 2;
    }
    ck_assert(producer && consumer);
    raw_expect_closed(r);
    finish();
}
END_TEST

START_TEST(clients_that_come_and_go_leave_nothing)
{
    begin();
    for (uint64_t i = 0; i < 200; i++) {
        struct raw *n = another();
        raw_producer(n, i, 1, TOPIC, NULL);
        raw_subscribe(n, i, 2, TOPIC, i % 2 ? "a" : "b");
        if (i % 3 == 0)
            raw_flow(n, i, 10);
        raw_drop(&n); /* before anything was answered, mostly */
    }
    raw_expect_nothing(r);
    while (inn_metric(inn, "pulsar_active_connections") > 1 ||
           inn_metric(inn, "pulsar_broker_producers_count") > 0 ||
           inn_metric(inn, "pulsar_broker_consumers_count") > 0)
        usleep(10000);
    raw_subscribed(r, 1, TOPIC, "a");
    finish();
}
END_TEST

/* ---- HTTP ---- */

static void http_says(const char *path, const char *status, const char *text)
{
    char *got = inn_get(inn, path);

    ck_assert_msg(strstr(got, status) && strstr(got, text), "%s: %s", path, got);
    mem_free(got);
}

START_TEST(http_routes)
{
    char url[64];

    begin();
    snprintf(url, sizeof(url), "\"brokerUrl\":\"pulsar://127.0.0.1:%u\"", broker_port(inn->broker));
    http_says("/status.html", "200", "OK");
    http_says("/admin/v2/brokers/health", "200", "ok");
    http_says("/admin/v2/brokers/ready", "200", "ok");
    http_says("/admin/v2/brokers/version", "200", LGM_VERSION);
    http_says("/metrics", "200", "pulsar_active_connections{cluster=\"test\"} 1");
    http_says("/lookup/v2/topic/persistent/public/default/t", "200", url);
    http_says("/lookup/v2/topic/persistent/public/default/t", "200", "\"brokerUrlTls\":");
    http_says("/lookup/v2/topic/persistent/no/where/t", "404", "reason");
    http_says("/lookup/v2/topic/persistent/public/default/t?listenerName=x", "400", "reason");
    http_says("/admin/v2/persistent/public/default/t/partitions", "404", "reason");
    http_says("/admin/v2/persistent/public/default/t/partitions?checkAllowAutoCreation=true", "200",
              "\"partitions\":0");
    http_says("/nothing/here", "404", "{\"reason\":");
    http_says("/lookup/v2/topic/nonsense/public/default/t", "412", "reason");
    finish();
}
END_TEST

int main(void)
{
    return suite_run("broker",
                     (suite_case[]){
                         SUITE_CASE(connect_tells_what_the_broker_can),
                         SUITE_CASE(nothing_before_connect),
                         SUITE_CASE(connect_only_once),
                         SUITE_CASE(frames_may_come_byte_by_byte),
                         SUITE_LOOP(garbage_closes_that_connection_only, 6),
                         SUITE_CASE(one_connection_too_many),
                         SUITE_CASE(silence_is_pinged_then_closed),
                         SUITE_CASE(who_never_connects_is_closed),
                         SUITE_CASE(lookup_connects_here),
                         SUITE_CASE(lookup_fails_in_its_own_form),
                         SUITE_CASE(an_unknown_listener_is_named),
                         SUITE_CASE(partitions_are_what_the_metadata_says),
                         SUITE_CASE(without_auto_creation_topics_must_exist),
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
                         SUITE_CASE(as_many_as_permitted_and_no_more),
                         SUITE_CASE(new_messages_come_by_themselves),
                         SUITE_CASE(what_is_acknowledged_does_not_come_again),
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
                         SUITE_CASE(who_does_not_read_is_not_sent_more),
                         SUITE_CASE(what_is_not_there_yet_is_refused_in_its_own_form),
                         SUITE_CASE(a_broker_that_stops_tells_its_clients),
                         SUITE_CASE(clients_that_come_and_go_leave_nothing),
                         SUITE_CASE(http_routes),
                         {0},
                     });
}
