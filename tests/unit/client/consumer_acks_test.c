/* consumer_acks_test.c - an entry is acknowledged once all that it holds is. */
#include "client/consumer_acks.h"
#include "common/mem.h"
#include "tests/lib/suite.h"

static struct message_id id_of(int64_t entry, int32_t batch_index)
{
    return (struct message_id){
        .ledger = 7, .entry = entry, .partition = -1, .batch_index = batch_index};
}

static unsigned take_all(struct acks *a, int64_t *entries)
{
    unsigned n;
    struct message_id *ids = acks_take(a, 100, &n);
    for (unsigned i = 0; i < n; i++)
        entries[i] = ids[i].entry;
    mem_free(ids);
    return n;
}

START_TEST(single_messages_at_once)
{
    struct acks *a = acks_new();
    int64_t got[100];
    acks_one(a, id_of(1, -1));
    acks_one(a, id_of(2, -1));
    ck_assert_uint_eq(take_all(a, got), 2);
    ck_assert_int_eq(got[0], 1);
    ck_assert_int_eq(got[1], 2);
    acks_drop(&a);
}
END_TEST

START_TEST(a_batch_when_its_last_is)
{
    struct acks *a = acks_new();
    int64_t got[100];
    acks_expect_batch(a, id_of(5, 0), &(struct batch_shape){.size = 70});
    for (int i = 69; i > 0; i--) {
        acks_one(a, id_of(5, i));
        acks_one(a, id_of(5, i)); /* twice does not count twice */
    }
    ck_assert_uint_eq(acks_gathered(a), 0);
    acks_one(a, id_of(5, 70)); /* not one of it */
    ck_assert_uint_eq(acks_gathered(a), 0);
    acks_one(a, id_of(5, 0));
    ck_assert_uint_eq(take_all(a, got), 1);
    ck_assert_int_eq(got[0], 5);
    acks_drop(&a);
}
END_TEST

START_TEST(a_batch_partly_acknowledged_before)
{
    const int64_t three_and_nine = 1 << 3 | 1 << 9;
    struct acks *a = acks_new();
    acks_expect_batch(
        a, id_of(5, 3),
        &(struct batch_shape){.size = 10, .ack_set = &three_and_nine, .n_ack_set = 1});
    acks_one(a, id_of(5, 3));
    ck_assert_uint_eq(acks_gathered(a), 0);
    acks_one(a, id_of(5, 9));
    ck_assert_uint_eq(acks_gathered(a), 1);
    acks_drop(&a);
}
END_TEST

START_TEST(pieces_with_their_last)
{
    struct acks *a = acks_new();
    int64_t got[100];
    struct message_id *pieces = mem_alloc(2 * sizeof *pieces);
    pieces[0] = id_of(1, -1);
    pieces[1] = id_of(2, -1);
    acks_expect_pieces(a, id_of(3, -1), pieces, 2);
    acks_one(a, id_of(3, -1));
    ck_assert_uint_eq(take_all(a, got), 3);
    ck_assert_int_eq(got[2], 3);
    acks_drop(&a);
}
END_TEST

/* A message handed out before tells nothing about the others of its entry, which come again. */
START_TEST(a_lost_connection_forgets_what_was_handed_out)
{
    struct acks *a = acks_new();
    const struct batch_shape two = {.size = 2};
    acks_expect_batch(a, id_of(5, 0), &two);
    acks_one(a, id_of(5, 0));
    acks_forget_batches(a);
    acks_one(a, id_of(5, 1));
    ck_assert_uint_eq(acks_gathered(a), 0);
    acks_expect_batch(a, id_of(5, 0), &two);
    acks_one(a, id_of(5, 1));
    ck_assert_uint_eq(acks_gathered(a), 0);
    acks_one(a, id_of(5, 0));
    ck_assert_uint_eq(acks_gathered(a), 1);
    acks_drop(&a);
}
END_TEST

START_TEST(pieces_outlive_a_connection)
{
    struct acks *a = acks_new();
    struct message_id *pieces = mem_alloc(sizeof *pieces);
    pieces[0] = id_of(1, -1);
    acks_expect_pieces(a, id_of(2, -1), pieces, 1);
    acks_forget_batches(a);
    acks_one(a, id_of(2, -1));
    ck_assert_uint_eq(acks_gathered(a), 2);
    acks_drop(&a);
}
END_TEST

START_TEST(up_to_the_middle_of_a_batch)
{
    struct acks *a = acks_new();
    const struct batch_shape four = {.size = 4};
    acks_expect_batch(a, id_of(4, 0), &four);
    acks_expect_batch(a, id_of(5, 0), &four);
    ck_assert(!acks_upto(a, id_of(5, 1)));
    acks_one(a, id_of(4, 3)); /* before it: nothing is left of it to acknowledge */
    acks_one(a, id_of(5, 3));
    ck_assert_uint_eq(acks_gathered(a), 0);
    ck_assert(acks_upto(a, id_of(5, 2)));
    ck_assert(acks_upto(a, id_of(6, -1)));
    ck_assert_uint_eq(acks_gathered(a), 0);
    acks_drop(&a);
}
END_TEST

int main(void)
{
    return suite_run("consumer_acks",
                     (suite_case[]){SUITE_CASE(single_messages_at_once),
                                    SUITE_CASE(a_batch_when_its_last_is),
                                    SUITE_CASE(a_batch_partly_acknowledged_before),
                                    SUITE_CASE(pieces_with_their_last),
                                    SUITE_CASE(a_lost_connection_forgets_what_was_handed_out),
                                    SUITE_CASE(pieces_outlive_a_connection),
                                    SUITE_CASE(up_to_the_middle_of_a_batch),
                                    {0}});
}
