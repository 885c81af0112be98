/* crc32c.h - the Castagnoli checksum, and how two of them become one.
 *
 * Reflected polynomial 0x82F63B78, start and end xor 0xFFFFFFFF, as in iSCSI,
 * Pulsar frames and BookKeeper digests.  The sum of a payload is computed once
 * where it enters and combined with that of whatever stands before it.
 */
#ifndef COMMON_CRC32C_H
#define COMMON_CRC32C_H

#include <stddef.h>
#include <stdint.h>

uint32_t crc32c(const void *bytes, size_t len);
uint32_t crc32c_more(uint32_t crc, const void *bytes, size_t len); /* crc of what came before */

/* crc of A followed by B, from crc(A), crc(B) and the length of B. */
uint32_t crc32c_combine(uint32_t a, uint32_t b, size_t b_len);
/* The same without the instructions for it: what other processors do. */
uint32_t crc32c_combine_portable(uint32_t a, uint32_t b, size_t b_len);

#endif
