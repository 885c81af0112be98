#include "broker/session/receipts.h"

#include <assert.h>

void receipts_init(struct receipts *q, void (*leave)(struct receipts *q, struct receipt *r))
{
    list_init(&q->waiting);
    q->leave = leave;
}

void receipts_add(struct receipts *q, struct receipt *r)
{
    r->done = false;
    list_push_back(&q->waiting, &r->node);
}

void receipts_done(struct receipts *q, struct receipt *r)
{
    assert(!r->done);
    r->done = true;
    while (!list_empty(&q->waiting)) {
        struct receipt *first = list_entry(q->waiting.next, struct receipt, node);
        if (!first->done)
            return;
        list_remove(&first->node);
        q->leave(q, first);
    }
}
