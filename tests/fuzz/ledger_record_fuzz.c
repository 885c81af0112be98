#include <stdlib.h>
#include <string.h>

#include "metadata/records.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* What can be read must come back as the same bytes once it has been written by us. */
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    Bookkeeper__LedgerMetadataFormat *first, *second;

    if (ledger_record_read(view_of(data, size), &first))
        return 0;
    struct slice once = ledger_record_write(first);
    if (ledger_record_read(slice_view(once), &second))
        abort();
    struct slice twice = ledger_record_write(second);
    if (once.len != twice.len || memcmp(once.base, twice.base, once.len) != 0)
        abort();
    slice_drop(&once);
    slice_drop(&twice);
    bookkeeper__ledger_metadata_format__free_unpacked(first, NULL);
    bookkeeper__ledger_metadata_format__free_unpacked(second, NULL);
    return 0;
}
