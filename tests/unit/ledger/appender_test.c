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

/* Bookies 10, 11, ... are the first ensemble; 20, 21, ... may take their places. */
static unsigned spares, sold;
static bool doubtful; /* the spares are suspected ones */

static bool on_spare(void *ctx, const struct fragment *next, unsigned slot, bool must,
                     uint32_t *out)
{
    (void)ctx;
    (void)next;
    (void)slot;
    if (sold == spares || (doubtful && !must))
        return false;
    *out = 20 + sold++;
    return true;
}

static void on_change(void *ctx, const struct fragment *next)
{
    tell(ctx, "change from %d:", (int)next->first);
    for (unsigned s = 0; s < a.quorum.ensemble; s++)
        tell(ctx, " %u", next->bookie[s]);
    tell(ctx, "\n");
}

static void on_lack(void *ctx, uint32_t slots)
{
    tell(ctx, "lack %x\n", slots);
}

static const struct appender_effects effects = {.send = on_send,
                                                .confirm = on_confirm,
                                                .fail = on_fail,
                                                .spare = on_spare,
                                                .change = on_change,
                                                .lack = on_lack};

static void begin_with(unsigned e, unsigned w, unsigned q, unsigned spare_bookies, bool delay)
{
    struct appender_conf conf = {.window_bytes = 100, .changes_max = 3, .delay_changes = delay};
    struct fragment tail = {.first = 0};

    for (unsigned s = 0; s < e; s++)
        tail.bookie[s] = 10 + s;
    spares = spare_bookies;
    sold = 0;
    doubtful = false;
    appender_init(&a, (struct quorum){e, w, q}, &tail, &conf, &effects, &tale);
    appender_move(&a, ring, 16);
}

static void begin(unsigned e, unsigned w, unsigned q)
{
    begin_with(e, w, q, 0, false);
}

static void acked(unsigned slot, entry_id e)
{
    appender_acked(&a, 10 + slot, e);
}

static void refused(unsigned slot, entry_id e, enum err why)
{
    appender_refused(&a, 10 + slot, e, why);
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
    acked(0, 0);
    tells(&tale, "");
    acked(1, 0);
    tells(&tale, "confirm 0 a\n");
    acked(2, 0); /* the third changes nothing */
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
    acked(2, 2);
    acked(0, 2);
    acked(1, 1);
    acked(2, 1);
    tells(&tale, "");
    acked(0, 0);
    acked(1, 0);
    tells(&tale, "confirm 0 a\nconfirm 1 b\nconfirm 2 c\n");
}
END_TEST

/* An ack counts once, and only from a bookie that was asked to hold the entry. */
START_TEST(counts_no_ack_twice_nor_a_strangers)
{
    begin(3, 2, 2);
    append("a", 1);
    tells(&tale, "send 0 (lac -1, length 1) to 0 1\n");
    acked(0, 0);
    acked(0, 0);
    acked(2, 0);
    acked(1, 7);
    acked(1, -1);
    tells(&tale, "");
    acked(1, 0);
    tells(&tale, "confirm 0 a\n");
}
END_TEST

/* Two of three have failed and nobody is there: the ledger ends; what comes later cannot move its
 * end any more. */
START_TEST(fails_in_order_behind_its_end)
{
    begin(3, 3, 2);
    append("a", 1);
    append("b", 2);
    append("c", 3);
    acked(0, 0);
    acked(1, 0);
    acked(0, 2);
    acked(1, 2); /* c has its quorum, b not */
    tell(&tale, "-- bookies 2 and 0 fail\n");
    refused(2, 1, ERR_TIMEOUT);
    refused(0, 1, ERR_TIMEOUT);
    tells(&tale, "send 0 (lac -1, length 1) to 0 1 2\n"
                 "send 1 (lac -1, length 3) to 0 1 2\n"
                 "send 2 (lac -1, length 6) to 0 1 2\n"
                 "confirm 0 a\n"
                 "-- bookies 2 and 0 fail\n"
                 "lack 4\n"
                 "fail 1 b: NOT_ENOUGH_BOOKIES\n"
                 "fail 2 c: NOT_ENOUGH_BOOKIES\n");
    acked(0, 1);
    acked(1, 1);
    refused(1, 1, ERR_FENCED);
    appender_try(&a);
    appender_changed(&a, ERR_OK);
    tells(&tale, "");
    ck_assert(a.state == APPENDER_FAILED);
    ck_assert_int_eq(a.lac, 0);
    ck_assert_int_eq(a.length, 1);
    ck_assert(appender_append(&a, NULL, 1) == ERR_NOT_ENOUGH_BOOKIES);
}
END_TEST

START_TEST(slow_is_not_dead)
{
    begin_with(3, 3, 2, 1, false);
    for (int i = 0; i < 100; i++) {
        append("x", 1);
        acked(0, i);
        acked(1, i);
    }
    ck_assert(a.state == APPENDER_OPEN);
    ck_assert_uint_eq(sold, 0);
    ck_assert_int_eq(a.lac, 99);
    tale.n = 0;
    refused(2, 50, ERR_IO); /* of an entry long confirmed: known failed all the same */
    tells(&tale, "change from 100: 10 11 20\n");
}
END_TEST

START_TEST(fenced_for_good)
{
    begin_with(2, 2, 2, 1, false);
    append("a", 1);
    tells(&tale, "send 0 (lac -1, length 1) to 0 1\n");
    refused(0, 0, ERR_UNAUTHORIZED);
    tells(&tale, "fail 0 a: FENCED\n");
    ck_assert(a.state == APPENDER_FENCED);
    ck_assert(appender_append(&a, NULL, 1) == ERR_FENCED);
}
END_TEST

/* Whatever a bookie or the metadata says, the owner hears something that it may try again
 * elsewhere. */
START_TEST(failures_are_of_class_retry)
{
    static const enum err said[] = {ERR_IO, ERR_READ_ONLY, ERR_NO_LEDGER, ERR_MALFORMED, ERR_BUSY};

    for (size_t i = 0; i < sizeof said / sizeof *said; i++) {
        begin(1, 1, 1);
        append("a", 1);
        refused(0, 0, said[i]);
        ck_assert_int_eq(err_class(a.why), CLASS_RETRY);
        begin_with(1, 1, 1, 1, false);
        append("a", 1);
        refused(0, 0, ERR_IO);
        appender_changed(&a, said[i]);
        ck_assert(a.state == APPENDER_FAILED);
        ck_assert_int_eq(err_class(a.why), CLASS_RETRY);
    }
}
END_TEST

/* ---- other bookies: D.2, 4 ---- */

/* Nothing is confirmed while it runs, not even by those who stay; then all acks of the old one are
 * void, all is sent, and only then is anything looked at. */
START_TEST(resets_all_resends_then_evaluates)
{
    begin_with(3, 2, 2, 1, false);
    append("a", 1);
    append("b", 1);
    append("c", 1);
    append("d", 1);
    acked(1, 1);
    acked(2, 1); /* b has its quorum, and waits for a */
    acked(2, 2);
    acked(0, 2); /* c too */
    acked(0, 0);
    tale.n = 0;
    refused(1, 0, ERR_IO);
    tells(&tale, "change from 0: 10 20 12\n");
    acked(1, 0); /* late: it did store it, and is none of ours any more */
    acked(0, 3);
    acked(1, 3);
    tells(&tale, "");
    appender_changed(&a, ERR_OK);
    tells(&tale, "send 0 (lac -1, length 1) to 1\n"
                 "send 1 (lac -1, length 2) to 1\n"
                 "send 3 (lac -1, length 4) to 1\n");
    appender_acked(&a, 20, 1);
    acked(1, 0);
    tells(&tale, "");
    appender_acked(&a, 20, 0);
    tells(&tale, "confirm 0 a\nconfirm 1 b\nconfirm 2 c\n");
    appender_acked(&a, 20, 3);
    tells(&tale, "confirm 3 d\n");
    ck_assert_uint_eq(a.tail.bookie[1], 20);
    ck_assert_int_eq(a.tail.first, 0);
}
END_TEST

/* An entry that needs none of the failed one waits for the metadata all the same. */
START_TEST(confirms_nothing_during_a_change)
{
    begin_with(3, 3, 2, 1, false);
    append("a", 1);
    acked(0, 0);
    tale.n = 0;
    refused(2, 0, ERR_IO);
    acked(1, 0);
    append("b", 1);
    acked(0, 1);
    acked(1, 1);
    tells(&tale, "change from 0: 10 11 20\nsend 1 (lac -1, length 2) to 0 1\n");
    appender_changed(&a, ERR_OK);
    tells(&tale, "send 0 (lac -1, length 1) to 2\n"
                 "send 1 (lac -1, length 2) to 2\n"
                 "confirm 0 a\n"
                 "confirm 1 b\n");
}
END_TEST

/* One at a time: what fails meanwhile is looked at before anything is confirmed. */
START_TEST(changes_one_after_the_other)
{
    begin_with(3, 3, 2, 2, false);
    append("a", 1);
    acked(1, 0);
    tale.n = 0;
    refused(0, 0, ERR_IO);
    refused(2, 0, ERR_IO);
    tells(&tale, "change from 0: 20 11 12\n");
    appender_changed(&a, ERR_OK);
    tells(&tale, "send 0 (lac -1, length 1) to 0\n"
                 "change from 0: 20 11 21\n");
    appender_acked(&a, 20, 0);
    tells(&tale, "");
    appender_changed(&a, ERR_OK);
    tells(&tale, "send 0 (lac -1, length 1) to 2\n"
                 "confirm 0 a\n");
    append("b", 1);
    tells(&tale, "send 1 (lac 0, length 2) to 0 1 2\n");
}
END_TEST

/* Not even what has a quorum by one that has failed since. */
START_TEST(confirms_nothing_between_two_changes)
{
    begin_with(3, 3, 2, 2, false);
    append("a", 1);
    append("b", 1);
    tale.n = 0;
    refused(0, 0, ERR_IO);
    acked(1, 0);
    acked(2, 0);
    refused(2, 1, ERR_IO);
    tells(&tale, "change from 0: 20 11 12\n");
    appender_changed(&a, ERR_OK);
    tells(&tale, "send 0 (lac -1, length 1) to 0\n"
                 "send 1 (lac -1, length 2) to 0\n"
                 "change from 0: 20 11 21\n");
    appender_changed(&a, ERR_OK);
    tells(&tale, "send 0 (lac -1, length 1) to 2\n"
                 "send 1 (lac -1, length 2) to 2\n");
    appender_acked(&a, 21, 0);
    tells(&tale, "confirm 0 a\n");
}
END_TEST

START_TEST(begins_behind_what_is_confirmed)
{
    begin_with(2, 2, 1, 1, false);
    append("a", 1);
    append("b", 1);
    append("c", 1);
    acked(0, 0);
    acked(0, 2);
    tale.n = 0;
    refused(1, 0, ERR_READ_ONLY);
    tells(&tale, "change from 1: 10 20\n");
    appender_changed(&a, ERR_OK);
    tells(&tale, "send 1 (lac 0, length 2) to 1\n"
                 "send 2 (lac 0, length 3) to 1\n");
    acked(0, 1);
    tells(&tale, "confirm 1 b\nconfirm 2 c\n");
}
END_TEST

/* Of its metadata another has become the owner. */
START_TEST(fenced_in_the_middle_of_a_change)
{
    begin_with(3, 3, 2, 1, false);
    append("a", 1);
    tale.n = 0;
    refused(2, 0, ERR_IO);
    acked(0, 0);
    acked(1, 0);
    appender_changed(&a, ERR_FENCED);
    tells(&tale, "change from 0: 10 11 20\nfail 0 a: FENCED\n");
    ck_assert(a.state == APPENDER_FENCED);
    ck_assert_int_eq(a.lac, ENTRY_NONE);

    begin_with(3, 3, 2, 1, false);
    append("a", 1);
    refused(2, 0, ERR_IO);
    refused(0, 0, ERR_FENCED); /* or a bookie says so */
    ck_assert(a.state == APPENDER_FENCED);
    appender_changed(&a, ERR_OK);
    ck_assert(a.state == APPENDER_FENCED);
}
END_TEST

/* Nobody can take its place, and the others are enough: it goes on, and with the missing one as
 * soon as that answers again, which then gets what it missed. */
START_TEST(does_without_and_takes_it_back)
{
    begin(3, 3, 2);
    append("a", 1);
    append("b", 1);
    tale.n = 0;
    refused(1, 0, ERR_IO);
    refused(1, 1, ERR_IO);
    tells(&tale, "lack 2\n");
    acked(0, 0);
    acked(2, 0);
    append("c", 1);
    tells(&tale, "confirm 0 a\nsend 2 (lac 0, length 3) to 0 1 2\n");
    appender_try(&a);
    tells(&tale, "");
    acked(1, 2);
    tells(&tale, "send 1 (lac 0, length 2) to 1\nlack 0\n");
    acked(1, 1);
    acked(0, 1);
    acked(0, 2);
    tells(&tale, "confirm 1 b\nconfirm 2 c\n");
}
END_TEST

/* ... or with another, as soon as there is one. */
START_TEST(does_without_until_there_is_a_spare)
{
    begin(3, 3, 2);
    append("a", 1);
    tale.n = 0;
    refused(1, 0, ERR_IO);
    acked(0, 0);
    acked(2, 0);
    tells(&tale, "lack 2\nconfirm 0 a\n");
    append("b", 1);
    refused(1, 1, ERR_NOT_READY);
    tale.n = 0;
    spares = 1;
    appender_try(&a);
    tells(&tale, "change from 1: 10 20 12\n");
    appender_try(&a);
    appender_changed(&a, ERR_OK);
    tells(&tale, "send 1 (lac 0, length 2) to 1\nlack 0\n");
    appender_try(&a);
    tells(&tale, "");
}
END_TEST

/* One that failed of late takes a place only when an entry cannot do without. */
START_TEST(suspects_are_for_need)
{
    begin_with(3, 3, 2, 2, false);
    doubtful = true;
    append("a", 1);
    tale.n = 0;
    refused(1, 0, ERR_IO);
    tells(&tale, "lack 2\n");
    refused(2, 0, ERR_IO);
    tells(&tale, "change from 0: 10 20 21\n");
}
END_TEST

/* Appended while one was failed and another was being replaced: nobody has sent it to the failed
 * one, which counts when the entry is despaired of. */
START_TEST(knows_what_was_never_sent)
{
    begin_with(3, 3, 2, 1, false);
    append("a", 1);
    refused(0, 0, ERR_IO); /* 20 comes */
    refused(1, 0, ERR_IO); /* nobody comes */
    append("b", 1);
    tale.n = 0;
    appender_changed(&a, ERR_OK);
    tells(&tale, "send 0 (lac -1, length 1) to 0\n"
                 "send 1 (lac -1, length 2) to 0\n"
                 "lack 2\n");
    acked(1, 0); /* it lives */
    tells(&tale, "send 1 (lac -1, length 2) to 1\nlack 0\n");
    appender_acked(&a, 20, 0);
    tells(&tale, "confirm 0 a\n");
    refused(2, 1, ERR_IO);
    refused(1, 1, ERR_IO);
    tells(&tale, "lack 4\nfail 1 b: NOT_ENOUGH_BOOKIES\n");
}
END_TEST

/* Told to wait, it replaces nobody as long as every entry can have its quorum. */
START_TEST(delays_changes)
{
    begin_with(3, 3, 2, 3, true);
    append("a", 1);
    tale.n = 0;
    refused(2, 0, ERR_IO);
    appender_try(&a);
    tells(&tale, "lack 4\n");
    acked(0, 0);
    acked(1, 0);
    append("b", 1);
    refused(2, 1, ERR_IO);
    tale.n = 0;
    refused(1, 1, ERR_IO);
    tells(&tale, "change from 1: 10 20 21\n");
}
END_TEST

START_TEST(changes_are_bounded)
{
    begin_with(1, 1, 1, 9, false);
    append("a", 1);
    refused(0, 0, ERR_IO);
    for (unsigned i = 0; i < 3; i++) {
        ck_assert(a.state == APPENDER_CHANGING);
        appender_changed(&a, ERR_OK);
        appender_refused(&a, 20 + i, 0, ERR_IO);
    }
    ck_assert(a.state == APPENDER_FAILED);
    ck_assert_int_eq(err_class(a.why), CLASS_RETRY);
}
END_TEST

START_TEST(stopped_in_the_middle_of_a_change)
{
    begin_with(3, 3, 2, 1, false);
    append("a", 1);
    tale.n = 0;
    refused(2, 0, ERR_IO);
    acked(0, 0);
    acked(1, 0);
    appender_stop(&a, ERR_CLOSED);
    appender_changed(&a, ERR_OK);
    tells(&tale, "change from 0: 10 11 20\nfail 0 a: CLOSED\n");
    ck_assert_int_eq(a.lac, ENTRY_NONE);
}
END_TEST

START_TEST(window_in_entries_and_bytes)
{
    begin(1, 1, 1);
    for (int i = 0; i < 16; i++)
        append("x", 1);
    ck_assert(appender_append(&a, NULL, 1) == ERR_BUSY);
    acked(0, 0);
    append("x", 1);

    begin(1, 1, 1);
    append("big", 1000); /* alone it is let in */
    ck_assert(appender_append(&a, NULL, 1) == ERR_BUSY);
    acked(0, 0);
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
        acked(0, i);
    for (int i = 0; i < 5; i++)
        acked(1, i);
    for (int i = 10; i < 21; i++)
        append("y", 1);
    ck_assert(appender_append(&a, NULL, 1) == ERR_BUSY);
    appender_move(&a, larger, 32);
    append("z", 1);
    for (int i = 5; i < 10; i++)
        acked(1, i);
    ck_assert_int_eq(a.lac, 9);
}
END_TEST

START_TEST(stopped_by_its_owner)
{
    begin(1, 1, 1);
    append("a", 1);
    append("b", 1);
    acked(0, 0);
    appender_stop(&a, ERR_CLOSED);
    acked(0, 1);
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
                                                SUITE_CASE(resets_all_resends_then_evaluates),
                                                SUITE_CASE(confirms_nothing_during_a_change),
                                                SUITE_CASE(changes_one_after_the_other),
                                                SUITE_CASE(confirms_nothing_between_two_changes),
                                                SUITE_CASE(begins_behind_what_is_confirmed),
                                                SUITE_CASE(fenced_in_the_middle_of_a_change),
                                                SUITE_CASE(does_without_and_takes_it_back),
                                                SUITE_CASE(does_without_until_there_is_a_spare),
                                                SUITE_CASE(suspects_are_for_need),
                                                SUITE_CASE(knows_what_was_never_sent),
                                                SUITE_CASE(delays_changes),
                                                SUITE_CASE(changes_are_bounded),
                                                SUITE_CASE(stopped_in_the_middle_of_a_change),
                                                SUITE_CASE(window_in_entries_and_bytes),
                                                SUITE_CASE(moves_to_a_larger_ring),
                                                SUITE_CASE(stopped_by_its_owner),
                                                {0}});
}
