#include "proto/command.h"

#include "proto/frame.h"
#include "proto/wire.h"
#include "tests/lib/suite.h"
#include "tests/unit/proto/bytes.h"

typedef Pulsar__Proto__BaseCommand command;

enum { ARENA = 256 * 1024 };
static const ProtobufCEnumDescriptor *const types = &pulsar__proto__base_command__type__descriptor;

static command send_command(Pulsar__Proto__CommandSend *send)
{
    command c = PULSAR__PROTO__BASE_COMMAND__INIT;

    pulsar__proto__command_send__init(send);
    send->producer_id = 3;
    send->sequence_id = 1234567;
    send->has_num_messages = true;
    send->num_messages = 10;
    c.type = PULSAR__PROTO__BASE_COMMAND__TYPE__SEND;
    c.send = send;
    return c;
}

START_TEST(a_frame_reads_back)
{
    struct arena *arena = arena_new(ARENA);
    Pulsar__Proto__CommandSend send;
    command c = send_command(&send), *back;
    struct slice s = command_frame(&c);
    struct reader r = reader_of(slice_view(s));
    struct frame f;
    uint32_t total;

    ck_assert_int_eq(read_u32(&r, &total), ERR_OK);
    ck_assert_uint_eq(total, s.len - 4);
    ck_assert_int_eq(frame_split(view_of(r.at, total), &f), ERR_OK);
    ck_assert_uint_eq(f.body.len, 0);
    ck_assert_int_eq(command_read(f.command, arena, &back), ERR_OK);
    ck_assert_int_eq(back->type, PULSAR__PROTO__BASE_COMMAND__TYPE__SEND);
    ck_assert_uint_eq(back->send->sequence_id, 1234567);
    ck_assert_int_eq(back->send->num_messages, 10);
    slice_drop(&s);
    arena_drop(&arena);
}
END_TEST

START_TEST(a_front_counts_the_body_that_follows)
{
    Pulsar__Proto__CommandSend send;
    command c = send_command(&send);
    struct slice whole = command_frame(&c), front = command_front(&c, 1000);
    struct reader r = reader_of(slice_view(front));
    uint32_t total;

    ck_assert_int_eq(read_u32(&r, &total), ERR_OK);
    ck_assert_uint_eq(total, front.len - 4 + 1000);
    ck_assert_uint_eq(front.len, whole.len);
    ck_assert_mem_eq(front.base + 4, whole.base + 4, whole.len - 4);
    slice_drop(&whole);
    slice_drop(&front);
}
END_TEST

/* The public definition lets a type's sub-message have the type's number: all of them do here. */
START_TEST(each_type_has_its_message_and_name)
{
    for (unsigned i = 0; i < types->n_values; i++) {
        const ProtobufCFieldDescriptor *f = protobuf_c_message_descriptor_get_field(
            &pulsar__proto__base_command__descriptor, (unsigned)types->values[i].value);
        ck_assert_ptr_nonnull(f);
        ck_assert_int_eq(f->type, PROTOBUF_C_TYPE_MESSAGE);
        ck_assert_str_eq(command_name(types->values[i].value), types->values[i].name);
    }
    ck_assert_uint_eq(types->n_values + 1, pulsar__proto__base_command__descriptor.n_fields);
    ck_assert_str_eq(command_name(6), "SEND");
    ck_assert_str_eq(command_name(68), "TOPIC_MIGRATED");
    ck_assert_str_eq(command_name(0), "UNKNOWN");
    ck_assert_str_eq(command_name(45), "UNKNOWN");
    ck_assert_str_eq(command_name(-1), "UNKNOWN");
}
END_TEST

/* For every type: the type alone is refused, and so is another type's message. */
START_TEST(a_type_without_its_message_is_refused)
{
    struct arena *arena = arena_new(ARENA);

    for (unsigned i = 0; i < types->n_values; i++) {
        int type = types->values[i].value;
        uint8_t bytes[8];
        struct writer w = {.base = bytes, .room = sizeof(bytes)};
        command *c;

        write_varint(&w, 1 << 3);
        write_varint(&w, (uint64_t)type);
        ck_assert_int_eq(command_read(view_of(bytes, w.len), arena, &c), ERR_MALFORMED);
        write_varint(&w, (uint64_t)(type == 18 ? 19 : 18) << 3 | 2); /* a PING or PONG */
        write_varint(&w, 0);
        ck_assert_int_eq(command_read(view_of(bytes, w.len), arena, &c), ERR_MALFORMED);
        arena_reset(arena);
    }
    arena_drop(&arena);
}
END_TEST

START_TEST(an_unknown_type_is_refused)
{
    struct arena *arena = arena_new(ARENA);
    struct bytes ping = bytes_of("0812 920100"), unknown = bytes_of("0846 b20400"),
                 none = bytes_of("920100");
    command *c;

    ck_assert_int_eq(command_read(bytes_view(&ping), arena, &c), ERR_OK);
    ck_assert_int_eq(command_read(bytes_view(&unknown), arena, &c), ERR_MALFORMED);
    ck_assert_int_eq(command_read(bytes_view(&none), arena, &c), ERR_MALFORMED);
    ck_assert_int_eq(command_read(view_of(NULL, 0), arena, &c), ERR_MALFORMED);
    arena_drop(&arena);
}
END_TEST

START_TEST(a_missing_required_field_is_malformed)
{
    struct arena *arena = arena_new(ARENA);
    struct bytes send = bytes_of("0806 3202 0803"); /* producer id, no sequence id */
    command *c;

    ck_assert_int_eq(command_read(bytes_view(&send), arena, &c), ERR_MALFORMED);
    arena_drop(&arena);
}
END_TEST

START_TEST(every_truncation_is_refused)
{
    struct arena *arena = arena_new(ARENA);
    Pulsar__Proto__CommandSend send;
    command c = send_command(&send), *back;
    struct slice s = command_frame(&c);
    struct view bytes = view_of(s.base + 8, s.len - 8);

    for (size_t n = 0; n < bytes.len; n++) {
        struct view cut = bytes_cut(bytes, n);
        ck_assert_int_eq(command_read(cut, arena, &back), ERR_MALFORMED);
        arena_reset(arena);
        bytes_free(cut);
    }
    slice_drop(&s);
    arena_drop(&arena);
}
END_TEST

START_TEST(the_arena_s_limit_is_too_big)
{
    struct arena *arena = arena_new(512);
    struct bytes ping = bytes_of("0812 920100");
    command *c;

    ck_assert_int_eq(command_read(bytes_view(&ping), arena, &c), ERR_TOO_BIG);
    arena_drop(&arena);
}
END_TEST

/* A message id in a message id in ..., each of them whole. */
static enum err unpack_nested(int depth)
{
    enum { NEST = 7 << 3 | 2, LEVEL = 16 };
    static const uint8_t whole[] = {0x08, 0x01, 0x10, 0x01};
    struct arena *arena = arena_new((size_t)256 << 20);
    size_t room = LEVEL * (size_t)depth + sizeof(whole), at = room - sizeof(whole);
    uint8_t *bytes = mem_alloc(room);
    ProtobufCMessage *m;
    enum err e;

    memcpy(bytes + at, whole, sizeof(whole));
    for (int i = 0; i < depth; i++) {
        uint8_t head[LEVEL];
        struct writer w = {.base = head, .room = sizeof(head)};
        write_bytes(&w, whole, sizeof(whole));
        write_varint(&w, NEST);
        write_varint(&w, room - at);
        at -= w.len;
        memcpy(bytes + at, head, w.len);
    }
    e = command_unpack(&pulsar__proto__message_id_data__descriptor, view_of(bytes + at, room - at),
                       arena, &m);
    mem_free(bytes);
    arena_drop(&arena);
    return e;
}

/* protobuf-c alone would read the second and go down with the third. */
START_TEST(messages_nested_without_end_are_refused)
{
    ck_assert_int_eq(unpack_nested(8), ERR_OK);
    ck_assert_int_eq(unpack_nested(1000), ERR_MALFORMED);
    ck_assert_int_eq(unpack_nested(100000), ERR_MALFORMED);
}
END_TEST

/* As deep as commands go: an ack of a chunked message. */
START_TEST(the_deepest_command_is_read)
{
    struct arena *arena = arena_new(ARENA);
    Pulsar__Proto__MessageIdData first = PULSAR__PROTO__MESSAGE_ID_DATA__INIT,
                                 id = PULSAR__PROTO__MESSAGE_ID_DATA__INIT, *ids[] = {&id};
    Pulsar__Proto__CommandAck ack = PULSAR__PROTO__COMMAND_ACK__INIT;
    command c = PULSAR__PROTO__BASE_COMMAND__INIT, *back;
    struct slice s;

    first.ledgerid = 77;
    id.first_chunk_message_id = &first;
    ack.n_message_id = 1;
    ack.message_id = ids;
    c.type = PULSAR__PROTO__BASE_COMMAND__TYPE__ACK;
    c.ack = &ack;
    s = command_frame(&c);
    ck_assert_int_eq(command_read(view_of(s.base + 8, s.len - 8), arena, &back), ERR_OK);
    ck_assert_uint_eq(back->ack->message_id[0]->first_chunk_message_id->ledgerid, 77);
    slice_drop(&s);
    arena_drop(&arena);
}
END_TEST

/* A LOOKUP of a topic of these bytes, and one with them in a nested message. */
static enum err read_with_text(const char *text, size_t len, bool nested)
{
    struct arena *arena = arena_new(ARENA);
    uint8_t bytes[128], inner[64];
    struct writer w = {.base = bytes, .room = sizeof(bytes)};
    struct writer in = {.base = inner, .room = sizeof(inner)};
    command *c;

    write_varint(&in, 1 << 3 | 2);
    write_varint(&in, len);
    write_bytes(&in, text, len);
    write_varint(&in, 2 << 3 | (nested ? 2 : 0));
    write_varint(&in, 1);
    if (nested)
        write_bytes(&in, "v", 1);
    write_varint(&w, 1 << 3);
    write_varint(&w, nested ? 5 : 23);
    if (nested) { /* PRODUCER, with metadata of that key */
        write_varint(&w, 5 << 3 | 2);
        write_varint(&w, 7 + 2 + in.len);
        write_bytes(&w, "\x0a\x01t\x10\x01\x18\x01", 7);
        write_varint(&w, 6 << 3 | 2);
    } else {
        write_varint(&w, 23 << 3 | 2);
    }
    write_varint(&w, in.len);
    write_bytes(&w, inner, in.len);
    enum err err = command_read(view_of(bytes, w.len), arena, &c);
    arena_drop(&arena);
    return err;
}

static const struct text {
    const char *bytes;
    size_t len;
    enum err err;
} texts[] = {
    {"plain", 5, ERR_OK},
    {"", 0, ERR_OK},
    {"caf\xc3\xa9", 5, ERR_OK},
    {"\xe2\x82\xac", 3, ERR_OK},
    {"\xf4\x8f\xbf\xbf", 4, ERR_OK},
    {"x\0y", 3, ERR_MALFORMED},
    {"x\0", 2, ERR_MALFORMED},
    {"\x80", 1, ERR_MALFORMED},
    {"\xc0\x80", 2, ERR_MALFORMED},
    {"\xc3", 1, ERR_MALFORMED},
    {"\xe0\x9f\xbf", 3, ERR_MALFORMED},
    {"\xed\xa0\x80", 3, ERR_MALFORMED},
    {"\xf0\x8f\xbf\xbf", 4, ERR_MALFORMED},
    {"\xf4\x90\x80\x80", 4, ERR_MALFORMED},
    {"\xff", 1, ERR_MALFORMED},
    {"\xe2\x82y", 3, ERR_MALFORMED},
};
enum { TEXTS = sizeof(texts) / sizeof(texts[0]) };

START_TEST(a_string_is_utf8_without_nul)
{
    const struct text *t = &texts[_i];
    ck_assert_int_eq(read_with_text(t->bytes, t->len, false), t->err);
    ck_assert_int_eq(read_with_text(t->bytes, t->len, true), t->err);
}
END_TEST

START_TEST(what_was_unpacked_lives_in_the_arena)
{
    struct arena *arena = arena_new(ARENA);
    Pulsar__Proto__CommandSend send;
    command c = send_command(&send), *back;
    struct slice s = command_frame(&c);

    for (int i = 0; i < 10000; i++) {
        ck_assert_int_eq(command_read(view_of(s.base + 8, s.len - 8), arena, &back), ERR_OK);
        arena_reset(arena);
    }
    slice_drop(&s);
    arena_drop(&arena);
}
END_TEST

int main(void)
{
    return suite_run("command", (suite_case[]){SUITE_CASE(a_frame_reads_back),
                                               SUITE_CASE(a_front_counts_the_body_that_follows),
                                               SUITE_CASE(each_type_has_its_message_and_name),
                                               SUITE_CASE(a_type_without_its_message_is_refused),
                                               SUITE_CASE(an_unknown_type_is_refused),
                                               SUITE_CASE(a_missing_required_field_is_malformed),
                                               SUITE_CASE(every_truncation_is_refused),
                                               SUITE_CASE(the_arena_s_limit_is_too_big),
                                               SUITE_CASE(messages_nested_without_end_are_refused),
                                               SUITE_CASE(the_deepest_command_is_read),
                                               SUITE_LOOP(a_string_is_utf8_without_nul, TEXTS),
                                               SUITE_CASE(what_was_unpacked_lives_in_the_arena),
                                               {0}});
}
