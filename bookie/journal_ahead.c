#include "bookie/journal_ahead.h"

#include "common/mem.h"

enum { PIECE = 256 * 1024, ROOM = 4 };

struct journal_ahead {
    struct journal_files *files;
    uint64_t file_bytes;
    pthread_t thread;
    pthread_mutex_t lock; /* what follows */
    pthread_cond_t woken;
    bool wanted, stopping, is_ready;
    struct journal_file ready;
};

static void drop(struct journal_file *j)
{
    j->file->disk->ops->close(&j->file);
}

static bool is_stopping(struct journal_ahead *a)
{
    pthread_mutex_lock(&a->lock);
    const bool stopping = a->stopping;
    pthread_mutex_unlock(&a->lock);
    return stopping;
}

/* In small pieces, so that the journal's own writes find the device free soon. */
static enum err fill(struct journal_ahead *a, struct journal_file *j)
{
    while (j->filled < a->file_bytes) {
        const uint64_t left = a->file_bytes - j->filled;
        const uint64_t upto = j->filled + (left < PIECE ? left : PIECE);
        if (is_stopping(a))
            return ERR_CLOSED;
        TRY(journal_file_fill(j, upto, upto));
    }
    return j->file->disk->ops->sync(j->file);
}

static bool has_room(const struct journal_ahead *a)
{
    struct disk *d = a->files->disk;
    uint64_t free_bytes = 0, total = 0;
    return !d->ops->space(d, a->files->dir, &free_bytes, &total) &&
           free_bytes / ROOM >= a->file_bytes;
}

/* One that could not be made long enough goes: its space is what others lack. */
static enum err make(struct journal_ahead *a, struct journal_file *out)
{
    TRY(journal_file_make(a->files, out));
    const enum err err = out->filled < a->file_bytes && !has_room(a) ? ERR_NO_SPACE : fill(a, out);
    if (!err)
        return ERR_OK;
    drop(out);
    journal_files_remove(a->files, out->id);
    return err;
}

static void *ahead_main(void *arg)
{
    struct journal_ahead *a = arg;
    pthread_mutex_lock(&a->lock);
    for (;;) {
        while ((!a->wanted || a->is_ready) && !a->stopping)
            pthread_cond_wait(&a->woken, &a->lock);
        if (a->stopping)
            break;
        a->wanted = false;
        struct journal_file made;
        pthread_mutex_unlock(&a->lock);
        const enum err err = make(a, &made);
        pthread_mutex_lock(&a->lock);
        a->is_ready = !err;
        if (!err)
            a->ready = made;
    }
    pthread_mutex_unlock(&a->lock);
    return NULL;
}

struct journal_ahead *journal_ahead_start(struct journal_files *f, uint64_t file_bytes)
{
    struct journal_ahead *a = mem_new(struct journal_ahead);
    a->files = f;
    a->file_bytes = file_bytes;
    pthread_mutex_init(&a->lock, NULL);
    pthread_cond_init(&a->woken, NULL);
    if (pthread_create(&a->thread, NULL, ahead_main, a) == 0) {
        pthread_setname_np(a->thread, "journal-ahead");
        return a;
    }
    pthread_cond_destroy(&a->woken);
    pthread_mutex_destroy(&a->lock);
    mem_free(a);
    return NULL;
}

void journal_ahead_stop(struct journal_ahead **ahead)
{
    struct journal_ahead *a = *ahead;
    *ahead = NULL;
    if (!a)
        return;
    pthread_mutex_lock(&a->lock);
    a->stopping = true;
    pthread_mutex_unlock(&a->lock);
    pthread_cond_signal(&a->woken);
    pthread_join(a->thread, NULL);
    if (a->is_ready)
        drop(&a->ready);
    pthread_cond_destroy(&a->woken);
    pthread_mutex_destroy(&a->lock);
    mem_free(a);
}

void journal_ahead_ask(struct journal_ahead *a)
{
    pthread_mutex_lock(&a->lock);
    a->wanted = true;
    pthread_mutex_unlock(&a->lock);
    pthread_cond_signal(&a->woken);
}

bool journal_ahead_is_ready(struct journal_ahead *a)
{
    pthread_mutex_lock(&a->lock);
    const bool is_ready = a->is_ready;
    pthread_mutex_unlock(&a->lock);
    return is_ready;
}

bool journal_ahead_take(struct journal_ahead *a, uint64_t after, struct journal_file *out)
{
    pthread_mutex_lock(&a->lock);
    const bool was_ready = a->is_ready;
    if (was_ready)
        *out = a->ready;
    a->is_ready = false;
    pthread_mutex_unlock(&a->lock);
    pthread_cond_signal(&a->woken); /* it may have been asked for the next already */
    if (!was_ready)
        return false;
    if (out->id > after)
        return true;
    drop(out);
    return false;
}
