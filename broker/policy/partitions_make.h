/* partitions_make.h - a topic becomes a partitioned one because somebody asked for it.
 *
 * Memory:  the make is the caller's and stays put until done().
 * Threads: the loop of the policies; done() never in the caller's stack.
 */
#ifndef BROKER_POLICY_PARTITIONS_MAKE_H
#define BROKER_POLICY_PARTITIONS_MAKE_H

#include "broker/policy/policies.h"

struct partitions_make {
    /* `partitions`: what it has now, also when somebody else was faster. */
    void (*done)(struct partitions_make *m, enum err err, int32_t partitions);
    struct policies *policies; /* private, as the rest */
    int32_t partitions;
    struct meta_call call;
    char key[META_KEY_MAX];
};

void partitions_make(struct policies *p, const struct topic_name *name, int32_t partitions,
                     struct partitions_make *m);

#endif
