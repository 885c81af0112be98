/* lgm bookie verify-journal, verify-logs - is all of it whole? */
#include <stdio.h>
#include <string.h>

#include "bookie/entry_log.h"
#include "bookie/file_ids.h"
#include "bookie/index_block.h"
#include "bookie/journal_scan.h"
#include "bookie/log_scan.h"
#include "bookie/log_writer.h"
#include "bookie/mark_file.h"
#include "cli/command.h"
#include "cli/offline.h"
#include "cli/offline_tell.h"
#include "common/mem.h"
#include "common/table.h"

/* ---- the journals: as a start would read them ------------------------------------------------ */

struct counted {
    uint64_t records, bytes;
};

static enum err count_record(void *ctx, uint8_t kind, struct view payload)
{
    struct counted *c = ctx;
    (void)kind;
    c->records++;
    c->bytes += payload.len;
    return ERR_OK;
}

/* The least of all directories: where replay begins.  A new one has none and needs nothing.
 * *synced: what is before the furthest was synced once. */
static enum err find_mark(const struct offline *o, unsigned journal, struct journal_mark *out,
                          uint64_t *synced)
{
    bool found = false;
    *out = JOURNAL_BEGIN;
    *synced = 0;
    for (unsigned i = 0; i < o->dirs.ledgers.n; i++) {
        struct marks m;
        char *path = mem_format("%s/mark", o->dirs.ledger_dirs[i]);
        const enum err err =
            marks_load(disk_real(), path, o->dirs.journal_dirs, o->dirs.journals.n, &m);
        mem_free(path);
        TRY(err);
        if (m.is_there && (!found || mark_is_before(&m.of[journal], out)))
            *out = m.of[journal];
        if (m.is_there && m.of[journal].sequence > *synced)
            *synced = m.of[journal].sequence;
        found |= m.is_there;
    }
    return ERR_OK;
}

static enum err scan(const struct offline *o, unsigned journal, struct journal_mark from,
                     uint64_t synced, struct counted *c)
{
    struct journal_files *files = mem_new(struct journal_files);
    uint64_t next;
    enum err err =
        journal_files_open(files, disk_real(), o->dirs.journal_dirs[journal], false, from.file);
    if (!err) {
        err =
            journal_scan(files, from, synced, (uint32_t)o->conf.frame_max, count_record, c, &next);
        journal_files_close(files);
    }
    mem_free(files);
    return err;
}

int offline_verify_journal(struct offline *o)
{
    int code = EXIT_DONE;
    for (unsigned i = 0; i < o->dirs.journals.n; i++) {
        struct journal_mark from;
        uint64_t synced;
        struct counted c = {0};
        enum err err = find_mark(o, i, &from, &synced);
        if (!err)
            err = scan(o, i, from, synced, &c);
        offline_tell(o->json, "journal", SAY_STR("dir", o->dirs.journal_dirs[i]),
                     SAY_U64("fromFile", from.file), SAY_U64("fromSequence", from.sequence),
                     SAY_U64("records", c.records), SAY_U64("bytes", c.bytes),
                     SAY_STR("state", err ? err_text(err) : "whole"));
        if (err)
            code = EXIT_FAILED;
    }
    return code;
}

/* ---- the logs, and what the index says of them ------------------------------------------------
 */

/* Records of a ledger that stand where the index says. */
struct tally {
    int64_t ledger;
    uint64_t entries;
    UT_hash_handle hh;
};

struct verify {
    const struct offline *o;
    struct entry_index *index;
    struct entry_log *log;
    const char *dir, *path;
    struct log_scan scan;
    struct tally *tallies;
    int64_t ledger; /* of `block`, the last that was looked at */
    uint64_t number;
    bool has_block;
    struct index_block block;
    uint64_t logs, records, damages, wrong, entries;
};

static struct tally *tally_of(struct verify *v, int64_t ledger)
{
    struct tally *t;
    HASH_FIND(hh, v->tallies, &ledger, sizeof ledger, t);
    if (!t) {
        t = mem_new(struct tally);
        t->ledger = ledger;
        HASH_ADD(hh, v->tallies, ledger, sizeof t->ledger, t);
    }
    return t;
}

static enum err find_block(struct verify *v, int64_t ledger, uint64_t number)
{
    if (v->number == number && v->ledger == ledger)
        return ERR_OK;
    v->ledger = ledger;
    v->number = number;
    const enum err err = entry_index_block(v->index, ledger, number, &v->block);
    v->has_block = err == ERR_OK;
    return err == ERR_NO_ENTRY ? ERR_OK : err;
}

static enum err count_if_named(void *ctx, const struct log_record *r)
{
    struct verify *v = ctx;
    const unsigned i = (unsigned)((uint64_t)r->entry % INDEX_BLOCK);
    TRY(find_block(v, r->ledger, (uint64_t)r->entry / INDEX_BLOCK));
    if (!v->has_block || !index_block_has(&v->block, i))
        return ERR_OK;
    const struct entry_place *p = &v->block.at[i];
    if (p->log == v->scan.log && p->offset == r->offset && p->length == r->bytes.len)
        tally_of(v, r->ledger)->entries++;
    return ERR_OK;
}

static void tell_damage(void *ctx, uint64_t from, uint64_t to)
{
    struct verify *v = ctx;
    v->damages++;
    offline_tell(v->o->json, "damage", SAY_STR("path", v->path), SAY_U64("offset", from),
                 SAY_U64("bytes", to - from));
}

static enum err verify_log(struct verify *v, uint64_t log)
{
    char *path = entry_log_path(v->dir, log);
    v->path = path;
    v->ledger = -1;
    v->scan = (struct log_scan){.disk = disk_real(),
                                .dir = v->dir,
                                .log = log,
                                .record = count_if_named,
                                .damage = tell_damage,
                                .ctx = v};
    const enum err err = log_scan(&v->scan);
    log_usage_end(&v->scan.seal);
    mem_free(path);
    v->logs++;
    v->records += v->scan.records;
    return err;
}

/* ---- what the index names and is not there ---- */

struct ledger_check {
    struct verify *v;
    int64_t ledger;
    uint64_t entries;
    bool look; /* at each */
};

static bool is_there(struct verify *v, int64_t ledger, int64_t entry, const struct entry_place *at)
{
    struct slab *bytes;
    struct view record;
    size_t got;
    if (entry_log_read(v->log, at, 0, &bytes, &got))
        return false;
    const enum err err =
        entry_log_check(view_of(slab_bytes(bytes), got), at->length, ledger, entry, &record);
    slab_drop(&bytes);
    return err == ERR_OK;
}

static void tell_wrong(struct verify *v, int64_t ledger, int64_t entry,
                       const struct entry_place *at)
{
    v->wrong++;
    offline_tell(v->o->json, "unreadable", SAY_I64("ledger", ledger), SAY_I64("entry", entry),
                 SAY_STR("dir", v->dir), SAY_U64("log", at->log), SAY_U64("offset", at->offset));
}

static enum err check_block(void *ctx, uint64_t number, const struct index_block *b)
{
    struct ledger_check *c = ctx;
    for (unsigned i = 0; i < INDEX_BLOCK; i++) {
        const int64_t entry = (int64_t)(number * INDEX_BLOCK + i);
        if (!index_block_has(b, i))
            continue;
        c->entries++;
        if (c->look && !is_there(c->v, c->ledger, entry, &b->at[i]))
            tell_wrong(c->v, c->ledger, entry, &b->at[i]);
    }
    return ERR_OK;
}

static enum err check_ledger(void *ctx, const struct ledger_row *row)
{
    struct verify *v = ctx;
    struct ledger_check c = {.v = v, .ledger = row->id};
    TRY(entry_index_blocks(v->index, row->id, check_block, &c));
    v->entries += c.entries;
    if (c.entries == tally_of(v, row->id)->entries)
        return ERR_OK;
    c.look = true;
    return entry_index_blocks(v->index, row->id, check_block, &c);
}

static enum err verify_all(struct verify *v)
{
    struct file_ids ids;
    TRY(file_ids_list(disk_real(), v->dir, ENTRY_LOG_ENDING, &ids));
    enum err err = ERR_OK;
    for (size_t i = 0; !err && i < ids.n; i++)
        err = verify_log(v, ids.at[i]);
    file_ids_end(&ids);
    TRY(err);
    return entry_index_rows(v->index, -1, check_ledger, v);
}

static enum err verify_dir(struct verify *v, unsigned i)
{
    struct tally *t, *next;
    v->dir = v->o->dirs.ledger_dirs[i];
    TRY(entry_index_open(&v->index, v->o->dirs.index_dirs[i]));
    enum err err = entry_log_open(&v->log, disk_real(), v->dir, 1 << 20);
    if (!err)
        err = verify_all(v);
    HASH_ITER(hh, v->tallies, t, next)
    {
        HASH_DEL(v->tallies, t);
        mem_free(t);
    }
    entry_log_close(&v->log);
    entry_index_close(&v->index);
    return err;
}

int offline_verify_logs(struct offline *o)
{
    int code = EXIT_DONE;
    for (unsigned i = 0; i < o->dirs.ledgers.n; i++) {
        struct verify *v = mem_new(struct verify);
        v->o = o;
        const enum err err = verify_dir(v, i);
        offline_tell(o->json, "logs", SAY_STR("dir", o->dirs.ledger_dirs[i]),
                     SAY_U64("logs", v->logs), SAY_U64("records", v->records),
                     SAY_U64("entries", v->entries), SAY_U64("damages", v->damages),
                     SAY_U64("unreadable", v->wrong),
                     SAY_STR("state", err ? err_text(err) : "looked at"));
        if (err || v->damages || v->wrong)
            code = EXIT_FAILED;
        mem_free(v);
    }
    return code;
}
