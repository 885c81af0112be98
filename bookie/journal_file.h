/* journal_file.h - the files of a journal directory: named, made, filled with zeros, recycled.
 *
 *   0000000000000007.jnl    the hexadecimal file id; ids only grow
 *
 *   made --full, behind the mark--> free --renamed to the next id--> current
 *
 * Overwriting a file that was written before costs two thirds of the time of a sync that
 * also has to record where the file now lies.
 *
 * Threads: any thread may make, free and remove files (its own lock); a file is one thread's.
 */
#ifndef BOOKIE_JOURNAL_FILE_H
#define BOOKIE_JOURNAL_FILE_H

#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>

#include "common/disk.h"
#include "common/err.h"

enum { JOURNAL_FILES_MAX = 4096, JOURNAL_FREE_MAX = 2 };

struct journal_files {
    struct disk *disk;
    const char *dir;
    bool direct;
    pthread_mutex_t lock;
    uint64_t ids[JOURNAL_FILES_MAX]; /* in order; those before `keep_from` are free */
    unsigned n;
    uint64_t keep_from;
    uint64_t last; /* the highest id ever seen */
};

/* An open file that is being written. */
struct journal_file {
    struct disk_file *file;
    uint64_t id;
    uint64_t at;     /* the next group goes here */
    uint64_t filled; /* bytes that exist on the disk */
};

MUST_CHECK enum err journal_files_open(struct journal_files *f, struct disk *disk, const char *dir,
                                       bool direct, uint64_t keep_from);
void journal_files_close(struct journal_files *f);
char *journal_file_path(const struct journal_files *f, uint64_t id); /* gives */
bool journal_files_have(const struct journal_files *f, uint64_t id);
/* A file with the next id, its name durable: a free one, or a new one.  It has no header yet: what
 * it held before belongs to another id. */
MUST_CHECK enum err journal_file_make(struct journal_files *f, struct journal_file *out);
/* Its header, durable.  sequence: of the first record that will be in it. */
MUST_CHECK enum err journal_file_begin(struct journal_file *j, uint64_t sequence);
/* Makes it exist up to `upto` (and some way further), so that a write there needs no space. */
MUST_CHECK enum err journal_file_fill(struct journal_file *j, uint64_t upto, uint64_t limit);
/* Files before this id hold nothing that is needed: two wait for reuse, the rest goes. */
void journal_files_free(struct journal_files *f, uint64_t before);
void journal_files_remove(struct journal_files *f, uint64_t id); /* one that nobody has begun */

#endif
