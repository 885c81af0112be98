/* JSON in what the bookie's HTTP is asked and answers. */
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>

#include "bookie/http_inside.h"
#include "common/mem.h"

enum { DEPTH = 8, STRING_MAX = 512 };

struct json_object *http_json(struct http_request *r)
{
    const struct view body = http_body(r);
    struct json_tokener *tokener = json_tokener_new_ex(DEPTH);
    struct json_object *o = json_tokener_parse_ex(tokener, (const char *)body.base, (int)body.len);
    json_tokener_free(tokener);
    return o;
}

struct json_object *http_json_member(struct json_object *o, const char *name, json_type type)
{
    struct json_object *found = NULL;
    const bool fits = json_object_is_type(o, json_type_object) &&
                      json_object_object_get_ex(o, name, &found) &&
                      json_object_is_type(found, type);
    return fits ? found : NULL;
}

/* BookKeeper's page writes them as texts, its code reads truth values; or the other way round. */
bool http_json_flag(struct json_object *o, const char *name)
{
    struct json_object *word = http_json_member(o, name, json_type_string);
    struct json_object *flag = http_json_member(o, name, json_type_boolean);
    return word ? strcasecmp(json_object_get_string(word), "true") == 0
                : flag && json_object_get_boolean(flag);
}

void http_reply_json(struct http_request *r, struct json_object *o)
{
    const char *text =
        json_object_to_json_string_ext(o, JSON_C_TO_STRING_PLAIN | JSON_C_TO_STRING_NOSLASHESCAPE);
    http_reply(r, 200, "application/json", view_of(text, strlen(text)));
    json_object_put(o);
}

void http_reply_json_text(struct http_request *r, char *json)
{
    http_reply(r, 200, "application/json", view_of(json, strlen(json)));
    mem_free(json);
}

void http_reply_json_string(struct http_request *r, const char *fmt, ...)
{
    char text[STRING_MAX];
    va_list args;
    va_start(args, fmt);
    vsnprintf(text, sizeof text, fmt, args);
    va_end(args);
    http_reply_json(r, json_object_new_string(text));
}
