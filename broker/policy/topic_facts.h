/* topic_facts.h - what the cluster's metadata says of a topic's name, before it is loaded.
 *
 *   namespace's node -> partitions of the base name -> the topic's own node
 *
 * The first two come from the loop's policies; whether a topic exists is always read.
 *
 * Memory:  an ask is the caller's and stays put until done(); its name too.
 * Threads: the loop of the policies; done() never in the caller's stack.
 */
#ifndef BROKER_POLICY_TOPIC_FACTS_H
#define BROKER_POLICY_TOPIC_FACTS_H

#include "broker/policy/policies.h"

struct topic_facts {
    bool ns_exists;
    struct ns_policies ns;
    int32_t partitions; /* of the base name; 0: it is not partitioned */
    bool going;         /* the base name was partitioned, and its partitions are being deleted */
    bool exists;        /* it was stored to; of one that is not stored only its owner knows */
};

struct topic_facts_ask {
    const struct topic_name *name;
    void (*done)(struct topic_facts_ask *a, enum err err, const struct topic_facts *facts);
    struct policies *policies; /* private, as the rest */
    struct policies_ask ask;
    struct meta_call call;
    struct topic_facts facts;
};

/* topic_name_parse(), and refuses names whose keys would be too long: ERR_INVALID_NAME.  Gives. */
MUST_CHECK enum err topic_facts_name(const char *text, struct topic_name *out);

/* The name must have come through topic_facts_name(). */
void topic_facts_ask(struct policies *p, struct topic_facts_ask *a);

/* What is made for a topic that is not there: the namespace's word before the broker's; nothing
 * while its partitions are going; what the system keeps for itself always. */
struct topic_creation topic_facts_creation(const struct topic_facts *f,
                                           const struct topic_name *name,
                                           struct topic_creation broker);

/* What who asks for the partitions of a name is told. */
enum partitions_answer {
    PARTITIONS_ABSENT, /* there is no such topic, and it is not made for him */
    PARTITIONS_MAKE,   /* it is to be made, with so many */
    PARTITIONS_THERE,  /* it has so many; 0: none, it is an ordinary topic, or may be */
};
enum partitions_answer topic_facts_partitions(const struct topic_facts *f,
                                              const struct topic_name *name,
                                              struct topic_creation broker, bool may_create,
                                              int32_t *partitions);

#endif
