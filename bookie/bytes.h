/* bytes.h - big-endian integers in memory, for the bookie's own formats.
 *
 * The caller has checked that the bytes are there.
 */
#ifndef BOOKIE_BYTES_H
#define BOOKIE_BYTES_H

#include <endian.h>
#include <stdint.h>
#include <string.h>

static inline void put_u32(uint8_t *at, uint32_t v)
{
    v = htobe32(v);
    memcpy(at, &v, sizeof v);
}

static inline void put_u64(uint8_t *at, uint64_t v)
{
    v = htobe64(v);
    memcpy(at, &v, sizeof v);
}

static inline uint32_t get_u32(const uint8_t *at)
{
    uint32_t v;
    memcpy(&v, at, sizeof v);
    return be32toh(v);
}

static inline uint64_t get_u64(const uint8_t *at)
{
    uint64_t v;
    memcpy(&v, at, sizeof v);
    return be64toh(v);
}

#endif
