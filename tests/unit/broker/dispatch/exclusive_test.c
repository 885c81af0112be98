/* The exclusive dispatcher as stories: what happens to it, and what it does then. */
#include "broker/dispatch/exclusive.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "common/mem.h"
#include "tests/lib/suite.h"

static char told[4096];

static void tell(const char *fmt, ...) __attribute__((format(printf, 1, 2)));
static void tell(const char *fmt, ...)
{
    size_t len = strlen(told);
    va_list args;

    va_start(args, fmt);
    vsnprintf(told + len, sizeof(told) - len, fmt, args);
    va_end(args);
}

static void do_read(struct exclusive *x, struct position from, unsigned max)
{
    (void)x;
    tell(" read %lld:%lld max %u", (long long)from.ledger, (long long)from.entry, max);
}

static void do_cancel(struct exclusive *x)
{
    (void)x;
    tell(" cancel");
}

static void do_retry(struct exclusive *x)
{
    (void)x;
    tell(" retry-later");
}

static const struct exclusive_fx fx = {
    .read = do_read, .cancel_read = do_cancel, .retry_later = do_retry};

static struct position at(int64_t ledger, int64_t entry)
{
    return (struct position){.ledger = ledger, .entry = entry};
}

static void begin(struct exclusive *x)
{
    told[0] = '\0';
    exclusive_init(x, &fx, 10, 2);
}

/* A read that found entries first..last of ledger 1, each with so many messages. */
static void found(struct exclusive *x, int64_t first, int64_t last, uint32_t messages)
{
    static const char *const words[] = {"send", "skip", "leave"};
    bool sent = false;

    for (int64_t e = first; e <= last; e++) {
        enum exclusive_verdict v = exclusive_entry(x, at(1, e), messages, false);
        tell(" %s %lld", words[v], (long long)e);
        sent |= v == EXCLUSIVE_SEND;
    }
    exclusive_read_done(x, ERR_OK, at(1, last + 1), sent);
}

START_TEST(nothing_is_read_without_permits)
{
    struct exclusive x;

    begin(&x);
    exclusive_came(&x, at(1, 0), at(1, 4));
    exclusive_grew(&x, at(1, 5));
    ck_assert_str_eq(told, "");
    exclusive_flow(&x, 3);
    ck_assert_str_eq(told, " read 1:0 max 3");
}
END_TEST

START_TEST(nothing_is_read_beyond_the_end)
{
    struct exclusive x;

    begin(&x);
    exclusive_came(&x, at(1, 5), at(1, 4));
    exclusive_flow(&x, 100);
    ck_assert_str_eq(told, "");
    exclusive_grew(&x, at(1, 5));
    ck_assert_str_eq(told, " read 1:5 max 10");
}
END_TEST

START_TEST(one_read_at_a_time)
{
    struct exclusive x;

    begin(&x);
    exclusive_came(&x, at(1, 0), at(1, 30));
    exclusive_flow(&x, 100);
    exclusive_flow(&x, 100);
    exclusive_grew(&x, at(1, 40));
    ck_assert_str_eq(told, " read 1:0 max 10");
    found(&x, 0, 1, 1);
    ck_assert_str_eq(told, " read 1:0 max 10 send 0 send 1 read 1:2 max 10");
}
END_TEST

START_TEST(a_batch_may_overshoot_and_permits_recover)
{
    struct exclusive x;

    begin(&x);
    exclusive_came(&x, at(1, 0), at(1, 9));
    exclusive_flow(&x, 5);
    found(&x, 0, 1, 8);
    ck_assert_str_eq(told, " read 1:0 max 5 send 0 leave 1");
    ck_assert_int_eq(x.permits, -3);
    told[0] = '\0';
    exclusive_flow(&x, 3);
    ck_assert_str_eq(told, "");
    exclusive_flow(&x, 1);
    ck_assert_str_eq(told, " read 1:1 max 1");
}
END_TEST

START_TEST(what_is_left_is_read_again_and_nothing_else)
{
    struct exclusive x;

    begin(&x);
    exclusive_came(&x, at(1, 0), at(1, 9));
    exclusive_flow(&x, 2);
    found(&x, 0, 3, 1);
    ck_assert_str_eq(told, " read 1:0 max 2 send 0 send 1 leave 2 leave 3");
    told[0] = '\0';
    exclusive_delivered(&x);
    exclusive_flow(&x, 9);
    ck_assert_str_eq(told, " read 1:2 max 9");
}
END_TEST

START_TEST(a_full_connection_stops_it)
{
    struct exclusive x;

    begin(&x);
    exclusive_came(&x, at(1, 0), at(1, 99));
    exclusive_flow(&x, 1000);
    found(&x, 0, 9, 1);
    found(&x, 10, 19, 1);
    ck_assert_ptr_null(strstr(told, "read 1:20"));
    exclusive_flow(&x, 1);
    ck_assert_ptr_null(strstr(told, "read 1:20"));
    exclusive_delivered(&x);
    ck_assert_ptr_nonnull(strstr(told, "read 1:20"));
}
END_TEST

START_TEST(a_marker_costs_no_permit)
{
    struct exclusive x;

    begin(&x);
    exclusive_came(&x, at(1, 0), at(1, 3));
    exclusive_flow(&x, 1);
    ck_assert_int_eq(exclusive_entry(&x, at(1, 0), 1, true), EXCLUSIVE_SKIP);
    ck_assert_int_eq(exclusive_entry(&x, at(1, 1), 1, false), EXCLUSIVE_SEND);
    exclusive_read_done(&x, ERR_OK, at(1, 2), true);
    ck_assert_int_eq(x.permits, 0);
}
END_TEST

START_TEST(an_empty_read_does_not_spin)
{
    struct exclusive x;

    begin(&x);
    exclusive_came(&x, at(1, 0), at(1, 3));
    exclusive_flow(&x, 5);
    exclusive_read_done(&x, ERR_OK, at(1, 0), false);
    ck_assert_str_eq(told, " read 1:0 max 5");
    exclusive_flow(&x, 1);
    ck_assert_str_eq(told, " read 1:0 max 5");
    exclusive_grew(&x, at(1, 4));
    ck_assert_str_eq(told, " read 1:0 max 5 read 1:0 max 6");
}
END_TEST

START_TEST(what_was_acknowledged_is_passed_over)
{
    struct exclusive x;

    begin(&x);
    exclusive_came(&x, at(1, 0), at(2, 3));
    exclusive_flow(&x, 5);
    exclusive_read_done(&x, ERR_OK, at(2, 0), false);
    ck_assert_str_eq(told, " read 1:0 max 5 read 2:0 max 5");
}
END_TEST

START_TEST(a_failed_read_is_tried_again_later)
{
    struct exclusive x;

    begin(&x);
    exclusive_came(&x, at(1, 0), at(1, 3));
    exclusive_flow(&x, 5);
    exclusive_read_done(&x, ERR_IO, at(1, 0), false);
    exclusive_flow(&x, 1);
    ck_assert_str_eq(told, " read 1:0 max 5 retry-later");
    exclusive_retry(&x);
    ck_assert_str_eq(told, " read 1:0 max 5 retry-later read 1:0 max 6");
}
END_TEST

START_TEST(a_redelivery_rewinds)
{
    struct exclusive x;

    begin(&x);
    exclusive_came(&x, at(1, 0), at(1, 99));
    exclusive_flow(&x, 50);
    found(&x, 0, 4, 1);
    told[0] = '\0';
    exclusive_rewind(&x, at(1, 2));
    ck_assert_str_eq(told, " cancel read 1:2 max 10");
}
END_TEST

START_TEST(the_next_consumer_starts_with_no_permits)
{
    struct exclusive x;

    begin(&x);
    exclusive_came(&x, at(1, 0), at(1, 99));
    exclusive_flow(&x, 50);
    exclusive_left(&x);
    exclusive_delivered(&x);
    exclusive_grew(&x, at(1, 100));
    exclusive_retry(&x);
    ck_assert_str_eq(told, " read 1:0 max 10 cancel");
    exclusive_came(&x, at(1, 0), at(1, 100));
    ck_assert_str_eq(told, " read 1:0 max 10 cancel");
    exclusive_flow(&x, 1);
    ck_assert_str_eq(told, " read 1:0 max 10 cancel read 1:0 max 1");
}
END_TEST

START_TEST(reads_of_batches_ask_for_fewer_entries)
{
    struct exclusive x;

    begin(&x);
    exclusive_came(&x, at(1, 0), at(1, 1000));
    for (int64_t e = 0; e < 100; e += 1) {
        exclusive_flow(&x, 100);
        if (x.state == EXCLUSIVE_READING)
            found(&x, e, e, 100);
        exclusive_delivered(&x);
    }
    told[0] = '\0';
    exclusive_rewind(&x, at(1, 0));
    exclusive_flow(&x, 100);
    ck_assert_ptr_nonnull(strstr(told, "max 2"));
}
END_TEST

START_TEST(permits_do_not_overflow)
{
    struct exclusive x;

    begin(&x);
    exclusive_came(&x, at(1, 5), at(1, 4));
    for (int i = 0; i < 100000; i++)
        exclusive_flow(&x, UINT32_MAX);
    ck_assert_int_gt(x.permits, 0);
    exclusive_grew(&x, at(1, 5));
    ck_assert_str_eq(told, " read 1:5 max 10");
}
END_TEST

int main(void)
{
    return suite_run("exclusive", (suite_case[]){
                                      SUITE_CASE(nothing_is_read_without_permits),
                                      SUITE_CASE(nothing_is_read_beyond_the_end),
                                      SUITE_CASE(one_read_at_a_time),
                                      SUITE_CASE(a_batch_may_overshoot_and_permits_recover),
                                      SUITE_CASE(what_is_left_is_read_again_and_nothing_else),
                                      SUITE_CASE(a_full_connection_stops_it),
                                      SUITE_CASE(a_marker_costs_no_permit),
                                      SUITE_CASE(an_empty_read_does_not_spin),
                                      SUITE_CASE(what_was_acknowledged_is_passed_over),
                                      SUITE_CASE(a_failed_read_is_tried_again_later),
                                      SUITE_CASE(a_redelivery_rewinds),
                                      SUITE_CASE(the_next_consumer_starts_with_no_permits),
                                      SUITE_CASE(reads_of_batches_ask_for_fewer_entries),
                                      SUITE_CASE(permits_do_not_overflow),
                                      {0},
                                  });
}
