/* fleeting.h - which consumer gets a message that is not stored: one that can take it now, or none.
 *
 *   publish --> fleeting_choose --> a consumer, its permits are taken, and it is the next ones'
 * turn
 *                             \--> NULL: it is dropped, and counted
 *
 * One can take it that has permits, and room: what is on its way to its connection stays within
 * on_way_max, though one message alone is taken whatever its size.  Of those the best level
 * (`priority`, 0 first) is chosen, and in it everybody in turn, a message each.
 *
 * Permits count messages and a batch is one entry: the last one may take them below zero.
 *
 * Pure: no clock, no I/O.
 * Memory: consumers are embedded in their owners, from fleeting_came() to fleeting_left().
 */
#ifndef BROKER_DISPATCH_FLEETING_H
#define BROKER_DISPATCH_FLEETING_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/list.h"

/* What memory there is for messages on their way, to all consumers of a loop. */
enum fleeting_room {
    FLEETING_PLENTY,
    FLEETING_SCARCE, /* for a consumer that has nothing on its way */
    FLEETING_NONE,
};

struct fleeting_consumer {
    int32_t priority;
    int64_t permits;
    size_t on_way; /* bytes: those that were chosen for it and not taken by its connection */
    struct list_node node;
};

struct fleeting {
    size_t on_way_max;
    struct list_node consumers; /* by level, then by turn */
};

void fleeting_init(struct fleeting *p, size_t on_way_max);
void fleeting_came(struct fleeting *p, struct fleeting_consumer *c, int32_t priority);
void fleeting_left(struct fleeting_consumer *c);
void fleeting_flow(struct fleeting_consumer *c, uint32_t permits);
struct fleeting_consumer *fleeting_choose(struct fleeting *p, uint32_t messages, size_t bytes,
                                          enum fleeting_room room);
void fleeting_delivered(struct fleeting_consumer *c, size_t bytes);

bool fleeting_takes(const struct fleeting *p, const struct fleeting_consumer *c, size_t bytes);

#endif
