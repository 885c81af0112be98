#include "common/rocks_writer.h"

/* Nobody writes such a key. */
static const char nothing[] = "\xff";

void rocks_writer_init(struct rocks_writer *w)
{
    *w = (struct rocks_writer){.synced = rocksdb_writeoptions_create(),
                               .quick = rocksdb_writeoptions_create(),
                               .unlogged = rocksdb_writeoptions_create(),
                               .flush = rocksdb_flushoptions_create()};
    pthread_mutex_init(&w->lock, NULL);
    rocksdb_writeoptions_set_sync(w->synced, 1);
    rocksdb_writeoptions_disable_WAL(w->unlogged, 1);
}

void rocks_writer_end(struct rocks_writer *w)
{
    rocksdb_writeoptions_destroy(w->synced);
    rocksdb_writeoptions_destroy(w->quick);
    rocksdb_writeoptions_destroy(w->unlogged);
    rocksdb_flushoptions_destroy(w->flush);
    pthread_mutex_destroy(&w->lock);
}

/* Without anything in memory a flush would do nothing, and the log would stay. */
static char *begin_log(struct rocks_writer *w)
{
    char *why = NULL;

    rocksdb_delete(w->db, w->unlogged, nothing, 1, &why);
    if (!why)
        rocksdb_flush(w->db, w->flush, &why);
    return why;
}

char *rocks_writer_write(struct rocks_writer *w, rocksdb_writebatch_t *batch, bool synced)
{
    char *why = NULL;

    pthread_mutex_lock(&w->lock);
    if (w->is_doubtful)
        why = begin_log(w);
    if (!why)
        rocksdb_write(w->db, synced ? w->synced : w->quick, batch, &why);
    w->is_doubtful = why;
    pthread_mutex_unlock(&w->lock);
    return why;
}

bool rocks_writer_is_doubtful(struct rocks_writer *w)
{
    pthread_mutex_lock(&w->lock);
    const bool is = w->is_doubtful;
    pthread_mutex_unlock(&w->lock);
    return is;
}
