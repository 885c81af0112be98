/* Tenants: who administers them, and in which clusters they may be. */
#include <string.h>

#include "broker/admin/asks.h"
#include "common/mem.h"
#include "metadata/paths.h"

static bool name(struct job *j, char key[META_KEY_MAX])
{
    if (!path_tenant(j->path.at[0], key))
        return true;
    job_refuse(j, 412, "Tenant name is not valid");
    return false;
}

static void fail(struct job *j, enum err err)
{
    if (err == ERR_NOT_FOUND)
        job_refuse(j, 404, "Tenant does not exist");
    else if (err)
        job_fail(j, err, NULL);
    else
        job_done(j);
}

void on_tenants(struct job *j)
{
    json_object *all;
    enum err err = ask_children(j, PATH_POLICIES, &all);

    if (err)
        job_fail(j, err, NULL);
    else
        job_json_reply(j, all);
}

void on_tenant(struct job *j)
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

/* ---- writing ---- */

static enum err known(struct job *j, json_object *clusters)
{
    size_t n = json_object_array_length(clusters);
    char key[META_KEY_MAX];

    for (size_t i = 0; i < n; i++) {
        TRY(path_cluster(json_object_get_string(json_object_array_get_idx(clusters, i)), key));
        TRY(ask_get(j, key, NULL, NULL));
    }
    return ERR_OK;
}

static bool check(struct job *j, json_object *o)
{
    json_object *clusters = json_object_object_get(o, "allowedClusters");

    if (!json_object_is_type(clusters, json_type_array) ||
        json_object_array_length(clusters) == 0) {
        job_refuse(j, 412, "Clusters can not be empty");
        return false;
    }
    enum err err = known(j, clusters);
    if (err && err_class(err) == CLASS_RETRY)
        job_fail(j, err, NULL);
    else if (err)
        job_refuse(j, 412, "Clusters do not exist");
    return !err;
}

/* Gives, or answers. */
static json_object *body(struct job *j)
{
    json_object *o = job_json(j);

    if (!json_object_is_type(o, json_type_object)) {
        json_object_put(o);
        job_refuse(j, 412, "a tenant is a JSON object with adminRoles and allowedClusters");
        return NULL;
    }
    if (!json_object_object_get(o, "adminRoles"))
        json_object_object_add(o, "adminRoles", json_object_new_array());
    if (check(j, o))
        return o;
    json_object_put(o);
    return NULL;
}

void on_tenant_create(struct job *j)
{
    char key[META_KEY_MAX];
    json_object *o = name(j, key) ? body(j) : NULL;

    if (!o)
        return;
    enum err err = ask_put_json(j, key, o, META_ABSENT);
    json_object_put(o);
    if (err == ERR_BAD_VERSION || err == ERR_EXISTS)
        job_refuse(j, 409, "Tenant already exist");
    else
        fail(j, err);
}

static enum err replace_fields(void *ctx, json_object *o)
{
    json_object_object_foreach((json_object *)ctx, key, value)
        json_object_object_add(o, key, json_object_get(value));
    return ERR_OK;
}

void on_tenant_update(struct job *j)
{
    char key[META_KEY_MAX];
    json_object *o = name(j, key) ? body(j) : NULL;

    if (!o)
        return;
    fail(j, ask_rewrite(j, key, replace_fields, o));
    json_object_put(o);
}

static bool is_empty(struct job *j, const char *key)
{
    struct ask_page page;
    char *below = mem_format("%s/", key);
    enum err err = ask_range(j, below, NULL, 1, &page);

    mem_free(below);
    if (err)
        job_fail(j, err, NULL);
    else if (page.n > 0)
        job_refuse(j, 409, "The tenant still has active namespaces");
    ask_page_drop(&page);
    return !j->status;
}

void on_tenant_delete(struct job *j)
{
    char key[META_KEY_MAX];

    if (!name(j, key))
        return;
    if (job_flag(j, "force")) {
        job_refuse(j, 405, "Broker doesn't allow forced deletion of tenants");
        return;
    }
    enum err err = ask_get(j, key, NULL, NULL);
    if (err)
        fail(j, err);
    else if (is_empty(j, key))
        fail(j, ask_remove(j, key, META_ANY));
}
