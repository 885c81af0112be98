#include <stdlib.h>

#include "common/mem.h"
#include "proto/message.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

enum { ARENA = 1 << 20 };

/* Every message of a batch that can be read is put in another one, which must read as long.
 * But for field number 0: protobuf-c takes one in two bytes, writes it in one, and refuses that. */
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct arena *arena = arena_new(ARENA);
    struct view rest = view_of(data, size), payload;
    Pulsar__Proto__SingleMessageMetadata *s;
    size_t len = 0, room = 0, before = 0, after = 0;
    uint8_t *base = NULL;

    while (batch_next(&rest, arena, &s, &payload) == ERR_OK) {
        if (s->base.n_unknown_fields || s->n_properties)
            break;
        batch_add(&base, &len, &room, s, payload);
        before++;
        arena_reset(arena);
    }
    rest = view_of(base, len);
    for (arena_reset(arena); batch_next(&rest, arena, &s, &payload) == ERR_OK; arena_reset(arena))
        after++;
    if (before != after || rest.len)
        abort();
    mem_free(base);
    arena_drop(&arena);
    return 0;
}
