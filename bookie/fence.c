#include <string.h>

#include "bookie/bytes.h"
#include "bookie/request.h"
#include "common/flight.h"

/* Everybody who waited for the fence: no answer of any kind leaves before it is durable. */
static void release(struct ledger *l, enum err err)
{
    for (struct list_node *n; (n = list_pop_front(&l->waiting)) != NULL;) {
        struct request *r = list_entry(n, struct request, waiting);
        if (err)
            request_finish(r, err);
        else
            lookup_in(r);
    }
}

static void recorded(struct journal_write *w, enum err err)
{
    struct ledger *l = container_of(w, struct request, write)->ledger;
    l->fence = err ? LEDGER_OPEN : LEDGER_FENCED;
    release(l, err ? ERR_IO : ERR_OK);
    if (!list_empty(&l->watching))
        polls_wake(l);
}

static void record(struct request *r)
{
    struct storage *s = r->at->handlers->conf.storage;
    struct ledger *l = r->ledger;
    memcpy(r->fence_record, r->head.key, MASTER_KEY_SIZE);
    put_u64(r->fence_record + MASTER_KEY_SIZE, (uint64_t)r->head.ledger);
    r->write = (struct journal_write){
        .kind = RECORD_FENCE,
        .head = view_of(r->fence_record, FENCE_RECORD),
        .home = r->at->loop,
        .done = recorded,
    };
    flight_note("fence: ledger", r->head.ledger, 0);
    l->row.fenced = true; /* from here on adds are refused, so none is behind it in the journal */
    l->fence = LEDGER_FENCING;
    ledger_changed(&request_shard(r)->ledgers, l);
    list_push_back(&l->waiting, &r->waiting);
    const enum err err = journal_append(storage_journal(s, r->head.ledger), &r->write);
    if (!err)
        return;
    l->fence = LEDGER_OPEN;
    release(l, err);
}

void fence_begin(struct request *r)
{
    enum err err = ERR_UNAUTHORIZED;
    if (r->head.has_key)
        err = ledgers_claim(&request_shard(r)->ledgers, r->head.ledger, r->head.key, &r->ledger);
    if (err) {
        request_finish(r, err == ERR_FENCED ? ERR_NO_LEDGER : err); /* it was deleted */
        return;
    }
    switch (r->ledger->fence) {
    case LEDGER_OPEN:
        record(r);
        break;
    case LEDGER_FENCING:
        list_push_back(&r->ledger->waiting, &r->waiting);
        break;
    case LEDGER_FENCED:
        lookup_in(r);
        break;
    }
}
