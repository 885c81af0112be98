/* The only broker of its cluster: everything is its own. */
#include "broker/cluster/ownership.h"
#include "common/mem.h"

struct standalone {
    struct ownership base;
    const struct broker_urls *self;
};

static void start(struct ownership *o, const char *id, void (*done)(void *ctx, enum err err),
                  void *ctx)
{
    (void)o, (void)id;
    done(ctx, ERR_OK);
}

static void stop(struct ownership *o, void (*done)(void *ctx), void *ctx)
{
    (void)o;
    done(ctx);
}

static void answer(struct task *task)
{
    struct ownership_call *c = container_of(task, struct ownership_call, task);
    struct standalone *s = container_of(c->ownership, struct standalone, base);

    c->done(c, ERR_OK, true, s->self);
}

static void find(struct ownership *o, const char *topic, struct ownership_call *c)
{
    (void)topic;
    c->ownership = o;
    c->task.run = answer;
    loop_post(c->home, &c->task);
}

static void moved(struct task *task)
{
    struct ownership_move *m = container_of(task, struct ownership_move, task);

    m->done(m, ERR_OK);
}

static void moved_nowhere(struct task *task)
{
    struct ownership_move *m = container_of(task, struct ownership_move, task);

    m->done(m, ERR_INVALID_NAME);
}

/* Given up and taken again at once: its topics are closed, and loaded anew when asked for. */
static void move(struct ownership *o, const char *bundle, const char *to, struct ownership_move *m)
{
    if (!*to)
        ownership_tell_lost(o, bundle);
    m->task.run = *to ? moved_nowhere : moved;
    loop_post(m->home, &m->task);
}

static void close_it(struct ownership *o)
{
    mem_free(container_of(o, struct standalone, base));
}

static const struct ownership_ops ops = {start, stop, find, move, close_it};

struct ownership *ownership_standalone(const struct broker_urls *self)
{
    struct standalone *s = mem_new(struct standalone);

    s->base.ops = &ops;
    list_init(&s->base.watches);
    s->self = self;
    return &s->base;
}
