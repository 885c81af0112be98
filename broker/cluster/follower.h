/* follower.h - keeps a mirror true: watches a prefix, lists it, lists it again when in doubt.
 *
 *   follower_start -> watch, list -> caught_up() -> changes ... UNSURE -> list ...
 *
 * A list that fails is tried again until it works; the mirror keeps what it knew.
 *
 * Memory:  embedded in its owner, which stays put until follower_stop() is done.
 * Threads: everything on `home`.
 */
#ifndef BROKER_CLUSTER_FOLLOWER_H
#define BROKER_CLUSTER_FOLLOWER_H

#include "broker/cluster/mirror.h"
#include "metadata/metadata.h"

struct follower {
    /* set before follower_start() */
    struct loop *home;
    struct metadata *meta;
    const char *prefix;
    bool keys_only;                        /* values do not matter */
    bool (*wants)(const char *key);        /* below the prefix; NULL: every one */
    void (*caught_up)(struct follower *f); /* after every list */
    void (*stopped)(struct follower *f);
    struct mirror mirror; /* mirror_init() is the owner's */

    /* private */
    struct meta_watch watch;
    struct meta_call call;
    struct timer retry;
    char *after; /* the last key of the page before */
    bool listing, again, stopping;
};

void follower_start(struct follower *f);
/* What an answer said of `key` (below the prefix): NULL for absent. */
void follower_learn(struct follower *f, const char *key, const struct slice *value, int64_t version,
                    uint64_t revision);
void follower_stop(struct follower *f); /* then stopped(), perhaps in this stack */

#endif
