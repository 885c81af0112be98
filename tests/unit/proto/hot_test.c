/* The commands of every message, by hand and by protobuf-c: one and the same. */
#include "proto/hot.h"

#include <string.h>

#include "common/mem.h"
#include "common/rng.h"
#include "proto/command.h"
#include "tests/lib/suite.h"

typedef Pulsar__Proto__BaseCommand base_command;

enum { ARENA = 64 * 1024, ROUNDS = 20000 };

struct bench {
    uint64_t seed;
    struct arena *arena;
    base_command c;
    Pulsar__Proto__CommandSend send;
    Pulsar__Proto__CommandSendReceipt receipt;
    Pulsar__Proto__CommandMessage message;
    Pulsar__Proto__CommandAck ack;
    Pulsar__Proto__CommandFlow flow;
    Pulsar__Proto__MessageIdData id, *ids[1];
};

/* Of every length. */
static uint64_t number(struct bench *b)
{
    return rng_next(&b->seed) >> rng_below(&b->seed, 64);
}

static bool coin(struct bench *b)
{
    return rng_below(&b->seed, 2);
}

static void make_id(struct bench *b)
{
    pulsar__proto__message_id_data__init(&b->id);
    b->id.ledgerid = number(b);
    b->id.entryid = number(b);
    if ((b->id.has_partition = coin(b)))
        b->id.partition = (int32_t)number(b);
    if ((b->id.has_batch_index = coin(b)))
        b->id.batch_index = (int32_t)number(b);
    if ((b->id.has_batch_size = coin(b)))
        b->id.batch_size = (int32_t)number(b);
    b->ids[0] = &b->id;
}

static void make_send(struct bench *b)
{
    pulsar__proto__command_send__init(&b->send);
    b->send.producer_id = number(b);
    b->send.sequence_id = number(b);
    if ((b->send.has_num_messages = coin(b)))
        b->send.num_messages = (int32_t)number(b);
    if ((b->send.has_highest_sequence_id = coin(b)))
        b->send.highest_sequence_id = number(b);
    if ((b->send.has_is_chunk = coin(b)))
        b->send.is_chunk = coin(b);
    b->c.type = PULSAR__PROTO__BASE_COMMAND__TYPE__SEND;
    b->c.send = &b->send;
}

static void make_receipt(struct bench *b)
{
    pulsar__proto__command_send_receipt__init(&b->receipt);
    b->receipt.producer_id = number(b);
    b->receipt.sequence_id = number(b);
    b->receipt.message_id = &b->id;
    if ((b->receipt.has_highest_sequence_id = coin(b)))
        b->receipt.highest_sequence_id = number(b);
    b->c.type = PULSAR__PROTO__BASE_COMMAND__TYPE__SEND_RECEIPT;
    b->c.send_receipt = &b->receipt;
}

static void make_message(struct bench *b)
{
    pulsar__proto__command_message__init(&b->message);
    b->message.consumer_id = number(b);
    b->message.message_id = &b->id;
    if ((b->message.has_redelivery_count = coin(b)))
        b->message.redelivery_count = (uint32_t)number(b);
    if ((b->message.has_consumer_epoch = coin(b)))
        b->message.consumer_epoch = number(b);
    b->c.type = PULSAR__PROTO__BASE_COMMAND__TYPE__MESSAGE;
    b->c.message = &b->message;
}

static void make_ack(struct bench *b)
{
    pulsar__proto__command_ack__init(&b->ack);
    b->ack.consumer_id = number(b);
    b->ack.ack_type = coin(b) ? PULSAR__PROTO__COMMAND_ACK__ACK_TYPE__Cumulative
                              : PULSAR__PROTO__COMMAND_ACK__ACK_TYPE__Individual;
    b->ack.n_message_id = 1;
    b->ack.message_id = b->ids;
    if ((b->ack.has_request_id = coin(b)))
        b->ack.request_id = number(b);
    b->c.type = PULSAR__PROTO__BASE_COMMAND__TYPE__ACK;
    b->c.ack = &b->ack;
}

static void make_flow(struct bench *b)
{
    pulsar__proto__command_flow__init(&b->flow);
    b->flow.consumer_id = number(b);
    b->flow.messagepermits = (uint32_t)number(b);
    b->c.type = PULSAR__PROTO__BASE_COMMAND__TYPE__FLOW;
    b->c.flow = &b->flow;
}

static void make(struct bench *b, unsigned which)
{
    static void (*const makers[])(struct bench *) = {make_send, make_receipt, make_message,
                                                     make_ack, make_flow};

    pulsar__proto__base_command__init(&b->c);
    make_id(b);
    makers[which % 5](b);
}

static struct slice packed(const base_command *c)
{
    struct slab *s = slab_new(protobuf_c_message_get_packed_size(&c->base));
    return slice_take(&s, protobuf_c_message_pack(&c->base, slab_bytes(s)));
}

static void check_same(struct slice a, struct slice b)
{
    ck_assert_uint_eq(a.len, b.len);
    ck_assert_mem_eq(a.base, b.base, a.len);
}

START_TEST(both_ways_come_to_the_same)
{
    struct bench b = {.seed = 11, .arena = arena_new(ARENA)};

    for (unsigned i = 0; i < ROUNDS; i++) {
        uint8_t hot[HOT_MAX];
        base_command *back;

        make(&b, i);
        struct slice known = packed(&b.c);
        const size_t size = hot_write(&b.c, hot);
        ck_assert_uint_eq(size, known.len);
        ck_assert_mem_eq(hot, known.base, size);
        ck_assert(hot_read(slice_view(known), b.arena, &back));
        struct slice again = packed(back);
        check_same(known, again);
        slice_drop(&again);
        slice_drop(&known);
        arena_reset(b.arena);
    }
    arena_drop(&b.arena);
}
END_TEST

/* One byte less, or another one in the middle: what is taken by hand, protobuf-c takes too. */
START_TEST(what_is_broken_is_not_taken)
{
    struct bench b = {.seed = 12, .arena = arena_new(ARENA)};
    unsigned taken = 0;

    for (unsigned i = 0; i < ROUNDS; i++) {
        base_command *back;
        ProtobufCMessage *other;
        uint8_t bytes[HOT_MAX];

        make(&b, i);
        size_t len = hot_write(&b.c, bytes);
        if (coin(&b))
            len -= 1 + rng_below(&b.seed, 3);
        else
            bytes[rng_below(&b.seed, len)] = (uint8_t)rng_next(&b.seed);
        if (hot_read(view_of(bytes, len), b.arena, &back)) {
            taken++;
            ck_assert_int_eq(command_unpack(&pulsar__proto__base_command__descriptor,
                                            view_of(bytes, len), b.arena, &other),
                             ERR_OK);
            struct slice first = packed(back), second = packed((base_command *)other);
            check_same(first, second);
            slice_drop(&first);
            slice_drop(&second);
        }
        arena_reset(b.arena);
    }
    ck_assert_uint_gt(taken, 100); /* changed numbers are fine */
    arena_drop(&b.arena);
}
END_TEST

/* What consumers send that gather their acks. */
START_TEST(an_ack_of_many_is_read)
{
    enum { MANY = 1000 };
    struct bench b = {.seed = 14, .arena = arena_new(ARENA * 8)};
    Pulsar__Proto__MessageIdData *ids[MANY];
    base_command *back;

    make(&b, 3);
    for (unsigned i = 0; i < MANY; i++)
        ids[i] = &b.id;
    b.ack.n_message_id = MANY;
    b.ack.message_id = ids;
    struct slice whole = packed(&b.c);
    ck_assert(hot_read(slice_view(whole), b.arena, &back));
    ck_assert_uint_eq(back->ack->n_message_id, MANY);
    struct slice again = packed(back);
    check_same(whole, again);
    slice_drop(&again);
    slice_drop(&whole);
    arena_drop(&b.arena);
}
END_TEST

START_TEST(the_unusual_is_left_to_protobuf)
{
    struct bench b = {.seed = 13, .arena = arena_new(ARENA)};
    uint8_t hot[HOT_MAX];
    base_command *back;
    int64_t words[] = {1};

    make(&b, 0);
    b.send.has_marker = true;
    ck_assert_uint_eq(hot_write(&b.c, hot), 0);
    make(&b, 2);
    b.message.n_ack_set = 1;
    b.message.ack_set = words;
    ck_assert_uint_eq(hot_write(&b.c, hot), 0);
    struct slice whole = packed(&b.c);
    ck_assert(!hot_read(slice_view(whole), b.arena, &back));
    ck_assert_int_eq(command_read(slice_view(whole), b.arena, &back), ERR_OK);
    ck_assert_uint_eq(back->message->n_ack_set, 1);
    slice_drop(&whole);
    arena_drop(&b.arena);
}
END_TEST

int main(void)
{
    return suite_run("hot", (suite_case[]){
                                SUITE_CASE(both_ways_come_to_the_same),
                                SUITE_CASE(what_is_broken_is_not_taken),
                                SUITE_CASE(an_ack_of_many_is_read),
                                SUITE_CASE(the_unusual_is_left_to_protobuf),
                                {0},
                            });
}
