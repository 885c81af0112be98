/* list.h - an intrusive double list: no allocation, removal in one step.
 *
 * A list is a `struct list_node` whose neighbours are itself when it is empty.
 */
#ifndef COMMON_LIST_H
#define COMMON_LIST_H

#include <stdbool.h>

#include "common/mem.h"

struct list_node {
    struct list_node *prev;
    struct list_node *next;
};

static inline void list_init(struct list_node *l)
{
    l->prev = l->next = l;
}

static inline bool list_empty(const struct list_node *l)
{
    return l->next == l;
}

static inline void list_push_back(struct list_node *l, struct list_node *n)
{
    n->prev = l->prev;
    n->next = l;
    l->prev->next = n;
    l->prev = n;
}

static inline void list_push_front(struct list_node *l, struct list_node *n)
{
    list_push_back(l->next, n);
}

/* The node is then a list of its own, so that removing it twice is harmless. */
static inline void list_remove(struct list_node *n)
{
    n->prev->next = n->next;
    n->next->prev = n->prev;
    list_init(n);
}

static inline struct list_node *list_pop_front(struct list_node *l)
{
    struct list_node *n = l->next;
    if (n == l)
        return NULL;
    list_remove(n);
    return n;
}

#define list_entry(node, type, member) container_of(node, type, member)

/* `next_` is read before the body, so the body may remove the node. */
#define list_each(list, node)                                                              \
    for (struct list_node *node = (list)->next, *next_##node = node->next; node != (list); \
         node = next_##node, next_##node = node->next)

#endif
