/* Ledgers whose copies were made again elsewhere.  A copy under way to this bookie is not named in
 * the metadata yet, so being named is not all that counts: a ledger is closed, nobody repairs it
 * (the lock, and no mark), and after it can be written no more all that is looked at once again.
 * A mark goes only after the metadata names the copy: so a copy that began before is either
 * marked still, or named. */
#include <string.h>

#include "bookie/gc_inside.h"
#include "common/log.h"

static bool names(const Bookkeeper__LedgerMetadataFormat *r, const char *bookie)
{
    for (size_t i = 0; i < r->n_segment; i++)
        for (size_t k = 0; k < r->segment[i]->n_ensemblemember; k++)
            if (strcmp(r->segment[i]->ensemblemember[k], bookie) == 0)
                return true;
    return false;
}

static enum err look(struct gc *g, int64_t ledger, bool *elsewhere)
{
    Bookkeeper__LedgerMetadataFormat *record;
    uint64_t revision;
    TRY(gc_store_read(&g->store, ledger, &revision, &record));
    *elsewhere = record->state == BOOKKEEPER__LEDGER_METADATA_FORMAT__STATE__CLOSED &&
                 !names(record, g->conf.bookie_id);
    bookkeeper__ledger_metadata_format__free_unpacked(record, NULL);
    return ERR_OK;
}

static enum err is_free(struct gc *g, int64_t ledger, bool *out)
{
    bool marked, elsewhere;
    TRY(gc_store_is_marked(&g->store, ledger, &marked));
    TRY(look(g, ledger, &elsewhere));
    *out = !marked && elsewhere;
    return ERR_OK;
}

static enum err remove_locked(struct gc *g, int64_t ledger)
{
    bool out = false;
    TRY(is_free(g, ledger, &out));
    if (!out)
        return ERR_OK;
    enum err err = gc_purge_begin(g, ledger);
    if (!err)
        err = is_free(g, ledger, &out);
    if (err || !out) {
        gc_purge_cancel(g, ledger);
        return err == ERR_BUSY ? ERR_OK : err;
    }
    TRY(gc_purge_end(g, ledger, TOMB_MOVED));
    metric_add(&g->stats.moved_ledgers, 1);
    log_event(LOG_INFO, "ledger.moved_away", F_I64("ledger", ledger));
    return ERR_OK;
}

static enum err consider(struct gc *g, int64_t ledger)
{
    bool elsewhere = false;
    TRY(look(g, ledger, &elsewhere));
    if (!elsewhere)
        return ERR_OK;
    TRY(gc_store_lock(&g->store, ledger));
    const enum err err = remove_locked(g, ledger);
    gc_store_unlock(&g->store, ledger);
    return err;
}

void gc_moved_run(struct gc *g, const struct gc_ids *here)
{
    for (size_t i = 0; i < here->n && !gc_stops(g); i++) {
        if (!here->seen[i])
            continue;
        const enum err err = consider(g, here->at[i]);
        if (err && err != ERR_NOT_FOUND && err != ERR_EXISTS)
            log_event(LOG_WARN, "gc.ledger_unknown", F_I64("ledger", here->at[i]), F_ERR(err));
        if (err == ERR_NOT_READY)
            return;
    }
}
