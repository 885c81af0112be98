/* entry_index_inside.h - what the files of the index share. */
#ifndef BOOKIE_ENTRY_INDEX_INSIDE_H
#define BOOKIE_ENTRY_INDEX_INSIDE_H

#include <pthread.h>

#include "bookie/bytes.h"
#include "bookie/entry_index.h"
#include "common/rocks_writer.h"

enum { BLOCK_KEY = 17, ROW_KEY = 9 };

struct entry_index {
    rocksdb_t *db;
    rocksdb_options_t *options;
    rocksdb_block_based_table_options_t *table;
    rocksdb_cache_t *cache;
    rocksdb_readoptions_t *read;
    struct rocks_writer write;
    pthread_mutex_t lock; /* a batch; held from its first put to its end */
    rocksdb_writebatch_t *batch;
    /* The block that a batch is adding to. */
    bool is_open, is_changed;
    int64_t ledger;
    uint64_t number;
    struct index_block block;
};

enum err entry_index_failed(const char *what, char *why); /* takes why; NULL: ERR_OK */
/* A record by itself, outside of a batch; durable. */
MUST_CHECK enum err entry_index_put_one(struct entry_index *ix, const uint8_t *key, size_t len,
                                        struct view value);

static inline void entry_index_block_key(uint8_t key[BLOCK_KEY], int64_t ledger, uint64_t number)
{
    key[0] = 'e';
    put_u64(key + 1, (uint64_t)ledger);
    put_u64(key + 9, number);
}

static inline void entry_index_row_key(uint8_t key[ROW_KEY], int64_t ledger)
{
    key[0] = 'l';
    put_u64(key + 1, (uint64_t)ledger);
}

#endif
