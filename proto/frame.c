#include "proto/frame.h"

#include "common/crc32c.h"
#include "proto/wire.h"

/* A metadata size that starts with these two bytes would be far beyond any frame's limit. */
static bool has_magic(struct view body)
{
    return body.len >= 2 && (body.base[0] << 8 | body.base[1]) == FRAME_MAGIC;
}

static enum err split_body(struct view body, struct frame *out)
{
    struct reader r = reader_of(body);
    uint32_t metadata_size;

    out->body = body;
    out->has_crc = has_magic(body);
    if (out->has_crc) {
        uint16_t magic;
        TRY(read_u16(&r, &magic));
        TRY(read_u32(&r, &out->crc));
    }
    out->checked = view_of(r.at, reader_left(&r));
    TRY(read_u32(&r, &metadata_size));
    TRY(read_view(&r, metadata_size, &out->metadata));
    return read_view(&r, reader_left(&r), &out->payload);
}

enum err frame_split(struct view bytes, struct frame *out)
{
    struct reader r = reader_of(bytes);
    uint32_t command_size;

    *out = (struct frame){0};
    TRY(read_u32(&r, &command_size));
    TRY(read_view(&r, command_size, &out->command));
    return reader_left(&r) ? split_body(view_of(r.at, reader_left(&r)), out) : ERR_OK;
}

enum err frame_split_body(struct view body, struct frame *out)
{
    *out = (struct frame){0};
    return split_body(body, out);
}

enum err frame_check(const struct frame *f)
{
    if (f->has_crc && crc32c(f->checked.base, f->checked.len) != f->crc)
        return ERR_CHECKSUM;
    return ERR_OK;
}

void frame_magic(uint8_t into[FRAME_MAGIC_SIZE], uint32_t crc)
{
    struct writer w = {.base = into, .room = FRAME_MAGIC_SIZE};
    write_u16(&w, FRAME_MAGIC);
    write_u32(&w, crc);
}
