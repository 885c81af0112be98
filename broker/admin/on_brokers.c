/* The brokers of the cluster, and what this one is set to. */
#include <string.h>

#include "broker/admin/asks.h"
#include "broker/broker.h"
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

void on_setting_change(struct job *j)
{
    job_refuse(j, 412, "%s cannot be changed while it runs", j->path.at[0]);
}

/* Where tools that read metadata and ledgers themselves find them. */
void on_settings_inside(struct job *j)
{
    const char *url = j->admin->env.conf->metadata_url;
    char *bookkeeper = mem_format("metadata-store:%s", url);
    json_object *o = json_object_new_object();

    json_object_object_add(o, "metadataStoreUrl", json_object_new_string(url));
    json_object_object_add(o, "configurationMetadataStoreUrl", json_object_new_string(url));
    json_object_object_add(o, "ledgersRootPath", json_object_new_string(PATH_LEDGERS));
    json_object_object_add(o, "bookkeeperMetadataServiceUri", json_object_new_string(bookkeeper));
    json_object_object_add(o, "stateStorageServiceUrl", NULL);
    mem_free(bookkeeper);
    job_json_reply(j, o);
}
