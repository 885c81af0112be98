#include "bookie/journal_walk.h"

#include <inttypes.h>

#include "bookie/file_ids.h"
#include "common/mem.h"

enum err journal_record_at(struct file_window *w, uint64_t at, uint64_t file, uint32_t max,
                           struct journal_record *out)
{
    const uint8_t *p;
    uint32_t length;
    TRY(file_window_look(w, at, JOURNAL_RECORD, &p));
    if (!p || journal_record_peek(p, file, max, &length))
        return ERR_END;
    TRY(file_window_look(w, at, JOURNAL_RECORD + (uint64_t)length, &p));
    if (!p || journal_record_read(p, length, out))
        return ERR_END;
    return ERR_OK;
}

static enum err walk(struct file_window *w, uint64_t file, uint32_t max, journal_walk_fn *each,
                     void *ctx)
{
    for (uint64_t at = JOURNAL_BLOCK; at < w->size;) {
        struct journal_record r;
        const enum err err = journal_record_at(w, at, file, max, &r);
        if (err == ERR_END) { /* padding, or damage: a group begins at a block */
            at = journal_blocks(at + 1);
            continue;
        }
        TRY(err);
        const uint64_t size = journal_record_size(r.payload.len);
        if (r.kind != JOURNAL_PROOF)
            TRY(each(ctx, at, &r));
        at += size;
    }
    return ERR_OK;
}

static enum err check_header(struct file_window *w, uint64_t file)
{
    const uint8_t *p;
    uint64_t sequence;
    TRY(file_window_look(w, 0, JOURNAL_BLOCK, &p));
    const enum err err =
        p ? journal_header_read(view_of(p, JOURNAL_BLOCK), file, &sequence) : ERR_OK;
    return err == ERR_UNSUPPORTED_VERSION ? err : ERR_OK;
}

enum err journal_walk(struct disk *disk, const char *dir, uint64_t file, uint32_t record_max,
                      journal_walk_fn *each, void *ctx)
{
    struct file_window w;
    char *path = mem_format("%s/%016" PRIx64 JOURNAL_ENDING, dir, file);
    enum err err = file_window_open(&w, disk, path);
    mem_free(path);
    if (!err)
        err = check_header(&w, file);
    if (!err)
        err = walk(&w, file, record_max, each, ctx);
    file_window_close(&w);
    return err;
}
