#include "metadata/etcd_order.h"

#include <assert.h>
#include <stdint.h>
#include <string.h>

#include "common/mem.h"
#include "common/table.h"

struct order_lane {
    struct list_node claims; /* in the order of entering */
    char *key;
    UT_hash_handle hh;
};

/* One turn that waits for another's end. */
struct edge {
    struct list_node node;
    struct turn *waiter;
};

void order_init(struct order *o, void (*ready)(struct turn *t))
{
    o->lanes = NULL;
    o->ready = ready;
    list_init(&o->lists);
}

static bool under(const char *prefix, const char *key)
{
    return strncmp(key, prefix, strlen(prefix)) == 0;
}

static void wait_for(struct turn *waiter, struct turn *other)
{
    struct edge *e = mem_new(struct edge);

    e->waiter = waiter;
    waiter->waits_for++;
    list_push_back(&other->blocks, &e->node);
}

/* ---- lanes ---------------------------------------------------------------------------------- */

static struct order_lane *lane_of(struct order *o, const char *key)
{
    struct order_lane *lane;

    HASH_FIND_STR(o->lanes, key, lane);
    if (lane)
        return lane;
    lane = mem_new(struct order_lane);
    lane->key = mem_string(key);
    list_init(&lane->claims);
    HASH_ADD_KEYPTR(hh, o->lanes, lane->key, strlen(lane->key), lane);
    return lane;
}

/* Only reads stand before it, and they have been let in. */
static bool may_be_granted(const struct order_lane *lane, const struct claim *c)
{
    const struct list_node *before = c->node.prev;

    if (before == &lane->claims)
        return true;
    const struct claim *b = list_entry((struct list_node *)(uintptr_t)before, struct claim, node);
    return !c->writes && !b->writes && b->granted;
}

static void enter_lane(struct order *o, struct turn *t, struct claim *c)
{
    c->turn = t;
    c->lane = lane_of(o, c->key);
    list_push_back(&c->lane->claims, &c->node);
    c->granted = may_be_granted(c->lane, c);
    if (!c->granted)
        t->waits_for++;
    if (!c->writes)
        return;
    list_each(&o->lists, n)
    {
        struct turn *list = list_entry(n, struct turn, node);
        if (under(list->prefix, c->key))
            wait_for(t, list);
    }
}

static void may_go(struct order *o, struct turn *t)
{
    assert(t->waits_for > 0);
    if (--t->waits_for == 0)
        o->ready(t);
}

/* Those at the front, as far as they may go together.  ready() only takes note, so that the
 * lane stays as it is meanwhile. */
static void grant(struct order *o, struct order_lane *lane)
{
    list_each(&lane->claims, n)
    {
        struct claim *c = list_entry(n, struct claim, node);
        if (c->granted)
            continue;
        if (!may_be_granted(lane, c))
            break;
        c->granted = true;
        may_go(o, c->turn);
    }
}

static void leave_lane(struct order *o, struct claim *c)
{
    struct order_lane *lane = c->lane;

    list_remove(&c->node);
    if (!list_empty(&lane->claims)) {
        if (!list_entry(lane->claims.next, struct claim, node)->granted)
            grant(o, lane);
        return;
    }
    HASH_DEL(o->lanes, lane);
    mem_free(lane->key);
    mem_free(lane);
}

/* ---- turns ---------------------------------------------------------------------------------- */

static void enter_list(struct order *o, struct turn *t)
{
    struct order_lane *lane, *next;

    HASH_ITER(hh, o->lanes, lane, next)
    {
        if (!under(t->prefix, lane->key))
            continue;
        list_each(&lane->claims, n)
        {
            struct claim *c = list_entry(n, struct claim, node);
            if (c->writes)
                wait_for(t, c->turn);
        }
    }
    list_push_back(&o->lists, &t->node);
}

bool order_enter(struct order *o, struct turn *t)
{
    t->waits_for = 0;
    list_init(&t->blocks);
    list_init(&t->node);
    for (size_t i = 0; i < t->n; i++)
        enter_lane(o, t, &t->claims[i]);
    if (t->prefix)
        enter_list(o, t);
    return t->waits_for == 0;
}

void order_leave(struct order *o, struct turn *t)
{
    struct list_node *n;

    assert(t->waits_for == 0);
    list_remove(&t->node);
    while ((n = list_pop_front(&t->blocks))) {
        struct edge *e = list_entry(n, struct edge, node);
        may_go(o, e->waiter);
        mem_free(e);
    }
    for (size_t i = 0; i < t->n; i++)
        leave_lane(o, &t->claims[i]);
}
