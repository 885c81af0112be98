#include "bookie/gc_inside.h"

struct retiring {
    struct storage *storage;
    int64_t ledger;
    bool is_clean;
};

static void retire(void *ctx)
{
    struct retiring *r = ctx;
    r->is_clean = ledgers_retire(&storage_shard(r->storage, r->ledger)->ledgers, r->ledger);
}

static void unretire(void *ctx)
{
    struct retiring *r = ctx;
    ledgers_unretire(&storage_shard(r->storage, r->ledger)->ledgers, r->ledger);
}

static struct loop *loop_of(const struct storage *s, int64_t ledger)
{
    return s->loops->at[(uint64_t)ledger % s->loops->n];
}

enum err gc_purge_begin(struct gc *g, int64_t ledger)
{
    struct retiring r = {.storage = g->conf.storage, .ledger = ledger};
    loop_call(loop_of(r.storage, ledger), retire, &r);
    return r.is_clean ? ERR_OK : ERR_BUSY;
}

void gc_purge_cancel(struct gc *g, int64_t ledger)
{
    struct retiring r = {.storage = g->conf.storage, .ledger = ledger};
    loop_call(loop_of(r.storage, ledger), unretire, &r);
}

/* The tomb is there before anything is forgotten: then nobody makes the ledger anew. */
enum err gc_purge_end(struct gc *g, int64_t ledger, enum tomb_kind kind)
{
    struct entry_index *ix = gc_device_of(g, ledger)->index;
    struct ledger_tomb tomb = {.kind = kind, .fenced = true, .since_ms = gc_now_ms()};
    enum err err = ledger_tomb_put(ix, ledger, &tomb);
    if (!err)
        err = entry_index_forget(ix, ledger);
    tomb.kind = TOMB_DELETED;
    if (!err && kind == TOMB_GOING)
        err = ledger_tomb_put(ix, ledger, &tomb);
    gc_purge_cancel(g, ledger);
    return err;
}
