/* ledger_row.h - what a bookie knows of a ledger, as it is kept in the index.
 *
 *   u8 format | u8 flags | 20 bytes master key | i64 last entry | i64 LAC | [explicit LAC]
 *
 * Flags: 1 fenced; 2 an explicit LAC follows, as it was written: u8 length, bytes; 4 limbo.
 *
 * Limbo: entries of it, or its fence, may have been lost here.  What is here is told; that
 * something is not here, and how far the ledger goes, is "unknown" until integrity.h has brought
 * back what was lost.  Whoever makes a row without knowing all that was acknowledged sets it.
 */
#ifndef BOOKIE_LEDGER_ROW_H
#define BOOKIE_LEDGER_ROW_H

#include <stdbool.h>
#include <stdint.h>

#include "common/buf.h"
#include "common/err.h"
#include "proto/bookie_v3.h"

enum {
    LEDGER_ROW_SIZE = 2 + MASTER_KEY_SIZE + 16, /* without an explicit LAC */
    LEDGER_ROW_MAX = LEDGER_ROW_SIZE + 1 + EXPLICIT_LAC_MAX
};

struct ledger_row {
    int64_t id;
    uint8_t key[MASTER_KEY_SIZE];
    bool fenced;
    bool limbo;
    int64_t last; /* highest entry id stored here; -1: none */
    int64_t lac;  /* highest last-add-confirmed seen; -1: none */
    uint8_t explicit_len;
    uint8_t explicit_lac[EXPLICIT_LAC_MAX];
};

size_t ledger_row_write(const struct ledger_row *r, uint8_t into[LEDGER_ROW_MAX]);
MUST_CHECK enum err ledger_row_read(int64_t id, struct view bytes, struct ledger_row *out);

#endif
