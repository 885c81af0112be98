/* lgm bookie dump-entry, dump-log, dump-journal - bytes on a disk, in words. */
#include <stdio.h>
#include <string.h>

#include "bookie/bytes.h"
#include "bookie/entry_log.h"
#include "bookie/file_ids.h"
#include "bookie/journal_walk.h"
#include "bookie/log_scan.h"
#include "bookie/log_writer.h"
#include "bookie/storage.h"
#include "cli/command.h"
#include "cli/offline.h"
#include "cli/offline_tell.h"
#include "common/mem.h"
#include "common/parse.h"
#include "proto/entry.h"

/* ---- an entry -------------------------------------------------------------------------------- */

static void tell_bytes(const struct offline *o, const char *what, struct view entry)
{
    struct entry_header h = {.ledger = -1, .entry = -1, .lac = -1, .length = -1};
    const enum err err = entry_header_read(entry, &h);
    offline_tell(o->json, what, SAY_I64("ledger", h.ledger), SAY_I64("entry", h.entry),
                 SAY_I64("lac", h.lac), SAY_I64("ledgerLength", h.length),
                 SAY_BOOL("hasHeader", err == ERR_OK), SAY_U64("bytes", entry.len),
                 SAY_HEX("content", entry));
}

static enum err dump_place(struct offline *o, unsigned dir, int64_t ledger, int64_t entry,
                           const struct entry_place *at)
{
    struct entry_log *log;
    struct slab *bytes;
    struct view record;
    size_t got;
    TRY(entry_log_open(&log, disk_real(), o->dirs.ledger_dirs[dir], 1 << 20));
    enum err err = entry_log_read(log, at, 0, &bytes, &got);
    if (!err) {
        err = entry_log_check(view_of(slab_bytes(bytes), got), at->length, ledger, entry, &record);
        if (!err)
            tell_bytes(o, "entry", record);
        slab_drop(&bytes);
    }
    entry_log_close(&log);
    return err == ERR_NOT_FOUND ? ERR_CHECKSUM : err;
}

int offline_dump_entry(struct offline *o)
{
    struct entry_index *index;
    struct entry_place at;
    int64_t ledger, entry;
    unsigned dir;
    if (o->n_words != 2 || parse_i64(o->words[0], &ledger) || parse_i64(o->words[1], &entry))
        return usage_error("bookie", "dump-entry takes a ledger's id and an entry's");
    const int code = offline_find_ledger(o, ledger, &index, &dir);
    if (code != EXIT_DONE)
        return code;
    enum err err = entry_index_find(index, ledger, entry, &at);
    if (!err) {
        offline_tell(o->json, "place", SAY_STR("dir", o->dirs.ledger_dirs[dir]),
                     SAY_U64("log", at.log), SAY_U64("offset", at.offset),
                     SAY_U64("length", at.length));
        err = dump_place(o, dir, ledger, entry, &at);
    }
    entry_index_close(&index);
    return err ? offline_fail(o, "the entry cannot be read", err) : EXIT_DONE;
}

/* ---- a log ----------------------------------------------------------------------------------- */

struct dump {
    const struct offline *o;
    const char *path;
    uint64_t damages;
};

static enum err tell_record(void *ctx, const struct log_record *r)
{
    const struct dump *d = ctx;
    offline_tell(d->o->json, "record", SAY_U64("offset", r->offset), SAY_I64("ledger", r->ledger),
                 SAY_I64("entry", r->entry), SAY_I64("lac", r->lac),
                 SAY_U64("bytes", r->bytes.len));
    return ERR_OK;
}

static void tell_damage(void *ctx, uint64_t from, uint64_t to)
{
    struct dump *d = ctx;
    d->damages++;
    offline_tell(d->o->json, "damage", SAY_STR("path", d->path), SAY_U64("offset", from),
                 SAY_U64("bytes", to - from));
}

/* The log has this id in one of the directories. */
static enum err dump_log(const struct offline *o, const char *dir, uint64_t id, uint64_t *damages)
{
    char *path = entry_log_path(dir, id);
    struct dump d = {.o = o, .path = path};
    struct log_scan s = {.disk = disk_real(),
                         .dir = dir,
                         .log = id,
                         .record = tell_record,
                         .damage = tell_damage,
                         .ctx = &d};
    const enum err err = log_scan(&s);
    if (!err && s.has_seal)
        for (size_t i = 0; i < s.seal.n; i++)
            offline_tell(o->json, "seal", SAY_I64("ledger", s.seal.at[i].ledger),
                         SAY_U64("bytes", s.seal.at[i].bytes));
    log_usage_end(&s.seal);
    mem_free(path);
    *damages += d.damages;
    return err;
}

int offline_dump_log(struct offline *o)
{
    uint64_t id, damages = 0;
    if (o->n_words != 1 || parse_u64(o->words[0], &id))
        return usage_error("bookie", "dump-log takes a log's id");
    enum err err = ERR_NOT_FOUND;
    for (unsigned i = 0; i < o->dirs.ledgers.n && err == ERR_NOT_FOUND; i++)
        err = dump_log(o, o->dirs.ledger_dirs[i], id, &damages);
    if (err)
        return offline_fail(o, o->words[0], err);
    return damages ? EXIT_FAILED : EXIT_DONE;
}

/* ---- a journal ------------------------------------------------------------------------------- */

struct journal_dump {
    const struct offline *o;
    uint64_t file;
};

static enum err tell_add(const struct journal_dump *d, uint64_t offset,
                         const struct journal_record *r, struct view body)
{
    offline_tell(d->o->json, "add", SAY_U64("file", d->file), SAY_U64("offset", offset),
                 SAY_U64("sequence", r->sequence), SAY_U64("group", r->group),
                 SAY_I64("ledger", (int64_t)get_u64(body.base)),
                 SAY_I64("entry", (int64_t)get_u64(body.base + 8)), SAY_U64("bytes", body.len));
    return ERR_OK;
}

static enum err tell_journal_record(void *ctx, uint64_t offset, const struct journal_record *r)
{
    const struct journal_dump *d = ctx;
    const struct view p = r->payload;
    const bool is_known = p.len >= MASTER_KEY_SIZE + 8;
    const struct view body =
        is_known ? view_of(p.base + MASTER_KEY_SIZE, p.len - MASTER_KEY_SIZE) : (struct view){0};
    if (r->kind == RECORD_ADD && body.len >= 16)
        return tell_add(d, offset, r, body);
    offline_tell(
        d->o->json,
        r->kind == RECORD_FENCE ? "fence"
        : r->kind == RECORD_LAC ? "explicitLac"
                                : "record",
        SAY_U64("file", d->file), SAY_U64("offset", offset), SAY_U64("sequence", r->sequence),
        SAY_U64("group", r->group), SAY_U64("kind", r->kind),
        SAY_I64("ledger", is_known ? (int64_t)get_u64(body.base) : -1),
        SAY_I64("lac",
                r->kind == RECORD_LAC && body.len >= 16 ? (int64_t)get_u64(body.base + 8) : -1));
    return ERR_OK;
}

static enum err dump_journal(const struct offline *o, const char *dir, const uint64_t *only)
{
    struct journal_dump d = {.o = o};
    struct file_ids ids;
    enum err err = file_ids_list(disk_real(), dir, JOURNAL_ENDING, &ids);
    for (size_t i = 0; !err && i < ids.n; i++) {
        d.file = ids.at[i];
        if (!only || *only == d.file)
            err = journal_walk(disk_real(), dir, d.file, (uint32_t)o->conf.frame_max,
                               tell_journal_record, &d);
    }
    file_ids_end(&ids);
    return err;
}

int offline_dump_journal(struct offline *o)
{
    uint64_t only;
    if (o->n_words > 1 || (o->n_words == 1 && parse_u64(o->words[0], &only)))
        return usage_error("bookie", "dump-journal takes the id of a file, or nothing for all");
    for (unsigned i = 0; i < o->dirs.journals.n; i++) {
        const enum err err = dump_journal(o, o->dirs.journal_dirs[i], o->n_words ? &only : NULL);
        if (err)
            return offline_fail(o, o->dirs.journal_dirs[i], err);
    }
    return EXIT_DONE;
}
