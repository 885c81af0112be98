#include "bookie/file_window.h"

#include <string.h>

#include "common/mem.h"

enum { WINDOW = 1024 * 1024, PAGE = 4096 };

enum err file_window_open(struct file_window *w, struct disk *disk, const char *path)
{
    *w = (struct file_window){0};
    TRY(disk->ops->open(disk, path, DISK_READ, &w->file));
    return disk->ops->size(w->file, &w->size);
}

void file_window_close(struct file_window *w)
{
    if (w->file)
        w->file->disk->ops->close(&w->file);
    mem_free(w->bytes);
    w->bytes = NULL;
}

static void read_pages(struct file_window *w, uint64_t at, size_t want)
{
    for (size_t done = 0, got; done < want; done += PAGE) {
        const size_t n = want - done < PAGE ? want - done : PAGE;
        if (w->file->disk->ops->read(w->file, at + done, w->bytes + done, n, &got) == ERR_OK)
            continue;
        memset(w->bytes + done, 0, n);
        w->unreadable += n;
    }
}

static enum err fill(struct file_window *w, uint64_t at, size_t want)
{
    if (want > w->room) {
        w->bytes = mem_resize(w->bytes, want);
        w->room = want;
    }
    w->base = at;
    const enum err err = w->file->disk->ops->read(w->file, at, w->bytes, want, &w->len);
    if (err)
        w->len = 0;
    if (err != ERR_IO || w->strict)
        return err;
    read_pages(w, at, want);
    w->len = want;
    return ERR_OK;
}

enum err file_window_look(struct file_window *w, uint64_t at, uint64_t n, const uint8_t **out)
{
    *out = NULL;
    if (at > w->size || n > w->size - at)
        return ERR_OK;
    if (at < w->base || at + n > w->base + w->len) {
        const uint64_t left = w->size - at, most = n > WINDOW ? n : WINDOW;
        TRY(fill(w, at, left < most ? left : most));
        if (w->len < n)
            return ERR_OK;
    }
    *out = w->bytes + (at - w->base);
    return ERR_OK;
}
