/* What compaction could not read is asked of the other bookies, ledger by ledger: all replicas are
 * compared, and what one lacks is written there, here too.  That is a newer place, so what is
 * damaged is needed by nobody and its log goes with the next major compaction.  Closed ledgers
 * only: an open one would be fenced for it, and the scrub sees it when it is closed. */
#include "bookie/checkup.h"
#include "bookie/gc_inside.h"
#include "common/log.h"

enum { LOOK_US = 20 * 1000, READY_US = 10 * 1000 * 1000, WINDOW = 10 };

struct healer {
    struct gc *g;
    struct checkup *checkup;
    int64_t ledger;
    bool is_ready;
    bool has_ended; /* under the lock of g, as the next two */
    enum err err;
    uint64_t entries;
};

void gc_heal_note(struct gc *g, int64_t ledger)
{
    for (unsigned i = 0; i < g->damaged_n; i++)
        if (g->damaged[i] == ledger)
            return;
    if (g->damaged_n < GC_DAMAGED_MAX)
        g->damaged[g->damaged_n++] = ledger;
}

/* ---- on the loop ---------------------------------------------------------------------------- */

static void done(void *ctx, enum err err, uint64_t entries)
{
    struct healer *h = ctx;
    pthread_mutex_lock(&h->g->lock);
    h->has_ended = true;
    h->err = err;
    h->entries = entries;
    pthread_mutex_unlock(&h->g->lock);
}

static struct loop *loop_of(const struct gc *g)
{
    return g->conf.storage->loops->at[0];
}

static void make(void *ctx)
{
    struct healer *h = ctx;
    const struct bookie_conf *c = h->g->conf.conf;
    const struct checkup_conf conf = {
        .loop = loop_of(h->g),
        .meta = h->g->conf.meta,
        .distinct_hosts = c->different_hosts,
        .window = WINDOW,
        .bytes_per_s = c->scrub_rate < 1 ? 0 : (uint64_t)c->scrub_rate,
        .done = done,
        .ctx = h,
    };
    h->checkup = checkup_new(&conf);
}

static void look(void *ctx)
{
    struct healer *h = ctx;
    h->is_ready = checkup_ready(h->checkup);
}

static void begin(void *ctx)
{
    struct healer *h = ctx;
    checkup_begin(h->checkup, h->ledger);
}

static void drop(void *ctx)
{
    struct healer *h = ctx;
    checkup_drop(&h->checkup);
}

/* ---- on the collector's thread -------------------------------------------------------------- */

static bool has_ended(struct healer *h)
{
    pthread_mutex_lock(&h->g->lock);
    const bool ended = h->has_ended;
    pthread_mutex_unlock(&h->g->lock);
    return ended;
}

static bool is_closed(struct gc *g, int64_t ledger)
{
    Bookkeeper__LedgerMetadataFormat *record;
    uint64_t revision;
    if (gc_store_read(&g->store, ledger, &revision, &record))
        return false;
    const bool closed = record->state == BOOKKEEPER__LEDGER_METADATA_FORMAT__STATE__CLOSED;
    bookkeeper__ledger_metadata_format__free_unpacked(record, NULL);
    return closed;
}

static void heal(struct healer *h, int64_t ledger)
{
    struct gc *g = h->g;
    h->ledger = ledger;
    h->has_ended = false;
    loop_call(loop_of(g), begin, h);
    while (!has_ended(h) && !gc_stops(g))
        g->store.pause(g, LOOK_US);
    if (!has_ended(h))
        return;
    metric_add(&g->stats.healed, (int64_t)h->entries);
    log_event(h->err ? LOG_WARN : LOG_INFO, h->err ? "ledger.unhealed" : "ledger.healed",
              F_I64("ledger", ledger), F_U64("entries", h->entries), F_ERR(h->err));
}

static bool is_ready(struct healer *h)
{
    const uint64_t until = loop_clock() + READY_US;
    while (!h->is_ready && loop_clock() < until && !gc_stops(h->g)) {
        h->g->store.pause(h->g, LOOK_US);
        loop_call(loop_of(h->g), look, h);
    }
    return h->is_ready;
}

void gc_heal_run(struct gc *g)
{
    struct healer h = {.g = g};
    if (g->damaged_n == 0)
        return;
    loop_call(loop_of(g), make, &h);
    for (unsigned i = 0; i < g->damaged_n && is_ready(&h) && !gc_stops(g); i++)
        if (is_closed(g, g->damaged[i]))
            heal(&h, g->damaged[i]);
    loop_call(loop_of(g), drop, &h);
    g->damaged_n = 0;
}
