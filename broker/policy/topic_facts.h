/* topic_facts.h - what the cluster's metadata says of a topic's name, before it is loaded.
 *
 *   namespace's node -> partitions of the base name -> the topic's own node
 *
 * Memory:  an ask is the caller's and stays put until done(); its name too.
 * Threads: from any loop; done() on ask->home, never in the caller's stack.
 */
#ifndef BROKER_POLICY_TOPIC_FACTS_H
#define BROKER_POLICY_TOPIC_FACTS_H

#include "metadata/metadata.h"
#include "metadata/paths.h"

struct topic_facts {
    bool ns_exists;
    int32_t partitions; /* of the base name; 0: it is not partitioned */
    bool exists;        /* it was stored to */
};

struct topic_facts_ask {
    struct loop *home;
    const struct topic_name *name;
    void (*done)(struct topic_facts_ask *a, enum err err, const struct topic_facts *facts);
    struct metadata *meta; /* private, as the rest */
    struct meta_call call;
    struct topic_facts facts;
};

/* topic_name_parse(), and refuses names whose keys would be too long: ERR_INVALID_NAME.  Gives. */
MUST_CHECK enum err topic_facts_name(const char *text, struct topic_name *out);

/* The name must have come through topic_facts_name(). */
void topic_facts_ask(struct metadata *m, struct topic_facts_ask *a);

#endif
