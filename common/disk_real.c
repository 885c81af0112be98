/* The disk of the operating system: disk_real(). */
#include "common/disk.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include "common/log.h"
#include "common/mem.h"

struct real_file {
    struct disk_file file;
    int fd;
    char *path; /* for the log */
};

static struct real_file *real_of(struct disk_file *f)
{
    return container_of(f, struct real_file, file);
}

static enum err failed(const char *op, const char *path, int saved_errno)
{
    log_event(LOG_ERROR, "disk.failed", F_STR("op", op), F_STR("path", path), F_ERRNO(saved_errno));
    return err_of_errno(saved_errno);
}

static int flags_of(unsigned how)
{
    int flags = O_CLOEXEC;
    flags |= how & (DISK_WRITE | DISK_CREATE) ? O_RDWR : O_RDONLY;
    if (how & DISK_CREATE)
        flags |= O_CREAT | O_EXCL;
    if (how & DISK_DIRECT)
        flags |= O_DIRECT;
    return flags;
}

/* That a file is not there, or there already, is an answer, not a failure. */
static enum err could_not_open(const char *path, unsigned how, int saved_errno)
{
    if (saved_errno == ENOENT && !(how & DISK_CREATE))
        return ERR_NOT_FOUND;
    if (saved_errno == EEXIST)
        return ERR_EXISTS;
    if (saved_errno == EINVAL && (how & DISK_DIRECT))
        return ERR_NOT_ALLOWED;
    return failed("open", path, saved_errno);
}

static enum err real_open(struct disk *d, const char *path, unsigned how, struct disk_file **out)
{
    const int fd = open(path, flags_of(how), 0644);
    if (fd < 0) {
        const int saved = errno;
        /* A file system without O_DIRECT refuses after it has made the file. */
        if (saved == EINVAL && (how & DISK_CREATE))
            unlink(path);
        return could_not_open(path, how, saved);
    }
    struct real_file *f = mem_new(struct real_file);
    f->file.disk = d;
    f->fd = fd;
    f->path = mem_string(path);
    *out = &f->file;
    return ERR_OK;
}

/* Moves past what has been written already. */
static void advance(struct iovec **iov, int *n, size_t by)
{
    while (*n > 0 && by >= (*iov)->iov_len) {
        by -= (*iov)->iov_len;
        (*iov)++;
        (*n)--;
    }
    if (*n > 0) {
        (*iov)->iov_base = (char *)(*iov)->iov_base + by;
        (*iov)->iov_len -= by;
    }
}

static enum err write_some(struct real_file *f, uint64_t *at, struct iovec *iov, int n)
{
    for (advance(&iov, &n, 0); n > 0;) {
        const ssize_t done = pwritev(f->fd, iov, n, (off_t)*at);
        if (done < 0 && errno == EINTR)
            continue;
        if (done <= 0)
            return failed("write", f->path, done < 0 ? errno : ENOSPC);
        *at += (uint64_t)done;
        advance(&iov, &n, (size_t)done);
    }
    return ERR_OK;
}

#define IOV_BATCH 256

static enum err real_write(struct disk_file *file, uint64_t at, const struct iovec *iov, int n)
{
    struct real_file *f = real_of(file);
    struct iovec copy[IOV_BATCH]; /* a short write moves its bounds */
    while (n > 0) {
        const int some = n < IOV_BATCH ? n : IOV_BATCH;
        memcpy(copy, iov, (size_t)some * sizeof *iov);
        TRY(write_some(f, &at, copy, some));
        iov += some;
        n -= some;
    }
    return ERR_OK;
}

static enum err real_read(struct disk_file *file, uint64_t at, void *into, size_t len, size_t *got)
{
    struct real_file *f = real_of(file);
    *got = 0;
    while (*got < len) {
        const ssize_t n =
            pread(f->fd, (char *)into + *got, len - *got, (off_t)(at + (uint64_t)*got));
        if (n < 0 && errno == EINTR)
            continue;
        if (n < 0)
            return failed("read", f->path, errno);
        if (n == 0)
            break;
        *got += (size_t)n;
    }
    return ERR_OK;
}

static enum err real_size(struct disk_file *file, uint64_t *out)
{
    struct real_file *f = real_of(file);
    struct stat st;
    if (fstat(f->fd, &st) != 0)
        return failed("size", f->path, errno);
    *out = (uint64_t)st.st_size;
    return ERR_OK;
}

static enum err real_truncate(struct disk_file *file, uint64_t size)
{
    struct real_file *f = real_of(file);
    if (ftruncate(f->fd, (off_t)size) != 0)
        return failed("truncate", f->path, errno);
    return ERR_OK;
}

static enum err real_sync(struct disk_file *file)
{
    struct real_file *f = real_of(file);
    if (fdatasync(f->fd) != 0)
        return failed("sync", f->path, errno);
    return ERR_OK;
}

static void real_close(struct disk_file **file)
{
    if (!*file)
        return;
    struct real_file *f = real_of(*file);
    *file = NULL;
    close(f->fd);
    mem_free(f->path);
    mem_free(f);
}

static enum err real_rename(struct disk *d, const char *from, const char *to)
{
    (void)d;
    if (rename(from, to) != 0)
        return failed("rename", from, errno);
    return ERR_OK;
}

static enum err real_remove(struct disk *d, const char *path)
{
    (void)d;
    if (remove(path) == 0)
        return ERR_OK;
    return errno == ENOENT ? ERR_NOT_FOUND : failed("remove", path, errno);
}

static bool is_dir(const char *path)
{
    struct stat st;
    return stat(path, &st) == 0 && S_ISDIR(st.st_mode);
}

/* One level; `path` must have its parents. */
static enum err make_one(const char *path)
{
    if (mkdir(path, 0755) == 0 || (errno == EEXIST && is_dir(path)))
        return ERR_OK;
    return failed("mkdir", path, errno);
}

static enum err real_sync_dir(struct disk *d, const char *path);

/* A directory whose name is lost in a crash takes the files in it with it. */
static enum err make_durable(struct disk *d, const char *path)
{
    char parent[PATH_MAX];
    TRY(make_one(path));
    const char *slash = strrchr(path, '/');
    const int len = slash ? (int)(slash - path) : 0;
    snprintf(parent, sizeof parent, "%.*s", len, path);
    return real_sync_dir(d, slash == path ? "/" : len > 0 ? parent : ".");
}

static enum err real_mkdir(struct disk *d, const char *path)
{
    char level[PATH_MAX];
    const size_t len = strlen(path);
    if (is_dir(path))
        return ERR_OK;
    if (len == 0 || len >= sizeof level)
        return failed("mkdir", path, len ? ENAMETOOLONG : ENOENT);
    memcpy(level, path, len + 1);
    for (size_t i = 1; i <= len; i++) {
        if (level[i] != '/' && level[i] != '\0')
            continue;
        level[i] = '\0';
        if (!is_dir(level))
            TRY(make_durable(d, level));
        level[i] = path[i];
    }
    return ERR_OK;
}

static enum err real_sync_dir(struct disk *d, const char *path)
{
    (void)d;
    const int fd = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (fd < 0)
        return failed("sync_dir", path, errno);
    const int saved = fsync(fd) == 0 ? 0 : errno;
    close(fd);
    return saved ? failed("sync_dir", path, saved) : ERR_OK;
}

static enum err real_list(struct disk *d, const char *path,
                          void (*each)(void *ctx, const char *name), void *ctx)
{
    (void)d;
    DIR *dir = opendir(path);
    if (!dir)
        return errno == ENOENT ? ERR_NOT_FOUND : failed("list", path, errno);
    errno = 0;
    for (struct dirent *e; (e = readdir(dir)); errno = 0)
        if (strcmp(e->d_name, ".") != 0 && strcmp(e->d_name, "..") != 0)
            each(ctx, e->d_name);
    const int saved = errno;
    closedir(dir);
    return saved ? failed("list", path, saved) : ERR_OK;
}

/* Free is what an ordinary user may still write. */
static enum err real_space(struct disk *d, const char *path, uint64_t *free_bytes,
                           uint64_t *total_bytes)
{
    (void)d;
    struct statvfs st;
    if (statvfs(path, &st) != 0)
        return failed("space", path, errno);
    *free_bytes = (uint64_t)st.f_bavail * st.f_frsize;
    *total_bytes = (uint64_t)st.f_blocks * st.f_frsize;
    return ERR_OK;
}

struct disk *disk_real(void)
{
    static const struct disk_ops ops = {
        .open = real_open,
        .write = real_write,
        .read = real_read,
        .size = real_size,
        .truncate = real_truncate,
        .sync = real_sync,
        .close = real_close,
        .rename = real_rename,
        .remove = real_remove,
        .mkdir = real_mkdir,
        .sync_dir = real_sync_dir,
        .list = real_list,
        .space = real_space,
    };
    static struct disk disk = {.ops = &ops};
    return &disk;
}

/* The file stays when the lock goes: removing it would let two hold "the" lock. */
enum err disk_lock(const char *path, int *out)
{
    const int fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0644);
    if (fd < 0)
        return failed("lock", path, errno);
    if (flock(fd, LOCK_EX | LOCK_NB) != 0) {
        const int saved = errno;
        close(fd);
        return saved == EWOULDBLOCK ? ERR_EXISTS : failed("lock", path, saved);
    }
    *out = fd;
    return ERR_OK;
}

void disk_unlock(int *lock)
{
    if (*lock >= 0)
        close(*lock);
    *lock = -1;
}
