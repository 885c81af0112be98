/* Where subscriptions read: seeks, readers, the last message's id.  Raw frames over a socket, in
 * front of a real bookie. */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "common/loop.h"
#include "common/mem.h"
#include "proto/message.h"
#include "tests/lib/suite.h"
#include "tests/unit/broker/session/scene.h"

#define TOPIC  "persistent://public/default/t"
#define PATH   "/admin/v2/persistent/public/default/t"
#define NEVER  UINT64_MAX /* as an id: the earliest */
#define LATEST ((uint64_t)INT64_MAX)

typedef Pulsar__Proto__MessageIdData msg_id;

static msg_id ids[64];
static struct raw *w; /* who publishes */

/* ---- publishing ---- */

struct made {
    uint64_t ms;
    int batch, marker;
};

static struct slice body_of(const char *text, uint64_t sequence, struct made how)
{
    Pulsar__Proto__MessageMetadata m = PULSAR__PROTO__MESSAGE_METADATA__INIT;

    m.producer_name = (char *)(uintptr_t) "raw";
    m.sequence_id = sequence;
    m.publish_time = how.ms;
    m.has_num_messages_in_batch = how.batch > 0;
    m.num_messages_in_batch = how.batch;
    m.has_marker_type = how.marker > 0;
    m.marker_type = how.marker;
    return message_body(&m, view_of(text, strlen(text)));
}

static void publish_one(unsigned i, struct made how)
{
    char text[16];

    snprintf(text, sizeof(text), "m%u", i);
    RAW(base, SEND, send, CommandSend, COMMAND_SEND, s);
    s.producer_id = 500;
    s.sequence_id = i;
    s.has_num_messages = how.batch > 0;
    s.num_messages = how.batch;
    raw_put_body(w, &base, body_of(text, i, how));
    raw_receipt(w, 500, i);
    ids[i] = *w->got->send_receipt->message_id;
}

static void begin_publishing(void)
{
    w = another();
    raw_producer_ready(w, 500, TOPIC);
}

static void end_publishing(void)
{
    raw_drop(&w);
}

/* mN was published at 1000 + 10 N. */
static void publish(unsigned n)
{
    begin_publishing();
    for (unsigned i = 0; i < n; i++)
        publish_one(i, (struct made){.ms = 1000 + 10 * i});
    end_publishing();
}

static void expect_some(struct raw *c, unsigned from, unsigned to)
{
    char text[16];

    for (unsigned i = from; i < to; i++) {
        snprintf(text, sizeof(text), "m%u", i);
        raw_message(c, text);
    }
}

/* ---- seeking ---- */

static void put_seek(struct raw *c, uint64_t consumer, uint64_t request, msg_id *id,
                     const uint64_t *ms)
{
    RAW(base, SEEK, seek, CommandSeek, COMMAND_SEEK, s);

    s.consumer_id = consumer;
    s.request_id = request;
    s.message_id = id;
    s.has_message_publish_time = ms != NULL;
    s.message_publish_time = ms ? *ms : 0;
    raw_put(c, &base);
}

static void expect_closed(struct raw *c, uint64_t consumer)
{
    raw_expect(c, RAW_TYPE(CLOSE_CONSUMER));
    ck_assert_uint_eq(c->got->close_consumer->consumer_id, consumer);
    ck_assert_uint_eq(c->got->close_consumer->request_id, UINT64_MAX);
}

static msg_id sentinel(uint64_t both)
{
    msg_id id = PULSAR__PROTO__MESSAGE_ID_DATA__INIT;

    id.ledgerid = id.entryid = both;
    return id;
}

/* Consumer 1 of r, which is closed by it; then it comes back and may have everything. */
static void sought(msg_id *id, const uint64_t *ms)
{
    put_seek(r, 1, 60, id, ms);
    expect_closed(r, 1);
    raw_expect_success(r, 60);
    raw_subscribed(r, 1, TOPIC, "s");
    raw_flow(r, 1, 100);
}

static void sought_id(msg_id id)
{
    sought(&id, NULL);
}

static void sought_time(uint64_t ms)
{
    sought(NULL, &ms);
}

static void begin_small(void) /* ledgers of three entries, that are not kept */
{
    inn = inn_new();
    inn_set(inn, "managedLedgerMaxEntriesPerLedger=3");
    inn_set(inn, "managedLedgerMinLedgerRolloverTimeMinutes=0");
    inn_open(inn);
    r = another();
}

static void begin_kept(void) /* but for somebody who reads nothing */
{
    begin_small();
    raw_subscribed(r, 99, TOPIC, "keeps");
}

START_TEST(a_seek_goes_to_the_entry_that_it_names)
{
    begin_kept();
    raw_subscribed(r, 1, TOPIC, "s");
    publish(10);
    raw_flow(r, 1, 100);
    expect_some(r, 0, 10);
    for (unsigned to = 10; to-- > 0;) {
        sought_id(ids[to]);
        expect_some(r, to, 10);
        raw_expect_nothing(r);
    }
    finish();
}
END_TEST

START_TEST(a_seek_to_either_end)
{
    begin();
    publish(5);
    raw_subscribed(r, 1, TOPIC, "s");
    raw_flow(r, 1, 100);
    expect_some(r, 0, 5);
    sought_id(sentinel(LATEST));
    raw_expect_nothing(r);
    sought_id(sentinel(NEVER));
    expect_some(r, 0, 5);
    raw_expect_nothing(r);
    finish();
}
END_TEST

START_TEST(a_seek_to_where_nothing_is_goes_to_what_is_next)
{
    msg_id id;

    begin_kept();
    raw_subscribed(r, 1, TOPIC, "s");
    publish(6);
    id = ids[2];
    id.entryid += 500; /* behind the end of its ledger */
    sought_id(id);
    expect_some(r, 3, 6);
    id.ledgerid = ids[5].ledgerid + 1000;
    sought_id(id);
    raw_expect_nothing(r);
    id.ledgerid = 0; /* before all of them */
    sought_id(id);
    expect_some(r, 0, 6);
    finish();
}
END_TEST

START_TEST(acknowledgements_are_forgotten_by_a_seek)
{
    begin();
    publish(6);
    raw_subscribed(r, 1, TOPIC, "s");
    raw_flow(r, 1, 100);
    expect_some(r, 0, 6);
    raw_ack(r, 1, ids[1], true);
    raw_ack(r, 1, ids[4], false);
    sought_id(ids[1]);
    expect_some(r, 1, 6);
    raw_expect_nothing(r);
    finish();
}
END_TEST

START_TEST(a_seek_by_time_over_several_ledgers)
{
    begin_kept();
    raw_subscribed(r, 1, TOPIC, "s");
    publish(20);
    raw_flow(r, 1, 100);
    expect_some(r, 0, 20);
    for (unsigned to = 0; to < 20; to += 3) {
        sought_time(1000 + 10 * to - (to & 1)); /* exactly, and a little before */
        expect_some(r, to, 20);
        raw_expect_nothing(r);
    }
    sought_time(0);
    expect_some(r, 0, 20);
    sought_time(5000);
    raw_expect_nothing(r);
    sought_time(UINT64_MAX);
    raw_expect_nothing(r);
    finish();
}
END_TEST

START_TEST(a_seek_on_a_topic_without_messages)
{
    begin();
    raw_subscribed(r, 1, TOPIC, "s");
    sought_time(1);
    sought_id(sentinel(NEVER));
    publish(2);
    expect_some(r, 0, 2);
    finish();
}
END_TEST

START_TEST(within_a_batch_only_the_rest_of_it_comes)
{
    int64_t left = 0x18;
    msg_id id;

    begin();
    raw_subscribed(r, 1, TOPIC, "s");
    begin_publishing();
    publish_one(0, (struct made){.ms = 1});
    publish_one(1, (struct made){.ms = 2, .batch = 5});
    publish_one(2, (struct made){.ms = 3});
    id = ids[1];
    id.n_ack_set = 1;
    id.ack_set = &left;
    put_seek(r, 1, 60, &id, NULL);
    expect_closed(r, 1);
    raw_expect_success(r, 60);
    raw_subscribed(r, 1, TOPIC, "s");
    raw_flow(r, 1, 3); /* two of the batch, and one */
    raw_expect(r, RAW_TYPE(MESSAGE));
    ck_assert_uint_eq(r->got->message->n_ack_set, 1);
    ck_assert_int_eq(r->got->message->ack_set[0], left);
    raw_message(r, "m2");
    raw_expect_nothing(r);
    end_publishing();
    finish();
}
END_TEST

static void share(struct raw *c, uint64_t id)
{
    RAW(base, SUBSCRIBE, subscribe, CommandSubscribe, COMMAND_SUBSCRIBE, s);

    s.topic = (char *)(uintptr_t)TOPIC;
    s.subscription = (char *)(uintptr_t) "s";
    s.subtype = PULSAR__PROTO__COMMAND_SUBSCRIBE__SUB_TYPE__Shared;
    s.consumer_id = id;
    s.request_id = 700 + id;
    s.has_initialposition = true;
    s.initialposition = PULSAR__PROTO__COMMAND_SUBSCRIBE__INITIAL_POSITION__Earliest;
    raw_put(c, &base);
    raw_expect_success(c, 700 + id);
}

START_TEST(every_consumer_is_closed_before_the_answer)
{
    begin();
    publish(4);
    struct raw *other = another();
    share(r, 1);
    share(r, 2);
    share(other, 3);
    put_seek(r, 2, 60, &ids[2], NULL);
    raw_expect(r, RAW_TYPE(CLOSE_CONSUMER));
    raw_expect(r, RAW_TYPE(CLOSE_CONSUMER));
    raw_expect_success(r, 60);
    expect_closed(other, 3);
    share(other, 4);
    raw_flow(other, 4, 100);
    expect_some(other, 2, 4);
    raw_expect_nothing(other);
    raw_drop(&other);
    finish();
}
END_TEST

START_TEST(seeks_that_are_refused)
{
    begin();
    raw_subscribed(r, 1, TOPIC, "s");
    put_seek(r, 1, 60, NULL, NULL);
    raw_expect_error(r, 60, PULSAR__PROTO__SERVER_ERROR__MetadataError);
    msg_id id = sentinel(LATEST);
    put_seek(r, 9, 61, &id, NULL);
    raw_expect_error(r, 61, PULSAR__PROTO__SERVER_ERROR__ConsumerNotFound);
    finish();
}
END_TEST

START_TEST(of_two_seeks_at_once_one_is_refused)
{
    unsigned refused = 0, done = 0;

    begin();
    publish(4);
    share(r, 1);
    share(r, 2);
    put_seek(r, 1, 60, &ids[2], NULL);
    put_seek(r, 2, 61, &ids[2], NULL);
    while (refused + done < 2) {
        raw_get(r);
        done += r->got->type == RAW_TYPE(SUCCESS);
        if (r->got->type != RAW_TYPE(ERROR))
            continue;
        refused++;
        ck_assert_int_eq(r->got->error->error, PULSAR__PROTO__SERVER_ERROR__UnknownError);
        ck_assert_ptr_nonnull(strstr(r->got->error->message, "Error when resetting subscription"));
    }
    ck_assert_uint_eq(refused, 1);
    finish();
}
END_TEST

START_TEST(who_subscribes_meanwhile_waits_for_the_end_of_the_seek)
{
    begin();
    publish(4);
    raw_subscribed(r, 1, TOPIC, "s");
    inn_stop_bookie(inn);
    put_seek(r, 1, 60, &ids[2], NULL);
    expect_closed(r, 1);
    raw_subscribe(r, 1, 61, TOPIC, "s");
    raw_expect_nothing(r);
    inn_start_bookie(inn);
    raw_expect_success(r, 60);
    raw_expect_success(r, 61);
    raw_flow(r, 1, 100);
    expect_some(r, 2, 4);
    finish();
}
END_TEST

START_TEST(a_seek_that_cannot_be_written_does_not_keep_the_broker_from_closing)
{
    begin();
    publish(4);
    raw_subscribed(r, 1, TOPIC, "s");
    inn_stop_bookie(inn);
    put_seek(r, 1, 60, &ids[2], NULL);
    expect_closed(r, 1);
    raw_subscribe(r, 1, 61, TOPIC, "s");
    raw_expect_nothing(r);
    inn_stop_broker(inn);
    inn_start_bookie(inn);
    inn_start_broker(inn);
    raw_drop(&r);
    r = another();
    raw_subscribed(r, 1, TOPIC, "s");
    raw_flow(r, 1, 100);
    raw_expect(r, RAW_TYPE(MESSAGE));
    finish();
}
END_TEST

/* What the one before had sent and was not read yet counts as its being alive. */
static void subscribed_in_the_end(struct raw *c)
{
    do {
        raw_subscribe(c, 1, 61, TOPIC, "s");
        raw_get(c);
    } while (c->got->type == RAW_TYPE(ERROR) &&
             c->got->error->error == PULSAR__PROTO__SERVER_ERROR__ConsumerBusy);
    ck_assert_int_eq(c->got->type, RAW_TYPE(SUCCESS));
}

START_TEST(a_connection_that_dies_in_a_seek_leaves_nothing_behind)
{
    begin_kept();
    publish(20);
    for (unsigned round = 0; round < 30; round++) {
        const uint64_t ms = 1000 + 10 * round;
        struct raw *c = another();
        subscribed_in_the_end(c);
        raw_flow(c, 1, 5);
        if (round % 2)
            put_seek(c, 1, 60, &ids[round % 20], NULL);
        else
            put_seek(c, 1, 60, NULL, &ms);
        while (round % 3 == 0 && raw_get(c)->type != RAW_TYPE(CLOSE_CONSUMER))
            continue;
        raw_drop(&c);
    }
    subscribed_in_the_end(r);
    sought_id(ids[7]);
    expect_some(r, 7, 20);
    finish();
}
END_TEST

START_TEST(a_seek_stays_over_a_restart_of_the_broker)
{
    begin_kept();
    publish(9);
    raw_subscribed(r, 1, TOPIC, "s");
    raw_flow(r, 1, 100);
    expect_some(r, 0, 9);
    raw_ack(r, 1, ids[8], true);
    put_seek(r, 1, 60, &ids[8], NULL);
    expect_closed(r, 1);
    raw_expect_success(r, 60);
    raw_drop(&r);
    inn_stop_broker(inn);
    inn_start_broker(inn);
    r = another();
    raw_subscribed(r, 1, TOPIC, "s");
    raw_flow(r, 1, 100);
    expect_some(r, 8, 9);
    raw_expect_nothing(r);
    finish();
}
END_TEST

/* ---- readers ---- */

struct reader {
    uint64_t id;
    const char *name;
    msg_id *start;
    uint64_t back_s;
    bool durable, compacted;
    int type;
};

static void put_reader(struct raw *c, struct reader how)
{
    RAW(base, SUBSCRIBE, subscribe, CommandSubscribe, COMMAND_SUBSCRIBE, s);

    s.topic = (char *)(uintptr_t)TOPIC;
    s.subscription = (char *)(uintptr_t)(how.name ? how.name : "reader");
    s.subtype = (Pulsar__Proto__CommandSubscribe__SubType)how.type;
    s.consumer_id = how.id;
    s.request_id = 800 + how.id;
    s.has_durable = true;
    s.durable = how.durable;
    s.start_message_id = how.start;
    s.has_start_message_rollback_duration_sec = how.back_s > 0;
    s.start_message_rollback_duration_sec = how.back_s;
    s.has_read_compacted = s.read_compacted = how.compacted;
    raw_put(c, &base);
}

static void reads(struct reader how)
{
    put_reader(r, how);
    raw_expect_success(r, 800 + how.id);
    raw_flow(r, how.id, 100);
}

static bool says(const char *path, const char *what)
{
    char *got = inn_get(inn, path);
    bool found = strstr(got, what) != NULL;

    mem_free(got);
    return found;
}

static void until_gone(const char *name)
{
    for (unsigned i = 0; says(PATH "/subscriptions", name); i++) {
        ck_assert_uint_lt(i, 1000);
        usleep(5000);
    }
}

START_TEST(a_reader_starts_where_it_is_told)
{
    msg_id earliest = sentinel(NEVER), latest = sentinel(LATEST);

    begin_kept();
    publish(8);
    reads((struct reader){.id = 1, .name = "a", .start = &earliest});
    expect_some(r, 0, 8);
    reads((struct reader){.id = 2, .name = "b", .start = &ids[3]});
    expect_some(r, 3, 8);
    reads((struct reader){.id = 3, .name = "c", .start = &latest});
    reads((struct reader){.id = 4, .name = "d"});
    raw_expect_nothing(r);
    begin_publishing();
    publish_one(8, (struct made){.ms = 5000});
    expect_some(r, 8, 9);
    expect_some(r, 8, 9);
    expect_some(r, 8, 9);
    expect_some(r, 8, 9);
    raw_expect_nothing(r);
    end_publishing();
    finish();
}
END_TEST

START_TEST(a_reader_is_listed_and_goes_with_its_last_consumer)
{
    begin();
    publish(3);
    reads((struct reader){.id = 1});
    ck_assert(says(PATH "/subscriptions", "\"reader\""));
    ck_assert(says(PATH "/stats", "\"isDurable\":false"));
    ck_assert(says("/lgm/v1/persistent/public/default/t/explain", "\"reader\""));
    raw_ack(r, 1, ids[2], true);
    raw_close_consumer(r, 1, 5);
    until_gone("\"reader\"");
    reads((struct reader){.id = 1, .start = &ids[1]});
    expect_some(r, 1, 3);
    raw_drop(&r);
    until_gone("\"reader\"");
    finish();
}
END_TEST

START_TEST(names_are_durable_or_not)
{
    begin();
    raw_subscribed(r, 1, TOPIC, "s");
    put_reader(r, (struct reader){.id = 2, .name = "s"});
    raw_expect_error(r, 802, PULSAR__PROTO__SERVER_ERROR__NotAllowedError);
    raw_close_consumer(r, 1, 5);
    put_reader(r, (struct reader){.id = 2, .name = "s"});
    raw_expect_error(r, 802, PULSAR__PROTO__SERVER_ERROR__NotAllowedError);
    reads((struct reader){.id = 3, .name = "n"});
    put_reader(r, (struct reader){.id = 4, .name = "n", .durable = true});
    raw_expect_error(r, 804, PULSAR__PROTO__SERVER_ERROR__NotAllowedError);
    finish();
}
END_TEST

START_TEST(what_was_compacted_is_read_by_one)
{
    begin();
    publish(2);
    reads((struct reader){.id = 1, .name = "a", .compacted = true, .start = &ids[0]});
    expect_some(r, 0, 2);
    put_reader(r, (struct reader){.id = 2, .name = "b", .compacted = true, .type = 1});
    raw_expect_error(r, 802, PULSAR__PROTO__SERVER_ERROR__NotAllowedError);
    finish();
}
END_TEST

static bool has_trimmed(void)
{
    char first[48];

    snprintf(first, sizeof(first), "\"ledgerId\":%" PRIu64 ",", ids[0].ledgerid);
    return !says(PATH "/internalStats", first);
}

START_TEST(a_reader_holds_nothing_back_and_goes_on_at_what_is_there)
{
    msg_id earliest = sentinel(NEVER);

    begin_small();
    put_reader(r, (struct reader){.id = 1, .start = &earliest});
    raw_expect_success(r, 801);
    publish(12);
    for (unsigned i = 0; !has_trimmed(); i++) {
        ck_assert_uint_lt(i, 1000);
        usleep(5000);
    }
    raw_flow(r, 1, 100);
    raw_expect(r, RAW_TYPE(MESSAGE));
    ck_assert_uint_gt(r->got->message->message_id->ledgerid, ids[0].ledgerid);
    finish();
}
END_TEST

START_TEST(some_time_back)
{
    const uint64_t now = loop_wall_ms();

    begin();
    begin_publishing();
    for (unsigned i = 0; i < 10; i++)
        publish_one(i, (struct made){.ms = now - 1000 * 100 * (10 - i)});
    reads((struct reader){.id = 1, .name = "reader", .back_s = 350});
    expect_some(r, 7, 10);
    reads((struct reader){.id = 2, .name = "durable", .durable = true, .back_s = 550});
    expect_some(r, 5, 10);
    reads((struct reader){.id = 3, .name = "long", .durable = true, .back_s = UINT64_MAX});
    expect_some(r, 0, 10);
    raw_expect_nothing(r);
    end_publishing();
    finish();
}
END_TEST

START_TEST(a_reader_that_seeks_finds_the_place_again)
{
    msg_id earliest = sentinel(NEVER);
    const uint64_t ms = 1045;

    begin();
    publish(8);
    reads((struct reader){.id = 1, .start = &earliest});
    expect_some(r, 0, 8);
    put_seek(r, 1, 60, NULL, &ms);
    expect_closed(r, 1);
    raw_expect_success(r, 60);
    reads((struct reader){.id = 1, .start = &earliest});
    expect_some(r, 5, 8);
    put_seek(r, 1, 60, &ids[6], NULL);
    expect_closed(r, 1);
    raw_expect_success(r, 60);
    ck_assert(says(PATH "/subscriptions", "\"reader\"")); /* though nobody is there */
    reads((struct reader){.id = 1, .start = &earliest});
    expect_some(r, 6, 8);
    raw_close_consumer(r, 1, 5);
    until_gone("\"reader\"");
    finish();
}
END_TEST

START_TEST(a_reader_that_does_not_come_back_from_a_seek_is_no_obstacle)
{
    begin();
    publish(8);
    reads((struct reader){.id = 1, .start = &ids[0]});
    put_seek(r, 1, 60, &ids[6], NULL);
    raw_drop(&r);
    inn_stop_broker(inn);
    inn_start_broker(inn);
    r = another();
    reads((struct reader){.id = 1, .start = &ids[7]});
    expect_some(r, 7, 8);
    finish();
}
END_TEST

START_TEST(a_reader_unsubscribes)
{
    begin();
    reads((struct reader){.id = 1});
    RAW(base, UNSUBSCRIBE, unsubscribe, CommandUnsubscribe, COMMAND_UNSUBSCRIBE, u);
    u.consumer_id = 1;
    u.request_id = 30;
    raw_put(r, &base);
    raw_expect_success(r, 30);
    until_gone("\"reader\"");
    finish();
}
END_TEST

/* ---- the last message ---- */

static Pulsar__Proto__MessageIdData last_of(uint64_t consumer)
{
    RAW(base, GET_LAST_MESSAGE_ID, getlastmessageid, CommandGetLastMessageId,
        COMMAND_GET_LAST_MESSAGE_ID, g);

    g.consumer_id = consumer;
    g.request_id = 40;
    raw_put(r, &base);
    raw_expect(r, RAW_TYPE(GET_LAST_MESSAGE_ID_RESPONSE));
    ck_assert_ptr_nonnull(r->got->getlastmessageidresponse->consumer_mark_delete_position);
    return *r->got->getlastmessageidresponse->last_message_id;
}

START_TEST(markers_are_not_the_last_message)
{
    begin();
    reads((struct reader){.id = 1});
    begin_publishing();
    publish_one(0, (struct made){.ms = 1, .marker = 21});
    ck_assert_uint_eq(last_of(1).entryid, UINT64_MAX);
    publish_one(1, (struct made){.ms = 1, .batch = 3});
    publish_one(2, (struct made){.ms = 1, .marker = 21});
    publish_one(3, (struct made){.ms = 1, .marker = 22});
    raw_expect(r, RAW_TYPE(MESSAGE));
    ck_assert_uint_eq(last_of(1).entryid, ids[1].entryid);
    ck_assert_int_eq(last_of(1).batch_index, 2);
    end_publishing();
    finish();
}
END_TEST

int main(void)
{
    return suite_run(
        "seeking",
        (suite_case[]){
            SUITE_CASE(a_seek_goes_to_the_entry_that_it_names),
            SUITE_CASE(a_seek_to_either_end),
            SUITE_CASE(a_seek_to_where_nothing_is_goes_to_what_is_next),
            SUITE_CASE(acknowledgements_are_forgotten_by_a_seek),
            SUITE_CASE(a_seek_by_time_over_several_ledgers),
            SUITE_CASE(a_seek_on_a_topic_without_messages),
            SUITE_CASE(within_a_batch_only_the_rest_of_it_comes),
            SUITE_CASE(every_consumer_is_closed_before_the_answer),
            SUITE_CASE(seeks_that_are_refused),
            SUITE_CASE(of_two_seeks_at_once_one_is_refused),
            SUITE_CASE(who_subscribes_meanwhile_waits_for_the_end_of_the_seek),
            SUITE_CASE(a_seek_that_cannot_be_written_does_not_keep_the_broker_from_closing),
            SUITE_CASE(a_connection_that_dies_in_a_seek_leaves_nothing_behind),
            SUITE_CASE(a_seek_stays_over_a_restart_of_the_broker),
            SUITE_CASE(a_reader_starts_where_it_is_told),
            SUITE_CASE(a_reader_is_listed_and_goes_with_its_last_consumer),
            SUITE_CASE(names_are_durable_or_not),
            SUITE_CASE(what_was_compacted_is_read_by_one),
            SUITE_CASE(a_reader_holds_nothing_back_and_goes_on_at_what_is_there),
            SUITE_CASE(some_time_back),
            SUITE_CASE(a_reader_that_seeks_finds_the_place_again),
            SUITE_CASE(a_reader_that_does_not_come_back_from_a_seek_is_no_obstacle),
            SUITE_CASE(a_reader_unsubscribes),
            SUITE_CASE(markers_are_not_the_last_message),
            {0},
        });
}
