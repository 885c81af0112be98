/* What its namespace says of a topic, at its load and whenever that changes. */
#include <string.h>

#include "broker/broker.h"
#include "broker/topic/kind.h"
#include "broker/topic/subscription.h"
#include "common/log.h"

static const struct topics_env *env_of(const struct topic *t)
{
    return topics_env_of(t->topics);
}

/* ---- kept ---- */

/* What most namespaces say: nothing. */
static const struct ns_policies quiet = {.exists = true};

const struct ns_policies *topic_policies_of(const struct topic *t)
{
    return t->policies ? t->policies : &quiet;
}

void topic_policies_keep(struct topic *t, const struct ns_policies *ns)
{
    mem_free(t->policies);
    t->policies = NULL;
    if (memcmp(ns, &quiet, sizeof(quiet)) == 0)
        return;
    t->policies = mem_new(struct ns_policies);
    *t->policies = *ns;
}

/* ---- limits ---- */

int64_t topic_limit(const struct topic *t, enum ns_limit which)
{
    const struct ns_policies *ns = topic_policies_of(t);
    const struct broker_conf *c = env_of(t)->conf;
    const int64_t settings[NS_LIMITS] = {
        [NS_PRODUCERS] = c->max_producers_per_topic,
        [NS_CONSUMERS] = c->max_consumers_per_topic,
        [NS_SUBSCRIPTIONS] = c->max_subscriptions_per_topic,
        [NS_SUBSCRIPTION_CONSUMERS] = c->max_consumers_per_subscription,
        [NS_UNACKED] = c->max_unacked_per_consumer,
        [NS_SUBSCRIPTION_UNACKED] = c->max_unacked_per_subscription};

    return ns->limit[which].set ? ns->limit[which].most : settings[which];
}

bool topic_is_over(const struct topic *t, enum ns_limit which, unsigned n)
{
    const int64_t most = topic_limit(t, which);

    return most > 0 && n >= most;
}

bool topic_takes_type(const struct topic *t, const char *subscription_type)
{
    const unsigned said = topic_policies_of(t)->types;
    const unsigned types = said ? said : ns_type_bits(env_of(t)->conf->subscription_types);

    return types & ns_type_bit(subscription_type, strlen(subscription_type));
}

bool topic_makes_subscriptions(const struct topic *t)
{
    const struct ns_policies *ns = topic_policies_of(t);

    return ns->subscription_creation_set ? ns->subscription_creation
                                         : env_of(t)->conf->auto_subscriptions;
}

bool topic_takes_subscription(const struct topic *t)
{
    unsigned without = 0; /* a cursor: it is being made, or needs none */

    list_each(&t->subscriptions, n)
    {
        const struct subscription *s = list_entry(n, struct subscription, node);
        without += !s->cursor && !s->passing;
    }
    return !topic_is_over(t, NS_SUBSCRIPTIONS,
                          without + (t->ml ? managed_ledger_n_cursors(t->ml) : 0));
}

/* ---- applied ---- */

void topic_policies_apply(struct topic *t)
{
    t->kind->configure(t);
    list_each(&t->subscriptions, n) subscription_limit(list_entry(n, struct subscription, node));
    if (t->policies_changed)
        topic_policies_changed(t);
}

struct asking {
    struct topic *topic;
    struct policies_ask ask;
};

static void came(struct policies_ask *a, enum err err, const struct policies_fact *f)
{
    struct asking *asking = container_of(a, struct asking, ask);
    struct topic *t = asking->topic;

    t->policies_asked = false;
    if (err)
        log_event(LOG_WARN, "topic.policies_unknown", F_STR("topic", t->name.full), F_ERR(err));
    else if (f->there)
        topic_policies_keep(t, &f->ns);
    mem_free(asking);
    if (topic_is_ready(t))
        topic_policies_apply(t);
    topic_lets_go(t);
}

void topic_policies_changed(struct topic *t)
{
    t->policies_changed = true;
    if (t->policies_asked || !topic_is_ready(t))
        return; /* then it is looked at again */
    struct asking *asking = mem_new(struct asking);

    t->policies_changed = false;
    t->policies_asked = true;
    topic_holds(t);
    asking->topic = t;
    asking->ask.done = came;
    policies_namespace(env_of(t)->policies, t->name.tenant, t->name.ns, &asking->ask);
}
