#include "tests/lib/fake_disk.h"

#include <assert.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "common/list.h"
#include "common/mem.h"
#include "common/rng.h"

#define SECTOR ((uint64_t)512)

struct bytes {
    uint8_t *at;
    uint64_t len;
};

/* A file lives while a name (seen or surviving) or an open handle leads to it. */
struct inode {
    struct list_node node;
    struct bytes seen, synced;
    bool is_dir;
    bool sync_failed; /* what the kernel dropped at a failed sync never gets to the disk */
};

/* A name; `seen` and `survives` differ until its directory is synced. */
struct name {
    struct list_node node;
    char *path;
    struct inode *seen, *survives;
};

struct fake_disk {
    struct disk disk;
    pthread_mutex_t lock;
    struct list_node names, inodes;
    struct fault faults[FAKE_OPS];
    enum err write_err;
    unsigned calls[FAKE_OPS];
    uint64_t budget;
    unsigned sync_us;
    bool no_direct;
    bool tears;
    uint64_t seed;
    unsigned lives; /* crashes so far */
};

struct fake_file {
    struct disk_file file;
    struct inode *inode;
    bool writes;
    unsigned life;
};

static struct fake_disk *fake_of(struct disk *d)
{
    return container_of(d, struct fake_disk, disk);
}

static struct fake_file *file_of(struct disk_file *f)
{
    return container_of(f, struct fake_file, file);
}

static struct fake_disk *lock(struct disk *d)
{
    struct fake_disk *f = fake_of(d);
    pthread_mutex_lock(&f->lock);
    return f;
}

static enum err unlock(struct fake_disk *f, enum err e)
{
    pthread_mutex_unlock(&f->lock);
    return e;
}

static bool strikes(struct fake_disk *f, enum fake_op op)
{
    f->calls[op]++;
    f->calls[FAKE_ANY]++;
    const bool own = fault_strikes(&f->faults[op]);
    const bool any = fault_strikes(&f->faults[FAKE_ANY]);
    return own || any;
}

/* ---- bytes ---------------------------------------------------------------------------------- */

static void bytes_resize(struct bytes *b, uint64_t len)
{
    b->at = mem_resize(b->at, (size_t)len);
    if (len > b->len)
        memset(b->at + b->len, 0, (size_t)(len - b->len));
    b->len = len;
}

static void bytes_copy(struct bytes *to, const struct bytes *from)
{
    bytes_resize(to, from->len);
    if (from->len > 0)
        memcpy(to->at, from->at, (size_t)from->len);
}

static uint64_t used(const struct fake_disk *f)
{
    uint64_t sum = 0;
    list_each(&f->names, n)
    {
        const struct name *name = list_entry(n, struct name, node);
        sum += name->seen ? name->seen->seen.len : 0;
    }
    return sum;
}

/* ---- names ---------------------------------------------------------------------------------- */

/* Paths are compared as text, so what means the same must look the same. */
static char *normal(const char *path)
{
    char *out = mem_string(path);
    size_t len = 0;
    for (const char *c = path; *c; c++)
        if (*c != '/' || len == 0 || out[len - 1] != '/')
            out[len++] = *c;
    while (len > 1 && out[len - 1] == '/')
        len--;
    out[len] = '\0';
    return out;
}

static struct name *find(struct fake_disk *f, const char *path)
{
    char *same = normal(path);
    struct name *found = NULL;
    list_each(&f->names, n)
    {
        struct name *name = list_entry(n, struct name, node);
        if (strcmp(name->path, same) == 0)
            found = name;
    }
    mem_free(same);
    return found;
}

static struct name *find_seen(struct fake_disk *f, const char *path)
{
    struct name *n = find(f, path);
    return n && n->seen ? n : NULL;
}

static struct name *find_or_add(struct fake_disk *f, const char *path)
{
    struct name *n = find(f, path);
    if (n)
        return n;
    n = mem_new(struct name);
    n->path = normal(path);
    list_push_back(&f->names, &n->node);
    return n;
}

/* The part of `path` below `dir`, or NULL where it is not directly in there. */
static const char *child_of(const char *dir, const char *path)
{
    size_t len = strlen(dir);
    if (strcmp(dir, ".") == 0)
        return strchr(path, '/') ? NULL : path;
    if (strcmp(dir, "/") == 0)
        len = 0;
    if (strncmp(dir, path, len) != 0 || path[len] != '/' || !path[len + 1])
        return NULL;
    return strchr(path + len + 1, '/') ? NULL : path + len + 1;
}

static bool has_parent(struct fake_disk *f, const char *path)
{
    char *dir = normal(path);
    char *slash = strrchr(dir, '/');
    bool there = !slash || slash == dir;
    if (!there) {
        *slash = '\0';
        struct name *n = find_seen(f, dir);
        there = n && n->seen->is_dir;
    }
    mem_free(dir);
    return there;
}

static struct inode *inode_new(struct fake_disk *f, bool is_dir)
{
    struct inode *i = mem_new(struct inode);
    i->is_dir = is_dir;
    list_push_back(&f->inodes, &i->node);
    return i;
}

/* ---- operations ----------------------------------------------------------------------------- */

static enum err pick(struct fake_disk *f, const char *path, unsigned how, struct inode **out)
{
    struct name *n = find_seen(f, path);
    if (how & DISK_DIRECT && f->no_direct)
        return ERR_NOT_ALLOWED;
    if (n && n->seen->is_dir)
        return ERR_IO;
    if (how & DISK_CREATE) {
        if (n)
            return ERR_EXISTS;
        if (!has_parent(f, path))
            return ERR_NOT_FOUND;
        n = find_or_add(f, path);
        n->seen = inode_new(f, false);
    }
    if (!n)
        return ERR_NOT_FOUND;
    *out = n->seen;
    return ERR_OK;
}

static enum err fake_open(struct disk *d, const char *path, unsigned how, struct disk_file **out)
{
    struct fake_disk *f = lock(d);
    struct inode *inode;
    if (strikes(f, FAKE_OPEN))
        return unlock(f, ERR_IO);
    const enum err e = pick(f, path, how, &inode);
    if (e)
        return unlock(f, e);
    struct fake_file *file = mem_new(struct fake_file);
    file->file.disk = d;
    file->inode = inode;
    file->writes = how & (DISK_WRITE | DISK_CREATE);
    file->life = f->lives;
    *out = &file->file;
    return unlock(f, ERR_OK);
}

static enum err write_bytes(struct fake_disk *f, struct inode *i, uint64_t at, const void *from,
                            size_t len)
{
    const uint64_t end = at + len;
    if (end > i->seen.len && used(f) + (end - i->seen.len) > f->budget)
        return ERR_NO_SPACE;
    if (end > i->seen.len)
        bytes_resize(&i->seen, end);
    if (len > 0)
        memcpy(i->seen.at + at, from, len);
    return ERR_OK;
}

static enum err fake_write(struct disk_file *file, uint64_t at, const struct iovec *iov, int n)
{
    struct fake_disk *f = lock(file->disk);
    struct fake_file *h = file_of(file);
    const bool fails = strikes(f, FAKE_WRITE);
    uint64_t total = 0;
    if (h->life != f->lives || !h->writes)
        return unlock(f, ERR_IO);
    for (int i = 0; i < n; i++)
        total += iov[i].iov_len;
    uint64_t left = fails ? total / 2 : total;
    for (int i = 0; i < n && left > 0; i++) {
        const size_t len = iov[i].iov_len < left ? iov[i].iov_len : (size_t)left;
        const enum err e = write_bytes(f, h->inode, at, iov[i].iov_base, len);
        if (e)
            return unlock(f, e);
        at += len;
        left -= len;
    }
    return unlock(f, fails ? f->write_err : ERR_OK);
}

static enum err fake_read(struct disk_file *file, uint64_t at, void *into, size_t len, size_t *got)
{
    struct fake_disk *f = lock(file->disk);
    struct fake_file *h = file_of(file);
    *got = 0;
    if (strikes(f, FAKE_READ) || h->life != f->lives)
        return unlock(f, ERR_IO);
    const struct bytes *b = &h->inode->seen;
    if (at < b->len)
        *got = len < b->len - at ? len : (size_t)(b->len - at);
    if (*got > 0)
        memcpy(into, b->at + at, *got);
    return unlock(f, ERR_OK);
}

static enum err fake_size(struct disk_file *file, uint64_t *out)
{
    struct fake_disk *f = lock(file->disk);
    struct fake_file *h = file_of(file);
    if (strikes(f, FAKE_SIZE) || h->life != f->lives)
        return unlock(f, ERR_IO);
    *out = h->inode->seen.len;
    return unlock(f, ERR_OK);
}

static enum err fake_truncate(struct disk_file *file, uint64_t size)
{
    struct fake_disk *f = lock(file->disk);
    struct fake_file *h = file_of(file);
    if (strikes(f, FAKE_TRUNCATE) || h->life != f->lives || !h->writes)
        return unlock(f, ERR_IO);
    if (size > h->inode->seen.len && used(f) + (size - h->inode->seen.len) > f->budget)
        return unlock(f, ERR_NO_SPACE);
    bytes_resize(&h->inode->seen, size);
    return unlock(f, ERR_OK);
}

/* After a failed sync the kernel holds the pages for clean: a second sync says "done" and
 * has done nothing.  Only what is written from then on could still be saved, and that is of
 * no use to anybody, so nothing is. */
static void take_time(struct disk *d)
{
    struct fake_disk *f = lock(d);
    const unsigned us = f->sync_us;
    unlock(f, ERR_OK);
    if (us > 0)
        nanosleep(&(struct timespec){us / 1000000, (long)(us % 1000000) * 1000}, NULL);
}

static enum err fake_sync(struct disk_file *file)
{
    take_time(file->disk);
    struct fake_disk *f = lock(file->disk);
    struct fake_file *h = file_of(file);
    if (h->life != f->lives)
        return unlock(f, ERR_IO);
    if (strikes(f, FAKE_SYNC)) {
        h->inode->sync_failed = true;
        return unlock(f, ERR_IO);
    }
    if (!h->inode->sync_failed)
        bytes_copy(&h->inode->synced, &h->inode->seen);
    return unlock(f, ERR_OK);
}

static void fake_close(struct disk_file **file)
{
    if (*file)
        mem_free(file_of(*file));
    *file = NULL;
}

static enum err fake_rename(struct disk *d, const char *from, const char *to)
{
    struct fake_disk *f = lock(d);
    if (strikes(f, FAKE_RENAME))
        return unlock(f, ERR_IO);
    struct name *old = find_seen(f, from);
    if (!old || !has_parent(f, to))
        return unlock(f, ERR_NOT_FOUND);
    struct name *new = find_or_add(f, to);
    if (new != old) {
        new->seen = old->seen;
        old->seen = NULL;
    }
    return unlock(f, ERR_OK);
}

static bool is_empty_dir(struct fake_disk *f, const struct name *dir)
{
    list_each(&f->names, n)
    {
        const struct name *name = list_entry(n, struct name, node);
        if (name->seen && child_of(dir->path, name->path))
            return false;
    }
    return true;
}

static enum err fake_remove(struct disk *d, const char *path)
{
    struct fake_disk *f = lock(d);
    if (strikes(f, FAKE_REMOVE))
        return unlock(f, ERR_IO);
    struct name *n = find_seen(f, path);
    if (!n)
        return unlock(f, ERR_NOT_FOUND);
    if (n->seen->is_dir && !is_empty_dir(f, n))
        return unlock(f, ERR_IO);
    n->seen = NULL;
    return unlock(f, ERR_OK);
}

/* As disk_real: each level is durable when the call returns. */
static enum err make_dirs(struct fake_disk *f, char *path)
{
    const size_t len = strlen(path);
    for (size_t i = 1; i <= len; i++) {
        const char c = path[i];
        if (c != '/' && c != '\0')
            continue;
        path[i] = '\0';
        struct name *n = find_or_add(f, path);
        path[i] = c;
        if (n->seen && !n->seen->is_dir)
            return ERR_IO;
        if (!n->seen)
            n->seen = inode_new(f, true);
        n->survives = n->seen;
    }
    return ERR_OK;
}

static enum err fake_mkdir(struct disk *d, const char *path)
{
    struct fake_disk *f = lock(d);
    if (strikes(f, FAKE_MKDIR))
        return unlock(f, ERR_IO);
    char *levels = normal(path);
    const enum err e = make_dirs(f, levels);
    mem_free(levels);
    return unlock(f, e);
}

static enum err fake_sync_dir(struct disk *d, const char *path)
{
    struct fake_disk *f = lock(d);
    char *dir = normal(path);
    const bool fails = strikes(f, FAKE_SYNC_DIR);
    list_each(&f->names, n)
    {
        struct name *name = list_entry(n, struct name, node);
        if (!fails && child_of(dir, name->path))
            name->survives = name->seen;
    }
    mem_free(dir);
    return unlock(f, fails ? ERR_IO : ERR_OK);
}

/* The names are copied first: `each` may well remove what it is shown. */
static enum err fake_list(struct disk *d, const char *path,
                          void (*each)(void *ctx, const char *name), void *ctx)
{
    struct fake_disk *f = lock(d);
    if (strikes(f, FAKE_LIST))
        return unlock(f, ERR_IO);
    char *dir = normal(path);
    const struct name *self = find_seen(f, dir);
    char **children = NULL;
    size_t count = 0;
    list_each(&f->names, n)
    {
        struct name *name = list_entry(n, struct name, node);
        const char *child = name->seen ? child_of(dir, name->path) : NULL;
        if (child) {
            children = mem_resize(children, (count + 1) * sizeof *children);
            children[count++] = mem_string(child);
        }
    }
    const bool there = count > 0 || (self && self->seen->is_dir) || strcmp(dir, "/") == 0;
    mem_free(dir);
    pthread_mutex_unlock(&f->lock);
    for (size_t i = 0; i < count; i++) {
        each(ctx, children[i]);
        mem_free(children[i]);
    }
    mem_free(children);
    return there ? ERR_OK : ERR_NOT_FOUND;
}

static enum err fake_space(struct disk *d, const char *path, uint64_t *free_bytes,
                           uint64_t *total_bytes)
{
    struct fake_disk *f = lock(d);
    (void)path;
    if (strikes(f, FAKE_SPACE))
        return unlock(f, ERR_IO);
    const uint64_t taken = used(f);
    *total_bytes = f->budget;
    *free_bytes = taken < f->budget ? f->budget - taken : 0;
    return unlock(f, ERR_OK);
}

/* ---- what a test does to it -------------------------------------------------------------------
 */

struct fake_disk *fake_disk_new(void)
{
    static const struct disk_ops ops = {
        .open = fake_open,
        .write = fake_write,
        .read = fake_read,
        .size = fake_size,
        .truncate = fake_truncate,
        .sync = fake_sync,
        .close = fake_close,
        .rename = fake_rename,
        .remove = fake_remove,
        .mkdir = fake_mkdir,
        .sync_dir = fake_sync_dir,
        .list = fake_list,
        .space = fake_space,
    };
    struct fake_disk *f = mem_new(struct fake_disk);
    f->disk.ops = &ops;
    f->write_err = ERR_IO;
    f->budget = (uint64_t)1 << 40;
    list_init(&f->names);
    list_init(&f->inodes);
    pthread_mutex_init(&f->lock, NULL);
    return f;
}

static void inode_free(struct inode *i)
{
    mem_free(i->seen.at);
    mem_free(i->synced.at);
    mem_free(i);
}

void fake_disk_drop(struct fake_disk **fp)
{
    struct fake_disk *f = *fp;
    *fp = NULL;
    if (!f)
        return;
    for (struct list_node *n; (n = list_pop_front(&f->names));) {
        struct name *name = list_entry(n, struct name, node);
        mem_free(name->path);
        mem_free(name);
    }
    for (struct list_node *n; (n = list_pop_front(&f->inodes));)
        inode_free(list_entry(n, struct inode, node));
    pthread_mutex_destroy(&f->lock);
    mem_free(f);
}

struct disk *fake_disk_of(struct fake_disk *f)
{
    return &f->disk;
}

void fake_disk_fail(struct fake_disk *f, enum fake_op op, unsigned after, unsigned times)
{
    pthread_mutex_lock(&f->lock);
    f->faults[op] = (struct fault){.after = after, .times = times};
    pthread_mutex_unlock(&f->lock);
}

void fake_disk_fail_writes_as(struct fake_disk *f, enum err err)
{
    pthread_mutex_lock(&f->lock);
    f->write_err = err;
    pthread_mutex_unlock(&f->lock);
}

unsigned fake_disk_calls(struct fake_disk *f, enum fake_op op)
{
    pthread_mutex_lock(&f->lock);
    const unsigned n = f->calls[op];
    pthread_mutex_unlock(&f->lock);
    return n;
}

void fake_disk_tear(struct fake_disk *f, uint64_t seed)
{
    pthread_mutex_lock(&f->lock);
    f->tears = true;
    f->seed = seed;
    pthread_mutex_unlock(&f->lock);
}

/* Each sector, and the new length, made it to the disk or did not. */
static void tear(struct fake_disk *f, struct inode *i)
{
    struct bytes *keep = &i->synced;
    const struct bytes *seen = &i->seen;
    if (i->sync_failed)
        return;
    if (seen->len > keep->len && rng_below(&f->seed, 2))
        bytes_resize(keep, keep->len + rng_below(&f->seed, seen->len - keep->len + 1));
    for (uint64_t at = 0; at < keep->len && at < seen->len; at += SECTOR) {
        uint64_t len = keep->len - at < SECTOR ? keep->len - at : SECTOR;
        if (len > seen->len - at)
            len = seen->len - at;
        if (rng_below(&f->seed, 2))
            memcpy(keep->at + at, seen->at + at, (size_t)len);
    }
}

void fake_disk_crash(struct fake_disk *f)
{
    pthread_mutex_lock(&f->lock);
    list_each(&f->inodes, n)
    {
        struct inode *i = list_entry(n, struct inode, node);
        if (f->tears)
            tear(f, i);
        bytes_copy(&i->seen, &i->synced);
        i->sync_failed = false;
    }
    list_each(&f->names, n)
    {
        struct name *name = list_entry(n, struct name, node);
        name->seen = name->survives;
    }
    f->tears = false;
    f->lives++;
    pthread_mutex_unlock(&f->lock);
}

void fake_disk_budget(struct fake_disk *f, uint64_t bytes)
{
    pthread_mutex_lock(&f->lock);
    f->budget = bytes;
    pthread_mutex_unlock(&f->lock);
}

void fake_disk_slow(struct fake_disk *f, unsigned sync_us)
{
    pthread_mutex_lock(&f->lock);
    f->sync_us = sync_us;
    pthread_mutex_unlock(&f->lock);
}

void fake_disk_refuse_direct(struct fake_disk *f)
{
    pthread_mutex_lock(&f->lock);
    f->no_direct = true;
    pthread_mutex_unlock(&f->lock);
}

/* Of both copies: what has rotted stays so after a crash. */
void fake_disk_flip(struct fake_disk *f, const char *path, uint64_t at)
{
    pthread_mutex_lock(&f->lock);
    struct name *n = find_seen(f, path);
    assert(n);
    assert(at < n->seen->seen.len);
    n->seen->seen.at[at] ^= 1;
    if (at < n->seen->synced.len)
        n->seen->synced.at[at] ^= 1;
    pthread_mutex_unlock(&f->lock);
}
