/* cookie_dirs.h - the directories that a cookie names, written as BookKeeper writes them.
 *
 *   journalDir: "/j1,/j2"    ledgerDirs: "2\t/l1\t/l2"    indexDirs: the same, where they are
 * others
 *
 * Lists with commas are read too: an older build wrote ledgerDirs as it was configured.
 *
 * Memory: cookie_dirs_drop() for what was read; cookie_dirs_write() gives three strings.
 */
#ifndef BOOKIE_COOKIE_DIRS_H
#define BOOKIE_COOKIE_DIRS_H

#include "bookie/directories.h"
#include "metadata/records.h"

struct cookie_dirs {
    struct directory_list journals, ledgers, indexes; /* indexes: as many as ledgers */
};

void cookie_dirs_write(const struct cookie_dirs *d, struct cookie_record *into);
MUST_CHECK enum err cookie_dirs_read(const struct cookie_record *r, struct cookie_dirs *out);
void cookie_dirs_drop(struct cookie_dirs *d);
bool cookie_dirs_name(const struct cookie_dirs *d, const char *dir); /* as anything */
/* Is each of these in `all`, as the same, and each index with its ledgers?  Or the key of the
 * list that is not so; NULL: all are. */
const char *cookie_dirs_missing(const struct cookie_dirs *some, const struct cookie_dirs *all);

#endif
