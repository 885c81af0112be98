#include "bookie/reclaim.h"

#include <stdlib.h>
#include <string.h>

#include "bookie/bytes.h"
#include "common/log.h"
#include "common/loop.h"
#include "common/mem.h"

enum { PIECE = 1024 * 1024, QUARANTINE_NOTE = 16 };

/* A closed log in this round. */
struct closed {
    uint64_t log, size, live;
    bool is_sealed, is_quarantined;
    struct log_usage usage;
};

struct round {
    struct reclaim *r;
    struct gc_ids live; /* ledgers */
    struct closed *at;  /* by log */
    size_t n;
    uint64_t removed;
};

void reclaim_init(struct reclaim *r, struct disk *disk, const char *dir, struct entry_log *log,
                  struct entry_index *index, struct reclaim_stats *stats)
{
    *r = (struct reclaim){.disk = disk, .dir = dir, .log = log, .index = index, .stats = stats};
    r->compaction.index = index;
    r->compaction.log = log;
}

/* ---- what is in the logs -------------------------------------------------------------------- */

static enum err take_ledger(void *ctx, int64_t ledger)
{
    gc_ids_add(ctx, ledger);
    return ERR_OK;
}

static enum err read_seal(struct round *o, struct closed *c)
{
    uint8_t note[QUARANTINE_NOTE];
    size_t len;
    TRY(entry_log_size(o->r->log, c->log, &c->size));
    enum err err =
        entry_index_noted(o->r->index, INDEX_QUARANTINE, c->log, note, sizeof note, &len);
    if (err && err != ERR_NOT_FOUND)
        return err;
    c->is_quarantined = !err;
    if (c->is_quarantined)
        return ERR_OK;
    err = entry_log_usage(o->r->log, c->log, &c->usage);
    c->is_sealed = !err;
    return err == ERR_NOT_FOUND ? ERR_OK : err;
}

/* A log whose seal cannot be read now is left alone in this round. */
static enum err read_seals(struct round *o)
{
    struct file_ids ids;
    TRY(entry_log_closed(o->r->log, &ids));
    o->at = mem_alloc((ids.n + 1) * sizeof o->at[0]);
    for (size_t i = 0; i < ids.n; i++) {
        struct closed c = {.log = ids.at[i]};
        const enum err err = read_seal(o, &c);
        if (err)
            log_event(LOG_WARN, "gc.log_unreadable", F_STR("dir", o->r->dir), F_U64("log", c.log),
                      F_ERR(err));
        else
            o->at[o->n++] = c;
    }
    file_ids_end(&ids);
    return ERR_OK;
}

static struct closed *find_log(struct round *o, uint64_t log)
{
    size_t from = 0, to = o->n;
    while (from < to) {
        const size_t mid = from + (to - from) / 2;
        if (o->at[mid].log < log)
            from = mid + 1;
        else
            to = mid;
    }
    return from < o->n && o->at[from].log == log ? &o->at[from] : NULL;
}

struct walk {
    struct round *round;
    int64_t ledger;
};

static enum err count_block(void *ctx, uint64_t number, const struct index_block *b)
{
    const struct walk *w = ctx;
    struct closed *c = NULL;
    (void)number;
    for (unsigned i = 0; i < INDEX_BLOCK; i++) {
        if (!index_block_has(b, i))
            continue;
        if (!c || c->log != b->at[i].log)
            c = find_log(w->round, b->at[i].log);
        if (c && !c->is_sealed)
            log_usage_add(&c->usage, w->ledger, ENTRY_LOG_RECORD + (uint64_t)b->at[i].length);
    }
    return ERR_OK;
}

static enum err ask_index(struct round *o)
{
    struct walk w = {.round = o};
    for (size_t i = 0; i < o->live.n; i++) {
        w.ledger = o->live.at[i];
        TRY(o->r->compaction.pace(o->r->compaction.ctx, 0));
        TRY(entry_index_blocks(o->r->index, w.ledger, count_block, &w));
    }
    return ERR_OK;
}

static void seal(struct round *o, struct closed *c)
{
    if (c->is_quarantined || c->usage.n == 0)
        return;
    const enum err err = entry_log_seal(o->r->log, c->log, &c->usage);
    if (err)
        log_event(LOG_WARN, "gc.log_unsealed", F_STR("dir", o->r->dir), F_U64("log", c->log),
                  F_ERR(err));
}

/* Without an answer of the index nothing is known of a log without a seal: it stays. */
static void judge_unsealed(struct round *o)
{
    size_t unsealed = 0, kept = 0;
    for (size_t i = 0; i < o->n; i++)
        unsealed += !o->at[i].is_sealed;
    if (unsealed == 0)
        return;
    const enum err err = ask_index(o);
    for (size_t i = 0; i < o->n; i++) {
        struct closed *c = &o->at[i];
        if (err && !c->is_sealed) {
            log_usage_end(&c->usage);
            continue;
        }
        log_usage_sort(&c->usage);
        if (!c->is_sealed)
            seal(o, c);
        o->at[kept++] = *c;
    }
    o->n = kept;
}

static void count_live(struct round *o)
{
    for (size_t i = 0; i < o->n; i++) {
        struct closed *c = &o->at[i];
        c->live = 0;
        for (size_t k = 0; k < c->usage.n; k++)
            if (gc_ids_has(&o->live, c->usage.at[k].ledger))
                c->live += c->usage.at[k].bytes;
    }
}

/* The ledgers after the logs: whatever the index names in a closed log, its ledger has a row. */
static enum err look(struct round *o)
{
    TRY(read_seals(o));
    TRY(entry_index_ledgers(o->r->index, take_ledger, &o->live));
    judge_unsealed(o);
    count_live(o);
    return ERR_OK;
}

static void end(struct round *o)
{
    for (size_t i = 0; i < o->n; i++)
        log_usage_end(&o->at[i].usage);
    mem_free(o->at);
    gc_ids_end(&o->live);
}

/* ---- taking back ---------------------------------------------------------------------------- */

static enum err remove_log(struct round *o, struct closed *c, const char *event)
{
    const enum err err = entry_log_remove(o->r->log, c->log);
    if (err) {
        log_event(LOG_WARN, "entry_log.left", F_STR("dir", o->r->dir), F_U64("log", c->log),
                  F_ERR(err));
        return err;
    }
    if (c->is_quarantined)
        TRY(entry_index_unnote(o->r->index, INDEX_QUARANTINE, c->log));
    log_event(LOG_INFO, event, F_STR("dir", o->r->dir), F_U64("log", c->log),
              F_U64("bytes", c->size), F_U64("live", c->live));
    c->size = 0;
    return ERR_OK;
}

static void remove_dead(struct round *o)
{
    struct reclaim_stats *s = o->r->stats;
    for (size_t i = 0; i < o->n; i++) {
        struct closed *c = &o->at[i];
        const uint64_t size = c->size;
        if (c->live > 0 || remove_log(o, c, "entry_log.removed"))
            continue;
        metric_add(&s->removed_logs, 1);
        metric_add(&s->removed_bytes, (int64_t)size);
    }
}

/* ---- space ---------------------------------------------------------------------------------- */

static enum err fill(struct disk_file *f, uint64_t bytes)
{
    static uint8_t zeros[PIECE];
    for (uint64_t at = 0; at < bytes; at += PIECE) {
        struct iovec iov = {zeros, bytes - at < PIECE ? bytes - at : PIECE};
        TRY(f->disk->ops->write(f, at, &iov, 1));
        TRY(f->disk->ops->sync(f)); /* a piece at a time: others sync on this device too */
    }
    return ERR_OK;
}

static bool has_reserve(struct reclaim *r, const char *path)
{
    struct disk_file *f;
    uint64_t size = 0;
    if (r->disk->ops->open(r->disk, path, DISK_READ, &f))
        return false;
    const enum err err = r->disk->ops->size(f, &size);
    r->disk->ops->close(&f);
    return !err && size >= r->reserve_bytes;
}

/* Only where there is plenty: it is not taken from those who write just now. */
static bool is_roomy(struct reclaim *r)
{
    uint64_t free_bytes, total;
    return !r->disk->ops->space(r->disk, r->dir, &free_bytes, &total) &&
           free_bytes / 4 > r->reserve_bytes;
}

static enum err replace(struct reclaim *r, const char *path)
{
    struct disk_file *f;
    const enum err gone = r->disk->ops->remove(r->disk, path);
    if (gone && gone != ERR_NOT_FOUND)
        return gone;
    TRY(r->disk->ops->open(r->disk, path, DISK_CREATE, &f));
    const enum err err = fill(f, r->reserve_bytes);
    r->disk->ops->close(&f);
    if (err && r->disk->ops->remove(r->disk, path))
        log_event(LOG_WARN, "entry_log.left", F_STR("path", path));
    return err;
}

/* Zeros that are written: a hole would not hold the space. */
static void make_reserve(struct reclaim *r)
{
    char *path = mem_format("%s/gc.reserve", r->dir);
    if (r->reserve_bytes > 0 && !has_reserve(r, path) && is_roomy(r)) {
        const enum err err = replace(r, path);
        if (err)
            log_event(LOG_WARN, "gc.reserve_failed", F_STR("path", path), F_ERR(err));
    }
    mem_free(path);
}

static bool give_reserve(struct reclaim *r)
{
    char *path = mem_format("%s/gc.reserve", r->dir);
    enum err err = r->disk->ops->remove(r->disk, path);
    if (!err)
        err = r->disk->ops->sync_dir(r->disk, r->dir);
    if (!err)
        log_event(LOG_WARN, "gc.reserve_used", F_STR("dir", r->dir),
                  F_U64("bytes", r->reserve_bytes));
    mem_free(path);
    return !err;
}

void reclaim_prepare(struct reclaim *r)
{
    uint64_t free_bytes, total;
    if (r->reserve_bytes == 0 || r->disk->ops->space(r->disk, r->dir, &free_bytes, &total))
        return;
    if (free_bytes < r->reserve_bytes / 4)
        (void)!give_reserve(r);
}

/* ---- compaction ----------------------------------------------------------------------------- */

static enum err quarantine(struct round *o, struct closed *c, const struct compaction_result *res)
{
    uint8_t note[QUARANTINE_NOTE];
    put_u64(note, res->unreadable_bytes);
    put_u64(note + 8, res->unreadable);
    if (!c->is_quarantined)
        log_event(LOG_ERROR, "entry_log.quarantined", F_STR("dir", o->r->dir), F_U64("log", c->log),
                  F_U64("entries", res->unreadable), F_U64("moved", res->moved));
    metric_add(&o->r->stats->unreadable, (int64_t)res->unreadable);
    return entry_index_note(o->r->index, INDEX_QUARANTINE, c->log, view_of(note, sizeof note));
}

static enum err move_rest(struct round *o, struct closed *c, struct compaction_result *res)
{
    const struct compaction *how = &o->r->compaction;
    enum err err = compaction_run(how, c->log, &c->usage, &o->live, res);
    if (err == ERR_NO_SPACE && give_reserve(o->r))
        err = compaction_run(how, c->log, &c->usage, &o->live, res);
    return err;
}

static enum err compact(struct round *o, struct closed *c)
{
    struct reclaim_stats *s = o->r->stats;
    struct compaction_result res;
    const uint64_t size = c->size;
    const enum err err = move_rest(o, c, &res);
    metric_add(&s->moved, (int64_t)res.moved);
    metric_add(&s->moved_bytes, (int64_t)res.moved_bytes);
    TRY(err);
    if (res.unreadable > 0)
        return quarantine(o, c, &res);
    c->live = res.moved_bytes;
    TRY(remove_log(o, c, "entry_log.compacted"));
    metric_add(&s->compacted_logs, 1);
    metric_add(&s->compacted_bytes, (int64_t)(size - res.moved_bytes));
    return ERR_OK;
}

static int by_share(const void *a, const void *b)
{
    const struct closed *x = a, *y = b;
    const double left = (double)x->live / (double)(x->size ? x->size : 1);
    const double right = (double)y->live / (double)(y->size ? y->size : 1);
    return (left > right) - (left < right);
}

static bool is_over(uint64_t until_us)
{
    return until_us > 0 && loop_clock() >= until_us;
}

/* Those with the least first: they give the most space for the least work.  One that fails is no
 * reason to leave the others. */
static enum err compact_all(struct round *o, double threshold, uint64_t until_us)
{
    qsort(o->at, o->n, sizeof o->at[0], by_share);
    for (size_t i = 0; i < o->n && !is_over(until_us); i++) {
        struct closed *c = &o->at[i];
        if (c->size == 0 || (double)c->live >= threshold * (double)c->size)
            continue;
        if (c->is_quarantined && !o->r->retries)
            continue;
        const enum err err = compact(o, c);
        if (err == ERR_CLOSED)
            return err;
        if (!err)
            continue;
        metric_add(&o->r->stats->failures, 1);
        log_event(LOG_WARN, "compaction.failed", F_STR("dir", o->r->dir), F_U64("log", c->log),
                  F_ERR(err));
    }
    return ERR_OK;
}

static void count(struct round *o)
{
    struct reclaim_stats *s = o->r->stats;
    metric_add(&s->ledgers, (int64_t)o->live.n);
    for (size_t i = 0; i < o->n; i++) {
        metric_add(&s->logs, o->at[i].size > 0);
        metric_add(&s->log_bytes, (int64_t)o->at[i].size);
        metric_add(&s->live_bytes, o->at[i].size ? (int64_t)o->at[i].live : 0);
        metric_add(&s->quarantined, o->at[i].is_quarantined);
    }
}

enum err reclaim_run(struct reclaim *r, double threshold, uint64_t until_us)
{
    struct round o = {.r = r};
    enum err err = look(&o);
    if (!err) {
        remove_dead(&o);
        if (threshold > 0)
            err = compact_all(&o, threshold, until_us);
        count(&o);
    }
    end(&o);
    make_reserve(r);
    return err;
}
