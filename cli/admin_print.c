/* What a broker said, for people: a line a thing; or as it is. */
#include <stdio.h>
#include <string.h>

#include "cli/admin_verbs.h"
#include "common/mem.h"

static bool is_simple(json_object *o)
{
    return !json_object_is_type(o, json_type_object) && !json_object_is_type(o, json_type_array);
}

static const char *word(json_object *o)
{
    return o ? json_object_get_string(o) : "-";
}

static int widest(json_object *o)
{
    int width = 0;

    json_object_object_foreach(o, key, value)
    {
        (void)value;
        if ((int)strlen(key) > width)
            width = (int)strlen(key);
    }
    return width;
}

static void print(json_object *o, int indent);

static void print_object(json_object *o, int indent)
{
    int width = widest(o);

    json_object_object_foreach(o, key, value)
    {
        if (is_simple(value)) {
            printf("%*s%-*s  %s\n", indent, "", width, key, word(value));
        } else {
            printf("%*s%s\n", indent, "", key);
            print(value, indent + 2);
        }
    }
}

static void print(json_object *o, int indent)
{
    if (json_object_is_type(o, json_type_object)) {
        print_object(o, indent);
    } else if (json_object_is_type(o, json_type_array)) {
        for (size_t i = 0; i < json_object_array_length(o); i++)
            print(json_object_array_get_idx(o, i), indent);
    } else {
        printf("%*s%s\n", indent, "", word(o));
    }
}

void admin_print(const struct admin_call *c, const char *answer)
{
    bool is_json = *answer == '{' || *answer == '[';
    json_object *o = is_json ? json_tokener_parse(answer) : NULL;

    if (!o)
        puts(answer);
    else if (c->json)
        puts(json_object_to_json_string_ext(o, JSON_C_TO_STRING_PRETTY | JSON_C_TO_STRING_SPACED |
                                                   JSON_C_TO_STRING_NOSLASHESCAPE));
    else
        print(o, 0);
    json_object_put(o);
}
