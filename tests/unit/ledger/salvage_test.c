/* What is decided about a ledger that has lost a quorum. */
#include "ledger/salvage.h"

#include "tests/lib/suite.h"

enum { N = 8 };

static struct salvage_entry at[N];
static struct salvage_facts f;

/* Entries of ten bytes, on all three of E=3 Qw=3 Qa=2; the last fragment begins at 4. */
static void begin(void)
{
    for (int i = 0; i < N; i++)
        at[i] = (struct salvage_entry){.here = 7, .length = 10 * (i + 1), .size = 10};
    f = (struct salvage_facts){
        .ledger = {.state = LEDGER_OPEN, .quorum = {3, 3, 2}}, .n = N, .at = at, .known_lac = 6};
    f.ledger.tail.first = 4;
}

static void ends(entry_id last, int64_t length, uint64_t acknowledged, uint64_t readable)
{
    struct salvage_end e = salvage_find_end(&f);

    ck_assert_int_eq(e.last, last);
    ck_assert_int_eq(e.length, length);
    ck_assert_uint_eq(e.acknowledged, acknowledged);
    ck_assert_uint_eq(e.readable, readable);
}

START_TEST(the_end_is_before_the_first_hole)
{
    begin();
    ends(7, 80, 0, 0);
    at[5].here = 0;
    ends(4, 50, 2, 2);
    at[4].here = 0;
    ends(3, 40, 3, 2);
}
END_TEST

/* They are for skip: the ledger is not cut before its last fragment. */
START_TEST(holes_before_the_last_fragment_do_not_end_it)
{
    begin();
    at[3].here = at[2].here = at[4].here = 0;
    ends(3, 20, 3, 3);
    f.n = 4;
    f.known_lac = 3;
    ends(3, 20, 0, 0);
    f.n = 0;
    f.ledger.tail.first = 0;
    f.known_lac = ENTRY_NONE;
    ends(ENTRY_NONE, 0, 0, 0);
}
END_TEST

START_TEST(who_does_not_answer_may_have_it)
{
    begin();
    at[2] = (struct salvage_entry){.denied = 5};
    ck_assert(salvage_is_gone(&f, 2) && salvage_may_come_back(&f, 2));
    at[2].denied = 7;
    ck_assert(!salvage_may_come_back(&f, 2));
    ck_assert(!salvage_is_gone(&f, 3));
}
END_TEST

START_TEST(lengths_stay_in_order)
{
    begin();
    f.ledger.length = 80;
    at[2].here = at[3].here = 0;
    ck_assert_int_eq(salvage_length(&f, 2, 5), 25);
    ck_assert_int_eq(salvage_length(&f, 3, 1000), 40);
    at[7].here = 0;
    ck_assert_int_eq(salvage_length(&f, 7, 1000), 80);
    at[0].here = 0;
    ck_assert_int_eq(salvage_length(&f, 0, 4), 4);
}
END_TEST

int main(void)
{
    return suite_run("salvage",
                     (suite_case[]){SUITE_CASE(the_end_is_before_the_first_hole),
                                    SUITE_CASE(holes_before_the_last_fragment_do_not_end_it),
                                    SUITE_CASE(who_does_not_answer_may_have_it),
                                    SUITE_CASE(lengths_stay_in_order),
                                    {0}});
}
