/* topic_view.h - the topics of a namespace that a pattern means, and what changes: a pure core.
 *
 *   filter, filter .. -> hash, hash .. -> STEADY --change--> hash .. -> STEADY
 *
 * Each call does a bounded part of the work, so that whoever owns a view of a great many topics can
 * do other things in between.
 *
 * Memory:  names are borrowed from the owner: as long as they are in the view, and those that are
 *          `removed` until the next change.
 */
#ifndef BROKER_CLUSTER_TOPIC_VIEW_H
#define BROKER_CLUSTER_TOPIC_VIEW_H

#include "broker/cluster/name_list.h"
#include "broker/cluster/topic_pattern.h"

enum topic_view_state { VIEW_FILTERING, VIEW_HASHING, VIEW_STEADY, VIEW_FAILED };

struct topic_view {
    struct topic_pattern *pattern;
    enum topic_view_state state;
    struct name_list names;          /* that match, in order */
    struct name_list added, removed; /* by the last change, in order */
    size_t bytes;                    /* of names */
    name_hash_text hash;             /* of names, when STEADY */
    size_t at;                       /* private, as the next */
    struct name_hash hashing;
};

void topic_view_init(struct topic_view *v, struct topic_pattern *pattern); /* takes pattern */
void topic_view_drop(struct topic_view *v);

/* Looks at so many more of all names (in order; the same ones until it is done), or hashes so many.
 * FAILED: the pattern is too much work. */
void topic_view_work(struct topic_view *v, const struct name_list *all, size_t most);
/* Of a STEADY view; both in order.  A name that the pattern has too much work with is not meant. */
void topic_view_change(struct topic_view *v, const struct name_list *added,
                       const struct name_list *removed);

#endif
