#include "tests/unit/metadata/ask.h"

#include <stdio.h>
#include <string.h>

#include "common/mem.h"
#include "metadata/wait.h"

struct asking {
    struct meta_wait wait;
    struct answered a;
};

struct slice slice_text(const char *s)
{
    return slice_copy(s, strlen(s));
}

static void look(struct meta_wait *w, const struct meta_reply *r)
{
    struct asking *k = container_of(w, struct asking, wait);
    size_t len = 0;

    k->a = (struct answered){.err = r->err,
                             .version = r->version,
                             .revision = r->revision,
                             .first = r->first,
                             .more = r->more};
    if (r->value.len < sizeof k->a.text && r->value.len)
        memcpy(k->a.text, r->value.base, r->value.len);
    for (size_t i = 0; i < r->count && len < sizeof k->a.text; i++) {
        const struct meta_item *it = &r->items[i];
        len +=
            (size_t)snprintf(k->a.text + len, sizeof k->a.text - len, "%s%s=%.*s@%d", i ? " " : "",
                             it->key, (int)it->value.len,
                             it->value.len ? (const char *)it->value.base : "", (int)it->version);
    }
}

static struct meta_call *begin(struct asking *k)
{
    meta_wait_begin(&k->wait);
    k->wait.look = look;
    return &k->wait.call;
}

static struct answered end(struct asking *k)
{
    enum err e = meta_wait_end(&k->wait);

    slice_drop(&k->wait.value);
    k->a.err = e;
    return k->a;
}

struct answered ask_get(struct metadata *m, const char *key)
{
    struct asking k;

    meta_get(m, key, begin(&k));
    return end(&k);
}

struct answered ask_put(struct metadata *m, const char *key, const char *value, int64_t expected)
{
    struct asking k;

    meta_put(m, key, slice_text(value), expected, begin(&k));
    return end(&k);
}

struct answered ask_remove(struct metadata *m, const char *key, int64_t expected)
{
    struct asking k;

    meta_remove(m, key, expected, begin(&k));
    return end(&k);
}

struct answered ask_range(struct metadata *m, const char *prefix, const char *after, size_t limit,
                          bool keys_only)
{
    struct asking k;

    meta_range(m, prefix, after, limit, keys_only, begin(&k));
    return end(&k);
}

struct answered ask_txn(struct metadata *m, const struct meta_op *ops, size_t n)
{
    struct asking k;

    meta_txn(m, ops, n, begin(&k));
    return end(&k);
}

struct answered ask_hold(struct metadata *m, const char *key, const char *value)
{
    struct asking k;

    meta_hold(m, key, slice_text(value), begin(&k));
    return end(&k);
}

struct answered ask_release(struct metadata *m, const char *key)
{
    struct asking k;

    meta_release(m, key, begin(&k));
    return end(&k);
}

struct answered ask_counter(struct metadata *m, const char *key, int64_t n)
{
    struct asking k;

    meta_counter(m, key, n, begin(&k));
    return end(&k);
}
