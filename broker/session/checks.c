#include "broker/session/checks.h"

#include <string.h>

#include "broker/broker.h"
#include "broker/policy/topic_facts.h"

bool checks_too_long(const char *name)
{
    return name && strnlen(name, NAME_BYTES_MAX + 1) > NAME_BYTES_MAX;
}

enum err checks_topic_name(const char *topic, struct topic_name *name, const char **why)
{
    *why = "a topic's name has 1,024 bytes at most";
    if (checks_too_long(topic))
        return ERR_INVALID_NAME;
    *why = "not a topic's name";
    return topic_facts_name(topic, name);
}

enum err checks_topic(struct session *s, const char *topic, enum action action,
                      struct topic_name *name, const char **why)
{
    TRY(checks_topic_name(topic, name, why));
    *why = "not allowed on this topic";
    enum err err = authorize(session_env(s)->authorizer, &s->principal, action, name->full);
    if (err)
        topic_name_drop(name);
    return err;
}

/* ---- namespaces, patterns ---- */

void ns_name_drop(struct ns_name *n)
{
    mem_free(n->tenant);
    mem_free(n->ns);
    mem_free(n->topics);
    *n = (struct ns_name){0};
}

static enum err cut_namespace(const char *text, struct ns_name *n)
{
    const char *slash = checks_too_long(text) ? NULL : strchr(text, '/');
    char key[META_KEY_MAX];

    if (!slash)
        return ERR_INVALID_NAME;
    *n = (struct ns_name){.tenant = mem_string_n(text, (size_t)(slash - text)),
                          .ns = mem_string(slash + 1)};
    if (path_topics(n->tenant, n->ns, key)) {
        ns_name_drop(n);
        return ERR_INVALID_NAME;
    }
    n->topics = mem_string(key);
    return ERR_OK;
}

enum err checks_namespace(struct session *s, const char *text, struct ns_name *name,
                          const char **why)
{
    *why = "not a namespace's name";
    TRY(cut_namespace(text, name));
    *why = "not allowed to list the topics of this namespace";
    enum err err = authorize(session_env(s)->authorizer, &s->principal, ACTION_LIST, text);
    if (err)
        ns_name_drop(name);
    return err;
}

/* In characters: continuation bytes are none. */
static int64_t text_length(const char *text)
{
    int64_t n = 0;

    for (; *text; text++)
        n += (*text & 0xc0) != 0x80;
    return n;
}

enum err checks_pattern(const struct session *s, const char *text, struct topic_pattern **out,
                        const char **why)
{
    const struct broker_conf *conf = session_env(s)->conf;

    *why = "the broker does not evaluate patterns";
    if (!conf->evaluates_patterns)
        return ERR_NOT_ALLOWED;
    *why = "the pattern is longer than subscriptionPatternMaxLength";
    if (text_length(text) > conf->pattern_max)
        return ERR_NOT_ALLOWED;
    *why = "not a regular expression that the broker knows";
    return topic_pattern_new(out, text) ? ERR_NOT_ALLOWED : ERR_OK;
}

bool checks_reserved(const char *subscription)
{
    return strncmp(subscription, "pulsar.repl", 11) == 0 ||
           strncmp(subscription, "pulsar.dedup", 12) == 0;
}

const char *checks_schema(const Pulsar__Proto__Schema *schema)
{
    if (!schema || schema->type == PULSAR__PROTO__SCHEMA__TYPE__None)
        return NULL;
    if (schema->type == PULSAR__PROTO__SCHEMA__TYPE__String && schema->schema_data.len == 0)
        return NULL;
    return "schemas are not supported yet: only bytes and strings";
}

bool checks_too_much(Pulsar__Proto__KeyValue **pairs, size_t n)
{
    size_t bytes = 0;

    for (size_t i = 0; i < n && bytes <= PAIRS_BYTES_MAX; i++)
        bytes += strlen(pairs[i]->key) + strlen(pairs[i]->value);
    return n > PAIRS_MAX || bytes > PAIRS_BYTES_MAX;
}

void checks_keep(struct pairs *to, Pulsar__Proto__KeyValue **pairs, size_t n)
{
    for (size_t i = 0; i < n; i++)
        pairs_set(to, pairs[i]->key, pairs[i]->value);
}
