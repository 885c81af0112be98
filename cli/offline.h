/* offline.h - what those verbs of `lgm bookie` share that work on a bookie's own directories.
 *
 *   lgm bookie VERB --conf bookkeeper.conf [--set KEY=VALUE] ...
 *
 * The directories are those of the bookie's configuration.  A verb that changes something, or that
 * must see them at rest, holds their locks and so refuses while the bookie runs.
 *
 * Threads: the command's own.
 */
#ifndef CLI_OFFLINE_H
#define CLI_OFFLINE_H

#include <stdbool.h>
#include <stdint.h>

#include "bookie/directories.h"
#include "common/disk.h"
#include "common/err.h"
#include "metadata/open.h"

enum { OFFLINE_SETS_MAX = 64 };

struct offline {
    const char *verb;
    const char *conf_file, *url; /* url: of the metadata store, over the configuration's */
    const char *sets[OFFLINE_SETS_MAX];
    unsigned n_sets;
    bool no_metadata, json, force;
    const char *words[8]; /* what stands behind the verb and is no option */
    unsigned n_words;
    struct meta_etcd_conf etcd;
    struct bookie_conf conf;
    struct directories dirs;
    char *bookie_id, *instance_id; /* of the cookie in the first ledger directory */
    struct metadata *meta;
};

/* The verb's name, its function, and what it needs first. */
struct offline_verb {
    const char *name;
    int (*run)(struct offline *o); /* gives the exit code */
    enum {
        NEEDS_NOTHING, /* the directories need not be there */
        NEEDS_DIRS,
        NEEDS_QUIET /* and the locks */
    } needs;
    const char *arguments, *what; /* for --help */
};

/* NULL: it is none of these. */
const struct offline_verb *offline_find(const char *name);
int offline_run(const struct offline_verb *v, int argc, char **argv); /* argv[0]: the verb */
void offline_help(void); /* their part of `lgm bookie --help` */

/* For the verbs.  Each says on standard error why not, and gives the exit code. */
int offline_fail(const struct offline *o, const char *what, enum err err);
int offline_name_dirs(struct offline *o); /* for a verb that needs nothing at first */
int offline_identity(struct offline *o);  /* bookie_id, instance_id */
/* meta: the store of the bookie's cluster; it stays NULL with --no-metadata. */
int offline_metadata(struct offline *o);

/* The verbs, a file each family. */
int offline_rebuild_index(struct offline *o);
int offline_list_ledgers(struct offline *o), offline_list_entries(struct offline *o);
int offline_list_logs(struct offline *o), offline_lastmark(struct offline *o);
int offline_dump_entry(struct offline *o), offline_dump_log(struct offline *o);
int offline_dump_journal(struct offline *o);
int offline_verify_journal(struct offline *o), offline_verify_logs(struct offline *o);
int offline_cookie(struct offline *o), offline_simpletest(struct offline *o);
/* The index that has the ledger's row, and the number of its directory; else the exit code. */
struct entry_index;
int offline_find_ledger(const struct offline *o, int64_t ledger, struct entry_index **out,
                        unsigned *dir);

#endif
