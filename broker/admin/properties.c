#include "broker/admin/properties.h"

#include <string.h>

static bool begins(const char *s, const char *with)
{
    return strncmp(s, with, strlen(with)) == 0;
}

/* ---- of a topic ---- */

bool properties_is_private(const char *key)
{
    return begins(key, "lgm.") || begins(key, "pulsar.") || strcmp(key, "index") == 0;
}

static bool are_texts(json_object *o, bool (*is_private)(const char *key))
{
    if (!json_object_is_type(o, json_type_object))
        return false;
    json_object_object_foreach(o, key, value)
    {
        if (!json_object_is_type(value, json_type_string) || is_private(key))
            return false;
    }
    return true;
}

bool properties_fine(struct job *j, json_object *o)
{
    if (are_texts(o, properties_is_private))
        return true;
    job_refuse(j, 400, "properties are an object of texts, and not the system's own");
    return false;
}

/* ---- of a subscription ---- */

static bool is_internal(const char *key)
{
    return begins(key, PAIRS_INTERNAL);
}

json_object *properties_shown(const struct pairs *p)
{
    json_object *o = json_object_new_object();

    for (unsigned i = 0; i < p->n; i++)
        if (!is_internal(p->at[i].name))
            json_object_object_add(o, p->at[i].name, json_object_new_string(p->at[i].value));
    return o;
}

static bool read_texts(json_object *o, struct pairs *out)
{
    if (!are_texts(o, is_internal) || json_object_object_length(o) > PAIRS_MAX)
        return false;
    json_object_object_foreach(o, key, value) pairs_set(out, key, json_object_get_string(value));
    return pairs_fit(out);
}

bool properties_read(struct job *j, json_object *o, struct pairs *out)
{
    if (read_texts(o, out))
        return true;
    pairs_drop(out);
    job_refuse(j, 400, "properties are an object of texts, 64 KiB at most, not the system's own");
    return false;
}
