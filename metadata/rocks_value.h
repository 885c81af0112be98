/* rocks_value.h - what a value looks like on disk: a header of ours, then the value.
 *
 *   0 u16 magic | 2 u8 format | 3 u8 oldest format whose readers can read it |
 *   4 u64 version of the key | 12 u64 revision of its last change | 20 value
 *
 * Big-endian.  A database has one such record of its own too, with its last revision.
 */
#ifndef METADATA_ROCKS_VALUE_H
#define METADATA_ROCKS_VALUE_H

#include <stdint.h>

#include "common/buf.h"
#include "common/err.h"

enum { ROCKS_MAGIC = 0x4c4d, ROCKS_FORMAT = 1, ROCKS_OLDEST_READER = 1, ROCKS_HEADER = 20 };

struct rocks_header {
    int64_t version;
    uint64_t revision;
};

void rocks_header_write(const struct rocks_header *h, uint8_t into[ROCKS_HEADER]);
/* ERR_MALFORMED, ERR_UNSUPPORTED_VERSION; *value borrows. */
MUST_CHECK enum err rocks_value_read(struct view bytes, struct rocks_header *h, struct view *value);

#endif
