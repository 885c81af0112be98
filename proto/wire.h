/* wire.h - big-endian fields, read without ever leaving the buffer and written without counting.
 *
 * A reader borrows its bytes.  Every read either advances past a whole field or changes
 * nothing and says ERR_MALFORMED; parsers read like the layout they parse.  A writer fills
 * memory of a known size; a hole is a size field that is filled once the size is known.
 */
#ifndef PROTO_WIRE_H
#define PROTO_WIRE_H

#include <assert.h>
#include <endian.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "common/buf.h"
#include "common/err.h"

struct reader {
    const uint8_t *at;
    const uint8_t *end;
};

static inline struct reader reader_of(struct view v)
{
    return (struct reader){.at = v.base, .end = v.len ? v.base + v.len : v.base};
}
static inline size_t reader_left(const struct reader *r)
{
    return (size_t)(r->end - r->at);
}

MUST_CHECK static inline enum err read_view(struct reader *r, size_t len, struct view *out)
{
    if (reader_left(r) < len)
        return ERR_MALFORMED;
    *out = (struct view){.base = r->at, .len = len};
    if (len)
        r->at += len;
    return ERR_OK;
}

MUST_CHECK static inline enum err read_u8(struct reader *r, uint8_t *out)
{
    if (reader_left(r) < sizeof *out)
        return ERR_MALFORMED;
    *out = *r->at++;
    return ERR_OK;
}

/* A number of the width of its bits. */
#define WIRE_READ(name_, type_, bits_)                                    \
    MUST_CHECK static inline enum err name_(struct reader *r, type_ *out) \
    {                                                                     \
        uint##bits_##_t n;                                                \
        if (reader_left(r) < sizeof n)                                    \
            return ERR_MALFORMED;                                         \
        memcpy(&n, r->at, sizeof n);                                      \
        r->at += sizeof n;                                                \
        *out = (type_)be##bits_##toh(n);                                  \
        return ERR_OK;                                                    \
    }
WIRE_READ(read_u16, uint16_t, 16)
WIRE_READ(read_u32, uint32_t, 32)
WIRE_READ(read_u64, uint64_t, 64)
WIRE_READ(read_i64, int64_t, 64)
#undef WIRE_READ

MUST_CHECK enum err read_varint_long(struct reader *r, uint64_t *out); /* of several bytes */
/* protobuf's */
MUST_CHECK static inline enum err read_varint(struct reader *r, uint64_t *out)
{
    if (r->at == r->end || *r->at > 0x7f)
        return read_varint_long(r, out);
    *out = *r->at++;
    return ERR_OK;
}

struct writer {
    uint8_t *base;
    size_t len, room;
};
struct hole {
    size_t at;
};

/* Writing past the room is a bug in the caller's arithmetic and is asserted. */
static inline uint8_t *write_room(struct writer *w, size_t len)
{
    uint8_t *at = w->base + w->len;
    assert(w->len <= w->room);
    assert(len <= w->room - w->len);
    w->len += len;
    return at;
}

static inline void write_u8(struct writer *w, uint8_t v)
{
    *write_room(w, 1) = v;
}

#define WIRE_WRITE(name_, bits_)                                  \
    static inline void name_(struct writer *w, uint##bits_##_t v) \
    {                                                             \
        v = htobe##bits_(v);                                      \
        memcpy(write_room(w, sizeof v), &v, sizeof v);            \
    }
WIRE_WRITE(write_u16, 16)
WIRE_WRITE(write_u32, 32)
WIRE_WRITE(write_u64, 64)
#undef WIRE_WRITE

static inline void write_bytes(struct writer *w, const void *bytes, size_t len)
{
    if (len)
        memcpy(write_room(w, len), bytes, len);
}

static inline void write_varint(struct writer *w, uint64_t v)
{
    for (; v > 0x7f; v >>= 7)
        write_u8(w, (uint8_t)(v | 0x80));
    write_u8(w, (uint8_t)v);
}

struct hole write_size_later(struct writer *w);  /* a u32 */
void fill_size(struct writer *w, struct hole h); /* with the bytes written since */

#endif
