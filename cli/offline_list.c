/* lgm bookie list-ledgers, list-entries, list-logs, lastmark - what is in a bookie's directories.
 */
#include <stdlib.h>
#include <string.h>

#include "bookie/entry_log.h"
#include "bookie/file_ids.h"
#include "bookie/index_block.h"
#include "bookie/log_seal.h"
#include "bookie/log_writer.h"
#include "bookie/mark_file.h"
#include "cli/command.h"
#include "cli/offline.h"
#include "cli/offline_tell.h"
#include "common/mem.h"
#include "common/parse.h"

/* ---- ledgers --------------------------------------------------------------------------------- */

struct listing {
    const struct offline *o;
    struct entry_index *index;
    int64_t ledger;
    uint64_t n; /* ledgers, or entries */
};

static enum err count_block(void *ctx, uint64_t number, const struct index_block *b)
{
    struct listing *l = ctx;
    (void)number;
    for (unsigned i = 0; i < INDEX_BLOCK / 64; i++)
        l->n += (uint64_t)__builtin_popcountll(b->present[i]);
    return ERR_OK;
}

static enum err tell_ledger(void *ctx, const struct ledger_row *row)
{
    struct listing *l = ctx, entries = {0};
    TRY(entry_index_blocks(l->index, row->id, count_block, &entries));
    offline_tell(l->o->json, "ledger", SAY_I64("id", row->id), SAY_U64("entries", entries.n),
                 SAY_I64("last", row->last), SAY_I64("lac", row->lac),
                 SAY_BOOL("fenced", row->fenced), SAY_BOOL("limbo", row->limbo),
                 SAY_BOOL("explicitLac", row->explicit_len > 0),
                 SAY_HEX("masterKey", view_of(row->key, sizeof row->key)));
    l->n++;
    return ERR_OK;
}

int offline_list_ledgers(struct offline *o)
{
    for (unsigned i = 0; i < o->dirs.ledgers.n; i++) {
        struct listing l = {.o = o};
        enum err err = entry_index_open(&l.index, o->dirs.index_dirs[i]);
        if (!err)
            err = entry_index_rows(l.index, -1, tell_ledger, &l);
        entry_index_close(&l.index);
        if (err)
            return offline_fail(o, o->dirs.index_dirs[i], err);
    }
    return EXIT_DONE;
}

static enum err tell_entry(const struct listing *l, int64_t entry, const struct entry_place *at)
{
    offline_tell(l->o->json, "entry", SAY_I64("ledger", l->ledger), SAY_I64("entry", entry),
                 SAY_U64("log", at->log), SAY_U64("offset", at->offset),
                 SAY_U64("length", at->length));
    return ERR_OK;
}

static enum err tell_block(void *ctx, uint64_t number, const struct index_block *b)
{
    const struct listing *l = ctx;
    for (unsigned i = 0; i < INDEX_BLOCK; i++)
        if (index_block_has(b, i))
            TRY(tell_entry(l, (int64_t)(number * INDEX_BLOCK + i), &b->at[i]));
    return ERR_OK;
}

int offline_find_ledger(const struct offline *o, int64_t ledger, struct entry_index **out,
                        unsigned *dir)
{
    struct ledger_row row;
    for (*dir = 0; *dir < o->dirs.ledgers.n; ++*dir) {
        enum err err = entry_index_open(out, o->dirs.index_dirs[*dir]);
        if (!err)
            err = entry_index_row(*out, ledger, &row);
        if (!err)
            return EXIT_DONE;
        entry_index_close(out);
        if (err != ERR_NO_LEDGER)
            return offline_fail(o, o->dirs.index_dirs[*dir], err);
    }
    return offline_fail(o, "the ledger is not here", ERR_NO_LEDGER);
}

int offline_list_entries(struct offline *o)
{
    struct listing l = {.o = o};
    unsigned dir;
    if (o->n_words != 1 || parse_i64(o->words[0], &l.ledger))
        return usage_error("bookie", "list-entries takes a ledger's id");
    const int code = offline_find_ledger(o, l.ledger, &l.index, &dir);
    if (code != EXIT_DONE)
        return code;
    const enum err err = entry_index_blocks(l.index, l.ledger, tell_block, &l);
    entry_index_close(&l.index);
    return err ? offline_fail(o, "the index cannot be read", err) : EXIT_DONE;
}

/* ---- logs ------------------------------------------------------------------------------------ */

static enum err tell_log(const struct offline *o, const char *dir, uint64_t log)
{
    struct log_seal seal = {0};
    struct disk_file *f;
    uint64_t size;
    char *path = entry_log_path(dir, log);
    enum err err = disk_real()->ops->open(disk_real(), path, DISK_READ, &f);
    if (!err) {
        err = disk_real()->ops->size(f, &size);
        const enum err sealed = err ? err : log_seal_read(f, log, &seal);
        disk_real()->ops->close(&f);
        if (!err)
            offline_tell(o->json, "log", SAY_STR("path", path), SAY_U64("bytes", size),
                         SAY_BOOL("sealed", sealed == ERR_OK), SAY_U64("ledgers", seal.usage.n),
                         SAY_U64("used", log_usage_bytes(&seal.usage)));
    }
    log_usage_end(&seal.usage);
    mem_free(path);
    return err == ERR_NOT_FOUND ? ERR_OK : err; /* the bookie may run, and may remove one */
}

int offline_list_logs(struct offline *o)
{
    for (unsigned i = 0; i < o->dirs.ledgers.n; i++) {
        const char *dir = o->dirs.ledger_dirs[i];
        struct file_ids ids = {0};
        enum err err = file_ids_list(disk_real(), dir, ENTRY_LOG_ENDING, &ids);
        for (size_t k = 0; !err && k < ids.n; k++)
            err = tell_log(o, dir, ids.at[k]);
        file_ids_end(&ids);
        if (err)
            return offline_fail(o, dir, err);
    }
    return EXIT_DONE;
}

/* ---- marks ----------------------------------------------------------------------------------- */

int offline_lastmark(struct offline *o)
{
    struct marks m;
    for (unsigned i = 0; i < o->dirs.ledgers.n; i++) {
        char *path = mem_format("%s/mark", o->dirs.ledger_dirs[i]);
        const enum err err =
            marks_load(disk_real(), path, o->dirs.journal_dirs, o->dirs.journals.n, &m);
        for (unsigned k = 0; !err && k < o->dirs.journals.n; k++)
            offline_tell(o->json, "mark", SAY_STR("path", path), SAY_BOOL("stored", m.is_there),
                         SAY_STR("journal", o->dirs.journal_dirs[k]), SAY_U64("file", m.of[k].file),
                         SAY_U64("offset", m.of[k].offset), SAY_U64("sequence", m.of[k].sequence),
                         SAY_U64("index", m.index));
        const int code = err ? offline_fail(o, path, err) : EXIT_DONE;
        mem_free(path);
        if (err)
            return code;
    }
    return EXIT_DONE;
}
