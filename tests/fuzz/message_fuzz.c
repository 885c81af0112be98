#include <stdlib.h>
#include <string.h>

#include "proto/command.h"
#include "proto/message.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

typedef Pulsar__Proto__MessageMetadata metadata;

enum { ARENA = 1 << 20 };

static bool same_text(struct view v, const char *text)
{
    size_t len = text ? strnlen(text, v.len + 1) : 0;
    return len < v.len ? memchr(v.base, 0, v.len) == v.base + len : len == v.len;
}

/* Where protobuf-c reads the whole, the hand-made parser must have seen the same. */
static void compare(const struct message_peek *p, const metadata *m)
{
    if (p->sequence_id != m->sequence_id || p->publish_time != m->publish_time ||
        p->highest_sequence_id != m->highest_sequence_id ||
        p->is_batch != m->has_num_messages_in_batch || p->marker_type != m->marker_type ||
        p->has_marker != m->has_marker_type || p->chunk_id != m->chunk_id ||
        p->num_chunks != m->num_chunks_from_msg || p->compression != (int)m->compression ||
        p->uncompressed_size != m->uncompressed_size || p->num_messages < 1 ||
        p->ordering_key.len != m->ordering_key.len)
        abort();
    if (!same_text(p->producer_name, m->producer_name) ||
        !same_text(p->partition_key, m->partition_key) || !same_text(p->uuid, m->uuid))
        abort();
}

static void peek(struct view bytes)
{
    struct arena *arena = arena_new(ARENA);
    ProtobufCMessage *m;
    struct message_peek p;
    enum err e = message_peek(bytes, &p);

    if (command_unpack(&pulsar__proto__message_metadata__descriptor, bytes, arena, &m) == ERR_OK) {
        if (e)
            abort();
        compare(&p, (const metadata *)m);
    }
    arena_drop(&arena);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct broker_entry b, back;
    uint8_t again[BROKER_ENTRY_MAX];
    struct view rest, none;
    struct frame f;

    peek(view_of(data, size));
    if (broker_entry_read(view_of(data, size), &b, &rest))
        return 0;
    if (b.present &&
        (broker_entry_read(view_of(again, broker_entry_write(&b, again)), &back, &none) ||
         back.index != b.index || back.timestamp != b.timestamp))
        abort();
    if (frame_split_body(rest, &f) == ERR_OK)
        peek(f.metadata);
    return 0;
}
