/* disk.h - the few things we do to files, so that a test can do them wrong.
 *
 * Two disks: disk_real() and tests/lib/fake_disk.c, which lives in memory, forgets
 * what was never synced, tears sectors, and fails on the n-th call when told to.
 * Every failure is logged here with path and errno ("disk.failed").
 *
 * Threads: a file is used by one thread at a time, except that file_read() may run on
 *          several at once; the disk itself from any.
 */
#ifndef COMMON_DISK_H
#define COMMON_DISK_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/uio.h>

#include "common/err.h"

enum disk_open {
    DISK_READ = 0,
    DISK_WRITE = 1,  /* read and write */
    DISK_CREATE = 2, /* must not exist yet; implies write */
    DISK_DIRECT = 4, /* O_DIRECT; ERR_NOT_ALLOWED where the file system refuses it */
};

struct disk;
struct disk_file;

struct disk_ops {
    /* Gives *out; ERR_NOT_FOUND, ERR_EXISTS, ERR_IO ... */
    enum err (*open)(struct disk *d, const char *path, unsigned how, struct disk_file **out);
    enum err (*write)(struct disk_file *f, uint64_t at, const struct iovec *iov, int n); /* all, or
                                                                    ERR_IO / ERR_NO_SPACE */
    enum err (*read)(struct disk_file *f, uint64_t at, void *into, size_t len,
                     size_t *got); /* *got < len only at the end of the file */
    enum err (*size)(struct disk_file *f, uint64_t *out);
    enum err (*truncate)(struct disk_file *f, uint64_t size);
    enum err (*sync)(struct disk_file *f); /* fdatasync */
    void (*close)(struct disk_file **f);
    enum err (*rename)(struct disk *d, const char *from, const char *to);
    enum err (*remove)(struct disk *d, const char *path);
    enum err (*mkdir)(struct disk *d, const char *path); /* with parents; existing is fine */
    enum err (*sync_dir)(struct disk *d, const char *path);
    enum err (*list)(struct disk *d, const char *path, void (*each)(void *ctx, const char *name),
                     void *ctx); /* no "." and ".." */
    enum err (*space)(struct disk *d, const char *path, uint64_t *free_bytes,
                      uint64_t *total_bytes);
};

/* First member of every disk; every file begins with a pointer to its disk. */
struct disk {
    const struct disk_ops *ops;
};
struct disk_file {
    struct disk *disk;
};

struct disk *disk_real(void); /* one for the process; never dropped */

/* Reads a whole small file; gives *out with a NUL after it.  Writes one by temporary
 * name, sync, rename and directory sync. */
MUST_CHECK enum err disk_load(struct disk *d, const char *path, size_t max, char **out,
                              size_t *len);
MUST_CHECK enum err disk_store(struct disk *d, const char *path, const void *bytes, size_t len);
/* Holds `path` as a lock until the process ends or disk_unlock(): ERR_EXISTS when another
 * process holds it.  Real disk only. */
MUST_CHECK enum err disk_lock(const char *path, int *out);
void disk_unlock(int *lock);

#endif
