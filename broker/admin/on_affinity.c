/* The groups of bookies that a namespace's ledgers are kept in: a part of its local policies. */
#include "broker/admin/asks.h"
#include "broker/admin/subject.h"
#include "metadata/paths.h"

#define FIELD  "bookieAffinityGroup"
#define FIRST  "bookkeeperAffinityGroupPrimary"
#define SECOND "bookkeeperAffinityGroupSecondary"

static enum err set_group(void *ctx, json_object *o)
{
    if (ctx)
        json_object_object_add(o, FIELD, json_object_get(ctx));
    else
        json_object_object_del(o, FIELD);
    return ERR_OK;
}

/* Its first local policies: they have its bundles too, which are looked for there from now on. */
static enum err set_first(struct job *j, const char *key, json_object *group)
{
    json_object *all, *bundles, *o;
    char policies[META_KEY_MAX];

    TRY(path_namespace(j->path.at[0], j->path.at[1], policies));
    TRY(ask_json(j, policies, &all, NULL));
    o = json_object_new_object();
    if (json_object_object_get_ex(all, "bundles", &bundles))
        json_object_object_add(o, "bundles", json_object_get(bundles));
    enum err err = set_group(group, o);
    if (!err)
        err = ask_put_json(j, key, o, META_ABSENT);
    json_object_put(o);
    json_object_put(all);
    return err;
}

static void set(struct job *j, json_object *group)
{
    char key[META_KEY_MAX];

    if (!subject_namespace(j, j->path.at[0], j->path.at[1]))
        return;
    enum err err = path_local_policies(j->path.at[0], j->path.at[1], key);
    if (!err)
        err = ask_rewrite(j, key, set_group, group);
    if (err == ERR_NOT_FOUND)
        err = group ? set_first(j, key, group) : ERR_OK;
    if (err == ERR_BAD_VERSION) /* somebody else has just made them */
        err = ask_rewrite(j, key, set_group, group);
    if (err)
        job_fail(j, err, NULL);
    else
        job_done(j);
}

static bool is_groups(json_object *o, bool needed)
{
    return json_object_is_type(o, json_type_string) ? !needed || json_object_get_string_len(o) > 0
                                                    : !needed && !o;
}

void on_affinity_set(struct job *j)
{
    json_object *o = job_json(j);

    if (j->status)
        return;
    if (!json_object_is_type(o, json_type_object) ||
        !is_groups(json_object_object_get(o, FIRST), true) ||
        !is_groups(json_object_object_get(o, SECOND), false))
        job_refuse(j, 412, FIRST " is a group of bookies, " SECOND " another or nothing");
    else
        set(j, o);
    json_object_put(o);
}

void on_affinity_remove(struct job *j)
{
    set(j, NULL);
}

void on_affinity(struct job *j)
{
    json_object *o = NULL;
    char key[META_KEY_MAX];

    if (!subject_namespace(j, j->path.at[0], j->path.at[1]))
        return;
    enum err err = path_local_policies(j->path.at[0], j->path.at[1], key);
    if (!err)
        err = ask_json(j, key, &o, NULL);
    if (err && err != ERR_NOT_FOUND) {
        job_fail(j, err, NULL);
        return;
    }
    json_object *group = o ? json_object_get(json_object_object_get(o, FIELD)) : NULL;
    json_object_put(o);
    job_json_reply(j, group);
}
