/* A connection as its client sees it, from the handshake to the end.  Raw frames over a socket, in
 * front of a real bookie. */
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

/* ---- the handshake and the frames ---- */

START_TEST(connect_tells_what_the_broker_can)
{
    begin();
    ck_assert_int_eq(r->got->connected->protocol_version, 21);
    ck_assert_int_eq(r->got->connected->max_message_size, 5242880);
    ck_assert_int_eq(strncmp(r->got->connected->server_version, "Pulsar Server", 13), 0);
    ck_assert(
        r->got->connected->feature_flags->supports_get_partitioned_metadata_without_auto_creation);
    ck_assert(r->got->connected->feature_flags->supports_topic_watchers);
    finish();
}
END_TEST

START_TEST(the_version_is_one_that_both_speak)
{
    static const struct {
        int32_t client, answer;
    } versions[] = {{-5, 0}, {0, 0}, {12, 12}, {21, 21}, {99, 21}, {INT32_MIN, 0}, {INT32_MAX, 21}};

    begin();
    struct raw *n = raw_dial(broker_port(inn->broker));
    RAW(base, CONNECT, connect, CommandConnect, COMMAND_CONNECT, c);
    c.client_version = (char *)(uintptr_t) "raw";
    c.has_protocol_version = true;
    c.protocol_version = versions[_i].client;
    raw_put(n, &base);
    raw_expect(n, RAW_TYPE(CONNECTED));
    ck_assert_int_eq(n->got->connected->protocol_version, versions[_i].answer);
    raw_drop(&n);
    finish();
}
END_TEST

/* Of each the longest that is taken, and one byte more. */
START_TEST(names_have_a_limit)
{
    enum { MOST = 1024 };
    char name[MOST + 2];

    begin();
    memset(name, 'n', sizeof(name));
    name[MOST + 1] = '\0';
    raw_producer(r, 1, 1, TOPIC, name);
    raw_expect_error(r, 1, 22);
    raw_subscribe(r, 1, 2, TOPIC, name);
    raw_expect_error(r, 2, 22);
    raw_producer(r, 1, 3, name, NULL);
    raw_expect_error(r, 3, 17);
    raw_lookup(r, 4, name);
    raw_expect(r, RAW_TYPE(LOOKUP_RESPONSE));
    ck_assert_int_eq(r->got->lookuptopicresponse->response,
                     PULSAR__PROTO__COMMAND_LOOKUP_TOPIC_RESPONSE__LOOKUP_TYPE__Failed);
    name[MOST] = '\0';
    raw_producer(r, 1, 5, TOPIC, name);
    raw_expect(r, RAW_TYPE(PRODUCER_SUCCESS));
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

/* A peer that reads nothing, with so much unsent that only bytes that leave would be a sign. */
START_TEST(who_reads_nothing_is_closed)
{
    enum { BIG = 1024 * 1024, MANY = 24 };
    const int little = 4096;
    char *text = mem_alloc(BIG + 1);

    begin_with("keepAliveIntervalSeconds=1");
    struct raw *n = another();
    raw_subscribed(n, 1, TOPIC, "s");
    raw_producer_ready(r, 1, TOPIC);
    memset(text, 'x', BIG);
    for (uint64_t i = 0; i < MANY; i++)
        raw_publish(r, 1, i, text);
    ck_assert_int_eq(setsockopt(n->fd, SOL_SOCKET, SO_RCVBUF, &little, sizeof(little)), 0);
    raw_flow(n, 1, 1000);
    const uint64_t began = loop_clock();
    while (inn_metric(inn, "pulsar_active_connections") > 1) {
        ck_assert_uint_lt(loop_clock() - began, 15000000);
        raw_expect_nothing(r); /* answers PINGs, so that it is not the one that goes */
        usleep(20000);
    }
    mem_free(text);
    raw_drop(&n);
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
    schema.type = PULSAR__PROTO__SCHEMA__TYPE__Avro;
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
    raw_expect_nothing(r);
    finish();
}
END_TEST

START_TEST(bytes_need_no_schema)
{
    Pulsar__Proto__Schema schema = PULSAR__PROTO__SCHEMA__INIT;

    begin();
    RAW(base, GET_OR_CREATE_SCHEMA, getorcreateschema, CommandGetOrCreateSchema,
        COMMAND_GET_OR_CREATE_SCHEMA, c);
    schema.name = TEXT("");
    c.request_id = 7;
    c.topic = TEXT(TOPIC);
    c.schema = &schema;
    raw_put(r, &base);
    const raw_command *answer = raw_expect(r, RAW_TYPE(GET_OR_CREATE_SCHEMA_RESPONSE));
    ck_assert_uint_eq(answer->getorcreateschemaresponse->request_id, 7);
    ck_assert(!answer->getorcreateschemaresponse->has_error_code);
    ck_assert(answer->getorcreateschemaresponse->has_schema_version);
    ck_assert_uint_eq(answer->getorcreateschemaresponse->schema_version.len, 0);
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

static void refuses_to_start(const char *key, uint16_t port)
{
    struct broker *second;
    struct broker_conf conf;
    char *setting = mem_format("%s=%u", key, port);

    memset(&conf, 0, sizeof(conf));
    ck_assert_int_eq(config_defaults(&broker_config_table, &conf), ERR_OK);
    ck_assert_int_eq(config_set(&broker_config_table, &conf, "clusterName=test", "test"), ERR_OK);
    ck_assert_int_eq(config_set(&broker_config_table, &conf, "brokerServicePort=0", "test"),
                     ERR_OK);
    ck_assert_int_eq(config_set(&broker_config_table, &conf, "webServicePort=0", "test"), ERR_OK);
    ck_assert_int_eq(config_set(&broker_config_table, &conf, setting, "test"), ERR_OK);
    ck_assert_int_eq(broker_start(&second, &conf, inn->meta, &inn->loops), ERR_IO);
    config_drop(&broker_config_table, &conf);
    mem_free(setting);
}

START_TEST(a_port_in_use_stops_the_start)
{
    begin();
    refuses_to_start("brokerServicePort", broker_port(inn->broker));
    refuses_to_start("webServicePort", broker_web_port(inn->broker));
    raw_expect_nothing(r);
    finish();
}
END_TEST

START_TEST(another_cluster_stops_the_start)
{
    struct broker *second;

    begin();
    inn_stop_broker(inn);
    inn_set(inn, "clusterName=another");
    ck_assert_int_eq(broker_start(&second, &inn->conf, inn->meta, &inn->loops), ERR_NOT_READY);
    finish();
}
END_TEST

int main(void)
{
    return suite_run("session", (suite_case[]){
                                    SUITE_CASE(connect_tells_what_the_broker_can),
                                    SUITE_LOOP(the_version_is_one_that_both_speak, 7),
                                    SUITE_CASE(names_have_a_limit),
                                    SUITE_CASE(nothing_before_connect),
                                    SUITE_CASE(connect_only_once),
                                    SUITE_CASE(frames_may_come_byte_by_byte),
                                    SUITE_LOOP(garbage_closes_that_connection_only, 6),
                                    SUITE_CASE(one_connection_too_many),
                                    SUITE_CASE(silence_is_pinged_then_closed),
                                    SUITE_CASE(who_reads_nothing_is_closed),
                                    SUITE_CASE(who_never_connects_is_closed),
                                    SUITE_CASE(what_is_not_there_yet_is_refused_in_its_own_form),
                                    SUITE_CASE(bytes_need_no_schema),
                                    SUITE_CASE(a_broker_that_stops_tells_its_clients),
                                    SUITE_CASE(clients_that_come_and_go_leave_nothing),
                                    SUITE_CASE(a_port_in_use_stops_the_start),
                                    SUITE_CASE(another_cluster_stops_the_start),
                                    {0},
                                });
}
