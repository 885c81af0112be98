#include "broker/admin/visits.h"

#include <stdio.h>
#include <string.h>

#include "common/mem.h"

static void free_visit(struct errand *e)
{
    struct visit *v = container_of(e, struct visit, errand);

    mem_free(v->subscription);
    mem_free(v->words);
    slice_drop(&v->entry);
    json_object_put(v->json);
    pairs_drop(&v->properties);
    mem_free(v->name);
    mem_free(v);
}

struct visit *visit_new(struct job *j, const struct topic_name *n,
                        void (*at)(struct visit *v, struct topic *t))
{
    struct visit *v = mem_new(struct visit);

    errand_begin(&v->errand, free_visit);
    v->at = at;
    v->name = mem_string(n->full);
    v->topics = topics_of(j->admin->env.topics, v->name);
    return v;
}

void visit_drop(struct visit *v)
{
    errand_drop(&v->errand);
}

void visit_end(struct visit *v, enum err err, const char *why)
{
    v->err = err;
    snprintf(v->why, sizeof(v->why), "%s", why ? why : err_text(err));
    errand_end(&v->errand);
}

void visit_leaves(struct visit *v, enum err err, const char *why)
{
    struct topic *t = v->topic;

    visit_end(v, err, why);
    topic_lets_go(t);
}

static void arrived(struct topics_call *c, enum err err, struct topic *t, const char *why)
{
    struct visit *v = container_of(c, struct visit, call);

    if (err)
        visit_end(v, err, err == ERR_TOPIC_NOT_FOUND ? "Topic not found" : why);
    else
        v->at(v, t);
}

static void leave_home(struct task *t)
{
    struct visit *v = container_of(t, struct visit, task);

    if (v->make && topics_has(v->topics, v->name)) {
        visit_end(v, ERR_EXISTS, "This topic already exists");
        return;
    }
    v->call = (struct topics_call){
        .name = v->name, .create = v->create, .ordered = v->make, .done = arrived};
    topics_get(v->topics, &v->call);
}

bool visit_go(struct job *j, struct visit *v)
{
    v->task.run = leave_home;
    loop_post(topics_loop(v->topics), &v->task);
    bool back = errand_wait(&v->errand);
    if (back && !v->err)
        return true;
    if (back)
        job_fail(j, v->err, v->why);
    else
        job_refuse(j, 503, "the topic did not answer in time");
    visit_drop(v);
    return false;
}
