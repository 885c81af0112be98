/* bookie_disk_fuzz.c - what a bookie reads back from its disk: index blocks, ledger rows, journal
 * records.  What was read must be written the same way again. */
#include <assert.h>
#include <string.h>

#include "bookie/index_block.h"
#include "bookie/journal_format.h"
#include "bookie/ledger_row.h"

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t len);

static bool same_blocks(const struct index_block *a, const struct index_block *b)
{
    for (unsigned i = 0; i < INDEX_BLOCK; i++) {
        if (index_block_has(a, i) != index_block_has(b, i))
            return false;
        if (index_block_has(a, i) &&
            (a->at[i].log != b->at[i].log || a->at[i].offset != b->at[i].offset ||
             a->at[i].length != b->at[i].length))
            return false;
    }
    return true;
}

static void block(struct view v)
{
    static struct index_block first, second;
    uint8_t again[INDEX_BLOCK_BYTES_MAX];
    if (index_block_read(v, &first))
        return;
    size_t n = index_block_write(&first, again);
    enum err err = index_block_read(view_of(again, n), &second);
    assert(!err);
    assert(same_blocks(&first, &second));
}

static void row(struct view v)
{
    struct ledger_row r;
    uint8_t again[LEDGER_ROW_MAX];
    if (ledger_row_read(7, v, &r))
        return;
    ledger_row_write(&r, again);
    assert(memcmp(again, v.base, LEDGER_ROW_SIZE) == 0);
}

static void record(struct view v)
{
    struct journal_record r;
    uint32_t length;
    if (v.len < JOURNAL_RECORD || journal_record_peek(v.base, 1, 1024, &length))
        return;
    if (journal_record_size(length) > v.len || journal_record_read(v.base, length, &r))
        return;
    assert(r.payload.len == length);
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t len)
{
    struct view v = view_of(bytes, len);
    block(v);
    row(v);
    record(v);
    uint64_t sequence;
    if (len >= JOURNAL_BLOCK &&
        journal_header_read(view_of(bytes, JOURNAL_BLOCK), 1, &sequence) == ERR_OK)
        assert(bytes[0] != 0);
    return 0;
}
