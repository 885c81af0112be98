/* receipts.h - the publishes of one producer that were not answered, in the order they came.
 *
 *   receipts_add (in order) ... receipts_done (in any) -> leave(), strictly in order
 *
 * A client takes a receipt out of order for a broken connection, and an error too, so a
 * publish that is refused at once still waits for those before it.
 *
 * Pure.
 */
#ifndef BROKER_SESSION_RECEIPTS_H
#define BROKER_SESSION_RECEIPTS_H

#include <stdbool.h>

#include "common/list.h"

struct receipt {
    struct list_node node;
    bool done;
};

struct receipts {
    struct list_node waiting;
    void (*leave)(struct receipts *q, struct receipt *r); /* r may be freed */
};

void receipts_init(struct receipts *q, void (*leave)(struct receipts *q, struct receipt *r));
void receipts_add(struct receipts *q, struct receipt *r);
void receipts_done(struct receipts *q, struct receipt *r);

#endif
