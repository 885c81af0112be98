#include <stdlib.h>
#include <string.h>

#include "bookie/bytes.h"
#include "bookie/file_ids.h"
#include "bookie/journal_walk.h"
#include "bookie/ledger_tomb.h"
#include "bookie/rebuild_inside.h"
#include "bookie/storage.h"
#include "common/log.h"
#include "common/mem.h"
#include "metadata/metadata.h"
#include "metadata/paths.h"
#include "metadata/records.h"

enum { ROWS_MAX = 4096 };

/* ---- rows ------------------------------------------------------------------------------------ */

/* The row of a ledger in a lost index; ERR_NO_LEDGER when one that is not lost has it, or none:
 * then *is_nowhere. */
static enum err find(struct rebuild *r, int64_t ledger, unsigned *dir, struct ledger_row *row,
                     bool *is_nowhere)
{
    *is_nowhere = false;
    for (unsigned i = 0; i < r->conf->n; i++) {
        const enum err err = entry_index_row(r->index[i], ledger, row);
        if (err == ERR_NO_LEDGER)
            continue;
        TRY(err);
        *dir = i;
        return r->conf->dirs[i].is_lost ? ERR_OK : ERR_NO_LEDGER;
    }
    *is_nowhere = true;
    *dir = r->first_lost;
    *row = rebuild_new_row(ledger);
    return ERR_NO_LEDGER;
}

static enum err commit(struct rebuild *r)
{
    r->n_rows = 0;
    for (unsigned i = 0; i < r->conf->n; i++)
        if (r->conf->dirs[i].is_lost)
            TRY(entry_index_commit(r->index[i]));
    return ERR_OK;
}

static enum err put(struct rebuild *r, unsigned dir, const struct ledger_row *row)
{
    entry_index_put_row(r->index[dir], row);
    return ++r->n_rows < ROWS_MAX ? ERR_OK : commit(r);
}

static bool has_key(const struct ledger_row *row)
{
    static const uint8_t none[MASTER_KEY_SIZE];
    return memcmp(row->key, none, sizeof none) != 0;
}

/* ---- ledgers that were deleted ----------------------------------------------------------------
 */

struct keeping {
    struct entry_index *fresh;
    enum err err;
};

/* One in the trash may come back, one that moved may have: their entries stay, too. */
static enum err keep_tomb(void *ctx, uint64_t ledger, struct view value)
{
    struct keeping *k = ctx;
    struct ledger_tomb tomb;
    if (ledger_tomb_read(value, &tomb))
        return ERR_OK;
    k->err = entry_index_note(k->fresh, INDEX_TOMB, ledger, value);
    if (!k->err && (tomb.kind == TOMB_GOING || tomb.kind == TOMB_DELETED))
        k->err = entry_index_forget(k->fresh, (int64_t)ledger);
    return k->err;
}

/* An old index that cannot be read tells nothing: what was deleted is found out once more. */
enum err rebuild_keep_tombs(struct rebuild *r, unsigned dir)
{
    struct entry_index *old;
    struct keeping k = {.fresh = r->index[dir]};
    if (entry_index_open(&old, r->conf->dirs[dir].index_dir))
        return ERR_OK;
    const enum err err = entry_index_notes(old, INDEX_TOMB, keep_tomb, &k);
    entry_index_close(&old);
    if (err && !k.err)
        log_event(LOG_WARN, "entry_index.tombs_unread", F_STR("dir", r->conf->dirs[dir].index_dir),
                  F_ERR(err));
    return k.err;
}

/* ---- the journals ---------------------------------------------------------------------------- */

static struct journal_fact *fact_of(struct rebuild *r, int64_t ledger, const uint8_t *key)
{
    struct journal_fact *f;
    HASH_FIND(hh, r->facts, &ledger, sizeof ledger, f);
    if (!f) {
        f = mem_new(struct journal_fact);
        f->ledger = ledger;
        f->first_add = INT64_MAX;
        memcpy(f->key, key, MASTER_KEY_SIZE);
        HASH_ADD(hh, r->facts, ledger, sizeof f->ledger, f);
    }
    return f;
}

static enum err take_record(void *ctx, uint64_t offset, const struct journal_record *record)
{
    struct rebuild *r = ctx;
    const struct view p = record->payload;
    (void)offset;
    if (p.len < MASTER_KEY_SIZE + 8)
        return ERR_OK;
    const struct view body = view_of(p.base + MASTER_KEY_SIZE, p.len - MASTER_KEY_SIZE);
    struct journal_fact *f = fact_of(r, (int64_t)get_u64(body.base), p.base);
    if (record->kind == RECORD_ADD && body.len >= 16 &&
        (int64_t)get_u64(body.base + 8) < f->first_add)
        f->first_add = (int64_t)get_u64(body.base + 8);
    if (record->kind != RECORD_LAC || body.len < 16 || body.len > EXPLICIT_LAC_MAX)
        return ERR_OK;
    if (f->explicit_len && (int64_t)get_u64(body.base + 8) < (int64_t)get_u64(f->explicit_lac + 8))
        return ERR_OK;
    f->explicit_len = (uint8_t)body.len;
    memcpy(f->explicit_lac, body.base, body.len);
    return ERR_OK;
}

static enum err read_journals(struct rebuild *r)
{
    const struct rebuild_conf *c = r->conf;
    for (unsigned i = 0; i < c->n_journals; i++) {
        struct file_ids ids;
        enum err err = file_ids_list(c->disk, c->journals[i], JOURNAL_ENDING, &ids);
        for (size_t k = 0; !err && k < ids.n; k++)
            err = journal_walk(c->disk, c->journals[i], ids.at[k], c->record_max, take_record, r);
        file_ids_end(&ids);
        TRY(err);
    }
    return ERR_OK;
}

/* One that was deleted here is not made anew for what is left of it in the journal. */
static bool is_buried(struct rebuild *r, int64_t ledger)
{
    struct ledger_tomb tomb;
    return ledger_tomb_get(r->index[r->first_lost], ledger, &tomb) == ERR_OK &&
           tomb.kind == TOMB_DELETED;
}

static enum err put_fact(struct rebuild *r, const struct journal_fact *f)
{
    struct ledger_row row;
    unsigned dir;
    bool is_nowhere;
    const enum err err = find(r, f->ledger, &dir, &row, &is_nowhere);
    if (err && (!is_nowhere || is_buried(r, f->ledger)))
        return err == ERR_NO_LEDGER ? ERR_OK : err;
    memcpy(row.key, f->key, MASTER_KEY_SIZE);
    row.explicit_len = f->explicit_len;
    memcpy(row.explicit_lac, f->explicit_lac, f->explicit_len);
    if (f->explicit_len && (int64_t)get_u64(f->explicit_lac + 8) > row.lac)
        row.lac = (int64_t)get_u64(f->explicit_lac + 8);
    return put(r, dir, &row);
}

enum err rebuild_from_journals(struct rebuild *r)
{
    struct journal_fact *f, *next;
    enum err err = read_journals(r);
    HASH_ITER(hh, r->facts, f, next)
    if (!err)
        err = put_fact(r, f);
    return err ? err : commit(r);
}

/* ---- the metadata store ---------------------------------------------------------------------- */

static bool names(const Bookkeeper__LedgerMetadataFormat *m, const char *bookie)
{
    for (size_t i = 0; i < m->n_segment; i++)
        for (size_t k = 0; k < m->segment[i]->n_ensemblemember; k++)
            if (strcmp(m->segment[i]->ensemblemember[k], bookie) == 0)
                return true;
    return false;
}

static bool is_doubtful(struct rebuild *r, int64_t ledger)
{
    struct doubt *d;
    HASH_FIND(hh, r->doubts, &ledger, sizeof ledger, d);
    return r->all_in_doubt || d;
}

/* One that is closed and empty needs no row: nobody asks it for more than it has. */
static enum err take_ledger(struct rebuild *r, int64_t ledger,
                            const Bookkeeper__LedgerMetadataFormat *m)
{
    struct ledger_row row;
    unsigned dir;
    bool is_nowhere;
    const bool is_empty = m->state == BOOKKEEPER__LEDGER_METADATA_FORMAT__STATE__CLOSED &&
                          (!m->has_lastentryid || m->lastentryid < 0);
    const enum err err = find(r, ledger, &dir, &row, &is_nowhere);
    if (err && (!is_nowhere || (is_empty && !r->all_in_doubt)))
        return err == ERR_NO_LEDGER ? ERR_OK : err;
    struct journal_fact *f;
    bool holes;
    HASH_FIND(hh, r->facts, &ledger, sizeof ledger, f);
    TRY(rebuild_find_holes(r->index[dir], &row, m, r->conf->bookie_id, f ? f->first_add : INT64_MAX,
                           &holes));
    if (!has_key(&row))
        master_key_of(view_of(m->password.data, m->has_password ? m->password.len : 0), row.key);
    row.limbo = holes || is_doubtful(r, ledger);
    return put(r, dir, &row);
}

/* A record that cannot be read may name us: the row stays in limbo. */
static enum err take_item(void *ctx, const struct meta_item *item)
{
    struct rebuild *r = ctx;
    Bookkeeper__LedgerMetadataFormat *m;
    int64_t ledger;
    if (path_ledger_id(item->key, &ledger) || ledger_record_read(slice_view(item->value), &m))
        return ERR_OK;
    r->newest = ledger > r->newest ? ledger : r->newest;
    const enum err err = names(m, r->conf->bookie_id) ? take_ledger(r, ledger, m) : ERR_OK;
    bookkeeper__ledger_metadata_format__free_unpacked(m, NULL);
    return err;
}

enum err rebuild_from_metadata(struct rebuild *r)
{
    if (!r->conf->meta)
        return ERR_OK;
    TRY(meta_each_wait(r->conf->meta, PATH_LEDGERS "/", take_item, r));
    return commit(r);
}
