#include <stdlib.h>
#include <string.h>

#include "proto/entry.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* An entry that opens is the one that its own header and payload make. */
static void open_with(enum digest_type type, struct view entry)
{
    struct digest d = digest_of(type, view_of("secret", 6));
    uint8_t prefix[ENTRY_HEADER + DIGEST_SIZE_MAX];
    struct entry_header h;
    struct view payload;
    size_t n;

    if (entry_open(&d, entry, -1, -1, &h, &payload))
        return;
    entry_prefix_with(&d, &h, payload, prefix, &n);
    if (n + payload.len != entry.len || memcmp(prefix, entry.base, n) != 0)
        abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct view entry = view_of(data, size);
    struct entry_header h;

    if ((entry_header_read(entry, &h) == ERR_OK) != (size >= ENTRY_HEADER))
        abort();
    for (int type = 0; type <= DIGEST_DUMMY + 1; type++)
        open_with((enum digest_type)type, entry);
    return 0;
}
