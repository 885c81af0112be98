#include "broker/topic/topics.h"

#include <assert.h>
#include <string.h>

#include "broker/broker.h"
#include "broker/cluster/ranges.h"
#include "broker/metrics.h"
#include "broker/topic/topic.h"
#include "broker/topic/topics_stats.h"
#include "common/memory_guard.h"

struct topics {
    struct topics_env env;
    struct topic *by_name;
    uint64_t names; /* of producers given out */

    size_t publishing; /* bytes with the managed ledgers */
    struct list_node held;
    struct round_end release;

    size_t delivering; /* bytes on their way to connections */
    size_t reading;    /* bytes that are being read for them */
    struct list_node reads;
    struct round_end resume;

    struct list_node due;
    struct round_end send;

    struct list_node walks;
    struct topics_stats stats;
    struct mem_pool *pools[TOPICS_POOLS];

    bool closing;
    void (*closed)(void *ctx);
    void *closed_ctx;
};

struct loop *topics_loop(const struct topics *t)
{
    return t->env.home;
}

const struct topics_env *topics_env_of(const struct topics *t)
{
    return &t->env;
}

struct mem_pool *topics_pool(struct topics *t, enum topics_pool which, size_t size)
{
    if (!t->pools[which])
        t->pools[which] = mem_pool_new(size);
    return t->pools[which];
}

char *topics_producer_name(struct topics *t)
{
    return mem_format("%s-%lld-%llu", t->env.conf->cluster, (long long)t->env.instance,
                      (unsigned long long)t->names++);
}

/* FNV-1a: it only spreads topics over loops, and may change with any release. */
struct topics *topics_of(const struct topics_map *m, const char *full_name)
{
    uint64_t h = 0xcbf29ce484222325u;

    for (const char *c = full_name; *c; c++)
        h = (h ^ (uint8_t)*c) * 0x100000001b3u;
    return m->at[(h ^ h >> 32) % m->n];
}

/* ---- asking for a topic ---- */

static struct topic *find(const struct topics *t, const char *name)
{
    struct topic *found;

    HASH_FIND_STR(t->by_name, name, found);
    return found;
}

bool topics_has(const struct topics *t, const char *name)
{
    return find(t, name) != NULL;
}

static void load(struct topics *t, struct topics_call *c)
{
    struct topic_name name;

    if (topic_facts_name(c->name, &name)) {
        c->done(c, ERR_INVALID_NAME, NULL, "not a topic's name");
        return;
    }
    struct topic *topic = topic_new(t, &name);
    HASH_ADD_KEYPTR(hh, t->by_name, topic->name.full, strlen(topic->name.full), topic);
    list_push_back(&topic->waiting, &c->node);
    topic_load(topic, c->create);
}

struct topic_creation topics_creation(const struct broker_conf *conf)
{
    bool partitioned = strcmp(conf->auto_topic_type, "partitioned") == 0;

    return (struct topic_creation){
        .allowed = conf->auto_topic_creation,
        .partitions = partitioned ? (int32_t)conf->default_partitions : 0,
    };
}

void topics_get(struct topics *t, struct topics_call *c)
{
    if (t->closing) {
        c->done(c, ERR_NOT_READY, NULL, "the topic is being unloaded: the broker stops");
        return;
    }
    struct topic *topic = find(t, c->name);
    if (!topic)
        load(t, c);
    else if (topic_is_ready(topic))
        c->done(c, ERR_OK, topic, "");
    else
        list_push_back(&topic->waiting, &c->node);
}

/* ---- looking at all of them ---- */

enum { WALK_STEP = 64 };

/* A topic that goes is no longer the next one. */
static void walks_pass(struct topics *t, const struct topic *gone)
{
    list_each(&t->walks, n)
    {
        struct topics_walk *w = list_entry(n, struct topics_walk, node);
        if (w->next == gone)
            w->next = gone->hh.next;
    }
}

static void walk_on(struct timer *timer)
{
    struct topics_walk *w = container_of(timer, struct topics_walk, step);

    for (unsigned i = 0; w->next && i < WALK_STEP; i++) {
        struct topic *one = w->next;
        w->next = one->hh.next;
        w->visit(w, one);
    }
    if (w->next) {
        loop_after(w->topics->env.home, &w->step, 0); /* in another round */
        return;
    }
    list_remove(&w->node);
    w->over(w);
}

void topics_walk(struct topics *t, struct topics_walk *w)
{
    w->topics = t;
    w->next = t->by_name;
    w->step = (struct timer){.run = walk_on};
    list_push_back(&t->walks, &w->node);
    walk_on(&w->step);
}

struct topics_stats *topics_stats_of(struct topics *t)
{
    return &t->stats;
}

/* ---- the end of topics ---- */

static void tell_if_closed(struct topics *t)
{
    if (t->closing && !t->by_name && t->closed) {
        void (*closed)(void *ctx) = t->closed;
        t->closed = NULL;
        closed(t->closed_ctx);
    }
}

static void move_all(struct list_node *from, struct list_node *to)
{
    list_init(to);
    for (struct list_node *n; (n = list_pop_front(from));)
        list_push_back(to, n);
}

/* Those who waited for it to be gone ask anew. */
void topics_gone(struct topics *t, struct topic *gone)
{
    struct list_node waiting, unloads;

    walks_pass(t, gone);
    HASH_DEL(t->by_name, gone);
    move_all(&gone->waiting, &waiting);
    move_all(&gone->unloads, &unloads);
    topic_free(gone);
    for (struct list_node *n; (n = list_pop_front(&unloads));) {
        struct topics_unload *u = list_entry(n, struct topics_unload, node);
        u->done(u);
    }
    for (struct list_node *n; (n = list_pop_front(&waiting));)
        topics_get(t, list_entry(n, struct topics_call, node));
    tell_if_closed(t);
}

void topics_lost(struct topics *t, const char *bundle)
{
    struct topic *one, *next;

    HASH_ITER(hh, t->by_name, one, next)
    if (bundle_has_topic(bundle, one->name.full))
        topic_close(one);
}

void topics_unload(struct topics *t, struct topics_unload *u)
{
    struct topic *topic = find(t, u->name);

    if (!topic) {
        u->done(u);
        return;
    }
    list_push_back(&topic->unloads, &u->node);
    topic_close(topic);
}

void topics_close(struct topics *t, void (*done)(void *ctx), void *ctx)
{
    struct topic *one, *next;

    t->closing = true;
    t->closed = done;
    t->closed_ctx = ctx;
    HASH_ITER(hh, t->by_name, one, next)
    topic_close(one);
    tell_if_closed(t);
}

/* ---- publishes held back ---- */

bool topics_room(const struct topics *t, size_t bytes)
{
    return t->publishing == 0 || t->publishing + bytes <= t->env.publish_budget;
}

void topics_publishing(struct topics *t, size_t bytes)
{
    t->publishing += bytes;
    metric_add(&t->env.metrics->publishing, (int64_t)bytes);
}

void topics_published(struct topics *t, size_t bytes)
{
    assert(t->publishing >= bytes);
    t->publishing -= bytes;
    metric_add(&t->env.metrics->publishing, -(int64_t)bytes);
    if (!list_empty(&t->held))
        loop_at_round_end(t->env.home, &t->release);
}

void topics_hold(struct topics *t, struct topics_held *h)
{
    list_push_back(&t->held, &h->node);
}

/* One publish each in turn, so that none of the held waits for the greediest. */
static void release(struct round_end *r)
{
    struct topics *t = container_of(r, struct topics, release);
    bool went = true;

    while (went) {
        went = false;
        list_each(&t->held, n) went |=
            list_entry(n, struct topics_held, node)->go_on(list_entry(n, struct topics_held, node));
    }
}

/* ---- entries on their way ---- */

static void resume_soon(struct topics *t)
{
    if (!list_empty(&t->reads))
        loop_at_round_end(t->env.home, &t->resume);
}

void topics_delivering(struct topics *t, size_t bytes)
{
    t->delivering += bytes;
    metric_add(&t->env.metrics->dispatching, (int64_t)bytes);
}

void topics_delivered(struct topics *t, size_t bytes)
{
    assert(t->delivering >= bytes);
    t->delivering -= bytes;
    metric_add(&t->env.metrics->dispatching, -(int64_t)bytes);
    resume_soon(t);
}

/* ---- reads for them ---- */

enum { ONE_ENTRY = 1 }; /* bytes: at least one entry is read whatever its size */

/* How many bytes it may read now; 0: it waits. */
static size_t allowance(const struct topics *t, struct topics_read *r)
{
    const enum memory_level level = memory_guard_level(t->env.memory);
    const size_t used = t->delivering + t->reading, budget = t->env.delivery_budget >> level;

    r->cached_only = level >= MEMORY_LOW && r->is_cached(r);
    if (level >= MEMORY_LOW && !r->cached_only)
        return t->reading == 0 && r->is_idle(r) ? ONE_ENTRY : 0;
    if (used < budget)
        return r->max_bytes;
    return used < 2 * budget && r->is_idle(r) ? ONE_ENTRY : 0;
}

static void go(struct topics *t, struct topics_read *r, size_t bytes)
{
    r->reserved = r->wants < r->max_bytes ? r->wants : r->max_bytes;
    t->reading += r->reserved;
    metric_add(&t->env.metrics->dispatching, (int64_t)r->reserved);
    r->go(r, bytes);
}

static void resume(struct round_end *end)
{
    struct topics *t = container_of(end, struct topics, resume);

    list_each(&t->reads, n)
    {
        struct topics_read *r = list_entry(n, struct topics_read, node);
        const size_t bytes = allowance(t, r);
        if (bytes == 0)
            continue;
        list_remove(n);
        go(t, r, bytes);
    }
}

void topics_read(struct topics *t, struct topics_read *r)
{
    const size_t bytes = allowance(t, r);

    if (bytes > 0 && list_empty(&t->reads)) {
        go(t, r, bytes);
        return;
    }
    list_push_back(&t->reads, &r->node);
    resume_soon(t);
}

void topics_read_end(struct topics *t, struct topics_read *r)
{
    assert(t->reading >= r->reserved);
    t->reading -= r->reserved;
    metric_add(&t->env.metrics->dispatching, -(int64_t)r->reserved);
    r->reserved = 0;
    list_remove(&r->node);
    resume_soon(t);
}

bool topics_read_waits(const struct topics_read *r)
{
    return !list_empty(&r->node);
}

void topics_read_on(struct topics *t)
{
    resume_soon(t);
}

enum fleeting_room topics_fleeting_room(const struct topics *t)
{
    const size_t used = t->delivering + t->reading;

    if (used < t->env.delivery_budget)
        return FLEETING_PLENTY;
    return used < 2 * t->env.delivery_budget ? FLEETING_SCARCE : FLEETING_NONE;
}

/* ---- what is sent once a round ---- */

static void send_due(struct round_end *r)
{
    struct topics *t = container_of(r, struct topics, send);

    for (struct list_node *n; (n = list_pop_front(&t->due));) {
        struct topics_due *d = list_entry(n, struct topics_due, node);
        d->run(d);
    }
}

void topics_at_round_end(struct topics *t, struct topics_due *d)
{
    if (!list_empty(&d->node))
        return;
    list_push_back(&t->due, &d->node);
    loop_at_round_end(t->env.home, &t->send);
}

/* ---- what namespaces say ---- */

static bool is_in(const struct topic *t, const char *ns)
{
    size_t tenant = strlen(t->name.tenant);

    return !ns || (strncmp(ns, t->name.tenant, tenant) == 0 && ns[tenant] == '/' &&
                   strcmp(ns + tenant + 1, t->name.ns) == 0);
}

static void policies_changed(void *ctx, const char *ns)
{
    struct topics *t = ctx;
    struct topic *one, *next;

    HASH_ITER(hh, t->by_name, one, next)
    if (is_in(one, ns))
        topic_policies_changed(one);
}

/* ---- life ---- */

struct topics *topics_new(const struct topics_env *env)
{
    struct topics *t = mem_new(struct topics);

    t->env = *env;
    t->release.run = release;
    t->resume.run = resume;
    t->send.run = send_due;
    list_init(&t->due);
    list_init(&t->reads);
    policies_listen(env->policies, policies_changed, t);
    list_init(&t->held);
    list_init(&t->walks);
    topics_stats_start(&t->stats, t);
    return t;
}

void topics_drop(struct topics **t)
{
    if (!*t)
        return;
    assert(!(*t)->by_name);
    topics_stats_stop(&(*t)->stats);
    list_each(&(*t)->walks, n)
        loop_cancel((*t)->env.home, &list_entry(n, struct topics_walk, node)->step);
    for (unsigned i = 0; i < TOPICS_POOLS; i++)
        mem_pool_drop(&(*t)->pools[i]);
    mem_free(*t);
    *t = NULL;
}
