/* cookie.h - whose directories are these?  Asked before anything in them is touched.
 *
 *   <directory>/current/VERSION and /ledgers/cookies/<bookie id> hold the same text, with a
 *   random incarnation: a directory that was wiped, swapped or belongs to another bookie or
 *   cluster stops the start, since a bookie that forgot must never say "no such entry".
 *
 *   metadata   directories            then
 *   present    all match it           start
 *   present    a known one without    refuse; if may_lose and it is empty, or holds an earlier
 *              or with another        incarnation of this bookie: a new incarnation everywhere
 *   present    more are configured    with allowStorageExpansion, when the new ones are empty:
 *                                     stamp all, then register; without: refuse
 *   absent     all empty              first start (or one that was cut short): stamp, register
 *   absent     one not empty          refuse: this bookie was decommissioned
 *
 * Each directory counts, not the order in which they are named; one that was known may not be left
 * out.
 *
 * Before anything is stamped because it is lost or new, every directory says that something may
 * have been lost (integrity_file.h, SCAN): also at a first start, since ledgers of an earlier
 * bookie of this name may still be about.
 *
 * Every refusal is the event "bookie.cookie_refused" with the directory and what differs.
 *
 * Threads: not a loop's; it waits for the metadata store.
 */
#ifndef BOOKIE_COOKIE_H
#define BOOKIE_COOKIE_H

#include <stdbool.h>

#include "bookie/cookie_dirs.h"
#include "common/disk.h"
#include "common/err.h"
#include "metadata/metadata.h"

struct cookie_conf {
    const char *bookie_id;
    const char *instance_id;
    struct cookie_dirs named; /* as configured; borrowed */
    const char *const *roots; /* the different ones of them */
    const char *const *dirs;  /* their `current` directories, which exist */
    unsigned n;
    bool may_lose; /* dataIntegrityChecking and dataIntegrityStampMissingCookies */
    bool may_expand;
};

/* ERR_NOT_ALLOWED: refused. */
MUST_CHECK enum err cookie_check(const struct cookie_conf *conf, struct disk *disk,
                                 struct metadata *meta);

#endif
