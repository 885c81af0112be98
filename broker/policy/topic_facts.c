#include "broker/policy/topic_facts.h"

#include <assert.h>

#include "metadata/records.h"

static struct topic_facts_ask *ask_of(struct meta_call *c)
{
    return container_of(c, struct topic_facts_ask, call);
}

static void say(struct topic_facts_ask *a, enum err err)
{
    a->done(a, err, &a->facts);
}

static void next(struct topic_facts_ask *a, enum err path, const char *key,
                 void (*done)(struct meta_call *c, const struct meta_reply *r))
{
    a->call = (struct meta_call){.home = a->home, .done = done};
    assert(path == ERR_OK);
    (void)path;
    meta_get(a->meta, key, &a->call);
}

static void topic_read(struct meta_call *c, const struct meta_reply *r)
{
    struct topic_facts_ask *a = ask_of(c);

    a->facts.exists = r->err == ERR_OK;
    say(a, r->err == ERR_NOT_FOUND ? ERR_OK : r->err);
}

static void partitions_read(struct meta_call *c, const struct meta_reply *r)
{
    struct topic_facts_ask *a = ask_of(c);
    char key[META_KEY_MAX];

    if (r->err && r->err != ERR_NOT_FOUND) {
        say(a, r->err);
        return;
    }
    if (r->err == ERR_OK) {
        enum err err = partitioned_record_read(slice_view(r->value), &a->facts.partitions);
        if (err) {
            say(a, err);
            return;
        }
    }
    char *stored = managed_ledger_name(a->name);
    enum err path = path_managed_ledger(stored, key);
    mem_free(stored);
    next(a, path, key, topic_read);
}

static void namespace_read(struct meta_call *c, const struct meta_reply *r)
{
    struct topic_facts_ask *a = ask_of(c);
    char key[META_KEY_MAX];

    a->facts.ns_exists = r->err == ERR_OK;
    if (r->err) {
        say(a, r->err == ERR_NOT_FOUND ? ERR_OK : r->err);
        return;
    }
    next(a, path_partitioned(a->name, key), key, partitions_read);
}

static enum err fits(const struct topic_name *n)
{
    char key[META_KEY_MAX];
    char *stored = managed_ledger_name(n);
    enum err err = path_managed_ledger(stored, key);

    mem_free(stored);
    TRY(err);
    TRY(path_partitioned(n, key));
    return path_namespace(n->tenant, n->ns, key);
}

enum err topic_facts_name(const char *text, struct topic_name *out)
{
    if (topic_name_parse(text, out))
        return ERR_INVALID_NAME;
    if (fits(out) == ERR_OK)
        return ERR_OK;
    topic_name_drop(out);
    return ERR_INVALID_NAME;
}

void topic_facts_ask(struct metadata *m, struct topic_facts_ask *a)
{
    char key[META_KEY_MAX];

    a->meta = m;
    a->facts = (struct topic_facts){0};
    next(a, path_namespace(a->name->tenant, a->name->ns, key), key, namespace_read);
}
