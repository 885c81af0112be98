#include "common/disk.h"

#include <string.h>

#include "common/log.h"
#include "common/mem.h"

static enum err load(struct disk *d, struct disk_file *f, const char *path, size_t max, char **out,
                     size_t *len)
{
    uint64_t size;
    TRY(d->ops->size(f, &size));
    if (size > max) {
        log_event(LOG_ERROR, "disk.failed", F_STR("op", "load"), F_STR("path", path),
                  F_U64("size", size), F_U64("max", max));
        return ERR_TOO_BIG;
    }
    char *bytes = mem_alloc((size_t)size + 1);
    const enum err e = d->ops->read(f, 0, bytes, (size_t)size, len);
    if (e) {
        mem_free(bytes);
        return e;
    }
    bytes[*len] = '\0';
    *out = bytes;
    return ERR_OK;
}

enum err disk_load(struct disk *d, const char *path, size_t max, char **out, size_t *len)
{
    struct disk_file *f;
    TRY(d->ops->open(d, path, DISK_READ, &f));
    const enum err e = load(d, f, path, max, out, len);
    d->ops->close(&f);
    return e;
}

static enum err write_synced(struct disk *d, const char *path, const void *bytes, size_t len)
{
    struct disk_file *f;
    const struct iovec iov = {.iov_base = (void *)(uintptr_t)bytes, .iov_len = len};
    TRY(d->ops->open(d, path, DISK_CREATE, &f));
    enum err e = d->ops->write(f, 0, &iov, 1);
    if (!e)
        e = d->ops->sync(f);
    d->ops->close(&f);
    return e;
}

static enum err sync_parent(struct disk *d, const char *path)
{
    const char *slash = strrchr(path, '/');
    if (!slash)
        return d->ops->sync_dir(d, ".");
    char *dir = mem_string_n(path, slash == path ? 1 : (size_t)(slash - path));
    const enum err e = d->ops->sync_dir(d, dir);
    mem_free(dir);
    return e;
}

static enum err store(struct disk *d, const char *path, const char *other, const void *bytes,
                      size_t len)
{
    /* One that a crash left behind is in the way. */
    enum err e = d->ops->remove(d, other);
    if (e && e != ERR_NOT_FOUND)
        return e;
    e = write_synced(d, other, bytes, len);
    if (!e)
        e = d->ops->rename(d, other, path);
    if (!e)
        return sync_parent(d, path);
    if (d->ops->remove(d, other) != ERR_OK)
        log_event(LOG_WARN, "disk.left_behind", F_STR("path", other));
    return e;
}

enum err disk_store(struct disk *d, const char *path, const void *bytes, size_t len)
{
    char *other = mem_format("%s.new", path);
    const enum err e = store(d, path, other, bytes, len);
    mem_free(other);
    return e;
}
