#include "bookie/ledger_row.h"

#include <string.h>

#include "bookie/bytes.h"

enum { FORMAT = 1 };
enum { FENCED = 1, HAS_EXPLICIT_LAC = 2, LIMBO = 4, KNOWN = FENCED | HAS_EXPLICIT_LAC | LIMBO };

size_t ledger_row_write(const struct ledger_row *r, uint8_t into[LEDGER_ROW_MAX])
{
    const bool has_lac = r->explicit_len > 0;
    into[0] = FORMAT;
    into[1] = (uint8_t)((r->fenced ? FENCED : 0) | (has_lac ? HAS_EXPLICIT_LAC : 0) |
                        (r->limbo ? LIMBO : 0));
    memcpy(into + 2, r->key, MASTER_KEY_SIZE);
    put_u64(into + 2 + MASTER_KEY_SIZE, (uint64_t)r->last);
    put_u64(into + 10 + MASTER_KEY_SIZE, (uint64_t)r->lac);
    if (!has_lac)
        return LEDGER_ROW_SIZE;
    into[LEDGER_ROW_SIZE] = r->explicit_len;
    memcpy(into + LEDGER_ROW_SIZE + 1, r->explicit_lac, r->explicit_len);
    return LEDGER_ROW_SIZE + 1 + (size_t)r->explicit_len;
}

/* bytes: what follows the fields that every row has. */
static enum err read_explicit(struct view bytes, struct ledger_row *out)
{
    if (bytes.len < 2 || bytes.base[0] != bytes.len - 1 || bytes.base[0] > EXPLICIT_LAC_MAX)
        return ERR_CHECKSUM;
    out->explicit_len = bytes.base[0];
    memcpy(out->explicit_lac, bytes.base + 1, out->explicit_len);
    return ERR_OK;
}

enum err ledger_row_read(int64_t id, struct view bytes, struct ledger_row *out)
{
    if (bytes.len < LEDGER_ROW_SIZE || bytes.base[0] != FORMAT)
        return ERR_CHECKSUM;
    /* A flag that is not known here would be lost with the next write of the row. */
    const bool has_lac = bytes.base[1] & HAS_EXPLICIT_LAC;
    if ((bytes.len > LEDGER_ROW_SIZE && !has_lac) || (bytes.base[1] & ~KNOWN) != 0)
        return ERR_UNSUPPORTED_VERSION;
    out->explicit_len = 0;
    out->id = id;
    out->fenced = (bytes.base[1] & FENCED) != 0;
    out->limbo = (bytes.base[1] & LIMBO) != 0;
    memcpy(out->key, bytes.base + 2, MASTER_KEY_SIZE);
    out->last = (int64_t)get_u64(bytes.base + 2 + MASTER_KEY_SIZE);
    out->lac = (int64_t)get_u64(bytes.base + 10 + MASTER_KEY_SIZE);
    if (!has_lac)
        return ERR_OK;
    return read_explicit(view_of(bytes.base + LEDGER_ROW_SIZE, bytes.len - LEDGER_ROW_SIZE), out);
}
