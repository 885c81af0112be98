/* topics.h - the topics of one loop: loaded when somebody asks, known by name, closed together.
 *
 *   topics_get -> ours? (ownership) -> namespace, partitions (facts) -> managed ledger opened
 *     \-- others who ask meanwhile join the load
 *
 * A topic of a bundle that went to another broker is closed (topics_lost), one that is being
 * loaded as soon as that has ended.  A topic lives on the loop that topics_of() gives for
 * its name.  One whose managed ledger failed is closed and dropped; who asks meanwhile waits
 * for that and gets it loaded anew.
 *
 * Threads: topics_of() any; the rest on the loop.
 * Limits:  `publish_budget` bytes of publishes of all topics wait for bookies at a time; a
 *          producer that would go past it is held back (producer.h).
 *          READS: `delivery_budget` is for entries that are being read or on their way to
 *          connections which do not take them.  At that many bytes a read waits; one for a
 *          subscription with a consumer that has nothing on its way goes on with a single
 *          entry up to twice as many, so that those who read are not held up by those who do
 *          not.  Whatever comes back lets the waiting go on, in turn.
 *          From MEMORY_LOW on the budget is halved with each level, and only what is in the
 *          cache is read; of the rest one entry at a time, for somebody who has nothing on its
 *          way: it is slow, but it ends.
 */
#ifndef BROKER_TOPIC_TOPICS_H
#define BROKER_TOPIC_TOPICS_H

#include <stdbool.h>
#include <stdint.h>

#include "broker/dispatch/fleeting.h"
#include "broker/policy/ns_policies.h"
#include "common/err.h"
#include "common/list.h"
#include "common/loop.h"
#include "common/mem_pool.h"

struct broker_conf;
struct broker_metrics;
struct metadata;
struct memory_guard;
struct ml_env;
struct ownership;
struct policies;
struct topic;
struct topics;
struct topics_stats;

/* What topics are made with; everything in it outlives them. */
struct topics_env {
    struct loop *home;
    struct metadata *meta;
    struct ml_env *ledgers;
    struct policies *policies; /* of this loop */
    struct ownership *ownership;
    struct broker_metrics *metrics;
    const struct memory_guard *memory; /* NULL: there is plenty */
    const struct broker_conf *conf;
    int64_t instance; /* no other loop of the cluster has it, now or later: makes producer names */
    size_t publish_budget;
    size_t delivery_budget;
};

struct topics *topics_new(const struct topics_env *env); /* gives; env is copied */
void topics_drop(struct topics **t);                     /* after topics_close() is done */
struct loop *topics_loop(const struct topics *t);
const struct topics_env *topics_env_of(const struct topics *t);

/* What the settings say, for namespaces that say nothing. */
struct topic_creation topics_creation(const struct broker_conf *conf);

struct topics_call {
    const char *name; /* full; borrowed until done() */
    bool create;      /* if it is absent and may be made */
    bool ordered;     /* by an administrator: it may be made, whatever the namespace says */
    /* May come in the caller's stack.  `t` is ready; `why` is a sentence. */
    void (*done)(struct topics_call *c, enum err err, struct topic *t, const char *why);
    struct list_node node; /* private */
};
void topics_get(struct topics *t, struct topics_call *c);

bool topics_has(const struct topics *t, const char *name); /* in whatever state */

/* No more loads (ERR_NOT_READY); every topic tells its guests to go and closes; then done(). */
void topics_close(struct topics *t, void (*done)(void *ctx), void *ctx);

/* The bundle is not this broker's any more. */
void topics_lost(struct topics *t, const char *bundle);

/* Closes one topic; who asks for it later gets it loaded anew. */
struct topics_unload {
    const char *name; /* full; borrowed until done() */
    /* Once it is gone; may come in the caller's stack when it was not loaded. */
    void (*done)(struct topics_unload *u);
    struct list_node node; /* private */
};
void topics_unload(struct topics *t, struct topics_unload *u);

/* "<cluster>-<instance>-<n>": gives. */
char *topics_producer_name(struct topics *t);

/* ---- publishes held back (for producer.c) ---- */
struct topics_held {
    struct list_node node;
    /* Goes on with one publish; false when it may not yet, or has none. */
    bool (*go_on)(struct topics_held *h);
};
bool topics_room(const struct topics *t, size_t bytes);
void topics_publishing(struct topics *t, size_t bytes);
void topics_published(struct topics *t, size_t bytes); /* the held go on at the end of the round */
void topics_hold(struct topics *t, struct topics_held *h); /* until list_remove() */

/* ---- entries on their way to consumers (for consumer.c, feed.c) ---- */
void topics_delivering(struct topics *t, size_t bytes);
void topics_delivered(struct topics *t, size_t bytes);
/* A read that may have to wait. */
struct topics_read {
    bool (*is_idle)(struct topics_read *r);              /* nothing is on its way for somebody */
    bool (*is_cached)(struct topics_read *r);            /* it begins with what is in memory */
    void (*go)(struct topics_read *r, size_t max_bytes); /* in the asker's stack, or later */
    size_t wants;                                        /* bytes, about */
    size_t max_bytes;
    bool cached_only; /* set for go(): it ends where the cache does */
    size_t reserved;  /* private, as the next */
    struct list_node node;
};
void topics_read(struct topics *t, struct topics_read *r);
void topics_read_end(struct topics *t, struct topics_read *r); /* done, or not wanted any more */
bool topics_read_waits(const struct topics_read *r);
void topics_read_on(struct topics *t); /* those that wait are looked at again, soon */

enum fleeting_room topics_fleeting_room(const struct topics *t); /* for what was not read */

/* ---- what is sent once a round (for feeds) ---- */
struct topics_due {
    struct list_node node;
    void (*run)(struct topics_due *d);
};
void topics_at_round_end(struct topics *t, struct topics_due *d); /* until list_remove() */

/* ---- looking at all of them ---- */

/* visit() for each topic that is there while the walk passes, in whatever state it is; then over().
 * A few a round, so that the loop does not stand still; the first in the caller's stack. */
struct topics_walk {
    void (*visit)(struct topics_walk *w, struct topic *t);
    void (*over)(struct topics_walk *w); /* the walk is the caller's again */
    struct topics *topics;               /* private, as the rest */
    struct topic *next;
    struct timer step;
    struct list_node node;
};
void topics_walk(struct topics *t, struct topics_walk *w);
struct topics_stats *topics_stats_of(struct topics *t);

/* ---- for topic.c, subscription.c ---- */
enum topics_pool { TOPICS_POOL_TOPIC, TOPICS_POOL_SUBSCRIPTION, TOPICS_POOLS };
struct mem_pool *topics_pool(struct topics *t, enum topics_pool which, size_t size);
void topics_gone(struct topics *t, struct topic *gone); /* takes it */

/* The tables of all loops. */
struct topics_map {
    unsigned n;
    struct topics *at[64];
};
struct topics *topics_of(const struct topics_map *m, const char *full_name);

#endif
