#include "bookie/entry_index.h"

#include <rocksdb/c.h>
#include <string.h>

#include "bookie/bytes.h"
#include "common/log.h"
#include "common/mem.h"

enum { BLOCK_KEY = 17, ROW_KEY = 9, VERSION = 1, OLDEST_READER = 1 };

struct entry_index {
    rocksdb_t *db;
    rocksdb_options_t *options;
    rocksdb_block_based_table_options_t *table;
    rocksdb_cache_t *cache;
    rocksdb_readoptions_t *read;
    rocksdb_writeoptions_t *write;
    rocksdb_writebatch_t *batch;
    /* The block that a batch is adding to. */
    bool is_open;
    int64_t ledger;
    uint64_t number;
    struct index_block block;
};

static enum err failed(const char *what, char *why)
{
    if (!why)
        return ERR_OK;
    log_event(LOG_ERROR, "entry_index.failed", F_STR("call", what), F_STR("reason", why));
    rocksdb_free(why);
    return ERR_IO;
}

static void block_key(uint8_t key[BLOCK_KEY], int64_t ledger, uint64_t number)
{
    key[0] = 'e';
    put_u64(key + 1, (uint64_t)ledger);
    put_u64(key + 9, number);
}

static void row_key(uint8_t key[ROW_KEY], int64_t ledger)
{
    key[0] = 'l';
    put_u64(key + 1, (uint64_t)ledger);
}

/* ---- opening -------------------------------------------------------------------------------- */

static void make_options(struct entry_index *ix)
{
    ix->options = rocksdb_options_create();
    rocksdb_options_set_create_if_missing(ix->options, 1);
    rocksdb_options_set_write_buffer_size(ix->options, 16u << 20);
    rocksdb_options_set_max_write_buffer_number(ix->options, 3);
    rocksdb_options_set_max_total_wal_size(ix->options, 64u << 20);
    rocksdb_options_set_max_open_files(ix->options, 256);
    rocksdb_options_set_keep_log_file_num(ix->options, 2);
    ix->cache = rocksdb_cache_create_lru(16u << 20);
    ix->table = rocksdb_block_based_options_create();
    rocksdb_block_based_options_set_block_cache(ix->table, ix->cache);
    rocksdb_block_based_options_set_filter_policy(ix->table,
                                                  rocksdb_filterpolicy_create_bloom_full(10));
    rocksdb_options_set_block_based_table_factory(ix->options, ix->table);
    ix->read = rocksdb_readoptions_create();
    ix->write = rocksdb_writeoptions_create();
    rocksdb_writeoptions_set_sync(ix->write, 1);
    ix->batch = rocksdb_writebatch_create();
}

/* *value is RocksDB's and must be freed; NULL when there is none. */
static enum err get(struct entry_index *ix, const uint8_t *key, size_t len, char **value,
                    size_t *value_len)
{
    char *why = NULL;
    *value = rocksdb_get(ix->db, ix->read, (const char *)key, len, value_len, &why);
    return failed("get", why);
}

static enum err check_version(struct entry_index *ix)
{
    uint8_t bytes[4];
    char *value, *why = NULL;
    size_t len;
    TRY(get(ix, (const uint8_t *)"v", 1, &value, &len));
    if (!value) {
        put_u32(bytes, VERSION << 16 | OLDEST_READER);
        rocksdb_put(ix->db, ix->write, "v", 1, (const char *)bytes, sizeof bytes, &why);
        return failed("put", why);
    }
    const bool fine = len == 4 && (get_u32((uint8_t *)value) & 0xffff) <= VERSION;
    rocksdb_free(value);
    return fine ? ERR_OK : ERR_UNSUPPORTED_VERSION;
}

enum err entry_index_open(struct entry_index **out, const char *dir)
{
    struct entry_index *ix = mem_new(struct entry_index);
    char *why = NULL;
    *out = ix;
    make_options(ix);
    ix->db = rocksdb_open(ix->options, dir, &why);
    enum err err = failed("open", why);
    if (!err)
        err = check_version(ix);
    if (err) {
        log_event(LOG_ERROR, "entry_index.refused", F_STR("dir", dir), F_ERR(err));
        entry_index_close(out);
    }
    return err;
}

void entry_index_close(struct entry_index **index)
{
    struct entry_index *ix = *index;
    *index = NULL;
    if (!ix)
        return;
    if (ix->db)
        rocksdb_close(ix->db);
    rocksdb_writebatch_destroy(ix->batch);
    rocksdb_writeoptions_destroy(ix->write);
    rocksdb_readoptions_destroy(ix->read);
    rocksdb_options_destroy(ix->options);
    rocksdb_block_based_options_destroy(ix->table);
    rocksdb_cache_destroy(ix->cache);
    mem_free(ix);
}

uint64_t entry_index_sequence(const struct entry_index *ix)
{
    return rocksdb_get_latest_sequence_number(ix->db);
}

/* ---- looking up ----------------------------------------------------------------------------- */

enum err entry_index_block(struct entry_index *ix, int64_t ledger, uint64_t block,
                           struct index_block *out)
{
    uint8_t key[BLOCK_KEY];
    char *value;
    size_t len;
    block_key(key, ledger, block);
    TRY(get(ix, key, sizeof key, &value, &len));
    if (!value)
        return ERR_NO_ENTRY;
    const enum err err = index_block_read(view_of(value, len), out);
    rocksdb_free(value);
    if (err)
        log_event(LOG_ERROR, "entry_index.corrupted", F_I64("ledger", ledger),
                  F_U64("block", block));
    return err;
}

enum err entry_index_find(struct entry_index *ix, int64_t ledger, int64_t entry,
                          struct entry_place *out)
{
    struct index_block b;
    TRY(entry_index_block(ix, ledger, (uint64_t)entry / INDEX_BLOCK, &b));
    const unsigned i = (unsigned)((uint64_t)entry % INDEX_BLOCK);
    if (!index_block_has(&b, i))
        return ERR_NO_ENTRY;
    *out = b.at[i];
    return ERR_OK;
}

enum err entry_index_row(struct entry_index *ix, int64_t ledger, struct ledger_row *out)
{
    uint8_t key[ROW_KEY];
    char *value;
    size_t len;
    row_key(key, ledger);
    TRY(get(ix, key, sizeof key, &value, &len));
    if (!value)
        return ERR_NO_LEDGER;
    const enum err err = ledger_row_read(ledger, view_of(value, len), out);
    rocksdb_free(value);
    return err;
}

static enum err visit_row(rocksdb_iterator_t *it,
                          enum err (*each)(void *ctx, const struct ledger_row *row), void *ctx)
{
    struct ledger_row row;
    size_t len, value_len;
    const char *key = rocksdb_iter_key(it, &len);
    if (len != ROW_KEY || key[0] != 'l')
        return ERR_NOT_FOUND;
    const char *value = rocksdb_iter_value(it, &value_len);
    const int64_t id = (int64_t)get_u64((const uint8_t *)key + 1);
    TRY(ledger_row_read(id, view_of(value, value_len), &row));
    return each(ctx, &row);
}

enum err entry_index_rows(struct entry_index *ix, int64_t after,
                          enum err (*each)(void *ctx, const struct ledger_row *row), void *ctx)
{
    uint8_t key[ROW_KEY];
    char *why = NULL;
    enum err err = ERR_OK;
    rocksdb_iterator_t *it = rocksdb_create_iterator(ix->db, ix->read);
    row_key(key, after + 1);
    rocksdb_iter_seek(it, (const char *)key, sizeof key);
    for (; !err && rocksdb_iter_valid(it); rocksdb_iter_next(it))
        err = visit_row(it, each, ctx);
    if (err == ERR_NOT_FOUND) /* behind the last row */
        err = ERR_OK;
    rocksdb_iter_get_error(it, &why);
    rocksdb_iter_destroy(it);
    const enum err read = failed("iterate", why);
    return err ? err : read;
}

/* Blocks are visited in the order of their keys, which is that of their ids. */
enum err entry_index_each(struct entry_index *ix, int64_t ledger,
                          enum err (*each)(void *ctx, int64_t entry), void *ctx)
{
    uint8_t key[BLOCK_KEY];
    struct index_block b;
    char *why = NULL;
    enum err err = ERR_OK;
    rocksdb_iterator_t *it = rocksdb_create_iterator(ix->db, ix->read);
    block_key(key, ledger, 0);
    rocksdb_iter_seek(it, (const char *)key, sizeof key);
    for (; !err && rocksdb_iter_valid(it); rocksdb_iter_next(it)) {
        size_t len, value_len;
        const char *at = rocksdb_iter_key(it, &len);
        if (len != BLOCK_KEY || memcmp(at, key, 9) != 0)
            break;
        const int64_t base = (int64_t)(get_u64((const uint8_t *)at + 9) * INDEX_BLOCK);
        const char *value = rocksdb_iter_value(it, &value_len);
        err = index_block_read(view_of(value, value_len), &b);
        for (unsigned i = 0; !err && i < INDEX_BLOCK; i++)
            if (index_block_has(&b, i))
                err = each(ctx, base + (int64_t)i);
    }
    rocksdb_iter_get_error(it, &why);
    rocksdb_iter_destroy(it);
    const enum err read = failed("iterate", why);
    return err ? err : read;
}

/* ---- a batch -------------------------------------------------------------------------------- */

static void close_block(struct entry_index *ix)
{
    uint8_t key[BLOCK_KEY], bytes[INDEX_BLOCK_BYTES_MAX];
    if (!ix->is_open)
        return;
    block_key(key, ix->ledger, ix->number);
    const size_t len = index_block_write(&ix->block, bytes);
    rocksdb_writebatch_put(ix->batch, (const char *)key, sizeof key, (const char *)bytes, len);
    ix->is_open = false;
}

static enum err open_block(struct entry_index *ix, int64_t ledger, uint64_t number)
{
    close_block(ix);
    const enum err err = entry_index_block(ix, ledger, number, &ix->block);
    if (err == ERR_NO_ENTRY)
        memset(ix->block.present, 0, sizeof ix->block.present);
    else
        TRY(err);
    ix->is_open = true;
    ix->ledger = ledger;
    ix->number = number;
    return ERR_OK;
}

enum err entry_index_put(struct entry_index *ix, int64_t ledger, int64_t entry,
                         const struct entry_place *at)
{
    const uint64_t number = (uint64_t)entry / INDEX_BLOCK;
    if (!ix->is_open || ix->ledger != ledger || ix->number != number)
        TRY(open_block(ix, ledger, number));
    index_block_set(&ix->block, (unsigned)((uint64_t)entry % INDEX_BLOCK), *at);
    return ERR_OK;
}

void entry_index_put_row(struct entry_index *ix, const struct ledger_row *row)
{
    uint8_t key[ROW_KEY], bytes[LEDGER_ROW_MAX];
    row_key(key, row->id);
    const size_t len = ledger_row_write(row, bytes);
    rocksdb_writebatch_put(ix->batch, (const char *)key, sizeof key, (const char *)bytes, len);
}

enum err entry_index_commit(struct entry_index *ix)
{
    char *why = NULL;
    close_block(ix);
    rocksdb_write(ix->db, ix->write, ix->batch, &why);
    rocksdb_writebatch_clear(ix->batch);
    return failed("write", why);
}

void entry_index_discard(struct entry_index *ix)
{
    ix->is_open = false;
    rocksdb_writebatch_clear(ix->batch);
}
