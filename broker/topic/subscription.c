#include "broker/topic/subscription.h"

#include <assert.h>
#include <string.h>

#include "broker/broker.h"
#include "broker/metrics.h"
#include "broker/topic/kind.h"
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
    struct subscription *s =
        mem_pool_take(topics_pool(t->topics, TOPICS_POOL_SUBSCRIPTION, sizeof(*s)));

    s->topic = t;
    s->name = mem_string(name);
    s->state = state;
    list_init(&s->waiting);
    list_init(&s->consumers);
    list_push_back(&t->subscriptions, &s->node);
    metric_add(&env_of(s)->metrics->subscriptions, 1);
    return s;
}

struct subscription *subscription_new(struct topic *t, const char *name, struct cursor *cursor)
{
    struct subscription *s = add(t, name, SUBSCRIPTION_MAKING);

    ready(s, cursor);
    return s;
}

void subscription_free(struct subscription *s)
{
    assert(s->n_consumers == 0 && list_empty(&s->waiting));
    if (s->state != SUBSCRIPTION_MAKING)
        feed_drop(&s->feed);
    if (s->passing)
        cursor_abandon(&s->cursor);
    loop_cancel(env_of(s)->home, &s->lonely);
    list_remove(&s->node);
    metric_add(&env_of(s)->metrics->subscriptions, -1);
    mem_free(s->name);
    mem_pool_give(s);
}

/* ---- making one ---- */

static void refuse_waiting(struct subscription *s, enum err err)
{
    for (struct list_node *n; (n = list_pop_front(&s->waiting));)
        guest_refuse(list_entry(n, struct guest, node), err,
                     "the subscription could not be made: %s", err_text(err));
}

static void let_in(struct subscription *s)
{
    struct list_node came;

    list_init(&came);
    for (struct list_node *n; (n = list_pop_front(&s->waiting));)
        list_push_back(&came, n);
    for (struct list_node *n; (n = list_pop_front(&came));)
        guest_arrive_again(list_entry(n, struct guest, node));
}

/* Nobody will ask for it again. */
static bool is_left(const struct subscription *s)
{
    return s->passing && s->state == SUBSCRIPTION_READY && s->n_consumers == 0;
}

struct making {
    struct subscription *subscription;
    struct ml_cursor_call call;
    struct ml_find start; /* where it begins, by time */
};

static void made(struct ml_cursor_call *call, enum err err, struct cursor *cursor)
{
    struct making *making = container_of(call, struct making, call);
    struct subscription *s = making->subscription;
    struct topic *t = s->topic;

    mem_free(making);
    if (err) {
        refuse_waiting(s, err);
        subscription_free(s);
        topic_lets_go(t);
        return;
    }
    log_event(LOG_INFO, "subscription.made", F_STR("topic", t->name.full),
              F_STR("subscription", s->name));
    ready(s, cursor);
    let_in(s);
    if (is_left(s))
        subscription_free(s);
    topic_lets_go(t);
}

static void make_at(struct making *m, struct position mark_delete)
{
    const struct subscription *s = m->subscription;
    struct managed_ledger *ml = s->topic->ml;

    m->call.done = made;
    if (s->passing)
        made(&m->call, ERR_OK, managed_ledger_cursor_passing(ml, s->name, mark_delete));
    else
        managed_ledger_cursor_create(ml, s->name, mark_delete, &m->call);
}

static void start_found(struct ml_find *f, enum err err, struct position before)
{
    struct making *m = container_of(f, struct making, start);

    if (err)
        made(&m->call, err, NULL);
    else
        make_at(m, before);
}

/* Those that pass are nobody's to limit: they hold nothing. */
static bool may_make(const struct topic *t, struct topic_consumer *c)
{
    if (c->passing)
        return true;
    if (!topic_makes_subscriptions(t))
        guest_refuse(&c->guest, ERR_SUBSCRIPTION_NOT_FOUND, "there is no such subscription");
    else if (!topic_takes_subscription(t))
        guest_refuse(&c->guest, ERR_NOT_ALLOWED,
                     "the topic has as many subscriptions as it may have");
    else
        return true;
    return false;
}

static void make(struct topic *t, struct topic_consumer *c)
{
    if (!may_make(t, c))
        return;
    struct subscription *s = add(t, c->subscription_name, SUBSCRIPTION_MAKING);
    struct making *m = mem_new(struct making);

    s->passing = c->passing;
    list_push_back(&s->waiting, &c->guest.node);
    m->subscription = s;
    m->call.properties = c->properties;
    topic_holds(t);
    if (c->back_ms > 0) {
        m->start =
            (struct ml_find){.ms = (int64_t)loop_wall_ms() - c->back_ms, .done = start_found};
        managed_ledger_find(t->ml, &m->start);
    } else {
        make_at(m, position_before(c->start));
    }
}

/* ---- coming and going ---- */

static unsigned consumers_of(const struct topic *t)
{
    unsigned all = 0;

    list_each(&t->subscriptions, n) all += list_entry(n, struct subscription, node)->n_consumers;
    return all;
}

static bool too_many_from(const struct topic *t, const struct guest *g)
{
    const int64_t most = topics_env_of(t->topics)->conf->max_same_consumers;
    int64_t same = 0;

    if (most == 0)
        return false;
    list_each(&t->subscriptions, n) same +=
        guests_from_there(&list_entry(n, struct subscription, node)->consumers, g);
    return same >= most;
}

/* NULL, or why it cannot join those who are there. */
static const char *obstacle(const struct subscription *s, const struct topic_consumer *c)
{
    const struct topic *t = s->topic;

    if (s->n_consumers > 0 && c->type != s->feed.type)
        return "the subscription has consumers of another type";
    if (topic_is_over(t, NS_SUBSCRIPTION_CONSUMERS, s->n_consumers))
        return "the subscription has as many consumers as it may have";
    if (topic_is_over(t, NS_CONSUMERS, consumers_of(t)))
        return "the topic has as many consumers as it may have";
    if (too_many_from(t, &c->guest))
        return "the topic has as many consumers from there as it may have";
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
    loop_cancel(env_of(s)->home, &s->lonely);
    list_push_back(&s->consumers, &c->guest.node);
    c->subscription = s;
    metric_add(&env_of(s)->metrics->consumers, 1);
    guest_admit(&c->guest);
    s->feed.ops->join(&s->feed, c);
    subscription_check_end(s);
}

void subscription_check_end(struct subscription *s)
{
    bool ended = s->state == SUBSCRIPTION_READY && s->cursor &&
                 managed_ledger_has_ended(s->topic->ml) && cursor_backlog(s->cursor) == 0;

    if (ended)
        list_each(&s->consumers, n)
            topic_consumer_reached_end(topic_consumer_of(list_entry(n, struct guest, node)));
}

struct subscription *subscription_of(struct topic *t, const char *name)
{
    struct subscription *s = subscription_find(t, name);
    struct cursor *cursor = s ? NULL : managed_ledger_cursor(t->ml, name);

    if (!cursor)
        return s;
    return subscription_new(t, name, cursor);
}

void subscription_cursors(const struct topic *t, void (*each)(void *ctx, struct cursor *c),
                          void *ctx)
{
    managed_ledger_cursors(t->ml, each, ctx);
    list_each(&t->subscriptions, n)
    {
        struct subscription *s = list_entry(n, struct subscription, node);
        if (s->passing && s->state != SUBSCRIPTION_MAKING)
            each(ctx, s->cursor);
    }
}

void subscription_join(struct topic *t, struct topic_consumer *c)
{
    struct subscription *s = subscription_of(t, c->subscription_name);

    if (s)
        subscription_take(s, c);
    else
        make(t, c);
}

void subscription_take(struct subscription *s, struct topic_consumer *c)
{
    if (s->passing != c->passing)
        guest_refuse(&c->guest, ERR_NOT_ALLOWED, "a %s subscription has this name already",
                     s->passing ? "non-durable" : "durable");
    else if (s->state == SUBSCRIPTION_MAKING || s->state == SUBSCRIPTION_SEEKING)
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
    if (is_left(s))
        subscription_free(s);
    else if (s->state == SUBSCRIPTION_SEEKING && s->n_consumers == 0)
        seek_go_on(s);
}

/* ---- after a seek ---- */

static void on_lonely(struct timer *timer)
{
    struct subscription *s = container_of(timer, struct subscription, lonely);

    if (is_left(s))
        subscription_free(s);
}

void subscription_moved(struct subscription *s)
{
    let_in(s);
    if (!is_left(s))
        return;
    if (!topic_is_ready(s->topic)) {
        subscription_free(s);
        return;
    }
    s->lonely.run = on_lonely;
    loop_after(env_of(s)->home, &s->lonely, PASSING_STAY_US);
}

void subscription_limit(struct subscription *s)
{
    if (s->state != SUBSCRIPTION_MAKING && s->feed.ops->limit)
        s->feed.ops->limit(&s->feed);
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

/* A passing one that waits for its reader goes at once. */
void subscription_send_away(struct subscription *s)
{
    send_away(s, NULL);
    if (is_left(s))
        subscription_free(s);
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
    if (s->passing) {
        subscription_deleted(s, ERR_OK);
        topic_consumer_answer(a, ERR_OK);
        return;
    }
    s->topic->kind->unsubscribe(s, a);
}

void subscription_delete_cursor(struct subscription *s, struct consumer_ask *a)
{
    a->deleting = s;
    a->cursor_call.done = deleted;
    topic_holds(s->topic);
    managed_ledger_cursor_delete(s->topic->ml, s->name, &a->cursor_call);
}
