#include "bookie/ledger_tomb.h"

#include "bookie/bytes.h"

enum { FORMAT = 1, SIZE = 11, FENCED = 1 };

enum err ledger_tomb_put(struct entry_index *ix, int64_t ledger, const struct ledger_tomb *t)
{
    uint8_t at[SIZE] = {FORMAT, (uint8_t)t->kind, t->fenced ? FENCED : 0};
    put_u64(at + 3, t->since_ms);
    return entry_index_note(ix, INDEX_TOMB, (uint64_t)ledger, view_of(at, sizeof at));
}

enum err ledger_tomb_read(struct view value, struct ledger_tomb *out)
{
    if (value.len < SIZE || value.base[0] != FORMAT)
        return ERR_CHECKSUM;
    if (value.base[1] < TOMB_TRASHED || value.base[1] > TOMB_MOVED)
        return ERR_CHECKSUM;
    out->kind = value.base[1];
    out->fenced = value.base[2] & FENCED;
    out->since_ms = get_u64(value.base + 3);
    return ERR_OK;
}

enum err ledger_tomb_get(struct entry_index *ix, int64_t ledger, struct ledger_tomb *out)
{
    uint8_t at[SIZE];
    size_t len;
    TRY(entry_index_noted(ix, INDEX_TOMB, (uint64_t)ledger, at, sizeof at, &len));
    return ledger_tomb_read(view_of(at, len), out);
}
