#include <stdlib.h>

#include "metadata/records.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void ledgers(struct view value)
{
    ManagedLedger__ManagedLedgerInfo *first, *second;

    if (managed_ledger_record_read(value, &first))
        return;
    struct slice s = managed_ledger_record_write(first);
    if (managed_ledger_record_read(slice_view(s), &second))
        abort();
    if (first->n_ledgerinfo != second->n_ledgerinfo)
        abort();
    slice_drop(&s);
    managed_ledger__managed_ledger_info__free_unpacked(first, NULL);
    managed_ledger__managed_ledger_info__free_unpacked(second, NULL);
}

static void cursor(struct view value)
{
    ManagedLedger__ManagedCursorInfo *first, *second;

    if (cursor_record_read(value, &first))
        return;
    struct slice s = cursor_record_write(first);
    if (cursor_record_read(slice_view(s), &second))
        abort();
    if (first->cursorsledgerid != second->cursorsledgerid)
        abort();
    slice_drop(&s);
    managed_ledger__managed_cursor_info__free_unpacked(first, NULL);
    managed_ledger__managed_cursor_info__free_unpacked(second, NULL);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    ledgers(view_of(data, size));
    cursor(view_of(data, size));
    return 0;
}
