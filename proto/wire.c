#include "proto/wire.h"

#include <assert.h>
#include <string.h>

enum { VARINT_MAX = 10 };

/* ---- reading ---- */

enum err read_view(struct reader *r, size_t len, struct view *out)
{
    if (reader_left(r) < len)
        return ERR_MALFORMED;
    *out = (struct view){.base = r->at, .len = len};
    if (len)
        r->at += len;
    return ERR_OK;
}

/* A big-endian number of `size` bytes. */
static enum err read_number(struct reader *r, size_t size, uint64_t *out)
{
    struct view v;
    uint64_t n = 0;

    TRY(read_view(r, size, &v));
    for (size_t i = 0; i < size; i++)
        n = n << 8 | v.base[i];
    *out = n;
    return ERR_OK;
}

enum err read_u8(struct reader *r, uint8_t *out)
{
    uint64_t n;
    TRY(read_number(r, 1, &n));
    *out = (uint8_t)n;
    return ERR_OK;
}

enum err read_u16(struct reader *r, uint16_t *out)
{
    uint64_t n;
    TRY(read_number(r, 2, &n));
    *out = (uint16_t)n;
    return ERR_OK;
}

enum err read_u32(struct reader *r, uint32_t *out)
{
    uint64_t n;
    TRY(read_number(r, 4, &n));
    *out = (uint32_t)n;
    return ERR_OK;
}

enum err read_u64(struct reader *r, uint64_t *out)
{
    return read_number(r, 8, out);
}

enum err read_i64(struct reader *r, int64_t *out)
{
    uint64_t n;
    TRY(read_number(r, 8, &n));
    *out = (int64_t)n;
    return ERR_OK;
}

/* What a tenth byte has beyond 64 bits is dropped, as every protobuf reader does. */
enum err read_varint(struct reader *r, uint64_t *out)
{
    size_t left = reader_left(r), most = left < VARINT_MAX ? left : VARINT_MAX;
    uint64_t n = 0;

    for (size_t i = 0; i < most; i++) {
        n |= (uint64_t)(r->at[i] & 0x7f) << (7 * i);
        if (!(r->at[i] & 0x80)) {
            r->at += i + 1;
            *out = n;
            return ERR_OK;
        }
    }
    return ERR_MALFORMED;
}

/* ---- writing ---- */

static uint8_t *write_room(struct writer *w, size_t len)
{
    uint8_t *at = w->base + w->len;
    assert(w->len <= w->room);
    assert(len <= w->room - w->len);
    w->len += len;
    return at;
}

static void put_number(uint8_t *at, size_t size, uint64_t v)
{
    for (size_t i = size; i-- > 0; v >>= 8)
        at[i] = (uint8_t)v;
}

void write_u8(struct writer *w, uint8_t v)
{
    *write_room(w, 1) = v;
}

void write_u16(struct writer *w, uint16_t v)
{
    put_number(write_room(w, 2), 2, v);
}

void write_u32(struct writer *w, uint32_t v)
{
    put_number(write_room(w, 4), 4, v);
}

void write_u64(struct writer *w, uint64_t v)
{
    put_number(write_room(w, 8), 8, v);
}

void write_bytes(struct writer *w, const void *bytes, size_t len)
{
    if (len)
        memcpy(write_room(w, len), bytes, len);
}

void write_varint(struct writer *w, uint64_t v)
{
    for (; v > 0x7f; v >>= 7)
        write_u8(w, (uint8_t)(v | 0x80));
    write_u8(w, (uint8_t)v);
}

struct hole write_size_later(struct writer *w)
{
    struct hole h = {.at = w->len};
    write_u32(w, 0);
    return h;
}

void fill_size(struct writer *w, struct hole h)
{
    size_t size = w->len - h.at - 4;
    assert(h.at + 4 <= w->len);
    assert(size <= UINT32_MAX);
    put_number(w->base + h.at, 4, size);
}
