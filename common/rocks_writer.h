/* rocks_writer.h - writes to one RocksDB, one after the other, also after one that has failed.
 *
 *   A write may fail when its record is in RocksDB's log already (its file's directory could not
 *   be synced).  The record is replayed at the next start all the same; and the sequence number
 *   that it has is given to the next write too.  Two records of one key and one number end a
 *   Debian build at each start from then on (an assertion), and with other keys what is replayed
 *   last is not what was written last.
 *
 *   So nothing follows a failed write in the same log: first all that is in memory goes down, with
 *   a record in it that no log has, so that there is something and RocksDB begins another log.
 *
 * Threads: any; the others wait meanwhile.
 */
#ifndef COMMON_ROCKS_WRITER_H
#define COMMON_ROCKS_WRITER_H

#include <pthread.h>
#include <rocksdb/c.h>
#include <stdbool.h>

struct rocks_writer {
    rocksdb_t *db; /* the caller's, as long as this is used */
    pthread_mutex_t lock;
    rocksdb_writeoptions_t *synced, *quick, *unlogged;
    rocksdb_flushoptions_t *flush;
    bool is_doubtful; /* the last write has failed */
};

void rocks_writer_init(struct rocks_writer *w); /* db is set later */
void rocks_writer_end(struct rocks_writer *w);

/* NULL, or why it is not certain to be there: RocksDB's words, the caller's to rocksdb_free().
 * synced: it is on the disk before this returns. */
char *rocks_writer_write(struct rocks_writer *w, rocksdb_writebatch_t *batch, bool synced);
/* The last write has failed: a start that came now might find it done.  Once another write has
 * gone well it never will. */
bool rocks_writer_is_doubtful(struct rocks_writer *w);

#endif
