/* cookie.h - whose directories are these?  Asked before anything in them is touched.
 *
 *   <directory>/current/VERSION and /ledgers/cookies/<bookie id> hold the same text, with a
 *   random incarnation: a directory that was wiped, swapped or belongs to another bookie or
 *   cluster stops the start, since a bookie that forgot must never say "no such entry".
 *
 *   metadata   directories            then
 *   present    all equal              start
 *   present    one without or other   refuse; if may_lose and it is empty, or holds an earlier
 *                                     incarnation of this bookie: a new incarnation everywhere
 *   absent     all empty              first start (or one that was cut short): stamp, register
 *   absent     one not empty          refuse: this bookie was decommissioned
 *
 * Before anything is stamped, every directory says that something may have been lost
 * (integrity_file.h, SCAN): also at a first start, since ledgers of an earlier bookie of this name
 * may still be about.
 *
 * Every refusal is the event "bookie.cookie_refused" with the directory and what differs.
 *
 * Threads: not a loop's; it waits for the metadata store.
 */
#ifndef BOOKIE_COOKIE_H
#define BOOKIE_COOKIE_H

#include <stdbool.h>

#include "common/disk.h"
#include "common/err.h"
#include "metadata/metadata.h"

struct cookie_conf {
    const char *bookie_id;
    const char *journal_dirs; /* as configured */
    const char *ledger_dirs;
    const char *instance_id;
    const char *const *dirs; /* the `current` directories, which exist */
    unsigned n;
    bool may_lose; /* dataIntegrityChecking and dataIntegrityStampMissingCookies */
};

/* ERR_NOT_ALLOWED: refused. */
MUST_CHECK enum err cookie_check(const struct cookie_conf *conf, struct disk *disk,
                                 struct metadata *meta);

#endif
