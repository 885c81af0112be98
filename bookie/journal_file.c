#include "bookie/journal_file.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "bookie/file_ids.h"
#include "bookie/journal_format.h"
#include "common/log.h"
#include "common/mem.h"

enum { FILL = 8 * 1024 * 1024, ZEROS = 1024 * 1024 };

static const _Alignas(JOURNAL_BLOCK) uint8_t zeros[ZEROS];

char *journal_file_path(const struct journal_files *f, uint64_t id)
{
    return mem_format("%s/%016" PRIx64 JOURNAL_ENDING, f->dir, id);
}

static void note_file(void *ctx, const char *name)
{
    struct journal_files *f = ctx;
    uint64_t id;
    if (file_id(name, JOURNAL_ENDING, &id) && f->n < JOURNAL_FILES_MAX)
        f->ids[f->n++] = id;
}

static int by_id(const void *a, const void *b)
{
    const uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;
    return (x > y) - (x < y);
}

enum err journal_files_open(struct journal_files *f, struct disk *disk, const char *dir,
                            bool direct, uint64_t keep_from)
{
    *f = (struct journal_files){.disk = disk, .dir = dir, .direct = direct};
    f->keep_from = keep_from;
    pthread_mutex_init(&f->lock, NULL);
    TRY(disk->ops->mkdir(disk, dir));
    TRY(disk->ops->list(disk, dir, note_file, f));
    qsort(f->ids, f->n, sizeof f->ids[0], by_id);
    f->last = f->n ? f->ids[f->n - 1] : 0;
    if (f->last < keep_from)
        f->last = keep_from;
    return ERR_OK;
}

void journal_files_close(struct journal_files *f)
{
    pthread_mutex_destroy(&f->lock);
}

bool journal_files_have(const struct journal_files *f, uint64_t id)
{
    for (unsigned i = 0; i < f->n; i++)
        if (f->ids[i] == id)
            return true;
    return false;
}

static void forget(struct journal_files *f, unsigned at)
{
    memmove(&f->ids[at], &f->ids[at + 1], (f->n - at - 1) * sizeof f->ids[0]);
    f->n--;
}

/* The oldest free file leaves the list; 0 when there is none. */
static uint64_t take_free(struct journal_files *f)
{
    uint64_t id = 0;
    pthread_mutex_lock(&f->lock);
    if (f->n > 0 && f->ids[0] < f->keep_from) {
        id = f->ids[0];
        forget(f, 0);
    }
    pthread_mutex_unlock(&f->lock);
    return id;
}

static enum err open_or_buffered(struct journal_files *f, const char *path, unsigned how,
                                 struct disk_file **out)
{
    const struct disk_ops *ops = f->disk->ops;
    if (!f->direct)
        return ops->open(f->disk, path, how, out);
    enum err err = ops->open(f->disk, path, how | DISK_DIRECT, out);
    if (err != ERR_NOT_ALLOWED)
        return err;
    f->direct = false;
    log_event(LOG_WARN, "journal.buffered", F_STR("dir", f->dir),
              F_STR("reason", "the file system refuses direct writes"));
    return ops->open(f->disk, path, how, out);
}

/* The file under its new name, of whatever size; the name is durable. */
static enum err open_next(struct journal_files *f, struct journal_file *out)
{
    const struct disk_ops *ops = f->disk->ops;
    const uint64_t old = take_free(f);
    char *path = journal_file_path(f, out->id);
    enum err err = ERR_OK;
    if (old) {
        char *from = journal_file_path(f, old);
        err = ops->rename(f->disk, from, path);
        mem_free(from);
    }
    if (!err)
        err = open_or_buffered(f, path, old ? DISK_WRITE : DISK_CREATE, &out->file);
    mem_free(path);
    TRY(err);
    return ops->sync_dir(f->disk, f->dir);
}

static enum err write_header(struct journal_file *j, uint64_t sequence)
{
    static _Thread_local _Alignas(JOURNAL_BLOCK) uint8_t block[JOURNAL_BLOCK];
    const struct disk_ops *ops = j->file->disk->ops;
    journal_header_write(block, j->id, sequence);
    TRY(ops->write(j->file, 0, &(struct iovec){block, JOURNAL_BLOCK}, 1));
    return ops->sync(j->file);
}

/* 0: the list is full. */
static uint64_t next_id(struct journal_files *f)
{
    uint64_t id = 0;
    pthread_mutex_lock(&f->lock);
    if (f->n < JOURNAL_FILES_MAX)
        f->ids[f->n++] = id = ++f->last;
    pthread_mutex_unlock(&f->lock);
    return id;
}

static void forget_id(struct journal_files *f, uint64_t id)
{
    pthread_mutex_lock(&f->lock);
    for (unsigned i = 0; i < f->n; i++)
        if (f->ids[i] == id) {
            forget(f, i);
            break;
        }
    pthread_mutex_unlock(&f->lock);
}

enum err journal_file_make(struct journal_files *f, struct journal_file *out)
{
    const struct disk_ops *ops = f->disk->ops;
    *out = (struct journal_file){.id = next_id(f), .at = JOURNAL_BLOCK};
    if (!out->id)
        return ERR_NO_SPACE;
    enum err err = open_next(f, out);
    if (!out->file)
        forget_id(f, out->id);
    if (!err)
        err = ops->size(out->file, &out->filled);
    if (err && out->file)
        ops->close(&out->file);
    out->filled = out->filled / JOURNAL_BLOCK * JOURNAL_BLOCK;
    if (out->filled < JOURNAL_BLOCK)
        out->filled = JOURNAL_BLOCK;
    return err;
}

enum err journal_file_begin(struct journal_file *j, uint64_t sequence)
{
    const enum err err = write_header(j, sequence);
    if (err)
        j->file->disk->ops->close(&j->file);
    return err;
}

enum err journal_file_fill(struct journal_file *j, uint64_t upto, uint64_t limit)
{
    if (upto <= j->filled)
        return ERR_OK;
    uint64_t end = upto + FILL < limit ? upto + FILL : limit;
    if (end < upto)
        end = upto;
    while (j->filled < end) {
        const uint64_t n = end - j->filled < ZEROS ? end - j->filled : ZEROS;
        struct iovec iov = {(void *)(uintptr_t)zeros, n};
        const enum err err = j->file->disk->ops->write(j->file, j->filled, &iov, 1);
        if (err == ERR_NO_SPACE && j->filled >= upto)
            return ERR_OK; /* only what is beyond the need did not fit */
        TRY(err);
        j->filled += n;
    }
    return ERR_OK;
}

static uint64_t take_surplus(struct journal_files *f)
{
    uint64_t id = 0;
    pthread_mutex_lock(&f->lock);
    if (f->n > JOURNAL_FREE_MAX && f->ids[JOURNAL_FREE_MAX] < f->keep_from) {
        id = f->ids[0];
        forget(f, 0);
    }
    pthread_mutex_unlock(&f->lock);
    return id;
}

static void remove_file(struct journal_files *f, uint64_t id)
{
    char *path = journal_file_path(f, id);
    if (f->disk->ops->remove(f->disk, path))
        log_event(LOG_WARN, "journal.kept", F_STR("path", path));
    mem_free(path);
}

void journal_files_remove(struct journal_files *f, uint64_t id)
{
    forget_id(f, id);
    remove_file(f, id);
}

void journal_files_free(struct journal_files *f, uint64_t before)
{
    pthread_mutex_lock(&f->lock);
    if (before > f->keep_from)
        f->keep_from = before;
    pthread_mutex_unlock(&f->lock);
    for (uint64_t id; (id = take_surplus(f)) != 0;)
        remove_file(f, id);
}
