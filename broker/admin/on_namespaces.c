/* Namespaces: made, listed, deleted, their bundles given to other brokers. */
#include <string.h>

#include "broker/admin/asks.h"
#include "broker/admin/errand.h"
#include "broker/admin/namespace.h"
#include "broker/admin/subject.h"
#include "broker/broker.h"
#include "broker/cluster/ownership.h"
#include "common/mem.h"
#include "metadata/init.h"
#include "metadata/names.h"
#include "metadata/paths.h"

enum { BUNDLES = 4, BUNDLES_MAX = 65536 };

static bool tenant_exists(struct job *j)
{
    char key[META_KEY_MAX];
    enum err err = path_tenant(j->path.at[0], key);

    if (!err)
        err = ask_get(j, key, NULL, NULL);
    if (err == ERR_NOT_FOUND)
        job_refuse(j, 404, "Tenant not found");
    else if (err)
        job_fail(j, err, NULL);
    return !err;
}

void on_namespaces(struct job *j)
{
    json_object *names, *full;

    if (!tenant_exists(j))
        return;
    char *prefix = mem_format(PATH_POLICIES "%s/", j->path.at[0]);
    enum err err = ask_children(j, prefix, &names);
    mem_free(prefix);
    if (err) {
        job_fail(j, err, NULL);
        return;
    }
    full = json_object_new_array();
    for (size_t i = 0; i < json_object_array_length(names); i++) {
        const char *ns = json_object_get_string(json_object_array_get_idx(names, i));
        char *name = mem_format("%s/%s", j->path.at[0], ns);
        json_object_array_add(full, json_object_new_string(name));
        mem_free(name);
    }
    json_object_put(names);
    job_json_reply(j, full);
}

/* Gives, or answers. */
static json_object *read_policies(struct job *j)
{
    char key[META_KEY_MAX];
    json_object *o;

    if (!subject_namespace(j, j->path.at[0], j->path.at[1]))
        return NULL;
    enum err err = path_namespace(j->path.at[0], j->path.at[1], key);
    if (!err)
        err = ask_json(j, key, &o, NULL);
    if (!err)
        return o;
    job_fail(j, err, NULL);
    return NULL;
}

void on_namespace(struct job *j)
{
    json_object *o = read_policies(j);

    if (o)
        job_json_reply(j, o);
}

/* Gives the kinds of a mode's topics; 0: there is no such mode. */
static unsigned topics_of_mode(const char *mode)
{
    if (!mode || strcmp(mode, "PERSISTENT") == 0)
        return TOPICS_STORED;
    if (strcmp(mode, "NON_PERSISTENT") == 0)
        return TOPICS_LOADED;
    return strcmp(mode, "ALL") == 0 ? TOPICS_STORED | TOPICS_LOADED : 0;
}

void on_namespace_topics(struct job *j)
{
    unsigned which = topics_of_mode(job_query(j, "mode"));

    if (which == 0)
        job_refuse(j, 400, "mode is PERSISTENT, NON_PERSISTENT or ALL");
    else if (subject_namespace(j, j->path.at[0], j->path.at[1]))
        namespace_list_topics(j, j->path.at[0], j->path.at[1], which);
}

/* ---- bundles ---- */

static json_object *bundles_in(json_object *o)
{
    json_object *b = json_object_object_get(o, "bundles");

    return json_object_is_type(b, json_type_object) ? json_object_get(b) : NULL;
}

/* Those of this cluster before those that the namespace was made with.  Gives, or answers. */
static json_object *read_bundles(struct job *j)
{
    json_object *o = read_policies(j), *local = NULL;
    char key[META_KEY_MAX];

    if (!o)
        return NULL;
    json_object *b = bundles_in(o);
    json_object_put(o);
    if (!path_local_policies(j->path.at[0], j->path.at[1], key) &&
        !ask_json(j, key, &local, NULL)) {
        json_object *mine = bundles_in(local);
        if (mine) {
            json_object_put(b);
            b = mine;
        }
        json_object_put(local);
    }
    return b ? b : cluster_bundles(BUNDLES);
}

void on_namespace_bundles(struct job *j)
{
    json_object *b = read_bundles(j);

    if (b)
        job_json_reply(j, b);
}

struct move_errand {
    struct errand errand;
    struct ownership_move move;
    enum err err;
};

static void free_move(struct errand *e)
{
    mem_free(container_of(e, struct move_errand, errand));
}

static void moved(struct ownership_move *m, enum err err)
{
    struct move_errand *w = container_of(m, struct move_errand, move);

    w->err = err;
    errand_end(&w->errand);
}

static enum err give_up(struct job *j, const char *bundle)
{
    struct move_errand *w = mem_new(struct move_errand);

    errand_begin(&w->errand, free_move);
    w->move = (struct ownership_move){.home = j->admin->env.home, .done = moved};
    ownership_move(j->admin->env.ownership, bundle, "", &w->move);
    enum err err = errand_wait(&w->errand) ? w->err : ERR_TIMEOUT;
    errand_drop(&w->errand);
    return err;
}

void on_namespace_unload(struct job *j)
{
    json_object *b = read_bundles(j), *at;
    enum err err = ERR_OK;

    if (!b)
        return;
    at = json_object_object_get(b, "boundaries");
    for (size_t i = 0; !err && i + 1 < json_object_array_length(at); i++) {
        char *bundle = mem_format("%s/%s/%s_%s", j->path.at[0], j->path.at[1],
                                  json_object_get_string(json_object_array_get_idx(at, i)),
                                  json_object_get_string(json_object_array_get_idx(at, i + 1)));
        err = give_up(j, bundle);
        mem_free(bundle);
    }
    json_object_put(b);
    if (err)
        job_fail(j, err, NULL);
    else
        job_done(j);
}

/* ---- making one ---- */

static void add_if_absent(json_object *o, const char *key, json_object *value)
{
    json_object *old = json_object_object_get(o, key);

    if (old)
        json_object_put(value);
    else
        json_object_object_add(o, key, value);
}

static json_object *list_of(const char *one)
{
    json_object *list = json_object_new_array();

    json_object_array_add(list, json_object_new_string(one));
    return list;
}

static json_object *nobody(void)
{
    json_object *o = json_object_new_object();

    json_object_object_add(o, "namespace_auth", json_object_new_object());
    json_object_object_add(o, "destination_auth", json_object_new_object());
    json_object_object_add(o, "subscription_auth_roles", json_object_new_object());
    return o;
}

/* 0: wrong, and answered. */
static uint32_t bundles_wanted(struct job *j, json_object *o)
{
    json_object *n = json_object_object_get(json_object_object_get(o, "bundles"), "numBundles");
    int64_t wanted = n ? json_object_get_int64(n) : BUNDLES;

    if (wanted == 0)
        wanted = BUNDLES;
    if (wanted >= 1 && wanted <= BUNDLES_MAX)
        return (uint32_t)wanted;
    job_refuse(j, 412, "Invalid number of bundles: it is from 1 to %d", BUNDLES_MAX);
    return 0;
}

/* Gives, or answers. */
static json_object *wanted_policies(struct job *j)
{
    json_object *o = job_json(j);

    if (j->status)
        return NULL;
    if (!o)
        o = json_object_new_object();
    uint32_t n = json_object_is_type(o, json_type_object) ? bundles_wanted(j, o) : 0;
    json_object *clusters = json_object_object_get(o, "replication_clusters");
    if (json_object_is_type(clusters, json_type_array) && json_object_array_length(clusters) == 0)
        json_object_object_del(o, "replication_clusters");
    if (n == 0 || !namespace_policies_fine(j, o)) {
        job_refuse(j, 400, "the body is no JSON object");
        json_object_put(o);
        return NULL;
    }
    json_object_object_add(o, "bundles", cluster_bundles(n));
    add_if_absent(o, "auth_policies", nobody());
    add_if_absent(o, "replication_clusters", list_of(j->admin->env.conf->cluster));
    json_object_object_add(o, "deleted", json_object_new_boolean(false));
    return o;
}

/* The policies come last: who finds a namespace finds all that belongs to it. */
static enum err create(struct job *j, json_object *o)
{
    char key[META_KEY_MAX];
    json_object *local;

    TRY(path_namespace(j->path.at[0], j->path.at[1], key));
    enum err err = ask_get(j, key, NULL, NULL);
    if (err != ERR_NOT_FOUND)
        return err ? err : ERR_EXISTS;
    TRY(path_local_policies(j->path.at[0], j->path.at[1], key));
    local = json_object_new_object();
    json_object_object_add(local, "bundles", json_object_get(json_object_object_get(o, "bundles")));
    err = ask_put_json(j, key, local, META_ABSENT);
    json_object_put(local);
    if (err && err != ERR_BAD_VERSION && err != ERR_EXISTS)
        return err;
    TRY(path_namespace(j->path.at[0], j->path.at[1], key));
    return ask_put_json(j, key, o, META_ABSENT);
}

void on_namespace_create(struct job *j)
{
    if (!name_is_entity(j->path.at[1])) {
        job_refuse(j, 412, "Namespace name is not valid");
        return;
    }
    json_object *o = tenant_exists(j) ? wanted_policies(j) : NULL;
    if (!o)
        return;
    enum err err = create(j, o);
    json_object_put(o);
    if (err == ERR_EXISTS || err == ERR_BAD_VERSION)
        job_refuse(j, 409, "Namespace already exists");
    else if (err)
        job_fail(j, err, NULL);
    else
        job_done(j);
}

/* ---- deleting one ---- */

static enum err mark(void *ctx, json_object *o)
{
    json_object_object_add(o, "deleted", json_object_new_boolean(*(bool *)ctx));
    return ERR_OK;
}

static enum err look_for(struct job *j, const char *prefix)
{
    struct ask_page page;
    enum err err = ask_range(j, prefix, NULL, 1, &page);

    if (!err && page.n > 0)
        err = ERR_EXISTS;
    ask_page_drop(&page);
    return err;
}

static enum err look_for_topics(struct job *j)
{
    char prefix[META_KEY_MAX];

    TRY(path_topics(j->path.at[0], j->path.at[1], prefix));
    TRY(look_for(j, prefix));
    TRY(path_partitioned_topics(j->path.at[0], j->path.at[1], prefix));
    TRY(look_for(j, prefix));
    TRY(path_fleeting_partitioned_topics(j->path.at[0], j->path.at[1], prefix));
    return look_for(j, prefix);
}

/* Marked first, so that no topic is made in it while it goes. */
static enum err delete (struct job *j, const char *key) {
    char local[META_KEY_MAX]; bool yes = true, no = false;

    TRY(ask_rewrite(j, key, mark, &yes)); enum err err = look_for_topics(j);
    if (err){enum err back = ask_rewrite(j, key, mark, &no); return back ? back : err;}
TRY(path_local_policies(j->path.at[0], j->path.at[1], local));
err = ask_remove(j, local, META_ANY);
if (err && err != ERR_NOT_FOUND)
    return err;
return ask_remove(j, key, META_ANY);
}

void on_namespace_delete(struct job *j)
{
    char key[META_KEY_MAX];

    if (job_flag(j, "force")) {
        job_refuse(j, 405, "Broker doesn't allow forced deletion of namespaces");
        return;
    }
    enum err err = path_namespace(j->path.at[0], j->path.at[1], key);
    if (!err)
        err = ask_get(j, key, NULL, NULL);
    if (!err)
        err = delete (j, key);
    if (err == ERR_EXISTS)
        job_refuse(j, 409, "Cannot delete non empty namespace");
    else if (err == ERR_NOT_FOUND)
        job_refuse(j, 404, "Namespace does not exist");
    else if (err)
        job_fail(j, err, NULL);
    else
        job_done(j);
}
