#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "bookie/entry_log.h"
#include "bookie/log_scan.h"
#include "bookie/log_writer.h"
#include "bookie/rebuild_inside.h"
#include "common/log.h"
#include "common/loop.h"
#include "common/mem.h"

enum { BATCH = 256 * 1024, TELL_US = 5 * 1000 * 1000 };

struct ledger_row rebuild_new_row(int64_t ledger)
{
    return (struct ledger_row){.id = ledger, .fenced = true, .limbo = true, .last = -1, .lac = -1};
}

/* ---- what was found, to the index ------------------------------------------------------------ */

static int by_id_and_age(const void *a, const void *b)
{
    const struct found_place *x = a, *y = b;
    if (x->ledger != y->ledger)
        return x->ledger < y->ledger ? -1 : 1;
    if (x->entry != y->entry)
        return x->entry < y->entry ? -1 : 1;
    if (x->at.log != y->at.log)
        return x->at.log < y->at.log ? -1 : 1;
    return (x->at.offset > y->at.offset) - (x->at.offset < y->at.offset);
}

static enum err find_row(struct entry_index *ix, int64_t ledger, struct ledger_row *out)
{
    const enum err err = entry_index_row(ix, ledger, out);
    if (err == ERR_NO_LEDGER)
        *out = rebuild_new_row(ledger);
    return err == ERR_NO_LEDGER ? ERR_OK : err;
}

static bool is_same_entry(const struct found_place *a, const struct found_place *b)
{
    return a->ledger == b->ledger && a->entry == b->entry;
}

/* The places of one ledger, from `first` on; *next is behind the last of them. */
static enum err put_ledger(struct rebuild *r, struct entry_index *ix, size_t first, size_t *next)
{
    const struct found_place *p = r->places;
    const int64_t ledger = p[first].ledger;
    struct ledger_row row;
    size_t i = first;
    TRY(find_row(ix, ledger, &row));
    for (; i < r->n_places && p[i].ledger == ledger; i++) {
        if (i + 1 < r->n_places && is_same_entry(&p[i], &p[i + 1]))
            continue; /* a newer copy of it follows */
        TRY(entry_index_put(ix, ledger, p[i].entry, &p[i].at));
        if (p[i].entry > row.last)
            row.last = p[i].entry;
        if (p[i].lac > row.lac)
            row.lac = p[i].lac;
    }
    entry_index_put_row(ix, &row);
    *next = i;
    return ERR_OK;
}

static enum err put_places(struct rebuild *r, unsigned dir)
{
    if (r->n_places == 0)
        return ERR_OK;
    qsort(r->places, r->n_places, sizeof r->places[0], by_id_and_age);
    for (size_t i = 0; i < r->n_places;)
        TRY(put_ledger(r, r->index[dir], i, &i));
    r->n_places = 0;
    return entry_index_commit(r->index[dir]);
}

/* ---- one log --------------------------------------------------------------------------------- */

struct looking {
    struct rebuild *rebuild;
    unsigned dir;
    const char *path;
    struct log_usage found; /* bytes of records, by ledger */
    struct log_scan scan;
};

static enum err take_record(void *ctx, const struct log_record *record)
{
    struct looking *l = ctx;
    struct rebuild *r = l->rebuild;
    if (r->n_places == BATCH)
        TRY(put_places(r, l->dir));
    r->places[r->n_places++] = (struct found_place){
        .ledger = record->ledger,
        .entry = record->entry,
        .lac = record->lac,
        .at = {l->scan.log, record->offset, (uint32_t)record->bytes.len},
    };
    log_usage_add(&l->found, record->ledger, ENTRY_LOG_RECORD + record->bytes.len);
    return ERR_OK;
}

static void take_damage(void *ctx, uint64_t from, uint64_t to)
{
    struct looking *l = ctx;
    struct rebuild_report *report = l->rebuild->report;
    log_event(LOG_ERROR, "entry_log.damaged", F_STR("path", l->path), F_U64("offset", from),
              F_U64("bytes", to - from));
    report->damages++;
    report->damaged_bytes += to - from;
}

static void doubt(struct rebuild *r, int64_t ledger)
{
    struct doubt *d;
    HASH_FIND(hh, r->doubts, &ledger, sizeof ledger, d);
    if (d)
        return;
    d = mem_new(struct doubt);
    d->ledger = ledger;
    HASH_ADD(hh, r->doubts, ledger, sizeof d->ledger, d);
}

/* Of both in the order of ledgers: who has less than the seal says? */
static void doubt_those_that_lack(struct rebuild *r, const struct log_usage *seal,
                                  const struct log_usage *found)
{
    for (size_t i = 0, k = 0; i < seal->n; i++) {
        while (k < found->n && found->at[k].ledger < seal->at[i].ledger)
            k++;
        const bool is_here = k < found->n && found->at[k].ledger == seal->at[i].ledger;
        if (!is_here || found->at[k].bytes < seal->at[i].bytes)
            doubt(r, seal->at[i].ledger);
    }
}

/* A seal that counts all that was found and all that is damaged, counts every record: so what it
 * misses is what is lost.  One that was made from an index counts only what was named. */
static void judge(struct looking *l)
{
    struct log_scan *s = &l->scan;
    if (s->damaged_bytes == 0)
        return;
    log_usage_sort(&l->found);
    if (s->has_seal && log_usage_bytes(&s->seal) == s->record_bytes + s->damaged_bytes)
        doubt_those_that_lack(l->rebuild, &s->seal, &l->found);
    else
        l->rebuild->all_in_doubt = true;
}

static enum err look_through(struct rebuild *r, unsigned dir, uint64_t log)
{
    const char *where = r->conf->dirs[dir].dir;
    char *path = entry_log_path(where, log);
    struct looking l = {.rebuild = r, .dir = dir, .path = path};
    l.scan = (struct log_scan){.disk = r->conf->disk,
                               .dir = where,
                               .log = log,
                               .record = take_record,
                               .damage = take_damage,
                               .ctx = &l};
    const enum err err = log_scan(&l.scan);
    if (err)
        log_event(LOG_ERROR, "entry_log.unreadable", F_STR("path", path), F_ERR(err));
    else
        judge(&l);
    log_usage_end(&l.found);
    log_usage_end(&l.scan.seal);
    mem_free(path);
    r->report->logs++;
    r->report->bytes += l.scan.size;
    r->report->records += l.scan.records;
    return err;
}

/* ---- all of a directory ---------------------------------------------------------------------- */

static void tell(struct rebuild *r, unsigned dir, size_t done, size_t of)
{
    const uint64_t now = loop_clock();
    if (now - r->told_at < TELL_US)
        return;
    r->told_at = now;
    log_event(LOG_INFO, "entry_index.rebuilding", F_STR("dir", r->conf->dirs[dir].dir),
              F_U64("logs", done), F_U64("of", of), F_U64("records", r->report->records),
              F_U64("bytes", r->report->bytes));
}

/* One that has nothing else here must not look as if it had never been. */
static enum err put_doubts(struct rebuild *r, unsigned dir)
{
    struct doubt *d, *next;
    struct ledger_row row;
    HASH_ITER(hh, r->doubts, d, next)
    {
        TRY(find_row(r->index[dir], d->ledger, &row));
        entry_index_put_row(r->index[dir], &row);
    }
    return entry_index_commit(r->index[dir]);
}

static enum err look_through_all(struct rebuild *r, unsigned dir, struct file_ids *all)
{
    TRY(file_ids_list(r->conf->disk, r->conf->dirs[dir].dir, ENTRY_LOG_ENDING, all));
    for (size_t i = 0; i < all->n; i++) {
        TRY(look_through(r, dir, all->at[i]));
        tell(r, dir, i + 1, all->n);
    }
    TRY(put_places(r, dir));
    return r->doubts ? put_doubts(r, dir) : ERR_OK;
}

enum err rebuild_from_logs(struct rebuild *r, unsigned dir)
{
    struct file_ids all = {0};
    r->places = mem_alloc(BATCH * sizeof r->places[0]);
    r->n_places = 0;
    r->told_at = loop_clock();
    const enum err err = look_through_all(r, dir, &all);
    file_ids_end(&all);
    mem_free(r->places);
    return err;
}
