/* producer_test.c - a producer on good connections and bad ones. */
#include <stdio.h>
#include <string.h>

#include "common/mem.h"
#include "tests/unit/client/stage.h"

#define SECOND ((uint64_t)1000000)

static void tells(const struct stage *s, const char *expected)
{
    ck_assert_str_eq(story(s), expected);
}

static void was_told(const struct stage *s, const char *expected)
{
    ck_assert_str_eq(fake_broker_told(s->broker), expected);
}

START_TEST(receipts_come_in_order)
{
    struct stage *s = stage_new();
    stage_producer(s);
    stage_send(s, "a");
    stage_send(s, "b");
    until_story(s, "done", 2);
    stage_close_producer(s);
    until_story(s, "closed", 1);
    was_told(s, "CONNECT\nLOOKUP t\nPRODUCER 0\nSEND 0 #0 'a'\nSEND 0 #1 'b'\n"
                "CLOSE_PRODUCER 0\n");
    tells(s, "ready\ndone 0 1:0\ndone 1 1:1\nclosed\n");
    stage_drop(&s);
}
END_TEST

/* The first was stored and its receipt lost: it goes again, as does all behind it. */
START_TEST(a_lost_connection_has_all_sent_again)
{
    struct stage *s = stage_new();
    stage_producer(s);
    stage_send(s, "a");
    until_story(s, "done", 1);
    fake_broker_trick(s->broker, (struct trick){.on = CMD(SEND), .how = TRICK_TAKE_AND_CUT});
    stage_send(s, "b");
    stage_send(s, "c");
    until_told(s, "SEND 0 #1", 1);
    fake_broker_forget(s->broker);
    until_told(s, "CONNECT", 1);
    stage_send(s, "d"); /* was never on the wire */
    until_story(s, "done", 4);
    was_told(s, "CONNECT\nLOOKUP t\nPRODUCER 0\nSEND 0 #1 'b'\nSEND 0 #2 'c'\nSEND 0 #3 'd'\n");
    tells(s, "ready\ndone 0 1:0\nresent 1\nresent 2\ndone 1 1:2\ndone 2 1:3\ndone 3 1:4\n");
    stage_drop(&s);
}
END_TEST

START_TEST(a_receipt_for_a_later_message_is_no_receipt)
{
    struct stage *s = stage_new();
    stage_producer(s);
    fake_broker_trick(s->broker, (struct trick){.on = CMD(SEND), .how = TRICK_LATER});
    stage_send(s, "a");
    stage_send(s, "b");
    until_story(s, "done", 2);
    ck_assert_uint_eq(fake_broker_count(s->broker, "CONNECT"), 2);
    ck_assert_uint_eq(fake_broker_count(s->broker, "SEND 0 #0"), 2);
    ck_assert_uint_eq(story_count(s, "resent"), 2);
    ck_assert_uint_eq(story_count(s, "done 0 1:"), 1);
    stage_drop(&s);
}
END_TEST

START_TEST(a_receipt_for_an_earlier_message_means_nothing)
{
    struct stage *s = stage_new();
    stage_producer(s);
    stage_send(s, "a");
    until_story(s, "done", 1);
    fake_broker_receipt(s->broker, 0, 0);
    stage_send(s, "b");
    until_story(s, "done", 2);
    ck_assert_uint_eq(fake_broker_count(s->broker, "CONNECT"), 1);
    stage_drop(&s);
}
END_TEST

START_TEST(refused_for_good_fails_one_message)
{
    struct stage *s = stage_new();
    stage_producer(s);
    fake_broker_trick(s->broker, (struct trick){.on = CMD(SEND),
                                                .after = 1,
                                                .how = TRICK_ERROR,
                                                .code = CODE(NotAllowedError)});
    stage_send(s, "a");
    stage_send(s, "b");
    stage_send(s, "c");
    until_story(s, "done", 3);
    tells(s, "ready\ndone 0 1:0\ndone 1 NOT_ALLOWED\ndone 2 1:1\n");
    stage_drop(&s);
}
END_TEST

static const int may_pass[] = {CODE(PersistenceError),
                               CODE(ChecksumError),
                               CODE(MetadataError),
                               CODE(TooManyRequests),
                               CODE(ProducerBlockedQuotaExceededError),
                               CODE(UnknownError)};

START_TEST(refused_for_now_is_sent_again)
{
    struct stage *s = stage_new();
    stage_producer(s);
    fake_broker_trick(s->broker,
                      (struct trick){.on = CMD(SEND), .how = TRICK_ERROR, .code = may_pass[_i]});
    stage_send(s, "a");
    stage_send(s, "b");
    until_story(s, "done", 2);
    ck_assert_uint_eq(story_count(s, "done 0 1:"), 1);
    ck_assert_uint_eq(story_count(s, "done 1 1:"), 1);
    ck_assert_uint_eq(fake_broker_count(s->broker, "CONNECT"), 2);
    stage_drop(&s);
}
END_TEST

static const struct {
    int code;
    const char *story;
} endings[] = {
    {CODE(TopicTerminatedError), "ready\ndone 0 TERMINATED\ndone 1 TERMINATED\nfailed TERMINATED\n"
                                 "not taken CLOSED\nclosed\n"},
    {CODE(ProducerFenced), "ready\ndone 0 FENCED\ndone 1 FENCED\nfailed FENCED\n"
                           "not taken CLOSED\nclosed\n"},
};

START_TEST(terminated_or_fenced_is_the_end)
{
    struct stage *s = stage_new();
    stage_producer(s);
    fake_broker_trick(
        s->broker, (struct trick){.on = CMD(SEND), .how = TRICK_ERROR, .code = endings[_i].code});
    stage_send(s, "a");
    stage_send(s, "b");
    until_story(s, "failed", 1);
    stage_send(s, "c");
    stage_close_producer(s);
    until_story(s, "closed", 1);
    tells(s, endings[_i].story);
    ck_assert_uint_eq(fake_broker_count(s->broker, "CLOSE_PRODUCER"), 1);
    stage_drop(&s);
}
END_TEST

START_TEST(sent_away_it_comes_back)
{
    struct stage *s = stage_new();
    stage_producer(s);
    fake_broker_trick(s->broker, (struct trick){.on = CMD(SEND), .times = 2, .how = TRICK_MUTE});
    stage_send(s, "a");
    stage_send(s, "b");
    until_told(s, "SEND", 2);
    fake_broker_close_producer(s->broker, 0);
    until_story(s, "done", 2);
    was_told(s, "CONNECT\nLOOKUP t\nPRODUCER 0\nSEND 0 #0 'a'\nSEND 0 #1 'b'\n"
                "LOOKUP t\nPRODUCER 0\nSEND 0 #0 'a'\nSEND 0 #1 'b'\n");
    tells(s, "ready\nresent 0\nresent 1\ndone 0 1:0\ndone 1 1:1\n");
    stage_drop(&s);
}
END_TEST

/* ---- batches --------------------------------------------------------------------------------- */

static struct stage *batching(unsigned max, size_t bytes, uint64_t delay_us)
{
    struct stage *s = stage_new();
    s->p.batching = true;
    s->p.batch_max = max;
    s->p.batch_bytes = bytes;
    s->p.batch_delay_us = delay_us;
    stage_producer(s);
    return s;
}

START_TEST(a_batch_ends_by_count)
{
    struct stage *s = batching(2, 0, 100 * SECOND);
    for (unsigned i = 0; i < 4; i++)
        stage_send(s, "x");
    until_story(s, "done", 4);
    was_told(s, "CONNECT\nLOOKUP t\nPRODUCER 0\nSEND 0 #0-1 batch\nSEND 0 #2-3 batch\n");
    tells(s, "ready\ndone 0 1:0/0\ndone 1 1:0/1\ndone 2 1:1/0\ndone 3 1:1/1\n");
    stage_drop(&s);
}
END_TEST

START_TEST(a_batch_ends_by_bytes)
{
    struct stage *s = batching(0, 300, 100 * SECOND);
    char text[101] = {0};
    memset(text, 'x', 100);
    for (unsigned i = 0; i < 3; i++)
        stage_send(s, text);
    until_told(s, "SEND 0 #0-1 batch", 1);
    stage_send(s,
               "alone, as it would not fit into any batch: 100 bytes are said to be the most of "
               "those that a batch takes here, with what stands around each message, and so this "
               "one of more than that has a frame of its own behind the batch that it ends; "
               "300 bytes it has itself, or a little more than that: let us see, and so on ..");
    until_story(s, "done", 4);
    ck_assert_uint_eq(fake_broker_count(s->broker, "SEND 0 #2-2 batch"), 1);
    ck_assert_uint_eq(fake_broker_count(s->broker, "SEND 0 #3 'alo'"), 1);
    stage_drop(&s);
}
END_TEST

START_TEST(a_batch_ends_by_time_or_flush)
{
    struct stage *s = batching(0, 0, 20 * 1000);
    stage_send(s, "x");
    stage_send(s, "y");
    until_story(s, "done", 2);
    stage_send(s, "z");
    producer_flush(s->producer);
    until_told(s, "SEND 0 #2-2 batch", 1);
    ck_assert_uint_eq(fake_broker_count(s->broker, "SEND 0 #0-1 batch"), 1);
    stage_drop(&s);
}
END_TEST

START_TEST(a_batch_has_one_key)
{
    static const char *const keys[] = {"a", "a", "b", NULL, NULL, "b"};
    struct stage *s = batching(0, 0, 20 * 1000);
    for (unsigned i = 0; i < 6; i++) {
        char *key = keys[i] ? mem_string(keys[i]) : NULL;
        stage_send_bytes(s, "x", 1, key);
        mem_free(key);
    }
    until_story(s, "done", 6);
    was_told(s, "CONNECT\nLOOKUP t\nPRODUCER 0\nSEND 0 #0-1 batch\nSEND 0 #2-2 batch\n"
                "SEND 0 #3-4 batch\nSEND 0 #5-5 batch\n");
    stage_drop(&s);
}
END_TEST

/* ---- the window ------------------------------------------------------------------------------ */

START_TEST(a_full_window_says_busy_and_goes_on)
{
    struct stage *s = stage_new();
    s->p.pending_max = 2;
    stage_producer(s);
    stage_send(s, "a");
    stage_send(s, "b");
    stage_send(s, "c");
    tells(s, "ready\nnot taken BUSY\n");
    s->to_bring = 3;
    until_story(s, "done", 5);
    ck_assert_uint_eq(story_count(s, "not taken"), 1);
    ck_assert_uint_eq(fake_broker_count(s->broker, "SEND 0 #4 'another'"), 1);
    ck_assert_uint_eq(producer_pending(s->producer), 0);
    stage_drop(&s);
}
END_TEST

START_TEST(the_window_counts_bytes)
{
    struct stage *s = stage_new();
    static char big[1000];
    s->p.pending_bytes = 1500;
    stage_producer(s);
    stage_send_bytes(s, big, 1000, NULL);
    stage_send_bytes(s, big, 1000, NULL);
    tells(s, "ready\nnot taken BUSY\n");
    until_story(s, "done", 1);
    stage_send_bytes(s, big, 1000, NULL);
    until_story(s, "done 1", 1);
    stage_drop(&s);
}
END_TEST

/* The broker does not read, there is more to be written than any socket takes: receipts are read
 * all the same, or both would wait for each other. */
START_TEST(a_window_larger_than_the_sockets)
{
    enum { N = 40, SIZE = 1024 * 1024 };
    struct stage *s = stage_new();
    char *big = mem_alloc(SIZE);
    stage_producer(s);
    fake_broker_trick(s->broker, (struct trick){.on = CMD(SEND), .how = TRICK_MUTE});
    stage_send(s, "a");
    until_told(s, "SEND", 1);
    fake_broker_pause(s->broker);
    for (unsigned i = 0; i < N; i++)
        stage_send_bytes(s, big, SIZE, NULL);
    fake_broker_receipt(s->broker, 0, 0);
    until_story(s, "done 0", 1);
    fake_broker_resume(s->broker);
    until_story(s, "done", N + 1);
    ck_assert_uint_eq(fake_broker_count(s->broker, "CONNECT"), 1);
    mem_free(big);
    stage_drop(&s);
}
END_TEST

START_TEST(a_message_is_given_up_after_its_time)
{
    struct stage *s = stage_new();
    s->p.send_timeout_us = 300 * 1000;
    stage_producer(s);
    fake_broker_trick(s->broker, (struct trick){.on = CMD(SEND), .times = 100, .how = TRICK_MUTE});
    stage_send(s, "a");
    stage_run(s, 200 * 1000);
    stage_send(s, "b");
    until_story(s, "done 0 TIMEOUT", 1);
    ck_assert_uint_eq(s->done, 1);
    until_story(s, "done 1 TIMEOUT", 1);
    fake_broker_receipt(s->broker, 0, 0);
    fake_broker_untrick(s->broker);
    stage_send(s, "c");
    until_story(s, "done 2 1:", 1);
    stage_drop(&s);
}
END_TEST

/* ---- large messages -------------------------------------------------------------------------- */

static struct stage *small_frames(bool chunking)
{
    struct stage *s = stage_with(&(struct client_conf){.operation_timeout_us = 10 * SECOND}, 2000);
    s->p.chunking = chunking;
    stage_producer(s);
    return s;
}

START_TEST(too_big_is_not_taken)
{
    static char big[2000];
    char key[1980];
    struct stage *s = small_frames(false);
    stage_send_bytes(s, big, sizeof big, NULL);
    stage_send_bytes(s, big, 1800, NULL);
    memset(key, 'k', sizeof key);
    key[sizeof key - 1] = '\0';
    stage_send_bytes(s, big, 10, key); /* its metadata is */
    until_story(s, "done", 1);
    tells(s, "ready\nnot taken TOO_BIG\nnot taken TOO_BIG\ndone 0 1:0\n");
    stage_drop(&s);
    s = small_frames(true);
    stage_send_bytes(s, big, 10, key); /* no room for pieces */
    tells(s, "ready\nnot taken TOO_BIG\n");
    stage_drop(&s);
}
END_TEST

START_TEST(what_compresses_well_is_not_too_big)
{
    static char big[4000];
    struct stage *s = stage_with(&(struct client_conf){.operation_timeout_us = 10 * SECOND}, 2000);
    s->p.compression = COMPRESS_ZSTD;
    stage_producer(s);
    stage_send_bytes(s, big, sizeof big, NULL);
    until_story(s, "done 0 1:0", 1);
    stage_drop(&s);
}
END_TEST

START_TEST(pieces_are_one_message)
{
    static char big[4000];
    struct stage *s = small_frames(true);
    stage_send_bytes(s, big, sizeof big, NULL);
    stage_send(s, "b");
    until_story(s, "done", 2);
    tells(s, "ready\ndone 0 1:2\ndone 1 1:3\n");
    ck_assert_uint_eq(fake_broker_count(s->broker, "SEND 0 #0 piece"), 3);
    stage_drop(&s);
}
END_TEST

/* Whoever reads must find them in a row. */
START_TEST(pieces_are_sent_again_from_the_first)
{
    static char big[4000];
    struct stage *s = small_frames(true);
    fake_broker_trick(s->broker, (struct trick){.on = CMD(SEND), .after = 2, .how = TRICK_CUT});
    stage_send_bytes(s, big, sizeof big, NULL);
    until_told(s, "SEND 0 #0 piece 3/3", 1);
    fake_broker_forget(s->broker);
    until_story(s, "done", 1);
    was_told(s, "CONNECT\nLOOKUP t\nPRODUCER 0\nSEND 0 #0 piece 1/3\nSEND 0 #0 piece 2/3\n"
                "SEND 0 #0 piece 3/3\n");
    tells(s, "ready\nresent 0\ndone 0 1:4\n");
    stage_drop(&s);
}
END_TEST

START_TEST(a_refused_piece_fails_the_message)
{
    static char big[4000];
    struct stage *s = small_frames(true);
    fake_broker_trick(s->broker, (struct trick){.on = CMD(SEND),
                                                .after = 1,
                                                .times = 2,
                                                .how = TRICK_ERROR,
                                                .code = CODE(NotAllowedError)});
    stage_send_bytes(s, big, sizeof big, NULL);
    stage_send(s, "b");
    until_story(s, "done", 2);
    tells(s, "ready\ndone 0 NOT_ALLOWED\ndone 1 1:1\n");
    stage_drop(&s);
}
END_TEST

/* ---- closing --------------------------------------------------------------------------------- */

START_TEST(a_close_waits_for_what_is_pending)
{
    struct stage *s = batching(0, 0, 100 * SECOND);
    stage_send(s, "a");
    stage_close_producer(s);
    until_story(s, "closed", 1);
    tells(s, "ready\ndone 0 1:0/0\nclosed\n");
    ck_assert_uint_eq(fake_broker_count(s->broker, "CLOSE_PRODUCER"), 1);
    stage_drop(&s);
}
END_TEST

START_TEST(a_close_while_the_connection_is_lost)
{
    struct stage *s = stage_new();
    stage_producer(s);
    fake_broker_trick(s->broker, (struct trick){.on = CMD(SEND), .how = TRICK_CUT});
    stage_send(s, "a");
    until_told(s, "SEND", 1);
    stage_run(s, 20 * 1000);
    stage_close_producer(s);
    until_story(s, "closed", 1);
    tells(s, "ready\nresent 0\ndone 0 1:0\nclosed\n");
    stage_drop(&s);
}
END_TEST

START_TEST(a_close_of_an_idle_one_without_a_connection)
{
    struct stage *s = stage_new();
    stage_producer(s);
    fake_broker_cut(s->broker);
    stage_run(s, 20 * 1000);
    stage_close_producer(s);
    until_story(s, "closed", 1);
    ck_assert_uint_eq(fake_broker_count(s->broker, "CLOSE_PRODUCER"), 0);
    stage_drop(&s);
}
END_TEST

/* The broker may have made it: it is told that nobody wants it. */
START_TEST(a_close_while_it_opens_leaves_no_ghost)
{
    struct stage *s = stage_new();
    fake_broker_trick(s->broker, (struct trick){.on = CMD(PRODUCER), .how = TRICK_MUTE});
    s->producer = producer_open(s->client, &s->p);
    until_told(s, "PRODUCER", 1);
    stage_close_producer(s);
    until_told(s, "CLOSE_PRODUCER 0", 1);
    tells(s, "closed\n");
    stage_drop(&s);
}
END_TEST

static const struct trick close_tricks[] = {
    {.on = CMD(CLOSE_PRODUCER), .how = TRICK_CUT},
    {.on = CMD(CLOSE_PRODUCER), .how = TRICK_ERROR, .code = CODE(UnknownError)},
    {.on = CMD(CLOSE_PRODUCER), .how = TRICK_GARBAGE},
};

START_TEST(a_close_that_goes_wrong_is_one)
{
    struct stage *s = stage_new();
    stage_producer(s);
    fake_broker_trick(s->broker, close_tricks[_i]);
    stage_close_producer(s);
    until_story(s, "closed", 1);
    stage_drop(&s);
}
END_TEST

START_TEST(the_client_ends_what_is_open)
{
    struct stage *s = batching(0, 0, 100 * SECOND);
    struct producer *opening = producer_open(s->client, &s->p);
    fake_broker_trick(s->broker, (struct trick){.on = CMD(SEND), .times = 9, .how = TRICK_MUTE});
    stage_send(s, "a");
    producer_flush(s->producer);
    until_told(s, "SEND", 1);
    stage_send(s, "b"); /* in a batch that gathers */
    s->to_bring = 1;    /* refused by then */
    ck_assert_ptr_nonnull(opening);
    client_close(&s->client);
    ck_assert_uint_eq(story_count(s, "done 0 CLOSED"), 1);
    ck_assert_uint_eq(story_count(s, "done 1 CLOSED"), 1);
    ck_assert_uint_eq(story_count(s, "not taken CLOSED"), 1);
    stage_run(s, 1000);
    stage_drop(&s);
}
END_TEST

START_TEST(the_client_ends_what_closes)
{
    struct stage *s = stage_new();
    stage_producer(s);
    fake_broker_trick(s->broker, (struct trick){.on = CMD(SEND), .how = TRICK_MUTE});
    stage_send(s, "a");
    stage_close_producer(s);
    client_close(&s->client);
    stage_run(s, 1000);
    tells(s, "ready\ndone 0 CLOSED\nclosed\n");
    stage_drop(&s);
}
END_TEST

enum { N_PASS = sizeof may_pass / sizeof *may_pass, N_ENDINGS = sizeof endings / sizeof *endings };

int main(void)
{
    return suite_run("producer",
                     (suite_case[]){SUITE_CASE(receipts_come_in_order),
                                    SUITE_CASE(a_lost_connection_has_all_sent_again),
                                    SUITE_CASE(a_receipt_for_a_later_message_is_no_receipt),
                                    SUITE_CASE(a_receipt_for_an_earlier_message_means_nothing),
                                    SUITE_CASE(refused_for_good_fails_one_message),
                                    SUITE_LOOP(refused_for_now_is_sent_again, N_PASS),
                                    SUITE_LOOP(terminated_or_fenced_is_the_end, N_ENDINGS),
                                    SUITE_CASE(sent_away_it_comes_back),
                                    SUITE_CASE(a_batch_ends_by_count),
                                    SUITE_CASE(a_batch_ends_by_bytes),
                                    SUITE_CASE(a_batch_ends_by_time_or_flush),
                                    SUITE_CASE(a_batch_has_one_key),
                                    SUITE_CASE(a_full_window_says_busy_and_goes_on),
                                    SUITE_CASE(the_window_counts_bytes),
                                    SUITE_CASE(a_window_larger_than_the_sockets),
                                    SUITE_CASE(a_message_is_given_up_after_its_time),
                                    SUITE_CASE(too_big_is_not_taken),
                                    SUITE_CASE(what_compresses_well_is_not_too_big),
                                    SUITE_CASE(pieces_are_one_message),
                                    SUITE_CASE(pieces_are_sent_again_from_the_first),
                                    SUITE_CASE(a_refused_piece_fails_the_message),
                                    SUITE_CASE(a_close_waits_for_what_is_pending),
                                    SUITE_CASE(a_close_while_the_connection_is_lost),
                                    SUITE_CASE(a_close_of_an_idle_one_without_a_connection),
                                    SUITE_CASE(a_close_while_it_opens_leaves_no_ghost),
                                    SUITE_LOOP(a_close_that_goes_wrong_is_one, 3),
                                    SUITE_CASE(the_client_ends_what_is_open),
                                    SUITE_CASE(the_client_ends_what_closes),
                                    {0}});
}
