#include "bookie/log_writer.h"

#include <inttypes.h>
#include <string.h>

#include "bookie/bytes.h"
#include "bookie/entry_log.h"
#include "bookie/log_seal.h"
#include "common/crc32c.h"
#include "common/log.h"
#include "common/mem.h"

enum { STAGE = 1024 * 1024, BLOCK = 4096 };

char *entry_log_path(const char *dir, uint64_t log)
{
    return mem_format("%s/%016" PRIx64 ".log", dir, log);
}

void log_writer_init(struct log_writer *w, struct disk *disk, const char *dir, uint64_t limit,
                     _Atomic uint64_t *last)
{
    *w = (struct log_writer){.disk = disk, .dir = dir, .limit = limit, .last = last};
    w->memory = mem_alloc(STAGE + BLOCK);
    w->stage = w->memory + (BLOCK - (uintptr_t)w->memory % BLOCK);
    pthread_mutex_init(&w->lock, NULL);
}

void log_writer_end(struct log_writer *w, bool seal)
{
    if (!w->memory)
        return;
    if (w->file && (!seal || log_writer_close(w)))
        w->disk->ops->close(&w->file);
    log_usage_end(&w->usage);
    pthread_mutex_destroy(&w->lock);
    mem_free(w->flying);
    mem_free(w->memory);
    w->memory = NULL;
}

/* ---- in flight ------------------------------------------------------------------------------ */

static void fly(struct log_writer *w, uint64_t log)
{
    pthread_mutex_lock(&w->lock);
    if (w->n == w->room) {
        w->room = w->room ? w->room * 2 : 8;
        w->flying = mem_resize(w->flying, w->room * sizeof w->flying[0]);
    }
    w->flying[w->n++] = log;
    pthread_mutex_unlock(&w->lock);
}

bool log_writer_is_at(struct log_writer *w, uint64_t log)
{
    bool is_at = false;
    pthread_mutex_lock(&w->lock);
    for (size_t i = 0; i < w->n; i++)
        is_at |= w->flying[i] == log;
    pthread_mutex_unlock(&w->lock);
    return is_at;
}

void log_writer_settle(struct log_writer *w)
{
    pthread_mutex_lock(&w->lock);
    w->n = 0;
    if (w->file)
        w->flying[w->n++] = w->log;
    w->kept = w->n;
    pthread_mutex_unlock(&w->lock);
}

/* ---- writing -------------------------------------------------------------------------------- */

static enum err write_stage(struct log_writer *w)
{
    if (w->staged == 0)
        return ERR_OK;
    struct iovec iov = {w->stage, w->staged};
    TRY(w->disk->ops->write(w->file, w->end - w->staged, &iov, 1));
    w->staged = 0;
    return ERR_OK;
}

/* Past the page cache: what is written back from there at a sync would hold up the journal's. */
static enum err open_direct(struct log_writer *w, const char *path)
{
    if (!w->is_buffered) {
        const enum err err = w->disk->ops->open(w->disk, path, DISK_CREATE | DISK_DIRECT, &w->file);
        if (err != ERR_NOT_ALLOWED)
            return err;
        w->is_buffered = true;
        log_event(LOG_WARN, "entry_log.buffered", F_STR("dir", w->dir),
                  F_STR("reason", "the file system refuses direct writes"));
    }
    return w->disk->ops->open(w->disk, path, DISK_CREATE, &w->file);
}

static enum err open_new(struct log_writer *w)
{
    const uint64_t log = atomic_fetch_add(w->last, 1) + 1;
    char *path = entry_log_path(w->dir, log);
    fly(w, log);
    const enum err err = open_direct(w, path);
    mem_free(path);
    TRY(err);
    w->log = log;
    w->is_named = false;
    log_usage_clear(&w->usage);
    entry_log_header(w->stage, log);
    w->staged = w->end = ENTRY_LOG_HEADER;
    return ERR_OK;
}

/* The next record begins a block, so that what is synced is never written again. */
static void pad_stage(struct log_writer *w)
{
    const size_t pad = (BLOCK - w->staged % BLOCK) % BLOCK;
    memset(w->stage + w->staged, 0, pad);
    w->staged += pad;
    w->end += pad;
}

static enum err sync_file(struct log_writer *w)
{
    pad_stage(w);
    TRY(write_stage(w));
    TRY(w->disk->ops->sync(w->file));
    if (!w->is_named)
        TRY(w->disk->ops->sync_dir(w->disk, w->dir));
    w->is_named = true;
    return ERR_OK;
}

enum err log_writer_sync(struct log_writer *w)
{
    if (w->file)
        TRY(sync_file(w));
    pthread_mutex_lock(&w->lock);
    w->kept = w->n;
    pthread_mutex_unlock(&w->lock);
    return ERR_OK;
}

static enum err stage_bytes(struct log_writer *w, const uint8_t *at, size_t len)
{
    while (len > 0) {
        const size_t room = STAGE - w->staged, some = len < room ? len : room;
        memcpy(w->stage + w->staged, at, some);
        w->staged += some;
        w->end += some;
        at += some;
        len -= some;
        if (w->staged == STAGE)
            TRY(write_stage(w));
    }
    return ERR_OK;
}

enum err log_writer_close(struct log_writer *w)
{
    if (!w->file)
        return ERR_OK;
    pad_stage(w);
    struct log_seal seal = {.log = w->log, .offset = w->end, .usage = w->usage};
    struct slice bytes = log_seal_write(&seal);
    w->usage = seal.usage;
    const enum err err = stage_bytes(w, bytes.base, bytes.len);
    slice_drop(&bytes);
    TRY(err);
    TRY(sync_file(w));
    w->disk->ops->close(&w->file);
    return ERR_OK;
}

static enum err stage_record(struct log_writer *w, struct view entry)
{
    uint8_t head[ENTRY_LOG_RECORD];
    put_u32(head + 4, (uint32_t)entry.len);
    put_u32(head, crc32c_more(crc32c(head + 4, 4), entry.base, entry.len));
    TRY(stage_bytes(w, head, sizeof head));
    return stage_bytes(w, entry.base, entry.len);
}

bool log_writer_is_full(const struct log_writer *w, size_t entry)
{
    return w->file && w->end + ENTRY_LOG_RECORD + entry > w->limit;
}

enum err log_writer_append(struct log_writer *w, struct view entry, struct entry_place *at)
{
    if (log_writer_is_full(w, entry.len))
        TRY(log_writer_close(w));
    if (!w->file)
        TRY(open_new(w));
    *at = (struct entry_place){w->log, w->end, (uint32_t)entry.len};
    if (entry.len >= 8)
        log_usage_add(&w->usage, (int64_t)get_u64(entry.base), ENTRY_LOG_RECORD + entry.len);
    return stage_record(w, entry);
}

void log_writer_unused(struct log_writer *w, int64_t ledger, const struct entry_place *at)
{
    if (w->file && at->log == w->log)
        log_usage_take(&w->usage, ledger, ENTRY_LOG_RECORD + (uint64_t)at->length);
}

/* ---- a write failed ------------------------------------------------------------------------- */

static void remove_log(struct log_writer *w, uint64_t log)
{
    char *path = entry_log_path(w->dir, log);
    const enum err err = w->disk->ops->remove(w->disk, path);
    if (err && err != ERR_NOT_FOUND)
        log_event(LOG_WARN, "entry_log.left", F_STR("path", path));
    mem_free(path);
}

void log_writer_abandon(struct log_writer *w)
{
    w->staged = 0;
    if (w->file)
        w->disk->ops->close(&w->file);
    pthread_mutex_lock(&w->lock);
    for (size_t i = w->kept; i < w->n; i++)
        remove_log(w, w->flying[i]);
    w->n = w->kept;
    pthread_mutex_unlock(&w->lock);
}
