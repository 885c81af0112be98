/* A topic that is stored: a managed ledger, and cursors that read it. */
#include <stdio.h>

#include "broker/broker.h"
#include "broker/topic/kind.h"
#include "broker/topic/subscription.h"

enum { MS_A_MINUTE = 60000, MB = 1024 * 1024 };

static const struct topics_env *env_of(const struct topic *t)
{
    return topics_env_of(t->topics);
}

/* ---- its managed ledger ---- */

static void grew(struct ml_owner *o)
{
    struct topic *t = container_of(o, struct topic, owner);

    if (!t->ml)
        return; /* it is being closed */
    list_each(&t->subscriptions, n) subscription_grew(list_entry(n, struct subscription, node));
}

static void failed(struct ml_owner *o, enum err err)
{
    topic_fail(container_of(o, struct topic, owner), err);
}

static void load(struct topic *t);

static void opened(struct ml_call *c, enum err err, struct managed_ledger *m)
{
    struct topic *t = container_of(c, struct topic, ml_call);

    if (err == ERR_TOPIC_NOT_FOUND && !t->create && t->may_create &&
        topic_somebody_would_create(t)) {
        t->create = true;
        topic_refuse_others(t);
        load(t);
        return;
    }
    if (err) {
        topic_is_not_loaded(
            t, err, err == ERR_TOPIC_NOT_FOUND ? "the topic does not exist" : err_text(err));
        return;
    }
    t->ml = m;
    topic_is_loaded(t);
}

static void load(struct topic *t)
{
    char *stored = managed_ledger_name(&t->name);

    t->ml_call.done = opened;
    t->owner = (struct ml_owner){.grew = grew, .failed = failed};
    managed_ledger_open(env_of(t)->ledgers, stored, t->create, &t->owner, &t->ml_call);
    mem_free(stored);
}

static void closed(struct ml_call *c, enum err err, struct managed_ledger *m)
{
    (void)m;
    topic_is_closed(container_of(c, struct topic, ml_call), err);
}

static void close_it(struct topic *t, bool delete)
{
    t->ml_call.done = closed;
    if (delete)
        managed_ledger_delete(&t->ml, &t->ml_call);
    else
        managed_ledger_close(&t->ml, &t->ml_call);
}

static const char *state(const struct topic *t)
{
    return managed_ledger_state(t->ml);
}

static void idle(struct topic *t)
{
    (void)t; /* it costs little to keep, and time to load */
}

/* ---- what its namespace says ---- */

/* -1: no end; and what would not fit is none either. */
static int64_t scaled(int64_t n, int64_t by)
{
    return n < 0 || n > INT64_MAX / by ? -1 : n * by;
}

static struct ml_policy policy_of(const struct broker_conf *c, const struct ns_policies *ns)
{
    int64_t minutes = ns->retention_set ? ns->retention_minutes : c->retention_minutes;
    int64_t mb = ns->retention_set ? ns->retention_mb : c->retention_mb;
    struct ml_policy p = {
        .retention_ms = scaled(minutes, MS_A_MINUTE),
        .retention_bytes = scaled(mb, MB),
        .quorum = {.ensemble = (unsigned)c->ensemble,
                   .write = (unsigned)c->write_quorum,
                   .ack = (unsigned)c->ack_quorum},
    };

    if (ns->persistence_set)
        p.quorum = (struct quorum){
            .ensemble = ns->ensemble, .write = ns->write_quorum, .ack = ns->ack_quorum};
    return p;
}

static void configure(struct topic *t)
{
    struct ml_policy p = policy_of(env_of(t)->conf, topic_policies_of(t));

    managed_ledger_configure(t->ml, &p);
}

/* ---- exclusive producers ---- */

#define EPOCH_PROPERTY "pulsar.topic.epoch"

static int64_t epoch(const struct topic *t)
{
    return access_epoch_of(managed_ledger_property(t->ml, EPOCH_PROPERTY));
}

static void epoch_stored(struct ml_call *c, enum err err, struct managed_ledger *m)
{
    (void)m;
    topic_epoch_stored(container_of(c, struct topic, storing_epoch), err);
}

static void store_epoch(struct topic *t, int64_t new_epoch)
{
    char text[24];

    snprintf(text, sizeof(text), "%lld", (long long)new_epoch);
    t->storing_epoch.done = epoch_stored;
    managed_ledger_set_property(t->ml, EPOCH_PROPERTY, text, &t->storing_epoch);
}

/* ---- its subscriptions ---- */

static const struct feed_ops *const feeds[] = {
    [CONSUMER_EXCLUSIVE] = &feed_exclusive,
    [CONSUMER_SHARED] = &feed_shared,
};

struct walk {
    void (*each)(void *ctx, const char *name);
    void *ctx;
};

static void each_cursor(void *ctx, struct cursor *c)
{
    struct walk *w = ctx;
    w->each(w->ctx, cursor_name(c));
}

static void subscriptions(const struct topic *t, void (*each)(void *ctx, const char *name),
                          void *ctx)
{
    struct walk w = {.each = each, .ctx = ctx};

    subscription_cursors(t, each_cursor, &w);
}

const struct topic_kind topic_stored = {
    .load = load,
    .close = close_it,
    .configure = configure,
    .state = state,
    .idle = idle,
    .epoch = epoch,
    .store_epoch = store_epoch,
    .welcome = topic_producer_stored_welcome,
    .publish = topic_producer_store,
    .subscribe = subscription_join,
    .unsubscribe = subscription_delete_cursor,
    .ask = topic_consumer_take,
    .feeds = feeds,
    .subscriptions = subscriptions,
};
