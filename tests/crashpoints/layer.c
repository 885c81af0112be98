/* A layer between a program and libc (LD_PRELOAD) that records what is done to files, and fails or
 * lies when asked to.
 *
 *   CRASHPOINTS_ROOT=DIR        the files below it
 *   CRASHPOINTS_RECORDING=FILE  where to (recording.h)
 *   CRASHPOINTS_SYNC_US=N       a sync takes up to N us longer: who does not wait for it is seen
 *   CRASHPOINTS_FAIL=K:ERRNO    the K-th operation fails, from 1
 *   CRASHPOINTS_LIE=PATTERN     syncs of what is called so do nothing (fnmatch); DIR/ a directory
 *   CRASHPOINTS_LIE_AFTER=KIND  ... once the program has noted one of this kind
 *   CRASHPOINTS_NOSYNC=1        alone: nothing is recorded; syncs and reserves cost nothing
 *
 * What is there already counts as written and synced.  Processes that are forked go on in the same
 * recording.
 */
#include <errno.h>
#include <fcntl.h>
#include <fnmatch.h>
#include <ftw.h>
#include <limits.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <time.h>
#include <unistd.h>

#include "tests/crashpoints/layer.h"

enum { FDS = 4096, INODES = 1 << 16, SECTOR = 512 };

/* Of all processes. */
struct shared {
    pthread_mutex_t lock;
    uint64_t records, operations; /* written; that could have failed */
    uint32_t objects;
    uint64_t random;
    bool is_lying;
    struct known known[INODES]; /* by inode, open addressing */
};

struct open_file {
    uint64_t inode;
    uint32_t object; /* 0: none of ours */
    bool is_dir;
    char path[REC_PATH_MAX];
};

static struct shared *shared;
static struct open_file files[FDS];
static char root[PATH_MAX];
static size_t root_len;
static int out = -1;
static uint64_t fail_at, sync_us;
static int fail_with;
static const char *lie;
static uint64_t lie_after;
static bool no_sync;

static void import_all(void);

__attribute__((constructor)) static void begin(void)
{
    pthread_mutexattr_t a;
    const char *dir = getenv("CRASHPOINTS_ROOT"), *to = getenv("CRASHPOINTS_RECORDING");
    const char *fail = getenv("CRASHPOINTS_FAIL"), *us = getenv("CRASHPOINTS_SYNC_US");
    const char *after = getenv("CRASHPOINTS_LIE_AFTER");
    no_sync = getenv("CRASHPOINTS_NOSYNC") != NULL;
    if (!dir || !to || !realpath(dir, root))
        return;
    root_len = strlen(root);
    lie = getenv("CRASHPOINTS_LIE");
    lie_after = after ? strtoull(after, NULL, 10) : 0;
    sync_us = us ? strtoull(us, NULL, 10) : 0;
    if (fail && sscanf(fail, "%lu:%d", &fail_at, &fail_with) != 2)
        fail_at = 0;
    out = open(to, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0644);
    shared = mmap(NULL, sizeof *shared, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (out < 0 || shared == MAP_FAILED) {
        shared = NULL;
        return;
    }
    pthread_mutexattr_init(&a);
    pthread_mutexattr_setpshared(&a, PTHREAD_PROCESS_SHARED);
    pthread_mutexattr_setrobust(&a, PTHREAD_MUTEX_ROBUST);
    pthread_mutex_init(&shared->lock, &a);
    shared->random = 1;
    shared->is_lying = lie_after == 0;
    import_all();
    /* What this process starts has no layer: it would be told to begin anew. */
    unsetenv("LD_PRELOAD");
}

/* ---- the recording -------------------------------------------------------------------------- */

void layer_lock(void)
{
    if (pthread_mutex_lock(&shared->lock) == EOWNERDEAD)
        pthread_mutex_consistent(&shared->lock);
}

void layer_unlock(void)
{
    pthread_mutex_unlock(&shared->lock);
}

static uint64_t below(uint64_t n)
{
    shared->random = shared->random * 6364136223846793005u + 1442695040888963407u;
    return (shared->random >> 33) % n;
}

static void put(const struct rec *r, const char *path, const char *path2, const struct iovec *iov,
                int n)
{
    struct iovec all[3 + IOV_MAX];
    all[0] = (struct iovec){(void *)(uintptr_t)r, sizeof *r};
    all[1] = (struct iovec){(void *)(uintptr_t)path, r->path_len};
    all[2] = (struct iovec){(void *)(uintptr_t)path2, r->path2_len};
    int used = 3;
    size_t left = r->payload;
    for (int i = 0; i < n && left > 0; i++) {
        const size_t some = iov[i].iov_len < left ? iov[i].iov_len : left;
        all[used++] = (struct iovec){iov[i].iov_base, some};
        left -= some;
    }
    /* More than IOV_MAX pieces in all are those of nobody here. */
    if (syscall(SYS_writev, out, all, used > IOV_MAX ? IOV_MAX : used) < 0)
        abort();
    shared->records++;
}

void layer_record(enum rec_op op, uint32_t object, const char *path, const char *path2, uint64_t at,
                  uint64_t len)
{
    const struct rec r = {.magic = REC_MAGIC,
                          .op = (uint8_t)op,
                          .path_len = (uint16_t)(path ? strlen(path) : 0),
                          .path2_len = (uint16_t)(path2 ? strlen(path2) : 0),
                          .object = object,
                          .at = at,
                          .len = len};
    put(&r, path, path2, NULL, 0);
}

static bool all_zeros(const struct iovec *iov, int n, size_t len)
{
    for (int i = 0; i < n && len > 0; i++) {
        const char *p = iov[i].iov_base;
        const size_t some = iov[i].iov_len < len ? iov[i].iov_len : len;
        if (some > 0 && (p[0] || memcmp(p, p + 1, some - 1) != 0))
            return false;
        len -= some;
    }
    return true;
}

static void record_write(uint32_t object, uint64_t at, const struct iovec *iov, int n, size_t len)
{
    const bool zeros = all_zeros(iov, n, len);
    const struct rec r = {.magic = REC_MAGIC,
                          .op = REC_WRITE,
                          .flags = zeros ? REC_ZEROS : 0,
                          .payload = zeros ? 0 : (uint32_t)len,
                          .object = object,
                          .at = at,
                          .len = len};
    put(&r, NULL, NULL, iov, n);
}

void crashpoints_note(uint64_t kind, const void *bytes, uint32_t len)
{
    const struct rec r = {.magic = REC_MAGIC, .op = REC_NOTE, .payload = len, .at = kind};
    const struct iovec iov = {(void *)(uintptr_t)bytes, len};
    if (!shared)
        return;
    layer_lock();
    put(&r, NULL, NULL, &iov, 1);
    shared->is_lying |= kind == lie_after;
    layer_unlock();
}

void crashpoints_die(int code)
{
    if (shared)
        layer_lock(); /* whoever holds it has recorded what it did; the next process takes it over
                       */
    syscall(SYS_exit_group, code);
}

/* Is it this one's turn to fail? */
int layer_fails(enum rec_op op, const char *path)
{
    shared->operations++;
    if (shared->operations != fail_at)
        return 0;
    layer_record(REC_FAILED, 0, path, NULL, op, (uint64_t)fail_with);
    return fail_with;
}

static bool lies_about(const struct open_file *f)
{
    char name[REC_PATH_MAX + 1];
    snprintf(name, sizeof name, "%s%s", f->path, f->is_dir ? "/" : "");
    return lie && shared->is_lying && fnmatch(lie, name, 0) == 0;
}

/* ---- which file ----------------------------------------------------------------------------- */

static struct known *slot_of(uint64_t inode)
{
    size_t i = (inode * 0x9e3779b97f4a7c15u) >> 48;
    while (shared->known[i].inode && shared->known[i].inode != inode)
        i = (i + 1) % INODES;
    return &shared->known[i];
}

uint32_t layer_name_object(uint64_t inode)
{
    struct known *k = slot_of(inode);
    *k = (struct known){inode, ++shared->objects};
    return k->object;
}

uint32_t layer_object_at(const char *path)
{
    struct stat st;
    if (syscall(SYS_newfstatat, AT_FDCWD, path, &st, AT_SYMLINK_NOFOLLOW) != 0)
        return 0;
    return slot_of(st.st_ino)->object;
}

/* What is at a path goes: its inode may be another file's soon. */
struct known *layer_leaving(const char *path)
{
    struct stat st;
    const bool is_there = syscall(SYS_newfstatat, AT_FDCWD, path, &st, AT_SYMLINK_NOFOLLOW) == 0;
    return is_there && st.st_nlink == 1 ? slot_of(st.st_ino) : NULL;
}

/* Without "//" and "/./", and no "/" at the end. */
static void tidy(char *path)
{
    char *to = path;
    for (const char *from = path; *from;) {
        if (from[0] == '/' && (from[1] == '/' || from[1] == '\0')) {
            from++;
        } else if (from[0] == '/' && from[1] == '.' && (from[2] == '/' || from[2] == '\0')) {
            from += 2;
        } else {
            *to++ = *from++;
        }
    }
    *to = '\0';
}

/* Below the root?  Then its path from there; the root itself is "". */
bool layer_is_ours(int dir, const char *path, char rel[REC_PATH_MAX])
{
    char whole[2 * PATH_MAX];
    if (!shared || (path[0] != '/' && dir != AT_FDCWD))
        return false;
    if (path[0] == '/') {
        snprintf(whole, sizeof whole, "%s", path);
    } else {
        char here[PATH_MAX];
        if (syscall(SYS_getcwd, here, sizeof here) < 0)
            return false;
        snprintf(whole, sizeof whole, "%s/%s", here, path);
    }
    tidy(whole);
    if (strncmp(whole, root, root_len) != 0 || (whole[root_len] && whole[root_len] != '/'))
        return false;
    snprintf(rel, REC_PATH_MAX, "%s", whole[root_len] ? whole + root_len + 1 : "");
    return true;
}

/* The file behind a descriptor, if it is one of ours still: it may have been closed by somebody
 * whom we do not see. */
static struct open_file *file_of(int fd)
{
    struct stat st;
    if (!shared || fd < 0 || fd >= FDS || files[fd].object == 0)
        return NULL;
    if (syscall(SYS_fstat, fd, &st) != 0 || st.st_ino != files[fd].inode) {
        files[fd].object = 0;
        return NULL;
    }
    return &files[fd];
}

int layer_failed(int why)
{
    errno = why;
    return -1;
}

/* ---- opening -------------------------------------------------------------------------------- */

static void note_open(int fd, int flags, bool is_new, const char *rel)
{
    struct stat st;
    if (fd >= FDS || syscall(SYS_fstat, fd, &st) != 0)
        return;
    const bool is_dir = S_ISDIR(st.st_mode);
    struct open_file *f = &files[fd];
    *f = (struct open_file){.inode = st.st_ino, .is_dir = is_dir};
    snprintf(f->path, sizeof f->path, "%s", rel);
    f->object = is_new ? layer_name_object(st.st_ino) : slot_of(st.st_ino)->object;
    if (!f->object && is_dir) /* the root, or what was there before */
        f->object = layer_name_object(st.st_ino);
    if (is_new)
        layer_record(REC_CREATE, f->object, rel, NULL, 0, 0);
    else if (flags & O_TRUNC)
        layer_record(REC_TRUNCATE, f->object, NULL, NULL, 0, 0);
}

static int open_any(int dir, const char *path, int flags, mode_t mode)
{
    char rel[REC_PATH_MAX];
    if (!layer_is_ours(dir, path, rel))
        return (int)syscall(SYS_openat, dir, path, flags, mode);
    layer_lock();
    const bool is_new = (flags & O_CREAT) && syscall(SYS_faccessat, dir, path, F_OK) != 0;
    const int why = is_new ? layer_fails(REC_CREATE, rel) : 0;
    const int fd = why ? layer_failed(why) : (int)syscall(SYS_openat, dir, path, flags, mode);
    if (fd >= 0)
        note_open(fd, flags, is_new, rel);
    const int saved = errno;
    if (fd < 0 && is_new && layer_object_at(path) == 0) {
        struct stat st; /* O_DIRECT may be refused after the file was made */
        if (!why && syscall(SYS_newfstatat, dir, path, &st, 0) == 0)
            layer_record(REC_CREATE, layer_name_object(st.st_ino), rel, NULL, 0, 0);
    }
    layer_unlock();
    errno = saved;
    return fd;
}

#define MODE_OF(flags, mode)                 \
    mode_t mode = 0;                         \
    if ((flags) & (O_CREAT | __O_TMPFILE)) { \
        va_list list;                        \
        va_start(list, flags);               \
        mode = va_arg(list, mode_t);         \
        va_end(list);                        \
    }

int open(const char *path, int flags, ...)
{
    MODE_OF(flags, mode)
    return open_any(AT_FDCWD, path, flags, mode);
}

int open64(const char *path, int flags, ...)
{
    MODE_OF(flags, mode)
    return open_any(AT_FDCWD, path, flags, mode);
}

int openat(int dir, const char *path, int flags, ...)
{
    MODE_OF(flags, mode)
    return open_any(dir, path, flags, mode);
}

int openat64(int dir, const char *path, int flags, ...)
{
    MODE_OF(flags, mode)
    return open_any(dir, path, flags, mode);
}

int creat(const char *path, mode_t mode)
{
    return open_any(AT_FDCWD, path, O_CREAT | O_WRONLY | O_TRUNC, mode);
}

int creat64(const char *path, mode_t mode)
{
    return open_any(AT_FDCWD, path, O_CREAT | O_WRONLY | O_TRUNC, mode);
}

int close(int fd)
{
    if (fd >= 0 && fd < FDS)
        files[fd].object = 0;
    return (int)syscall(SYS_close, fd);
}

/* ---- what is there already ------------------------------------------------------------------ */

static void put_sync(enum rec_op op, const struct open_file *f, uint64_t began);

static void sync_now(uint32_t object, const char *rel, bool is_dir)
{
    struct open_file f = {.object = object, .is_dir = is_dir};
    snprintf(f.path, sizeof f.path, "%s", rel);
    const uint64_t began = shared->records;
    put_sync(REC_SYNC_BEGIN, &f, 0);
    put_sync(REC_SYNC_END, &f, began);
}

static void import_bytes(const char *path, uint32_t object)
{
    static char bytes[1 << 20];
    const int fd = (int)syscall(SYS_openat, AT_FDCWD, path, O_RDONLY | O_CLOEXEC);
    ssize_t n;
    for (uint64_t at = 0; (n = syscall(SYS_read, fd, bytes, sizeof bytes)) > 0; at += (uint64_t)n) {
        const struct iovec iov = {bytes, (size_t)n};
        record_write(object, at, &iov, 1, (size_t)n);
    }
    syscall(SYS_close, fd);
}

static int import_one(const char *path, const struct stat *st, int kind, struct FTW *where)
{
    const char *rel = path + root_len + (path[root_len] == '/');
    (void)kind;
    if (where->level == 0)
        return 0;
    const uint32_t object = layer_name_object(st->st_ino);
    layer_record(S_ISDIR(st->st_mode) ? REC_MKDIR : REC_CREATE, object, rel, NULL, 0, 0);
    if (S_ISREG(st->st_mode)) {
        import_bytes(path, object);
        sync_now(object, rel, false);
    }
    const char *slash = strrchr(rel, '/');
    char dir[REC_PATH_MAX];
    snprintf(dir, sizeof dir, "%.*s", slash ? (int)(slash - rel) : 0, rel);
    sync_now(0, dir, true);
    return 0;
}

static void import_all(void)
{
    nftw(root, import_one, 16, FTW_PHYS);
}

/* ---- writing -------------------------------------------------------------------------------- */

static ssize_t write_at(int fd, const struct iovec *iov, int n, off_t at)
{
    return at < 0 ? syscall(SYS_writev, fd, iov, n)
                  : syscall(SYS_pwritev, fd, iov, n, (unsigned long)at, 0ul);
}

/* A device that fails may have taken some of it. */
static ssize_t write_badly(int fd, const struct iovec *iov, int n, off_t at, off_t where,
                           uint32_t object, int why)
{
    struct iovec first = iov[0];
    (void)n;
    first.iov_len = first.iov_len / SECTOR > 0 ? below(first.iov_len / SECTOR) * SECTOR : 0;
    if (why == EIO && first.iov_len > 0 && write_at(fd, &first, 1, at) == (ssize_t)first.iov_len)
        record_write(object, (uint64_t)where, &first, 1, first.iov_len);
    return layer_failed(why);
}

/* at -1: where the descriptor stands. */
static ssize_t write_any(int fd, const struct iovec *iov, int n, off_t at)
{
    struct stat st;
    struct open_file *f = file_of(fd);
    if (!f)
        return write_at(fd, iov, n, at);
    layer_lock();
    off_t where = at;
    if (at < 0) {
        where = (off_t)syscall(SYS_lseek, fd, 0, SEEK_CUR);
        if ((syscall(SYS_fcntl, fd, F_GETFL) & O_APPEND) && syscall(SYS_fstat, fd, &st) == 0)
            where = st.st_size;
    }
    const int why = layer_fails(REC_WRITE, f->path);
    const ssize_t done =
        why ? write_badly(fd, iov, n, at, where, f->object, why) : write_at(fd, iov, n, at);
    const int saved = errno;
    if (done > 0)
        record_write(f->object, (uint64_t)where, iov, n, (size_t)done);
    layer_unlock();
    errno = saved;
    return done;
}

ssize_t write(int fd, const void *bytes, size_t len)
{
    const struct iovec iov = {(void *)(uintptr_t)bytes, len};
    return file_of(fd) ? write_any(fd, &iov, 1, -1) : syscall(SYS_write, fd, bytes, len);
}

ssize_t writev(int fd, const struct iovec *iov, int n)
{
    return write_any(fd, iov, n, -1);
}

ssize_t pwrite(int fd, const void *bytes, size_t len, off_t at)
{
    const struct iovec iov = {(void *)(uintptr_t)bytes, len};
    return write_any(fd, &iov, 1, at);
}

ssize_t pwrite64(int fd, const void *bytes, size_t len, off64_t at)
{
    const struct iovec iov = {(void *)(uintptr_t)bytes, len};
    return write_any(fd, &iov, 1, at);
}

ssize_t pwritev(int fd, const struct iovec *iov, int n, off_t at)
{
    return write_any(fd, iov, n, at);
}

ssize_t pwritev64(int fd, const struct iovec *iov, int n, off64_t at)
{
    return write_any(fd, iov, n, at);
}

ssize_t pwritev2(int fd, const struct iovec *iov, int n, off_t at, int flags)
{
    (void)flags; /* RWF_DSYNC would be believed to be no sync */
    return write_any(fd, iov, n, at);
}

ssize_t pwritev64v2(int fd, const struct iovec *iov, int n, off64_t at, int flags)
{
    (void)flags;
    return write_any(fd, iov, n, at);
}

static int truncate_any(int fd, off_t len)
{
    struct open_file *f = file_of(fd);
    if (!f)
        return (int)syscall(SYS_ftruncate, fd, len);
    layer_lock();
    const int why = layer_fails(REC_TRUNCATE, f->path);
    const int rc = why ? layer_failed(why) : (int)syscall(SYS_ftruncate, fd, len);
    if (rc == 0)
        layer_record(REC_TRUNCATE, f->object, NULL, NULL, 0, (uint64_t)len);
    layer_unlock();
    return rc;
}

int ftruncate(int fd, off_t len)
{
    return truncate_any(fd, len);
}

int ftruncate64(int fd, off64_t len)
{
    return truncate_any(fd, len);
}

int truncate(const char *path, off_t len)
{
    const int fd = open(path, O_WRONLY | O_CLOEXEC);
    if (fd < 0)
        return -1;
    const int rc = truncate_any(fd, len), saved = errno;
    close(fd);
    errno = saved;
    return rc;
}

static void unsupported(const char *what)
{
    layer_lock();
    layer_record(REC_UNSUPPORTED, 0, what, NULL, 0, 0);
    layer_unlock();
}

static int allocate_any(int fd, int mode, off_t at, off_t len)
{
    struct open_file *f = file_of(fd);
    if (!f && no_sync && (mode & FALLOC_FL_KEEP_SIZE))
        return 0; /* a reserve that nobody sees, and costly in memory */
    if (!f)
        return (int)syscall(SYS_fallocate, fd, mode, at, len);
    layer_lock();
    const int why = layer_fails(REC_ALLOCATE, f->path);
    const int rc = why ? layer_failed(why) : (int)syscall(SYS_fallocate, fd, mode, at, len);
    const int saved = errno;
    const int other = mode & ~FALLOC_FL_KEEP_SIZE;
    if (rc == 0 && mode == 0)
        layer_record(REC_ALLOCATE, f->object, NULL, NULL, 0, (uint64_t)(at + len));
    layer_unlock();
    /* A hole behind the end, by which RocksDB gives back what it had reserved, changes nothing. */
    struct stat st;
    if (rc == 0 && other && syscall(SYS_fstat, fd, &st) == 0 && at < st.st_size)
        unsupported("fallocate");
    errno = saved;
    return rc;
}

int fallocate(int fd, int mode, off_t at, off_t len)
{
    return allocate_any(fd, mode, at, len);
}

int fallocate64(int fd, int mode, off64_t at, off64_t len)
{
    return allocate_any(fd, mode, at, len);
}

int posix_fallocate(int fd, off_t at, off_t len)
{
    return allocate_any(fd, 0, at, len) == 0 ? 0 : errno;
}

int posix_fallocate64(int fd, off64_t at, off64_t len)
{
    return allocate_any(fd, 0, at, len) == 0 ? 0 : errno;
}

static void *map_any(void *addr, size_t len, int prot, int flags, int fd, off_t at)
{
    if ((flags & MAP_SHARED) && (prot & PROT_WRITE) && fd >= 0 && file_of(fd))
        unsupported("mmap");
    return (void *)syscall(SYS_mmap, addr, len, prot, flags, fd, at); /* NOLINT */
}

void *mmap(void *addr, size_t len, int prot, int flags, int fd, off_t at)
{
    return map_any(addr, len, prot, flags, fd, at);
}

void *mmap64(void *addr, size_t len, int prot, int flags, int fd, off64_t at)
{
    return map_any(addr, len, prot, flags, fd, at);
}

ssize_t copy_file_range(int in, off64_t *in_at, int to, off64_t *to_at, size_t len, unsigned flags)
{
    if (file_of(to))
        unsupported("copy_file_range");
    return syscall(SYS_copy_file_range, in, in_at, to, to_at, len, flags);
}

/* ---- syncing -------------------------------------------------------------------------------- */

static void put_sync(enum rec_op op, const struct open_file *f, uint64_t began)
{
    const struct rec r = {.magic = REC_MAGIC,
                          .op = (uint8_t)op,
                          .flags = f->is_dir ? REC_DIR : 0,
                          .path_len = (uint16_t)strlen(f->path),
                          .object = f->object,
                          .len = began};
    put(&r, f->path, NULL, NULL, 0);
}

static int sync_any(int fd, long how)
{
    struct open_file *f = file_of(fd);
    if (!f)
        return no_sync ? 0 : (int)syscall(how, fd);
    layer_lock();
    const struct open_file what = *f;
    const int why = layer_fails(REC_SYNC_BEGIN, what.path);
    const uint64_t began = shared->records, wait = sync_us ? below(sync_us) : 0;
    const bool is_lie = lies_about(&what);
    if (why || !is_lie)
        put_sync(why ? REC_SYNC_FAILED : REC_SYNC_BEGIN, &what, 0);
    layer_unlock();
    if (why)
        return layer_failed(why);
    const struct timespec t = {.tv_nsec = (long)wait * 1000};
    nanosleep(&t, NULL);
    if (is_lie)
        return 0;
    layer_lock();
    put_sync(REC_SYNC_END, &what, began);
    layer_unlock();
    return 0;
}

int fsync(int fd)
{
    return sync_any(fd, SYS_fsync);
}

int fdatasync(int fd)
{
    return sync_any(fd, SYS_fdatasync);
}

int sync_file_range(int fd, off64_t at, off64_t len, unsigned flags)
{
    if (file_of(fd) || no_sync) /* it promises nothing */
        return 0;
    return (int)syscall(SYS_sync_file_range, fd, at, len, flags);
}
