/* visits.h - a clerk sends something to be done at a topic, on its loop.
 *
 *   visit_new -> its fields -> visit_go: topic loaded -> at(v, topic) ... visit_end()
 *             <- true: read what at() left in it -> visit_drop
 *             <- false: the job was answered with why not; it was dropped
 *
 * Threads: at() and what it starts on the topic's loop, the rest on the clerk's.
 */
#ifndef BROKER_ADMIN_VISITS_H
#define BROKER_ADMIN_VISITS_H

#include "broker/admin/errand.h"
#include "broker/admin/jobs.h"
#include "broker/managed_ledger/cursor.h"
#include "broker/managed_ledger/pairs.h"
#include "broker/topic/seek.h"
#include "broker/topic/topic.h"

struct visit {
    void (*at)(struct visit *v, struct topic *t);
    bool create; /* the topic, if it is absent and may be made */
    bool make;   /* it, which must not be there, whatever the namespace says of that */
    bool force;
    char *subscription;       /* the visit's, as the next */
    json_object *json;        /* what at() found */
    struct pairs properties;  /* for at() */
    struct position position; /* to or from at() */
    struct slice entry;       /* from at() */
    int64_t n;
    struct seek seek; /* where to */
    uint64_t *words;  /* the visit's: of the seek */
    enum err failed;

    enum err err; /* private, as the rest */
    char why[192];
    struct errand errand;
    struct task task;
    struct topics *topics;
    char *name;
    struct topics_call call;
    struct topic *topic;
    struct ml_cursor_call cursor_call;
    struct cursor_ack_call ack_call;
    struct topic_delete_call delete_call;
    struct topic_terminate_call terminate_call;
    struct ml_read read;
    struct ml_find find;
};

struct visit *visit_new(struct job *j, const struct topic_name *n,
                        void (*at)(struct visit *v, struct topic *t)); /* gives */
bool visit_go(struct job *j, struct visit *v);                         /* takes it when false */
void visit_drop(struct visit *v);

/* ---- the topic's loop ---- */
void visit_end(struct visit *v, enum err err, const char *why); /* why NULL: what err says */
static inline void visit_stays(struct visit *v, struct topic *t)
{
    v->topic = t;
    topic_holds(t);
}
void visit_leaves(struct visit *v, enum err err, const char *why); /* ends one that stayed */

#endif
