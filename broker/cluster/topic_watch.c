#include "broker/cluster/topic_watch.h"

#include <assert.h>
#include <string.h>

#include "broker/cluster/topic_watch_inside.h"
#include "metadata/paths.h"

/* ---- views ---- */

static struct shared_view *find(struct namespace_names *n, const char *text)
{
    list_each(&n->views, node)
    {
        struct shared_view *v = list_entry(node, struct shared_view, node);
        if (strcmp(topic_pattern_text(v->view.pattern), text) == 0)
            return v;
    }
    return NULL;
}

static struct shared_view *add(struct namespace_names *n, struct topic_pattern *pattern)
{
    struct shared_view *v = mem_new(struct shared_view);

    v->names = n;
    topic_view_init(&v->view, pattern);
    list_init(&v->work);
    list_init(&v->watches);
    list_push_back(&n->views, &v->node);
    n->home->views++;
    return v;
}

void shared_view_settle(struct shared_view *v)
{
    struct namespace_names *n = v->names;

    if (v->telling || !list_empty(&v->watches))
        return;
    list_remove(&v->node);
    list_remove(&v->work);
    n->home->views--;
    n->home->viewed -= v->viewed;
    topic_view_drop(&v->view);
    mem_free(v);
    namespace_names_settle(n);
}

/* Any of them may stop any while it is told. */
void shared_view_tell(struct shared_view *v)
{
    struct list_node rest;

    list_init(&rest);
    for (struct list_node *n; (n = list_pop_front(&v->watches));)
        list_push_back(&rest, n);
    v->telling = true;
    for (struct list_node *n; (n = list_pop_front(&rest));) {
        struct topic_watch *w = list_entry(n, struct topic_watch, node);
        bool first = !w->told;
        list_push_back(&v->watches, n);
        w->told = true;
        if (first)
            w->began(w);
        else if (v->changed)
            w->changed(w);
    }
    v->telling = v->joined = v->changed = false;
    shared_view_settle(v);
}

void shared_view_fail(struct shared_view *v, enum err err)
{
    v->telling = true;
    for (struct list_node *n; (n = list_pop_front(&v->watches));) {
        struct topic_watch *w = list_entry(n, struct topic_watch, node);
        list_init(n);
        w->shared = NULL;
        w->ended(w, err);
    }
    v->telling = false;
    shared_view_settle(v);
}

/* ---- watches ---- */

enum err topic_watch_start(struct topic_watches *all, const char *tenant, const char *ns,
                           struct topic_pattern *pattern, struct topic_watch *w)
{
    char prefix[META_KEY_MAX];
    enum err err = path_topics(tenant, ns, prefix);

    if (err || all->views >= WATCH_VIEWS_MAX) {
        topic_pattern_drop(&pattern);
        return err ? ERR_INVALID_NAME : ERR_BUSY;
    }
    struct namespace_names *n = namespace_names_get(all, tenant, ns, prefix);
    struct shared_view *v = find(n, topic_pattern_text(pattern));
    if (v)
        topic_pattern_drop(&pattern);
    else
        v = add(n, pattern);
    w->shared = v;
    w->view = &v->view;
    w->told = false;
    list_push_back(&v->watches, &w->node);
    v->joined = true;
    namespace_names_soon(n);
    return ERR_OK;
}

void topic_watch_stop(struct topic_watch *w)
{
    struct shared_view *v = w->shared;

    if (!v)
        return;
    w->shared = NULL;
    list_remove(&w->node);
    shared_view_settle(v);
}

/* ---- life ---- */

struct topic_watches *topic_watches_new(struct loop *home, struct metadata *meta)
{
    struct topic_watches *w = mem_new(struct topic_watches);

    w->home = home;
    w->meta = meta;
    return w;
}

void topic_watches_drop(struct topic_watches **w)
{
    if (*w)
        assert(topic_watches_idle(*w));
    mem_free(*w);
    *w = NULL;
}

bool topic_watches_idle(const struct topic_watches *w)
{
    return !w->by_name && w->going == 0;
}

void topic_watches_on_idle(struct topic_watches *w, void (*idle)(void *ctx), void *ctx)
{
    w->idle = idle;
    w->ctx = ctx;
}
