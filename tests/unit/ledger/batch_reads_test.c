/* Many entries asked for at once, of bookies that know how and of others. */
#include "tests/lib/suite.h"
#include "tests/unit/ledger/house.h"

enum { ENTRIES = 200 };

static unsigned batches, singles; /* that the bookies were asked for since the last count() */

static void take_counts(void *ctx)
{
    (void)ctx;
    batches = singles = 0;
    for (unsigned i = 0; i < house.n; i++) {
        struct fake_bookie_knobs *k = fake_bookie_knobs(house.bookie[i]);
        batches += k->batch_reads;
        singles += k->reads;
        k->batch_reads = k->reads = 0;
    }
}

static void count(void)
{
    house_call(take_counts, NULL);
}

static void turn_all(void (*turn)(struct fake_bookie_knobs *k))
{
    for (unsigned i = 0; i < house.n; i++)
        house_knob(turn, i);
}

static struct ledger *written(unsigned bookies, unsigned write)
{
    house_open(bookies);
    struct ledger *l = house_create(bookies, write, write < 2 ? write : 2);

    house_appended(l, ENTRIES);
    count();
    return l;
}

static void end(struct ledger **l)
{
    ck_assert_uint_eq(house_counts(changes), 0);
    house_drop(l);
    house_close();
}

static void answer_short(struct fake_bookie_knobs *k)
{
    k->batch_most = 7;
}

static void close_over_batches(struct fake_bookie_knobs *k)
{
    k->batches = BATCHES_CLOSE;
}

static void refuse_batches(struct fake_bookie_knobs *k)
{
    k->batches = BATCHES_REFUSED;
}

static void answer_batches(struct fake_bookie_knobs *k)
{
    k->batches = BATCHES_ANSWERED;
}

START_TEST(a_few_questions_for_many_entries)
{
    struct ledger *l = written(3, 3);

    house_reads_all(l, ENTRIES);
    count();
    ck_assert_uint_eq(singles, 0);
    ck_assert_uint_le(batches, 2);
    turn_all(answer_short);
    house_reads_all(l, ENTRIES);
    count();
    ck_assert_uint_le(singles, ENTRIES / 7);
    ck_assert_uint_ge(batches, ENTRIES / 7 / 2);
    end(&l);
}
END_TEST

/* Not everybody has every entry; or nobody wants it. */
START_TEST(one_by_one_where_it_must_be)
{
    struct ledger *l = written(3, 2);

    house_reads_all(l, ENTRIES);
    count();
    ck_assert_uint_eq(batches, 0);
    end(&l);

    house.conf.one_read_each = true;
    l = written(3, 3);
    house_reads_all(l, ENTRIES);
    count();
    ck_assert_uint_eq(batches, 0);
    ck_assert_uint_eq(singles, ENTRIES);
    end(&l);
}
END_TEST

/* One before 4.17 closes the connection: once, and no writer feels it. */
START_TEST(who_closes_is_asked_one_by_one)
{
    struct ledger *l = written(3, 3);

    turn_all(close_over_batches);
    house_reads_all(l, ENTRIES);
    count();
    ck_assert_uint_eq(batches, 1); /* and not another bookie in its place */
    ck_assert_uint_eq(singles, ENTRIES);
    house_reads_all(l, ENTRIES);
    count();
    ck_assert_uint_eq(batches, 0);
    ck_assert_uint_eq(singles, ENTRIES);
    house_append(l, 1);
    house_await(1);
    ck_assert_str_eq(err_name(house_batch.err[0]), "OK");
    end(&l);
}
END_TEST

START_TEST(who_refuses_is_asked_one_by_one)
{
    struct ledger *l = written(3, 3);

    turn_all(refuse_batches);
    house_reads_all(l, ENTRIES);
    house_reads_all(l, ENTRIES);
    count();
    ck_assert_uint_eq(batches, 1);
    ck_assert_uint_eq(singles, 2 * ENTRIES);
    end(&l);
}
END_TEST

/* Connections are lost for other reasons too: who has answered before is asked again. */
START_TEST(who_knew_is_asked_again)
{
    struct ledger *l = written(1, 1);
    unsigned got;

    house_reads_all(l, ENTRIES);
    turn_all(close_over_batches);
    ck_assert_str_eq(err_name(house_read_range(l, 0, ENTRIES - 1, &got)), "IO");
    ck_assert_uint_eq(got, 0);
    turn_all(answer_batches);
    count();
    house_reads_all(l, ENTRIES);
    count();
    ck_assert_uint_ge(batches, 1);
    ck_assert_uint_eq(singles, 0);
    end(&l);
}
END_TEST

static void go_mute(struct fake_bookie_knobs *k)
{
    k->mute = true;
}

/* What is missing comes from another one, also many at once. */
START_TEST(a_slow_one_delays_nobody)
{
    house.conf.second_read_us = 20 * 1000;
    struct ledger *l = written(3, 3);

    house_knob(go_mute, 0);
    for (unsigned i = 0; i < 3; i++)
        house_reads_all(l, ENTRIES);
    house_knob(go_mute, 1);
    house_reads_all(l, ENTRIES);
    count();
    ck_assert_uint_eq(singles, 0);
    house_drop(&l);
    house_close();
}
END_TEST

int main(void)
{
    return suite_run("batch_reads", (suite_case[]){SUITE_CASE(a_few_questions_for_many_entries),
                                                   SUITE_CASE(one_by_one_where_it_must_be),
                                                   SUITE_CASE(who_closes_is_asked_one_by_one),
                                                   SUITE_CASE(who_refuses_is_asked_one_by_one),
                                                   SUITE_CASE(who_knew_is_asked_again),
                                                   SUITE_CASE(a_slow_one_delays_nobody),
                                                   {0}});
}
