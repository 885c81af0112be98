#include <stdlib.h>
#include <string.h>

#include "proto/bookie_frame.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* A read of the newest version, written again from what was read, is the same up to what
 * follows it. */
static void write_again(const struct bookie_request *q, struct view frame)
{
    uint8_t into[BOOKIE_FENCE_SIZE];
    size_t n = bookie_write_read(into, q->flags, q->ledger, q->entry, q->key) - 4;

    if (n > frame.len || memcmp(into + 4, frame.base, n) != 0)
        abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct view frame = view_of(data, size);
    struct bookie_request q;

    if (bookie_request_read(frame, &q))
        return 0;
    if (q.body.len && q.body.base + q.body.len != data + size)
        abort();
    if (q.op == BOOKIE_READ && q.version == 2)
        write_again(&q, frame);
    return 0;
}
