/* Why does nothing move?  The first reason, of a subscription or of a topic. */
#include <stdio.h>
#include <string.h>

#include "broker/admin/subject.h"
#include "broker/admin/visits.h"
#include "broker/topic/explain.h"
#include "broker/topic/kind.h"
#include "broker/topic/producer.h"
#include "broker/topic/subscription.h"
#include "common/mem.h"

static void text(json_object *o, const char *key, const char *value)
{
    json_object_object_add(o, key, json_object_new_string(value));
}

static json_object *explained(const struct explanation *e)
{
    json_object *o = json_object_new_object();
    char sentence[256];

    explain_sentence(e, sentence, sizeof(sentence));
    text(o, "reason", explain_word(e->reason));
    text(o, "sentence", sentence);
    json_object_object_add(o, "backlog", json_object_new_int64(e->backlog));
    json_object_object_add(o, "consumers", json_object_new_int64(e->consumers));
    if (*e->consumer)
        text(o, "consumer", e->consumer);
    json_object_object_add(o, "unacked", json_object_new_int64(e->unacked));
    json_object_object_add(o, "permits", json_object_new_int64(e->permits));
    return o;
}

static void at_subscription(struct visit *v, struct topic *t)
{
    struct explanation e;
    enum err err = explain_here(t, v->subscription, &e);

    if (!err)
        v->json = explained(&e);
    visit_end(v, err, err ? "Subscription not found" : NULL);
}

/* ---- of a topic: of its producers first ---- */

static const struct {
    const char *state, *reason, *sentence;
} producing[] = {
    {"LedgerOpened", "moving", "publishes are stored as they come"},
    {"ClosedLedger", "moving", "nothing is being published: the next publish opens a ledger"},
    {"WriteFailed", "no-quorum", "publishes wait for enough bookies to store them"},
    {"CreatingLedger", "creating-ledger", "publishes wait for their ledger to be made"},
    {"ClosingLedger", "closing-ledger", "publishes wait for the last ledger to be closed"},
    {"Terminated", "terminated", "the topic was terminated: nothing may be published"},
    {"Fenced", "fenced", "another broker has taken the topic"},
    {"Closed", "closed", "the topic is being closed"},
    {"Fleeting", "moving", "publishes go to whoever can take them, and are not stored"},
};

/* The names of those that are: session/put_off.h. */
static json_object *put_off(const struct topic *t)
{
    json_object *names = json_object_new_array();

    list_each(&t->producers, n)
    {
        struct topic_producer *p = topic_producer_of(list_entry(n, struct guest, node));
        if (atomic_load_explicit(&p->put_off, memory_order_relaxed))
            json_object_array_add(names, json_object_new_string(p->name ? p->name : ""));
    }
    return names;
}

static void say_put_off(json_object *o, const char *first, size_t n)
{
    char sentence[512];

    snprintf(sentence, sizeof(sentence),
             "producer %s%s sent more than there is room for while bookies are slow "
             "(maxMessagePublishBufferSizeInMB): it was closed, to come back and send again",
             first, n > 1 ? ", as others," : "");
    text(o, "reason", "put-off");
    text(o, "sentence", sentence);
}

static json_object *producers(const struct topic *t)
{
    const char *state = t->kind->state(t);
    const size_t pending = t->ml ? managed_ledger_pending_bytes(t->ml) : 0;
    json_object *o = json_object_new_object(), *off = put_off(t);
    const size_t n_off = json_object_array_length(off);
    bool moving = false;

    for (unsigned i = 0; i < sizeof(producing) / sizeof(producing[0]); i++) {
        if (strcmp(producing[i].state, state) != 0)
            continue;
        moving = strcmp(producing[i].reason, "moving") == 0;
        text(o, "reason", producing[i].reason);
        text(o, "sentence", producing[i].sentence);
    }
    if (moving && n_off > 0)
        say_put_off(o, json_object_get_string(json_object_array_get_idx(off, 0)), n_off);
    text(o, "state", state);
    json_object_object_add(o, "pendingBytes", json_object_new_int64((int64_t)pending));
    json_object_object_add(o, "putOff", off);
    return o;
}

struct walk {
    const struct topic *topic;
    json_object *all;
};

static void add_subscription(void *ctx, const char *name)
{
    struct walk *w = ctx;
    struct explanation e;

    if (!explain_here(w->topic, name, &e))
        json_object_object_add(w->all, name, explained(&e));
}

static void at_topic(struct visit *v, struct topic *t)
{
    struct walk w = {.topic = t, .all = json_object_new_object()};

    t->kind->subscriptions(t, add_subscription, &w);
    v->json = json_object_new_object();
    json_object_object_add(v->json, "producers", producers(t));
    json_object_object_add(v->json, "subscriptions", w.all);
    visit_end(v, ERR_OK, NULL);
}

static void explain(struct job *j, void (*at)(struct visit *v, struct topic *t),
                    const char *subscription)
{
    struct subject s;

    if (!subject_of(j, &s))
        return;
    if (!subject_refuses_whole(j, &s) && subject_is_mine(j, &s)) {
        struct visit *v = visit_new(j, &s.name, at);
        v->subscription = subscription ? mem_string(subscription) : NULL;
        if (visit_go(j, v)) {
            job_json_reply(j, json_object_get(v->json));
            visit_drop(v);
        }
    }
    subject_drop(&s);
}

void on_topic_explain(struct job *j)
{
    explain(j, at_topic, NULL);
}

void on_subscription_explain(struct job *j)
{
    explain(j, at_subscription, j->path.at[4]);
}

void on_topic_policy(struct job *j)
{
    job_refuse(j, 405, "Topic level policies are not supported yet: tell it to the namespace");
}
