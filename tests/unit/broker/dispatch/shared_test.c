/* The shared dispatcher: stories of one thing each, and lives by seed in which nothing may be lost
 * or be at two consumers. */
#include "broker/dispatch/shared.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "tests/lib/suite.h"

static char told[8192];

static void tell(const char *fmt, ...) __attribute__((format(printf, 1, 2)));
static void tell(const char *fmt, ...)
{
    size_t len = strlen(told);
    va_list args;

    va_start(args, fmt);
    vsnprintf(told + len, sizeof(told) - len, fmt, args);
    va_end(args);
}

static const char *heard(void)
{
    static char copy[sizeof(told)];

    memcpy(copy, told, sizeof(told));
    told[0] = '\0';
    return copy;
}

static struct position at(int64_t entry)
{
    return (struct position){.ledger = 1, .entry = entry};
}

/* ---- stories ---- */

static void do_read(struct shared *s, struct position from, unsigned max)
{
    (void)s;
    tell(" read %lld max %u", (long long)from.entry, max);
}

static void do_replay(struct shared *s, const struct cursor_set *only, unsigned max)
{
    struct cursor_set_walk w = cursor_set_walk(only);

    (void)s, (void)max;
    tell(" replay");
    while (cursor_set_walk_next(&w))
        for (int64_t e = w.first; e <= w.last; e++)
            tell(" %lld", (long long)e);
}

static void do_cancel(struct shared *s)
{
    (void)s;
    tell(" cancel");
}

static void do_retry(struct shared *s)
{
    (void)s;
    tell(" retry-later");
}

static const struct shared_fx fx = {
    .read = do_read, .replay = do_replay, .cancel_read = do_cancel, .retry_later = do_retry};
static const struct shared_conf conf = {
    .batch_max = 10, .turn_max = 2, .out_max = 2, .known_max = 1000};

static struct shared_consumer who[4];

static void begin_with(struct shared *s, const struct shared_conf *c, int64_t end)
{
    told[0] = '\0';
    shared_init(s, &fx, c);
    s->next = at(0);
    shared_grew(s, at(end));
}

static void begin(struct shared *s, int64_t end)
{
    begin_with(s, &conf, end);
}

static void look_at(struct shared *s, struct shared_seen e)
{
    struct shared_choice c = shared_entry(s, &e);

    if (c.verdict == SHARED_SEND)
        tell(" %lld>%c", (long long)e.at.entry, (char)('a' + (c.to - who)));
    else
        tell(" %s %lld", c.verdict == SHARED_SKIP ? "skip" : "leave", (long long)e.at.entry);
    if (c.redeliveries)
        tell("(%u)", c.redeliveries);
}

/* A read that found entries first..last, each with so many messages. */
static void found(struct shared *s, int64_t first, int64_t last, uint32_t messages)
{
    for (int64_t e = first; e <= last; e++)
        look_at(s, (struct shared_seen){.at = at(e), .messages = messages});
    tell(" done");
    shared_read_done(s, ERR_OK, at(last + 1));
    shared_check(s);
}

static void arrived(struct shared *s)
{
    for (unsigned i = 0; i < 4; i++)
        while (who[i].out > 0)
            shared_delivered(s, &who[i]);
}

static void end(struct shared *s, unsigned consumers)
{
    for (unsigned i = 0; i < consumers; i++)
        shared_left(s, &who[i]);
    shared_drop(s);
    memset(who, 0, sizeof(who));
}

START_TEST(nothing_is_read_without_permits)
{
    struct shared s;

    begin(&s, 4);
    shared_came(&s, &who[0], 0);
    ck_assert_str_eq(heard(), "");
    shared_flow(&s, &who[0], 3);
    ck_assert_str_eq(heard(), " read 0 max 3");
    end(&s, 1);
}
END_TEST

START_TEST(consumers_take_turns)
{
    struct shared s;

    begin(&s, 9);
    for (unsigned i = 0; i < 3; i++)
        shared_came(&s, &who[i], 0);
    shared_flow(&s, &who[0], 100);
    heard();
    shared_flow(&s, &who[1], 1);
    shared_flow(&s, &who[2], 100);
    found(&s, 0, 6, 1);
    ck_assert_str_eq(heard(), " 0>a 1>a 2>b 3>c 4>c 5>a 6>a done read 7 max 10");
    end(&s, 3);
}
END_TEST

START_TEST(a_lower_level_gets_what_the_higher_cannot_take)
{
    struct shared s;

    begin(&s, 9);
    shared_came(&s, &who[0], 5);
    shared_came(&s, &who[1], 0);
    shared_flow(&s, &who[1], 3);
    heard();
    shared_flow(&s, &who[0], 100);
    found(&s, 0, 4, 1);
    ck_assert_str_eq(heard(), " 0>b 1>b 2>b 3>a 4>a done read 5 max 10");
    end(&s, 2);
}
END_TEST

START_TEST(a_batch_may_overshoot_and_permits_recover)
{
    struct shared s;

    begin(&s, 9);
    shared_came(&s, &who[0], 0);
    shared_flow(&s, &who[0], 5);
    found(&s, 0, 1, 8);
    ck_assert_str_eq(heard(), " read 0 max 5 0>a leave 1 done");
    ck_assert_int_eq(who[0].permits, -3);
    shared_flow(&s, &who[0], 3);
    ck_assert_str_eq(heard(), "");
    shared_flow(&s, &who[0], 1);
    ck_assert_str_eq(heard(), " replay 1");
    end(&s, 1);
}
END_TEST

START_TEST(given_back_comes_before_new_and_is_counted)
{
    struct shared s;
    struct position back[] = {at(1), at(7)};

    begin(&s, 2);
    shared_came(&s, &who[0], 0);
    shared_flow(&s, &who[0], 100);
    found(&s, 0, 2, 1);
    heard();
    shared_redeliver(&s, &who[0], back, 2);
    ck_assert_str_eq(heard(), " replay 1");
    shared_grew(&s, at(3));
    found(&s, 1, 1, 1);
    ck_assert_str_eq(heard(), " 1>a(1) done");
    arrived(&s);
    ck_assert_str_eq(heard(), " read 3 max 10");
    ck_assert_uint_eq(shared_redeliveries(&s, at(1)), 1);
    end(&s, 1);
}
END_TEST

START_TEST(only_who_holds_it_may_give_it_back)
{
    struct shared s;
    struct position back = at(0);

    begin(&s, 0);
    shared_came(&s, &who[0], 0);
    shared_came(&s, &who[1], 0);
    shared_flow(&s, &who[0], 100);
    found(&s, 0, 0, 1);
    heard();
    shared_redeliver(&s, &who[1], &back, 1);
    ck_assert_str_eq(heard(), "");
    shared_redeliver(&s, &who[0], NULL, 0);
    ck_assert_str_eq(heard(), " replay 0");
    end(&s, 2);
}
END_TEST

START_TEST(what_a_consumer_held_goes_to_the_others)
{
    struct shared s;

    begin(&s, 3);
    shared_came(&s, &who[0], 0);
    shared_came(&s, &who[1], 0);
    shared_flow(&s, &who[0], 100);
    found(&s, 0, 3, 1);
    shared_flow(&s, &who[1], 100);
    shared_acked(&s, (struct position[]){at(1)}, 1);
    heard();
    shared_left(&s, &who[0]);
    ck_assert_str_eq(heard(), " replay 0 2 3");
    look_at(&s, (struct shared_seen){.at = at(0), .messages = 1});
    shared_acked(&s, (struct position[]){at(2)}, 1);
    look_at(&s, (struct shared_seen){.at = at(2), .messages = 1});
    look_at(&s, (struct shared_seen){.at = at(3), .messages = 1});
    shared_read_done(&s, ERR_OK, at(4));
    ck_assert_str_eq(heard(), " 0>b leave 2 3>b");
    shared_check(&s);
    who[0] = who[1];
    shared_left(&s, &who[1]);
    shared_drop(&s);
}
END_TEST

START_TEST(an_ack_of_another_consumer_counts)
{
    struct shared s;

    begin(&s, 0);
    shared_came(&s, &who[0], 0);
    shared_flow(&s, &who[0], 100);
    found(&s, 0, 0, 5);
    ck_assert_int_eq(who[0].unacked, 5);
    shared_acked_part(&s, at(0), 2);
    ck_assert_int_eq(who[0].unacked, 2);
    shared_acked(&s, (struct position[]){at(0)}, 1);
    ck_assert_int_eq(who[0].unacked, 0);
    ck_assert_uint_eq(shared_n_known(&s), 0);
    end(&s, 1);
}
END_TEST

START_TEST(a_consumer_is_blocked_until_half_is_acknowledged)
{
    struct shared s;
    struct shared_conf c = conf;

    c.max_unacked = 4;
    begin_with(&s, &c, 9);
    shared_came(&s, &who[0], 0);
    shared_flow(&s, &who[0], 100);
    found(&s, 0, 5, 1);
    arrived(&s);
    ck_assert_str_eq(heard(), " read 0 max 10 0>a 1>a 2>a 3>a leave 4 leave 5 done");
    shared_acked(&s, (struct position[]){at(0)}, 1);
    ck_assert_str_eq(heard(), "");
    shared_acked(&s, (struct position[]){at(1)}, 1);
    ck_assert_str_eq(heard(), " replay 4 5");
    end(&s, 1);
}
END_TEST

START_TEST(a_subscription_is_blocked_too)
{
    struct shared s;
    struct shared_conf c = conf;

    c.max_unacked_all = 2;
    begin_with(&s, &c, 9);
    shared_came(&s, &who[0], 0);
    shared_came(&s, &who[1], 0);
    shared_flow(&s, &who[0], 1);
    shared_flow(&s, &who[1], 100);
    found(&s, 0, 3, 1);
    ck_assert_str_eq(heard(), " read 0 max 1 0>a 1>b leave 2 leave 3 done");
    shared_acked(&s, (struct position[]){at(0)}, 1);
    ck_assert_str_eq(heard(), " replay 2 3");
    end(&s, 2);
}
END_TEST

START_TEST(other_limits_hold_at_once)
{
    struct shared s;
    struct shared_conf c = conf;

    begin_with(&s, &c, 9);
    shared_came(&s, &who[0], 0);
    shared_flow(&s, &who[0], 3);
    found(&s, 0, 2, 1);
    arrived(&s);
    heard();
    c.max_unacked = 3;
    shared_limit(&s, &c);
    shared_check(&s);
    shared_flow(&s, &who[0], 10);
    ck_assert_str_eq(heard(), "");
    c.max_unacked = 0;
    c.max_unacked_all = 3;
    shared_limit(&s, &c);
    shared_check(&s);
    ck_assert_str_eq(heard(), "");
    c.max_unacked_all = 0;
    shared_limit(&s, &c);
    ck_assert_str_eq(heard(), " read 3 max 10");
    end(&s, 1);
}
END_TEST

static void chunk(struct shared *s, int64_t e, bool last)
{
    look_at(s, (struct shared_seen){
                   .at = at(e), .messages = 1, .uuid = view_of("uuid", 4), .last_chunk = last});
}

START_TEST(chunks_of_one_message_go_to_one_consumer)
{
    struct shared s;

    begin(&s, 9);
    for (unsigned i = 0; i < 2; i++) {
        shared_came(&s, &who[i], 0);
        shared_flow(&s, &who[i], 3);
    }
    heard();
    chunk(&s, 0, false);
    chunk(&s, 1, false);
    chunk(&s, 2, false);
    chunk(&s, 3, true);
    look_at(&s, (struct shared_seen){.at = at(4), .messages = 1});
    shared_read_done(&s, ERR_OK, at(5));
    ck_assert_str_eq(heard(), " 0>a 1>a 2>a leave 3 4>b replay 3");
    chunk(&s, 3, true);
    shared_read_done(&s, ERR_OK, at(5));
    ck_assert_str_eq(heard(), " leave 3 read 5 max 2");
    shared_flow(&s, &who[0], 1);
    found(&s, 5, 6, 1);
    heard();
    shared_check(&s);
    end(&s, 2);
}
END_TEST

START_TEST(chunks_begin_again_with_the_first_when_their_consumer_leaves)
{
    struct shared s;

    begin(&s, 9);
    for (unsigned i = 0; i < 2; i++)
        shared_came(&s, &who[i], 0);
    shared_flow(&s, &who[0], 9);
    chunk(&s, 0, false);
    shared_read_done(&s, ERR_OK, at(1));
    shared_flow(&s, &who[1], 9);
    heard();
    shared_left(&s, &who[0]);
    chunk(&s, 1, true);
    shared_read_done(&s, ERR_OK, at(2));
    ck_assert_str_eq(heard(), " leave 1 replay 0 1");
    chunk(&s, 0, false);
    chunk(&s, 1, true);
    ck_assert_str_eq(heard(), " 0>b 1>b");
    shared_read_done(&s, ERR_OK, at(2));
    who[0] = who[1];
    shared_left(&s, &who[1]);
    shared_drop(&s);
}
END_TEST

START_TEST(what_is_gone_is_not_asked_for_again)
{
    struct shared s;

    begin(&s, 2);
    shared_came(&s, &who[0], 0);
    shared_flow(&s, &who[0], 100);
    found(&s, 0, 2, 1);
    arrived(&s);
    shared_redeliver(&s, &who[0], NULL, 0);
    heard();
    shared_read_done(&s, ERR_OK, POSITION_LATEST);
    ck_assert_str_eq(heard(), "");
    ck_assert_uint_eq(shared_n_known(&s), 0);
    shared_check(&s);
    end(&s, 1);
}
END_TEST

START_TEST(a_failed_read_is_tried_again)
{
    struct shared s;

    begin(&s, 2);
    shared_came(&s, &who[0], 0);
    shared_flow(&s, &who[0], 100);
    heard();
    shared_read_done(&s, ERR_TIMEOUT, at(0));
    shared_flow(&s, &who[0], 100);
    ck_assert_str_eq(heard(), " retry-later");
    shared_retry(&s);
    ck_assert_str_eq(heard(), " read 0 max 10");
    end(&s, 1);
}
END_TEST

START_TEST(a_rewind_and_a_halt_cancel_the_read)
{
    struct shared s;

    begin(&s, 5);
    shared_came(&s, &who[0], 0);
    shared_flow(&s, &who[0], 100);
    heard();
    shared_rewind(&s, at(3));
    ck_assert_str_eq(heard(), " cancel read 3 max 10");
    shared_halt(&s, true);
    shared_flow(&s, &who[0], 1);
    ck_assert_str_eq(heard(), " cancel");
    shared_halt(&s, false);
    ck_assert_str_eq(heard(), " read 3 max 10");
    end(&s, 1);
}
END_TEST

int main(void)
{
    return suite_run("shared",
                     (suite_case[]){
                         SUITE_CASE(nothing_is_read_without_permits),
                         SUITE_CASE(consumers_take_turns),
                         SUITE_CASE(a_lower_level_gets_what_the_higher_cannot_take),
                         SUITE_CASE(a_batch_may_overshoot_and_permits_recover),
                         SUITE_CASE(given_back_comes_before_new_and_is_counted),
                         SUITE_CASE(only_who_holds_it_may_give_it_back),
                         SUITE_CASE(what_a_consumer_held_goes_to_the_others),
                         SUITE_CASE(an_ack_of_another_consumer_counts),
                         SUITE_CASE(a_consumer_is_blocked_until_half_is_acknowledged),
                         SUITE_CASE(a_subscription_is_blocked_too),
                         SUITE_CASE(other_limits_hold_at_once),
                         SUITE_CASE(chunks_of_one_message_go_to_one_consumer),
                         SUITE_CASE(chunks_begin_again_with_the_first_when_their_consumer_leaves),
                         SUITE_CASE(what_is_gone_is_not_asked_for_again),
                         SUITE_CASE(a_failed_read_is_tried_again),
                         SUITE_CASE(a_rewind_and_a_halt_cancel_the_read),
                         {0},
                     });
}
