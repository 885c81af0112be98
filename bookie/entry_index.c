#include "bookie/entry_index.h"

#include <string.h>

#include "bookie/bytes.h"
#include "bookie/entry_index_inside.h"
#include "common/log.h"
#include "common/mem.h"

enum { VERSION = 1, OLDEST_READER = 1, LOG_HEADER_ONLY = 5, NO_COUNTS = 1 };

/* What RocksDB has lost is told apart from what cannot be done now. */
enum err entry_index_failed(const char *what, char *why)
{
    if (!why)
        return ERR_OK;
    const bool lost = strncmp(why, "Corruption", strlen("Corruption")) == 0 ||
                      strstr(why, "No such file or directory");
    log_event(LOG_ERROR, "entry_index.failed", F_STR("call", what), F_STR("reason", why));
    rocksdb_free(why);
    return lost ? ERR_CHECKSUM : ERR_IO;
}

/* ---- opening -------------------------------------------------------------------------------- */

/* RocksDB writes nothing into its log file: once a line has not fitted on the disk, the next one
 * ends the process (an assertion that Debian's build keeps).  What fails is told by its calls. */
static void make_options(struct entry_index *ix)
{
    ix->options = rocksdb_options_create();
    rocksdb_options_set_info_log_level(ix->options, LOG_HEADER_ONLY);
    rocksdb_options_set_keep_log_file_num(ix->options, 1);
    rocksdb_options_set_create_if_missing(ix->options, 1);
    rocksdb_options_set_write_buffer_size(ix->options, 16u << 20);
    rocksdb_options_set_max_write_buffer_number(ix->options, 3);
    rocksdb_options_set_max_total_wal_size(ix->options, 64u << 20);
    rocksdb_options_set_max_open_files(ix->options, 256);
    ix->cache = rocksdb_cache_create_lru(16u << 20);
    ix->table = rocksdb_block_based_options_create();
    rocksdb_block_based_options_set_block_cache(ix->table, ix->cache);
    rocksdb_block_based_options_set_filter_policy(ix->table,
                                                  rocksdb_filterpolicy_create_bloom_full(10));
    rocksdb_options_set_block_based_table_factory(ix->options, ix->table);
    ix->read = rocksdb_readoptions_create();
    rocks_writer_init(&ix->write);
    ix->batch = rocksdb_writebatch_create();
}

/* Who holds it may take it again: then it is in the middle of a batch. */
static void make_lock(struct entry_index *ix)
{
    pthread_mutexattr_t checked;
    pthread_mutexattr_init(&checked);
    pthread_mutexattr_settype(&checked, PTHREAD_MUTEX_ERRORCHECK);
    pthread_mutex_init(&ix->lock, &checked);
    pthread_mutexattr_destroy(&checked);
}

/* By default each thread counts, for nobody, what RocksDB compares: a sixth of a flush. */
static void count_nothing(void)
{
    rocksdb_set_perf_level(NO_COUNTS);
}

/* *value is RocksDB's and must be freed; NULL when there is none. */
static enum err get(struct entry_index *ix, const uint8_t *key, size_t len, char **value,
                    size_t *value_len)
{
    char *why = NULL;
    count_nothing();
    *value = rocksdb_get(ix->db, ix->read, (const char *)key, len, value_len, &why);
    return entry_index_failed("get", why);
}

enum err entry_index_put_one(struct entry_index *ix, const uint8_t *key, size_t len,
                             struct view value)
{
    rocksdb_writebatch_t *batch = rocksdb_writebatch_create();
    rocksdb_writebatch_put(batch, (const char *)key, len, (const char *)value.base, value.len);
    char *why = rocks_writer_write(&ix->write, batch, true);
    rocksdb_writebatch_destroy(batch);
    return entry_index_failed("put", why);
}

static enum err check_version(struct entry_index *ix)
{
    uint8_t bytes[4];
    char *value;
    size_t len;
    TRY(get(ix, (const uint8_t *)"v", 1, &value, &len));
    if (!value) {
        put_u32(bytes, VERSION << 16 | OLDEST_READER);
        return entry_index_put_one(ix, (const uint8_t *)"v", 1, view_of(bytes, sizeof bytes));
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
    make_lock(ix);
    ix->db = ix->write.db = rocksdb_open(ix->options, dir, &why);
    enum err err = entry_index_failed("open", why);
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
    pthread_mutex_destroy(&ix->lock);
    rocks_writer_end(&ix->write);
    rocksdb_readoptions_destroy(ix->read);
    rocksdb_options_destroy(ix->options);
    rocksdb_block_based_options_destroy(ix->table);
    rocksdb_cache_destroy(ix->cache);
    mem_free(ix);
}

void entry_index_compact(struct entry_index *ix)
{
    rocksdb_compact_range(ix->db, NULL, 0, NULL, 0);
}

void entry_index_stop_compacting(struct entry_index *ix)
{
    rocksdb_disable_manual_compaction(ix->db);
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
    entry_index_block_key(key, ledger, block);
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
    entry_index_row_key(key, ledger);
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
    entry_index_row_key(key, after + 1);
    rocksdb_iter_seek(it, (const char *)key, sizeof key);
    for (; !err && rocksdb_iter_valid(it); rocksdb_iter_next(it))
        err = visit_row(it, each, ctx);
    if (err == ERR_NOT_FOUND) /* behind the last row */
        err = ERR_OK;
    rocksdb_iter_get_error(it, &why);
    rocksdb_iter_destroy(it);
    const enum err read = entry_index_failed("iterate", why);
    return err ? err : read;
}

struct each_entry {
    enum err (*fn)(void *ctx, int64_t entry);
    void *ctx;
};

static enum err each_of_block(void *ctx, uint64_t number, const struct index_block *b)
{
    const struct each_entry *e = ctx;
    for (unsigned i = 0; i < INDEX_BLOCK; i++)
        if (index_block_has(b, i))
            TRY(e->fn(e->ctx, (int64_t)(number * INDEX_BLOCK + i)));
    return ERR_OK;
}

enum err entry_index_each(struct entry_index *ix, int64_t ledger,
                          enum err (*each)(void *ctx, int64_t entry), void *ctx)
{
    struct each_entry e = {each, ctx};
    return entry_index_blocks(ix, ledger, each_of_block, &e);
}

/* ---- a batch -------------------------------------------------------------------------------- */

static void begin(struct entry_index *ix)
{
    pthread_mutex_lock(&ix->lock); /* or it is held: EDEADLK */
}

static void close_block(struct entry_index *ix)
{
    uint8_t key[BLOCK_KEY], bytes[INDEX_BLOCK_BYTES_MAX];
    if (!ix->is_open)
        return;
    ix->is_open = false;
    if (!ix->is_changed)
        return;
    entry_index_block_key(key, ix->ledger, ix->number);
    const size_t len = index_block_write(&ix->block, bytes);
    rocksdb_writebatch_put(ix->batch, (const char *)key, sizeof key, (const char *)bytes, len);
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
    ix->is_changed = false;
    ix->ledger = ledger;
    ix->number = number;
    return ERR_OK;
}

enum err entry_index_put(struct entry_index *ix, int64_t ledger, int64_t entry,
                         const struct entry_place *at)
{
    const uint64_t number = (uint64_t)entry / INDEX_BLOCK;
    begin(ix);
    if (!ix->is_open || ix->ledger != ledger || ix->number != number)
        TRY(open_block(ix, ledger, number));
    index_block_set(&ix->block, (unsigned)((uint64_t)entry % INDEX_BLOCK), *at);
    ix->is_changed = true;
    return ERR_OK;
}

enum err entry_index_move(struct entry_index *ix, int64_t ledger, int64_t entry,
                          const struct entry_place *from, const struct entry_place *to, bool *moved)
{
    const uint64_t number = (uint64_t)entry / INDEX_BLOCK;
    const unsigned i = (unsigned)((uint64_t)entry % INDEX_BLOCK);
    begin(ix);
    if (!ix->is_open || ix->ledger != ledger || ix->number != number)
        TRY(open_block(ix, ledger, number));
    const struct entry_place *is = &ix->block.at[i];
    *moved = index_block_has(&ix->block, i) && is->log == from->log && is->offset == from->offset;
    if (!*moved)
        return ERR_OK;
    index_block_set(&ix->block, i, *to);
    ix->is_changed = true;
    return ERR_OK;
}

void entry_index_put_row(struct entry_index *ix, const struct ledger_row *row)
{
    uint8_t key[ROW_KEY], bytes[LEDGER_ROW_MAX];
    begin(ix);
    entry_index_row_key(key, row->id);
    const size_t len = ledger_row_write(row, bytes);
    rocksdb_writebatch_put(ix->batch, (const char *)key, sizeof key, (const char *)bytes, len);
}

enum err entry_index_commit(struct entry_index *ix)
{
    begin(ix);
    close_block(ix);
    count_nothing();
    char *why = rocks_writer_write(&ix->write, ix->batch, true);
    rocksdb_writebatch_clear(ix->batch);
    pthread_mutex_unlock(&ix->lock);
    return entry_index_failed("write", why);
}

void entry_index_discard(struct entry_index *ix)
{
    begin(ix);
    ix->is_open = false;
    rocksdb_writebatch_clear(ix->batch);
    pthread_mutex_unlock(&ix->lock);
}

bool entry_index_is_doubtful(struct entry_index *ix)
{
    return rocks_writer_is_doubtful(&ix->write);
}
