#include "broker/admin/routes.h"

#include <string.h>

#include "common/mem.h"

static size_t segment_len(const char *s)
{
    return strcspn(s, "/");
}

/* Pulsar's broker reads the names of topics and subscriptions as forms are read; what a namespace
 * is told it does not. */
static bool as_in_forms(const char *path)
{
    return strncmp(path, "/admin/v2/namespaces/", 21) != 0;
}

static bool capture(struct segments_of_path *out, const char *s, size_t len)
{
    if (len == 0 || out->n == SEGMENTS_MAX)
        return false;
    char *encoded = mem_string_n(s, len);
    for (char *c = encoded; out->forms && (c = strchr(c, '+'));)
        *c = ' ';
    char *decoded = http_decode(encoded);
    mem_free(encoded);
    if (decoded)
        out->at[out->n++] = decoded;
    return decoded != NULL;
}

/* Both at the start of a segment. */
static bool segment_matches(const char *pattern, size_t pattern_len, const char *path,
                            size_t path_len, struct segments_of_path *out)
{
    if (pattern_len == 2 && memcmp(pattern, "{}", 2) == 0)
        return capture(out, path, path_len);
    if (pattern_len > 2 && pattern[0] == '{')
        return pattern_len - 2 == path_len && memcmp(pattern + 1, path, path_len) == 0 &&
               capture(out, path, path_len);
    return pattern_len == path_len && memcmp(pattern, path, path_len) == 0;
}

static bool walk(const char *pattern, const char *path, struct segments_of_path *out)
{
    while (*pattern == '/' && *path == '/') {
        size_t want = segment_len(++pattern);
        size_t have = segment_len(++path);
        if (!segment_matches(pattern, want, path, have, out))
            return false;
        pattern += want;
        path += have;
    }
    return !*pattern && !*path;
}

bool route_matches(const char *pattern, const char *path, struct segments_of_path *out)
{
    *out = (struct segments_of_path){.forms = as_in_forms(path)};
    if (walk(pattern, path, out))
        return true;
    route_segments_drop(out);
    return false;
}

void route_segments_drop(struct segments_of_path *p)
{
    for (unsigned i = 0; i < p->n; i++)
        mem_free(p->at[i]);
    p->n = 0;
}
