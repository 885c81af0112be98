/* wire.h - big-endian fields, read without ever leaving the buffer and written without counting.
 *
 * A reader borrows its bytes.  Every read either advances past a whole field or changes
 * nothing and says ERR_MALFORMED; parsers read like the layout they parse.  A writer fills
 * memory of a known size; a hole is a size field that is filled once the size is known.
 */
#ifndef PROTO_WIRE_H
#define PROTO_WIRE_H

#include <stddef.h>
#include <stdint.h>

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

MUST_CHECK enum err read_u8(struct reader *r, uint8_t *out);
MUST_CHECK enum err read_u16(struct reader *r, uint16_t *out);
MUST_CHECK enum err read_u32(struct reader *r, uint32_t *out);
MUST_CHECK enum err read_u64(struct reader *r, uint64_t *out);
MUST_CHECK enum err read_i64(struct reader *r, int64_t *out);
MUST_CHECK enum err read_view(struct reader *r, size_t len, struct view *out);
MUST_CHECK enum err read_varint(struct reader *r, uint64_t *out); /* protobuf's */

struct writer {
    uint8_t *base;
    size_t len, room;
};
struct hole {
    size_t at;
};

/* Writing past the room is a bug in the caller's arithmetic and is asserted. */
void write_u8(struct writer *w, uint8_t v);
void write_u16(struct writer *w, uint16_t v);
void write_u32(struct writer *w, uint32_t v);
void write_u64(struct writer *w, uint64_t v);
void write_bytes(struct writer *w, const void *bytes, size_t len);
void write_varint(struct writer *w, uint64_t v);
struct hole write_size_later(struct writer *w);  /* a u32 */
void fill_size(struct writer *w, struct hole h); /* with the bytes written since */

#endif
