#include "broker/topic/subscription.h"

#include <assert.h>
#include <string.h>

#include "broker/broker.h"
#include "broker/metrics.h"
#include "common/log.h"

static const struct topics_env *env_of(const struct subscription *s)
{
    return topics_env_of(s->topic->topics);
}

struct subscription *subscription_find(const struct topic *t, const char *name)
{
    list_each(&t->subscriptions, n)
    {
        struct subscription *s = list_entry(n, struct subscription, node);
        if (strcmp(s->name, name) == 0)
            return s;
    }
    return NULL;
}

static void ready(struct subscription *s, struct cursor *cursor)
{
    s->cursor = cursor;
    s->state = SUBSCRIPTION_READY;
    feed_init(&s->feed);
}

static struct subscription *add(struct topic *t, const char *name, enum subscription_state state)
{
    struct subscription *s = mem_new(struct subscription);

    s->topic = t;
    s->name = mem_string(name);
    s->state = state;
    list_init(&s->waiting);
    list_init(&s->consumers);
    list_push_back(&t->subscriptions, &s->node);
    metric_add(&env_of(s)->metrics->subscriptions, 1);
    return s;
}

void subscription_free(struct subscription *s)
{
    assert(s->n_consumers == 0 && list_empty(&s->waiting));
    if (s->state != SUBSCRIPTION_MAKING)
        feed_drop(&s->feed);
    list_remove(&s->node);
    metric_add(&env_of(s)->metrics->subscriptions, -1);
    mem_free(s->name);
    mem_free(s);
}

/* ---- making one ---- */

static void refuse_waiting(struct subscription *s, enum err err)
{
    for (struct list_node *n; (n = list_pop_front(&s->waiting));)
        guest_refuse(list_entry(n, struct guest, node), err,
                     "the subscription could not be made: %s", err_text(err));
}

static void made(struct ml_cursor_call *call, enum err err, struct cursor *cursor)
{
    struct subscription *s = container_of(call, struct subscription, making);
    struct topic *t = s->topic;
    struct list_node came;

    if (err) {
        refuse_waiting(s, err);
        subscription_free(s);
        topic_lets_go(t);
        return;
    }
    log_event(LOG_INFO, "subscription.made", F_STR("topic", t->name.full),
              F_STR("subscription", s->name));
    ready(s, cursor);
    list_init(&came);
    for (struct list_node *n; (n = list_pop_front(&s->waiting));)
        list_push_back(&came, n);
    for (struct list_node *n; (n = list_pop_front(&came));)
        guest_arrive_again(list_entry(n, struct guest, node));
    topic_lets_go(t);
}

static void make(struct topic *t, struct topic_consumer *c)
{
    struct subscription *s = add(t, c->subscription_name, SUBSCRIPTION_MAKING);

    list_push_back(&s->waiting, &c->guest.node);
    s->making.done = made;
    s->making.properties = c->properties;
    topic_holds(t);
    managed_ledger_cursor_create(t->ml, s->name, c->earliest ? POSITION_EARLIEST : POSITION_LATEST,
                                 &s->making);
}

/* ---- coming and going ---- */

static unsigned consumers_of(const struct topic *t)
{
    unsigned all = 0;

    list_each(&t->subscriptions, n) all += list_entry(n, struct subscription, node)->n_consumers;
    return all;
}

static bool is_over(unsigned n, int64_t max)
{
    return max > 0 && n >= max;
}

/* NULL, or why it cannot join those who are there. */
static const char *obstacle(const struct subscription *s, const struct topic_consumer *c)
{
    const struct broker_conf *conf = env_of(s)->conf;

    if (s->n_consumers > 0 && c->type != s->feed.type)
        return "the subscription has consumers of another type";
    if (is_over(s->n_consumers, conf->max_consumers_per_subscription))
        return "the subscription has as many consumers as it may have";
    if (is_over(consumers_of(s->topic), conf->max_consumers_per_topic))
        return "the topic has as many consumers as it may have";
    return NULL;
}

static void join(struct subscription *s, struct topic_consumer *c)
{
    bool alone = c->type == CONSUMER_EXCLUSIVE && s->feed.type == c->type;

    if (alone && s->n_consumers > 0) {
        struct list_node *first = s->consumers.next;
        guest_queue_behind(&c->guest, list_entry(first, struct guest, node));
        return;
    }
    const char *why = obstacle(s, c);
    if (why) {
        guest_refuse(&c->guest, ERR_CONSUMER_BUSY, "%s", why);
        return;
    }
    if (s->n_consumers++ == 0)
        feed_become(&s->feed, c->type);
    list_push_back(&s->consumers, &c->guest.node);
    c->subscription = s;
    metric_add(&env_of(s)->metrics->consumers, 1);
    guest_admit(&c->guest);
    s->feed.ops->join(&s->feed, c);
    subscription_check_end(s);
}

void subscription_check_end(struct subscription *s)
{
    bool ended = s->state == SUBSCRIPTION_READY && managed_ledger_has_ended(s->topic->ml) &&
                 cursor_backlog(s->cursor) == 0;

    if (ended)
        list_each(&s->consumers, n)
            topic_consumer_reached_end(topic_consumer_of(list_entry(n, struct guest, node)));
}

void subscription_join(struct topic *t, struct topic_consumer *c)
{
    struct subscription *s = subscription_find(t, c->subscription_name);

    if (!s) {
        struct cursor *cursor = managed_ledger_cursor(t->ml, c->subscription_name);
        if (!cursor) {
            make(t, c);
            return;
        }
        s = add(t, c->subscription_name, SUBSCRIPTION_MAKING);
        ready(s, cursor);
    }
    if (s->state == SUBSCRIPTION_MAKING)
        list_push_back(&s->waiting, &c->guest.node);
    else if (s->state == SUBSCRIPTION_DELETING)
        guest_refuse(&c->guest, ERR_NOT_READY, "the subscription is being deleted");
    else
        join(s, c);
}

void subscription_leave(struct subscription *s, struct topic_consumer *c)
{
    assert(c->subscription == s && s->n_consumers > 0);
    s->feed.ops->leave(&s->feed, c);
    list_remove(&c->guest.node);
    s->n_consumers--;
    c->subscription = NULL;
    metric_add(&env_of(s)->metrics->consumers, -1);
}

void subscription_grew(struct subscription *s)
{
    if (s->state != SUBSCRIPTION_MAKING)
        s->feed.ops->grew(&s->feed);
}

static void send_away(struct subscription *s, const struct topic_consumer *but)
{
    list_each(&s->consumers, n)
    {
        struct guest *g = list_entry(n, struct guest, node);
        if (!but || g != &but->guest)
            guest_send_away(g);
    }
}

void subscription_send_away(struct subscription *s)
{
    send_away(s, NULL);
}

/* ---- deleting one ---- */

static void begin_delete(struct subscription *s, const struct topic_consumer *but)
{
    send_away(s, but);
    s->feed.ops->halt(&s->feed, true);
    s->state = SUBSCRIPTION_DELETING;
}

void subscription_begin_delete(struct subscription *s)
{
    begin_delete(s, NULL);
}

void subscription_deleted(struct subscription *s, enum err err)
{
    if (err) {
        s->state = SUBSCRIPTION_READY;
        s->feed.ops->halt(&s->feed, false); /* its clients do not give permits a second time */
        return;
    }
    log_event(LOG_INFO, "subscription.deleted", F_STR("topic", s->topic->name.full),
              F_STR("subscription", s->name));
    list_each(&s->consumers, n)
        subscription_leave(s, topic_consumer_of(list_entry(n, struct guest, node)));
    subscription_free(s);
}

static void deleted(struct ml_cursor_call *call, enum err err, struct cursor *cursor)
{
    struct consumer_ask *a = container_of(call, struct consumer_ask, cursor_call);
    struct subscription *s = a->deleting;
    struct topic *t = s->topic;

    (void)cursor;
    subscription_deleted(s, err);
    topic_consumer_answer(a, err);
    topic_lets_go(t);
}

void subscription_delete(struct subscription *s, struct consumer_ask *a)
{
    if (s->n_consumers > 1 && !a->force) {
        topic_consumer_answer(a, ERR_CONSUMER_BUSY);
        return;
    }
    begin_delete(s, a->consumer);
    a->deleting = s;
    a->cursor_call.done = deleted;
    topic_holds(s->topic);
    managed_ledger_cursor_delete(s->topic->ml, s->name, &a->cursor_call);
}
