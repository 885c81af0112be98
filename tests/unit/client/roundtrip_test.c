/* roundtrip_test.c - what a producer packs, a consumer unpacks: messages, batches, pieces. */
#include <stdio.h>
#include <string.h>

#include "client/consumer_inbox.h"
#include "client/producer_ops.h"
#include "common/mem.h"
#include "common/rng.h"
#include "proto/command.h"
#include "proto/frame.h"
#include "tests/lib/suite.h"

/* The broker's part: a MESSAGE frame around the stored body. */
static void deliver(struct inbox *b, const struct op *op, int64_t entry)
{
    Pulsar__Proto__BaseCommand base = PULSAR__PROTO__BASE_COMMAND__INIT;
    Pulsar__Proto__CommandMessage m = PULSAR__PROTO__COMMAND_MESSAGE__INIT;
    Pulsar__Proto__MessageIdData id = PULSAR__PROTO__MESSAGE_ID_DATA__INIT;
    base.type = PULSAR__PROTO__BASE_COMMAND__TYPE__MESSAGE;
    base.message = &m;
    m.message_id = &id;
    id.ledgerid = 3;
    id.entryid = (uint64_t)entry;
    struct slice front = command_front(&base, op->body.len);
    struct slab *whole = slab_new(front.len - 4 + op->body.len);
    memcpy(slab_bytes(whole), front.base + 4, front.len - 4);
    memcpy(slab_bytes(whole) + front.len - 4, op->body.base, op->body.len);
    inbox_put(b, slice_take(&whole, front.len - 4 + op->body.len), &m);
    slice_drop(&front);
}

static struct send send_of(const void *payload, size_t len)
{
    return (struct send){.payload = payload, .len = len};
}

static struct op *op_of(struct op_source from)
{
    unsigned n;
    struct op **all = op_build(&from, 1 << 20, false, &n);
    struct op *op = all[0];
    ck_assert_uint_eq(n, 1);
    mem_free(all);
    return op;
}

START_TEST(one_message)
{
    struct inbox b;
    struct inbox_next next;
    const struct property pairs[] = {{"a", "1"}, {"b", "two"}};
    struct send s = send_of("hello hello hello hello hello", 29);
    s.key = "key";
    s.properties = pairs;
    s.n_properties = 2;
    s.event_time = 99;
    struct op *op = op_of((struct op_source){
        .producer_name = "p", .sequence_id = 42, .compression = (enum compression)_i, .send = &s});

    inbox_init(&b);
    deliver(&b, op, 8);
    ck_assert_int_eq(inbox_next(&b, &next), INBOX_MESSAGE);
    ck_assert_uint_eq(next.message.payload.len, 29);
    ck_assert_int_eq(memcmp(next.message.payload.base, s.payload, 29), 0);
    ck_assert_str_eq(next.message.key, "key");
    ck_assert_str_eq(next.message.properties[1].value, "two");
    ck_assert_uint_eq(next.message.sequence_id, 42);
    ck_assert_uint_eq(next.message.event_time, 99);
    ck_assert_int_eq(next.message.id.entry, 8);
    ck_assert_int_eq(inbox_next(&b, &next), INBOX_EMPTY);
    inbox_drop(&b);
    op_drop(&op);
}
END_TEST

START_TEST(a_batch)
{
    enum { N = 300 };
    struct batch batch = {0};
    struct send sends[N];
    char texts[N][32];
    struct inbox b;
    struct inbox_next next;

    for (unsigned i = 0; i < N; i++) {
        snprintf(texts[i], sizeof texts[i], "message %u", i);
        sends[i] = send_of(texts[i], strlen(texts[i]));
        sends[i].sequence_id = 100 + i;
        batch_put(&batch, &sends[i]);
    }
    struct op *op = batch_close(&batch, "p", (enum compression)_i);
    ck_assert_uint_eq(op->sequence_id, 100);
    ck_assert_uint_eq(op->highest, 100 + N - 1);
    inbox_init(&b);
    deliver(&b, op, 1);
    for (unsigned i = 0; i < N; i++) {
        ck_assert_int_eq(inbox_next(&b, &next), INBOX_MESSAGE);
        ck_assert_int_eq(memcmp(next.message.payload.base, texts[i], strlen(texts[i])), 0);
        ck_assert_int_eq(next.message.id.batch_index, (int)i);
        ck_assert_uint_eq(next.message.sequence_id, 100 + i);
        ck_assert_uint_eq(next.batch.size, N);
        ck_assert_uint_eq(next.permits, 1);
    }
    ck_assert_int_eq(inbox_next(&b, &next), INBOX_EMPTY);
    inbox_drop(&b);
    op_drop(&op);
    batch_drop(&batch);
}
END_TEST

static struct op **pieces_of(const char *payload, size_t len, unsigned *n)
{
    struct send s = send_of(payload, len);
    return op_build(&(struct op_source){.producer_name = "p", .sequence_id = 1, .send = &s}, 1100,
                    true, n);
}

static void drop_pieces(struct op **pieces, unsigned n)
{
    for (unsigned i = 0; i < n; i++)
        op_drop(&pieces[i]);
    mem_free(pieces);
}

START_TEST(pieces)
{
    char payload[3500];
    uint64_t seed = 5;
    unsigned n;
    struct inbox b;
    struct inbox_next next;

    for (size_t i = 0; i < sizeof payload; i++)
        payload[i] = (char)rng_next(&seed);
    struct op **all = pieces_of(payload, sizeof payload, &n);
    ck_assert_uint_eq(n, 4);
    inbox_init(&b);
    for (unsigned i = 0; i < n; i++)
        deliver(&b, all[i], i);
    for (unsigned i = 0; i + 1 < n; i++)
        ck_assert_int_eq(inbox_next(&b, &next), INBOX_PIECE);
    ck_assert_int_eq(inbox_next(&b, &next), INBOX_MESSAGE);
    ck_assert_uint_eq(next.message.payload.len, sizeof payload);
    ck_assert_int_eq(memcmp(next.message.payload.base, payload, sizeof payload), 0);
    ck_assert_uint_eq(next.n_chunk_ids, 3);
    ck_assert_int_eq(next.chunk_ids[2].entry, 2);
    mem_free(next.chunk_ids);
    inbox_drop(&b);
    drop_pieces(all, n);
}
END_TEST

/* A resend puts the first piece into the topic again: the message begins anew. */
START_TEST(pieces_begun_twice)
{
    char payload[2500];
    unsigned n;
    struct inbox b;
    struct inbox_next next;

    memset(payload, 'x', sizeof payload);
    struct op **all = pieces_of(payload, sizeof payload, &n);
    inbox_init(&b);
    deliver(&b, all[0], 0);
    deliver(&b, all[1], 1);
    for (unsigned i = 0; i < n; i++)
        deliver(&b, all[i], 2 + i);
    for (unsigned i = 0; i < 4; i++)
        ck_assert_int_eq(inbox_next(&b, &next), INBOX_PIECE);
    ck_assert_int_eq(inbox_next(&b, &next), INBOX_MESSAGE);
    ck_assert_uint_eq(next.message.payload.len, sizeof payload);
    mem_free(next.chunk_ids);
    inbox_drop(&b);
    drop_pieces(all, n);
}
END_TEST

START_TEST(damage_is_said)
{
    struct inbox b;
    struct inbox_next next;
    struct send s = send_of("hello", 5);
    struct op *op = op_of((struct op_source){.producer_name = "p", .sequence_id = 1, .send = &s});

    struct slice broken = slice_copy(op->body.base, op->body.len);
    ((uint8_t *)(uintptr_t)broken.base)[broken.len - 1] ^= 1;
    slice_drop(&op->body);
    op->body = broken;
    inbox_init(&b);
    deliver(&b, op, 4);
    ck_assert_int_eq(inbox_next(&b, &next), INBOX_DAMAGED);
    ck_assert_int_eq(next.err, ERR_CHECKSUM);
    ck_assert_int_eq(next.message.id.entry, 4);
    ck_assert_int_eq(inbox_next(&b, &next), INBOX_EMPTY);
    inbox_drop(&b);
    op_drop(&op);
}
END_TEST

int main(void)
{
    return suite_run("roundtrip", (suite_case[]){SUITE_LOOP(one_message, 5),
                                                 SUITE_LOOP(a_batch, 5),
                                                 SUITE_CASE(pieces),
                                                 SUITE_CASE(pieces_begun_twice),
                                                 SUITE_CASE(damage_is_said),
                                                 {0}});
}
