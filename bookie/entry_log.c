#include "bookie/entry_log.h"

#include <inttypes.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "bookie/bytes.h"
#include "common/crc32c.h"
#include "common/log.h"
#include "common/mem.h"

enum { MAGIC = 0x4c474d45 /* "LGME" */, VERSION = 1, OLDEST_READER = 1 };
enum { STAGE = 1024 * 1024, BLOCK = 4096, HANDLES = 64 };

/* A log that is open for reading. */
struct handle {
    struct disk_file *file;
    uint64_t log;
    unsigned users;
    uint64_t used; /* when, in reads */
};

struct entry_log {
    struct disk *disk;
    const char *dir;
    uint64_t limit;
    uint64_t last; /* the highest log id ever seen */
    uint64_t kept; /* logs after this one belong to a flush that is not synced */

    struct disk_file *file;  /* being written; NULL: the next append makes one */
    uint64_t log, end;       /* its id; where the next record goes */
    bool is_named;           /* its directory was synced */
    bool is_buffered;        /* the file system refuses O_DIRECT */
    uint8_t *memory, *stage; /* stage: memory, aligned; the bytes before `end` not written yet */
    size_t staged;

    pthread_mutex_t lock; /* handles, reads */
    struct handle handles[HANDLES];
    uint64_t reads;
};

static char *path_of(const struct entry_log *l, uint64_t log)
{
    return mem_format("%s/%016" PRIx64 ".log", l->dir, log);
}

static void note_log(void *ctx, const char *name)
{
    struct entry_log *l = ctx;
    char *end;
    if (strlen(name) != 20 || strcmp(name + 16, ".log") != 0)
        return;
    const uint64_t log = strtoull(name, &end, 16);
    if (end == name + 16 && log > l->last)
        l->last = log;
}

enum err entry_log_open(struct entry_log **out, struct disk *disk, const char *dir,
                        uint64_t log_limit)
{
    struct entry_log *l = mem_new(struct entry_log);
    *l = (struct entry_log){.disk = disk, .dir = dir, .limit = log_limit};
    l->memory = mem_alloc(STAGE + BLOCK);
    l->stage = l->memory + (BLOCK - (uintptr_t)l->memory % BLOCK);
    pthread_mutex_init(&l->lock, NULL);
    *out = l;
    enum err err = disk->ops->mkdir(disk, dir);
    if (!err)
        err = disk->ops->list(disk, dir, note_log, l);
    l->kept = l->last;
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
    if (l->file)
        l->disk->ops->close(&l->file);
    for (unsigned i = 0; i < HANDLES; i++)
        if (l->handles[i].file)
            l->disk->ops->close(&l->handles[i].file);
    pthread_mutex_destroy(&l->lock);
    mem_free(l->memory);
    mem_free(l);
}

/* ---- writing -------------------------------------------------------------------------------- */

static enum err write_stage(struct entry_log *l)
{
    if (l->staged == 0)
        return ERR_OK;
    struct iovec iov = {l->stage, l->staged};
    TRY(l->disk->ops->write(l->file, l->end - l->staged, &iov, 1));
    l->staged = 0;
    return ERR_OK;
}

/* Past the page cache: what is written back from there at a sync would hold up the journal's. */
static enum err open_direct(struct entry_log *l, const char *path)
{
    if (!l->is_buffered) {
        const enum err err = l->disk->ops->open(l->disk, path, DISK_CREATE | DISK_DIRECT, &l->file);
        if (err != ERR_NOT_ALLOWED)
            return err;
        l->is_buffered = true;
        log_event(LOG_WARN, "entry_log.buffered", F_STR("dir", l->dir),
                  F_STR("reason", "the file system refuses direct writes"));
    }
    return l->disk->ops->open(l->disk, path, DISK_CREATE, &l->file);
}

static enum err open_new(struct entry_log *l)
{
    char *path = path_of(l, ++l->last);
    const enum err err = open_direct(l, path);
    mem_free(path);
    TRY(err);
    l->log = l->last;
    l->is_named = false;
    memset(l->stage, 0, ENTRY_LOG_HEADER);
    put_u32(l->stage, MAGIC);
    put_u32(l->stage + 4, VERSION << 16 | OLDEST_READER);
    put_u64(l->stage + 8, l->log);
    put_u32(l->stage + 16, crc32c(l->stage, 16));
    l->staged = l->end = ENTRY_LOG_HEADER;
    return ERR_OK;
}

/* The next record begins a block, so that what is synced is never written again. */
static void pad_stage(struct entry_log *l)
{
    const size_t pad = (BLOCK - l->staged % BLOCK) % BLOCK;
    memset(l->stage + l->staged, 0, pad);
    l->staged += pad;
    l->end += pad;
}

static enum err sync_file(struct entry_log *l)
{
    pad_stage(l);
    TRY(write_stage(l));
    TRY(l->disk->ops->sync(l->file));
    if (!l->is_named)
        TRY(l->disk->ops->sync_dir(l->disk, l->dir));
    l->is_named = true;
    return ERR_OK;
}

enum err entry_log_sync(struct entry_log *l)
{
    if (!l->file)
        return ERR_OK;
    TRY(sync_file(l));
    l->kept = l->last;
    return ERR_OK;
}

static enum err stage_bytes(struct entry_log *l, const uint8_t *at, size_t len)
{
    while (len > 0) {
        const size_t room = STAGE - l->staged, some = len < room ? len : room;
        memcpy(l->stage + l->staged, at, some);
        l->staged += some;
        l->end += some;
        at += some;
        len -= some;
        if (l->staged == STAGE)
            TRY(write_stage(l));
    }
    return ERR_OK;
}

static enum err stage_record(struct entry_log *l, struct view entry)
{
    uint8_t head[ENTRY_LOG_RECORD];
    put_u32(head + 4, (uint32_t)entry.len);
    put_u32(head, crc32c_more(crc32c(head + 4, 4), entry.base, entry.len));
    TRY(stage_bytes(l, head, sizeof head));
    return stage_bytes(l, entry.base, entry.len);
}

enum err entry_log_append(struct entry_log *l, struct view entry, struct entry_place *at)
{
    if (l->file && l->end + ENTRY_LOG_RECORD + entry.len > l->limit) {
        TRY(sync_file(l));
        l->disk->ops->close(&l->file);
    }
    if (!l->file)
        TRY(open_new(l));
    *at = (struct entry_place){l->log, l->end, (uint32_t)entry.len};
    return stage_record(l, entry);
}

void entry_log_abandon(struct entry_log *l)
{
    l->staged = 0;
    if (l->file)
        l->disk->ops->close(&l->file);
    for (uint64_t log = l->kept + 1; log <= l->last; log++) {
        char *path = path_of(l, log);
        const enum err err = l->disk->ops->remove(l->disk, path);
        if (err && err != ERR_NOT_FOUND)
            log_event(LOG_WARN, "entry_log.left", F_STR("path", path));
        mem_free(path);
    }
    l->kept = l->last;
}

/* ---- reading -------------------------------------------------------------------------------- */

/* A handle on the log, in use; NULL when all are busy with others. */
static struct handle *find_handle(struct entry_log *l, uint64_t log)
{
    struct handle *oldest = NULL;
    for (struct handle *h = l->handles; h < l->handles + HANDLES; h++) {
        if (h->file && h->log == log)
            return h;
        if (h->users == 0 && (!oldest || h->used < oldest->used))
            oldest = h;
    }
    return oldest;
}

static enum err check_header(struct entry_log *l, struct disk_file *f, uint64_t log)
{
    uint8_t head[20];
    size_t got;
    TRY(l->disk->ops->read(f, 0, head, sizeof head, &got));
    if (got < sizeof head || get_u32(head) != MAGIC || get_u32(head + 16) != crc32c(head, 16))
        return ERR_CHECKSUM;
    if ((get_u32(head + 4) & 0xffff) > VERSION)
        return ERR_UNSUPPORTED_VERSION;
    return get_u64(head + 8) == log ? ERR_OK : ERR_CHECKSUM;
}

static enum err open_handle(struct entry_log *l, struct handle *h, uint64_t log)
{
    if (h->file)
        l->disk->ops->close(&h->file);
    char *path = path_of(l, log);
    enum err err = l->disk->ops->open(l->disk, path, DISK_READ, &h->file);
    if (!err)
        err = check_header(l, h->file, log);
    if (err && h->file)
        l->disk->ops->close(&h->file);
    if (err)
        log_event(LOG_ERROR, "entry_log.unreadable", F_STR("path", path), F_ERR(err));
    mem_free(path);
    h->log = log;
    return err == ERR_NOT_FOUND ? ERR_CHECKSUM : err;
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
    h->users--;
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
