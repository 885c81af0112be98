#include "broker/managed_ledger/pairs.h"

#include <string.h>

#include "common/mem.h"

static struct pair *find(const struct pairs *p, const char *name)
{
    for (unsigned i = 0; i < p->n; i++)
        if (strcmp(p->at[i].name, name) == 0)
            return &p->at[i];
    return NULL;
}

static void add(struct pairs *p, const char *name, const char *value)
{
    if (p->n == 0 || (p->n >= 4 && (p->n & (p->n - 1)) == 0)) /* room is a power of two */
        p->at = mem_resize(p->at, (p->n ? 2 * p->n : 4) * sizeof(p->at[0]));
    p->at[p->n++] = (struct pair){.name = mem_string(name), .value = mem_string(value)};
}

void pairs_set(struct pairs *p, const char *name, const char *value)
{
    struct pair *old = find(p, name);

    if (!old) {
        add(p, name, value);
        return;
    }
    mem_free(old->value);
    old->value = mem_string(value);
}

void pairs_copy(struct pairs *to, const struct pairs *from)
{
    for (unsigned i = 0; i < from->n; i++)
        add(to, from->at[i].name, from->at[i].value);
}

void pairs_drop(struct pairs *p)
{
    for (unsigned i = 0; i < p->n; i++) {
        mem_free(p->at[i].name);
        mem_free(p->at[i].value);
    }
    mem_free(p->at);
    *p = (struct pairs){0};
}

const char *pairs_find(const struct pairs *p, const char *name)
{
    const struct pair *found = find(p, name);

    return found ? found->value : NULL;
}

size_t pairs_bytes(const struct pairs *p)
{
    size_t bytes = 0;

    for (unsigned i = 0; i < p->n; i++)
        bytes += strlen(p->at[i].name) + strlen(p->at[i].value);
    return bytes;
}

bool pairs_fit(const struct pairs *p)
{
    return p->n <= PAIRS_MAX && pairs_bytes(p) <= PAIRS_BYTES_MAX;
}
