#include "broker/policy/affinity.h"

#include <json-c/json.h>
#include <string.h>

#include "common/log.h"
#include "common/mem.h"
#include "metadata/metadata.h"
#include "metadata/paths.h"
#include "metadata/records.h"

#define MANAGED_LEDGER_TAG "pulsar/managed-ledger"
#define SYSTEM_NAMESPACE   "pulsar/system/"

struct affinity {
    struct ledger_placer placer;
    struct loop *home;
    struct metadata *meta;
    bool strict;
};

/* On its own: the affinity may be gone before the answer. */
struct asking {
    struct ledger_place *place;
    struct meta_call call;
    struct task task;
    bool strict;
};

/* ---- what local policies say ---- */

static const char *text_of(struct json_object *o, const char *key)
{
    struct json_object *text = json_object_object_get(o, key);

    return json_object_is_type(text, json_type_string) ? json_object_get_string(text) : "";
}

static struct slice rule_of(struct json_object *o)
{
    struct json_object *group = json_object_object_get(o, "bookieAffinityGroup");
    const char *first = text_of(group, "bookkeeperAffinityGroupPrimary");
    const char *second = text_of(group, "bookkeeperAffinityGroupSecondary");

    if (!first[0] && !second[0])
        return (struct slice){0};
    return placement_record_write(first, second);
}

enum err affinity_rule(struct view json, struct slice *out)
{
    struct json_tokener *t = json_tokener_new();
    struct json_object *o = NULL;
    enum err err = json.len > META_VALUE_MAX ? ERR_TOO_BIG : ERR_MALFORMED;

    *out = (struct slice){0};
    json_tokener_set_flags(t, JSON_TOKENER_STRICT);
    if (err == ERR_MALFORMED)
        o = json_tokener_parse_ex(t, (const char *)json.base, (int)json.len);
    if (json_object_is_type(o, json_type_object)) {
        *out = rule_of(o);
        err = ERR_OK;
    }
    json_object_put(o);
    json_tokener_free(t);
    return err;
}

/* ---- asking ---- */

static void tell(struct asking *k, enum err err, struct slice rule)
{
    struct ledger_place *place = k->place;

    if (!err && rule.len == 0 && k->strict)
        rule = placement_record_write("", "");
    mem_free(k);
    place->told(place, err, slice_view(rule));
    slice_drop(&rule);
}

static void came(struct meta_call *c, const struct meta_reply *r)
{
    struct asking *k = container_of(c, struct asking, call);
    struct slice rule = {0};
    enum err err = r->err;

    if (!err)
        err = affinity_rule(slice_view(r->value), &rule);
    if (err == ERR_MALFORMED || err == ERR_TOO_BIG)
        log_event(LOG_ERROR, "policies.unreadable", F_STR("key", PATH_LOCAL_POLICIES), F_ERR(err));
    tell(k, err == ERR_NOT_FOUND ? ERR_OK : err, rule);
}

static void nowhere(struct task *t)
{
    struct asking *k = container_of(t, struct asking, task);

    k->strict = false;
    tell(k, ERR_OK, (struct slice){0});
}

/* The key of its namespace's local policies; false: it has none. */
static bool key_of(struct view name, char key[META_KEY_MAX])
{
    const char *slash = name.len ? memchr(name.base, '/', name.len) : NULL;
    const char *begin = (const char *)name.base, *end = begin + name.len;
    const char *second = slash ? memchr(slash + 1, '/', (size_t)(end - slash) - 1) : NULL;
    const size_t prefix = strlen(PATH_LOCAL_POLICIES);

    if (!second || (size_t)(second - begin) >= META_KEY_MAX - prefix)
        return false;
    memcpy(key, PATH_LOCAL_POLICIES, prefix);
    memcpy(key + prefix, begin, (size_t)(second - begin));
    key[prefix + (size_t)(second - begin)] = '\0';
    return strncmp(begin, SYSTEM_NAMESPACE, strlen(SYSTEM_NAMESPACE)) != 0;
}

static void ask(struct ledger_placer *p, const struct ledger_tag *tags, unsigned n,
                struct ledger_place *place)
{
    struct affinity *a = container_of(p, struct affinity, placer);
    struct asking *k = mem_new(struct asking);
    struct view name = {0};
    char key[META_KEY_MAX];

    *k = (struct asking){.place = place,
                         .call = {.home = a->home, .done = came},
                         .task.run = nowhere,
                         .strict = a->strict};
    for (unsigned i = 0; i < n; i++)
        if (strcmp(tags[i].key, MANAGED_LEDGER_TAG) == 0)
            name = tags[i].value;
    if (key_of(name, key))
        meta_get(a->meta, key, &k->call);
    else
        loop_post(a->home, &k->task);
}

/* ---- life ---- */

struct affinity *affinity_new(struct loop *home, struct metadata *meta, bool strict)
{
    struct affinity *a = mem_new(struct affinity);

    *a = (struct affinity){.placer.ask = ask, .home = home, .meta = meta, .strict = strict};
    return a;
}

void affinity_drop(struct affinity **a)
{
    mem_free(*a);
    *a = NULL;
}

struct ledger_placer *affinity_placer(struct affinity *a)
{
    return &a->placer;
}
