#include "broker/cluster/mirror.h"

#include <string.h>

void mirror_init(struct mirror *m, void (*told)(void *ctx, const struct mirror_fact *f), void *ctx)
{
    *m = (struct mirror){.told = told, .ctx = ctx};
}

static struct mirror_key *find(struct mirror *m, const char *key)
{
    struct mirror_key *k;

    HASH_FIND_STR(m->by_name, key, k);
    return k;
}

static struct mirror_key *find_or_add(struct mirror *m, const char *key)
{
    struct mirror_key *k = find(m, key);

    if (k)
        return k;
    k = mem_new(struct mirror_key);
    k->key = mem_string(key);
    HASH_ADD_KEYPTR(hh, m->by_name, k->key, strlen(k->key), k);
    return k;
}

static void forget(struct mirror *m, struct mirror_key *k)
{
    HASH_DEL(m->by_name, k);
    mem_free(k->key);
    mem_free(k);
}

/* A key that is gone is forgotten once no list and no late change can bring it back. */
static void forget_if_gone(struct mirror *m, struct mirror_key *k)
{
    if (!k->there && m->complete && k->revision <= m->watched)
        forget(m, k);
}

static struct mirror_key *apply(struct mirror *m, const struct mirror_fact *f)
{
    struct mirror_key *k = find_or_add(m, f->key);

    if (f->revision <= k->revision)
        return k;
    bool was = k->there;
    k->revision = f->revision;
    k->there = f->version >= 0;
    if (was || k->there) {
        struct mirror_fact fact = *f;
        fact.tag = &k->tag;
        m->told(m->ctx, &fact);
    }
    return k;
}

void mirror_change(struct mirror *m, const struct mirror_fact *f)
{
    if (f->revision > m->watched)
        m->watched = f->revision;
    forget_if_gone(m, apply(m, f));
}

void mirror_learn(struct mirror *m, const struct mirror_fact *f)
{
    if (!m->complete || f->revision > m->watched)
        apply(m, f);
}

void mirror_list(struct mirror *m)
{
    struct mirror_key *k, *next;

    m->complete = m->listing_any = false;
    HASH_ITER(hh, m->by_name, k, next)
    k->listed = false;
}

void mirror_page(struct mirror *m, uint64_t revision)
{
    if (!m->listing_any)
        m->began = revision;
    m->listing_any = true;
}

void mirror_listed(struct mirror *m, const struct mirror_fact *f)
{
    apply(m, f)->listed = true;
}

/* What the list does not show was gone when it was read, unless it came later. */
void mirror_list_end(struct mirror *m)
{
    struct mirror_key *k, *next;

    m->complete = true;
    HASH_ITER(hh, m->by_name, k, next)
    {
        if (!k->listed && k->there)
            apply(m, &(struct mirror_fact){.key = k->key, .version = -1, .revision = m->began});
        forget_if_gone(m, k);
    }
}

void mirror_drop(struct mirror *m)
{
    struct mirror_key *k, *next;

    HASH_ITER(hh, m->by_name, k, next)
    forget(m, k);
}
