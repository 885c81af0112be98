#include "bookie/journal_scan.h"

#include <string.h>

#include "bookie/bytes.h"
#include "bookie/journal_walk.h"
#include "common/log.h"
#include "common/mem.h"

struct scan {
    struct file_window window;
    uint64_t id;
    uint32_t record_max;
};

/* ERR_END: no valid record here. */
static enum err record_at(struct scan *s, uint64_t at, struct journal_record *out)
{
    return journal_record_at(&s->window, at, s->id, s->record_max, out);
}

/* offset: where the missing record should be. */
static enum err report_damage(const struct journal_files *files, const struct scan *s,
                              uint64_t offset, uint64_t at, uint64_t missing)
{
    char *path = journal_file_path(files, s->id);
    log_event(LOG_ERROR, "journal.corrupted", F_STR("path", path), F_U64("offset", offset),
              F_U64("missing", missing), F_U64("later_record_at", at));
    mem_free(path);
    return ERR_CHECKSUM;
}

/* Nothing that was found lies behind it, but somebody knew of what is missing. */
static enum err report_loss(const struct journal_files *files, uint64_t file, uint64_t missing,
                            uint64_t known, const char *reason)
{
    char *path = journal_file_path(files, file);
    log_event(LOG_ERROR, "journal.corrupted", F_STR("path", path), F_U64("missing", missing),
              F_U64("known_before", known), F_STR("reason", reason));
    mem_free(path);
    return ERR_CHECKSUM;
}

/* ---- what is behind the last record ---- */

struct tail {
    uint64_t at;    /* behind the last record */
    uint64_t ends;  /* behind the last byte that is not zero; 0: all are */
    bool ours, old; /* something there begins like a record of this file; of one before it */
};

static void note_record(struct tail *t, const struct scan *s, const uint8_t *p)
{
    const uint64_t file = get_u64(p + 8);
    uint32_t length;

    if (file == s->id)
        t->ours = true;
    else if (file > 0 && file < s->id && !journal_record_peek(p, file, s->record_max, &length))
        t->old = true;
}

/* Most of what is behind the last record, in a file made ahead of its use: looked at in large
 * steps.
 */
static bool is_zero(const uint8_t *p, uint64_t n)
{
    return n == 0 || (p[0] == 0 && memcmp(p, p + 1, n - 1) == 0);
}

static enum err note_block(struct tail *t, struct scan *s, uint64_t at)
{
    const uint64_t left = s->window.size - at;
    const uint64_t n = left < JOURNAL_BLOCK ? left : JOURNAL_BLOCK;
    const uint8_t *p;

    TRY(file_window_look(&s->window, at, n, &p));
    if (p && n >= JOURNAL_RECORD)
        note_record(t, s, p);
    if (p && is_zero(p, n))
        return ERR_OK;
    for (uint64_t i = p ? n : 0; i > 0; i--) {
        if (p[i - 1]) {
            t->ends = at + i;
            break;
        }
    }
    return ERR_OK;
}

/* A recycled file ends in what it held before; else only zeros follow the last record.  Whatever
 * else is there was being written when the machine or the process died, or has been damaged. */
static void report_tail(const struct journal_files *files, const struct scan *s,
                        const struct tail *t)
{
    if (!t->ours && (t->old || t->ends == 0))
        return;
    char *path = journal_file_path(files, s->id);
    log_event(LOG_WARN, "journal.tail_cut", F_STR("path", path), F_U64("offset", t->at),
              F_U64("bytes", t->ends > t->at ? t->ends - t->at : 0));
    mem_free(path);
}

/* Behind a broken place: a group that began after the missing record proves a loss. */
static enum err look_for_later(const struct journal_files *files, struct scan *s, uint64_t end,
                               uint64_t at, uint64_t missing)
{
    struct tail tail = {.at = end};
    const uint8_t *p;

    TRY(file_window_look(&s->window, end, JOURNAL_RECORD, &p));
    if (p)
        note_record(&tail, s, p);
    for (; at + JOURNAL_RECORD <= s->window.size; at += JOURNAL_BLOCK) {
        struct journal_record r;
        const enum err err = record_at(s, at, &r);
        if (err && err != ERR_END)
            return err;
        if (!err && r.group > missing)
            return report_damage(files, s, end, at, missing);
        TRY(note_block(&tail, s, at));
    }
    report_tail(files, s, &tail);
    return ERR_OK;
}

/* Records in order from `at`; *next ends behind the last. */
static enum err scan_records(const struct journal_files *files, struct scan *s, uint64_t at,
                             journal_record_fn *each, void *ctx, uint64_t *next)
{
    uint64_t end = at;

    for (;;) {
        struct journal_record r;
        enum err err = record_at(s, at, &r);
        if (err && err != ERR_END)
            return err;
        const bool is_next = !err && (r.sequence == *next || *next == JOURNAL_ANY);
        if (is_next && r.kind == JOURNAL_PROOF) { /* nothing of this file is behind it */
            *next = r.sequence;
            return look_for_later(files, s, at + JOURNAL_BLOCK, at + JOURNAL_BLOCK, *next);
        }
        if (is_next) {
            TRY(each(ctx, r.kind, r.payload));
            end = at += journal_record_size(r.payload.len);
            *next = r.sequence + 1;
        } else if (at % JOURNAL_BLOCK) {
            at = journal_blocks(at); /* what may follow in this block is padding */
        } else {
            return look_for_later(files, s, end, at, *next);
        }
    }
}

/* *first: the sequence of its first record; 0: it does not say. */
static enum err check_header(struct scan *s, uint64_t *first)
{
    const uint8_t *p;
    *first = 0;
    TRY(file_window_look(&s->window, 0, JOURNAL_BLOCK, &p));
    if (!p)
        return ERR_OK;
    const enum err err = journal_header_read(view_of(p, JOURNAL_BLOCK), s->id, first);
    if (err)
        *first = 0;
    /* A file that was being made has no header yet, and no records. */
    return err == ERR_UNSUPPORTED_VERSION ? err : ERR_OK;
}

static enum err scan_file(const struct journal_files *files, struct scan *s, uint64_t at,
                          journal_record_fn *each, void *ctx, uint64_t *next)
{
    uint64_t first = 0;
    char *path = journal_file_path(files, s->id);
    enum err err = file_window_open(&s->window, files->disk, path);
    s->window.strict = true;
    if (!err)
        err = check_header(s, &first);
    if (err)
        log_event(LOG_ERROR, "journal.unreadable", F_STR("path", path), F_ERR(err));
    mem_free(path);
    if (!err && *next != JOURNAL_ANY && first > *next)
        err = report_loss(files, s->id, *next, first, "this file was begun after the missing");
    if (!err)
        err = scan_records(files, s, at, each, ctx, next);
    file_window_close(&s->window);
    return err;
}

static enum err check_marked_file(const struct journal_files *files, struct journal_mark from)
{
    if (from.file == 0 || journal_files_have(files, from.file))
        return ERR_OK;
    log_event(LOG_ERROR, "journal.missing", F_STR("dir", files->dir), F_U64("file", from.file));
    return ERR_CHECKSUM;
}

enum err journal_scan(const struct journal_files *files, struct journal_mark from, uint64_t synced,
                      uint32_t record_max, journal_record_fn *each, void *ctx, uint64_t *next)
{
    uint64_t last = from.file;
    *next = from.sequence;
    if (from.sequence != JOURNAL_ANY)
        TRY(check_marked_file(files, from));
    for (unsigned i = 0; i < files->n; i++) {
        if (files->ids[i] < from.file)
            continue;
        struct scan s = {.id = files->ids[i], .record_max = record_max};
        const uint64_t at = s.id == from.file ? from.offset : JOURNAL_BLOCK;
        TRY(scan_file(files, &s, at, each, ctx, next));
        last = s.id;
    }
    if (from.sequence != JOURNAL_ANY && *next < synced)
        return report_loss(files, last, *next, synced, "a device's mark is behind the missing");
    return ERR_OK;
}
