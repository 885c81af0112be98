#include "broker/topic/subscription.h"

#include <assert.h>
#include <string.h>

#include "broker/metrics.h"
#include "common/log.h"

static const struct topics_env *env_of(const struct subscription *s)
{
    return topics_env_of(s->topic->topics);
}

static struct subscription *find(const struct topic *t, const char *name)
{
    list_each(&t->subscriptions, n)
    {
        struct subscription *s = list_entry(n, struct subscription, node);
        if (strcmp(s->name, name) == 0)
            return s;
    }
    return NULL;
}

static struct subscription *add(struct topic *t, const char *name, enum subscription_state state)
{
    struct subscription *s = mem_new(struct subscription);

    s->topic = t;
    s->name = mem_string(name);
    s->state = state;
    list_init(&s->waiting);
    list_push_back(&t->subscriptions, &s->node);
    feed_init(&s->feed, env_of(s));
    metric_add(&env_of(s)->metrics->subscriptions, 1);
    return s;
}

void subscription_free(struct subscription *s)
{
    assert(!s->consumer && list_empty(&s->waiting));
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
    s->cursor = cursor;
    s->state = SUBSCRIPTION_READY;
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
    topic_holds(t);
    managed_ledger_cursor_create(t->ml, s->name, c->earliest ? POSITION_EARLIEST : POSITION_LATEST,
                                 &s->making);
}

/* ---- coming and going ---- */

static void join(struct subscription *s, struct topic_consumer *c)
{
    if (s->consumer) {
        guest_queue_behind(&c->guest, &s->consumer->guest);
        return;
    }
    s->consumer = c;
    c->subscription = s;
    metric_add(&env_of(s)->metrics->consumers, 1);
    guest_admit(&c->guest);
    feed_start(&s->feed, c);
}

void subscription_join(struct topic *t, struct topic_consumer *c)
{
    struct subscription *s = find(t, c->subscription_name);

    if (!s) {
        struct cursor *cursor = managed_ledger_cursor(t->ml, c->subscription_name);
        if (!cursor) {
            make(t, c);
            return;
        }
        s = add(t, c->subscription_name, SUBSCRIPTION_READY);
        s->cursor = cursor;
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
    assert(s->consumer == c);
    if (s->state == SUBSCRIPTION_READY)
        feed_stop(&s->feed);
    s->consumer = NULL;
    c->subscription = NULL;
    metric_add(&env_of(s)->metrics->consumers, -1);
}

void subscription_grew(struct subscription *s)
{
    if (s->state == SUBSCRIPTION_READY)
        feed_grew(&s->feed);
}

void subscription_send_away(struct subscription *s)
{
    if (s->consumer)
        guest_send_away(&s->consumer->guest);
}

/* ---- deleting one ---- */

/* Its client does not give permits a second time. */
static void start_again(struct subscription *s)
{
    int64_t permits = s->feed.core.permits;

    if (!s->consumer)
        return;
    feed_start(&s->feed, s->consumer);
    if (permits > 0)
        exclusive_flow(&s->feed.core, (uint32_t)permits);
}

static void deleted(struct ml_cursor_call *call, enum err err, struct cursor *cursor)
{
    struct consumer_ask *a = container_of(call, struct consumer_ask, cursor_call);
    struct subscription *s = a->deleting;
    struct topic *t = s->topic;

    (void)cursor;
    if (err) {
        s->state = SUBSCRIPTION_READY;
        start_again(s);
    } else {
        log_event(LOG_INFO, "subscription.deleted", F_STR("topic", t->name.full),
                  F_STR("subscription", s->name));
        if (s->consumer)
            subscription_leave(s, s->consumer);
        subscription_free(s);
    }
    topic_consumer_answer(a, err);
    topic_lets_go(t);
}

void subscription_delete(struct subscription *s, struct consumer_ask *a)
{
    feed_stop(&s->feed);
    s->state = SUBSCRIPTION_DELETING;
    a->deleting = s;
    a->cursor_call.done = deleted;
    topic_holds(s->topic);
    managed_ledger_cursor_delete(s->topic->ml, s->name, &a->cursor_call);
}
