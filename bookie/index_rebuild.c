#include "bookie/index_rebuild.h"

#include <string.h>

#include "bookie/entry_log.h"
#include "bookie/integrity_file.h"
#include "bookie/log_writer.h"
#include "bookie/mark_file.h"
#include "bookie/rebuild_inside.h"
#include "common/log.h"
#include "common/loop.h"
#include "common/mem.h"

/* ---- directories of RocksDB ------------------------------------------------------------------ */

struct emptying {
    const char *dir;
    enum err err;
};

static void remove_one(void *ctx, const char *name)
{
    struct emptying *e = ctx;
    char *path = mem_format("%s/%s", e->dir, name);
    const enum err err = disk_real()->ops->remove(disk_real(), path);
    if (err && err != ERR_NOT_FOUND)
        e->err = err;
    mem_free(path);
}

/* It is flat. */
static enum err remove_index(const char *dir)
{
    struct disk *d = disk_real();
    struct emptying e = {.dir = dir};
    const enum err err = d->ops->list(d, dir, remove_one, &e);
    if (err == ERR_NOT_FOUND)
        return ERR_OK;
    TRY(err);
    TRY(e.err);
    return d->ops->remove(d, dir);
}

static char *beside(const char *index_dir)
{
    return mem_format("%s.new", index_dir);
}

static enum err sync_parent(const char *path)
{
    const char *slash = strrchr(path, '/');
    char *parent = slash ? mem_string_n(path, (size_t)(slash - path)) : mem_string(".");
    const enum err err = disk_real()->ops->sync_dir(disk_real(), parent);
    mem_free(parent);
    return err;
}

static enum err put_in_place(const char *index_dir)
{
    char *fresh = beside(index_dir);
    enum err err = remove_index(index_dir);
    if (!err)
        err = disk_real()->ops->rename(disk_real(), fresh, index_dir);
    if (!err)
        err = sync_parent(index_dir);
    mem_free(fresh);
    return err;
}

/* ---- the mark beside it ---------------------------------------------------------------------- */

static enum err load_marks(const struct rebuild_conf *c, const char *dir, struct marks *out)
{
    char *path = mem_format("%s/mark", dir);
    const enum err err = marks_load(c->disk, path, c->journals, c->n_journals, out);
    mem_free(path);
    return err;
}

/* The new index counts from its own beginning. */
static enum err store_sequence(const struct rebuild_conf *c, const char *dir, uint64_t sequence)
{
    struct marks m;
    TRY(load_marks(c, dir, &m));
    m.index = sequence;
    char *path = mem_format("%s/mark", dir);
    const enum err err = marks_store(c->disk, path, c->journals, c->n_journals, &m);
    mem_free(path);
    return err;
}

/* ---- is it lost? ----------------------------------------------------------------------------- */

struct looking {
    struct disk *disk;
    const char *dir;
    bool has_entries;
};

static void look_into_log(void *ctx, const char *name)
{
    struct looking *l = ctx;
    struct disk_file *f;
    uint64_t log, size = 0;
    if (!file_id(name, ENTRY_LOG_ENDING, &log))
        return;
    char *path = entry_log_path(l->dir, log);
    if (l->disk->ops->open(l->disk, path, DISK_READ, &f) == ERR_OK) {
        if (l->disk->ops->size(f, &size) == ERR_OK && size > ENTRY_LOG_HEADER)
            l->has_entries = true;
        l->disk->ops->close(&f);
    }
    mem_free(path);
}

/* A fresh one holds its version and nothing else. */
static enum err look_at_index(const char *index_dir, uint64_t *sequence)
{
    struct entry_index *ix;
    TRY(disk_real()->ops->mkdir(disk_real(), index_dir));
    TRY(entry_index_open(&ix, index_dir));
    *sequence = entry_index_sequence(ix);
    entry_index_close(&ix);
    return ERR_OK;
}

enum err index_is_lost(const struct rebuild_conf *c, const struct rebuild_dir *d, bool *lost)
{
    struct looking l = {.disk = c->disk, .dir = d->dir};
    struct marks m;
    uint64_t sequence;
    TRY(load_marks(c, d->dir, &m));
    const enum err err = look_at_index(d->index_dir, &sequence);
    *lost = err == ERR_CHECKSUM;
    if (err)
        return *lost ? ERR_OK : err;
    *lost = sequence < m.index;
    /* A fresh one beside logs: with a mark that knew it so, the journal brings back what they hold;
     * a crash in the first flush of all leaves that. */
    if (*lost || sequence > 1 || m.index > 0)
        return ERR_OK;
    TRY(c->disk->ops->list(c->disk, d->dir, look_into_log, &l));
    *lost = l.has_entries;
    return ERR_OK;
}

/* ---- making them ----------------------------------------------------------------------------- */

static enum err open_one(struct rebuild *r, unsigned i)
{
    const struct rebuild_dir *d = &r->conf->dirs[i];
    if (!d->is_lost)
        return entry_index_open(&r->index[i], d->index_dir);
    char *fresh = beside(d->index_dir);
    enum err err = remove_index(fresh);
    if (!err)
        err = disk_real()->ops->mkdir(disk_real(), fresh);
    if (!err)
        err = entry_index_open(&r->index[i], fresh);
    mem_free(fresh);
    return err;
}

static enum err make_all(struct rebuild *r)
{
    const struct rebuild_conf *c = r->conf;
    for (unsigned i = 0; i < c->n; i++)
        TRY(open_one(r, i));
    for (unsigned i = 0; i < c->n; i++)
        if (c->dirs[i].is_lost)
            TRY(rebuild_from_logs(r, i));
    TRY(rebuild_settle_homes(r));
    for (unsigned i = 0; i < c->n; i++)
        if (c->dirs[i].is_lost)
            TRY(rebuild_keep_tombs(r, i));
    TRY(rebuild_from_journals(r));
    return rebuild_from_metadata(r);
}

static enum err count_row(void *ctx, const struct ledger_row *row)
{
    struct rebuild_report *report = ctx;
    report->ledgers++;
    report->limbo += row->limbo;
    return ERR_OK;
}

/* What the bookie must find out before it serves, or while it does. */
static enum err store_need(const struct rebuild *r, const struct rebuild_dir *d)
{
    struct integrity_state s;
    enum integrity_need need = r->report->limbo ? INTEGRITY_CHECK : INTEGRITY_WHOLE;
    if (r->all_in_doubt || !r->conf->meta)
        need = INTEGRITY_SCAN;
    TRY(integrity_load(r->conf->disk, d->dir, &s));
    s.need = s.need > need ? s.need : need;
    s.newest = s.newest > r->newest ? s.newest : r->newest;
    return integrity_store(r->conf->disk, d->dir, &s);
}

static enum err replace(struct rebuild *r, unsigned i)
{
    const struct rebuild_conf *c = r->conf;
    const struct rebuild_dir *d = &c->dirs[i];
    const uint64_t sequence = entry_index_sequence(r->index[i]);
    entry_index_close(&r->index[i]);
    TRY(store_need(r, d));
    TRY(put_in_place(d->index_dir));
    return store_sequence(c, d->dir, sequence);
}

static enum err replace_all(struct rebuild *r)
{
    for (unsigned i = 0; i < r->conf->n; i++)
        if (r->conf->dirs[i].is_lost)
            TRY(entry_index_rows(r->index[i], -1, count_row, r->report));
    for (unsigned i = 0; i < r->conf->n; i++)
        if (r->conf->dirs[i].is_lost)
            TRY(replace(r, i));
    return ERR_OK;
}

static void drop(struct rebuild *r)
{
    struct doubt *d, *next;
    struct journal_fact *f, *after;
    for (unsigned i = 0; i < r->conf->n; i++)
        entry_index_close(&r->index[i]);
    HASH_ITER(hh, r->facts, f, after)
    {
        HASH_DEL(r->facts, f);
        mem_free(f);
    }
    HASH_ITER(hh, r->doubts, d, next)
    {
        HASH_DEL(r->doubts, d);
        mem_free(d);
    }
    mem_free(r);
}

static void tell(const struct rebuild *r, uint64_t began)
{
    const struct rebuild_report *p = r->report;
    log_event(LOG_INFO, "entry_index.rebuilt", F_STR("dir", r->conf->dirs[r->first_lost].index_dir),
              F_U64("logs", p->logs), F_U64("bytes", p->bytes), F_U64("records", p->records),
              F_U64("ledgers", p->ledgers), F_U64("limbo", p->limbo),
              F_U64("damaged_bytes", p->damaged_bytes), F_U64("ms", (loop_clock() - began) / 1000));
}

enum err index_rebuild(const struct rebuild_conf *conf, struct rebuild_report *out)
{
    struct rebuild *r = mem_new(struct rebuild);
    const uint64_t began = loop_clock();
    *out = (struct rebuild_report){0};
    r->conf = conf;
    r->report = out;
    r->newest = -1;
    for (unsigned i = conf->n; i-- > 0;)
        if (conf->dirs[i].is_lost)
            r->first_lost = i;
    enum err err = make_all(r);
    if (!err)
        err = replace_all(r);
    if (!err)
        tell(r, began);
    drop(r);
    return err;
}

/* ---- at a start ------------------------------------------------------------------------------ */

static enum err told_lost(const struct rebuild_dir *d, bool may_rebuild)
{
    log_event(may_rebuild ? LOG_WARN : LOG_ERROR, "entry_index.lost", F_STR("dir", d->index_dir),
              F_STR("reason", "removed, emptied, damaged or older than the mark beside it"));
    return may_rebuild ? ERR_OK : ERR_CHECKSUM;
}

enum err index_heal(const struct rebuild_conf *conf, struct rebuild_dir *dirs, bool may_rebuild)
{
    struct rebuild_report report;
    bool any = false;
    for (unsigned i = 0; i < conf->n; i++) {
        TRY(index_is_lost(conf, &dirs[i], &dirs[i].is_lost));
        if (dirs[i].is_lost)
            TRY(told_lost(&dirs[i], may_rebuild));
        any |= dirs[i].is_lost;
    }
    return any ? index_rebuild(conf, &report) : ERR_OK;
}
