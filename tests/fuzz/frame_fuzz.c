#include <stdlib.h>

#include "proto/frame.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void must(bool fact)
{
    if (!fact)
        abort();
}

/* A part must lie within the whole: a sanitizer would see a read, but not a wrong view. */
static bool within(struct view part, struct view whole)
{
    return part.len == 0 ||
           (part.base >= whole.base && part.base + part.len <= whole.base + whole.len);
}

static void look(const struct frame *f, struct view whole)
{
    enum err e = frame_check(f);

    must(e == ERR_OK || (e == ERR_CHECKSUM && f->has_crc));
    must(within(f->command, whole) && within(f->body, whole) && within(f->checked, f->body));
    must(within(f->metadata, f->checked) && within(f->payload, f->checked));
    if (f->body.len)
        must(f->checked.len == 4 + f->metadata.len + f->payload.len);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct view whole = view_of(data, size);
    struct frame f, alone;

    if (frame_split(whole, &f) == ERR_OK) {
        look(&f, whole);
        if (f.body.len)
            must(frame_split_body(f.body, &alone) == ERR_OK && alone.has_crc == f.has_crc &&
                 alone.payload.base == f.payload.base && alone.payload.len == f.payload.len);
    }
    if (frame_split_body(whole, &f) == ERR_OK)
        look(&f, whole);
    return 0;
}
