#include "metadata/watch.h"

#include <pthread.h>
#include <string.h>

#include "common/mem.h"

struct watch_hub {
    pthread_mutex_t lock; /* guards all of it, and node, prefix and posted of each watch */
    struct list_node watches;
    struct list_node events; /* posted and not yet run */
    size_t bytes;            /* of their values */
    bool closed;             /* the last event frees */
};

struct event {
    struct task task;
    struct list_node node;
    struct watch_hub *hub;
    struct meta_watch *watch; /* NULL: it went away meanwhile */
    struct meta_change change;
};

struct watch_hub *watch_hub_new(void)
{
    struct watch_hub *h = mem_new(struct watch_hub);

    pthread_mutex_init(&h->lock, NULL);
    list_init(&h->watches);
    list_init(&h->events);
    return h;
}

static void hub_free(struct watch_hub *h)
{
    pthread_mutex_destroy(&h->lock);
    mem_free(h);
}

/* Takes the event off the hub's list; says whom to tell. */
static struct meta_watch *arrived(struct event *e)
{
    struct watch_hub *h = e->hub;
    struct meta_watch *w;
    bool last;

    pthread_mutex_lock(&h->lock);
    list_remove(&e->node);
    h->bytes -= e->change.value.len;
    w = e->watch;
    if (w)
        w->posted--;
    last = h->closed && list_empty(&h->events);
    pthread_mutex_unlock(&h->lock);
    if (last)
        hub_free(h);
    return w;
}

static void run(struct task *t)
{
    struct event *e = container_of(t, struct event, task);
    struct meta_watch *w = arrived(e);

    if (w)
        w->changed(w, &e->change);
    mem_free((char *)(uintptr_t)e->change.key);
    slice_drop(&e->change.value);
    mem_free(e);
}

static void post(struct watch_hub *h, struct meta_watch *w, const struct meta_change *c)
{
    struct event *e = mem_new(struct event);

    e->task.run = run;
    e->hub = h;
    e->watch = w;
    e->change = *c;
    e->change.key = mem_string(c->key);
    e->change.value = slice_share(c->value);
    list_push_back(&h->events, &e->node);
    h->bytes += c->value.len;
    w->posted++;
    loop_post(w->home, &e->task);
}

static void post_unsure(struct watch_hub *h, struct meta_watch *w, uint64_t revision)
{
    post(h, w,
         &(struct meta_change){
             .kind = META_CHANGED_UNSURE, .key = w->prefix, .version = -1, .revision = revision});
}

void watch_add(struct watch_hub *h, const char *prefix, struct meta_watch *w)
{
    pthread_mutex_lock(&h->lock);
    w->prefix = mem_string(prefix);
    w->posted = 0;
    list_push_back(&h->watches, &w->node);
    pthread_mutex_unlock(&h->lock);
}

void watch_remove(struct watch_hub *h, struct meta_watch *w)
{
    pthread_mutex_lock(&h->lock);
    list_remove(&w->node);
    list_each(&h->events, n)
    {
        struct event *e = list_entry(n, struct event, node);
        if (w->posted == 0)
            break;
        if (e->watch == w) {
            e->watch = NULL;
            w->posted--;
        }
    }
    mem_free(w->prefix);
    w->prefix = NULL;
    pthread_mutex_unlock(&h->lock);
}

/* A change that is left out is always followed, in the watch's queue, by an UNSURE that
 * has not run yet: the list made then shows the change. */
static void tell_one(struct watch_hub *h, struct meta_watch *w, const struct meta_change *c)
{
    if (w->posted >= WATCH_EVENTS_MAX)
        return;
    if (w->posted == WATCH_EVENTS_MAX - 1 || h->bytes + c->value.len > WATCH_BYTES_MAX)
        post_unsure(h, w, c->revision);
    else
        post(h, w, c);
}

void watch_tell(struct watch_hub *h, const struct meta_change *c)
{
    pthread_mutex_lock(&h->lock);
    list_each(&h->watches, n)
    {
        struct meta_watch *w = list_entry(n, struct meta_watch, node);
        if (strncmp(c->key, w->prefix, strlen(w->prefix)) == 0)
            tell_one(h, w, c);
    }
    pthread_mutex_unlock(&h->lock);
}

void watch_tell_unsure(struct watch_hub *h, uint64_t revision)
{
    pthread_mutex_lock(&h->lock);
    list_each(&h->watches, n)
    {
        struct meta_watch *w = list_entry(n, struct meta_watch, node);
        if (w->posted < WATCH_EVENTS_MAX)
            post_unsure(h, w, revision);
    }
    pthread_mutex_unlock(&h->lock);
}

void watch_hub_drop(struct watch_hub **hub)
{
    struct watch_hub *h = *hub;
    bool last;

    *hub = NULL;
    pthread_mutex_lock(&h->lock);
    list_each(&h->watches, n)
    {
        struct meta_watch *w = list_entry(n, struct meta_watch, node);
        list_remove(n);
        mem_free(w->prefix);
        w->prefix = NULL;
    }
    list_each(&h->events, n) list_entry(n, struct event, node)->watch = NULL;
    h->closed = true;
    last = list_empty(&h->events);
    pthread_mutex_unlock(&h->lock);
    if (last)
        hub_free(h);
}
