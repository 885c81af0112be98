/* verify_record.h - the records of `lgm verify`: numbered, and each knows the sum of the one
 * before.
 *
 *   "lgm-verify 1 <run> <seq> <crc of the record before> <crc of what stands before it> <filler>"
 *
 * All in text, so that `lgm consume` shows what they are.
 */
#ifndef CLI_VERIFY_RECORD_H
#define CLI_VERIFY_RECORD_H

#include <stdbool.h>
#include <stdint.h>

#include "common/buf.h"
#include "common/err.h"

enum { VERIFY_RUN_CHARS = 16, VERIFY_RECORD_LEAST = 96 };

struct verify_record {
    char run[VERIFY_RUN_CHARS + 1];
    uint64_t seq;    /* from 0; the one after the last is the end mark */
    uint32_t before; /* CRC32C of the whole record before; 0 for the first */
};

/* Fills `size` bytes (at least VERIFY_RECORD_LEAST). */
void verify_record_write(const struct verify_record *r, char *into, size_t size);
/* ERR_NOT_FOUND: no record of any run; ERR_CHECKSUM: it was one. */
MUST_CHECK enum err verify_record_read(struct view payload, struct verify_record *out);

#endif
