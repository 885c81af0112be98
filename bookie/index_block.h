/* index_block.h - where 256 consecutive entry ids of a ledger lie, in a few bytes each.
 *
 *   u8 format | for each id that is present, ascending:
 *     varint: (ids skipped << 2 | other log << 1 | elsewhere)
 *     [other log: varint log id]  [elsewhere: varint offset]  zigzag varint (length - last length)
 *
 * "elsewhere" is 0 when the record begins where the one before it ended, which is what a sorted
 * flush makes: then an entry costs two bytes.
 */
#ifndef BOOKIE_INDEX_BLOCK_H
#define BOOKIE_INDEX_BLOCK_H

#include <stdbool.h>
#include <stdint.h>

#include "common/buf.h"
#include "common/err.h"

enum { INDEX_BLOCK = 256, INDEX_BLOCK_BYTES_MAX = 1 + INDEX_BLOCK * 30 };

/* Where a record begins in an entry log, and how long its entry is. */
struct entry_place {
    uint64_t log;
    uint64_t offset;
    uint32_t length;
};

struct index_block {
    uint64_t present[INDEX_BLOCK / 64];
    struct entry_place at[INDEX_BLOCK];
};

static inline bool index_block_has(const struct index_block *b, unsigned i)
{
    return b->present[i / 64] >> i % 64 & 1;
}

static inline void index_block_set(struct index_block *b, unsigned i, struct entry_place at)
{
    b->present[i / 64] |= UINT64_C(1) << i % 64;
    b->at[i] = at;
}

size_t index_block_write(const struct index_block *b, uint8_t into[INDEX_BLOCK_BYTES_MAX]);
MUST_CHECK enum err index_block_read(struct view bytes, struct index_block *out); /* ERR_CHECKSUM */

#endif
