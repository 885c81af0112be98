/* Gives a bundle to another broker, or a topic back: what operators move load with. */
#include <string.h>

#include "broker/admin/routes.h"
#include "broker/cluster/ownership.h"
#include "broker/policy/topic_facts.h"
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
        http_reply_text(w->request, 204, "");
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

struct unloading {
    struct admin *admin;
    struct http_request *request;
    struct topic_name name;
    char *path;
    struct ownership_call owner;
    struct topics *topics;
    struct topics_unload unload;
    struct task task; /* to the topic's loop, and back */
};

static void finish(struct unloading *w)
{
    struct admin *a = w->admin;

    topic_name_drop(&w->name);
    mem_free(w->path);
    mem_free(w);
    admin_lets_go(a);
}

static void arrive_back(struct task *t)
{
    struct unloading *w = container_of(t, struct unloading, task);

    http_reply_text(w->request, 204, "");
    finish(w);
}

static void unloaded(struct topics_unload *u)
{
    struct unloading *w = container_of(u, struct unloading, unload);

    w->task.run = arrive_back;
    loop_post(w->admin->env.home, &w->task);
}

static void unload(struct task *t)
{
    struct unloading *w = container_of(t, struct unloading, task);

    w->unload = (struct topics_unload){.name = w->name.full, .done = unloaded};
    topics_unload(w->topics, &w->unload);
}

static void redirect(struct unloading *w, const char *web)
{
    char *url = mem_format("%s%s", web, w->path);

    http_add_header(w->request, "Location", url);
    http_reply_text(w->request, 307, "");
    mem_free(url);
}

static void owner_known(struct ownership_call *c, enum err err, bool mine,
                        const struct broker_urls *at)
{
    struct unloading *w = container_of(c, struct unloading, owner);

    if (!err && mine) {
        w->topics = topics_of(w->admin->env.topics, w->name.full);
        w->task.run = unload;
        loop_post(topics_loop(w->topics), &w->task);
        return;
    }
    if (err)
        http_reply_reason(w->request, 503, "%s", err_text(err));
    else
        redirect(w, at->web);
    finish(w);
}

void on_topic_unload(struct admin *a, struct http_request *r, const struct segments_of_path *p)
{
    char *full = mem_format("%s://%s/%s/%s", p->at[0], p->at[1], p->at[2], p->at[3]);
    struct topic_name name;
    enum err err = topic_facts_name(full, &name);

    mem_free(full);
    if (err) {
        http_reply_reason(r, 412, "Topic name is not valid");
        return;
    }
    struct unloading *w = mem_new(struct unloading);
    *w = (struct unloading){.admin = a,
                            .request = r,
                            .name = name,
                            .path = mem_string(http_path(r)),
                            .owner = {.home = a->env.home, .done = owner_known}};
    admin_holds(a);
    ownership_find(a->env.ownership, w->name.full, &w->owner);
}
