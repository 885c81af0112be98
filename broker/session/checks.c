#include "broker/session/checks.h"

#include "broker/policy/topic_facts.h"

enum err checks_topic(struct session *s, const char *topic, enum action action,
                      struct topic_name *name, const char **why)
{
    *why = "not a topic's name";
    TRY(topic_facts_name(topic, name));
    enum err err = ERR_NOT_ALLOWED;
    *why = "non-persistent topics are not supported yet";
    if (name->persistent) {
        *why = "not allowed on this topic";
        err = authorize(session_env(s)->authorizer, &s->principal, action, name->full);
    }
    if (err)
        topic_name_drop(name);
    return err;
}

const char *checks_schema(const Pulsar__Proto__Schema *schema)
{
    if (!schema || schema->type == PULSAR__PROTO__SCHEMA__TYPE__None)
        return NULL;
    if (schema->type == PULSAR__PROTO__SCHEMA__TYPE__String && schema->schema_data.len == 0)
        return NULL;
    return "schemas are not supported yet: only bytes and strings";
}
