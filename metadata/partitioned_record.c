#include <json-c/json.h>
#include <string.h>

#include "common/mem.h"
#include "metadata/metadata.h"
#include "metadata/records.h"

static enum err partitions_of(struct json_object *o, int32_t *out)
{
    struct json_object *n;

    *out = 0;
    if (!json_object_is_type(o, json_type_object))
        return ERR_MALFORMED;
    if (!json_object_object_get_ex(o, "partitions", &n))
        return ERR_OK;
    if (!json_object_is_type(n, json_type_int))
        return ERR_MALFORMED;
    int64_t value = json_object_get_int64(n);
    if (value < 0 || value > INT32_MAX)
        return ERR_MALFORMED;
    *out = (int32_t)value;
    return ERR_OK;
}

enum err partitioned_record_read(struct view value, int32_t *partitions)
{
    if (value.len == 0)
        return ERR_MALFORMED;
    if (value.len > META_VALUE_MAX)
        return ERR_TOO_BIG;
    struct json_tokener *t = json_tokener_new();
    json_tokener_set_flags(t, JSON_TOKENER_STRICT);
    struct json_object *o = json_tokener_parse_ex(t, (const char *)value.base, (int)value.len);
    enum err e = json_tokener_get_error(t) == json_tokener_success ? partitions_of(o, partitions)
                                                                   : ERR_MALFORMED;
    json_object_put(o);
    json_tokener_free(t);
    return e;
}

struct slice partitioned_record_write(int32_t partitions)
{
    char *text = mem_format("{\"partitions\":%d,\"deleted\":false,\"properties\":{}}", partitions);
    struct slice s = slice_copy(text, strlen(text));

    mem_free(text);
    return s;
}
