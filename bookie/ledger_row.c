#include "bookie/ledger_row.h"

#include <string.h>

#include "bookie/bytes.h"

enum { FORMAT = 1, FENCED = 1 };

void ledger_row_write(const struct ledger_row *r, uint8_t into[LEDGER_ROW_SIZE])
{
    into[0] = FORMAT;
    into[1] = r->fenced ? FENCED : 0;
    memcpy(into + 2, r->key, MASTER_KEY_SIZE);
    put_u64(into + 2 + MASTER_KEY_SIZE, (uint64_t)r->last);
    put_u64(into + 10 + MASTER_KEY_SIZE, (uint64_t)r->lac);
}

enum err ledger_row_read(int64_t id, struct view bytes, struct ledger_row *out)
{
    if (bytes.len < LEDGER_ROW_SIZE || bytes.base[0] != FORMAT)
        return ERR_CHECKSUM;
    /* A flag that is not known here would be lost with the next write of the row. */
    if (bytes.len > LEDGER_ROW_SIZE || (bytes.base[1] & ~FENCED) != 0)
        return ERR_UNSUPPORTED_VERSION;
    out->id = id;
    out->fenced = (bytes.base[1] & FENCED) != 0;
    memcpy(out->key, bytes.base + 2, MASTER_KEY_SIZE);
    out->last = (int64_t)get_u64(bytes.base + 2 + MASTER_KEY_SIZE);
    out->lac = (int64_t)get_u64(bytes.base + 10 + MASTER_KEY_SIZE);
    return ERR_OK;
}
