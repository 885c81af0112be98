/* integrity_file.h - has this bookie lost something?  What it said of that last, kept over its
 * lives in every directory.
 *
 *   WHOLE --a directory is new, was emptied, or its index was rebuilt--> SCAN
 *   SCAN  --every ledger of the metadata that names it is in limbo, durably--> CHECK, and it serves
 *   CHECK --no row is in limbo any more--> WHOLE
 *
 * A bookie whose directory says SCAN opens its port only after that.  What rebuilds an index
 * stores SCAN first, and puts `limbo` into the rows that it makes (ledger_row.h).
 *
 * Layout:  docs/disk-format.md, "Integrity".
 */
#ifndef BOOKIE_INTEGRITY_FILE_H
#define BOOKIE_INTEGRITY_FILE_H

#include <stdint.h>

#include "common/disk.h"
#include "common/err.h"

enum integrity_need { INTEGRITY_WHOLE, INTEGRITY_CHECK, INTEGRITY_SCAN };

struct integrity_state {
    enum integrity_need need;
    /* The highest ledger id that the metadata had at the last scan, -1: there was none.  A ledger
     * up to it that is not known here may have been fenced here before the loss. */
    int64_t newest;
};

#define INTEGRITY_FILE "integrity" /* in a `current` directory */

/* WHOLE when there is none.  ERR_CHECKSUM, ERR_UNSUPPORTED_VERSION with "integrity.unreadable". */
MUST_CHECK enum err integrity_load(struct disk *d, const char *dir, struct integrity_state *out);
/* Durable when it returns. */
MUST_CHECK enum err integrity_store(struct disk *d, const char *dir,
                                    const struct integrity_state *state);
/* Only raises what is there: what rebuilds an index in `dir` calls it with INTEGRITY_SCAN. */
MUST_CHECK enum err integrity_raise(struct disk *d, const char *dir, enum integrity_need need);

#endif
