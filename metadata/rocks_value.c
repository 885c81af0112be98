#include "metadata/rocks_value.h"

#include "proto/wire.h"

void rocks_header_write(const struct rocks_header *h, uint8_t into[ROCKS_HEADER])
{
    struct writer w = {.base = into, .room = ROCKS_HEADER};

    write_u16(&w, ROCKS_MAGIC);
    write_u8(&w, ROCKS_FORMAT);
    write_u8(&w, ROCKS_OLDEST_READER);
    write_u64(&w, (uint64_t)h->version);
    write_u64(&w, h->revision);
}

enum err rocks_value_read(struct view bytes, struct rocks_header *h, struct view *value)
{
    struct reader r = reader_of(bytes);
    uint16_t magic;
    uint8_t format, oldest;

    TRY(read_u16(&r, &magic));
    TRY(read_u8(&r, &format));
    TRY(read_u8(&r, &oldest));
    if (magic != ROCKS_MAGIC || format == 0 || oldest > format)
        return ERR_MALFORMED;
    if (oldest > ROCKS_FORMAT)
        return ERR_UNSUPPORTED_VERSION;
    TRY(read_i64(&r, &h->version));
    TRY(read_u64(&r, &h->revision));
    if (h->version < 0)
        return ERR_MALFORMED;
    return read_view(&r, reader_left(&r), value);
}
