/* log_scan.h - every record of an entry log, also of those behind a damaged one.
 *
 *   header | record | record | ~~damage~~ | record | zeros to a block | record ... | seal
 *
 * Behind what is no record the scan goes on where the damaged record says that it ends, if one
 * begins there or the file ends; else at the first place where one does: its length fits, its
 * ids may be some, its CRC is right.
 *
 * Memory:  a record is borrowed during its call.
 * Threads: one; the log may be read, but is not written meanwhile.
 * Limits:  entries of LOG_SCAN_ENTRY_MAX bytes; directly behind damage, of LOG_SCAN_SEARCH_MAX.
 */
#ifndef BOOKIE_LOG_SCAN_H
#define BOOKIE_LOG_SCAN_H

#include <stdbool.h>

#include "bookie/log_usage.h"
#include "common/buf.h"
#include "common/disk.h"
#include "common/err.h"

enum { LOG_SCAN_ENTRY_MAX = 64 << 20, LOG_SCAN_SEARCH_MAX = 8 << 20 };

struct log_record {
    uint64_t offset; /* of the record */
    int64_t ledger, entry;
    int64_t lac; /* as its header says; -1 when it is too short for one */
    struct view bytes;
};

struct log_scan {
    struct disk *disk;
    const char *dir;
    uint64_t log;
    /* An error of it ends the scan. */
    enum err (*record)(void *ctx, const struct log_record *r);
    void (*damage)(void *ctx, uint64_t from, uint64_t to); /* [from, to) is no record; or NULL */
    void *ctx;
    uint64_t size, records, record_bytes, damaged_bytes; /* what was found */
    bool has_seal;                                       /* a whole one: then */
    struct log_usage seal;                               /* what it says; gives */
};

/* ERR_NOT_FOUND, ERR_UNSUPPORTED_VERSION; a damaged header is damage like any other. */
MUST_CHECK enum err log_scan(struct log_scan *s);

#endif
