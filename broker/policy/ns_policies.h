/* ns_policies.h - what of a namespace's policies the broker acts on, and how they are read.
 *
 * Pulsar's Policies JSON has more fields than these; the admin API rewrites the JSON itself,
 * so that fields nobody here knows survive.  Facts: pulsar-broker.md F.3.
 */
#ifndef BROKER_POLICY_NS_POLICIES_H
#define BROKER_POLICY_NS_POLICIES_H

#include <stdbool.h>
#include <stdint.h>

#include "common/buf.h"
#include "common/err.h"

/* What is made when somebody asks for a topic that is not there. */
struct topic_creation {
    bool allowed;
    int32_t partitions; /* 0: a topic without */
};

/* What a namespace may limit, of a topic, a subscription or a consumer. */
enum ns_limit {
    NS_PRODUCERS,
    NS_CONSUMERS,
    NS_SUBSCRIPTIONS,
    NS_SUBSCRIPTION_CONSUMERS,
    NS_UNACKED,
    NS_SUBSCRIPTION_UNACKED,
    NS_LIMITS
};

struct ns_policies {
    bool exists; /* and is not being deleted */
    bool creation_set, retention_set, persistence_set;
    struct topic_creation creation;
    int64_t retention_minutes, retention_mb; /* -1: no end */
    uint32_t ensemble, write_quorum, ack_quorum;
    struct {
        bool set;
        int64_t most; /* 0: no end */
    } limit[NS_LIMITS];
    unsigned types; /* of subscriptions: bits of ns_type_bit(); 0: nothing is said */
    bool subscription_creation_set, subscription_creation;
};

struct partitioned_topic {
    int32_t partitions; /* 0: it is not one */
    bool deleted;       /* its partitions are going */
};

/* ERR_MALFORMED: not a JSON object. */
MUST_CHECK enum err ns_policies_read(struct view json, struct ns_policies *out);
MUST_CHECK enum err partitioned_topic_read(struct view json, struct partitioned_topic *out);

/* "Exclusive", "Shared", "Failover", "Key_Shared"; 0: it is none of them. */
unsigned ns_type_bit(const char *type, size_t len);
unsigned ns_type_bits(const char *list); /* with commas between them; ~0u: one is none */

#endif
