/* topic.h - one topic while it is loaded: what it is made of, who publishes, who subscribes.
 *
 *   LOADING --> READY --> LEAVING --> CLOSING --> gone
 *      \------------------------------------------^  (could not be loaded)
 *   LEAVING: the guests were told to go; CLOSING: all have left, the managed ledger closes.
 *
 * What differs between one that is stored and one that is not is its kind (kind.h).
 *
 * A topic whose managed ledger failed (another broker fenced it) goes the same way, so that
 * whoever comes back finds it loaded anew, here or elsewhere.
 *
 * Threads: the topic's loop.
 */
#ifndef BROKER_TOPIC_TOPIC_H
#define BROKER_TOPIC_TOPIC_H

#include "common/table.h"
#include <stdbool.h>

#include "broker/cluster/ownership.h"
#include "broker/managed_ledger/managed_ledger.h"
#include "broker/policy/topic_facts.h"
#include "broker/topic/access.h"
#include "broker/topic/topic_stats.h"
#include "broker/topic/topics.h"
#include "common/list.h"
#include "metadata/paths.h"

struct guest;
struct subscription;
struct topic_kind;
struct topic_producer;

enum topic_state { TOPIC_LOADING, TOPIC_READY, TOPIC_LEAVING, TOPIC_CLOSING, TOPIC_GONE };

struct topic {
    struct topics *topics;
    struct topic_name name;
    UT_hash_handle hh; /* in topics, by name.full */
    enum topic_state state;
    const struct topic_kind *kind;
    struct managed_ledger *ml; /* NULL: it is not stored */
    struct ml_owner owner;
    struct list_node waiting;       /* topics_call: for it to be loaded, or gone */
    struct list_node unloads;       /* topics_unload: for it to be gone */
    struct list_node producers;     /* guest.node: those who may publish */
    struct topic_producer *by_name; /* the same, and those who wait for that */
    struct access access;
    struct ml_call storing_epoch;
    int64_t new_epoch;
    struct list_node subscriptions; /* subscription.node */
    struct list_node deletes;       /* topic_delete_call */
    unsigned guests;                /* that point here */
    unsigned inside;                /* of them, admitted and not closed */
    unsigned under_way;             /* of our own: cursors being made or deleted */
    struct topic_stats stats;
    uint64_t load_us; /* when loading began */

    /* what its namespace says of it */
    struct ns_policies *policies; /* NULL: nothing; topic_policies_of() */
    bool policies_asked, policies_changed;

    /* loading */
    bool create, may_create; /* somebody wants it made; and it may be */
    bool unwanted;           /* to be closed as soon as it is loaded */
    bool is_partition;       /* of a topic that has so many */
    struct ml_call ml_call;
    struct task later; /* of one that is not stored: what would be its managed ledger's answer */
    uint64_t passed;   /* entries */
    bool unused;       /* nobody and nothing was there when that was last looked at */
};

struct topic *topic_new(struct topics *home, struct topic_name *name); /* takes name; gives */
void topic_load(struct topic *t, bool create);
void topic_free(struct topic *t); /* for topics.c */

static inline bool topic_is_ready(const struct topic *t)
{
    return t->state == TOPIC_READY;
}

/* It cannot be served here any more: tells its guests to go, closes, drops itself. */
void topic_fail(struct topic *t, enum err why);
/* The same, on purpose; one that is being loaded is closed when that has ended. */
void topic_close(struct topic *t);

/* Its cursors, its ledgers, then its node; one that is ready.  ERR_BUSY: somebody is in it, and
 * it is not by force.  When done() has come it is not there any more, or err says why. */
struct topic_delete_call {
    void (*done)(struct topic_delete_call *c, enum err err);
    struct list_node node; /* private */
};
void topic_delete(struct topic *t, bool force, struct topic_delete_call *c);
/* Nothing is published any more; producers are told to go, consumers when they have seen all. */
struct topic_terminate_call {
    void (*done)(struct topic_terminate_call *c, enum err err, struct position last);
    struct topic *topic; /* private, as the next */
    struct ml_terminate call;
};
void topic_terminate(struct topic *t, struct topic_terminate_call *c);

static inline bool topic_is_stored(const struct topic *t)
{
    return t->name.persistent;
}

/* ---- topic_policies.c ---- */
const struct ns_policies *topic_policies_of(const struct topic *t); /* borrows until the next */
void topic_policies_keep(struct topic *t, const struct ns_policies *ns);
void topic_policies_apply(struct topic *t);   /* to what was opened */
void topic_policies_changed(struct topic *t); /* perhaps: looks again */
/* What its namespace says, or else the settings; 0: no end. */
int64_t topic_limit(const struct topic *t, enum ns_limit which);
bool topic_is_over(const struct topic *t, enum ns_limit which, unsigned n); /* n are there */
bool topic_takes_type(const struct topic *t, const char *subscription_type);
bool topic_makes_subscriptions(const struct topic *t); /* because somebody asks for them */
bool topic_takes_subscription(const struct topic *t);  /* one more */

/* ---- for kinds ---- */
bool topic_somebody_would_create(const struct topic *t); /* of those who wait for it */
void topic_refuse_others(struct topic *t);               /* of them, who would not */
void topic_is_loaded(struct topic *t);
void topic_is_not_loaded(struct topic *t, enum err err, const char *why);
void topic_is_closed(struct topic *t, enum err err); /* never in the stack of close() */

/* ---- for guests and subscriptions ---- */
void topic_guest_came(struct topic *t);
void topic_guest_admitted(struct topic *t);
void topic_guest_closed(struct topic *t); /* one that was admitted */
void topic_guest_left(struct topic *t);   /* may free it */
void topic_holds(struct topic *t);
void topic_lets_go(struct topic *t); /* may free it */

#endif
