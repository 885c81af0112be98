#include "broker/topic/topics_stats.h"

#include "broker/broker.h"
#include "broker/topic/kind.h"
#include "broker/topic/producer.h"
#include "broker/topic/subscription.h"
#include "broker/topic/topic.h"

static void tick_subscription(struct subscription *s, double seconds)
{
    consuming_tick(&s->consuming, seconds);
    list_each(&s->consumers, n)
        consuming_tick(&topic_consumer_of(list_entry(n, struct guest, node))->consuming, seconds);
}

static void tick_producer(struct topic_producer *p, double seconds)
{
    traffic_tick(&p->in, seconds);
    traffic_tick(&p->dropped, seconds);
}

static void visit(struct topics_walk *w, struct topic *t)
{
    const uint64_t now = loop_now(topics_loop(w->topics));
    const double seconds = (double)(now - t->stats.ticked_us) / 1e6;

    if (now <= t->stats.ticked_us)
        return;
    list_each(&t->subscriptions, n)
        tick_subscription(list_entry(n, struct subscription, node), seconds);
    list_each(&t->producers, n)
        tick_producer(topic_producer_of(list_entry(n, struct guest, node)), seconds);
    topic_stats_tick(&t->stats, now);
    if (topic_is_ready(t))
        t->kind->idle(t);
}

static void over(struct topics_walk *w)
{
    container_of(w, struct topics_stats, walk)->walking = false;
}

static void tick_cache(struct topics_stats *s)
{
    const uint64_t now = loop_now(topics_loop(s->topics));
    const double seconds = (double)(now - s->ticked_us) / 1e6;
    struct ml_figures f;

    if (now <= s->ticked_us)
        return;
    ml_env_figures(topics_env_of(s->topics)->ledgers, &f);
    s->hits_rate = (double)(f.cache_hits - s->last.cache_hits) / seconds;
    s->misses_rate = (double)(f.cache_misses - s->last.cache_misses) / seconds;
    s->evictions_rate = (double)(f.cache_evictions - s->last.cache_evictions) / seconds;
    s->last = f;
    s->ticked_us = now;
}

static void arm(struct topics_stats *s)
{
    const struct topics_env *env = topics_env_of(s->topics);
    loop_after(env->home, &s->tick, (uint64_t)env->conf->stats_seconds * 1000000);
}

static void tick(struct timer *t)
{
    struct topics_stats *s = container_of(t, struct topics_stats, tick);

    arm(s);
    tick_cache(s);
    if (s->walking)
        return;
    s->walking = true;
    s->walk = (struct topics_walk){.visit = visit, .over = over};
    topics_walk(s->topics, &s->walk);
}

void topics_stats_start(struct topics_stats *s, struct topics *t)
{
    s->topics = t;
    s->ticked_us = loop_now(topics_loop(t));
    s->tick.run = tick;
    arm(s);
}

void topics_stats_stop(struct topics_stats *s)
{
    loop_cancel(topics_loop(s->topics), &s->tick);
}
