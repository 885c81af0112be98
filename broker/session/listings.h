/* listings.h - the lists of topics that clients ask a loop for: a few at a time, each bounded.
 *
 *   GET_TOPICS_OF_NAMESPACE -> waits -> pages of the metadata -> topics loaded here -> hash ->
 * answer
 *
 * Clients ask for whole namespaces, which may have a great many topics: they are read a page at a
 * time, matched and hashed a part a round, and an answer that would not fit into a frame is
 * given up as soon as that is known.  A client that does not take its answers gets no more.
 *
 * Threads: the loop's.
 * Limits:  LISTINGS_RUNNING at a time; who waits counts as a lookup (maxConcurrentLookupRequest).
 */
#ifndef BROKER_SESSION_LISTINGS_H
#define BROKER_SESSION_LISTINGS_H

#include <stdint.h>

#include "common/list.h"
#include "common/loop.h"

enum { LISTINGS_RUNNING = 8 };

struct listings {
    struct loop *home;
    struct list_node waiting;
    unsigned running;
    struct timer again; /* for those whose connection was full */
};

void listings_init(struct listings *l, struct loop *home);
void listings_end(struct listings *l); /* none is left */

#endif
