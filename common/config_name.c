#include "common/config_name.h"

#include <ctype.h>
#include <stdbool.h>
#include <string.h>

#define NAME_MAX_BYTES 96 /* longer names are like no other */

static const struct config_key *find_key(const struct config_table *t, const char *name)
{
    for (size_t i = 0; i < t->n; i++)
        if (strcmp(t->keys[i].name, name) == 0)
            return &t->keys[i];
    return NULL;
}

const struct config_key *config_name_find(const struct config_table *t, const char *name)
{
    const struct config_key *k = find_key(t, name);
    for (const char *const *pair = t->aliases; !k && pair && pair[0]; pair += 2)
        if (strcmp(pair[0], name) == 0)
            k = find_key(t, pair[1]);
    return k;
}

static unsigned least(unsigned a, unsigned b)
{
    return a < b ? a : b;
}

static bool differ(char a, char b)
{
    return tolower((unsigned char)a) != tolower((unsigned char)b);
}

/* Levenshtein's distance, case aside, by one row at a time. */
static unsigned distance(const char *a, const char *b)
{
    unsigned row[NAME_MAX_BYTES + 1];
    const unsigned len = (unsigned)strnlen(b, NAME_MAX_BYTES);
    for (unsigned j = 0; j <= len; j++)
        row[j] = j;
    for (unsigned i = 1; a[i - 1]; i++) {
        unsigned diagonal = row[0];
        row[0] = i;
        for (unsigned j = 1; j <= len; j++) {
            const unsigned above = row[j];
            row[j] = least(least(above, row[j - 1]) + 1, diagonal + differ(a[i - 1], b[j - 1]));
            diagonal = above;
        }
    }
    return row[len];
}

/* A suggestion that shares less than half with what was written helps nobody. */
const char *config_name_nearest(const struct config_table *t, const char *name)
{
    const char *best = NULL;
    const size_t len = strlen(name);
    if (len > NAME_MAX_BYTES)
        return NULL;
    unsigned best_distance = (unsigned)len / 2 + 1;
    for (size_t i = 0; i < t->n; i++) {
        const unsigned d = distance(name, t->keys[i].name);
        if (d < best_distance) {
            best_distance = d;
            best = t->keys[i].name;
        }
    }
    return best;
}
