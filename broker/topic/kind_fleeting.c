/* A topic that is not stored: what is published goes to those who can take it now, and nowhere
 * else.  Nothing of it outlives it: neither its subscriptions nor its epoch. */
#include "broker/broker.h"
#include "broker/topic/kind.h"
#include "broker/topic/subscription.h"

/* Which every message has, as Pulsar's have. */
static const struct position nowhere = {.ledger = 0, .entry = 0};
/* One that was dropped before it got to its topic. */
static const struct position dropped = {.ledger = -1, .entry = -1};

/* ---- life ---- */

static bool is_wanted(const struct topic *t)
{
    list_each(&t->waiting, n)
    {
        const struct topics_call *c = list_entry(n, struct topics_call, node);
        if (c->ordered || (c->create && t->may_create))
            return true;
    }
    return t->is_partition;
}

static void load(struct topic *t)
{
    if (is_wanted(t))
        topic_is_loaded(t);
    else
        topic_is_not_loaded(t, ERR_TOPIC_NOT_FOUND, "the topic does not exist");
}

static void post(struct topic *t, void (*run)(struct task *task))
{
    t->later.run = run;
    loop_post(topics_loop(t->topics), &t->later);
}

static void closed(struct task *task)
{
    topic_is_closed(container_of(task, struct topic, later), ERR_OK);
}

static void close_it(struct topic *t, bool delete)
{
    (void)delete;
    post(t, closed);
}

static void configure(struct topic *t)
{
    (void)t;
}

static const char *state(const struct topic *t)
{
    (void)t;
    return "Fleeting";
}

/* It can be made again at any time: so it is not kept for nobody. */
static void idle(struct topic *t)
{
    const bool wanted = !topics_env_of(t->topics)->conf->forget_unused;
    const bool unused =
        !wanted && t->guests == 0 && t->under_way == 0 && list_empty(&t->subscriptions);

    if (unused && t->unused)
        topic_close(t);
    t->unused = unused;
}

/* ---- producers ---- */

static int64_t epoch(const struct topic *t)
{
    (void)t;
    return ACCESS_NO_EPOCH;
}

static void epoch_kept(struct task *task)
{
    topic_epoch_stored(container_of(task, struct topic, later), ERR_OK);
}

static void store_epoch(struct topic *t, int64_t new_epoch)
{
    (void)new_epoch; /* access.h knows it */
    post(t, epoch_kept);
}

static void publish(struct topic_producer *p, struct publish *m)
{
    struct topic *t = p->guest.topic;

    if (m->dropped) {
        traffic_note(&p->dropped, m->add.messages, 0);
        m->at = dropped;
        topic_producer_published(m, ERR_OK);
        return;
    }
    list_each(&t->subscriptions, n) feed_pass(&list_entry(n, struct subscription, node)->feed, m);
    t->passed++;
    traffic_note(&p->in, m->add.messages, chain_len(&m->add.payload));
    traffic_note(&t->stats.in, m->add.messages, chain_len(&m->add.payload));
    m->at = nowhere;
    topic_producer_published(m, ERR_OK);
}

/* ---- consumers ---- */

static void subscribe(struct topic *t, struct topic_consumer *c)
{
    struct subscription *s = subscription_find(t, c->subscription_name);

    if (!s && !c->passing && !topic_takes_subscription(t)) {
        guest_refuse(&c->guest, ERR_NOT_ALLOWED,
                     "the topic has as many subscriptions as it may have");
        return;
    }
    if (!s) {
        s = subscription_new(t, c->subscription_name, NULL);
        s->passing = c->passing;
    }
    subscription_take(s, c);
}

static void unsubscribe(struct subscription *s, struct consumer_ask *a)
{
    subscription_deleted(s, ERR_OK);
    topic_consumer_answer(a, ERR_OK);
}

/* There is nowhere to go.  But clients give their permits anew only when they are closed first. */
static void seek(struct topic_consumer *c, struct consumer_ask *a)
{
    subscription_send_away(c->subscription);
    topic_consumer_answer(a, ERR_OK);
}

static void ask(struct topic_consumer *c, struct consumer_ask *a)
{
    switch (a->kind) {
    case ASK_FLOW:
    case ASK_UNSUBSCRIBE:
    case ASK_REPORT:
        topic_consumer_take(c, a);
        break;
    case ASK_ACK:
    case ASK_ACK_UPTO:
    case ASK_REDELIVER: /* it is neither remembered nor sent again */
        topic_consumer_answer(a, ERR_OK);
        break;
    case ASK_SEEK:
        seek(c, a);
        break;
    case ASK_LAST_ID: /* there is no such thing */
        topic_consumer_answer(a, ERR_NOT_ALLOWED);
        break;
    }
}

static const struct feed_ops *const feeds[] = {
    [CONSUMER_EXCLUSIVE] = &feed_fleeting,
    [CONSUMER_SHARED] = &feed_fleeting,
};

static void subscriptions(const struct topic *t, void (*each)(void *ctx, const char *name),
                          void *ctx)
{
    list_each(&t->subscriptions, n) each(ctx, list_entry(n, struct subscription, node)->name);
}

const struct topic_kind topic_fleeting = {
    .load = load,
    .close = close_it,
    .configure = configure,
    .state = state,
    .idle = idle,
    .epoch = epoch,
    .store_epoch = store_epoch,
    .welcome = topic_producer_ask,
    .publish = publish,
    .subscribe = subscribe,
    .unsubscribe = unsubscribe,
    .ask = ask,
    .feeds = feeds,
    .subscriptions = subscriptions,
};
