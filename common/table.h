/* table.h - uthash with our allocator, and a hash function that every compiler takes in silence. */
#ifndef COMMON_TABLE_H
#define COMMON_TABLE_H

#include <stdint.h>

#include "common/mem.h"

/* FNV-1a. */
static inline unsigned table_hash(const void *key, size_t len)
{
    const uint8_t *at = (const uint8_t *)key;
    uint32_t h = 0x811c9dc5u;

    for (size_t i = 0; i < len; i++)
        h = (h ^ at[i]) * 0x01000193u;
    return h;
}

#define HASH_FUNCTION(key, len, hash) ((hash) = table_hash((key), (len)))
#define uthash_malloc(size)           mem_alloc(size)
#define uthash_free(p, size)          mem_free(p)

#include <uthash.h>

#endif
