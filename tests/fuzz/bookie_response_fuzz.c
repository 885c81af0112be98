#include <stdlib.h>
#include <string.h>

#include "proto/bookie_frame.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* Written again from what was read it is the same, but for the flags, which nobody sends. */
static void write_again(const struct bookie_response *a, const uint8_t *data, size_t size)
{
    uint8_t into[BOOKIE_RESPONSE_SIZE];
    size_t front = sizeof(into) - 4;

    bookie_write_response(into, a->version, a->op, a->status, a->ledger, a->entry, a->body.len);
    if (front + a->body.len != size || memcmp(into + 8, data + 4, front - 4) != 0)
        abort();
}

/* Entries lie in order in it, and fill it as far as they go. */
static void take_apart(struct view body)
{
    const uint8_t *at = body.base;
    struct view entry;
    int64_t id;

    if (bookie_batch_id(&body, &id))
        return;
    at += BOOKIE_BATCH_ID;
    while (!bookie_batch_next(&body, &entry)) {
        if (entry.base != at + BOOKIE_BATCH_LENGTH)
            abort();
        at = entry.base + entry.len;
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct bookie_response a;

    if (bookie_response_read(view_of(data, size), &a))
        return 0;
    if (a.body.len && a.body.base + a.body.len != data + size)
        abort();
    (void)bookie_status_to_err(a.status);
    if (a.op == BOOKIE_BATCH_READ)
        take_apart(a.body);
    if (a.op != BOOKIE_AUTH)
        write_again(&a, data, size);
    return 0;
}
