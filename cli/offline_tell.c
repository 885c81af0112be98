#include "cli/offline_tell.h"

#include <inttypes.h>
#include <json-c/json.h>
#include <stdio.h>

#include "common/mem.h"

static char *hex_of(struct view v)
{
    char *text = mem_alloc(v.len * 2 + 1);
    for (size_t i = 0; i < v.len; i++)
        snprintf(text + i * 2, 3, "%02x", v.base[i]);
    text[v.len * 2] = '\0';
    return text;
}

static struct json_object *json_of(const struct fact *f)
{
    switch (f->kind) {
    case FACT_STR:
        return json_object_new_string(f->str ? f->str : "");
    case FACT_I64:
        return json_object_new_int64(f->i64);
    case FACT_U64:
        return json_object_new_uint64(f->u64);
    case FACT_BOOL:
        return json_object_new_boolean(f->u64 != 0);
    case FACT_HEX:
        break;
    }
    char *hex = hex_of(f->bytes);
    struct json_object *o = json_object_new_string(hex);
    mem_free(hex);
    return o;
}

static void print_text(const struct fact *f)
{
    switch (f->kind) {
    case FACT_STR:
        printf(" %s=%s", f->key, f->str ? f->str : "");
        return;
    case FACT_I64:
        printf(" %s=%" PRId64, f->key, f->i64);
        return;
    case FACT_U64:
        printf(" %s=%" PRIu64, f->key, f->u64);
        return;
    case FACT_BOOL:
        printf(" %s=%s", f->key, f->u64 ? "yes" : "no");
        return;
    case FACT_HEX:
        break;
    }
    char *hex = hex_of(f->bytes);
    printf(" %s=%s", f->key, hex);
    mem_free(hex);
}

void offline_say(bool json, const char *what, const struct fact *facts)
{
    if (!json) {
        fputs(what, stdout);
        for (const struct fact *f = facts; f->key; f++)
            print_text(f);
        putchar('\n');
        return;
    }
    struct json_object *o = json_object_new_object();
    json_object_object_add(o, "what", json_object_new_string(what));
    for (const struct fact *f = facts; f->key; f++)
        json_object_object_add(o, f->key, json_of(f));
    puts(
        json_object_to_json_string_ext(o, JSON_C_TO_STRING_PLAIN | JSON_C_TO_STRING_NOSLASHESCAPE));
    json_object_put(o);
}
