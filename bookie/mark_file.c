#include "bookie/mark_file.h"

#include <string.h>

#include "bookie/bytes.h"
#include "common/crc32c.h"
#include "common/log.h"
#include "common/mem.h"

enum { MAGIC = 0x4c474d4d /* "LGMM" */, VERSION = 3, OLDEST_READER = 3 };
enum { HEAD = 24, MARK = 24, NAME = 4 };
enum { SIZE_1 = 36, SIZE_2 = 44 /* of versions 1 and 2, which had one mark */ };
enum { FILE_MAX = 256 * 1024 };

static struct journal_mark get_mark(const uint8_t *at)
{
    return (struct journal_mark){get_u64(at), get_u64(at + 8), get_u64(at + 16)};
}

/* ---- reading -------------------------------------------------------------------------------- */

static enum err read_one_mark(struct view v, unsigned version, struct marks *out)
{
    const size_t size = version == 1 ? SIZE_1 : SIZE_2;
    if (v.len < size || get_u32(v.base + size - 4) != crc32c(v.base, size - 4))
        return ERR_CHECKSUM;
    out->of[0] = get_mark(v.base + 8);
    out->index = version == 1 ? 0 : get_u64(v.base + 32);
    return ERR_OK;
}

struct known {
    const char *path;
    const char *const *journals;
    unsigned n;
};

static enum err take_mark(const struct known *k, struct view name, struct journal_mark mark,
                          struct marks *out)
{
    for (unsigned j = 0; j < k->n; j++) {
        if (strlen(k->journals[j]) == name.len &&
            memcmp(k->journals[j], name.base, name.len) == 0) {
            out->of[j] = mark;
            return ERR_OK;
        }
    }
    char *journal = mem_string_n((const char *)name.base, name.len);
    log_event(LOG_ERROR, "mark.unknown_journal", F_STR("path", k->path), F_STR("journal", journal),
              F_STR("reason", "what it holds would not be replayed: journalDirectories lacks it"));
    mem_free(journal);
    return ERR_NOT_ALLOWED;
}

static enum err read_marks(const struct known *k, struct view v, struct marks *out)
{
    if (v.len < HEAD ||
        get_u32(v.base + 20) != crc32c_more(crc32c(v.base, 20), v.base + HEAD, v.len - HEAD))
        return ERR_CHECKSUM;
    out->index = get_u64(v.base + 8);
    const uint8_t *at = v.base + HEAD, *end = v.base + v.len;
    for (uint32_t n = get_u32(v.base + 16); n > 0; n--) {
        if (end - at < MARK + NAME)
            return ERR_CHECKSUM;
        const struct journal_mark mark = get_mark(at);
        const size_t len = get_u32(at + MARK);
        at += MARK + NAME;
        if ((size_t)(end - at) < len)
            return ERR_CHECKSUM;
        TRY(take_mark(k, view_of(at, len), mark, out));
        at += len;
    }
    return ERR_OK;
}

static enum err read_any(const struct known *k, struct view v, struct marks *out)
{
    if (v.len < 8 || get_u32(v.base) != MAGIC)
        return ERR_CHECKSUM;
    const unsigned version = get_u32(v.base + 4) >> 16, oldest = get_u32(v.base + 4) & 0xffff;
    if (version <= 2)
        return read_one_mark(v, version, out);
    return oldest > VERSION ? ERR_UNSUPPORTED_VERSION : read_marks(k, v, out);
}

enum err marks_load(struct disk *d, const char *path, const char *const *journals, unsigned n,
                    struct marks *out)
{
    const struct known k = {path, journals, n};
    char *bytes;
    size_t len;
    *out = (struct marks){0};
    for (unsigned j = 0; j < JOURNALS_MAX; j++)
        out->of[j] = JOURNAL_BEGIN;
    enum err err = disk_load(d, path, FILE_MAX, &bytes, &len);
    if (err == ERR_NOT_FOUND)
        return ERR_OK;
    TRY(err);
    out->is_there = true;
    err = read_any(&k, view_of(bytes, len), out);
    mem_free(bytes);
    if (err && err != ERR_NOT_ALLOWED)
        log_event(LOG_ERROR, "mark.unreadable", F_STR("path", path), F_ERR(err));
    return err;
}

/* ---- writing -------------------------------------------------------------------------------- */

static uint8_t *put_mark(uint8_t *at, const struct journal_mark *m, const char *journal)
{
    const size_t len = strlen(journal);
    put_u64(at, m->file);
    put_u64(at + 8, m->offset);
    put_u64(at + 16, m->sequence);
    put_u32(at + MARK, (uint32_t)len);
    memcpy(at + MARK + NAME, journal, len);
    return at + MARK + NAME + len;
}

enum err marks_store(struct disk *d, const char *path, const char *const *journals, unsigned n,
                     const struct marks *m)
{
    size_t size = HEAD;
    for (unsigned j = 0; j < n; j++)
        size += MARK + NAME + strlen(journals[j]);
    uint8_t *bytes = mem_alloc(size), *at = bytes + HEAD;
    put_u32(bytes, MAGIC);
    put_u32(bytes + 4, VERSION << 16 | OLDEST_READER);
    put_u64(bytes + 8, m->index);
    put_u32(bytes + 16, n);
    for (unsigned j = 0; j < n; j++)
        at = put_mark(at, &m->of[j], journals[j]);
    put_u32(bytes + 20, crc32c_more(crc32c(bytes, 20), bytes + HEAD, size - HEAD));
    const enum err err = disk_store(d, path, bytes, size);
    mem_free(bytes);
    return err;
}

bool mark_is_before(const struct journal_mark *a, const struct journal_mark *b)
{
    if (a->file != b->file)
        return a->file < b->file;
    return a->offset < b->offset;
}
