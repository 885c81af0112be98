#include "broker/topic/producer.h"

#include <stdio.h>
#include <string.h>

#include "broker/broker.h"
#include "broker/metrics.h"
#include "broker/topic/kind.h"
#include "broker/topic/topic.h"
#include "broker/topic/topics_stats.h"
#include "common/log.h"

static const struct topic_producer_front *front_of(const struct topic_producer *p)
{
    return container_of(p->guest.front_ops, const struct topic_producer_front, guest);
}

/* ---- publishing ---- */

static void on_published(struct task *t)
{
    struct publish *m = container_of(t, struct publish, task);
    front_of(m->producer)->published(m->producer, m);
}

void topic_producer_published(struct publish *m, enum err err)
{
    m->err = err;
    m->task.run = on_published;
    loop_post(m->producer->guest.front, &m->task);
}

static void count(struct topic_producer *p, const struct publish *m)
{
    const uint64_t now = loop_now(guest_back_loop(&p->guest));
    const uint64_t us = now > m->came_us ? now - m->came_us : 0; /* clocks may be a round apart */

    traffic_note(&p->in, m->add.messages, chain_len(&m->add.payload));
    topic_stats_stored(&p->guest.topic->stats, m->add.messages, chain_len(&m->add.payload), us);
    histogram_note_mine(&topics_stats_of(p->guest.topics)->publish_us, us);
}

static bool go_on(struct topics_held *h);

static void added(struct ml_add *a, enum err err, struct position at, uint64_t index)
{
    struct publish *m = container_of(a, struct publish, add);
    struct topic_producer *p = m->producer;
    struct guest *g = &p->guest;

    (void)index;
    p->in_flight--;
    topics_published(g->topics, m->bytes);
    m->at = at;
    if (err)
        topic_fail(g->topic, err);
    else
        count(p, m);
    topic_producer_published(m, err);
    guest_lets_go(g);
}

/* ERR_BUSY: not now. */
static enum err add(struct topic_producer *p, struct publish *m)
{
    struct topics *topics = p->guest.topics;

    if (p->in_flight >= (uint64_t)topics_env_of(topics)->conf->max_pending_publishes)
        return ERR_BUSY;
    if (!topics_room(topics, m->bytes))
        return ERR_BUSY;
    m->add.done = added;
    TRY(managed_ledger_add(p->guest.topic->ml, &m->add));
    p->in_flight++;
    topics_publishing(topics, m->bytes);
    guest_holds(&p->guest);
    return ERR_OK;
}

/* Refused, as everything after it will be. */
static void refuse(struct topic_producer *p, struct publish *m, enum err err)
{
    topic_producer_published(m, err);
    if (err != ERR_TERMINATED)
        topic_fail(p->guest.topic, err);
}

static void hold(struct topic_producer *p, struct publish *m)
{
    m->add.front = 0;
    chain_settle(&m->add.payload); /* the rest of what it was read with may be gone long before */
    if (list_empty(&p->held))
        topics_hold(p->guest.topics, &p->waiting);
    list_push_back(&p->held, &m->node);
}

static bool go_on(struct topics_held *h)
{
    struct topic_producer *p = container_of(h, struct topic_producer, waiting);
    struct publish *m = list_entry(p->held.next, struct publish, node);
    enum err err = add(p, m);

    if (err == ERR_BUSY)
        return false;
    list_remove(&m->node);
    if (list_empty(&p->held))
        list_remove(&p->waiting.node);
    if (err)
        refuse(p, m, err);
    return true;
}

void topic_producer_store(struct topic_producer *p, struct publish *m)
{
    if (!list_empty(&p->held)) {
        hold(p, m);
        return;
    }
    enum err err = add(p, m);
    if (err == ERR_BUSY)
        hold(p, m);
    else if (err)
        refuse(p, m, err);
}

static void on_publish(struct task *t)
{
    struct publish *m = container_of(t, struct publish, task);
    struct topic_producer *p = m->producer;

    if (p->guest.state == GUEST_IN)
        p->guest.topic->kind->publish(p, m);
    else
        topic_producer_published(m, ERR_CLOSED);
}

void topic_producer_publish(struct topic_producer *p, struct publish *m)
{
    m->producer = p;
    m->came_us = loop_now(p->guest.front);
    m->task.run = on_publish;
    list_init(&m->node);
    loop_post(guest_back_loop(&p->guest), &m->task);
}

/* ---- who may come in: the hands of access.h ---- */

static struct topic_producer *of_seat(struct access_seat *s)
{
    return container_of(s, struct topic_producer, seat);
}

static void add_name(struct topic_producer *p)
{
    HASH_ADD_KEYPTR(hh, p->guest.topic->by_name, p->name, strlen(p->name), p);
}

static void on_admitted(struct task *t)
{
    struct topic_producer *p = container_of(t, struct topic_producer, admitted);

    front_of(p)->admitted(p);
}

static void enter(struct topic_producer *p)
{
    struct guest *g = &p->guest;

    list_push_back(&g->topic->producers, &g->node);
    metric_add(&topics_env_of(g->topics)->metrics->producers, 1);
}

static void do_admit(struct access *a, struct access_seat *s, int64_t epoch)
{
    struct topic_producer *p = of_seat(s);
    struct guest *g = &p->guest;

    if (g->state == GUEST_TURNING) {
        access_leave(a, s);
        guest_arrive_again(g);
        return;
    }
    p->epoch = epoch;
    enter(p);
    if (p->queued) {
        p->admitted.run = on_admitted;
        loop_post(g->front, &p->admitted);
    } else {
        add_name(p);
        guest_admit(g);
    }
}

static void do_queue(struct access *a, struct access_seat *s)
{
    struct topic_producer *p = of_seat(s);

    (void)a;
    p->queued = true;
    add_name(p);
    guest_admit(&p->guest);
}

static void do_refuse(struct access *a, struct access_seat *s, enum err err, const char *why)
{
    struct topic_producer *p = of_seat(s);

    (void)a;
    if (p->queued) {
        p->gone.err = err;
        p->gone.why = why;
        guest_send_away(&p->guest);
        return;
    }
    guest_refuse(&p->guest, err, "%s", why);
}

static void do_send_away(struct access *a, struct access_seat *s)
{
    (void)a;
    guest_send_away(&of_seat(s)->guest);
}

void topic_epoch_stored(struct topic *t, enum err err)
{
    access_stored(&t->access, err);
    topic_lets_go(t);
}

static void do_store(struct access *a, int64_t epoch)
{
    struct topic *t = container_of(a, struct topic, access);

    topic_holds(t);
    t->kind->store_epoch(t, epoch);
}

static const struct access_fx access_fx = {.admit = do_admit,
                                           .queue = do_queue,
                                           .refuse = do_refuse,
                                           .send_away = do_send_away,
                                           .store = do_store};

void topic_producers_ready(struct topic *t)
{
    access_init(&t->access, &access_fx, t->kind->epoch(t));
}

void topic_producers_go(struct topic *t, enum err err, const char *why)
{
    access_shut(&t->access, err, why);
}

/* ---- the subscription that it brings ---- */

static void initial_made(struct ml_cursor_call *c, enum err err, struct cursor *cursor)
{
    struct topic_producer *p = container_of(c, struct topic_producer, making);
    struct guest *g = &p->guest;
    struct topic *t = g->topic;

    (void)cursor;
    if (err && err != ERR_EXISTS) {
        guest_refuse(g, err, "the initial subscription could not be made: %s", err_text(err));
    } else {
        if (!err)
            log_event(LOG_INFO, "subscription.made", F_STR("topic", t->name.full),
                      F_STR("subscription", p->initial));
        p->initial = NULL;
        guest_arrive_again(g);
    }
    topic_lets_go(t);
}

static void make_initial(struct topic_producer *p)
{
    struct topic *t = p->guest.topic;

    if (!topic_makes_subscriptions(t) || !topic_takes_subscription(t)) {
        guest_refuse(&p->guest, ERR_NOT_ALLOWED,
                     "the topic takes no subscription that is not there");
        return;
    }
    p->making.done = initial_made;
    topic_holds(t);
    managed_ledger_cursor_create(t->ml, p->initial, POSITION_EARLIEST, &p->making);
}

/* ---- coming and going ---- */

static struct topic_producer *named(const struct topic *t, const char *name)
{
    struct topic_producer *p;

    HASH_FIND_STR(t->by_name, name, p);
    return p;
}

/* By one that is still to be let in itself. */
static bool is_being_taken(const struct topic *t, const char *name)
{
    const struct access_seat *taker = t->access.taker;

    return taker && strcmp(container_of(taker, const struct topic_producer, seat)->name, name) == 0;
}

static unsigned producers_of(const struct topic *t)
{
    unsigned all = 0;

    list_each(&t->producers, n) all++;
    return all;
}

/* NULL, or why there may not be one more beside those who are there. */
static const char *obstacle(const struct topic *t, const struct topic_producer *p)
{
    const int64_t same = topics_env_of(t->topics)->conf->max_same_producers;

    if (p->mode != ACCESS_SHARED)
        return NULL;
    if (topic_limit(t, NS_PRODUCERS) > 0 && topic_is_over(t, NS_PRODUCERS, producers_of(t)))
        return "the topic has as many producers as it may have";
    if (same > 0 && guests_from_there(&t->producers, &p->guest) >= same)
        return "the topic has as many producers from there as it may have";
    return NULL;
}

/* One that fences need not care who has its name: whoever that is, is gone before it is in. */
void topic_producer_ask(struct topic_producer *p)
{
    struct topic *t = p->guest.topic;

    if (!p->name)
        p->name = topics_producer_name(p->guest.topics);
    const bool cares = p->mode != ACCESS_FENCE;
    struct topic_producer *other = named(t, p->name);
    const char *why = other ? NULL : obstacle(t, p);
    if (cares && other) {
        guest_queue_behind(&p->guest, &other->guest);
    } else if (why) {
        guest_refuse(&p->guest, ERR_PRODUCER_BUSY, "%s", why);
    } else if (cares && is_being_taken(t, p->name)) {
        guest_refuse(&p->guest, ERR_NOT_READY, "a producer of that name is being created");
    } else {
        p->seat.mode = p->mode;
        p->seat.epoch = p->asked_epoch;
        access_ask(&t->access, &p->seat);
    }
}

void topic_producer_stored_welcome(struct topic_producer *p)
{
    struct guest *g = &p->guest;

    if (managed_ledger_is_terminated(g->topic->ml))
        guest_refuse(g, ERR_TERMINATED, "the topic was terminated");
    else if (p->initial && !managed_ledger_cursor(g->topic->ml, p->initial))
        make_initial(p);
    else
        topic_producer_ask(p);
}

static void arrive(struct guest *g)
{
    g->topic->kind->welcome(topic_producer_of(g));
}

static void leave(struct guest *g)
{
    struct topic_producer *p = topic_producer_of(g);

    if (!list_empty(&g->node)) {
        list_remove(&g->node);
        metric_add(&topics_env_of(g->topics)->metrics->producers, -1);
    }
    HASH_DEL(g->topic->by_name, p);
    list_remove(&p->waiting.node);
    for (struct list_node *n; (n = list_pop_front(&p->held));)
        topic_producer_published(list_entry(n, struct publish, node), ERR_CLOSED);
    access_leave(&g->topic->access, &p->seat);
}

static const struct guest_back back = {.arrive = arrive, .leave = leave, .busy = ERR_PRODUCER_BUSY};

void topic_producer_open(struct topic_producer *p)
{
    list_init(&p->held);
    list_init(&p->waiting.node);
    p->waiting.go_on = go_on;
    p->in_flight = 0;
    p->in = p->dropped = (struct traffic){0};
    p->queued = false;
    p->epoch = ACCESS_NO_EPOCH;
    p->seat.place = ACCESS_OUT;
    p->guest.back_ops = &back;
    guest_open(&p->guest);
}
