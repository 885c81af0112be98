/* What a namespace is told: each policy by the table policies.def. */
#include <string.h>

#include "broker/admin/asks.h"
#include "broker/admin/namespace.h"
#include "broker/admin/subject.h"
#include "broker/broker.h"
#include "broker/policy/ns_policies.h"
#include "common/mem.h"

/* NULL: fine; else why not. */
typedef const char *check_fn(const struct job *j, json_object *value);

static bool number(json_object *o, const char *key, int64_t *out)
{
    json_object *v = json_object_object_get(o, key);

    *out = json_object_get_int64(v);
    return json_object_is_type(v, json_type_int);
}

static const char *check_retention(const struct job *j, json_object *o)
{
    int64_t minutes, mb;

    (void)j;
    if (!number(o, "retentionTimeInMinutes", &minutes) || !number(o, "retentionSizeInMB", &mb))
        return "retentionTimeInMinutes and retentionSizeInMB are whole numbers";
    if (minutes < -1 || mb < -1)
        return "Invalid retention policy: -1 is no limit, less is nothing";
    if ((minutes == 0) != (mb == 0))
        return "Invalid retention policy: one limit is zero, so that the other has no effect";
    return NULL;
}

static const char *check_persistence(const struct job *j, json_object *o)
{
    int64_t e, w, a;

    (void)j;
    if (!number(o, "bookkeeperEnsemble", &e) || !number(o, "bookkeeperWriteQuorum", &w) ||
        !number(o, "bookkeeperAckQuorum", &a))
        return "bookkeeperEnsemble, bookkeeperWriteQuorum and bookkeeperAckQuorum are numbers";
    if (a < 1 || a > w || w > e || e > 16)
        return "16 >= ensemble >= write quorum >= ack quorum >= 1 must hold";
    return NULL;
}

static const char *check_creation(const struct job *j, json_object *o)
{
    json_object *allow = json_object_object_get(o, "allowAutoTopicCreation");
    json_object *type = json_object_object_get(o, "topicType");
    const char *text = json_object_get_string(type);
    int64_t n;

    if (!json_object_is_type(allow, json_type_boolean))
        return "allowAutoTopicCreation is true or false";
    if (!type)
        return NULL;
    if (strcmp(text, "non-partitioned") == 0)
        return NULL;
    if (strcmp(text, "partitioned") != 0)
        return "topicType is partitioned or non-partitioned";
    if (!number(o, "defaultNumPartitions", &n) || n < 1)
        return "defaultNumPartitions is at least 1";
    int64_t most = j->admin->env.conf->max_partitions;
    return n > (most ? most : INT32_MAX) ? "defaultNumPartitions is above the limit" : NULL;
}

static const char *check_subscription_creation(const struct job *j, json_object *o)
{
    (void)j;
    return json_object_is_type(json_object_object_get(o, "allowAutoSubscriptionCreation"),
                               json_type_boolean)
               ? NULL
               : "allowAutoSubscriptionCreation is true or false";
}

static const char *check_count(const struct job *j, json_object *o)
{
    (void)j;
    return json_object_is_type(o, json_type_int) && json_object_get_int64(o) >= 0
               ? NULL
               : "it must be 0, for no limit, or more";
}

static const char *check_types(const struct job *j, json_object *o)
{
    (void)j;
    for (size_t i = 0; i < json_object_array_length(o); i++) {
        const char *type = json_object_get_string(json_object_array_get_idx(o, i));
        if (!type || !ns_type_bit(type, strlen(type)))
            return "a type is Exclusive, Shared, Failover or Key_Shared";
    }
    return NULL;
}

static const char *check_properties(const struct job *j, json_object *o)
{
    (void)j;
    json_object_object_foreach(o, key, value)
    {
        (void)key;
        if (!json_object_is_type(value, json_type_string))
            return "properties are texts";
    }
    return NULL;
}

static const char *check_replication(const struct job *j, json_object *o)
{
    const char *cluster = json_object_get_string(json_object_array_get_idx(o, 0));

    if (json_object_array_length(o) != 1 || strcmp(cluster, j->admin->env.conf->cluster) != 0)
        return "there is no geo-replication yet: only this cluster";
    return NULL;
}

#define REFUSED NULL

static const struct policy {
    const char *path, *field;
    check_fn *check;
    const char *what;
} policies[] = {
#define X(path, field, check, what) {path, field, check, what},
#include "broker/admin/policies.def"
#undef X
};

enum { POLICIES = sizeof(policies) / sizeof(policies[0]) };

static const struct policy *find(struct job *j)
{
    for (unsigned i = 0; i < POLICIES; i++)
        if (strcmp(policies[i].path, j->path.at[2]) == 0)
            return &policies[i];
    job_refuse(j, 404, "there is no policy of that name");
    return NULL;
}

static bool is_list(const struct policy *p)
{
    return p->check == check_replication || p->check == check_types;
}

static bool has_its_type(const struct policy *p, json_object *value)
{
    return json_object_is_type(value, p->check == check_count ? json_type_int
                                      : is_list(p)            ? json_type_array
                                                              : json_type_object);
}

/* ---- for new namespaces ---- */

static bool says_nothing(json_object *o)
{
    switch (json_object_get_type(o)) {
    case json_type_null:
        return true;
    case json_type_boolean:
        return !json_object_get_boolean(o);
    case json_type_int:
        return json_object_get_int64(o) <= 0;
    case json_type_double:
        return json_object_get_double(o) <= 0;
    case json_type_string:
        return json_object_get_string_len(o) == 0;
    case json_type_array:
        return json_object_array_length(o) == 0;
    case json_type_object:
        break;
    }
    json_object_object_foreach(o, key, value)
    {
        (void)key;
        if (!says_nothing(value))
            return false;
    }
    return true;
}

/* What Java's Policies says when nobody said anything. */
static bool is_usual(const char *field, json_object *o)
{
    const char *text = json_object_is_type(o, json_type_string) ? json_object_get_string(o) : "";

    return says_nothing(o) || strcmp(field, "is_allow_auto_update_schema") == 0 ||
           strcmp(text, "UNDEFINED") == 0 || strcmp(text, "None") == 0 || strcmp(text, "Full") == 0;
}

bool namespace_policies_fine(struct job *j, json_object *o)
{
    for (unsigned i = 0; i < POLICIES && !j->status; i++) {
        const struct policy *p = &policies[i];
        json_object *value = json_object_object_get(o, p->field);
        const char *why = NULL;
        if (!value)
            continue;
        if (p->check)
            why = has_its_type(p, value) ? p->check(j, value) : "it has another form";
        if (why)
            job_refuse(j, 412, "%s: %s", p->path, why);
        else if (!p->check && !is_usual(p->field, value))
            job_refuse(j, 501, "%s is not supported: %s", p->path, p->what);
    }
    return !j->status;
}

/* ---- one policy ---- */

void on_policy(struct job *j)
{
    const struct policy *p = find(j);
    char key[META_KEY_MAX];
    json_object *o;

    if (!p || !subject_namespace(j, j->path.at[0], j->path.at[1]))
        return;
    enum err err = path_namespace(j->path.at[0], j->path.at[1], key);
    if (!err)
        err = ask_json(j, key, &o, NULL);
    if (err) {
        job_fail(j, err, NULL);
        return;
    }
    json_object *value = json_object_get(json_object_object_get(o, p->field));
    json_object_put(o);
    bool map = strcmp(p->path, "properties") == 0 || strcmp(p->path, "backlogQuotaMap") == 0;
    if (!value && map)
        value = json_object_new_object();
    else if (!value && p->check == check_types)
        value = json_object_new_array();
    job_json_reply(j, value);
}

struct setting {
    const char *field;
    json_object *value; /* NULL: none */
    bool adds;          /* to what is there, as Pulsar's broker does with properties */
};

static enum err set_field(void *ctx, json_object *o)
{
    const struct setting *s = ctx;
    json_object *was = json_object_object_get(o, s->field);

    if (s->value && s->adds && json_object_is_type(was, json_type_object)) {
        json_object_object_foreach(s->value, key, value)
            json_object_object_add(was, key, json_object_get(value));
    } else if (s->value)
        json_object_object_add(o, s->field, json_object_get(s->value));
    else
        json_object_object_del(o, s->field);
    return ERR_OK;
}

static void set(struct job *j, const struct policy *p, json_object *value)
{
    struct setting s = {p->field, value, p->check == check_properties};
    char key[META_KEY_MAX];

    if (!subject_namespace(j, j->path.at[0], j->path.at[1]))
        return;
    enum err err = path_namespace(j->path.at[0], j->path.at[1], key);
    if (!err)
        err = ask_rewrite(j, key, set_field, &s);
    if (err)
        job_fail(j, err, NULL);
    else
        job_done(j);
}

/* NULL: it was answered why not. */
static const struct policy *settable(struct job *j)
{
    const struct policy *p = find(j);

    if (p && !p->check) {
        job_refuse(j, 501, "%s is not supported: %s", p->path, p->what);
        return NULL;
    }
    return p;
}

void on_policy_set(struct job *j)
{
    const struct policy *p = settable(j);
    json_object *value = p ? job_json(j) : NULL;

    if (!p || j->status)
        return;
    const char *why = "the body has another form";
    if (has_its_type(p, value))
        why = p->check(j, value);
    if (why)
        job_refuse(j, 412, "%s", why);
    else
        set(j, p, value);
    json_object_put(value);
}

void on_policy_remove(struct job *j)
{
    const struct policy *p = settable(j);

    if (p && p->check == check_replication)
        job_refuse(j, 405, "a namespace is in a cluster");
    else if (p)
        set(j, p, NULL);
}

/* ---- one property ---- */

struct property {
    const char *key, *value;
    char *was;
};

static enum err change_property(void *ctx, json_object *o)
{
    struct property *p = ctx;
    json_object *all = json_object_object_get(o, "properties");

    if (!json_object_is_type(all, json_type_object)) {
        all = json_object_new_object();
        json_object_object_add(o, "properties", all);
    }
    mem_free(p->was);
    const char *was = json_object_get_string(json_object_object_get(all, p->key));
    p->was = was ? mem_string(was) : NULL;
    if (p->value)
        json_object_object_add(all, p->key, json_object_new_string(p->value));
    else
        json_object_object_del(all, p->key);
    return ERR_OK;
}

static void property(struct job *j, struct property *p)
{
    char key[META_KEY_MAX];

    if (!subject_namespace(j, j->path.at[0], j->path.at[1]))
        return;
    enum err err = path_namespace(j->path.at[0], j->path.at[1], key);
    if (!err)
        err = ask_rewrite(j, key, change_property, p);
    if (err)
        job_fail(j, err, NULL);
    else if (p->value || !p->was)
        job_done(j);
    else
        job_text(j, 200, p->was);
    mem_free(p->was);
}

void on_property_set(struct job *j)
{
    property(j, &(struct property){.key = j->path.at[2], .value = j->path.at[3]});
}

void on_property_remove(struct job *j)
{
    property(j, &(struct property){.key = j->path.at[2]});
}

void on_property(struct job *j)
{
    char key[META_KEY_MAX];
    json_object *o;

    if (!subject_namespace(j, j->path.at[0], j->path.at[1]))
        return;
    enum err err = path_namespace(j->path.at[0], j->path.at[1], key);
    if (!err)
        err = ask_json(j, key, &o, NULL);
    if (err) {
        job_fail(j, err, NULL);
        return;
    }
    json_object *all = json_object_object_get(o, "properties");
    const char *value = json_object_get_string(json_object_object_get(all, j->path.at[2]));
    if (value)
        job_text(j, 200, value);
    else
        job_done(j);
    json_object_put(o);
}

void on_policy_nested(struct job *j)
{
    job_refuse(j, 501, "%s/%s is not supported", j->path.at[2], j->path.at[3]);
}
