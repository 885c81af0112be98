/* Producers that want their topic alone, and what they bring with them.  Raw frames over a socket,
 * in front of a real bookie. */
#include <string.h>
#include <unistd.h>

#include "common/mem.h"
#include "tests/lib/suite.h"
#include "tests/unit/broker/session/scene.h"

#define TOPIC   "persistent://public/default/t"
#define MODE(m) PULSAR__PROTO__PRODUCER_ACCESS_MODE__##m

enum { NOT_READY = 6, BUSY = 16, NOT_ALLOWED = 22, FENCED = 25 };
enum { NO_EPOCH = -1 };

/* Request id and producer id are the same. */
static void ask(struct raw *c, uint64_t id, Pulsar__Proto__ProducerAccessMode mode, int64_t epoch,
                const char *name)
{
    RAW(base, PRODUCER, producer, CommandProducer, COMMAND_PRODUCER, p);

    p.topic = (char *)(uintptr_t)TOPIC;
    p.producer_id = p.request_id = id;
    p.producer_name = (char *)(uintptr_t)name;
    p.has_producer_access_mode = true;
    p.producer_access_mode = mode;
    p.has_topic_epoch = epoch != NO_EPOCH;
    p.topic_epoch = (uint64_t)epoch;
    raw_put(c, &base);
}

static const Pulsar__Proto__CommandProducerSuccess *success(struct raw *c, uint64_t id)
{
    const Pulsar__Proto__CommandProducerSuccess *ok =
        raw_expect(c, RAW_TYPE(PRODUCER_SUCCESS))->producer_success;

    ck_assert_uint_eq(ok->request_id, id);
    return ok;
}

static void expect_owner(struct raw *c, uint64_t id, uint64_t epoch)
{
    const Pulsar__Proto__CommandProducerSuccess *ok = success(c, id);

    ck_assert(ok->has_producer_ready && ok->producer_ready);
    ck_assert(ok->has_topic_epoch);
    ck_assert_uint_eq(ok->topic_epoch, epoch);
}

static void expect_queued(struct raw *c, uint64_t id)
{
    const Pulsar__Proto__CommandProducerSuccess *ok = success(c, id);

    ck_assert(ok->has_producer_ready && !ok->producer_ready);
    ck_assert(!ok->has_topic_epoch);
}

static void expect_sent_away(struct raw *c, uint64_t id)
{
    ck_assert_uint_eq(raw_expect(c, RAW_TYPE(CLOSE_PRODUCER))->close_producer->producer_id, id);
}

START_TEST(one_has_the_topic_alone)
{
    begin();
    ask(r, 1, MODE(Exclusive), NO_EPOCH, NULL);
    expect_owner(r, 1, 0);
    struct raw *n = another();
    ask(n, 2, MODE(Exclusive), NO_EPOCH, NULL);
    raw_expect_error(n, 2, FENCED);
    ask(n, 3, MODE(Shared), NO_EPOCH, NULL);
    raw_expect_error(n, 3, BUSY);
    raw_publish(r, 1, 0, "alone");
    raw_close_producer(r, 1, 9);
    ask(n, 4, MODE(Shared), NO_EPOCH, NULL);
    ck_assert(!success(n, 4)->has_topic_epoch);
    ask(n, 5, MODE(Exclusive), NO_EPOCH, NULL);
    raw_expect_error(n, 5, FENCED);
    raw_close_producer(n, 4, 9);
    ask(n, 6, MODE(Exclusive), NO_EPOCH, NULL);
    expect_owner(n, 6, 1);
    ck_assert_int_eq(inn_metric(inn, "pulsar_broker_producers_count"), 1);
    raw_drop(&n);
    finish();
}
END_TEST

START_TEST(an_epoch_outlives_the_broker)
{
    begin();
    ask(r, 1, MODE(Exclusive), NO_EPOCH, "me");
    expect_owner(r, 1, 0);
    inn_stop_broker(inn);
    raw_drop(&r);
    inn_start_broker(inn);
    r = another();
    ask(r, 1, MODE(Exclusive), 0, "me"); /* nobody was there since */
    expect_owner(r, 1, 0);
    raw_close_producer(r, 1, 9);
    ask(r, 2, MODE(Exclusive), NO_EPOCH, NULL);
    expect_owner(r, 2, 1);
    raw_close_producer(r, 2, 9);
    ask(r, 3, MODE(Exclusive), 0, "me");
    raw_expect_error(r, 3, FENCED);
    ask(r, 4, MODE(WaitForExclusive), 0, "me");
    raw_expect_error(r, 4, FENCED);
    ask(r, 5, MODE(ExclusiveWithFencing), 0, "me");
    raw_expect_error(r, 5, FENCED);
    ask(r, 6, MODE(Exclusive), INT64_MAX, "me");
    raw_expect_error(r, 6, NOT_ALLOWED);
    ask(r, 7, MODE(Exclusive), 1, NULL);
    expect_owner(r, 7, 1);
    finish();
}
END_TEST

START_TEST(who_waits_gets_it_in_turn)
{
    begin();
    struct raw *first = another(), *gone = another(), *last = another();
    ask(r, 1, MODE(Exclusive), NO_EPOCH, NULL);
    expect_owner(r, 1, 0);
    ask(gone, 2, MODE(WaitForExclusive), NO_EPOCH, NULL);
    expect_queued(gone, 2);
    ask(first, 3, MODE(WaitForExclusive), NO_EPOCH, NULL);
    expect_queued(first, 3);
    ask(last, 4, MODE(WaitForExclusive), NO_EPOCH, NULL);
    expect_queued(last, 4);
    ask(last, 4, MODE(WaitForExclusive), NO_EPOCH, NULL); /* being created */
    raw_expect_error(last, 4, NOT_READY);
    ck_assert_int_eq(inn_metric(inn, "pulsar_broker_producers_count"), 1);
    raw_drop(&gone);
    raw_expect_nothing(first);
    raw_close_producer(r, 1, 9);
    expect_owner(first, 3, 1);
    raw_publish(first, 3, 0, "mine");
    raw_expect_nothing(last);
    raw_drop(&first);
    expect_owner(last, 4, 2);
    raw_publish(last, 4, 0, "and mine");
    raw_drop(&last);
    finish();
}
END_TEST

START_TEST(who_waits_may_close)
{
    begin();
    raw_producer_ready(r, 1, TOPIC);
    struct raw *n = another();
    ask(n, 2, MODE(WaitForExclusive), NO_EPOCH, NULL);
    expect_queued(n, 2);
    ask(r, 3, MODE(Shared), NO_EPOCH, NULL);
    raw_expect_error(r, 3, BUSY);
    RAW(base, CLOSE_PRODUCER, close_producer, CommandCloseProducer, COMMAND_CLOSE_PRODUCER, close);
    close.producer_id = 2;
    close.request_id = 9;
    raw_put(n, &base);
    raw_expect_error(n, 2, NOT_READY);
    raw_expect_success(n, 9);
    ask(r, 4, MODE(Shared), NO_EPOCH, NULL);
    success(r, 4);
    raw_drop(&n);
    finish();
}
END_TEST

START_TEST(a_send_before_its_turn_closes)
{
    begin();
    raw_producer_ready(r, 1, TOPIC);
    struct raw *n = another();
    ask(n, 2, MODE(WaitForExclusive), NO_EPOCH, NULL);
    expect_queued(n, 2);
    raw_send(n, 2, 0, "early");
    raw_expect_closed(n);
    raw_drop(&n);
    raw_close_producer(r, 1, 9);
    ask(r, 4, MODE(WaitForExclusive), NO_EPOCH, NULL);
    while (!success(r, 4)->producer_ready)
        ;
    finish();
}
END_TEST

START_TEST(fencing_sends_all_away)
{
    begin();
    struct raw *shared = another(), *waits = another(), *n = another();
    raw_producer_ready(r, 1, TOPIC);
    raw_producer_ready(shared, 2, TOPIC);
    ask(waits, 3, MODE(WaitForExclusive), NO_EPOCH, NULL);
    expect_queued(waits, 3);
    ask(n, 4, MODE(ExclusiveWithFencing), NO_EPOCH, NULL);
    expect_sent_away(r, 1);
    expect_sent_away(shared, 2);
    raw_expect_error(waits, 3, FENCED);
    expect_owner(n, 4, 0);
    ask(r, 1, MODE(Shared), NO_EPOCH, NULL);
    raw_expect_error(r, 1, BUSY);
    raw_publish(n, 4, 0, "mine");
    ask(shared, 5, MODE(ExclusiveWithFencing), NO_EPOCH, NULL);
    expect_sent_away(n, 4);
    expect_owner(shared, 5, 1);
    ask(n, 6, MODE(Exclusive), 0, NULL); /* comes back with what it had */
    raw_expect_error(n, 6, FENCED);
    raw_drop(&n);
    raw_drop(&waits);
    raw_drop(&shared);
    finish();
}
END_TEST

/* The one that has the name is alive, and may be stuck: that is what fencing is for. */
START_TEST(fencing_takes_the_name_too)
{
    begin();
    ask(r, 1, MODE(Exclusive), NO_EPOCH, "me");
    expect_owner(r, 1, 0);
    struct raw *n = another();
    ask(n, 2, MODE(ExclusiveWithFencing), NO_EPOCH, "me");
    expect_sent_away(r, 1);
    expect_owner(n, 2, 1);
    ask(r, 3, MODE(WaitForExclusive), NO_EPOCH, "me");
    n->silent = true;
    raw_expect(n, RAW_TYPE(PING)); /* are you there? */
    raw_expect_nothing(n);
    raw_expect_error(r, 3, BUSY);
    raw_drop(&n);
    finish();
}
END_TEST

START_TEST(a_topic_that_goes_refuses_who_waits)
{
    begin();
    raw_producer_ready(r, 1, TOPIC);
    struct raw *n = another();
    ask(n, 2, MODE(WaitForExclusive), NO_EPOCH, NULL);
    expect_queued(n, 2);
    inn_stop_broker(inn);
    raw_expect_error(n, 2, NOT_READY);
    raw_expect_closed(n);
    raw_drop(&n);
    finish();
}
END_TEST

START_TEST(clients_that_ask_and_go_leave_nothing)
{
    begin();
    for (unsigned i = 0; i < 200; i++) {
        struct raw *n = another();
        ask(n, 1, (Pulsar__Proto__ProducerAccessMode)(i % 4), NO_EPOCH, i % 3 ? NULL : "me");
        ask(n, 2, MODE(WaitForExclusive), NO_EPOCH, NULL);
        raw_drop(&n);
    }
    ask(r, 7, MODE(WaitForExclusive), NO_EPOCH, NULL);
    while (!success(r, 7)->producer_ready)
        ;
    raw_publish(r, 7, 0, "at last");
    while (inn_metric(inn, "pulsar_broker_producers_count") != 1)
        usleep(10000);
    finish();
}
END_TEST

/* ---- initial subscriptions ---- */

static void bring(struct raw *c, uint64_t id, const char *subscription)
{
    RAW(base, PRODUCER, producer, CommandProducer, COMMAND_PRODUCER, p);

    p.topic = (char *)(uintptr_t)TOPIC;
    p.producer_id = p.request_id = id;
    p.initial_subscription_name = (char *)(uintptr_t)subscription;
    raw_put(c, &base);
}

START_TEST(a_subscription_is_there_before_its_producer)
{
    begin();
    raw_producer_ready(r, 1, TOPIC);
    raw_publish(r, 1, 0, "before");
    bring(r, 2, "mine");
    success(r, 2);
    raw_publish(r, 2, 0, "after");
    inn_stop_broker(inn);
    raw_drop(&r);
    inn_start_broker(inn);
    r = another();
    bring(r, 2, "mine"); /* it is there: fine */
    success(r, 2);
    raw_subscribed(r, 3, TOPIC, "mine");
    raw_flow(r, 3, 10);
    raw_message(r, "before");
    raw_message(r, "after");
    finish();
}
END_TEST

START_TEST(two_may_bring_the_same_subscription)
{
    begin();
    for (uint64_t i = 0; i < 10; i++)
        bring(r, i, "mine");
    for (unsigned i = 0; i < 10; i++)
        raw_expect(r, RAW_TYPE(PRODUCER_SUCCESS));
    ck_assert_int_eq(inn_metric(inn, "pulsar_broker_producers_count"), 10);
    finish();
}
END_TEST

START_TEST(some_names_are_refused)
{
    char *name = mem_alloc(2000);

    begin();
    bring(r, 1, "pulsar.dedup");
    raw_expect_error(r, 1, NOT_ALLOWED);
    memset(name, 'x', 1999);
    name[1999] = '\0';
    bring(r, 2, name);
    raw_expect_error(r, 2, NOT_ALLOWED);
    bring(r, 3, "");
    success(r, 3);
    mem_free(name);
    finish();
}
END_TEST

int main(void)
{
    return suite_run("access", (suite_case[]){
                                   SUITE_CASE(one_has_the_topic_alone),
                                   SUITE_CASE(an_epoch_outlives_the_broker),
                                   SUITE_CASE(who_waits_gets_it_in_turn),
                                   SUITE_CASE(who_waits_may_close),
                                   SUITE_CASE(a_send_before_its_turn_closes),
                                   SUITE_CASE(fencing_sends_all_away),
                                   SUITE_CASE(fencing_takes_the_name_too),
                                   SUITE_CASE(a_topic_that_goes_refuses_who_waits),
                                   SUITE_CASE(clients_that_ask_and_go_leave_nothing),
                                   SUITE_CASE(a_subscription_is_there_before_its_producer),
                                   SUITE_CASE(two_may_bring_the_same_subscription),
                                   SUITE_CASE(some_names_are_refused),
                                   {0},
                               });
}
