#include "proto/command_text.h"

#include <stdbool.h>
#include <string.h>

#include "proto/wire.h"

enum { DEPTH_MAX = 32 };
enum wire { WIRE_VARINT = 0, WIRE_64 = 1, WIRE_BYTES = 2, WIRE_32 = 5 };

/* Bytes of the character at `s`, 0 for none: shortest form, no surrogates, up to U+10FFFF; and no
 * NUL, at which C would end the string. */
static size_t character(const uint8_t *s, size_t left)
{
    if (s[0] < 0x80)
        return s[0] != 0;
    const size_t n = s[0] < 0xe0 ? 2 : s[0] < 0xf0 ? 3 : 4;
    if (s[0] < 0xc2 || s[0] > 0xf4 || n > left)
        return 0;
    for (size_t i = 1; i < n; i++)
        if ((s[i] & 0xc0) != 0x80)
            return 0;
    if ((s[0] == 0xe0 && s[1] < 0xa0) || (s[0] == 0xed && s[1] > 0x9f) ||
        (s[0] == 0xf0 && s[1] < 0x90) || (s[0] == 0xf4 && s[1] > 0x8f))
        return 0;
    return n;
}

static bool is_text(struct view v)
{
    for (size_t at = 0, n; at < v.len; at += n)
        if ((n = character(v.base + at, v.len - at)) == 0)
            return false;
    return true;
}

static enum err check(const ProtobufCMessageDescriptor *type, struct view bytes, unsigned depth);

static enum err check_field(const ProtobufCFieldDescriptor *f, struct view v, unsigned depth)
{
    if (f && f->type == PROTOBUF_C_TYPE_STRING && !is_text(v))
        return ERR_MALFORMED;
    if (f && f->type == PROTOBUF_C_TYPE_MESSAGE)
        return check(f->descriptor, v, depth + 1);
    return ERR_OK;
}

static enum err field(const ProtobufCMessageDescriptor *type, struct reader *r, unsigned depth)
{
    uint64_t key, value;
    struct view v;

    TRY(read_varint(r, &key));
    switch (key & 7) {
    case WIRE_VARINT:
        return read_varint(r, &value);
    case WIRE_64:
        return read_view(r, 8, &v);
    case WIRE_32:
        return read_view(r, 4, &v);
    case WIRE_BYTES:
        TRY(read_varint(r, &value));
        TRY(read_view(r, value, &v));
        return check_field(protobuf_c_message_descriptor_get_field(type, (unsigned)(key >> 3)), v,
                           depth);
    default:
        return ERR_MALFORMED;
    }
}

static enum err check(const ProtobufCMessageDescriptor *type, struct view bytes, unsigned depth)
{
    struct reader r = reader_of(bytes);

    if (depth > DEPTH_MAX)
        return ERR_MALFORMED;
    while (reader_left(&r) > 0)
        TRY(field(type, &r, depth));
    return ERR_OK;
}

enum err command_check_text(const ProtobufCMessageDescriptor *type, struct view bytes)
{
    return check(type, bytes, 0);
}
