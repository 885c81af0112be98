/* etcd_order.h - whose turn it is: calls that touch the same key happen in their order.
 *
 * etcd answers the calls of one connection in any order.  A call therefore waits for those
 * before it that it must not overtake: writes of a key for all before them on that key, reads
 * for the writes, and lists for the writes under their prefix and the other way round.
 *
 *   order_enter -> true: go | false: ready() will say when -> ... -> order_leave
 *
 * Memory:  a turn is its owner's and must stay put from enter to leave; keys are borrowed
 *          until then.
 * Threads: one at a time.
 */
#ifndef METADATA_ETCD_ORDER_H
#define METADATA_ETCD_ORDER_H

#include <stdbool.h>
#include <stddef.h>

#include "common/list.h"

struct order_lane;
struct turn;

/* A key that a turn touches. */
struct claim {
    struct list_node node; /* in its lane */
    struct turn *turn;
    struct order_lane *lane;
    const char *key;
    bool writes;
    bool granted;
};

struct turn {
    struct claim *claims; /* of different keys, set by the owner as the next */
    size_t n;
    const char *prefix;      /* of a list, or NULL */
    unsigned waits_for;      /* 0: it may go */
    struct list_node blocks; /* edges to those that wait for this as a whole */
    struct list_node node;   /* among the lists */
};

struct order {
    struct order_lane *lanes; /* a hash by key */
    struct list_node lists;
    void (*ready)(struct turn *t); /* called from order_leave() */
};

void order_init(struct order *o, void (*ready)(struct turn *t));
bool order_enter(struct order *o, struct turn *t);
void order_leave(struct order *o, struct turn *t);

#endif
