#include "broker/topic/producer.h"

#include <assert.h>
#include <string.h>

#include "broker/broker.h"
#include "broker/metrics.h"
#include "broker/topic/topic.h"
#include "broker/topic/topics_stats.h"

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

static void give_back(struct publish *m, enum err err)
{
    m->err = err;
    m->task.run = on_published;
    loop_post(m->producer->guest.front, &m->task);
}

static void count(const struct topic_producer *p, const struct publish *m)
{
    const uint64_t now = loop_now(guest_back_loop(&p->guest));
    const uint64_t us = now > m->came_us ? now - m->came_us : 0; /* clocks may be a round apart */

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
    give_back(m, err);
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
    give_back(m, err);
    if (err != ERR_TERMINATED)
        topic_fail(p->guest.topic, err);
}

static void hold(struct topic_producer *p, struct publish *m)
{
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

static void on_publish(struct task *t)
{
    struct publish *m = container_of(t, struct publish, task);
    struct topic_producer *p = m->producer;

    if (p->guest.state != GUEST_IN) {
        give_back(m, ERR_CLOSED);
        return;
    }
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

void topic_producer_publish(struct topic_producer *p, struct publish *m)
{
    m->producer = p;
    m->came_us = loop_now(p->guest.front);
    m->task.run = on_publish;
    list_init(&m->node);
    loop_post(guest_back_loop(&p->guest), &m->task);
}

/* ---- coming and going ---- */

static struct topic_producer *named(const struct topic *t, const char *name)
{
    struct topic_producer *p;

    HASH_FIND_STR(t->by_name, name, p);
    return p;
}

static void arrive(struct guest *g)
{
    struct topic_producer *p = topic_producer_of(g);

    if (managed_ledger_is_terminated(g->topic->ml)) {
        guest_refuse(g, ERR_TERMINATED, "the topic was terminated");
        return;
    }
    if (!p->name)
        p->name = topics_producer_name(g->topics);
    struct topic_producer *other = named(g->topic, p->name);
    if (other) {
        guest_queue_behind(g, &other->guest);
        return;
    }
    list_push_back(&g->topic->producers, &g->node);
    HASH_ADD_KEYPTR(hh, g->topic->by_name, p->name, strlen(p->name), p);
    metric_add(&topics_env_of(g->topics)->metrics->producers, 1);
    guest_admit(g);
}

static void leave(struct guest *g)
{
    struct topic_producer *p = topic_producer_of(g);

    list_remove(&g->node);
    HASH_DEL(g->topic->by_name, p);
    list_remove(&p->waiting.node);
    metric_add(&topics_env_of(g->topics)->metrics->producers, -1);
    for (struct list_node *n; (n = list_pop_front(&p->held));)
        give_back(list_entry(n, struct publish, node), ERR_CLOSED);
}

static const struct guest_back back = {.arrive = arrive, .leave = leave, .busy = ERR_PRODUCER_BUSY};

void topic_producer_open(struct topic_producer *p)
{
    list_init(&p->held);
    list_init(&p->waiting.node);
    p->waiting.go_on = go_on;
    p->in_flight = 0;
    p->guest.back_ops = &back;
    guest_open(&p->guest);
}
