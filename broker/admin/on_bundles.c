/* Bundles: the one that a topic is in, and those that a broker serves. */
#include <string.h>

#include "broker/admin/asks.h"
#include "broker/admin/subject.h"
#include "broker/broker.h"
#include "broker/cluster/ranges.h"
#include "broker/cluster/records.h"
#include "common/mem.h"
#include "metadata/paths.h"

/* Gives. */
static enum err read_ranges(struct job *j, const char *tenant, const char *ns, struct ranges *out)
{
    struct slice value = {0};
    char key[META_KEY_MAX];

    TRY(path_local_policies(tenant, ns, key));
    enum err err = ask_get(j, key, &value, NULL);
    if (err == ERR_NOT_FOUND) {
        TRY(path_namespace(tenant, ns, key));
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

/* ---- of a topic ---- */

void on_topic_bundle(struct job *j)
{
    struct subject s;
    struct ranges ranges;
    char range[RANGE_TEXT];

    if (!subject_of(j, &s))
        return;
    enum err err = read_ranges(j, s.name.tenant, s.name.ns, &ranges);
    if (err) {
        job_fail(j, err, NULL);
    } else {
        ranges_text(&ranges, ranges_find(&ranges, topic_hash(s.name.full)), range);
        ranges_drop(&ranges);
        job_text(j, 200, range);
    }
    subject_drop(&s);
}

/* ---- of a broker: {"tenant/namespace/range":{...}} ---- */

static void add_bundle(json_object *all, const char *bundle)
{
    json_object *o = json_object_new_object();

    json_object_object_add(o, "broker_assignment", json_object_new_string("shared"));
    json_object_object_add(o, "is_controlled", json_object_new_boolean(false));
    json_object_object_add(o, "is_active", json_object_new_boolean(true));
    json_object_object_add(all, bundle, o);
}

/* Of a broker that is alone: every one there is. */
static enum err all_of(struct job *j, const char *tenant, const char *ns, json_object *all)
{
    struct ranges ranges;
    char range[RANGE_TEXT];

    TRY(read_ranges(j, tenant, ns, &ranges));
    for (unsigned i = 0; i < ranges.n; i++) {
        ranges_text(&ranges, i, range);
        char *bundle = mem_format("%s/%s/%s", tenant, ns, range);
        add_bundle(all, bundle);
        mem_free(bundle);
    }
    ranges_drop(&ranges);
    return ERR_OK;
}

static enum err all_of_tenant(struct job *j, const char *tenant, json_object *all)
{
    char *prefix = mem_format(PATH_POLICIES "%s/", tenant);
    json_object *names = NULL;
    enum err err = ask_children(j, prefix, &names);

    mem_free(prefix);
    for (size_t i = 0; !err && i < json_object_array_length(names); i++)
        err = all_of(j, tenant, json_object_get_string(json_object_array_get_idx(names, i)), all);
    json_object_put(names);
    return err == ERR_NOT_FOUND ? ERR_OK : err; /* it went meanwhile */
}

static enum err all_there_are(struct job *j, json_object *all)
{
    json_object *tenants = NULL;

    TRY(ask_children(j, PATH_POLICIES, &tenants));
    enum err err = ERR_OK;
    for (size_t i = 0; !err && i < json_object_array_length(tenants); i++)
        err = all_of_tenant(j, json_object_get_string(json_object_array_get_idx(tenants, i)), all);
    json_object_put(tenants);
    return err;
}

static bool is_of(struct job *j, const char *key, const char *broker)
{
    struct slice value = {0};
    struct owner_record r;
    bool is = false;

    if (!ask_get(j, key, &value, NULL) && !owner_record_read(slice_view(value), &r)) {
        is = strcmp(r.owner, broker) == 0;
        owner_record_drop(&r);
    }
    slice_drop(&value);
    return is;
}

static enum err claimed_by(struct job *j, const char *broker, json_object *all)
{
    enum { PAGE = 500 };
    struct ask_page page = {.more = true};
    char *after = NULL;
    enum err err = ERR_OK;

    for (bool more = true; !err && more;) {
        err = ask_range(j, PATH_OWNED, after, PAGE, &page);
        mem_free(after);
        after = page.n ? mem_string(page.keys[page.n - 1]) : NULL;
        for (size_t i = 0; i < page.n; i++)
            if (is_of(j, page.keys[i], broker))
                add_bundle(all, page.keys[i] + strlen(PATH_OWNED));
        more = page.more && page.n > 0;
        ask_page_drop(&page);
    }
    mem_free(after);
    return err;
}

/* Whoever is asked: what they claim is in the metadata. */
void on_owned_bundles(struct job *j)
{
    const struct broker_conf *conf = j->admin->env.conf;
    json_object *all = json_object_new_object();
    enum err err;

    if (strcmp(j->path.at[0], conf->cluster) != 0) {
        job_refuse(j, 404, "Cluster does not exist");
        json_object_put(all);
        return;
    }
    err = conf->cluster_ownership ? claimed_by(j, j->path.at[1], all) : all_there_are(j, all);
    if (!err) {
        job_json_reply(j, all);
        return;
    }
    json_object_put(all);
    job_fail(j, err, NULL);
}
