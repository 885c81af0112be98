/* topic_watch.h - who watches which topics of a namespace: told what there is, then what changes.
 *
 *   metadata --follower--> names of a namespace --batches--> views (a pattern each) --> watches
 *
 * The names of a namespace are followed while somebody on this loop watches some of them, by
 * whichever broker they are made or deleted; the values of their nodes do not matter.  Those with
 * the same pattern share one view.  Changes are gathered for a moment; then each view takes them, a
 * bounded part of the work a round, however many topics there are.
 *
 * Memory:  a watch is the caller's and stays put until it is stopped, or has ended.
 * Threads: the loop's; callbacks never in the caller's stack.
 * Limits:  WATCH_NAMES_MAX topics followed, WATCH_VIEWS_MAX views with WATCH_VIEWED_MAX names
 *          together, a loop.
 */
#ifndef BROKER_CLUSTER_TOPIC_WATCH_H
#define BROKER_CLUSTER_TOPIC_WATCH_H

#include "broker/cluster/topic_view.h"
#include "common/list.h"
#include "metadata/metadata.h"

enum {
    WATCH_NAMES_MAX = 500000,
    WATCH_VIEWS_MAX = 1000,
    WATCH_VIEWED_MAX = 4000000,
};

struct topic_watches;

struct topic_watch {
    void (*began)(struct topic_watch *w);               /* view: names and their hash */
    void (*changed)(struct topic_watch *w);             /* view: added, removed, and the hash */
    void (*ended)(struct topic_watch *w, enum err err); /* ERR_TOO_BIG: more than is bounded */
    const struct topic_view *view;
    struct shared_view *shared; /* private, as the rest */
    struct list_node node;
    bool told;
};

struct topic_watches *topic_watches_new(struct loop *home, struct metadata *meta); /* gives */
void topic_watches_drop(struct topic_watches **w);                                 /* idle */
/* Nothing is watched, and nothing is left of what was; idle() whenever it becomes so. */
bool topic_watches_idle(const struct topic_watches *w);
void topic_watches_on_idle(struct topic_watches *w, void (*idle)(void *ctx), void *ctx);

/* Takes pattern.  ERR_BUSY: too many views; ERR_INVALID_NAME; then there is no watch. */
MUST_CHECK enum err topic_watch_start(struct topic_watches *all, const char *tenant, const char *ns,
                                      struct topic_pattern *pattern, struct topic_watch *w);
void topic_watch_stop(struct topic_watch *w); /* no callback follows */

#endif
