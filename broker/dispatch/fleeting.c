#include "broker/dispatch/fleeting.h"

#include <assert.h>

/* No client has so many; it only keeps the arithmetic from overflowing. */
#define PERMITS_MAX ((int64_t)1 << 40)

static struct fleeting_consumer *at(struct list_node *n)
{
    return list_entry(n, struct fleeting_consumer, node);
}

void fleeting_init(struct fleeting *p, size_t on_way_max)
{
    *p = (struct fleeting){.on_way_max = on_way_max};
    list_init(&p->consumers);
}

/* Behind all of its level: from the back, for most have but one. */
static void line_up(struct fleeting *p, struct fleeting_consumer *c)
{
    struct list_node *before = &p->consumers;

    while (before->prev != &p->consumers && at(before->prev)->priority > c->priority)
        before = before->prev;
    list_push_back(before, &c->node);
}

void fleeting_came(struct fleeting *p, struct fleeting_consumer *c, int32_t priority)
{
    *c = (struct fleeting_consumer){.priority = priority};
    list_init(&c->node);
    line_up(p, c);
}

void fleeting_left(struct fleeting_consumer *c)
{
    list_remove(&c->node);
}

void fleeting_flow(struct fleeting_consumer *c, uint32_t permits)
{
    if (c->permits < PERMITS_MAX)
        c->permits += permits;
}

bool fleeting_takes(const struct fleeting *p, const struct fleeting_consumer *c, size_t bytes)
{
    const bool has_room =
        c->on_way == 0 || (c->on_way < p->on_way_max && bytes <= p->on_way_max - c->on_way);

    return c->permits > 0 && has_room;
}

struct fleeting_consumer *fleeting_choose(struct fleeting *p, uint32_t messages, size_t bytes,
                                          enum fleeting_room room)
{
    if (room == FLEETING_NONE)
        return NULL;
    list_each(&p->consumers, n)
    {
        struct fleeting_consumer *c = at(n);
        if (!fleeting_takes(p, c, bytes) || (room == FLEETING_SCARCE && c->on_way > 0))
            continue;
        c->permits -= messages;
        c->on_way += bytes;
        list_remove(n);
        line_up(p, c);
        return c;
    }
    return NULL;
}

void fleeting_delivered(struct fleeting_consumer *c, size_t bytes)
{
    assert(c->on_way >= bytes);
    c->on_way -= bytes;
}
