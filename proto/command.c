#include "proto/command.h"

#include "proto/command_text.h"
#include "proto/hot.h"
#include "proto/wire.h"

/* protobuf-c recurses into nested messages without a limit of its own, and message ids nest in
 * message ids: this much of the stack is some dozens of levels, where commands need five. */
enum { STACK_MAX = 64 * 1024 };

struct unpacking {
    struct arena *arena;
    uintptr_t stack;
};

static uintptr_t stack_now(void)
{
    return (uintptr_t)__builtin_frame_address(0);
}

/* protobuf-c comes here at least once a level, so here the depth is seen. */
static void *from_arena(void *arg, size_t size)
{
    const struct unpacking *u = arg;
    uintptr_t now = stack_now();
    uintptr_t deep = u->stack > now ? u->stack - now : now - u->stack;

    return deep > STACK_MAX ? NULL : arena_alloc(u->arena, size);
}

static void keep(void *arg, void *p)
{
    (void)arg; /* freed by arena_reset() */
    (void)p;
}

enum err command_unpack(const ProtobufCMessageDescriptor *type, struct view bytes,
                        struct arena *arena, ProtobufCMessage **out)
{
    struct unpacking u = {.arena = arena, .stack = stack_now()};
    ProtobufCAllocator in_arena = {.alloc = from_arena, .free = keep, .allocator_data = &u};

    *out = protobuf_c_message_unpack(type, &in_arena, bytes.len, bytes.base);
    if (*out)
        return ERR_OK;
    return arena_was_short(arena) ? ERR_TOO_BIG : ERR_MALFORMED;
}

/* The generated descriptors are the table: a type's sub-message has the type's number. */
static const ProtobufCEnumValue *type_of(int type)
{
    return protobuf_c_enum_descriptor_get_value(&pulsar__proto__base_command__type__descriptor,
                                                type);
}

static bool has_its_message(const Pulsar__Proto__BaseCommand *c)
{
    const ProtobufCFieldDescriptor *field;

    if (!type_of((int)c->type))
        return false;
    field = protobuf_c_message_descriptor_get_field(c->base.descriptor, (unsigned)c->type);
    return field && *(void *const *)((const char *)c + field->offset);
}

enum err command_read(struct view bytes, struct arena *arena, Pulsar__Proto__BaseCommand **out)
{
    ProtobufCMessage *m;

    if (hot_read(bytes, arena, out))
        return ERR_OK;
    TRY(command_unpack(&pulsar__proto__base_command__descriptor, bytes, arena, &m));
    TRY(command_check_text(m->descriptor, bytes));
    *out = (Pulsar__Proto__BaseCommand *)m;
    return has_its_message(*out) ? ERR_OK : ERR_MALFORMED;
}

const char *command_name(int type)
{
    const ProtobufCEnumValue *v = type_of(type);
    return v ? v->name : "UNKNOWN";
}

/* A frame's two sizes and the command, of which `size` bytes are known already or NULL. */
static struct slice front_with(const Pulsar__Proto__BaseCommand *c, const uint8_t *known,
                               size_t size, size_t body_len)
{
    struct slab *slab = slab_new(8 + size);
    struct writer w = {.base = slab_bytes(slab), .room = 8 + size};

    write_u32(&w, (uint32_t)(4 + size + body_len));
    write_u32(&w, (uint32_t)size);
    if (known)
        write_bytes(&w, known, size);
    else
        protobuf_c_message_pack(&c->base, w.base + w.len);
    return slice_take(&slab, 8 + size);
}

struct slice command_front(const Pulsar__Proto__BaseCommand *c, size_t body_len)
{
    uint8_t hot[HOT_MAX];
    const size_t size = hot_write(c, hot);

    if (size)
        return front_with(c, hot, size, body_len);
    return front_with(c, NULL, protobuf_c_message_get_packed_size(&c->base), body_len);
}

struct slice command_frame(const Pulsar__Proto__BaseCommand *c)
{
    return command_front(c, 0);
}
