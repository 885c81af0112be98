/* ledger_row.h - what a bookie knows of a ledger, as it is kept in the index.
 *
 *   u8 format | u8 flags (1: fenced) | 20 bytes master key | i64 last entry | i64 LAC | ...
 *
 * A reader ignores what follows the fields that it knows.
 */
#ifndef BOOKIE_LEDGER_ROW_H
#define BOOKIE_LEDGER_ROW_H

#include <stdbool.h>
#include <stdint.h>

#include "common/buf.h"
#include "common/err.h"
#include "proto/entry.h"

enum { LEDGER_ROW_SIZE = 2 + MASTER_KEY_SIZE + 16 };

struct ledger_row {
    int64_t id;
    uint8_t key[MASTER_KEY_SIZE];
    bool fenced;
    int64_t last; /* highest entry id stored here; -1: none */
    int64_t lac;  /* highest last-add-confirmed seen in an entry; -1: none */
};

void ledger_row_write(const struct ledger_row *r, uint8_t into[LEDGER_ROW_SIZE]);
MUST_CHECK enum err ledger_row_read(int64_t id, struct view bytes, struct ledger_row *out);

#endif
