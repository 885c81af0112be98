#include <json-c/json.h>
#include <string.h>

#include "common/mem.h"
#include "metadata/metadata.h"
#include "metadata/records.h"

/* One of a group: {"rack":"/region/rack","hostname":...}; one without a rack is just in the group.
 */
static void each_bookie(struct json_object *group, const char *name,
                        void (*each)(void *ctx, const struct bookie_place *p), void *ctx)
{
    struct json_object *text;

    json_object_object_foreach(group, id, o)
    {
        struct bookie_place p = {.group = name, .bookie = id, .rack = ""};
        if (!json_object_is_type(o, json_type_object))
            continue;
        if (json_object_object_get_ex(o, "rack", &text) &&
            json_object_is_type(text, json_type_string))
            p.rack = json_object_get_string(text);
        each(ctx, &p);
    }
}

static enum err each_group(struct json_object *o,
                           void (*each)(void *ctx, const struct bookie_place *p), void *ctx)
{
    if (!json_object_is_type(o, json_type_object))
        return ERR_MALFORMED;
    json_object_object_foreach(o, name, group)
    {
        if (json_object_is_type(group, json_type_object))
            each_bookie(group, name, each, ctx);
    }
    return ERR_OK;
}

enum err bookie_racks_read(struct view value, void (*each)(void *ctx, const struct bookie_place *p),
                           void *ctx)
{
    if (value.len == 0)
        return ERR_OK;
    if (value.len > META_VALUE_MAX)
        return ERR_TOO_BIG;
    struct json_tokener *t = json_tokener_new();
    json_tokener_set_flags(t, JSON_TOKENER_STRICT);
    struct json_object *o = json_tokener_parse_ex(t, (const char *)value.base, (int)value.len);
    enum err e = json_tokener_get_error(t) == json_tokener_success ? each_group(o, each, ctx)
                                                                   : ERR_MALFORMED;
    json_object_put(o);
    json_tokener_free(t);
    return e;
}
