/* A terminated topic as clients see it: who may still come, and who is told what. */
#include <string.h>

#include "tests/lib/suite.h"
#include "tests/unit/broker/admin/desk.h"
#include "tests/unit/broker/session/scene.h"

#define TOPIC "persistent://public/default/t"
#define PATH  "/admin/v2/persistent/public/default/t"

static struct raw *connect_as(const char *client)
{
    struct raw *one = raw_dial(broker_port(inn->broker));
    RAW(base, CONNECT, connect, CommandConnect, COMMAND_CONNECT, c);

    c.client_version = (char *)(uintptr_t)client;
    c.has_protocol_version = true;
    c.protocol_version = 21;
    raw_put(one, &base);
    raw_expect(one, RAW_TYPE(CONNECTED));
    return one;
}

static void terminate(void)
{
    ck_assert_int_eq(desk_ask(inn, "POST", PATH "/terminate", NULL, NULL), 200);
}

START_TEST(producers_are_told)
{
    begin();
    raw_producer_ready(r, 1, TOPIC);
    raw_publish(r, 1, 0, "one");
    terminate();
    raw_expect(r, RAW_TYPE(CLOSE_PRODUCER));
    raw_producer(r, 2, 7, TOPIC, NULL);
    raw_expect_error(r, 7, PULSAR__PROTO__SERVER_ERROR__TopicTerminatedError);
    finish();
}
END_TEST

START_TEST(who_has_drained_it_is_told)
{
    begin();
    struct raw *java = connect_as("Pulsar-Java-v4.0.0"), *cpp = connect_as("Pulsar-CPP-v3.7.0");
    raw_producer_ready(r, 1, TOPIC);
    raw_subscribed(java, 1, TOPIC, "j");
    raw_subscribed(cpp, 1, TOPIC, "c");
    raw_publish(r, 1, 0, "one");
    raw_flow(java, 1, 10);
    raw_flow(cpp, 1, 10);
    Pulsar__Proto__MessageIdData j = raw_message(java, "one"), c = raw_message(cpp, "one");
    terminate();
    raw_expect_nothing(java); /* it has not acknowledged it */
    raw_ack(cpp, 1, c, false);
    raw_expect_nothing(cpp);
    RAW(base, ACK, ack, CommandAck, COMMAND_ACK, ack);
    Pulsar__Proto__MessageIdData *ids[] = {&j};
    ack.consumer_id = 1;
    ack.message_id = ids;
    ack.n_message_id = 1;
    raw_put(java, &base);
    ck_assert_uint_eq(
        raw_expect(java, RAW_TYPE(REACHED_END_OF_TOPIC))->reachedendoftopic->consumer_id, 1);
    raw_close_consumer(java, 1, 9);
    raw_subscribed(java, 2, TOPIC, "j"); /* and told again when it comes back */
    raw_expect(java, RAW_TYPE(REACHED_END_OF_TOPIC));
    raw_expect_nothing(java);
    raw_drop(&java);
    raw_drop(&cpp);
    finish();
}
END_TEST

START_TEST(it_stays_so)
{
    begin();
    raw_producer_ready(r, 1, TOPIC);
    raw_publish(r, 1, 0, "one");
    terminate();
    raw_expect(r, RAW_TYPE(CLOSE_PRODUCER));
    raw_drop(&r);
    inn_stop_broker(inn);
    inn_start_broker(inn);
    r = another();
    raw_producer(r, 1, 7, TOPIC, NULL);
    raw_expect_error(r, 7, PULSAR__PROTO__SERVER_ERROR__TopicTerminatedError);
    ck_assert_int_eq(desk_ask(inn, "DELETE", PATH, NULL, NULL), 204);
    raw_producer_ready(r, 2, TOPIC);
    raw_publish(r, 2, 0, "anew");
    finish();
}
END_TEST

START_TEST(by_force_they_are_sent_away)
{
    begin();
    raw_producer_ready(r, 1, TOPIC);
    raw_subscribed(r, 2, TOPIC, "s");
    raw_publish(r, 1, 0, "one");
    ck_assert_int_eq(desk_ask(inn, "DELETE", PATH, NULL, NULL), 412);
    raw_expect_nothing(r);
    ck_assert_int_eq(desk_ask(inn, "DELETE", PATH "?force=true", NULL, NULL), 204);
    ck_assert_int_eq(desk_ask(inn, "GET", PATH "/stats", NULL, NULL), 404);
    finish();
}
END_TEST

int main(void)
{
    return suite_run("termination", (suite_case[]){SUITE_CASE(producers_are_told),
                                                   SUITE_CASE(who_has_drained_it_is_told),
                                                   SUITE_CASE(it_stays_so),
                                                   SUITE_CASE(by_force_they_are_sent_away),
                                                   {0}});
}
