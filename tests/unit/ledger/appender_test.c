/* Stories of one ledger's writer. */
#include "ledger/appender.h"

#include "tests/unit/ledger/tale.h"

static struct tale tale;
static struct appender a;
static struct appender_slot ring[16], larger[32];

static void on_send(void *ctx, uint32_t slots, const struct appender_add *add)
{
    tell(ctx, "send %d (lac %d, length %d) to", (int)add->entry, (int)add->lac, (int)add->length);
    for (unsigned s = 0; s < 16; s++)
        if (slots & 1u << s)
            tell(ctx, " %u", s);
    tell(ctx, "\n");
}

static void on_confirm(void *ctx, entry_id e, void *item)
{
    tell(ctx, "confirm %d %s\n", (int)e, (const char *)item);
}

static void on_fail(void *ctx, entry_id e, void *item, enum err why)
{
    tell(ctx, "fail %d %s: %s\n", (int)e, (const char *)item, err_name(why));
}

static const struct appender_effects effects = {
    .send = on_send, .confirm = on_confirm, .fail = on_fail};

static void begin(unsigned e, unsigned w, unsigned q)
{
    appender_init(&a, (struct quorum){e, w, q}, 100, &effects, &tale);
    appender_move(&a, ring, 16);
}

static void append(const char *what, uint32_t size)
{
    ck_assert(appender_append(&a, (char *)(uintptr_t)what, size) == ERR_OK);
}

START_TEST(confirms_on_ack_quorum)
{
    begin(3, 3, 2);
    append("a", 10);
    tells(&tale, "send 0 (lac -1, length 10) to 0 1 2\n");
    appender_acked(&a, 0, 0);
    tells(&tale, "");
    appender_acked(&a, 1, 0);
    tells(&tale, "confirm 0 a\n");
    appender_acked(&a, 2, 0); /* the third changes nothing */
    tells(&tale, "");
    append("b", 5);
    tells(&tale, "send 1 (lac 0, length 15) to 0 1 2\n");
    ck_assert_int_eq(a.length, 10);
}
END_TEST

START_TEST(confirms_in_order_only)
{
    begin(3, 2, 2);
    append("a", 1);
    append("b", 1);
    append("c", 1);
    tells(&tale, "send 0 (lac -1, length 1) to 0 1\n"
                 "send 1 (lac -1, length 2) to 1 2\n"
                 "send 2 (lac -1, length 3) to 0 2\n");
    appender_acked(&a, 2, 2);
    appender_acked(&a, 0, 2);
    appender_acked(&a, 1, 1);
    appender_acked(&a, 2, 1);
    tells(&tale, "");
    appender_acked(&a, 0, 0);
    appender_acked(&a, 1, 0);
    tells(&tale, "confirm 0 a\nconfirm 1 b\nconfirm 2 c\n");
}
END_TEST

/* An ack counts once, and only from a bookie that was asked to hold the entry. */
START_TEST(counts_no_ack_twice_nor_a_strangers)
{
    begin(3, 2, 2);
    append("a", 1);
    tells(&tale, "send 0 (lac -1, length 1) to 0 1\n");
    appender_acked(&a, 0, 0);
    appender_acked(&a, 0, 0);
    appender_acked(&a, 2, 0);
    appender_acked(&a, 1, 7);
    appender_acked(&a, 1, -1);
    tells(&tale, "");
    appender_acked(&a, 1, 0);
    tells(&tale, "confirm 0 a\n");
}
END_TEST

/* A failed bookie ends the ledger; what comes later cannot move its end any more. */
START_TEST(fails_in_order_behind_its_end)
{
    begin(3, 3, 2);
    append("a", 1);
    append("b", 2);
    append("c", 3);
    appender_acked(&a, 0, 0);
    appender_acked(&a, 1, 0);
    appender_acked(&a, 0, 2);
    appender_acked(&a, 1, 2); /* c has its quorum, b not */
    tell(&tale, "-- bookie 2 fails\n");
    appender_refused(&a, 2, ERR_TIMEOUT);
    tells(&tale, "send 0 (lac -1, length 1) to 0 1 2\n"
                 "send 1 (lac -1, length 3) to 0 1 2\n"
                 "send 2 (lac -1, length 6) to 0 1 2\n"
                 "confirm 0 a\n"
                 "-- bookie 2 fails\n"
                 "fail 1 b: TIMEOUT\n"
                 "fail 2 c: TIMEOUT\n");
    appender_acked(&a, 0, 1);
    appender_acked(&a, 1, 1);
    appender_refused(&a, 1, ERR_FENCED);
    tells(&tale, "");
    ck_assert(a.state == APPENDER_FAILED);
    ck_assert_int_eq(a.lac, 0);
    ck_assert_int_eq(a.length, 1);
    ck_assert(appender_append(&a, NULL, 1) == ERR_TIMEOUT);
}
END_TEST

START_TEST(slow_is_not_dead)
{
    begin(3, 3, 2);
    for (int i = 0; i < 100; i++) {
        append("x", 1);
        appender_acked(&a, 0, i);
        appender_acked(&a, 1, i);
    }
    ck_assert(a.state == APPENDER_OPEN);
    ck_assert_int_eq(a.lac, 99);
    appender_refused(&a, 2, ERR_IO); /* of an entry long confirmed: known failed all the same */
    ck_assert(a.state == APPENDER_FAILED);
    ck_assert_int_eq(a.lac, 99);
}
END_TEST

START_TEST(fenced_for_good)
{
    begin(2, 2, 2);
    append("a", 1);
    tells(&tale, "send 0 (lac -1, length 1) to 0 1\n");
    appender_refused(&a, 0, ERR_UNAUTHORIZED);
    tells(&tale, "fail 0 a: FENCED\n");
    ck_assert(a.state == APPENDER_FENCED);
    ck_assert(appender_append(&a, NULL, 1) == ERR_FENCED);
}
END_TEST

/* Whatever a bookie says, the owner hears something that it may try again elsewhere. */
START_TEST(failures_are_of_class_retry)
{
    static const enum err said[] = {ERR_IO, ERR_READ_ONLY, ERR_NO_LEDGER, ERR_MALFORMED, ERR_BUSY};

    for (size_t i = 0; i < sizeof said / sizeof *said; i++) {
        begin(1, 1, 1);
        appender_refused(&a, 0, said[i]);
        ck_assert_int_eq(err_class(a.why), CLASS_RETRY);
    }
}
END_TEST

START_TEST(window_in_entries_and_bytes)
{
    begin(1, 1, 1);
    for (int i = 0; i < 16; i++)
        append("x", 1);
    ck_assert(appender_append(&a, NULL, 1) == ERR_BUSY);
    appender_acked(&a, 0, 0);
    append("x", 1);

    begin(1, 1, 1);
    append("big", 1000); /* alone it is let in */
    ck_assert(appender_append(&a, NULL, 1) == ERR_BUSY);
    appender_acked(&a, 0, 0);
    append("x", 99);
    append("x", 1);
    ck_assert(appender_append(&a, NULL, 1) == ERR_BUSY);
}
END_TEST

START_TEST(moves_to_a_larger_ring)
{
    begin(2, 2, 2);
    for (int i = 0; i < 10; i++)
        append("x", 1);
    for (int i = 0; i < 10; i++)
        appender_acked(&a, 0, i);
    for (int i = 0; i < 5; i++)
        appender_acked(&a, 1, i);
    for (int i = 10; i < 21; i++)
        append("y", 1);
    ck_assert(appender_append(&a, NULL, 1) == ERR_BUSY);
    appender_move(&a, larger, 32);
    append("z", 1);
    for (int i = 5; i < 10; i++)
        appender_acked(&a, 1, i);
    ck_assert_int_eq(a.lac, 9);
}
END_TEST

START_TEST(stopped_by_its_owner)
{
    begin(1, 1, 1);
    append("a", 1);
    append("b", 1);
    appender_acked(&a, 0, 0);
    appender_stop(&a, ERR_CLOSED);
    appender_acked(&a, 0, 1);
    tells(&tale, "send 0 (lac -1, length 1) to 0\n"
                 "send 1 (lac -1, length 2) to 0\n"
                 "confirm 0 a\n"
                 "fail 1 b: CLOSED\n");
    ck_assert_int_eq(a.lac, 0);
}
END_TEST

int main(void)
{
    return suite_run("appender", (suite_case[]){SUITE_CASE(confirms_on_ack_quorum),
                                                SUITE_CASE(confirms_in_order_only),
                                                SUITE_CASE(counts_no_ack_twice_nor_a_strangers),
                                                SUITE_CASE(fails_in_order_behind_its_end),
                                                SUITE_CASE(slow_is_not_dead),
                                                SUITE_CASE(fenced_for_good),
                                                SUITE_CASE(failures_are_of_class_retry),
                                                SUITE_CASE(window_in_entries_and_bytes),
                                                SUITE_CASE(moves_to_a_larger_ring),
                                                SUITE_CASE(stopped_by_its_owner),
                                                {0}});
}
