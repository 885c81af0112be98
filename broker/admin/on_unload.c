/* Gives a bundle to another broker, or a topic back: what operators move load with. */
#include <string.h>

#include "broker/admin/errand.h"
#include "broker/admin/subject.h"
#include "broker/admin/visits.h"
#include "broker/cluster/ownership.h"
#include "broker/topic/topics.h"
#include "common/mem.h"

/* ---- a bundle: any broker may be asked ---- */

struct moving {
    struct admin *admin;
    struct http_request *request;
    struct ownership_move move;
};

static void moved(struct ownership_move *m, enum err err)
{
    struct moving *w = container_of(m, struct moving, move);
    struct admin *a = w->admin;

    if (err == ERR_NOT_FOUND)
        http_reply_reason(w->request, 412, "The namespace has no such bundle");
    else if (err == ERR_INVALID_NAME)
        http_reply_reason(w->request, 412, "The destination broker is not alive");
    else if (err)
        http_reply_reason(w->request, 503, "%s", err_text(err));
    else
        http_reply(w->request, 204, NULL, (struct view){0}); /* Java reads a body that has a type */
    mem_free(w);
    admin_lets_go(a);
}

void on_bundle_unload(struct admin *a, struct http_request *r, const struct segments_of_path *p)
{
    const char *to = http_query(r, "destinationBroker");
    char *bundle = mem_format("%s/%s/%s", p->at[0], p->at[1], p->at[2]);
    struct moving *w = mem_new(struct moving);

    *w = (struct moving){.admin = a, .request = r, .move = {.home = a->env.home, .done = moved}};
    admin_holds(a);
    ownership_move(a->env.ownership, bundle, to ? to : "", &w->move);
    mem_free(bundle);
}

/* ---- a topic: its owner closes it ---- */

struct unload_errand {
    struct errand errand;
    struct task task;
    struct topics *topics;
    struct topics_unload unload;
    char *name;
};

static void free_unload(struct errand *e)
{
    struct unload_errand *w = container_of(e, struct unload_errand, errand);

    mem_free(w->name);
    mem_free(w);
}

static void unloaded(struct topics_unload *u)
{
    errand_end(&container_of(u, struct unload_errand, unload)->errand);
}

static void unload(struct task *t)
{
    struct unload_errand *w = container_of(t, struct unload_errand, task);

    w->unload = (struct topics_unload){.name = w->name, .done = unloaded};
    topics_unload(w->topics, &w->unload);
}

static void unload_one(struct job *j, const struct subject *s)
{
    struct unload_errand *w = mem_new(struct unload_errand);

    errand_begin(&w->errand, free_unload);
    w->name = mem_string(s->name.full);
    w->topics = topics_of(j->admin->env.topics, w->name);
    w->task.run = unload;
    loop_post(topics_loop(w->topics), &w->task);
    if (errand_wait(&w->errand))
        job_done(j);
    else
        job_refuse(j, 503, "the topic is not closed yet");
    errand_drop(&w->errand);
}

static void at_nothing(struct visit *v, struct topic *t)
{
    (void)t;
    visit_end(v, ERR_OK, NULL);
}

/* What is not stored is there while it is loaded.  false: answered. */
static bool is_there(struct job *j, const struct subject *s)
{
    if (!s->name.persistent) {
        struct visit *v = visit_new(j, &s->name, at_nothing);
        bool there = visit_go(j, v);
        if (there)
            visit_drop(v);
        return there;
    }
    enum err err = subject_exists(j, s);
    if (err)
        job_fail(j, err, err == ERR_TOPIC_NOT_FOUND ? "Topic not found" : NULL);
    return !err;
}

void on_topic_unload(struct job *j)
{
    struct subject s;

    if (!subject_of(j, &s))
        return;
    if (!subject_all_partitions(j, &s) && subject_is_mine(j, &s) && is_there(j, &s))
        unload_one(j, &s);
    subject_drop(&s);
}
