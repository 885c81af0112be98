/* Clusters: what each is reached at. */
#include <stdio.h>
#include <string.h>

#include "broker/admin/asks.h"
#include "metadata/names.h"
#include "metadata/paths.h"

static bool name(struct job *j, char key[META_KEY_MAX])
{
    if (!path_cluster(j->path.at[0], key))
        return true;
    job_refuse(j, 412, "Cluster name is not valid");
    return false;
}

static void fail(struct job *j, enum err err)
{
    if (err == ERR_NOT_FOUND)
        job_refuse(j, 404, "Cluster does not exist");
    else if (err)
        job_fail(j, err, NULL);
    else
        job_done(j);
}

/* Gives, or answers. */
static json_object *body(struct job *j)
{
    json_object *o = job_json(j);

    if (json_object_is_type(o, json_type_object))
        return o;
    json_object_put(o);
    job_refuse(j, 400, "a cluster's data is a JSON object");
    return NULL;
}

void on_clusters(struct job *j)
{
    json_object *all;
    enum err err = ask_children(j, PATH_CLUSTERS, &all);

    if (err)
        job_fail(j, err, NULL);
    else
        job_json_reply(j, all);
}

void on_cluster(struct job *j)
{
    char key[META_KEY_MAX];
    json_object *o;

    if (!name(j, key))
        return;
    enum err err = ask_json(j, key, &o, NULL);
    if (err)
        fail(j, err);
    else
        job_json_reply(j, o);
}

void on_cluster_create(struct job *j)
{
    char key[META_KEY_MAX];
    json_object *o = name(j, key) ? body(j) : NULL;

    if (!o)
        return;
    enum err err = ask_put_json(j, key, o, META_ABSENT);
    json_object_put(o);
    if (err == ERR_BAD_VERSION || err == ERR_EXISTS)
        job_refuse(j, 409, "Cluster already exists");
    else
        fail(j, err);
}

static enum err replace_fields(void *ctx, json_object *o)
{
    json_object_object_foreach((json_object *)ctx, key, value)
        json_object_object_add(o, key, json_object_get(value));
    return ERR_OK;
}

void on_cluster_update(struct job *j)
{
    char key[META_KEY_MAX];
    json_object *o = name(j, key) ? body(j) : NULL;

    if (!o)
        return;
    fail(j, ask_rewrite(j, key, replace_fields, o));
    json_object_put(o);
}

/* ---- deleting ---- */

static bool lists(json_object *list, const char *cluster)
{
    size_t n = json_object_is_type(list, json_type_array) ? json_object_array_length(list) : 0;

    for (size_t i = 0; i < n; i++)
        if (strcmp(json_object_get_string(json_object_array_get_idx(list, i)), cluster) == 0)
            return true;
    return false;
}

/* ERR_BUSY: this tenant or namespace names it. */
static enum err look_at(struct job *j, const char *key)
{
    json_object *o;
    enum err err = ask_json(j, key, &o, NULL);

    if (err)
        return err == ERR_NOT_FOUND ? ERR_OK : err;
    if (lists(json_object_object_get(o, "replication_clusters"), j->path.at[0]) ||
        lists(json_object_object_get(o, "allowedClusters"), j->path.at[0]))
        err = ERR_BUSY;
    json_object_put(o);
    return err;
}

static enum err look_for_users(struct job *j)
{
    struct ask_page page = {0};
    char after[META_KEY_MAX] = PATH_POLICIES;
    enum err err = ERR_OK;
    bool more = true;

    while (more && !err) {
        TRY(ask_range(j, PATH_POLICIES, after, 500, &page));
        for (size_t i = 0; i < page.n && !err; i++)
            err = look_at(j, page.keys[i]);
        more = page.more && page.n > 0;
        if (more)
            snprintf(after, sizeof(after), "%s", page.keys[page.n - 1]);
        ask_page_drop(&page);
    }
    return err;
}

void on_cluster_delete(struct job *j)
{
    char key[META_KEY_MAX];

    if (!name(j, key))
        return;
    enum err err = ask_get(j, key, NULL, NULL);
    if (!err)
        err = look_for_users(j);
    if (!err)
        err = ask_remove(j, key, META_ANY);
    if (err == ERR_BUSY)
        job_refuse(j, 412, "Cluster not empty: tenants or namespaces name it");
    else
        fail(j, err);
}
