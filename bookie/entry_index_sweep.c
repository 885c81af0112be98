/* The side of the index that garbage collection sees: all of a ledger, all ledgers, and taking
 * back.  Every walk has an upper bound, so that what was deleted behind it is not walked over. */
#include <string.h>

#include "bookie/entry_index_inside.h"
#include "common/log.h"

enum { FORGET_MAX = 1000, KEY_MAX = BLOCK_KEY };

struct walk {
    rocksdb_readoptions_t *options;
    rocksdb_iterator_t *it;
    uint8_t from[KEY_MAX], end[KEY_MAX];
    size_t len; /* of the prefix */
};

/* The least that comes after everything that begins with this; no prefix is all ones. */
static void next_prefix(uint8_t *at, size_t len)
{
    while (len > 0 && ++at[len - 1] == 0)
        len--;
}

static void walk_begin(struct walk *w, struct entry_index *ix, const uint8_t *prefix, size_t len)
{
    memcpy(w->from, prefix, len);
    memcpy(w->end, prefix, len);
    next_prefix(w->end, len);
    w->len = len;
    w->options = rocksdb_readoptions_create();
    rocksdb_readoptions_set_iterate_upper_bound(w->options, (const char *)w->end, len);
    rocksdb_readoptions_set_fill_cache(w->options, 0);
    w->it = rocksdb_create_iterator(ix->db, w->options);
    rocksdb_iter_seek(w->it, (const char *)w->from, len);
}

/* The rest of the key after the prefix, and the value; false at the end. */
static bool walk_at(struct walk *w, struct view *rest, struct view *value)
{
    size_t len;
    if (!rocksdb_iter_valid(w->it))
        return false;
    const char *key = rocksdb_iter_key(w->it, &len);
    *rest = view_of(key + w->len, len - w->len);
    const char *at = rocksdb_iter_value(w->it, &len);
    *value = view_of(at, len);
    return true;
}

static enum err walk_end(struct walk *w, enum err err)
{
    char *why = NULL;
    rocksdb_iter_get_error(w->it, &why);
    rocksdb_iter_destroy(w->it);
    rocksdb_readoptions_destroy(w->options);
    const enum err read = entry_index_failed("iterate", why);
    return err ? err : read;
}

static enum err give_block(int64_t ledger, uint64_t number, struct view value,
                           entry_index_block_fn *each, void *ctx)
{
    struct index_block b;
    if (index_block_read(value, &b)) {
        log_event(LOG_ERROR, "entry_index.corrupted", F_I64("ledger", ledger),
                  F_U64("block", number));
        return ERR_CHECKSUM;
    }
    return each(ctx, number, &b);
}

enum err entry_index_blocks(struct entry_index *ix, int64_t ledger, entry_index_block_fn *each,
                            void *ctx)
{
    uint8_t key[BLOCK_KEY];
    struct view rest, value;
    struct walk w;
    enum err err = ERR_OK;
    entry_index_block_key(key, ledger, 0);
    walk_begin(&w, ix, key, 9);
    for (; !err && walk_at(&w, &rest, &value); rocksdb_iter_next(w.it))
        if (rest.len == 8)
            err = give_block(ledger, get_u64(rest.base), value, each, ctx);
    return walk_end(&w, err);
}

enum err entry_index_ledgers(struct entry_index *ix, enum err (*each)(void *ctx, int64_t ledger),
                             void *ctx)
{
    struct view rest, value;
    struct walk w;
    enum err err = ERR_OK;
    walk_begin(&w, ix, (const uint8_t *)"l", 1);
    for (; !err && walk_at(&w, &rest, &value); rocksdb_iter_next(w.it))
        if (rest.len == 8)
            err = each(ctx, (int64_t)get_u64(rest.base));
    return walk_end(&w, err);
}

/* ---- a ledger goes -------------------------------------------------------------------------- */

static enum err write_out(struct entry_index *ix, rocksdb_writebatch_t *batch, bool durable)
{
    char *why = rocks_writer_write(&ix->write, batch, durable);
    rocksdb_writebatch_clear(batch);
    return entry_index_failed("delete", why);
}

static enum err delete_blocks(struct entry_index *ix, int64_t ledger, rocksdb_writebatch_t *batch)
{
    uint8_t key[BLOCK_KEY];
    struct walk w;
    enum err err = ERR_OK;
    entry_index_block_key(key, ledger, 0);
    walk_begin(&w, ix, key, 9);
    for (; !err && rocksdb_iter_valid(w.it); rocksdb_iter_next(w.it)) {
        size_t len;
        const char *at = rocksdb_iter_key(w.it, &len);
        rocksdb_writebatch_delete(batch, at, len);
        if (rocksdb_writebatch_count(batch) >= FORGET_MAX)
            err = write_out(ix, batch, false);
    }
    return walk_end(&w, err);
}

/* Key by key, not as a range: nobody reads over ranges that way.  The row is last: while it is
 * there, what is left of the ledger is found again. */
enum err entry_index_forget(struct entry_index *ix, int64_t ledger)
{
    uint8_t key[ROW_KEY];
    rocksdb_writebatch_t *batch = rocksdb_writebatch_create();
    enum err err = delete_blocks(ix, ledger, batch);
    entry_index_row_key(key, ledger);
    rocksdb_writebatch_delete(batch, (const char *)key, sizeof key);
    if (!err)
        err = write_out(ix, batch, true);
    rocksdb_writebatch_destroy(batch);
    return err;
}

/* ---- notes ---------------------------------------------------------------------------------- */

static void note_key(uint8_t key[ROW_KEY], enum entry_index_kind kind, uint64_t id)
{
    key[0] = (uint8_t)kind;
    put_u64(key + 1, id);
}

enum err entry_index_note(struct entry_index *ix, enum entry_index_kind kind, uint64_t id,
                          struct view value)
{
    uint8_t key[ROW_KEY];
    note_key(key, kind, id);
    return entry_index_put_one(ix, key, sizeof key, value);
}

enum err entry_index_noted(struct entry_index *ix, enum entry_index_kind kind, uint64_t id,
                           uint8_t *into, size_t room, size_t *len)
{
    uint8_t key[ROW_KEY];
    char *why = NULL;
    size_t found;
    note_key(key, kind, id);
    char *value = rocksdb_get(ix->db, ix->read, (const char *)key, sizeof key, &found, &why);
    TRY(entry_index_failed("get", why));
    if (!value)
        return ERR_NOT_FOUND;
    *len = found < room ? found : room;
    memcpy(into, value, *len);
    rocksdb_free(value);
    return ERR_OK;
}

enum err entry_index_unnote(struct entry_index *ix, enum entry_index_kind kind, uint64_t id)
{
    uint8_t key[ROW_KEY];
    rocksdb_writebatch_t *batch = rocksdb_writebatch_create();
    note_key(key, kind, id);
    rocksdb_writebatch_delete(batch, (const char *)key, sizeof key);
    const enum err err = write_out(ix, batch, true);
    rocksdb_writebatch_destroy(batch);
    return err;
}

enum err entry_index_notes(struct entry_index *ix, enum entry_index_kind kind,
                           enum err (*each)(void *ctx, uint64_t id, struct view value), void *ctx)
{
    const uint8_t prefix = (uint8_t)kind;
    struct view rest, value;
    struct walk w;
    enum err err = ERR_OK;
    walk_begin(&w, ix, &prefix, 1);
    for (; !err && walk_at(&w, &rest, &value); rocksdb_iter_next(w.it))
        if (rest.len == 8)
            err = each(ctx, get_u64(rest.base), value);
    return walk_end(&w, err);
}
