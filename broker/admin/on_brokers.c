/* The brokers and bookies of the cluster, and what this broker is set to. */
#include <string.h>

#include "broker/admin/asks.h"
#include "broker/admin/subject.h"
#include "broker/broker.h"
#include "broker/cluster/ownership.h"
#include "broker/cluster/ranges.h"
#include "broker/cluster/records.h"
#include "common/mem.h"
#include "metadata/paths.h"
#include "metadata/records.h"

/* ---- brokers ---- */

/* Those that are registered; alone, there is no need to be.  Gives, or answers. */
static json_object *alive(struct job *j)
{
    json_object *all;
    enum err err = ask_children(j, PATH_BROKERS, &all);

    if (err) {
        job_fail(j, err, NULL);
        return NULL;
    }
    if (json_object_array_length(all) == 0)
        json_object_array_add(all, ask_self(j));
    return all;
}

void on_brokers(struct job *j)
{
    bool other = j->path.n > 0 && strcmp(j->path.at[0], j->admin->env.conf->cluster) != 0;

    if (other) {
        job_refuse(j, 404, "Cluster does not exist");
        return;
    }
    json_object *all = alive(j);
    if (all)
        job_json_reply(j, all);
}

/* Gives its web address as it is registered; NULL: it is not any more. */
static char *web_of(struct job *j, const char *id)
{
    char *key = mem_format(PATH_BROKERS "%s", id), *web = NULL;
    struct slice value = {0};
    struct broker_record r = {0};

    if (!ask_get(j, key, &value, NULL) && !broker_record_read(slice_view(value), &r)) {
        web = mem_string(*r.web ? r.web : r.web_tls);
        broker_record_drop(&r);
    }
    slice_drop(&value);
    mem_free(key);
    return web;
}

static json_object *leader(struct job *j, json_object *all)
{
    for (size_t i = 0; i < json_object_array_length(all); i++) {
        json_object *id = json_object_array_get_idx(all, i);
        char *web = web_of(j, json_object_get_string(id));
        const bool alone = json_object_array_length(all) == 1; /* and need not register */
        if (!web && !alone)
            continue;
        json_object *o = json_object_new_object();
        json_object_object_add(o, "brokerId", json_object_get(id));
        json_object_object_add(o, "serviceUrl",
                               json_object_new_string(web ? web : j->admin->env.self->web));
        mem_free(web);
        return o;
    }
    return NULL;
}

/* Nobody leads here: each broker claims what it is asked for.  Tools want one name that all agree
 * on: of those that live, the one whose id is the lowest. */
void on_leader(struct job *j)
{
    json_object *all = alive(j);

    if (!all)
        return;
    json_object *o = leader(j, all);
    if (o)
        job_json_reply(j, o);
    else
        job_refuse(j, 404, "no broker is alive");
    json_object_put(all);
}

/* ---- settings ---- */

static bool is_none(const struct config_key *k, const char *at)
{
    return k->type == CONFIG_PORT && *(const int64_t *)(const void *)at == CONFIG_NO_PORT;
}

static json_object *value_of(const struct config_key *k, const void *conf)
{
    const char *at = (const char *)conf + k->offset;
    char text[32];

    switch (k->type) {
    case CONFIG_BOOL:
        return json_object_new_string(*(const bool *)(const void *)at ? "true" : "false");
    case CONFIG_PORT:
    case CONFIG_INT:
        snprintf(text, sizeof(text), "%lld", (long long)*(const int64_t *)(const void *)at);
        return json_object_new_string(is_none(k, at) ? "" : text);
    case CONFIG_DOUBLE:
        snprintf(text, sizeof(text), "%g", *(const double *)(const void *)at);
        return json_object_new_string(text);
    case CONFIG_STRING:
        break;
    }
    return json_object_new_string(*(const char *const *)(const void *)at);
}

void on_settings(struct job *j)
{
    json_object *o = json_object_new_object();

    for (size_t i = 0; i < broker_config_table.n; i++) {
        const struct config_key *k = &broker_config_table.keys[i];
        if (k->class == CONFIG_RESTART || k->class == CONFIG_LIVE)
            json_object_object_add(o, k->name, value_of(k, j->admin->env.conf));
    }
    job_json_reply(j, o);
}

/* Names of settings that may be changed while it runs: none yet. */
void on_settings_live(struct job *j)
{
    json_object *list = json_object_new_array();

    for (size_t i = 0; i < broker_config_table.n; i++)
        if (broker_config_table.keys[i].class == CONFIG_LIVE)
            json_object_array_add(list, json_object_new_string(broker_config_table.keys[i].name));
    job_json_reply(j, list);
}

void on_settings_changed(struct job *j)
{
    job_json_reply(j, json_object_new_object());
}

/* ---- bookies ---- */

static json_object *bookies_in(json_object *names)
{
    json_object *list = json_object_new_array();

    for (size_t i = 0; i < json_object_array_length(names); i++) {
        const char *id = json_object_get_string(json_object_array_get_idx(names, i));
        if (strcmp(id, "readonly") == 0)
            continue;
        json_object *one = json_object_new_object();
        json_object_object_add(one, "bookieId", json_object_new_string(id));
        json_object_array_add(list, one);
    }
    return list;
}

void on_bookies(struct job *j)
{
    json_object *names, *o;
    enum err err = ask_children(j, PATH_BOOKIES, &names);

    if (err) {
        job_fail(j, err, NULL);
        return;
    }
    o = json_object_new_object();
    json_object_object_add(o, "bookies", bookies_in(names));
    json_object_put(names);
    job_json_reply(j, o);
}

void on_racks(struct job *j)
{
    job_json_reply(j, json_object_new_object());
}

void on_rack(struct job *j)
{
    job_refuse(j, 404, "Bookie rack placement configuration not found: %s", j->path.at[0]);
}

void on_rack_set(struct job *j)
{
    job_refuse(j, 501, "bookies are not chosen by rack yet");
}

/* ---- the bundle of a topic ---- */

static enum err read_ranges(struct job *j, const struct topic_name *n, struct ranges *out)
{
    struct slice value = {0};
    char key[META_KEY_MAX];

    TRY(path_local_policies(n->tenant, n->ns, key));
    enum err err = ask_get(j, key, &value, NULL);
    if (err == ERR_NOT_FOUND) {
        TRY(path_namespace(n->tenant, n->ns, key));
        err = ask_get(j, key, &value, NULL);
    }
    TRY(err);
    err = ranges_read(slice_view(value), out);
    slice_drop(&value);
    if (err == ERR_NOT_FOUND) {
        ranges_equal(out, RANGES_DEFAULT);
        err = ERR_OK;
    }
    return err;
}

void on_topic_bundle(struct job *j)
{
    struct subject s;
    struct ranges ranges;
    char range[RANGE_TEXT];

    if (!subject_of(j, &s))
        return;
    enum err err = read_ranges(j, &s.name, &ranges);
    if (err) {
        job_fail(j, err, NULL);
    } else {
        ranges_text(&ranges, ranges_find(&ranges, topic_hash(s.name.full)), range);
        ranges_drop(&ranges);
        job_text(j, 200, range);
    }
    subject_drop(&s);
}
