#include <json-c/json.h>
#include <string.h>

#include "common/mem.h"
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
    char *text = mem_string_n((const char *)value.base, value.len);
    struct json_object *o = json_tokener_parse(text);

    mem_free(text);
    if (!o)
        return ERR_MALFORMED;
    enum err e = partitions_of(o, partitions);
    json_object_put(o);
    return e;
}

struct slice partitioned_record_write(int32_t partitions)
{
    char *text = mem_format("{\"partitions\":%d,\"deleted\":false,\"properties\":{}}", partitions);
    struct slice s = slice_copy(text, strlen(text));

    mem_free(text);
    return s;
}
