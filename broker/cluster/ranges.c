#include "broker/cluster/ranges.h"

#include <inttypes.h>
#include <json-c/json.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <zlib.h>

#include "common/mem.h"

uint32_t topic_hash(const char *full_name)
{
    return (uint32_t)crc32_z(crc32_z(0, NULL, 0), (const Bytef *)full_name, strlen(full_name));
}

/* ---- numbers ---- */

/* "0x" and one to eight digits. */
static bool hex_of(const char *s, size_t len, uint32_t *out)
{
    uint32_t v = 0;

    if (len < 3 || len > 10 || s[0] != '0' || s[1] != 'x')
        return false;
    for (size_t i = 2; i < len; i++) {
        const char *digits = "0123456789abcdef0123456789ABCDEF", *d = strchr(digits, s[i]);
        if (!d || !*d)
            return false;
        v = v << 4 | (uint32_t)((d - digits) & 15);
    }
    *out = v;
    return true;
}

/* ---- of JSON ---- */

static enum err take_bounds(json_object *list, struct ranges *out)
{
    size_t n = json_object_array_length(list);

    if (n < 2 || n > RANGES_MAX + 1)
        return ERR_MALFORMED;
    *out = (struct ranges){.n = (unsigned)n - 1, .bounds = mem_alloc(n * sizeof *out->bounds)};
    for (size_t i = 0; i < n; i++) {
        const char *text = json_object_get_string(json_object_array_get_idx(list, i));
        if (!text || !hex_of(text, strlen(text), &out->bounds[i]) ||
            (i > 0 && out->bounds[i] <= out->bounds[i - 1])) {
            ranges_drop(out);
            return ERR_MALFORMED;
        }
    }
    if (out->bounds[0] == 0 && out->bounds[out->n] == UINT32_MAX)
        return ERR_OK;
    ranges_drop(out);
    return ERR_MALFORMED;
}

static enum err take_number(json_object *bundles, struct ranges *out)
{
    json_object *number;

    if (!json_object_object_get_ex(bundles, "numBundles", &number))
        return ERR_NOT_FOUND;
    int64_t n = json_object_get_int64(number);
    if (n == 0)
        return ERR_NOT_FOUND;
    if (n < 0 || n > RANGES_MAX)
        return ERR_MALFORMED;
    ranges_equal(out, (unsigned)n);
    return ERR_OK;
}

static enum err take(json_object *o, struct ranges *out)
{
    json_object *bundles, *list;

    if (!json_object_is_type(o, json_type_object))
        return ERR_MALFORMED;
    if (!json_object_object_get_ex(o, "bundles", &bundles) || !bundles)
        return ERR_NOT_FOUND;
    if (!json_object_is_type(bundles, json_type_object))
        return ERR_MALFORMED;
    if (!json_object_object_get_ex(bundles, "boundaries", &list) || !list)
        return take_number(bundles, out);
    if (!json_object_is_type(list, json_type_array))
        return ERR_MALFORMED;
    return take_bounds(list, out);
}

enum err ranges_read(struct view json, struct ranges *out)
{
    *out = (struct ranges){0};
    if (json.len == 0 || json.len > INT_MAX)
        return ERR_MALFORMED;
    struct json_tokener *t = json_tokener_new();
    json_object *o = json_tokener_parse_ex(t, (const char *)json.base, (int)json.len);
    json_tokener_free(t);
    enum err err = take(o, out);
    json_object_put(o);
    return err;
}

/* ---- ranges ---- */

void ranges_equal(struct ranges *out, unsigned n)
{
    uint64_t share = (UINT64_C(1) << 32) / n;

    *out = (struct ranges){.n = n, .bounds = mem_alloc((n + 1) * sizeof *out->bounds)};
    for (unsigned i = 0; i < n; i++)
        out->bounds[i] = (uint32_t)(i * share);
    out->bounds[n] = UINT32_MAX;
}

void ranges_drop(struct ranges *r)
{
    mem_free(r->bounds);
    *r = (struct ranges){0};
}

unsigned ranges_find(const struct ranges *r, uint32_t hash)
{
    unsigned low = 0, high = r->n;

    while (high - low > 1) {
        unsigned mid = low + (high - low) / 2;
        if (hash < r->bounds[mid])
            high = mid;
        else
            low = mid;
    }
    return low;
}

void ranges_text(const struct ranges *r, unsigned i, char into[RANGE_TEXT])
{
    snprintf(into, RANGE_TEXT, "0x%08" PRIx32 "_0x%08" PRIx32, r->bounds[i], r->bounds[i + 1]);
}

bool ranges_have(const struct ranges *r, const char *range)
{
    char text[RANGE_TEXT];
    uint32_t low;

    if (!hex_of(range, strcspn(range, "_"), &low))
        return false;
    ranges_text(r, ranges_find(r, low), text);
    return strcmp(text, range) == 0;
}

/* ---- a topic in a bundle ---- */

static bool in_range(const char *range, uint32_t hash)
{
    size_t len = strcspn(range, "_");
    uint32_t low, high;

    if (!range[len] || !hex_of(range, len, &low) ||
        !hex_of(range + len + 1, strlen(range + len + 1), &high))
        return false;
    return hash >= low && (hash < high || high == UINT32_MAX);
}

bool bundle_has_topic(const char *bundle, const char *topic)
{
    const char *range = strrchr(bundle, '/'), *name = strstr(topic, "://");

    if (!range || !name)
        return false;
    size_t ns = (size_t)(range + 1 - bundle); /* "tenant/namespace/" */
    return strncmp(name + 3, bundle, ns) == 0 && in_range(range + 1, topic_hash(topic));
}
