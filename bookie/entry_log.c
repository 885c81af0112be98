#include "bookie/entry_log.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "bookie/bytes.h"
#include "bookie/log_seal.h"
#include "bookie/log_writer.h"
#include "common/crc32c.h"
#include "common/log.h"
#include "common/mem.h"

enum { MAGIC = 0x4c474d45 /* "LGME" */, VERSION = 1, OLDEST_READER = 1 };
enum { HANDLES = 64, HEADER_USED = 20 };

/* A log that is open for reading. */
struct handle {
    struct disk_file *file;
    uint64_t log;
    unsigned users;
    bool is_doomed; /* the log was removed: closed by its last user */
    uint64_t used;  /* when, in reads */
};

struct entry_log {
    struct disk *disk;
    const char *dir;
    _Atomic uint64_t last; /* the highest log id ever seen */
    struct log_writer flush, compactor;

    pthread_mutex_t lock; /* handles, reads */
    struct handle handles[HANDLES];
    uint64_t reads;
};

static void note_log(void *ctx, const char *name)
{
    struct entry_log *l = ctx;
    uint64_t log;
    if (file_id(name, ENTRY_LOG_ENDING, &log) && log > l->last)
        l->last = log;
}

enum err entry_log_open(struct entry_log **out, struct disk *disk, const char *dir,
                        uint64_t log_limit)
{
    struct entry_log *l = mem_new(struct entry_log);
    l->disk = disk;
    l->dir = dir;
    pthread_mutex_init(&l->lock, NULL);
    log_writer_init(&l->flush, disk, dir, log_limit, &l->last);
    log_writer_init(&l->compactor, disk, dir, log_limit, &l->last);
    *out = l;
    enum err err = disk->ops->mkdir(disk, dir);
    if (!err)
        err = disk->ops->list(disk, dir, note_log, l);
    if (err)
        entry_log_close(out);
    return err;
}

void entry_log_close(struct entry_log **log)
{
    struct entry_log *l = *log;
    *log = NULL;
    if (!l)
        return;
    log_writer_end(&l->flush, true);
    log_writer_end(&l->compactor, true);
    for (unsigned i = 0; i < HANDLES; i++)
        if (l->handles[i].file)
            l->disk->ops->close(&l->handles[i].file);
    pthread_mutex_destroy(&l->lock);
    mem_free(l);
}

/* ---- writing -------------------------------------------------------------------------------- */

void entry_log_header(uint8_t into[ENTRY_LOG_HEADER], uint64_t log)
{
    memset(into, 0, ENTRY_LOG_HEADER);
    put_u32(into, MAGIC);
    put_u32(into + 4, VERSION << 16 | OLDEST_READER);
    put_u64(into + 8, log);
    put_u32(into + 16, crc32c(into, 16));
}

enum err entry_log_append(struct entry_log *l, struct view entry, struct entry_place *at)
{
    return log_writer_append(&l->flush, entry, at);
}

enum err entry_log_sync(struct entry_log *l)
{
    return log_writer_sync(&l->flush);
}

void entry_log_settle(struct entry_log *l)
{
    log_writer_settle(&l->flush);
}

void entry_log_abandon(struct entry_log *l)
{
    log_writer_abandon(&l->flush);
}

struct log_writer *entry_log_compactor(struct entry_log *l)
{
    return &l->compactor;
}

/* ---- reading -------------------------------------------------------------------------------- */

/* A handle on the log, in use; NULL when all are busy with others. */
static struct handle *find_handle(struct entry_log *l, uint64_t log)
{
    struct handle *oldest = NULL;
    for (struct handle *h = l->handles; h < l->handles + HANDLES; h++) {
        if (h->file && h->log == log && !h->is_doomed)
            return h;
        if (h->users == 0 && (!oldest || h->used < oldest->used))
            oldest = h;
    }
    return oldest;
}

enum err entry_log_header_read(struct view head, uint64_t log)
{
    const uint8_t *p = head.base;
    if (head.len < HEADER_USED || get_u32(p) != MAGIC || get_u32(p + 16) != crc32c(p, 16))
        return ERR_CHECKSUM;
    if ((get_u32(p + 4) & 0xffff) > VERSION)
        return ERR_UNSUPPORTED_VERSION;
    return get_u64(p + 8) == log ? ERR_OK : ERR_CHECKSUM;
}

static enum err check_header(struct entry_log *l, struct disk_file *f, uint64_t log)
{
    uint8_t head[HEADER_USED];
    size_t got;
    TRY(l->disk->ops->read(f, 0, head, sizeof head, &got));
    return entry_log_header_read(view_of(head, got), log);
}

static enum err open_handle(struct entry_log *l, struct handle *h, uint64_t log)
{
    if (h->file)
        l->disk->ops->close(&h->file);
    char *path = entry_log_path(l->dir, log);
    enum err err = l->disk->ops->open(l->disk, path, DISK_READ, &h->file);
    if (!err)
        err = check_header(l, h->file, log);
    if (err && h->file)
        l->disk->ops->close(&h->file);
    if (err && err != ERR_NOT_FOUND)
        log_event(LOG_ERROR, "entry_log.unreadable", F_STR("path", path), F_ERR(err));
    mem_free(path);
    h->log = log;
    h->is_doomed = false;
    return err;
}

static enum err take_handle(struct entry_log *l, uint64_t log, struct handle **out)
{
    enum err err = ERR_OK;
    pthread_mutex_lock(&l->lock);
    struct handle *h = find_handle(l, log);
    if (!h)
        err = ERR_BUSY;
    else if (!h->file || h->log != log)
        err = open_handle(l, h, log);
    if (!err) {
        h->users++;
        h->used = ++l->reads;
    }
    pthread_mutex_unlock(&l->lock);
    *out = h;
    return err;
}

static void give_handle(struct entry_log *l, struct handle *h)
{
    pthread_mutex_lock(&l->lock);
    if (--h->users == 0 && h->is_doomed)
        l->disk->ops->close(&h->file);
    pthread_mutex_unlock(&l->lock);
}

enum err entry_log_read(struct entry_log *l, const struct entry_place *at, size_t ahead,
                        struct slab **out, size_t *got)
{
    const size_t least = ENTRY_LOG_RECORD + (size_t)at->length;
    const size_t want = least > ahead ? least : ahead;
    struct handle *h;
    *out = NULL;
    TRY(take_handle(l, at->log, &h));
    struct slab *s = slab_new(want);
    enum err err = l->disk->ops->read(h->file, at->offset, slab_bytes(s), want, got);
    give_handle(l, h);
    if (!err && *got < least)
        err = ERR_CHECKSUM;
    if (err)
        slab_drop(&s);
    *out = s;
    return err;
}

enum err entry_log_check(struct view record, uint32_t length, int64_t ledger, int64_t entry,
                         struct view *out)
{
    if (record.len < ENTRY_LOG_RECORD + (size_t)length || length < 16)
        return ERR_CHECKSUM;
    if (get_u32(record.base + 4) != length)
        return ERR_CHECKSUM;
    if (get_u32(record.base) != crc32c(record.base + 4, 4 + (size_t)length))
        return ERR_CHECKSUM;
    *out = view_of(record.base + ENTRY_LOG_RECORD, length);
    if (get_u64(out->base) != (uint64_t)ledger || get_u64(out->base + 8) != (uint64_t)entry)
        return ERR_CHECKSUM;
    return ERR_OK;
}

/* ---- what there is, and taking it back ------------------------------------------------------ */

/* What a writer has begun after `last` was read is not in question. */
enum err entry_log_closed(struct entry_log *l, struct file_ids *out)
{
    const uint64_t last = atomic_load(&l->last);
    size_t kept = 0;
    TRY(file_ids_list(l->disk, l->dir, ENTRY_LOG_ENDING, out));
    for (size_t i = 0; i < out->n; i++)
        if (out->at[i] <= last && !log_writer_is_at(&l->flush, out->at[i]) &&
            !log_writer_is_at(&l->compactor, out->at[i]))
            out->at[kept++] = out->at[i];
    out->n = kept;
    return ERR_OK;
}

static enum err open_log(struct entry_log *l, uint64_t log, unsigned how, struct disk_file **out)
{
    char *path = entry_log_path(l->dir, log);
    const enum err err = l->disk->ops->open(l->disk, path, how, out);
    mem_free(path);
    return err;
}

enum err entry_log_size(struct entry_log *l, uint64_t log, uint64_t *bytes)
{
    struct disk_file *f;
    TRY(open_log(l, log, DISK_READ, &f));
    const enum err err = l->disk->ops->size(f, bytes);
    l->disk->ops->close(&f);
    return err;
}

enum err entry_log_usage(struct entry_log *l, uint64_t log, struct log_usage *out)
{
    struct disk_file *f;
    struct log_seal seal = {0};
    TRY(open_log(l, log, DISK_READ, &f));
    const enum err err = log_seal_read(f, log, &seal);
    l->disk->ops->close(&f);
    *out = seal.usage;
    return err;
}

enum err entry_log_seal(struct entry_log *l, uint64_t log, struct log_usage *usage)
{
    struct disk_file *f;
    struct log_seal seal = {.log = log, .usage = *usage};
    TRY(open_log(l, log, DISK_WRITE, &f));
    enum err err = l->disk->ops->size(f, &seal.offset);
    if (!err) {
        struct slice bytes = log_seal_write(&seal);
        struct iovec iov = {(void *)(uintptr_t)bytes.base, bytes.len};
        err = l->disk->ops->write(f, seal.offset, &iov, 1);
        slice_drop(&bytes);
    }
    if (!err)
        err = l->disk->ops->sync(f);
    l->disk->ops->close(&f);
    *usage = seal.usage;
    return err;
}

static void forget_handle(struct entry_log *l, uint64_t log)
{
    pthread_mutex_lock(&l->lock);
    for (struct handle *h = l->handles; h < l->handles + HANDLES; h++) {
        if (!h->file || h->log != log)
            continue;
        if (h->users == 0)
            l->disk->ops->close(&h->file);
        else
            h->is_doomed = true;
    }
    pthread_mutex_unlock(&l->lock);
}

enum err entry_log_remove(struct entry_log *l, uint64_t log)
{
    char *path = entry_log_path(l->dir, log);
    const enum err err = l->disk->ops->remove(l->disk, path);
    mem_free(path);
    if (err && err != ERR_NOT_FOUND)
        return err;
    forget_handle(l, log);
    return l->disk->ops->sync_dir(l->disk, l->dir);
}
