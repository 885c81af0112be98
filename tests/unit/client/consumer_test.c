/* consumer_test.c - a consumer on good connections and bad ones. */
#include <stdio.h>
#include <string.h>

#include "client/producer_ops.h"
#include "common/mem.h"
#include "proto/message.h"
#include "tests/unit/client/stage.h"

#define SECOND ((uint64_t)1000000)

static void tells(const struct stage *s, const char *expected)
{
    ck_assert_str_eq(story(s), expected);
}

/* ---- entries --------------------------------------------------------------------------------- */

static void deliver_op(struct stage *s, int64_t entry, struct op *op)
{
    fake_broker_deliver(s->broker, entry, slice_view(op->body));
    op_drop(&op);
}

static struct op *message(const char *text)
{
    struct send send = {.payload = text, .len = strlen(text)};
    unsigned n;
    struct op **all =
        op_build(&(struct op_source){.producer_name = "p", .send = &send}, 1 << 20, false, &n);
    struct op *op = all[0];
    mem_free(all);
    return op;
}

static void deliver(struct stage *s, int64_t entry, const char *text)
{
    deliver_op(s, entry, message(text));
}

static struct op *batch_of(unsigned n)
{
    struct batch b = {0};
    struct send sends[64] = {0};
    for (unsigned i = 0; i < n; i++) {
        sends[i] = (struct send){.payload = "x", .len = 1, .sequence_id = i};
        batch_put(&b, &sends[i]);
    }
    struct op *op = batch_close(&b, "p", COMPRESS_NONE);
    batch_drop(&b);
    return op;
}

/* A flipped bit, `back` bytes before the end. */
static struct op *rotten(struct op *op, size_t back)
{
    struct slice copy = slice_copy(op->body.base, op->body.len);
    slab_bytes(copy.slab)[copy.len - back] ^= 1;
    slice_drop(&op->body);
    op->body = copy;
    return op;
}

static struct stage *with_queue(unsigned size)
{
    struct stage *s = stage_new();
    s->c.queue_size = size;
    s->acks = true;
    stage_consumer(s);
    return s;
}

/* ---- permits --------------------------------------------------------------------------------- */

START_TEST(permits_go_out_at_half)
{
    struct stage *s = with_queue(10);
    for (int i = 0; i < 4; i++)
        deliver(s, i, "x");
    until_story(s, "got", 4);
    until_pong(s);
    ck_assert_uint_eq(fake_broker_count(s->broker, "FLOW"), 1);
    deliver_op(s, 4, batch_of(3));
    until_story(s, "got", 7);
    until_told(s, "FLOW", 2);
    ck_assert_uint_eq(fake_broker_count(s->broker, "FLOW 0 10"), 1);
    ck_assert_uint_eq(fake_broker_count(s->broker, "FLOW 0 5"), 1);
    stage_drop(&s);
}
END_TEST

/* The permits of what cannot be opened come back too, a batch's all of them. */
START_TEST(a_damaged_entry_gives_its_permits_back)
{
    struct stage *s = with_queue(10);
    deliver_op(s, 0, rotten(batch_of(5), 1));
    until_story(s, "damaged 1:0 CHECKSUM", 1);
    until_told(s, "FLOW 0 5", 1);
    deliver(s, 1, "x");
    until_story(s, "got 1:1 'x'", 1);
    stage_flush(s);
    until_story(s, "flushed OK", 1);
    ck_assert_uint_eq(fake_broker_count(s->broker, "ACK 0 1:1"), 1);
    ck_assert_uint_eq(fake_broker_count(s->broker, "ACK"), 1);
    stage_drop(&s);
}
END_TEST

START_TEST(more_than_was_asked_for_is_cut_off)
{
    struct stage *s = stage_new();
    s->c.queue_size = 2;
    stage_consumer(s);
    consumer_pause(s->consumer);
    for (int i = 0; i < 8; i++)
        deliver(s, i, "x");
    until_told(s, "SUBSCRIBE", 2);
    stage_drop(&s);
}
END_TEST

/* ---- acknowledging --------------------------------------------------------------------------- */

START_TEST(acks_are_gathered)
{
    struct stage *s = with_queue(100);
    for (int i = 0; i < 3; i++)
        deliver(s, i, "x");
    until_told(s, "ACK", 1);
    ck_assert_uint_eq(fake_broker_count(s->broker, "ACK 0 1:0 1:1 1:2"), 1);
    stage_drop(&s);
}
END_TEST

/* It may have been taken: it is said again, before the broker may deliver anything. */
START_TEST(an_ack_without_an_answer_is_said_again)
{
    struct stage *s = with_queue(100);
    fake_broker_trick(s->broker, (struct trick){.on = CMD(ACK), .how = TRICK_TAKE_AND_CUT});
    deliver(s, 0, "x");
    until_told(s, "ACK", 1);
    fake_broker_forget(s->broker);
    stage_flush(s);
    tells(s, "ready\ngot 1:0 'x'\n");
    until_story(s, "flushed OK", 1);
    until_told(s, "FLOW", 1);
    ck_assert_str_eq(fake_broker_told(s->broker),
                     "CONNECT\nLOOKUP t\nSUBSCRIBE 0\nACK 0 1:0\nFLOW 0 100\n");
    stage_drop(&s);
}
END_TEST

static const struct {
    int code;
    const char *flushed;
    unsigned acks;
} ack_errors[] = {
    {CODE(MetadataError), "flushed OK", 2},
    {CODE(ServiceNotReady), "flushed OK", 2},
    {CODE(TooManyRequests), "flushed OK", 2},
    {CODE(NotAllowedError), "flushed NOT_ALLOWED", 1},
    {CODE(ConsumerNotFound), "flushed CONSUMER_NOT_FOUND", 1},
};

START_TEST(a_refused_ack_is_said_again_or_told)
{
    struct stage *s = with_queue(100);
    fake_broker_trick(
        s->broker, (struct trick){.on = CMD(ACK), .how = TRICK_ERROR, .code = ack_errors[_i].code});
    deliver(s, 0, "x");
    until_story(s, "got", 1);
    stage_flush(s);
    until_story(s, ack_errors[_i].flushed, 1);
    ck_assert_uint_eq(fake_broker_count(s->broker, "ACK 0 1:0"), ack_errors[_i].acks);
    stage_flush(s);
    until_story(s, "flushed", 2);
    ck_assert_uint_ge(story_count(s, "flushed OK"), 1);
    stage_drop(&s);
}
END_TEST

START_TEST(a_batch_is_acknowledged_whole)
{
    struct stage *s = stage_new();
    stage_consumer(s);
    deliver_op(s, 0, batch_of(3));
    until_story(s, "got", 3);
    for (int i = 2; i >= 0; i--) {
        stage_flush(s);
        until_story(s, "flushed OK", (unsigned)(3 - i));
        ck_assert_uint_eq(fake_broker_count(s->broker, "ACK"), 0);
        consumer_ack(s->consumer, (struct message_id){1, 0, -1, i});
    }
    until_told(s, "ACK 0 1:0", 1);
    stage_drop(&s);
}
END_TEST

/* What was acknowledged over a lost connection of a batch that was not complete counts no more, and
 * above all does not count for its neighbours. */
START_TEST(an_ack_of_a_batch_from_before_acknowledges_no_neighbour)
{
    struct stage *s = stage_new();
    stage_consumer(s);
    deliver_op(s, 0, batch_of(2));
    until_story(s, "got", 2);
    fake_broker_cut(s->broker);
    until_told(s, "FLOW", 2);
    consumer_ack(s->consumer, (struct message_id){1, 0, -1, 0});
    stage_flush(s);
    until_story(s, "flushed OK", 1);
    ck_assert_uint_eq(fake_broker_count(s->broker, "ACK"), 0);
    s->acks = true;
    deliver_op(s, 0, batch_of(2));
    until_told(s, "ACK 0 1:0", 1);
    stage_drop(&s);
}
END_TEST

START_TEST(cumulative_acks)
{
    struct stage *s = stage_new();
    stage_consumer(s);
    for (int i = 0; i < 4; i++)
        deliver(s, i, "x");
    deliver_op(s, 4, batch_of(3));
    until_story(s, "got", 7);
    consumer_ack_upto(s->consumer, (struct message_id){1, 2, -1, -1});
    consumer_ack_upto(s->consumer, (struct message_id){1, 1, -1, -1}); /* told by the other */
    until_told(s, "ACK 0 upto 1:2", 1);
    consumer_ack_upto(s->consumer, (struct message_id){1, 4, -1, 1});
    until_told(s, "ACK 0 upto 1:3", 1);
    consumer_ack_upto(s->consumer, (struct message_id){1, 4, -1, 2});
    until_told(s, "ACK 0 upto 1:4", 1);
    ck_assert_uint_eq(fake_broker_count(s->broker, "ACK"), 3);
    stage_drop(&s);
}
END_TEST

START_TEST(a_cumulative_ack_without_an_answer_is_said_again)
{
    struct stage *s = stage_new();
    stage_consumer(s);
    deliver(s, 7, "x");
    until_story(s, "got", 1);
    fake_broker_trick(s->broker, (struct trick){.on = CMD(ACK), .how = TRICK_CUT});
    consumer_ack_upto(s->consumer, (struct message_id){1, 7, -1, -1});
    until_told(s, "ACK 0 upto 1:7", 2);
    stage_drop(&s);
}
END_TEST

START_TEST(a_flush_waits_for_every_answer)
{
    struct stage *s = with_queue(100);
    fake_broker_trick(s->broker, (struct trick){.on = CMD(ACK), .how = TRICK_MUTE});
    deliver(s, 0, "x");
    until_story(s, "got", 1);
    stage_flush(s);
    until_told(s, "ACK", 1);
    deliver(s, 1, "x");
    until_told(s, "ACK", 2);
    until_pong(s);
    ck_assert_uint_eq(story_count(s, "flushed"), 0);
    fake_broker_cut(s->broker);
    until_story(s, "flushed OK", 1);
    ck_assert_uint_eq(fake_broker_count(s->broker, "ACK 0 1:0"), 2);
    stage_drop(&s);
}
END_TEST

/* ---- handing out ----------------------------------------------------------------------------- */

static void pause_at_second(struct stage *s, const struct received *m)
{
    if (m->id.batch_index == 1)
        consumer_pause(s->consumer);
}

START_TEST(a_pause_in_the_middle_of_a_batch)
{
    struct stage *s = stage_new();
    s->received = pause_at_second;
    stage_consumer(s);
    deliver_op(s, 0, batch_of(4));
    deliver(s, 1, "y");
    until_story(s, "got 1:0/1", 1);
    until_pong(s);
    ck_assert_uint_eq(story_count(s, "got"), 2);
    consumer_pause(s->consumer);
    consumer_resume(s->consumer);
    until_pong(s);
    ck_assert_uint_eq(story_count(s, "got"), 2);
    consumer_resume(s->consumer);
    until_story(s, "got", 5);
    tells(s, "ready\ngot 1:0/0 'x'\ngot 1:0/1 'x'\ngot 1:0/2 'x'\ngot 1:0/3 'x'\ngot 1:1 'y'\n");
    stage_drop(&s);
}
END_TEST

START_TEST(a_connection_lost_in_the_middle_of_a_batch)
{
    struct stage *s = stage_new();
    s->received = pause_at_second;
    stage_consumer(s);
    deliver_op(s, 0, batch_of(4));
    until_story(s, "got 1:0/1", 1);
    fake_broker_cut(s->broker);
    until_told(s, "FLOW", 2);
    s->received = NULL;
    consumer_resume(s->consumer);
    until_pong(s);
    ck_assert_uint_eq(story_count(s, "got"), 2);
    deliver_op(s, 0, batch_of(4));
    until_story(s, "got", 6);
    stage_drop(&s);
}
END_TEST

/* ---- readers --------------------------------------------------------------------------------- */

static struct stage *with_reader(struct message_id after)
{
    struct stage *s = stage_new();
    s->c.subscription = NULL;
    s->c.reader = true;
    s->c.after = after;
    stage_consumer(s);
    return s;
}

START_TEST(a_reader_goes_on_behind_what_it_read)
{
    struct stage *s = with_reader(MESSAGE_EARLIEST);
    deliver(s, 0, "a");
    deliver(s, 1, "b");
    until_story(s, "got", 2);
    fake_broker_cut(s->broker);
    until_told(s, "FLOW", 2);
    ck_assert_uint_eq(fake_broker_count(s->broker, "SUBSCRIBE 0 after -1:-1/-1 for now"), 1);
    ck_assert_uint_eq(fake_broker_count(s->broker, "SUBSCRIBE 0 after 1:1/-1 for now"), 1);
    deliver(s, 2, "c");
    until_story(s, "got 1:2 'c'", 1);
    until_told(s, "ACK 0 upto 1:2", 1);
    stage_drop(&s);
}
END_TEST

START_TEST(a_reader_that_read_nothing_begins_where_it_began)
{
    struct stage *s = with_reader(
        (struct message_id){.ledger = 1, .entry = 7, .partition = -1, .batch_index = -1});
    fake_broker_cut(s->broker);
    until_told(s, "FLOW", 2);
    ck_assert_uint_eq(fake_broker_count(s->broker, "SUBSCRIBE 0 after 1:7/-1 for now"), 2);
    stage_drop(&s);
}
END_TEST

/* The broker sends the entry again; what was read of it is not handed out twice. */
START_TEST(a_reader_goes_on_inside_a_batch)
{
    struct stage *s = stage_new();
    s->c.reader = true;
    s->c.after = (struct message_id){.ledger = 1, .entry = 0, .partition = -1, .batch_index = 0};
    s->received = pause_at_second;
    stage_consumer(s);
    ck_assert_uint_eq(fake_broker_count(s->broker, "SUBSCRIBE 0 after 1:0/0 for now"), 1);
    deliver_op(s, 0, batch_of(4));
    until_story(s, "got", 1);
    fake_broker_cut(s->broker);
    until_told(s, "FLOW", 2);
    ck_assert_uint_eq(fake_broker_count(s->broker, "SUBSCRIBE 0 after 1:0/1 for now"), 1);
    s->received = NULL;
    consumer_resume(s->consumer);
    deliver_op(s, 0, batch_of(4));
    deliver_op(s, 1, batch_of(1));
    until_story(s, "got 1:1/0", 1);
    tells(s, "ready\ngot 1:0/1 'x'\ngot 1:0/2 'x'\ngot 1:0/3 'x'\ngot 1:1/0 'x'\n");
    until_told(s, "ACK 0 upto 1:1", 1);
    stage_drop(&s);
}
END_TEST

START_TEST(sent_away_it_comes_back)
{
    struct stage *s = with_queue(10);
    fake_broker_close_consumer(s->broker, 0);
    until_told(s, "FLOW", 2);
    ck_assert_str_eq(fake_broker_told(s->broker),
                     "CONNECT\nLOOKUP t\nSUBSCRIBE 0\nFLOW 0 10\nLOOKUP t\nSUBSCRIBE 0\n"
                     "FLOW 0 10\n");
    deliver(s, 0, "x");
    until_story(s, "got", 1);
    stage_drop(&s);
}
END_TEST

static struct op *batch_that_lies(void)
{
    struct send send = {.payload = "no batch", .len = 8};
    Pulsar__Proto__MessageMetadata m = PULSAR__PROTO__MESSAGE_METADATA__INIT;
    struct op *op = mem_new(struct op);
    char name[] = "p";
    m.producer_name = name;
    m.has_num_messages_in_batch = true;
    m.num_messages_in_batch = 2000000000;
    op->body = message_body(&m, view_of(send.payload, send.len));
    return op;
}

START_TEST(what_cannot_be_opened_is_told)
{
    struct stage *s = with_queue(10);
    struct op *packed = message("x");
    deliver_op(s, 0, rotten(message("hello"), 1));
    deliver_op(s, 1, batch_that_lies());
    slice_drop(&packed->body);
    packed->body = slice_copy("\0\0\0\0", 4); /* no metadata, no payload */
    deliver_op(s, 2, packed);
    deliver(s, 3, "y");
    until_story(s, "got", 1);
    tells(s, "ready\ndamaged 1:0 CHECKSUM\ndamaged 1:1 MALFORMED\ndamaged 1:2 MALFORMED\n"
             "got 1:3 'y'\n");
    ck_assert_uint_eq(fake_broker_count(s->broker, "CONNECT"), 1);
    stage_drop(&s);
}
END_TEST

START_TEST(garbage_closes_the_link_and_all_is_mended)
{
    struct stage *s = with_queue(10);
    fake_broker_trick(s->broker, (struct trick){.on = CMD(ACK), .how = TRICK_GARBAGE});
    deliver(s, 0, "x");
    until_told(s, "ACK 0 1:0", 2);
    until_told(s, "FLOW", 2);
    deliver(s, 1, "y");
    until_story(s, "got 1:1 'y'", 1);
    stage_drop(&s);
}
END_TEST

/* ---- large messages -------------------------------------------------------------------------- */

struct large {
    struct op **pieces;
    unsigned n;
};

static struct large large_message(void)
{
    static char big[4000];
    struct send send = {.payload = big, .len = sizeof big};
    struct large l;
    memset(big, 'x', sizeof big);
    l.pieces = op_build(&(struct op_source){.producer_name = "p", .send = &send}, 2000, true, &l.n);
    ck_assert_uint_eq(l.n, 3);
    return l;
}

static void deliver_piece(struct stage *s, int64_t entry, const struct large *l, unsigned which)
{
    fake_broker_deliver(s->broker, entry, slice_view(l->pieces[which]->body));
}

static void large_drop(struct large *l)
{
    for (unsigned i = 0; i < l->n; i++)
        op_drop(&l->pieces[i]);
    mem_free(l->pieces);
}

/* The entries of the pieces as they lie in the topic, and what is acknowledged in the end. */
static const struct {
    unsigned n, pieces[8];
    const char *ack;
} rows[] = {
    {3, {0, 1, 2}, "ACK 0 1:0 1:1 1:2\n"},
    {5, {0, 1, 0, 1, 2}, "ACK 0 1:0 1:1 1:2 1:3 1:4\n"}, /* sent again from the first */
    {5, {0, 0, 1, 1, 2}, "ACK 0 1:0 1:1 1:2 1:3 1:4\n"}, /* sent again from some other */
};

START_TEST(pieces_come_together)
{
    struct stage *s = with_queue(100);
    struct large l = large_message();
    for (unsigned i = 0; i < rows[_i].n; i++)
        deliver_piece(s, i, &l, rows[_i].pieces[i]);
    until_story(s, "got", 1);
    until_told(s, rows[_i].ack, 1);
    ck_assert_uint_eq(story_count(s, "damaged"), 0);
    large_drop(&l);
    stage_drop(&s);
}
END_TEST

START_TEST(pieces_without_a_first_are_told)
{
    struct stage *s = with_queue(100);
    struct large l = large_message();
    deliver_piece(s, 0, &l, 1);
    deliver_piece(s, 1, &l, 0);
    deliver_piece(s, 2, &l, 2);
    until_story(s, "damaged", 2);
    tells(s, "ready\ndamaged 1:0 NOT_FOUND\ndamaged 1:2 MALFORMED\n");
    large_drop(&l);
    stage_drop(&s);
}
END_TEST

/* ---- opening and closing --------------------------------------------------------------------- */

static const struct {
    int code;
    bool again;
} refusals[] = {
    {CODE(ServiceNotReady), true},      {CODE(MetadataError), true},
    {CODE(ConsumerBusy), false},        {CODE(SubscriptionNotFound), false},
    {CODE(ConsumerAssignError), false}, {CODE(AuthorizationError), false},
};

START_TEST(a_first_subscription_is_tried_again_or_not)
{
    struct stage *s = stage_new();
    fake_broker_trick(
        s->broker,
        (struct trick){.on = CMD(SUBSCRIBE), .how = TRICK_ERROR, .code = refusals[_i].code});
    s->consumer = consumer_open(s->client, &s->c);
    until_story(s, refusals[_i].again ? "ready" : "failed", 1);
    stage_flush(s); /* of one that failed: answered all the same */
    until_story(s, "flushed", 1);
    stage_close_consumer(s);
    until_story(s, "closed", 1);
    stage_drop(&s);
}
END_TEST

START_TEST(a_close_takes_the_acks_along)
{
    struct stage *s = with_queue(100);
    deliver(s, 0, "x");
    until_story(s, "got", 1);
    stage_close_consumer(s);
    until_story(s, "closed", 1);
    ck_assert_str_eq(fake_broker_told(s->broker), "CONNECT\nLOOKUP t\nSUBSCRIBE 0\nFLOW 0 100\n"
                                                  "ACK 0 1:0\nCLOSE_CONSUMER 0\n");
    stage_drop(&s);
}
END_TEST

static void close_now(struct stage *s, const struct received *m)
{
    struct consumer *c = s->consumer;
    stage_close_consumer(s);
    consumer_ack(c, m->id);
}

START_TEST(a_close_from_within_received)
{
    struct stage *s = stage_new();
    s->received = close_now;
    stage_consumer(s);
    deliver_op(s, 0, batch_of(1));
    deliver(s, 1, "y");
    until_story(s, "closed", 1);
    tells(s, "ready\ngot 1:0/0 'x'\nclosed\n");
    stage_drop(&s);
}
END_TEST

static void cut_and_close(struct stage *s, const struct received *m)
{
    (void)m;
    fake_broker_close_consumer(s->broker, 0);
    fake_broker_cut(s->broker);
}

START_TEST(a_close_without_a_connection)
{
    struct stage *s = stage_new();
    s->received = cut_and_close;
    s->acks = true;
    stage_consumer(s);
    deliver(s, 0, "x");
    until_story(s, "got", 1);
    stage_run(s, 20 * 1000);
    stage_flush(s);
    stage_close_consumer(s);
    until_story(s, "closed", 1);
    tells(s, "ready\ngot 1:0 'x'\nflushed CLOSED\nclosed\n");
    stage_drop(&s);
}
END_TEST

START_TEST(a_close_while_it_opens_leaves_no_ghost)
{
    struct stage *s = stage_new();
    fake_broker_trick(s->broker, (struct trick){.on = CMD(SUBSCRIBE), .how = TRICK_MUTE});
    s->consumer = consumer_open(s->client, &s->c);
    until_told(s, "SUBSCRIBE", 1);
    stage_close_consumer(s);
    until_told(s, "CLOSE_CONSUMER 0", 1);
    tells(s, "closed\n");
    stage_drop(&s);
}
END_TEST

static const struct trick close_tricks[] = {
    {.on = CMD(CLOSE_CONSUMER), .how = TRICK_CUT},
    {.on = CMD(CLOSE_CONSUMER), .how = TRICK_ERROR, .code = CODE(UnknownError)},
    {.on = CMD(CLOSE_CONSUMER), .how = TRICK_GARBAGE},
    {.on = CMD(ACK), .how = TRICK_CUT},
};

START_TEST(a_close_that_goes_wrong_is_one)
{
    struct stage *s = with_queue(10);
    deliver(s, 0, "x");
    until_story(s, "got", 1);
    fake_broker_trick(s->broker, close_tricks[_i]);
    stage_close_consumer(s);
    until_story(s, "closed", 1);
    stage_drop(&s);
}
END_TEST

/* ---- unsubscribing --------------------------------------------------------------------------- */

START_TEST(unsubscribed_it_stays_away)
{
    struct stage *s = with_queue(10);
    stage_unsubscribe(s);
    stage_unsubscribe(s); /* the first is not answered yet */
    until_story(s, "unsubscribed OK", 1);
    fake_broker_cut(s->broker);
    stage_run(s, SECOND / 2);
    ck_assert_uint_eq(fake_broker_count(s->broker, "SUBSCRIBE"), 1);
    stage_close_consumer(s);
    until_story(s, "closed", 1);
    tells(s, "ready\nunsubscribed NOT_READY\nunsubscribed OK\nclosed\n");
    stage_drop(&s);
}
END_TEST

static const struct {
    struct trick trick;
    const char *story;
} unsubscribe_tricks[] = {
    {{.on = CMD(UNSUBSCRIBE), .how = TRICK_CUT}, "unsubscribed CLOSED"},
    {{.on = CMD(UNSUBSCRIBE), .how = TRICK_ERROR, .code = CODE(ConsumerBusy)},
     "unsubscribed CONSUMER_BUSY"},
};

START_TEST(an_unsubscribe_that_fails_is_told)
{
    struct stage *s = with_queue(10);
    fake_broker_trick(s->broker, unsubscribe_tricks[_i].trick);
    stage_unsubscribe(s);
    until_story(s, unsubscribe_tricks[_i].story, 1);
    stage_close_consumer(s);
    until_story(s, "closed", 1);
    stage_drop(&s);
}
END_TEST

START_TEST(a_close_waits_for_an_unsubscribe)
{
    struct stage *s = with_queue(10);
    stage_unsubscribe(s);
    stage_close_consumer(s);
    until_story(s, "closed", 1);
    tells(s, "ready\nunsubscribed OK\nclosed\n");
    stage_drop(&s);
}
END_TEST

START_TEST(the_client_ends_what_is_open)
{
    struct stage *s = with_queue(10);
    struct consumer *opening = consumer_open(s->client, &s->c);
    fake_broker_trick(s->broker, (struct trick){.on = CMD(ACK), .how = TRICK_MUTE});
    deliver_op(s, 0, batch_of(3));
    until_told(s, "ACK", 1);
    stage_unsubscribe(s);
    deliver(s, 1, "y");
    stage_flush(s);
    ck_assert_ptr_nonnull(opening);
    client_close(&s->client);
    ck_assert_uint_eq(story_count(s, "flushed CLOSED"), 1);
    ck_assert_uint_eq(story_count(s, "unsubscribed CLOSED"), 1);
    stage_run(s, 1000);
    stage_drop(&s);
}
END_TEST

#define COUNT(a) ((int)(sizeof(a) / sizeof *(a)))

int main(void)
{
    return suite_run(
        "consumer",
        (suite_case[]){SUITE_CASE(permits_go_out_at_half),
                       SUITE_CASE(a_damaged_entry_gives_its_permits_back),
                       SUITE_CASE(more_than_was_asked_for_is_cut_off),
                       SUITE_CASE(acks_are_gathered),
                       SUITE_CASE(an_ack_without_an_answer_is_said_again),
                       SUITE_LOOP(a_refused_ack_is_said_again_or_told, COUNT(ack_errors)),
                       SUITE_CASE(a_batch_is_acknowledged_whole),
                       SUITE_CASE(an_ack_of_a_batch_from_before_acknowledges_no_neighbour),
                       SUITE_CASE(cumulative_acks),
                       SUITE_CASE(a_cumulative_ack_without_an_answer_is_said_again),
                       SUITE_CASE(a_flush_waits_for_every_answer),
                       SUITE_CASE(a_pause_in_the_middle_of_a_batch),
                       SUITE_CASE(a_connection_lost_in_the_middle_of_a_batch),
                       SUITE_CASE(a_reader_goes_on_behind_what_it_read),
                       SUITE_CASE(a_reader_that_read_nothing_begins_where_it_began),
                       SUITE_CASE(a_reader_goes_on_inside_a_batch),
                       SUITE_CASE(sent_away_it_comes_back),
                       SUITE_CASE(what_cannot_be_opened_is_told),
                       SUITE_CASE(garbage_closes_the_link_and_all_is_mended),
                       SUITE_LOOP(pieces_come_together, COUNT(rows)),
                       SUITE_CASE(pieces_without_a_first_are_told),
                       SUITE_LOOP(a_first_subscription_is_tried_again_or_not, COUNT(refusals)),
                       SUITE_CASE(a_close_takes_the_acks_along),
                       SUITE_CASE(a_close_from_within_received),
                       SUITE_CASE(a_close_without_a_connection),
                       SUITE_CASE(a_close_while_it_opens_leaves_no_ghost),
                       SUITE_LOOP(a_close_that_goes_wrong_is_one, COUNT(close_tricks)),
                       SUITE_CASE(unsubscribed_it_stays_away),
                       SUITE_LOOP(an_unsubscribe_that_fails_is_told, COUNT(unsubscribe_tricks)),
                       SUITE_CASE(a_close_waits_for_an_unsubscribe),
                       SUITE_CASE(the_client_ends_what_is_open),
                       {0}});
}
