#include <stdlib.h>

#include "common/mem.h"
#include "proto/bookkeeper.pb-c.h"
#include "proto/command.h"
#include "proto/managed_ledger.pb-c.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

enum { ARENA = 1 << 20 };

/* What a bookie, a metadata store or a cursor's ledger may hand us. */
static const ProtobufCMessageDescriptor *const messages[] = {
    &bookkeeper__request__descriptor,
    &bookkeeper__response__descriptor,
    &bookkeeper__auth_message__descriptor,
    &bookkeeper__ledger_metadata_format__descriptor,
    &bookkeeper__bookie_service_info_format__descriptor,
    &managed_ledger__managed_ledger_info__descriptor,
    &managed_ledger__managed_cursor_info__descriptor,
    &managed_ledger__position_info__descriptor,
    &managed_ledger__managed_ledger_info_metadata__descriptor,
    &pulsar__proto__message_metadata__descriptor,
    &pulsar__proto__message_id_data__descriptor,
};
enum { MESSAGES = sizeof(messages) / sizeof(*messages) };

/* A rewrite in the metadata store loses nothing.  (It may be refused when it had a field number 0,
 * which protobuf-c takes in two bytes and writes in one.) */
static void rewrite(const ProtobufCMessage *m, struct arena *arena)
{
    size_t size = protobuf_c_message_get_packed_size(m);
    uint8_t *bytes = mem_alloc(size + 1);
    ProtobufCMessage *back;

    if (protobuf_c_message_pack(m, bytes) != size)
        abort();
    if (command_unpack(m->descriptor, view_of(bytes, size), arena, &back) == ERR_OK &&
        (back->n_unknown_fields != m->n_unknown_fields ||
         protobuf_c_message_get_packed_size(back) != size))
        abort();
    mem_free(bytes);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct arena *arena = arena_new(ARENA);
    ProtobufCMessage *m;

    if (size && command_unpack(messages[data[0] % MESSAGES], view_of(data + 1, size - 1), arena,
                               &m) == ERR_OK)
        rewrite(m, arena);
    arena_drop(&arena);
    return 0;
}
