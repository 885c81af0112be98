/* Back-pressure on one producer, never on its socket; and clients that ask and do not read. */
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "broker/session/put_off.h"
#include "common/mem.h"
#include "tests/lib/suite.h"
#include "tests/unit/broker/session/scene.h"

#define TOPIC "persistent://public/default/t"
#define OTHER "persistent://public/default/other"

/* ---- how much is whose ---- */

START_TEST(each_may_have_what_is_left_for_the_others)
{
    ck_assert(put_off_has_room(100, 0, 0, 100));
    ck_assert(!put_off_has_room(100, 0, 0, 101));
    ck_assert(put_off_has_room(100, 49, 49, 2));
    ck_assert(!put_off_has_room(100, 50, 50, 1));
    ck_assert(put_off_has_room(100, 50, 0, 50)); /* another */
    ck_assert(!put_off_has_room(100, 100, 0, 1));
    ck_assert(!put_off_has_room(100, 130, 0, 1)); /* two loops may both take the last place */
}
END_TEST

START_TEST(who_sends_without_end_shares_with_those_who_do_too)
{
    size_t own[5] = {0}, used = 0;

    for (bool went = true; went;) {
        went = false;
        for (unsigned i = 0; i < 5; i++)
            if (put_off_has_room(6000, used, own[i], 1)) {
                own[i]++, used++;
                went = true;
            }
    }
    for (unsigned i = 0; i < 5; i++)
        ck_assert_uint_ge(own[i], 999);
    ck_assert(put_off_has_room(6000, used, 0, 900)); /* and a sixth finds room */
}
END_TEST

START_TEST(answers_are_counted_until_they_leave)
{
    struct unsent u = {0};
    size_t waiting = 0;

    for (unsigned i = 0; i < 100; i++) {
        unsent_put_answer(&u, 10);
        waiting += 10;
        ck_assert_uint_eq(unsent_answers(&u, waiting), (i + 1) * (10 + UNSENT_OVERHEAD));
    }
    ck_assert_uint_eq(unsent_answers(&u, 0), 0);
    for (unsigned i = 0; i < 1000; i++) { /* it reads, with 5,000 bytes always behind */
        unsent_put(&u, 90);
        unsent_put_answer(&u, 10);
        waiting = i < 50 ? (i + 1) * 100 : 5000;
        ck_assert_uint_le(unsent_answers(&u, waiting), 101 * (10 + UNSENT_OVERHEAD));
        ck_assert_uint_ge(unsent_answers(&u, waiting), waiting / 10);
    }
}
END_TEST

/* ---- one producer ---- */

enum { LARGE = 1024 * 1024, MANY = 20 };

static char *large(uint64_t i)
{
    char *text = mem_alloc(LARGE + 1);

    memset(text, 'a' + (int)(i % 26), LARGE);
    text[LARGE] = '\0';
    return text;
}

static void send_large(uint64_t producer, uint64_t from, uint64_t to)
{
    for (uint64_t i = from; i < to; i++) {
        char *text = large(i);
        raw_send(r, producer, i, text);
        mem_free(text);
    }
}

/* Receipts in order, then CLOSE_PRODUCER: gives the first that was not taken. */
static uint64_t receipts_until_closed(uint64_t producer, uint64_t from)
{
    for (;; from++) {
        const raw_command *c = raw_get(r);
        if (c->type == RAW_TYPE(CLOSE_PRODUCER)) {
            ck_assert_uint_eq(c->close_producer->producer_id, producer);
            ck_assert_uint_eq(c->close_producer->request_id, UINT64_MAX);
            return from;
        }
        ck_assert_int_eq((int)c->type, (int)RAW_TYPE(SEND_RECEIPT));
        ck_assert_uint_eq(c->send_receipt->sequence_id, from);
    }
}

/* As clients do it: again, until all were answered. */
static void send_the_rest(uint64_t next)
{
    while (next < MANY) {
        raw_producer_ready(r, 1, TOPIC);
        send_large(1, next, MANY);
        for (; next < MANY; next++) {
            const raw_command *c = raw_get(r);
            if (c->type == RAW_TYPE(CLOSE_PRODUCER))
                break;
            ck_assert_int_eq((int)c->type, (int)RAW_TYPE(SEND_RECEIPT));
            ck_assert_uint_eq(c->send_receipt->sequence_id, next);
        }
    }
}

static void begin_full(void)
{
    begin_with("maxMessagePublishBufferSizeInMB=1"); /* two of the largest, in truth */
    raw_producer_ready(r, 1, TOPIC);
    raw_subscribed(r, 5, TOPIC, "s");
    inn_stop_bookie(inn);
    send_large(1, 0, MANY);
    while (inn_metric(inn, "lgm_producers_put_off_total") < 1)
        usleep(10000);
}

static void check_all_came_once(void)
{
    raw_flow(r, 5, 100);
    for (uint64_t i = 0; i < MANY; i++) {
        char *text = large(i);
        raw_message(r, text);
        mem_free(text);
    }
    raw_expect_nothing(r);
}

START_TEST(the_socket_goes_on_and_nothing_is_lost)
{
    begin_full();
    ck_assert_int_le(inn_metric(inn, "lgm_publish_accepted_bytes"), 6 * LARGE);
    raw_expect_nothing(r); /* but a PONG */
    raw_lookup(r, 1, TOPIC);
    raw_expect(r, RAW_TYPE(LOOKUP_RESPONSE));
    raw_flow(r, 5, 1);
    raw_producer_ready(r, 2, OTHER); /* another has its own room */
    raw_send(r, 2, 0, "mine");
    raw_expect_nothing(r);
    inn_start_bookie(inn);
    uint64_t next = 0;
    for (bool mine = false, closed = false; !mine || !closed;) {
        const raw_command *c = raw_get(r);
        if (c->type == RAW_TYPE(MESSAGE))
            continue; /* the one that was permitted */
        if (c->type == RAW_TYPE(CLOSE_PRODUCER)) {
            ck_assert_uint_eq(c->close_producer->producer_id, 1);
            closed = true;
        } else if (c->send_receipt->producer_id == 2) {
            mine = true;
        } else {
            ck_assert_uint_eq(c->send_receipt->sequence_id, next++);
        }
    }
    ck_assert_uint_gt(next, 2);
    ck_assert_uint_lt(next, 7);
    ck_assert_int_eq(inn_metric(inn, "pulsar_broker_producers_count"), 2); /* it kept its place */
    raw_send(r, 1, MANY, "was under way: dropped");
    raw_publish(r, 2, 1, "mine too");
    send_the_rest(next);
    raw_close_consumer(r, 5, 9);
    raw_subscribed(r, 5, TOPIC, "s");
    check_all_came_once();
    ck_assert_int_eq(inn_metric(inn, "lgm_publish_accepted_bytes"), 0);
    finish();
}
END_TEST

/* Producers come, each with one message, until one finds no room: it is told at once. */
static uint64_t fill_up(void)
{
    RAW(base, PING, ping, CommandPing, COMMAND_PING, ping);

    for (uint64_t id = 2;; id++) {
        raw_producer_ready(r, id, OTHER);
        send_large(id, 0, 1);
        raw_put(r, &base);
        const raw_command *c = raw_get(r);
        if (c->type == RAW_TYPE(CLOSE_PRODUCER)) {
            ck_assert_uint_eq(c->close_producer->producer_id, id);
            raw_expect(r, RAW_TYPE(PONG));
            return id;
        }
        ck_assert_int_eq((int)c->type, (int)RAW_TYPE(PONG));
        ck_assert_uint_lt(id, 20);
    }
}

static bool explained(const char *what)
{
    char *got = inn_get(inn, "/lgm/v1/persistent/public/default/t/explain");
    bool is = strstr(got, what) != NULL;

    if (!is)
        printf("%s\n", got);
    mem_free(got);
    return is;
}

START_TEST(an_administrator_is_told_who_it_is)
{
    begin_full();
    ck_assert(explained("\"putOff\":[\"test-"));
    ck_assert(explained("\"reason\":\"no-quorum\"")); /* which comes first */
    inn_start_bookie(inn);
    const uint64_t next = receipts_until_closed(1, 0);
    ck_assert(explained("\"reason\":\"put-off\""));
    ck_assert(explained("producer test-"));
    send_the_rest(next);
    check_all_came_once();
    finish();
}
END_TEST

START_TEST(who_comes_back_waits_for_room)
{
    begin_full();
    const uint64_t last = fill_up();
    raw_producer(r, last, 30, OTHER, NULL);
    raw_expect_nothing(r);
    raw_producer(r, last, 31, OTHER, NULL); /* impatient */
    raw_expect_error(r, 31, 6);
    raw_expect_error(r, 30, 6); /* some seconds later */
    raw_producer(r, last, 32, OTHER, NULL);
    raw_expect_nothing(r);
    inn_start_bookie(inn);
    bool closed = false, ready = false;
    while (!closed || !ready) {
        const raw_command *c = raw_get(r);
        closed |= c->type == RAW_TYPE(CLOSE_PRODUCER);
        ready |= c->type == RAW_TYPE(PRODUCER_SUCCESS) && c->producer_success->request_id == 32;
    }
    raw_send(r, last, 0, "at last");
    while (raw_get(r)->type != RAW_TYPE(SEND_RECEIPT) || r->got->send_receipt->producer_id != last)
        ;
    finish();
}
END_TEST

START_TEST(its_place_is_kept_but_not_from_one_who_asks)
{
    begin_with("maxMessagePublishBufferSizeInMB=1");
    raw_producer(r, 1, 1, TOPIC, "me");
    raw_expect(r, RAW_TYPE(PRODUCER_SUCCESS));
    inn_stop_bookie(inn);
    send_large(1, 0, 12);
    inn_start_bookie(inn);
    receipts_until_closed(1, 0);
    raw_producer(r, 1, 2, TOPIC, "me"); /* the same again */
    raw_expect(r, RAW_TYPE(PRODUCER_SUCCESS));
    inn_stop_bookie(inn);
    send_large(1, 0, 12);
    inn_start_bookie(inn);
    receipts_until_closed(1, 0);
    struct raw *n = another();
    raw_producer(n, 1, 1, TOPIC, "me"); /* its client may come by another connection */
    raw_expect(n, RAW_TYPE(PRODUCER_SUCCESS));
    raw_send(r, 1, 99, "late"); /* means nothing, as before */
    raw_expect_nothing(r);
    raw_drop(&n);
    finish();
}
END_TEST

START_TEST(it_may_be_closed_in_every_state)
{
    begin_full();
    RAW(base, CLOSE_PRODUCER, close_producer, CommandCloseProducer, COMMAND_CLOSE_PRODUCER, close);
    close.producer_id = 1;
    close.request_id = 40;
    raw_put(r, &base); /* PUT_OFF */
    inn_start_bookie(inn);
    for (uint64_t i = 0;; i++) {
        const raw_command *c = raw_get(r);
        if (c->type == RAW_TYPE(SUCCESS))
            break;
        ck_assert_uint_eq(c->send_receipt->sequence_id, i);
    }
    raw_producer_ready(r, 1, TOPIC);
    inn_stop_bookie(inn);
    send_large(1, 0, MANY);
    inn_start_bookie(inn);
    receipts_until_closed(1, 0);
    raw_close_producer(r, 1, 41); /* TOLD */
    ck_assert_int_eq(inn_metric(inn, "pulsar_broker_producers_count"), 0);
    raw_producer_ready(r, 1, TOPIC);
    raw_publish(r, 1, 0, "anew");
    raw_drop(&r); /* and the connection may go in any */
    while (inn_metric(inn, "pulsar_broker_producers_count") > 0)
        usleep(10000);
    ck_assert_int_eq(inn_metric(inn, "lgm_publish_accepted_bytes"), 0);
    finish();
}
END_TEST

START_TEST(its_connection_may_go_and_the_broker_stop)
{
    begin_full();
    raw_producer_ready(r, 3, OTHER);
    send_large(3, 0, 8);
    struct raw *n = another();
    raw_producer_ready(n, 1, OTHER);
    raw_drop(&n);
    raw_drop(&r);
    while (inn_metric(inn, "pulsar_broker_producers_count") > 0)
        usleep(10000);
    r = another();
    raw_producer_ready(r, 1, OTHER);
    send_large(1, 0, 12);
    while (inn_metric(inn, "lgm_producers_put_off_total") < 3)
        usleep(10000);
    inn_stop_broker(inn);
    raw_expect(r, RAW_TYPE(CLOSE_PRODUCER));
    raw_expect_closed(r);
    finish();
}
END_TEST

/* ---- who asks and does not read ---- */

/* The socket takes no more, or is gone: true as long as it took all. */
static bool ask(int fd, const struct slice *pings)
{
    size_t sent = 0;

    while (sent < pings->len) {
        const ssize_t n = send(fd, pings->base + sent, pings->len - sent, MSG_NOSIGNAL);
        if (n <= 0)
            return false;
        sent += (size_t)n;
    }
    return true;
}

START_TEST(who_asks_and_does_not_read_is_closed)
{
    enum { PINGS = 20000 };
    begin();
    RAW(base, PING, ping, CommandPing, COMMAND_PING, ping);
    struct slice one = command_frame(&base);
    struct slab *slab = slab_new(one.len * PINGS);
    struct slice all = slice_take(&slab, one.len * PINGS);
    for (size_t i = 0; i < PINGS; i++)
        memcpy((uint8_t *)(uintptr_t)all.base + i * one.len, one.base, one.len);
    unsigned rounds = 0;
    while (ask(r->fd, &all))
        ck_assert_uint_lt(++rounds, 1000);
    slice_drop(&one);
    slice_drop(&all);
    while (inn_metric(inn, "pulsar_active_connections") > 0)
        usleep(10000);
    struct raw *n = another();
    raw_expect_nothing(n);
    raw_drop(&n);
    finish();
}
END_TEST

int main(void)
{
    return suite_run("put_off", (suite_case[]){
                                    SUITE_CASE(each_may_have_what_is_left_for_the_others),
                                    SUITE_CASE(who_sends_without_end_shares_with_those_who_do_too),
                                    SUITE_CASE(answers_are_counted_until_they_leave),
                                    SUITE_CASE(the_socket_goes_on_and_nothing_is_lost),
                                    SUITE_CASE(an_administrator_is_told_who_it_is),
                                    SUITE_CASE(who_comes_back_waits_for_room),
                                    SUITE_CASE(its_place_is_kept_but_not_from_one_who_asks),
                                    SUITE_CASE(it_may_be_closed_in_every_state),
                                    SUITE_CASE(its_connection_may_go_and_the_broker_stop),
                                    SUITE_CASE(who_asks_and_does_not_read_is_closed),
                                    {0},
                                });
}
