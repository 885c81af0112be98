#include "bookie/log_scan.h"

#include "bookie/bytes.h"
#include "bookie/entry_log.h"
#include "bookie/file_window.h"
#include "bookie/log_seal.h"
#include "bookie/log_writer.h"
#include "common/crc32c.h"
#include "common/mem.h"

enum { IDS = 16, HEADER_SEEN = 24, SEAL_SEEN = 24, BLOCK = 4096 };

struct walk {
    struct log_scan *scan;
    struct file_window window;
    uint64_t end; /* of the records */
};

static int64_t id_at(const uint8_t *at)
{
    return (int64_t)get_u64(at);
}

/* Of a record's first bytes: may it be one? */
static bool may_begin(const uint8_t *p, bool searching)
{
    const uint32_t length = get_u32(p + 4);
    const uint8_t *entry = p + ENTRY_LOG_RECORD;
    if (length < IDS || length > (searching ? LOG_SCAN_SEARCH_MAX : LOG_SCAN_ENTRY_MAX))
        return false;
    return id_at(entry) >= 0 && id_at(entry + 8) >= 0;
}

/* ERR_END: no record here. */
static enum err record_at(struct walk *w, uint64_t at, bool searching, struct log_record *out)
{
    const uint8_t *p;
    TRY(file_window_look(&w->window, at, ENTRY_LOG_RECORD + IDS, &p));
    if (!p || !may_begin(p, searching))
        return ERR_END;
    const uint32_t length = get_u32(p + 4);
    TRY(file_window_look(&w->window, at, ENTRY_LOG_RECORD + (uint64_t)length, &p));
    if (!p || get_u32(p) != crc32c(p + 4, 4 + (size_t)length))
        return ERR_END;
    const uint8_t *entry = p + ENTRY_LOG_RECORD;
    *out = (struct log_record){
        .offset = at,
        .ledger = id_at(entry),
        .entry = id_at(entry + 8),
        .lac = length >= HEADER_SEEN ? id_at(entry + 16) : -1,
        .bytes = view_of(entry, length),
    };
    return ERR_OK;
}

/* The records end where a seal begins, if it is torn. */
static enum err look_for_seal(struct walk *w, uint64_t at)
{
    const uint8_t *p;
    TRY(file_window_look(&w->window, at, SEAL_SEEN, &p));
    if (p && log_seal_begins(view_of(p, SEAL_SEEN), w->scan->log, at))
        w->end = at;
    return ERR_OK;
}

/* A flush ends with zeros to a block.  *next: where the next one would begin; `at` when what is
 * there is no padding. */
static enum err pass_padding(struct walk *w, uint64_t at, uint64_t *next)
{
    const uint64_t end = (at + BLOCK - 1) / BLOCK * BLOCK;
    const uint64_t n = (end < w->end ? end : w->end) - at;
    const uint8_t *p;
    *next = at;
    TRY(file_window_look(&w->window, at, n, &p));
    for (uint64_t i = 0; i < n; i++)
        if (!p || p[i])
            return ERR_OK;
    *next = at + n;
    return ERR_OK;
}

/* ERR_END, unless the length of what is damaged at `at` leads to a record, or to the end. */
static enum err follow(struct walk *w, uint64_t at, uint64_t *next)
{
    struct log_record r;
    const uint8_t *p;
    TRY(file_window_look(&w->window, at, ENTRY_LOG_RECORD, &p));
    if (!p)
        return ERR_END;
    const uint64_t length = get_u32(p + 4);
    *next = at + ENTRY_LOG_RECORD + length;
    if (length < IDS || length > LOG_SCAN_ENTRY_MAX || *next > w->end)
        return ERR_END;
    uint64_t behind;
    TRY(pass_padding(w, *next, &behind));
    return behind == w->end ? ERR_OK : record_at(w, behind, false, &r);
}

static enum err search(struct walk *w, uint64_t at, uint64_t *next)
{
    struct log_record r;
    for (*next = at + 1; *next < w->end; ++*next) {
        TRY(look_for_seal(w, *next));
        const enum err err = record_at(w, *next, true, &r);
        if (err != ERR_END)
            return err;
    }
    *next = w->end;
    return ERR_OK;
}

static void tell(struct walk *w, uint64_t from, uint64_t to)
{
    struct log_scan *s = w->scan;
    s->damaged_bytes += to - from;
    if (s->damage)
        s->damage(s->ctx, from, to);
}

static enum err pass_damage(struct walk *w, uint64_t *at)
{
    uint64_t next;
    enum err err = follow(w, *at, &next);
    if (err == ERR_END)
        err = search(w, *at, &next);
    TRY(err);
    tell(w, *at, next);
    *at = next;
    return ERR_OK;
}

/* What is no record: a torn seal, padding, or damage. */
static enum err pass_gap(struct walk *w, uint64_t *at)
{
    const uint64_t before = *at;
    TRY(look_for_seal(w, before));
    if (before == w->end)
        return ERR_OK;
    TRY(pass_padding(w, before, at));
    return *at == before ? pass_damage(w, at) : ERR_OK;
}

static enum err walk_records(struct walk *w, uint64_t at)
{
    struct log_scan *s = w->scan;
    while (at < w->end) {
        struct log_record r;
        const enum err err = record_at(w, at, false, &r);
        if (err == ERR_END) {
            TRY(pass_gap(w, &at));
            continue;
        }
        TRY(err);
        s->records++;
        const uint64_t size = ENTRY_LOG_RECORD + (uint64_t)r.bytes.len;
        s->record_bytes += size;
        TRY(s->record(s->ctx, &r));
        at += size;
    }
    return ERR_OK;
}

static enum err find_end(struct walk *w)
{
    struct log_seal seal;
    struct log_scan *s = w->scan;
    w->end = w->window.size;
    const enum err err = log_seal_read(w->window.file, s->log, &seal);
    s->has_seal = err == ERR_OK;
    if (err)
        return err == ERR_NOT_FOUND || err == ERR_IO ? ERR_OK : err;
    w->end = seal.offset;
    s->seal = seal.usage;
    return ERR_OK;
}

static enum err walk_file(struct walk *w)
{
    const uint8_t *p;
    TRY(find_end(w));
    TRY(file_window_look(&w->window, 0, ENTRY_LOG_HEADER, &p));
    if (!p) { /* it was being made when the power went: nothing in it was ever synced */
        if (w->end > 0)
            tell(w, 0, w->end);
        return ERR_OK;
    }
    const enum err err = entry_log_header_read(view_of(p, ENTRY_LOG_HEADER), w->scan->log);
    if (err == ERR_CHECKSUM)
        tell(w, 0, ENTRY_LOG_HEADER);
    else
        TRY(err);
    return walk_records(w, ENTRY_LOG_HEADER);
}

enum err log_scan(struct log_scan *s)
{
    struct walk w = {.scan = s};
    char *path = entry_log_path(s->dir, s->log);
    s->size = s->records = s->record_bytes = s->damaged_bytes = 0;
    s->has_seal = false;
    s->seal = (struct log_usage){0};
    enum err err = file_window_open(&w.window, s->disk, path);
    mem_free(path);
    s->size = w.window.size;
    if (!err)
        err = walk_file(&w);
    file_window_close(&w.window);
    return err;
}
