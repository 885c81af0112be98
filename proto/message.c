#include "proto/message.h"

#include "common/crc32c.h"
#include "common/mem.h"
#include "proto/command.h"
#include "proto/wire.h"

/* ---- protobuf by hand ---- */

enum wire_type { WIRE_VARINT = 0, WIRE_FIXED64 = 1, WIRE_BYTES = 2, WIRE_FIXED32 = 5 };

/* One field; those of a type or number we do not look at have been stepped over. */
struct field {
    uint64_t number;
    unsigned type;
    uint64_t value;
    struct view bytes;
};

static enum err read_field(struct reader *r, struct field *f)
{
    uint64_t tag;

    *f = (struct field){0};
    TRY(read_varint(r, &tag));
    f->number = tag >> 3;
    f->type = (unsigned)(tag & 7);
    switch (f->type) {
    case WIRE_VARINT:
        return read_varint(r, &f->value);
    case WIRE_FIXED64:
        return read_view(r, 8, &f->bytes);
    case WIRE_BYTES:
        TRY(read_varint(r, &f->value));
        return read_view(r, f->value, &f->bytes);
    case WIRE_FIXED32:
        return read_view(r, 4, &f->bytes);
    default:
        return ERR_MALFORMED;
    }
}

/* ---- MessageMetadata ---- */

/* The field numbers of MessageMetadata that a broker decides by. */
enum {
    PRODUCER_NAME = 1,
    SEQUENCE_ID = 2,
    PUBLISH_TIME = 3,
    PARTITION_KEY = 6,
    COMPRESSION = 8,
    UNCOMPRESSED_SIZE = 9,
    NUM_MESSAGES_IN_BATCH = 11,
    PARTITION_KEY_B64 = 17,
    ORDERING_KEY = 18,
    DELIVER_AT_TIME = 19,
    MARKER_TYPE = 20,
    HIGHEST_SEQUENCE_ID = 24,
    UUID = 26,
    NUM_CHUNKS = 27,
    CHUNK_ID = 29,
};

enum { REQUIRED = 1 << PRODUCER_NAME | 1 << SEQUENCE_ID | 1 << PUBLISH_TIME };

static void take_bytes(const struct field *f, struct message_peek *out)
{
    switch (f->number) {
    case PRODUCER_NAME:
        out->producer_name = f->bytes;
        break;
    case PARTITION_KEY:
        out->partition_key = f->bytes;
        break;
    case ORDERING_KEY:
        out->ordering_key = f->bytes;
        break;
    case UUID:
        out->uuid = f->bytes;
        break;
    }
}

static void take_batch_size(int32_t n, struct message_peek *out)
{
    out->is_batch = true;
    out->num_messages = n < 1 ? 1 : n;
}

static void take_number(const struct field *f, struct message_peek *out)
{
    switch (f->number) {
    case SEQUENCE_ID:
        out->sequence_id = f->value;
        break;
    case PUBLISH_TIME:
        out->publish_time = f->value;
        break;
    case COMPRESSION:
        out->compression = (int32_t)f->value;
        break;
    case UNCOMPRESSED_SIZE:
        out->uncompressed_size = (uint32_t)f->value;
        break;
    case NUM_MESSAGES_IN_BATCH:
        take_batch_size((int32_t)f->value, out);
        break;
    case PARTITION_KEY_B64:
        out->partition_key_b64 = f->value != 0;
        break;
    case DELIVER_AT_TIME:
        out->deliver_at_time = f->value > INT64_MAX ? 0 : f->value;
        break;
    case MARKER_TYPE:
        out->has_marker = true;
        out->marker_type = (int32_t)f->value;
        break;
    case HIGHEST_SEQUENCE_ID:
        out->highest_sequence_id = f->value;
        break;
    case NUM_CHUNKS:
        out->num_chunks = (int32_t)f->value;
        break;
    case CHUNK_ID:
        out->chunk_id = (int32_t)f->value;
        break;
    }
}

/* A required field counts when it came with its own wire type. */
static unsigned required_bit(const struct field *f)
{
    unsigned type = f->number == PRODUCER_NAME ? WIRE_BYTES : WIRE_VARINT;
    return f->number <= PUBLISH_TIME && f->type == type ? 1u << f->number : 0;
}

enum err message_peek(struct view metadata, struct message_peek *out)
{
    struct reader r = reader_of(metadata);
    unsigned seen = 0;
    struct field f;

    *out = (struct message_peek){.num_messages = 1};
    while (reader_left(&r)) {
        TRY(read_field(&r, &f));
        seen |= required_bit(&f);
        if (f.type == WIRE_BYTES)
            take_bytes(&f, out);
        else if (f.type == WIRE_VARINT)
            take_number(&f, out);
    }
    return (seen & REQUIRED) == REQUIRED ? ERR_OK : ERR_MALFORMED;
}

/* ---- broker entry metadata ---- */

enum { BROKER_TIMESTAMP = 1, BROKER_INDEX = 2 };

size_t broker_entry_write(const struct broker_entry *b, uint8_t into[BROKER_ENTRY_MAX])
{
    struct writer w = {.base = into, .room = BROKER_ENTRY_MAX};
    struct hole size;

    write_u16(&w, FRAME_BROKER_MAGIC);
    size = write_size_later(&w);
    write_varint(&w, BROKER_TIMESTAMP << 3 | WIRE_VARINT);
    write_varint(&w, b->timestamp);
    write_varint(&w, BROKER_INDEX << 3 | WIRE_VARINT);
    write_varint(&w, b->index);
    fill_size(&w, size);
    return w.len;
}

static enum err broker_metadata_read(struct view bytes, struct broker_entry *out)
{
    struct reader r = reader_of(bytes);
    struct field f;

    while (reader_left(&r)) {
        TRY(read_field(&r, &f));
        if (f.type == WIRE_VARINT && f.number == BROKER_TIMESTAMP)
            out->timestamp = f.value;
        if (f.type == WIRE_VARINT && f.number == BROKER_INDEX)
            out->index = f.value;
    }
    return ERR_OK;
}

enum err broker_entry_read(struct view entry, struct broker_entry *out, struct view *rest)
{
    struct reader r = reader_of(entry);
    struct view metadata;
    uint16_t magic;
    uint32_t size;

    *out = (struct broker_entry){0};
    *rest = entry;
    if (read_u16(&r, &magic) || magic != FRAME_BROKER_MAGIC)
        return ERR_OK;
    out->present = true;
    TRY(read_u32(&r, &size));
    TRY(read_view(&r, size, &metadata));
    *rest = view_of(r.at, reader_left(&r));
    return broker_metadata_read(metadata, out);
}

/* ---- batches ---- */

enum err batch_next(struct view *rest, struct arena *arena,
                    Pulsar__Proto__SingleMessageMetadata **single, struct view *payload)
{
    struct reader r = reader_of(*rest);
    struct view metadata;
    ProtobufCMessage *m;
    uint32_t size;

    if (rest->len == 0)
        return ERR_END;
    TRY(read_u32(&r, &size));
    TRY(read_view(&r, size, &metadata));
    TRY(command_unpack(&pulsar__proto__single_message_metadata__descriptor, metadata, arena, &m));
    *single = (Pulsar__Proto__SingleMessageMetadata *)m;
    /* A negative size becomes one that no buffer has. */
    TRY(read_view(&r, (size_t)(*single)->payload_size, payload));
    *rest = view_of(r.at, reader_left(&r));
    return ERR_OK;
}

static void make_room(uint8_t **base, size_t len, size_t *room, size_t more)
{
    if (*room - len >= more)
        return;
    *room = 2 * *room > len + more ? 2 * *room : len + more;
    *base = mem_resize(*base, *room);
}

void batch_add(uint8_t **base, size_t *len, size_t *room,
               Pulsar__Proto__SingleMessageMetadata *single, struct view payload)
{
    struct writer w;
    size_t size;

    single->payload_size = (int32_t)payload.len;
    size = pulsar__proto__single_message_metadata__get_packed_size(single);
    make_room(base, *len, room, 4 + size + payload.len);
    w = (struct writer){.base = *base, .len = *len, .room = *room};
    write_u32(&w, (uint32_t)size);
    w.len += pulsar__proto__single_message_metadata__pack(single, w.base + w.len);
    write_bytes(&w, payload.base, payload.len);
    *len = w.len;
}

struct slice message_body(const Pulsar__Proto__MessageMetadata *m, struct view payload)
{
    size_t size = pulsar__proto__message_metadata__get_packed_size(m);
    size_t total = FRAME_MAGIC_SIZE + 4 + size + payload.len;
    struct slab *slab = slab_new(total);
    struct writer w = {.base = slab_bytes(slab), .len = FRAME_MAGIC_SIZE, .room = total};

    write_u32(&w, (uint32_t)size);
    w.len += pulsar__proto__message_metadata__pack(m, w.base + w.len);
    write_bytes(&w, payload.base, payload.len);
    frame_magic(w.base, crc32c(w.base + FRAME_MAGIC_SIZE, total - FRAME_MAGIC_SIZE));
    return slice_take(&slab, total);
}
