#include <stdlib.h>
#include <string.h>

#include "metadata/records.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* What can be read must come back the same once it has been written by us. */
static void cookie(struct view value)
{
    struct cookie_record first, second;

    if (cookie_record_read(value, &first))
        return;
    struct slice s = cookie_record_write(&first);
    if (cookie_record_read(slice_view(s), &second))
        abort();
    if (strcmp(first.bookie_id, second.bookie_id) != 0 ||
        strcmp(first.journal_dirs, second.journal_dirs) != 0 ||
        strcmp(first.ledger_dirs, second.ledger_dirs) != 0 ||
        !first.instance_id != !second.instance_id || !first.incarnation != !second.incarnation)
        abort();
    slice_drop(&s);
    cookie_record_drop(&first);
    cookie_record_drop(&second);
}

static void bookie(struct view value)
{
    struct bookie_record r;

    if (bookie_record_read("h:1", value, &r))
        return;
    struct slice s = bookie_record_write("h:1", &r);
    slice_drop(&s);
    bookie_record_drop(&r);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    int32_t partitions;

    cookie(view_of(data, size));
    bookie(view_of(data, size));
    if (partitioned_record_read(view_of(data, size), &partitions) == ERR_OK && partitions < 0)
        abort();
    return 0;
}
