/* checks.h - what PRODUCER and SUBSCRIBE are asked before anything is made for them. */
#ifndef BROKER_SESSION_CHECKS_H
#define BROKER_SESSION_CHECKS_H

#include "broker/cluster/topic_pattern.h"
#include "broker/session/session.h"
#include "metadata/paths.h"

enum { NAME_BYTES_MAX = 1024 }; /* of a topic, subscription, producer or consumer, each */

bool checks_too_long(const char *name); /* NULL is not */
/* *name is given on ERR_OK. */
MUST_CHECK enum err checks_topic_name(const char *topic, struct topic_name *name, const char **why);
/* Name and authorization; *name is given on ERR_OK, *why is a sentence otherwise. */
MUST_CHECK enum err checks_topic(struct session *s, const char *topic, enum action action,
                                 struct topic_name *name, const char **why);

struct ns_name {
    char *tenant, *ns;
    char *topics; /* what the keys of its topics begin with */
};
/* "tenant/namespace" whose topics may be listed; *name is given on ERR_OK. */
MUST_CHECK enum err checks_namespace(struct session *s, const char *text, struct ns_name *name,
                                     const char **why);
void ns_name_drop(struct ns_name *n);
/* One that the broker may try names with; given on ERR_OK. */
MUST_CHECK enum err checks_pattern(const struct session *s, const char *text,
                                   struct topic_pattern **out, const char **why);

bool checks_reserved(const char *subscription); /* a name of the broker's own */
/* NULL, or why not.  Plain bytes and strings need no schema to be kept. */
const char *checks_schema(const Pulsar__Proto__Schema *schema);

/* Of metadata and properties: there are too many of them, or they are too long. */
bool checks_too_much(Pulsar__Proto__KeyValue **pairs, size_t n);
void checks_keep(struct pairs *to, Pulsar__Proto__KeyValue **pairs, size_t n); /* `to` is empty */

#endif
