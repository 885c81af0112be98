/* The only broker of its cluster: everything is its own. */
#include <stdint.h>

#include "broker/cluster/ownership.h"
#include "common/mem.h"

struct standalone {
    struct ownership base;
    struct broker_urls self;
};

static void answer(struct task *task)
{
    struct ownership_call *c = container_of(task, struct ownership_call, task);
    struct standalone *s = container_of(c->ownership, struct standalone, base);

    c->done(c, ERR_OK, true, &s->self);
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
    struct standalone *s = container_of(o, struct standalone, base);

    mem_free((char *)(uintptr_t)s->self.service);
    mem_free((char *)(uintptr_t)s->self.service_tls);
    mem_free((char *)(uintptr_t)s->self.web);
    mem_free((char *)(uintptr_t)s->self.web_tls);
    mem_free(s);
}

static const struct ownership_ops ops = {.find = find, .close = close_it};

struct ownership *ownership_standalone(const struct broker_urls *self)
{
    struct standalone *s = mem_new(struct standalone);

    s->base.ops = &ops;
    s->self.service = mem_string(self->service);
    s->self.service_tls = mem_string(self->service_tls);
    s->self.web = mem_string(self->web);
    s->self.web_tls = mem_string(self->web_tls);
    return &s->base;
}
