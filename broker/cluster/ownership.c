#include "broker/cluster/ownership.h"

#include <string.h>

#include "common/mem.h"

const char *broker_urls_host(const struct broker_urls *u)
{
    const char *at = strstr(*u->web ? u->web : u->web_tls, "://");

    return at ? at + strlen("://") : "";
}

void ownership_find(struct ownership *o, const char *topic, struct ownership_call *c)
{
    o->ops->find(o, topic, c);
}

void ownership_move(struct ownership *o, const char *bundle, const char *to,
                    struct ownership_move *m)
{
    o->ops->move(o, bundle, to, m);
}

void ownership_watch(struct ownership *o, struct ownership_watch *w)
{
    list_push_back(&o->watches, &w->node);
}

void ownership_start(struct ownership *o, const char *id, void (*done)(void *ctx, enum err err),
                     void *ctx)
{
    o->ops->start(o, id, done, ctx);
}

void ownership_stop(struct ownership *o, void (*done)(void *ctx), void *ctx)
{
    o->ops->stop(o, done, ctx);
}

void ownership_close(struct ownership **o)
{
    if (*o)
        (*o)->ops->close(*o);
    *o = NULL;
}

/* ---- losses on their way ---- */

struct loss {
    struct task task;
    struct ownership_watch *watch;
    char *bundle;
};

static void arrive(struct task *t)
{
    struct loss *l = container_of(t, struct loss, task);

    l->watch->lost(l->watch, l->bundle);
    mem_free(l->bundle);
    mem_free(l);
}

void ownership_tell_lost(struct ownership *o, const char *bundle)
{
    list_each(&o->watches, n)
    {
        struct loss *l = mem_new(struct loss);
        l->task.run = arrive;
        l->watch = list_entry(n, struct ownership_watch, node);
        l->bundle = mem_string(bundle);
        loop_post(l->watch->home, &l->task);
    }
}
