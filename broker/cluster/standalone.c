/* The only broker of its cluster: everything is its own. */
#include "broker/cluster/ownership.h"
#include "common/mem.h"

struct standalone {
    struct ownership base;
    const struct broker_urls *self;
};

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

static void close_it(struct ownership *o)
{
    mem_free(container_of(o, struct standalone, base));
}

static const struct ownership_ops ops = {.find = find, .close = close_it};

struct ownership *ownership_standalone(const struct broker_urls *self)
{
    struct standalone *s = mem_new(struct standalone);

    s->base.ops = &ops;
    s->self = self;
    return &s->base;
}
