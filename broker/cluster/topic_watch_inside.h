/* topic_watch_inside.h - what topic_watch.c and namespace_names.c know of each other. */
#ifndef BROKER_CLUSTER_TOPIC_WATCH_INSIDE_H
#define BROKER_CLUSTER_TOPIC_WATCH_INSIDE_H

#include "broker/cluster/follower.h"
#include "broker/cluster/topic_watch.h"
#include "common/table.h"

struct topic_watches {
    struct loop *home;
    struct metadata *meta;
    struct namespace_names *by_name;
    size_t names, views, viewed;
    unsigned going; /* of those who are not in the table any more */
    void (*idle)(void *ctx);
    void *ctx;
};

/* A pattern's view, and those who share it. */
struct shared_view {
    struct namespace_names *names;
    struct topic_view view;
    struct list_node node, work; /* in names.views; in names.work while there is some */
    struct list_node watches;
    bool due;     /* the batch is to be taken */
    bool changed; /* and those who share it are to be told */
    bool joined;  /* somebody has not been told yet */
    bool telling; /* stays until all were told */
    size_t viewed;
};

/* The names of one namespace. */
struct namespace_names {
    UT_hash_handle hh;
    struct topic_watches *home;
    char *prefix; /* of the keys; the table's key */
    char *domain; /* "persistent://t/ns/" */
    struct follower follower;
    bool listed;   /* once */
    bool settled;  /* all that was listed at first is in `all` */
    bool too_many; /* to be given up */
    bool stepping; /* stays until the step is over */
    bool stopping;
    struct list_node pending; /* followed names that may have changed */
    struct name_list all;     /* as the views see them */
    struct list_node views, work;
    struct name_list added, removed; /* the batch */
    struct timer step;
    uint64_t busy_us; /* that the last batch took */
};

struct namespace_names *namespace_names_get(struct topic_watches *home, const char *tenant,
                                            const char *ns, const char *prefix); /* or made */
/* Is anybody still there?  If not, it goes, now or when its last question is answered. */
void namespace_names_settle(struct namespace_names *n);
void namespace_names_soon(struct namespace_names *n); /* a view has work */

void shared_view_tell(struct shared_view *v);
void shared_view_fail(struct shared_view *v, enum err err); /* ends all who share it */
void shared_view_settle(struct shared_view *v);             /* nobody left: it goes */

#endif
