/* log_seal.h - what a closed entry log says at its end: how many bytes of which ledger are in it.
 *
 *   header | records ... | seal: u32 magic | u16 version, u16 oldest reader | u64 log id |
 *     u64 offset of the seal | u32 n | n x (i64 ledger, u64 bytes) | u32 crc of the seal
 *   zeros to whole blocks of 4096, of which the last 16 bytes of the file are:
 *   u64 offset of the seal | u32 magic | u32 crc of the two
 *
 * The ledgers are in order, each once; bytes count records with their heads.  Records end where
 * the seal begins.  A log without a seal was being written when the process ended, or the seal
 * is torn: which of its records count only the index can say.
 */
#ifndef BOOKIE_LOG_SEAL_H
#define BOOKIE_LOG_SEAL_H

#include <stdbool.h>

#include "bookie/log_usage.h"
#include "common/buf.h"
#include "common/disk.h"
#include "common/err.h"

struct log_seal {
    uint64_t log;
    uint64_t offset; /* where the records end */
    struct log_usage usage;
};

/* The bytes to append at s->offset; gives.  Sorts the usage. */
struct slice log_seal_write(struct log_seal *s);
/* Does one begin here, whole or torn?  Behind it there are no records. */
bool log_seal_begins(struct view bytes, uint64_t log, uint64_t offset);
/* ERR_NOT_FOUND: there is none that is whole.  Gives out->usage. */
MUST_CHECK enum err log_seal_read(struct disk_file *f, uint64_t log, struct log_seal *out);

#endif
