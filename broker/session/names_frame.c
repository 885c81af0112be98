#include "broker/session/names_frame.h"

#include <string.h>

enum { ROOM = NAMES_FRAME_REST / 2 };
enum { TYPE = 33, VARINT = 0, BYTES = 2 }; /* GET_TOPICS_OF_NAMESPACE_RESPONSE is also its field */
enum { REQUEST = 1, TOPICS = 2, FILTERED = 3, HASH = 4, CHANGED = 5 };

static void write_number(struct writer *w, unsigned field, uint64_t value)
{
    write_varint(w, field << 3 | VARINT);
    write_varint(w, value);
}

static void write_text(struct writer *w, unsigned field, const char *text)
{
    size_t len = strlen(text);

    write_varint(w, field << 3 | BYTES);
    write_varint(w, len);
    write_bytes(w, text, len);
}

void names_frame_begin(struct names_frame *f, size_t bytes)
{
    f->slab = slab_new(NAMES_FRAME_REST + bytes);
    f->names = (struct writer){.base = slab_bytes(f->slab) + ROOM, .room = bytes + ROOM};
}

void names_frame_add(struct names_frame *f, const char *name)
{
    write_text(&f->names, TOPICS, name);
}

void names_frame_clear(struct names_frame *f)
{
    f->names.len = 0;
}

/* A size with what has been written since, and with the names that follow. */
static void fill(const struct writer *w, struct hole h, size_t more)
{
    struct writer at = {.base = w->base + h.at, .room = 4};

    write_u32(&at, (uint32_t)(w->len - h.at - 4 + more));
}

/* What stands before the names, up to them; gives its length. */
static size_t write_front(struct names_frame *f, uint64_t request)
{
    uint8_t bytes[ROOM], id[16];
    struct writer w = {.base = bytes, .room = sizeof(bytes)};
    struct writer number = {.base = id, .room = sizeof(id)};
    struct hole total = write_size_later(&w), command = write_size_later(&w);

    write_number(&number, REQUEST, request);
    write_number(&w, 1, TYPE);
    write_varint(&w, TYPE << 3 | BYTES);
    write_varint(&w, number.len + f->names.len);
    write_bytes(&w, id, number.len);
    fill(&w, command, f->names.len);
    fill(&w, total, f->names.len);
    memcpy(slab_bytes(f->slab) + ROOM - w.len, bytes, w.len);
    return w.len;
}

struct slice names_frame_end(struct names_frame *f, uint64_t request, bool filtered, bool changed,
                             const char *hash)
{
    write_number(&f->names, FILTERED, filtered);
    write_text(&f->names, HASH, hash);
    write_number(&f->names, CHANGED, changed);
    size_t front = write_front(f, request);
    struct slice all = slice_of(f->slab, ROOM - front, front + f->names.len);
    slab_drop(&f->slab);
    return all;
}

void names_frame_drop(struct names_frame *f)
{
    slab_drop(&f->slab);
}
