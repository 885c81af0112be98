/* home.h - a bookie in this process, whose directories are in the current one.
 *
 * Everything is small, so that little work fills, rolls, flushes and recycles everything.
 */
#ifndef TESTS_CRASHPOINTS_HOME_H
#define TESTS_CRASHPOINTS_HOME_H

#include "bookie/bookie.h"
#include "metadata/metadata.h"

struct home {
    struct bookie_conf conf;
    struct loops loops;
    struct metadata *meta;
    struct bookie *bookie;
};

enum { HOME_SETS = 32 };

/* What the metadata knows of the bookie. */
struct home_identity {
    struct slice instance, cookie;
};

/* sets: key=value, over those of its own; NULL ends them. */
void home_configure(struct home *h, const char *const *sets);
void home_print(const char *const *sets); /* all settings, a line each, for a bookie elsewhere */
/* Takes meta.  loops: as many network threads. */
MUST_CHECK enum err home_start(struct home *h, struct metadata *meta, unsigned loops);
void home_stop(struct home *h);

/* Reads it from a metadata store in a directory; gives. */
struct home_identity home_identity_load(const char *dir);
/* A store in memory that knows this; without a cookie when it was not registered. */
struct metadata *home_metadata(const struct home_identity *id, bool is_registered);
/* A ledger that has its only copy here. */
MUST_CHECK enum err home_ledger_put(struct metadata *m, int64_t ledger);
MUST_CHECK enum err home_ledger_remove(struct metadata *m, int64_t ledger);
/* A store in a directory, which calls noted() before it is told the cookie. */
struct metadata *home_metadata_open(const char *dir, void (*noted)(void));

#endif
