/* LOOKUP, PARTITIONED_METADATA: answered from the metadata; no topic is loaded for them. */
#include <stdio.h>
#include <string.h>

#include "broker/broker.h"
#include "broker/cluster/ownership.h"
#include "broker/metrics.h"
#include "broker/policy/partitions_make.h"
#include "broker/policy/topic_facts.h"
#include "broker/session/checks.h"
#include "broker/session/reply.h"
#include "broker/session/rules.h"
#include "broker/topic/topics.h"

struct lookup {
    struct session *session;
    uint64_t request;
    bool may_create; /* of PARTITIONED_METADATA: zero partitions for a topic that is not there */
    void (*fail)(struct session *s, uint64_t request, int code, const char *why);
    struct topic_name name;
    struct topic_facts_ask facts;
    struct partitions_make make;
    struct ownership_call owner;
};

/* ---- answers ---- */

static void lookup_failed(struct session *s, uint64_t request, int code, const char *why)
{
    Pulsar__Proto__CommandLookupTopicResponse r =
        PULSAR__PROTO__COMMAND_LOOKUP_TOPIC_RESPONSE__INIT;

    metric_add(&session_env(s)->metrics->lookups_refused, 1);
    r.request_id = request;
    r.has_response = r.has_error = true;
    r.response = PULSAR__PROTO__COMMAND_LOOKUP_TOPIC_RESPONSE__LOOKUP_TYPE__Failed;
    r.error = (Pulsar__Proto__ServerError)code;
    r.message = (char *)(uintptr_t)why;
    REPLY(base, LOOKUP_RESPONSE, lookuptopicresponse, r);
    session_send(s, &base);
}

static void lookup_found(struct session *s, uint64_t request, const struct broker_urls *at,
                         bool mine)
{
    Pulsar__Proto__CommandLookupTopicResponse r =
        PULSAR__PROTO__COMMAND_LOOKUP_TOPIC_RESPONSE__INIT;

    r.request_id = request;
    r.has_response = r.has_authoritative = true;
    r.response = mine ? PULSAR__PROTO__COMMAND_LOOKUP_TOPIC_RESPONSE__LOOKUP_TYPE__Connect
                      : PULSAR__PROTO__COMMAND_LOOKUP_TOPIC_RESPONSE__LOOKUP_TYPE__Redirect;
    r.authoritative = true;
    if (*at->service)
        r.brokerserviceurl = (char *)(uintptr_t)at->service;
    if (*at->service_tls)
        r.brokerserviceurltls = (char *)(uintptr_t)at->service_tls;
    REPLY(base, LOOKUP_RESPONSE, lookuptopicresponse, r);
    session_send(s, &base);
}

static void partitions_failed(struct session *s, uint64_t request, int code, const char *why)
{
    Pulsar__Proto__CommandPartitionedTopicMetadataResponse r =
        PULSAR__PROTO__COMMAND_PARTITIONED_TOPIC_METADATA_RESPONSE__INIT;

    metric_add(&session_env(s)->metrics->lookups_refused, 1);
    r.request_id = request;
    r.has_response = r.has_error = true;
    r.response = PULSAR__PROTO__COMMAND_PARTITIONED_TOPIC_METADATA_RESPONSE__LOOKUP_TYPE__Failed;
    r.error = (Pulsar__Proto__ServerError)code;
    r.message = (char *)(uintptr_t)why;
    REPLY(base, PARTITIONED_METADATA_RESPONSE, partitionmetadataresponse, r);
    session_send(s, &base);
}

static void partitions_found(struct session *s, uint64_t request, int32_t n)
{
    Pulsar__Proto__CommandPartitionedTopicMetadataResponse r =
        PULSAR__PROTO__COMMAND_PARTITIONED_TOPIC_METADATA_RESPONSE__INIT;

    r.request_id = request;
    r.has_response = r.has_partitions = true;
    r.response = PULSAR__PROTO__COMMAND_PARTITIONED_TOPIC_METADATA_RESPONSE__LOOKUP_TYPE__Success;
    r.partitions = (uint32_t)n;
    REPLY(base, PARTITIONED_METADATA_RESPONSE, partitionmetadataresponse, r);
    session_send(s, &base);
}

/* ---- one lookup ---- */

static void finish(struct lookup *l)
{
    struct session *s = l->session;

    s->home->lookups--;
    metric_add(&session_env(s)->metrics->lookups, -1);
    topic_name_drop(&l->name);
    mem_free(l);
    session_let_go(s);
}

static void fail(struct lookup *l, enum err err, const char *why)
{
    l->fail(l->session, l->request, reply_code_lookup(err), why);
}

/* The facts alone may end it. */
static bool is_settled(struct lookup *l, enum err err, const struct topic_facts *f)
{
    if (err)
        fail(l, err, err_text(err));
    else if (!f->ns_exists)
        fail(l, ERR_TOPIC_NOT_FOUND, "the namespace does not exist");
    else
        return false;
    finish(l);
    return true;
}

static void partitions_made(struct partitions_make *m, enum err err, int32_t partitions)
{
    struct lookup *l = container_of(m, struct lookup, make);

    if (err)
        fail(l, err, err_text(err));
    else
        partitions_found(l->session, l->request, partitions);
    finish(l);
}

static void partitions_known(struct topic_facts_ask *a, enum err err, const struct topic_facts *f)
{
    struct lookup *l = container_of(a, struct lookup, facts);
    const struct sessions_env *env = session_env(l->session);
    int32_t n;

    if (is_settled(l, err, f))
        return;
    switch (topic_facts_partitions(f, &l->name, topics_creation(env->conf), l->may_create, &n)) {
    case PARTITIONS_MAKE:
        l->make.done = partitions_made;
        partitions_make(env->policies, &l->name, n, &l->make);
        return;
    case PARTITIONS_ABSENT:
        fail(l, ERR_TOPIC_NOT_FOUND, "the topic does not exist");
        break;
    case PARTITIONS_THERE:
        partitions_found(l->session, l->request, n);
        break;
    }
    finish(l);
}

static void owner_known(struct ownership_call *c, enum err err, bool mine,
                        const struct broker_urls *where)
{
    struct lookup *l = container_of(c, struct lookup, owner);

    if (err)
        fail(l, err, "Failed to acquire ownership of the topic");
    else
        lookup_found(l->session, l->request, where, mine);
    finish(l);
}

static void topic_known(struct topic_facts_ask *a, enum err err, const struct topic_facts *f)
{
    struct lookup *l = container_of(a, struct lookup, facts);

    if (is_settled(l, err, f))
        return;
    l->owner = (struct ownership_call){.home = session_env(l->session)->home, .done = owner_known};
    ownership_find(session_env(l->session)->ownership, l->name.full, &l->owner);
}

/* ERR_OK: *name is given. */
static enum err check(struct session *s, const char *topic, struct topic_name *name,
                      const char **why)
{
    TRY(checks_topic_name(topic, name, why));
    *why = "not allowed to look up this topic";
    enum err err = authorize(session_env(s)->authorizer, &s->principal, ACTION_LOOKUP, name->full);
    if (!err && s->home->lookups >= (uint64_t)session_env(s)->conf->max_lookups) {
        *why = "too many lookups at a time";
        err = ERR_BUSY;
    }
    if (err)
        topic_name_drop(name);
    return err;
}

static void start(struct session *s, const char *topic, struct lookup about,
                  void (*known)(struct topic_facts_ask *a, enum err err,
                                const struct topic_facts *f))
{
    const char *why;
    enum err err = check(s, topic, &about.name, &why);

    if (err) {
        about.fail(s, about.request, reply_code_lookup(err), why);
        return;
    }
    struct lookup *l = mem_new(struct lookup);
    *l = about;
    l->session = s;
    session_hold(s);
    s->home->lookups++;
    metric_add(&session_env(s)->metrics->lookups, 1);
    l->facts = (struct topic_facts_ask){.name = &l->name, .done = known};
    topic_facts_ask(session_env(s)->policies, &l->facts);
}

enum err on_lookup(struct session *s, const struct command *c)
{
    const Pulsar__Proto__CommandLookupTopic *l = c->base->lookuptopic;
    const char *listener = l->advertised_listener_name;

    if (listener && *listener) {
        char why[256];
        snprintf(why, sizeof(why), "the broker do not have %.200s listener", listener);
        lookup_failed(s, l->request_id, err_to_pulsar(ERR_NOT_READY), why);
        return ERR_OK;
    }
    start(s, l->topic, (struct lookup){.request = l->request_id, .fail = lookup_failed},
          topic_known);
    return ERR_OK;
}

enum err on_partitions(struct session *s, const struct command *c)
{
    const Pulsar__Proto__CommandPartitionedTopicMetadata *p = c->base->partitionmetadata;

    start(s, p->topic,
          (struct lookup){.request = p->request_id,
                          .may_create = p->metadata_auto_creation_enabled,
                          .fail = partitions_failed},
          partitions_known);
    return ERR_OK;
}
