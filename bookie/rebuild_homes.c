#include "bookie/rebuild_inside.h"

/* A kill between a flush's entry log and its index leaves records of a ledger that has no row yet;
 * the journal brings that ledger back, in whichever directory gets it then.  What lies in the first
 * one's logs is part of what lies in the other's. */

struct settling {
    struct rebuild *rebuild;
    unsigned dir; /* a lost one */
};

static enum err count_entry(void *ctx, int64_t entry)
{
    (void)entry;
    ++*(uint64_t *)ctx;
    return ERR_OK;
}

static enum err count(struct rebuild *r, unsigned dir, int64_t ledger, uint64_t *n)
{
    *n = 0;
    return entry_index_each(r->index[dir], ledger, count_entry, n);
}

/* Of two that are made again the one with more entries of it is its home. */
static enum err is_elsewhere(const struct settling *s, int64_t ledger, bool *elsewhere)
{
    struct rebuild *r = s->rebuild;
    struct ledger_row row;
    uint64_t here, there;
    *elsewhere = false;
    for (unsigned i = 0; i < r->conf->n && !*elsewhere; i++) {
        const enum err err =
            i == s->dir ? ERR_NO_LEDGER : entry_index_row(r->index[i], ledger, &row);
        if (err == ERR_NO_LEDGER)
            continue;
        TRY(err);
        TRY(count(r, s->dir, ledger, &here));
        TRY(count(r, i, ledger, &there));
        *elsewhere = !r->conf->dirs[i].is_lost || here < there || (here == there && i < s->dir);
    }
    return ERR_OK;
}

static enum err settle(void *ctx, const struct ledger_row *row)
{
    const struct settling *s = ctx;
    bool elsewhere;
    TRY(is_elsewhere(s, row->id, &elsewhere));
    return elsewhere ? entry_index_forget(s->rebuild->index[s->dir], row->id) : ERR_OK;
}

enum err rebuild_settle_homes(struct rebuild *r)
{
    for (unsigned i = 0; i < r->conf->n; i++) {
        struct settling s = {r, i};
        if (r->conf->n > 1 && r->conf->dirs[i].is_lost)
            TRY(entry_index_rows(r->index[i], -1, settle, &s));
    }
    return ERR_OK;
}
