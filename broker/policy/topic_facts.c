#include "broker/policy/topic_facts.h"

#include <assert.h>
#include <string.h>

static void say(struct topic_facts_ask *a, enum err err)
{
    a->done(a, err, &a->facts);
}

static void topic_read(struct meta_call *c, const struct meta_reply *r)
{
    struct topic_facts_ask *a = container_of(c, struct topic_facts_ask, call);

    a->facts.exists = r->err == ERR_OK;
    say(a, r->err == ERR_NOT_FOUND ? ERR_OK : r->err);
}

static void read_topic(struct topic_facts_ask *a)
{
    char key[META_KEY_MAX];
    char *stored = managed_ledger_name(a->name);
    enum err path = path_managed_ledger(stored, key);

    mem_free(stored);
    assert(path == ERR_OK); /* it came through topic_facts_name() */
    (void)path;
    a->call = (struct meta_call){.home = loop_mine(), .done = topic_read};
    meta_get(policies_metadata(a->policies), key, &a->call);
}

static void partitions_known(struct policies_ask *ask, enum err err, const struct policies_fact *f)
{
    struct topic_facts_ask *a = container_of(ask, struct topic_facts_ask, ask);

    if (err) {
        say(a, err);
        return;
    }
    a->facts.going = f->topic.deleted;
    a->facts.partitions = f->topic.deleted ? 0 : f->topic.partitions;
    if (a->name->persistent)
        read_topic(a);
    else
        say(a, ERR_OK);
}

static void namespace_known(struct policies_ask *ask, enum err err, const struct policies_fact *f)
{
    struct topic_facts_ask *a = container_of(ask, struct topic_facts_ask, ask);

    a->facts.ns = f->ns;
    a->facts.ns_exists = f->there && f->ns.exists;
    if (err || !a->facts.ns_exists) {
        say(a, err);
        return;
    }
    a->ask.done = partitions_known;
    policies_partitioned(a->policies, a->name, &a->ask);
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

void topic_facts_ask(struct policies *p, struct topic_facts_ask *a)
{
    a->policies = p;
    a->facts = (struct topic_facts){0};
    a->ask.done = namespace_known;
    policies_namespace(p, a->name->tenant, a->name->ns, &a->ask);
}

enum partitions_answer topic_facts_partitions(const struct topic_facts *f,
                                              const struct topic_name *name,
                                              struct topic_creation broker, bool may_create,
                                              int32_t *partitions)
{
    const struct topic_creation c = topic_facts_creation(f, name, broker);
    const bool absent = f->partitions == 0 && !f->exists;

    *partitions = name->partition < 0 ? f->partitions : 0; /* a partition is an ordinary topic */
    if (absent && may_create && c.allowed && c.partitions > 0) {
        *partitions = c.partitions;
        return PARTITIONS_MAKE;
    }
    if (absent && name->persistent && !(may_create && c.allowed))
        return PARTITIONS_ABSENT;
    return PARTITIONS_THERE;
}

struct topic_creation topic_facts_creation(const struct topic_facts *f,
                                           const struct topic_name *name,
                                           struct topic_creation broker)
{
    static const struct topic_creation none;

    if (strcmp(name->tenant, "pulsar") == 0 && strcmp(name->ns, "system") == 0)
        return (struct topic_creation){.allowed = true};
    if (f->going)
        return none;
    struct topic_creation c = f->ns.creation_set ? f->ns.creation : broker;
    if (name->partition >= 0) /* a partition is an ordinary topic */
        c.partitions = 0;
    return c;
}
