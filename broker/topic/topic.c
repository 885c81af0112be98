#include "broker/topic/topic.h"

#include <assert.h>

#include "broker/broker.h"
#include "broker/metrics.h"
#include "broker/topic/guest.h"
#include "broker/topic/kind.h"
#include "broker/topic/producer.h"
#include "broker/topic/subscription.h"
#include "common/flight.h"
#include "common/log.h"

static const struct topics_env *env_of(const struct topic *t)
{
    return topics_env_of(t->topics);
}

/* ---- the end of it ---- */

static void gone_if_free(struct topic *t)
{
    if (t->state == TOPIC_GONE && t->guests == 0 && t->under_way == 0)
        topics_gone(t->topics, t);
}

void topic_is_closed(struct topic *t, enum err err)
{
    for (struct list_node *n; (n = list_pop_front(&t->deletes));) {
        struct topic_delete_call *d = list_entry(n, struct topic_delete_call, node);
        d->done(d, err);
    }
    if (err)
        log_event(LOG_INFO, "topic.not_sealed", F_STR("topic", t->name.full), F_ERR(err));
    t->state = TOPIC_GONE;
    metric_add(&env_of(t)->metrics->topics, -1);
    gone_if_free(t);
}

/* Once nobody is inside: what guests still have under way ends with the managed ledger. */
static void close_if_empty(struct topic *t)
{
    if (t->state != TOPIC_LEAVING || t->inside > 0 || t->under_way > 0)
        return;
    t->state = TOPIC_CLOSING;
    t->kind->close(t, !list_empty(&t->deletes));
}

static void leave(struct topic *t)
{
    t->state = TOPIC_LEAVING;
    topic_producers_go(t, ERR_NOT_READY, "the topic is being unloaded");
    list_each(&t->subscriptions, s)
        subscription_send_away(list_entry(s, struct subscription, node));
    close_if_empty(t);
}

void topic_fail(struct topic *t, enum err why)
{
    if (t->state != TOPIC_READY)
        return;
    log_event(LOG_WARN, "topic.failed", F_STR("topic", t->name.full), F_ERR(why));
    leave(t);
}

void topic_close(struct topic *t)
{
    if (t->state == TOPIC_READY)
        leave(t);
    else if (t->state == TOPIC_LOADING)
        t->unwanted = true;
}

void topic_delete(struct topic *t, bool force, struct topic_delete_call *c)
{
    assert(topic_is_ready(t));
    if (t->inside > 0 && !force) {
        c->done(c, ERR_BUSY);
        return;
    }
    list_push_back(&t->deletes, &c->node);
    leave(t);
}

static void tell_terminated(struct topic *t)
{
    topic_producers_go(t, ERR_TERMINATED, "the topic was terminated");
    list_each(&t->subscriptions, s)
        subscription_check_end(list_entry(s, struct subscription, node));
}

static void terminated(struct ml_terminate *m, enum err err, struct position last)
{
    struct topic_terminate_call *c = container_of(m, struct topic_terminate_call, call);
    struct topic *t = c->topic;

    if (!err)
        tell_terminated(t);
    c->done(c, err, last);
    topic_lets_go(t);
}

void topic_terminate(struct topic *t, struct topic_terminate_call *c)
{
    assert(topic_is_ready(t));
    c->topic = t;
    c->call.done = terminated;
    topic_holds(t);
    managed_ledger_terminate(t->ml, &c->call);
}

void topic_guest_came(struct topic *t)
{
    t->guests++;
}

void topic_guest_admitted(struct topic *t)
{
    t->inside++;
}

void topic_guest_closed(struct topic *t)
{
    assert(t->inside > 0);
    t->inside--;
    close_if_empty(t);
}

void topic_guest_left(struct topic *t)
{
    assert(t->guests > 0);
    t->guests--;
    gone_if_free(t);
}

void topic_holds(struct topic *t)
{
    t->under_way++;
}

void topic_lets_go(struct topic *t)
{
    assert(t->under_way > 0);
    t->under_way--;
    close_if_empty(t);
    gone_if_free(t);
}

/* ---- loading ---- */

static void tell_waiting(struct topic *t, enum err err, const char *why, bool creators_too)
{
    struct list_node waiting;

    list_init(&waiting);
    list_each(&t->waiting, n)
    {
        if (creators_too || !list_entry(n, struct topics_call, node)->create) {
            list_remove(n);
            list_push_back(&waiting, n);
        }
    }
    for (struct list_node *n; (n = list_pop_front(&waiting));) {
        struct topics_call *c = list_entry(n, struct topics_call, node);
        c->done(c, err, err ? NULL : t, why);
    }
}

void topic_refuse_others(struct topic *t)
{
    tell_waiting(t, ERR_TOPIC_NOT_FOUND, "the topic does not exist", false);
}

void topic_is_not_loaded(struct topic *t, enum err err, const char *why)
{
    metric_add(&env_of(t)->metrics->topic_loads, -1);
    metric_add(&env_of(t)->metrics->topic_loads_failed, 1);
    log_event(LOG_INFO, "topic.not_loaded", F_STR("topic", t->name.full), F_ERR(err),
              F_STR("why", why));
    tell_waiting(t, err, why, true);
    t->state = TOPIC_GONE;
    gone_if_free(t);
}

bool topic_somebody_would_create(const struct topic *t)
{
    list_each(&t->waiting, n) if (list_entry(n, struct topics_call, node)->create) return true;
    return false;
}

void topic_is_loaded(struct topic *t)
{
    t->state = TOPIC_READY;
    topic_policies_apply(t);
    topic_producers_ready(t);
    metric_add(&env_of(t)->metrics->topic_loads, -1);
    metric_add(&env_of(t)->metrics->topics, 1);
    t->stats.ticked_us = loop_now(env_of(t)->home);
    histogram_note(&env_of(t)->metrics->load_us, t->stats.ticked_us - t->load_us);
    log_event(LOG_INFO, "topic.loaded", F_STR("topic", t->name.full));
    flight_note("topic.loaded", 0, 0);
    tell_waiting(t, ERR_OK, "", true);
    if (t->unwanted)
        topic_close(t);
}

static bool is_enabled(const struct topic *t)
{
    const struct broker_conf *conf = env_of(t)->conf;
    return t->name.persistent ? conf->persistent_topics : conf->non_persistent_topics;
}

/* What is asked before it is opened. */
struct asking {
    struct topic *topic;
    struct ownership_call owner;
    struct topic_facts_ask facts;
};

static void load_if_allowed(struct topic *t, const struct topic_facts *f)
{
    struct topic_creation broker = topics_creation(env_of(t)->conf);

    if (!is_enabled(t)) {
        topic_is_not_loaded(t, ERR_NOT_ALLOWED,
                            t->name.persistent ? "this broker serves no persistent topics"
                                               : "this broker serves no non-persistent topics");
        return;
    }
    t->is_partition = f->partitions > 0;
    topic_policies_keep(t, &f->ns);
    t->may_create = topic_facts_creation(f, &t->name, broker).allowed;
    t->create = t->create && t->may_create;
    t->kind->load(t);
}

/* Clients take TopicNotFound for a partition that the metadata does not have (clients.md 9). */
static void facts_came(struct topic_facts_ask *a, enum err err, const struct topic_facts *f)
{
    struct asking *asking = container_of(a, struct asking, facts);
    struct topic *t = asking->topic;

    if (err)
        topic_is_not_loaded(t, err, err_text(err));
    else if (t->unwanted)
        topic_is_not_loaded(t, ERR_NOT_READY, "the topic is being unloaded");
    else if (!f->ns_exists)
        topic_is_not_loaded(t, ERR_TOPIC_NOT_FOUND, "the namespace does not exist");
    else if (f->partitions > 0 && t->name.partition >= f->partitions)
        topic_is_not_loaded(t, ERR_TOPIC_NOT_FOUND, "the topic does not have so many partitions");
    else if (f->partitions > 0 && t->name.partition < 0)
        topic_is_not_loaded(t, ERR_NOT_ALLOWED, "the topic is partitioned: use its partitions");
    else
        load_if_allowed(t, f);
    mem_free(asking);
}

static void owner_came(struct ownership_call *c, enum err err, bool mine,
                       const struct broker_urls *where)
{
    struct asking *asking = container_of(c, struct asking, owner);
    struct topic *t = asking->topic;

    (void)where;
    if (err || !mine) {
        mem_free(asking);
        topic_is_not_loaded(t, ERR_NOT_READY,
                            "this broker does not serve the topic: look it up again");
        return;
    }
    asking->facts = (struct topic_facts_ask){.name = &t->name, .done = facts_came};
    topic_facts_ask(env_of(t)->policies, &asking->facts);
}

void topic_load(struct topic *t, bool create)
{
    struct asking *asking = mem_new(struct asking);

    t->create = create;
    metric_add(&env_of(t)->metrics->topic_loads, 1);
    t->load_us = loop_now(env_of(t)->home);
    asking->topic = t;
    asking->owner = (struct ownership_call){.home = env_of(t)->home, .done = owner_came};
    ownership_find(env_of(t)->ownership, t->name.full, &asking->owner);
}

struct topic *topic_new(struct topics *home, struct topic_name *name)
{
    struct topic *t = mem_pool_take(topics_pool(home, TOPICS_POOL_TOPIC, sizeof(*t)));

    t->topics = home;
    t->name = *name;
    t->kind = name->persistent ? &topic_stored : &topic_fleeting;
    t->state = TOPIC_LOADING;
    list_init(&t->waiting);
    list_init(&t->unloads);
    list_init(&t->deletes);
    list_init(&t->producers);
    list_init(&t->subscriptions);
    return t;
}

void topic_free(struct topic *t)
{
    for (struct list_node *n; (n = list_pop_front(&t->subscriptions));)
        subscription_free(list_entry(n, struct subscription, node));
    topic_stats_drop(&t->stats);
    topic_name_drop(&t->name);
    mem_free(t->policies);
    mem_pool_give(t);
}
