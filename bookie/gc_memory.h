/* gc_memory.h - what garbage collection remembers of the metadata store, in each ledger directory.
 *
 *   u32 magic | u16 version, u16 oldest reader | u8 known | u8 halt | 64 bytes instance id |
 *   u64 store | u64 revision | 16 bytes beacon | 16 bytes next beacon | u32 crc
 *
 * Of several directories the one that is halted counts, then the highest revision.
 */
#ifndef BOOKIE_GC_MEMORY_H
#define BOOKIE_GC_MEMORY_H

#include "bookie/gc_guard.h"
#include "common/disk.h"
#include "common/err.h"

/* A file that is not there changes nothing; one that cannot be read halts. */
void gc_memory_load(struct disk *d, const char *dir, struct gc_memory *into);
MUST_CHECK enum err gc_memory_store(struct disk *d, const char *dir, const struct gc_memory *m);

#endif
