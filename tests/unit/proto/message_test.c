#include "proto/message.h"

#include <stdio.h>

#include "common/mem.h"
#include "common/rng.h"
#include "proto/wire.h"
#include "tests/lib/suite.h"
#include "tests/unit/proto/bytes.h"

typedef Pulsar__Proto__MessageMetadata metadata;
typedef Pulsar__Proto__SingleMessageMetadata single;

enum { ROUNDS = 3000, ARENA = 1 << 20, TEXT_MAX = 24 };

/* ---- random MessageMetadata ---- */

struct random {
    uint64_t seed;
    char text[8][TEXT_MAX]; /* what the metadata's strings point at */
    Pulsar__Proto__KeyValue pair;
    Pulsar__Proto__KeyValue *pairs[3];
    Pulsar__Proto__EncryptionKeys key;
    Pulsar__Proto__EncryptionKeys *keys[1];
};

static bool coin(struct random *r)
{
    return rng_below(&r->seed, 2);
}

/* Of every magnitude, so that varints come in every length. */
static uint64_t number(struct random *r)
{
    return rng_next(&r->seed) >> rng_below(&r->seed, 64);
}

static char *string(struct random *r, int slot)
{
    size_t len = rng_below(&r->seed, TEXT_MAX);

    for (size_t i = 0; i < len; i++)
        r->text[slot][i] = (char)(1 + rng_below(&r->seed, 127));
    r->text[slot][len] = 0;
    return r->text[slot];
}

static ProtobufCBinaryData binary(struct random *r, int slot)
{
    string(r, slot);
    return (ProtobufCBinaryData){.len = strlen(r->text[slot]), .data = (uint8_t *)r->text[slot]};
}

/* What the broker looks at. */
static void fill_seen(struct random *r, metadata *m)
{
    m->producer_name = string(r, 0);
    m->sequence_id = number(r);
    m->publish_time = number(r);
    if (coin(r))
        m->partition_key = string(r, 1);
    if (coin(r))
        m->uuid = string(r, 2);
    if ((m->has_ordering_key = coin(r)))
        m->ordering_key = binary(r, 3);
    if ((m->has_compression = coin(r)))
        m->compression = (Pulsar__Proto__CompressionType)rng_below(&r->seed, 5);
    if ((m->has_uncompressed_size = coin(r)))
        m->uncompressed_size = (uint32_t)number(r);
    if ((m->has_num_messages_in_batch = coin(r)))
        m->num_messages_in_batch = (int32_t)number(r);
    if ((m->has_highest_sequence_id = coin(r)))
        m->highest_sequence_id = number(r);
    if ((m->has_partition_key_b64_encoded = coin(r)))
        m->partition_key_b64_encoded = coin(r);
    if ((m->has_deliver_at_time = coin(r)))
        m->deliver_at_time = (int64_t)number(r);
    if ((m->has_marker_type = coin(r)))
        m->marker_type = (int32_t)number(r);
    if ((m->has_num_chunks_from_msg = coin(r)))
        m->num_chunks_from_msg = (int32_t)number(r);
    if ((m->has_chunk_id = coin(r)))
        m->chunk_id = (int32_t)number(r);
}

/* What it steps over. */
static void fill_unseen(struct random *r, metadata *m)
{
    r->pair = (Pulsar__Proto__KeyValue)PULSAR__PROTO__KEY_VALUE__INIT;
    r->pair.key = string(r, 4);
    r->pair.value = string(r, 5);
    r->pairs[0] = r->pairs[1] = r->pairs[2] = &r->pair;
    m->properties = r->pairs;
    m->n_properties = rng_below(&r->seed, 4);
    r->key = (Pulsar__Proto__EncryptionKeys)PULSAR__PROTO__ENCRYPTION_KEYS__INIT;
    r->key.key = r->text[4];
    r->key.value = binary(r, 6);
    r->keys[0] = &r->key;
    m->encryption_keys = r->keys;
    m->n_encryption_keys = rng_below(&r->seed, 2);
    if (coin(r))
        m->replicated_from = string(r, 7);
    if ((m->has_event_time = coin(r)))
        m->event_time = number(r);
    if ((m->has_null_value = coin(r)))
        m->null_value = coin(r);
    if ((m->has_txnid_most_bits = coin(r)))
        m->txnid_most_bits = number(r);
}

static metadata random_metadata(struct random *r)
{
    metadata m = PULSAR__PROTO__MESSAGE_METADATA__INIT;

    fill_seen(r, &m);
    fill_unseen(r, &m);
    return m;
}

/* ---- message_peek against protobuf-c ---- */

static bool same_text(struct view v, const char *text)
{
    size_t len = text ? strlen(text) : 0;
    return v.len == len && (len == 0 || memcmp(v.base, text, len) == 0);
}

static bool same_bytes(struct view v, ProtobufCBinaryData b)
{
    return v.len == b.len && (b.len == 0 || memcmp(v.base, b.data, b.len) == 0);
}

static void check_same(const struct message_peek *p, const metadata *m)
{
    int32_t batch = m->num_messages_in_batch;
    int64_t at = m->deliver_at_time;

    ck_assert(same_text(p->producer_name, m->producer_name));
    ck_assert(same_text(p->partition_key, m->partition_key));
    ck_assert(same_text(p->uuid, m->uuid));
    ck_assert(same_bytes(p->ordering_key, m->ordering_key));
    ck_assert_uint_eq(p->sequence_id, m->sequence_id);
    ck_assert_uint_eq(p->publish_time, m->publish_time);
    ck_assert_uint_eq(p->highest_sequence_id, m->highest_sequence_id);
    ck_assert_uint_eq(p->deliver_at_time, at > 0 ? (uint64_t)at : 0);
    ck_assert_int_eq(p->is_batch, m->has_num_messages_in_batch);
    ck_assert_int_eq(p->num_messages, batch > 1 ? batch : 1);
    ck_assert_int_eq(p->num_chunks, m->num_chunks_from_msg);
    ck_assert_int_eq(p->chunk_id, m->chunk_id);
    ck_assert_int_eq(p->partition_key_b64, m->partition_key_b64_encoded);
    ck_assert_int_eq(p->has_marker, m->has_marker_type);
    ck_assert_int_eq(p->marker_type, m->marker_type);
    ck_assert_int_eq(p->compression, (int)m->compression);
    ck_assert_uint_eq(p->uncompressed_size, m->uncompressed_size);
}

START_TEST(peek_sees_what_was_packed)
{
    struct random r = {.seed = 5};

    for (int round = 0; round < ROUNDS; round++) {
        uint8_t bytes[1024];
        metadata m = random_metadata(&r);
        size_t n = pulsar__proto__message_metadata__pack(&m, bytes);
        struct message_peek p;
        metadata *back = pulsar__proto__message_metadata__unpack(NULL, n, bytes);

        ck_assert_ptr_nonnull(back);
        ck_assert_int_eq(message_peek(view_of(bytes, n), &p), ERR_OK);
        check_same(&p, back);
        pulsar__proto__message_metadata__free_unpacked(back, NULL);
    }
}
END_TEST

/* Every cut, and bytes turned at random: never outside the buffer, and never refused where
 * protobuf-c would take it. */
START_TEST(peek_takes_whatever_protobuf_takes)
{
    struct random r = {.seed = 6};

    for (int round = 0; round < ROUNDS; round++) {
        uint8_t bytes[1024];
        metadata m = random_metadata(&r), *back;
        size_t n = pulsar__proto__message_metadata__pack(&m, bytes);
        struct view cut;
        struct message_peek p;
        enum err e;

        bytes[rng_below(&r.seed, n)] ^= (uint8_t)rng_next(&r.seed);
        cut = bytes_cut(view_of(bytes, n), coin(&r) ? n : rng_below(&r.seed, n));
        e = message_peek(cut, &p);
        back = pulsar__proto__message_metadata__unpack(NULL, cut.len, cut.base);
        if (back) {
            ck_assert_int_eq(e, ERR_OK);
            ck_assert_uint_eq(p.sequence_id, back->sequence_id);
            pulsar__proto__message_metadata__free_unpacked(back, NULL);
        }
        bytes_free(cut);
    }
}
END_TEST

#define REQUIRED "0a0170 1001 1802"

static enum err peek(const char *hex, struct message_peek *out)
{
    struct bytes b = bytes_of(hex);
    struct view cut = bytes_cut(bytes_view(&b), b.len);
    enum err e = message_peek(cut, out);

    bytes_free(cut);
    return e;
}

START_TEST(peek_wants_the_required_fields)
{
    struct message_peek p;

    ck_assert_int_eq(peek(REQUIRED, &p), ERR_OK);
    ck_assert(p.sequence_id == 1 && p.publish_time == 2 && p.num_messages == 1 && !p.is_batch);
    ck_assert_int_eq(peek("1001 1802", &p), ERR_MALFORMED);
    ck_assert_int_eq(peek("0a0170 1802", &p), ERR_MALFORMED);
    ck_assert_int_eq(peek("0a0170 1001", &p), ERR_MALFORMED);
    ck_assert_int_eq(peek("0801 1001 1802", &p), ERR_MALFORMED); /* producer_name as a number */
    ck_assert_int_eq(message_peek(view_of(NULL, 0), &p), ERR_MALFORMED);
}
END_TEST

START_TEST(peek_steps_over_what_it_does_not_know)
{
    struct message_peek p;

    ck_assert_int_eq(peek(REQUIRED "98063f a106 0102030405060708 aa06 03616263 b506 01020304", &p),
                     ERR_OK);
    ck_assert_uint_eq(p.sequence_id, 1);
    ck_assert_int_eq(peek(REQUIRED "9b06", &p), ERR_MALFORMED);          /* a group */
    ck_assert_int_eq(peek(REQUIRED "9f06", &p), ERR_MALFORMED);          /* wire type 7 */
    ck_assert_int_eq(peek(REQUIRED "a106 01020304", &p), ERR_MALFORMED); /* half of 64 bits */
    ck_assert_int_eq(peek(REQUIRED "b506 0102", &p), ERR_MALFORMED);     /* half of 32 */
    ck_assert_int_eq(peek(REQUIRED "aa06 0461", &p), ERR_MALFORMED);     /* a length beyond */
    ck_assert_int_eq(peek(REQUIRED "aa06 ffffffffffffffffff01", &p), ERR_MALFORMED);
}
END_TEST

START_TEST(peek_counts_no_batch_below_one)
{
    struct message_peek p;

    ck_assert_int_eq(peek(REQUIRED "5800", &p), ERR_OK);
    ck_assert(p.is_batch && p.num_messages == 1);
    ck_assert_int_eq(peek(REQUIRED "58ffffffffffffffffff01", &p), ERR_OK);
    ck_assert(p.is_batch && p.num_messages == 1);
    ck_assert_int_eq(peek(REQUIRED "9801ffffffffffffffffff01", &p), ERR_OK);
    ck_assert_uint_eq(p.deliver_at_time, 0);
}
END_TEST

/* ---- broker entry metadata ---- */

START_TEST(broker_entry_reads_back)
{
    uint64_t seed = 9;

    for (int round = 0; round < 1000; round++) {
        struct broker_entry b = {.present = true}, back;
        uint8_t bytes[BROKER_ENTRY_MAX + 3];
        struct view rest;
        size_t n;

        b.timestamp = rng_next(&seed) >> rng_below(&seed, 64);
        b.index = rng_next(&seed) >> rng_below(&seed, 64);
        n = broker_entry_write(&b, bytes);
        memcpy(bytes + n, "abc", 3);
        ck_assert_int_eq(broker_entry_read(view_of(bytes, n + 3), &back, &rest), ERR_OK);
        ck_assert(back.present && back.timestamp == b.timestamp && back.index == b.index);
        ck_assert_uint_eq(rest.len, 3);
        ck_assert_mem_eq(rest.base, "abc", 3);
    }
}
END_TEST

START_TEST(broker_entry_is_what_pulsar_writes)
{
    struct broker_entry b = {.timestamp = 1000, .index = 5};
    uint8_t bytes[BROKER_ENTRY_MAX];
    size_t n = broker_entry_write(&b, bytes);
    Pulsar__Proto__BrokerEntryMetadata *m;

    ck_bytes_eq(bytes, n, "0e02 00000005 08e807 1005");
    m = pulsar__proto__broker_entry_metadata__unpack(NULL, n - 6, bytes + 6);
    ck_assert(m->broker_timestamp == 1000 && m->index == 5);
    pulsar__proto__broker_entry_metadata__free_unpacked(m, NULL);
    b.timestamp = b.index = UINT64_MAX;
    ck_assert_uint_eq(broker_entry_write(&b, bytes), BROKER_ENTRY_MAX);
}
END_TEST

START_TEST(an_entry_without_broker_metadata_is_all_rest)
{
    struct bytes b = bytes_of("0e01 00000000 00"),
                 unknown = bytes_of("0e02 00000005 1a0161 1007 ff");
    struct broker_entry e;
    struct view rest;

    ck_assert_int_eq(broker_entry_read(bytes_view(&b), &e, &rest), ERR_OK);
    ck_assert(!e.present && rest.base == b.at && rest.len == b.len);
    ck_assert_int_eq(broker_entry_read(view_of(b.at, 1), &e, &rest), ERR_OK);
    ck_assert(!e.present && rest.len == 1);
    ck_assert_int_eq(broker_entry_read(bytes_view(&unknown), &e, &rest), ERR_OK);
    ck_assert(e.present && e.index == 7 && rest.len == 1);
}
END_TEST

START_TEST(truncated_broker_metadata_is_refused)
{
    struct bytes b = bytes_of("0e02 00000005 08e807 1005"),
                 inner = bytes_of("0e02 00000004 08e80710 05");
    struct broker_entry e;
    struct view rest;

    for (size_t n = 2; n < b.len; n++) {
        struct view cut = bytes_cut(bytes_view(&b), n);
        ck_assert_int_eq(broker_entry_read(cut, &e, &rest), ERR_MALFORMED);
        bytes_free(cut);
    }
    ck_assert_int_eq(broker_entry_read(bytes_view(&inner), &e, &rest), ERR_MALFORMED);
}
END_TEST

/* ---- batches ---- */

struct batch {
    uint8_t *base;
    size_t len, room;
};

static struct batch batch_of(int count)
{
    struct batch b = {0};
    char key[32], payload[32];

    for (int i = 0; i < count; i++) {
        single s = PULSAR__PROTO__SINGLE_MESSAGE_METADATA__INIT;
        snprintf(key, sizeof(key), "key-%d", i);
        snprintf(payload, sizeof(payload), "payload-%d", i);
        s.partition_key = key;
        batch_add(&b.base, &b.len, &b.room, &s, view_of(payload, i ? strlen(payload) : 0));
    }
    return b;
}

START_TEST(a_batch_reads_back)
{
    struct arena *arena = arena_new(ARENA);
    struct batch b = batch_of(100);
    struct view rest = view_of(b.base, b.len), payload;
    char key[32], want[32];
    single *s;

    for (int i = 0; i < 100; i++) {
        ck_assert_int_eq(batch_next(&rest, arena, &s, &payload), ERR_OK);
        snprintf(key, sizeof(key), "key-%d", i);
        snprintf(want, sizeof(want), "payload-%d", i);
        ck_assert_str_eq(s->partition_key, key);
        ck_assert(same_text(payload, i ? want : ""));
    }
    ck_assert_int_eq(batch_next(&rest, arena, &s, &payload), ERR_END);
    mem_free(b.base);
    arena_drop(&arena);
}
END_TEST

START_TEST(a_truncated_batch_is_refused)
{
    struct arena *arena = arena_new(ARENA);
    struct batch b = batch_of(3);

    for (size_t n = 0; n < b.len; n++) {
        struct view cut = bytes_cut(view_of(b.base, n), n), rest = cut, payload;
        single *s;
        enum err e;
        int whole = 0;
        while ((e = batch_next(&rest, arena, &s, &payload)) == ERR_OK)
            whole++;
        ck_assert_int_lt(whole, 3);
        ck_assert(e == ERR_MALFORMED || (e == ERR_END && rest.len == 0));
        arena_reset(arena);
        bytes_free(cut);
    }
    mem_free(b.base);
    arena_drop(&arena);
}
END_TEST

START_TEST(a_negative_payload_size_is_refused)
{
    struct arena *arena = arena_new(ARENA);
    struct bytes b = bytes_of("0000000b 18ffffffffffffffffff01 6162");
    struct view rest = bytes_view(&b), payload;
    single *s;

    ck_assert_int_eq(batch_next(&rest, arena, &s, &payload), ERR_MALFORMED);
    ck_assert_uint_eq(rest.len, b.len);
    arena_drop(&arena);
}
END_TEST

START_TEST(a_body_is_split_and_checked)
{
    struct random r = {.seed = 8};
    metadata m = random_metadata(&r);
    struct slice s = message_body(&m, view_of("payload", 7));
    struct message_peek p;
    struct frame f;

    ck_assert_int_eq(frame_split_body(slice_view(s), &f), ERR_OK);
    ck_assert(f.has_crc);
    ck_assert_int_eq(frame_check(&f), ERR_OK);
    ck_assert(same_text(f.payload, "payload"));
    ck_assert_int_eq(message_peek(f.metadata, &p), ERR_OK);
    check_same(&p, &m);
    slice_drop(&s);
}
END_TEST

int main(void)
{
    return suite_run("message",
                     (suite_case[]){SUITE_CASE(peek_sees_what_was_packed),
                                    SUITE_CASE(peek_takes_whatever_protobuf_takes),
                                    SUITE_CASE(peek_wants_the_required_fields),
                                    SUITE_CASE(peek_steps_over_what_it_does_not_know),
                                    SUITE_CASE(peek_counts_no_batch_below_one),
                                    SUITE_CASE(broker_entry_reads_back),
                                    SUITE_CASE(broker_entry_is_what_pulsar_writes),
                                    SUITE_CASE(an_entry_without_broker_metadata_is_all_rest),
                                    SUITE_CASE(truncated_broker_metadata_is_refused),
                                    SUITE_CASE(a_batch_reads_back),
                                    SUITE_CASE(a_truncated_batch_is_refused),
                                    SUITE_CASE(a_negative_payload_size_is_refused),
                                    SUITE_CASE(a_body_is_split_and_checked),
                                    {0}});
}
