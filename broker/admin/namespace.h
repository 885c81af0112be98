/* namespace.h - what the files about namespaces share. */
#ifndef BROKER_ADMIN_NAMESPACE_H
#define BROKER_ADMIN_NAMESPACE_H

#include "broker/admin/jobs.h"

/* Of a new namespace: false when one of its policies is wrong (412) or has no effect (501). */
bool namespace_policies_fine(struct job *j, json_object *policies);

enum namespace_topics {
    TOPICS_STORED = 1,
    TOPICS_LOADED = 2, /* of those that are not persistent: what this broker serves */
    TOPICS_PARTITIONED = 4,
    TOPICS_FLEETING_PARTITIONED = 8, /* of those that are not persistent */
};
/* The names of a namespace's topics, in pieces, as a JSON array: however many there are, a page
 * of them is held.  `which`: kinds of them. */
void namespace_list_topics(struct job *j, const char *tenant, const char *ns, unsigned which);

#endif
