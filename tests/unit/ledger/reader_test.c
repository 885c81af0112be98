/* Stories of a reader, and of the question how far an open ledger is confirmed. */
#include "ledger/reader.h"

#include "tests/unit/ledger/tale.h"

static struct tale tale;
static struct entry_reader r;
static unsigned held;
static size_t asked_bytes;              /* of the last read of several */
static unsigned reaches[3] = {1, 1, 1}; /* a slot: how many it is asked for at once */

static void on_read(void *ctx, unsigned slot, struct reader_run run, size_t max_bytes)
{
    if (run.n == 1) {
        tell(ctx, "read %d from %u\n", (int)run.first, slot);
        return;
    }
    tell(ctx, "read %d-%d from %u\n", (int)run.first, (int)(run.first + run.n - 1), slot);
    asked_bytes = max_bytes;
}

static unsigned on_reach(void *ctx, unsigned slot, entry_id e)
{
    (void)ctx;
    (void)e;
    return reaches[slot % 3];
}

static void on_deliver(void *ctx, entry_id e, void *item)
{
    (void)item;
    held--;
    tell(ctx, "deliver %d\n", (int)e);
}

static void on_drop(void *ctx, void *item)
{
    (void)ctx;
    (void)item;
    held--;
}

static void on_done(void *ctx, enum err err)
{
    tell(ctx, "done: %s\n", err_name(err));
    ck_assert_uint_eq(held, 0);
}

static const struct reader_effects effects = {
    .read = on_read, .reach = on_reach, .deliver = on_deliver, .drop = on_drop, .done = on_done};

static void begin(struct quorum q, entry_id first, entry_id last, size_t max, uint32_t prefer)
{
    const struct reader_conf conf = {
        .quorum = q, .first = first, .last = last, .max_bytes = max, .prefer = prefer};

    reader_start(&r, &conf, &effects, &tale);
}

static bool slow(unsigned slot, entry_id e)
{
    return reader_slow(&r, slot, (struct reader_run){e, 1}) > 0;
}

static void found(unsigned slot, entry_id e, size_t size)
{
    static char item[1];

    held++;
    reader_found(&r, slot, e, size, item);
}

static const struct quorum three = {3, 3, 2};

START_TEST(delivers_in_order)
{
    begin(three, 5, 7, 0, 0);
    tells(&tale, "read 5 from 0\nread 6 from 0\nread 7 from 0\n");
    found(0, 7, 10);
    found(0, 6, 10);
    tells(&tale, "");
    found(0, 5, 10);
    tells(&tale, "deliver 5\ndeliver 6\ndeliver 7\ndone: OK\n");
    begin(three, 0, -1, 0, 0);
    tells(&tale, "done: OK\n");
}
END_TEST

START_TEST(asks_the_next_replica)
{
    begin(three, 0, 1, 0, 1);
    tells(&tale, "read 0 from 1\nread 1 from 1\n");
    reader_failed(&r, 1, 0, ERR_CHECKSUM);
    reader_failed(&r, 1, 1, ERR_NO_ENTRY);
    tells(&tale, "read 0 from 2\nread 1 from 2\n");
    found(1, 0, 10); /* not the one that was asked last */
    tells(&tale, "");
    reader_failed(&r, 2, 0, ERR_TIMEOUT);
    tells(&tale, "read 0 from 0\n");
    found(0, 0, 10);
    found(2, 1, 10);
    tells(&tale, "deliver 0\ndeliver 1\ndone: OK\n");
}
END_TEST

/* Only when all have said so is there no entry; what fails is reported in its turn. */
START_TEST(no_entry_only_if_all_say_so)
{
    begin((struct quorum){2, 2, 1}, 0, 1, 0, 0);
    reader_failed(&r, 0, 1, ERR_NO_ENTRY);
    reader_failed(&r, 1, 1, ERR_NO_LEDGER);
    found(0, 0, 10);
    tells(&tale, "read 0 from 0\nread 1 from 0\nread 1 from 1\ndeliver 0\ndone: NO_ENTRY\n");

    begin((struct quorum){2, 2, 1}, 0, 0, 0, 0);
    reader_failed(&r, 0, 0, ERR_IO);
    reader_failed(&r, 1, 0, ERR_NO_ENTRY);
    tells(&tale, "read 0 from 0\nread 0 from 1\ndone: IO\n");
}
END_TEST

START_TEST(stays_in_the_write_set)
{
    begin((struct quorum){4, 2, 2}, 3, 3, 0, 1); /* on 3 and 0 */
    reader_failed(&r, 3, 3, ERR_IO);
    reader_failed(&r, 0, 3, ERR_IO);
    tells(&tale, "read 3 from 3\nread 3 from 0\ndone: IO\n");
}
END_TEST

START_TEST(bad_replicas_are_asked_last)
{
    begin(three, 0, 20, 0, 0);
    tale.n = 0;
    reader_failed(&r, 0, 0, ERR_TIMEOUT);
    found(1, 0, 1000);
    tale.text[tale.n] = '\0';
    ck_assert_ptr_nonnull(strstr(tale.text, "read 8 from 1\n"));
    ck_assert_ptr_null(strstr(tale.text, "read 8 from 0\n"));
    reader_stop(&r);
}
END_TEST

START_TEST(stops_at_max_bytes)
{
    begin(three, 0, 100, 25, 0);
    tale.n = 0;
    found(0, 2, 10);
    found(0, 0, 10);
    found(0, 1, 10);
    ck_assert_ptr_nonnull(strstr(tale.text, "deliver 2\ndone: OK\n"));
    ck_assert_ptr_null(strstr(tale.text, "deliver 3\n"));
}
END_TEST

START_TEST(window_shrinks_with_the_size)
{
    begin(three, 0, 1000, 0, 0);
    ck_assert_int_eq(r.asked, 7);
    for (int e = 0; e < 8; e++)
        found(0, e, 5 << 20);
    ck_assert_int_le(r.asked - r.next + 1, 2);
    while (r.next < 500)
        found(0, r.next, 100);
    ck_assert_int_eq(r.asked - r.next + 1, READER_WINDOW);
    reader_stop(&r);
    ck_assert_uint_eq(held, 0);
}
END_TEST

START_TEST(lac_is_the_highest_known)
{
    struct lac_poll p;

    lac_poll_start(&p, three, -1);
    ck_assert(!lac_poll_answer(&p, 0, ERR_OK, 4));
    ck_assert(lac_poll_answer(&p, 2, ERR_OK, 6));
    ck_assert_int_eq(p.lac, 6);
    ck_assert_int_eq(p.err, ERR_OK);

    lac_poll_start(&p, three, 9); /* what was before the last fragment is confirmed */
    ck_assert(!lac_poll_answer(&p, 0, ERR_NO_ENTRY, -1));
    ck_assert(lac_poll_answer(&p, 1, ERR_NO_LEDGER, -1));
    ck_assert_int_eq(p.lac, 9);

    lac_poll_start(&p, three, -1); /* one answer is better than none: it is a lower bound */
    ck_assert(!lac_poll_answer(&p, 0, ERR_IO, -1));
    ck_assert(!lac_poll_answer(&p, 1, ERR_OK, 3));
    ck_assert(lac_poll_answer(&p, 2, ERR_TIMEOUT, -1));
    ck_assert_int_eq(p.err, ERR_OK);
    ck_assert_int_eq(p.lac, 3);

    lac_poll_start(&p, three, -1);
    ck_assert(!lac_poll_answer(&p, 0, ERR_IO, -1));
    ck_assert(!lac_poll_answer(&p, 1, ERR_IO, -1));
    ck_assert(lac_poll_answer(&p, 2, ERR_TIMEOUT, -1));
    ck_assert_int_eq(p.err, ERR_TIMEOUT);
}
END_TEST

/* One that takes long is asked no more, and whoever answers first counts. */
START_TEST(asks_another_besides_a_slow_one)
{
    begin(three, 0, 2, 0, 0);
    tells(&tale, "read 0 from 0\nread 1 from 0\nread 2 from 0\n");
    ck_assert(slow(0, 0));
    ck_assert(slow(0, 1));
    ck_assert(!slow(1, 2)); /* it was not asked */
    tells(&tale, "read 0 from 1\nread 1 from 1\n");
    found(1, 0, 10);
    found(0, 0, 10); /* too late */
    tells(&tale, "deliver 0\n");
    found(0, 1, 10); /* in time all the same */
    found(1, 1, 10);
    tells(&tale, "deliver 1\n");
    reader_failed(&r, 0, 2, ERR_TIMEOUT);
    tells(&tale, "read 2 from 1\n");
    found(1, 2, 10);
    tells(&tale, "deliver 2\ndone: OK\n");
    ck_assert_uint_eq(r.avoid, 1);
}
END_TEST

/* One of two has failed: the other one's answer is waited for before a third is asked. */
START_TEST(waits_for_the_second_one)
{
    begin(three, 0, 0, 0, 0);
    ck_assert(slow(0, 0));
    reader_failed(&r, 0, 0, ERR_IO);
    tells(&tale, "read 0 from 0\nread 0 from 1\n");
    ck_assert(slow(1, 0));
    tells(&tale, "read 0 from 2\n");
    ck_assert(!slow(2, 0)); /* there is nobody left */
    reader_failed(&r, 1, 0, ERR_NO_ENTRY);
    tells(&tale, "");
    reader_failed(&r, 2, 0, ERR_NO_ENTRY);
    tells(&tale, "done: IO\n");
}
END_TEST

START_TEST(stays_with_the_one_that_answers)
{
    begin(three, 0, 20, 30, 1);
    tale.n = 0;
    reader_failed(&r, 1, 0, ERR_CHECKSUM);
    tells(&tale, "read 0 from 2\n");
    const struct reader_conf next = {
        .quorum = three, .first = 1, .last = 2, .prefer = 1, .avoid = r.avoid};
    reader_stop(&r);
    reader_start(&r, &next, &effects, &tale);
    tells(&tale, "read 1 from 2\nread 2 from 2\n");
    reader_failed(&r, 2, 1, ERR_IO);
    reader_failed(&r, 0, 1, ERR_IO); /* all have by now: the last one is the worst */
    tells(&tale, "read 1 from 0\nread 1 from 1\n");
    ck_assert_uint_eq(r.avoid, 1);
    reader_stop(&r);
}
END_TEST

/* ---- several at once ---- */

static void all_reach(unsigned n)
{
    for (unsigned i = 0; i < 3; i++)
        reaches[i] = n;
}

/* So many entries come, each of that size; those with a bit in `bad` are damaged. */
static void came(unsigned slot, entry_id first, unsigned asked, unsigned got, size_t size,
                 uint32_t bad)
{
    static char item[1];
    struct reader_item items[READER_WINDOW] = {0};

    for (unsigned i = 0; i < got; i++) {
        bool is_bad = i < 32 && bad & 1u << i;
        items[i] = (struct reader_item){is_bad ? NULL : item, is_bad ? ERR_CHECKSUM : ERR_OK, size};
        held += !is_bad;
    }
    reader_answered(&r, slot, (struct reader_run){first, asked}, items, got, ERR_OK);
}

static void none_came(unsigned slot, entry_id first, unsigned asked, enum err err)
{
    reader_answered(&r, slot, (struct reader_run){first, asked}, NULL, 0, err);
}

START_TEST(asks_for_many_at_once)
{
    all_reach(READER_WINDOW);
    begin(three, 0, 3, 0, 1);
    tells(&tale, "read 0-3 from 1\n");
    ck_assert_uint_eq(asked_bytes, READER_BATCH_BYTES);
    came(1, 0, 4, 4, 10, 0);
    tells(&tale, "deliver 0\ndeliver 1\ndeliver 2\ndeliver 3\ndone: OK\n");
    begin(three, 7, 7, 0, 0); /* one is asked for as ever */
    tells(&tale, "read 7 from 0\n");
    found(0, 7, 10);
    tells(&tale, "deliver 7\ndone: OK\n");
    all_reach(3); /* there another fragment begins */
    begin(three, 0, 3, 0, 0);
    tells(&tale, "read 0-2 from 0\nread 3 from 0\n");
    reader_stop(&r);
    all_reach(READER_WINDOW); /* not everybody has every entry */
    begin((struct quorum){3, 2, 2}, 0, 2, 0, 0);
    tells(&tale, "read 0 from 0\nread 1 from 1\nread 2 from 0\n");
    reader_stop(&r);
}
END_TEST

/* What an answer did not get to is asked for again, and nobody is blamed. */
START_TEST(goes_on_behind_a_short_answer)
{
    all_reach(READER_WINDOW);
    begin(three, 0, 5, 0, 0);
    came(0, 0, 6, 2, 10, 0);
    tells(&tale, "read 0-5 from 0\ndeliver 0\ndeliver 1\nread 2-5 from 0\n");
    came(0, 2, 4, 3, 10, 0);
    tells(&tale, "deliver 2\ndeliver 3\ndeliver 4\nread 5 from 0\n");
    reader_failed(&r, 0, 5, ERR_NO_ENTRY);
    reader_failed(&r, 1, 5, ERR_NO_ENTRY);
    reader_failed(&r, 2, 5, ERR_NO_ENTRY);
    tells(&tale, "read 5 from 1\nread 5 from 2\ndone: NO_ENTRY\n");
}
END_TEST

START_TEST(one_that_is_damaged_comes_from_another)
{
    all_reach(READER_WINDOW);
    begin(three, 0, 4, 0, 0);
    came(0, 0, 5, 5, 10, 1u << 1);
    tells(&tale, "read 0-4 from 0\ndeliver 0\nread 1 from 1\n");
    found(1, 1, 10);
    tells(&tale, "deliver 1\ndeliver 2\ndeliver 3\ndeliver 4\ndone: OK\n");
    ck_assert_uint_eq(r.avoid, 1);
}
END_TEST

/* Of the first one it is known who does not have it; of the others nothing. */
START_TEST(all_are_asked_elsewhere_when_nothing_comes)
{
    all_reach(READER_WINDOW);
    begin(three, 0, 3, 0, 0);
    none_came(0, 0, 4, ERR_NO_ENTRY);
    tells(&tale, "read 0-3 from 0\nread 0-3 from 1\n");
    none_came(1, 0, 4, ERR_IO);
    tells(&tale, "read 0-3 from 2\n");
    none_came(2, 0, 4, ERR_OK); /* an answer without anything in it */
    tells(&tale, "done: MALFORMED\n");

    begin(three, 0, 3, 0, 0);
    tale.n = 0;
    none_came(0, 0, 4, ERR_NO_LEDGER);
    came(1, 0, 4, 1, 10, 0);
    none_came(1, 1, 3, ERR_NO_ENTRY);
    tells(&tale, "read 0-3 from 1\ndeliver 0\nread 1-3 from 1\nread 1-3 from 2\n");
    none_came(2, 1, 3, ERR_NO_ENTRY);
    came(0, 1, 3, 3, 10, 0);
    tells(&tale, "read 1-3 from 0\ndeliver 1\ndeliver 2\ndeliver 3\ndone: OK\n");
}
END_TEST

/* Nobody is blamed for that either. */
START_TEST(one_by_one_where_many_are_not_understood)
{
    all_reach(READER_WINDOW);
    begin(three, 0, 9, 0, 0);
    none_came(0, 0, 10, ERR_UNSUPPORTED_VERSION);
    tells(&tale, "read 0-9 from 0\n"
                 "read 0 from 0\nread 1 from 0\nread 2 from 0\nread 3 from 0\n"
                 "read 4 from 0\nread 5 from 0\nread 6 from 0\nread 7 from 0\n");
    ck_assert_uint_eq(r.avoid, 0);
    reader_failed(&r, 0, 0, ERR_IO);
    tells(&tale, "read 0 from 1\nread 8-9 from 1\n"); /* who knows is asked for many */
    reader_stop(&r);
}
END_TEST

START_TEST(many_of_a_slow_one_are_asked_besides)
{
    all_reach(READER_WINDOW);
    begin(three, 0, 3, 0, 0);
    ck_assert_uint_eq(reader_slow(&r, 0, (struct reader_run){0, 4}), 4);
    tells(&tale, "read 0-3 from 0\nread 0-3 from 1\n");
    came(1, 0, 4, 2, 10, 0);
    tells(&tale, "deliver 0\ndeliver 1\nread 2-3 from 1\n");
    none_came(0, 0, 4, ERR_TIMEOUT);
    tells(&tale, "");
    came(0, 0, 4, 4, 10, 0); /* nobody waits for it */
    ck_assert_uint_eq(held, 0);
    came(1, 2, 2, 2, 10, 0);
    tells(&tale, "deliver 2\ndeliver 3\ndone: OK\n");
    came(1, 2, 2, 2, 10, 0);
    ck_assert_uint_eq(held, 0);
}
END_TEST

/* Several answers are under way, none larger than it may be. */
START_TEST(answers_are_bounded)
{
    all_reach(READER_WINDOW);
    begin(three, 0, 10000, 20000, 0);
    tells(&tale, "read 0-255 from 0\n");
    ck_assert_uint_le(asked_bytes, 20000 / 8 * 9 + 4096);
    came(0, 0, 256, 3, 1000, 0);
    tells(&tale, "deliver 0\ndeliver 1\ndeliver 2\nread 3-19 from 0\n");
    reader_stop(&r);

    const struct reader_conf large = {.quorum = three, .last = 90, .typical = 100 * 1000};
    reader_start(&r, &large, &effects, &tale);
    tale.text[tale.n] = '\0';
    ck_assert_ptr_nonnull(strstr(tale.text, "read 0-1 from 0\nread 2-3 from 0\n"));
    ck_assert_int_lt(r.asked, READER_BYTES / 100000 + 1);
    reader_stop(&r);

    const struct reader_conf small = {.quorum = three, .last = 9999, .typical = 20};
    tale.n = 0;
    reader_start(&r, &small, &effects, &tale);
    tells(&tale, "read 0-127 from 0\nread 128-255 from 0\n");
    came(0, 0, 128, 128, 20, 0);
    tale.text[tale.n] = '\0';
    ck_assert_ptr_nonnull(strstr(tale.text, "deliver 127\nread 256-383 from 0\n"));
    reader_stop(&r);
    ck_assert_uint_eq(held, 0);
}
END_TEST

int main(void)
{
    return suite_run("reader",
                     (suite_case[]){SUITE_CASE(asks_another_besides_a_slow_one),
                                    SUITE_CASE(waits_for_the_second_one),
                                    SUITE_CASE(stays_with_the_one_that_answers),
                                    SUITE_CASE(delivers_in_order),
                                    SUITE_CASE(asks_the_next_replica),
                                    SUITE_CASE(no_entry_only_if_all_say_so),
                                    SUITE_CASE(stays_in_the_write_set),
                                    SUITE_CASE(bad_replicas_are_asked_last),
                                    SUITE_CASE(stops_at_max_bytes),
                                    SUITE_CASE(window_shrinks_with_the_size),
                                    SUITE_CASE(lac_is_the_highest_known),
                                    SUITE_CASE(asks_for_many_at_once),
                                    SUITE_CASE(goes_on_behind_a_short_answer),
                                    SUITE_CASE(one_that_is_damaged_comes_from_another),
                                    SUITE_CASE(all_are_asked_elsewhere_when_nothing_comes),
                                    SUITE_CASE(one_by_one_where_many_are_not_understood),
                                    SUITE_CASE(many_of_a_slow_one_are_asked_besides),
                                    SUITE_CASE(answers_are_bounded),
                                    {0}});
}
