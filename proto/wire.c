#include "proto/wire.h"

enum { VARINT_MAX = 10 };

/* What a tenth byte has beyond 64 bits is dropped, as every protobuf reader does. */
enum err read_varint_long(struct reader *r, uint64_t *out)
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

struct hole write_size_later(struct writer *w)
{
    struct hole h = {.at = w->len};
    write_u32(w, 0);
    return h;
}

void fill_size(struct writer *w, struct hole h)
{
    size_t size = w->len - h.at - 4;
    struct writer at = {.base = w->base + h.at, .room = 4};

    assert(h.at + 4 <= w->len);
    assert(size <= UINT32_MAX);
    write_u32(&at, (uint32_t)size);
}
