/* loop_inside.h - what a loop keeps for the conns on it.
 *
 * Guests are things that nobody owns any more and that must end with the loop at the
 * latest: a conn that still writes after conn_finish().
 *
 * Threads: the loop's own.  For conn.c and loop.c only.
 */
#ifndef COMMON_LOOP_INSIDE_H
#define COMMON_LOOP_INSIDE_H

#include "common/buf.h"
#include "common/list.h"
#include "common/loop.h"

struct loop_guest {
    struct list_node node;
    void (*leave)(struct loop_guest *g); /* must end it at once */
};

/* Where every conn of the loop reads into, one after the other: an idle conn holds none. */
struct loop_reading {
    struct slab *slab;
    size_t used;
};

void loop_invite(struct loop *l, struct loop_guest *g);
struct loop_reading *loop_reading(struct loop *l);

#endif
