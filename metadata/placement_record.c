#include <json-c/json.h>
#include <string.h>

#include "common/mem.h"
#include "metadata/metadata.h"
#include "metadata/records.h"

/* {"policyClass":CLASS,"properties":{FIRST:"a,b",SECOND:"c"}}; upstream's names. */
#define CLASS  "org.apache.pulsar.bookie.rackawareness.IsolatedBookieEnsemblePlacementPolicy"
#define FIRST  "isolationBookieGroups"
#define SECOND "secondaryIsolationBookieGroups"

/* One that is absent or null is none. */
static char *text_of(struct json_object *o, const char *key)
{
    struct json_object *text = json_object_object_get(o, key);

    return mem_string(json_object_is_type(text, json_type_string) ? json_object_get_string(text)
                                                                  : "");
}

static enum err read_object(struct json_object *o, struct placement_record *out)
{
    struct json_object *properties;
    const char *policy = json_object_get_string(json_object_object_get(o, "policyClass"));

    if (!policy || strcmp(policy, CLASS) != 0)
        return ERR_NOT_FOUND;
    properties = json_object_object_get(o, "properties");
    if (!json_object_is_type(properties, json_type_object))
        return ERR_MALFORMED;
    out->groups = text_of(properties, FIRST);
    out->second_groups = text_of(properties, SECOND);
    return ERR_OK;
}

enum err placement_record_read(struct view value, struct placement_record *out)
{
    *out = (struct placement_record){0};
    if (value.len > META_VALUE_MAX)
        return ERR_TOO_BIG;
    struct json_tokener *t = json_tokener_new();
    json_tokener_set_flags(t, JSON_TOKENER_STRICT);
    struct json_object *o = json_tokener_parse_ex(t, (const char *)value.base, (int)value.len);
    enum err err = ERR_MALFORMED;
    if (json_tokener_get_error(t) == json_tokener_success &&
        json_object_is_type(o, json_type_object))
        err = read_object(o, out);
    json_object_put(o);
    json_tokener_free(t);
    return err;
}

void placement_record_drop(struct placement_record *r)
{
    mem_free(r->groups);
    mem_free(r->second_groups);
    *r = (struct placement_record){0};
}

struct slice placement_record_write(const char *groups, const char *second_groups)
{
    struct json_object *o = json_object_new_object(), *properties = json_object_new_object();

    json_object_object_add(properties, FIRST, json_object_new_string(groups));
    json_object_object_add(properties, SECOND, json_object_new_string(second_groups));
    json_object_object_add(o, "policyClass", json_object_new_string(CLASS));
    json_object_object_add(o, "properties", properties);
    const char *text = json_object_to_json_string_ext(o, JSON_C_TO_STRING_PLAIN);
    struct slice value = slice_copy(text, strlen(text));
    json_object_put(o);
    return value;
}
