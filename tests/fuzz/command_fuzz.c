#include <stdlib.h>
#include <string.h>

#include "common/mem.h"
#include "proto/command.h"
#include "proto/hot.h"
#include "proto/wire.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

enum { ARENA = 1 << 20, FRONT = 2 + 2 + 2 + 5 };

/* What was read is packed and read once more: it must come to the same bytes.  (It may be refused
 * when it had a field number 0, which protobuf-c takes in two bytes and writes in one.) */
static void again(const Pulsar__Proto__BaseCommand *c, struct arena *arena)
{
    struct slice first = command_frame(c), second;
    Pulsar__Proto__BaseCommand *back;
    struct view command = view_of(first.base + 8, first.len - 8);

    if (command_read(command, arena, &back) == ERR_OK) {
        second = command_frame(back);
        if (second.len != first.len || memcmp(second.base, first.base, first.len) != 0)
            abort();
        slice_drop(&second);
    }
    slice_drop(&first);
}

/* By hand and by protobuf-c: the same command, and the same bytes of it. */
static void both_ways(struct view bytes, struct arena *arena)
{
    Pulsar__Proto__BaseCommand *c;
    ProtobufCMessage *other;
    uint8_t hot[HOT_MAX];

    if (!hot_read(bytes, arena, &c))
        return;
    if (command_unpack(&pulsar__proto__base_command__descriptor, bytes, arena, &other))
        abort();
    const size_t size = protobuf_c_message_get_packed_size(other);
    uint8_t *first = mem_alloc(size), *second = mem_alloc(size);
    protobuf_c_message_pack(other, first);
    if (protobuf_c_message_get_packed_size(&c->base) != size)
        abort();
    protobuf_c_message_pack(&c->base, second);
    const size_t written = hot_write(c, hot);
    if (memcmp(first, second, size) != 0 ||
        (written && (written != size || memcmp(first, hot, size) != 0)))
        abort();
    mem_free(first);
    mem_free(second);
}

static void try(struct view bytes, struct arena *arena)
{
    Pulsar__Proto__BaseCommand *c;

    if (command_read(bytes, arena, &c) == ERR_OK)
        again(c, arena);
    arena_reset(arena);
    both_ways(bytes, arena);
    arena_reset(arena);
}

/* As it is, and as the sub-message of the type that its first byte chooses. */
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    const ProtobufCEnumDescriptor *types = &pulsar__proto__base_command__type__descriptor;
    struct arena *arena = arena_new(ARENA);
    struct writer w;
    int type;

    try(view_of(data, size), arena);
    if (size) {
        type = types->values[data[0] % types->n_values].value;
        w = (struct writer){.base = mem_alloc(FRONT + size), .room = FRONT + size};
        write_varint(&w, 1 << 3);
        write_varint(&w, (uint64_t)type);
        write_varint(&w, (uint64_t)type << 3 | 2);
        write_varint(&w, size - 1);
        write_bytes(&w, data + 1, size - 1);
        try(view_of(w.base, w.len), arena);
        mem_free(w.base);
    }
    arena_drop(&arena);
    return 0;
}
