/* Where a topic is served, and its partitions: what clients with an HTTP service URL ask. */
#include <json-c/json.h>
#include <string.h>

#include "broker/admin/routes.h"
#include "broker/broker.h"
#include "broker/cluster/ownership.h"
#include "broker/policy/partitions_make.h"
#include "broker/policy/topic_facts.h"
#include "broker/topic/topics.h"
#include "common/mem.h"

struct question {
    struct admin *admin;
    struct http_request *request;
    bool may_create;
    struct topic_name name;
    struct topic_facts_ask facts;
    struct partitions_make make;
    struct meta_call node; /* of the partitioned topic */
    struct ownership_call owner;
};

static void finish(struct question *q)
{
    struct admin *a = q->admin;

    topic_name_drop(&q->name);
    mem_free(q);
    admin_lets_go(a);
}

static void reply_json(struct http_request *r, json_object *o)
{
    const char *text = json_object_to_json_string_ext(o, JSON_C_TO_STRING_NOSLASHESCAPE);

    http_reply(r, 200, "application/json", view_of(text, strlen(text)));
    json_object_put(o);
}

/* The facts alone may end it. */
static bool is_settled(struct question *q, enum err err, const struct topic_facts *f)
{
    if (err)
        http_reply_reason(q->request, 503, "%s", err_text(err));
    else if (!f->ns_exists)
        http_reply_reason(q->request, 404, "Namespace not found");
    else
        return false;
    finish(q);
    return true;
}

static void start(struct admin *a, struct http_request *r, const struct segments_of_path *p,
                  void (*known)(struct topic_facts_ask *ask, enum err err,
                                const struct topic_facts *f))
{
    char *full = mem_format("%s://%s/%s/%s", p->at[0], p->at[1], p->at[2], p->at[3]);
    const char *create = http_query(r, "checkAllowAutoCreation");
    struct topic_name name;
    enum err err = topic_facts_name(full, &name);

    mem_free(full);
    if (err) {
        http_reply_reason(r, 412, "Topic name is not valid");
        return;
    }
    struct question *q = mem_new(struct question);
    *q = (struct question){.admin = a,
                           .request = r,
                           .name = name,
                           .may_create = create && strcmp(create, "true") == 0};
    admin_holds(a);
    q->facts = (struct topic_facts_ask){.name = &q->name, .done = known};
    topic_facts_ask(topics_env_of(a->env.topics->at[0])->policies, &q->facts);
}

/* ---- lookup ---- */

static void add_url(json_object *o, const char *key, const char *url)
{
    json_object_object_add(o, key, *url ? json_object_new_string(url) : NULL);
}

static void owner_known(struct ownership_call *c, enum err err, bool mine,
                        const struct broker_urls *at)
{
    struct question *q = container_of(c, struct question, owner);

    (void)mine;
    if (err) {
        http_reply_reason(q->request, 503, "%s", err_text(err));
    } else {
        json_object *o = json_object_new_object();
        add_url(o, "brokerUrl", at->service);
        json_object_object_add(o, "brokerUrlTls", json_object_new_string(at->service_tls));
        add_url(o, "httpUrl", at->web);
        add_url(o, "httpUrlTls", at->web_tls);
        add_url(o, "nativeUrl", *at->service ? at->service : at->service_tls);
        reply_json(q->request, o);
    }
    finish(q);
}

static void topic_known(struct topic_facts_ask *ask, enum err err, const struct topic_facts *f)
{
    struct question *q = container_of(ask, struct question, facts);

    if (is_settled(q, err, f))
        return;
    q->owner = (struct ownership_call){.home = q->admin->env.home, .done = owner_known};
    ownership_find(q->admin->env.ownership, q->name.full, &q->owner);
}

void on_topic_lookup(struct admin *a, struct http_request *r, const struct segments_of_path *p)
{
    const char *listener = http_query(r, "listenerName");

    if (!listener)
        listener = http_header(r, "X-Pulsar-ListenerName");
    if (listener && *listener)
        http_reply_reason(r, 400, "the broker do not have %s listener", listener);
    else
        start(a, r, p, topic_known);
}

/* ---- partitions ---- */

/* `properties` may be NULL. */
static void reply_partitions(struct question *q, int32_t n, json_object *properties)
{
    json_object *o = json_object_new_object();

    json_object_object_add(o, "partitions", json_object_new_int(n));
    json_object_object_add(o, "deleted", json_object_new_boolean(false));
    if (json_object_is_type(properties, json_type_object) &&
        json_object_object_length(properties) > 0)
        json_object_object_add(o, "properties", json_object_get(properties));
    reply_json(q->request, o);
}

static void partitions_made(struct partitions_make *m, enum err err, int32_t partitions)
{
    struct question *q = container_of(m, struct question, make);

    if (err)
        http_reply_reason(q->request, 503, "%s", err_text(err));
    else
        reply_partitions(q, partitions, NULL);
    finish(q);
}

static json_object *parsed(struct view text)
{
    json_tokener *t = json_tokener_new();
    json_object *o = json_tokener_parse_ex(t, (const char *)text.base, (int)text.len);

    json_tokener_free(t);
    return o;
}

/* Only who asks here wants its properties: the policies do not keep them. */
static void node_read(struct meta_call *c, const struct meta_reply *r)
{
    struct question *q = container_of(c, struct question, node);

    if (r->err && r->err != ERR_NOT_FOUND) {
        http_reply_reason(q->request, 503, "%s", err_text(r->err));
    } else {
        json_object *o = r->err ? NULL : parsed(slice_view(r->value));
        reply_partitions(q, q->facts.facts.partitions, json_object_object_get(o, "properties"));
        json_object_put(o);
    }
    finish(q);
}

/* false: it has none. */
static bool read_node(struct question *q)
{
    char key[META_KEY_MAX];

    if (q->name.partition >= 0 || path_partitioned(&q->name, key))
        return false;
    q->node = (struct meta_call){.home = q->admin->env.home, .done = node_read};
    meta_get(q->admin->env.meta, key, &q->node);
    return true;
}

static void partitions_known(struct topic_facts_ask *ask, enum err err, const struct topic_facts *f)
{
    struct question *q = container_of(ask, struct question, facts);
    const struct topics_env *env = topics_env_of(q->admin->env.topics->at[0]);
    int32_t n;

    if (is_settled(q, err, f))
        return;
    switch (topic_facts_partitions(f, &q->name, topics_creation(q->admin->env.conf), q->may_create,
                                   &n)) {
    case PARTITIONS_MAKE:
        q->make.done = partitions_made;
        partitions_make(env->policies, &q->name, n, &q->make);
        return;
    case PARTITIONS_ABSENT:
        http_reply_reason(q->request, 404, "Topic not found");
        break;
    case PARTITIONS_THERE:
        if (n > 0 && read_node(q))
            return;
        reply_partitions(q, n, NULL);
        break;
    }
    finish(q);
}

void on_topic_partitions(struct admin *a, struct http_request *r, const struct segments_of_path *p)
{
    start(a, r, p, partitions_known);
}
