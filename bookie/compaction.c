#include "bookie/compaction.h"

#include "bookie/log_writer.h"
#include "common/log.h"
#include "common/mem.h"

enum { MOVES = 4096, BATCH_BYTES = 8 * 1024 * 1024, AHEAD = 1024 * 1024 };

struct move {
    int64_t ledger, entry;
    struct entry_place from, to;
};

struct job {
    const struct compaction *conf;
    struct log_writer *to;
    uint64_t log;
    int64_t ledger;
    struct slab *window; /* what was read last, from `at` on */
    uint64_t window_at;
    size_t window_len;
    struct move *moves; /* appended, and not in the index yet */
    unsigned n;
    uint64_t bytes;
    struct compaction_result *result;
};

/* ---- into the index ------------------------------------------------------------------------- */

static enum err move_all(struct job *j)
{
    struct entry_index *ix = j->conf->index;
    for (unsigned i = 0; i < j->n; i++) {
        const struct move *m = &j->moves[i];
        bool moved;
        TRY(entry_index_move(ix, m->ledger, m->entry, &m->from, &m->to, &moved));
        if (!moved) { /* it was added again meanwhile: that one counts */
            log_writer_unused(j->to, m->ledger, &m->to);
            continue;
        }
        j->result->moved++;
        j->result->moved_bytes += m->to.length;
    }
    return ERR_OK;
}

/* Durable in the new place, then named there. */
static enum err flush(struct job *j)
{
    if (j->n == 0)
        return ERR_OK;
    TRY(log_writer_sync(j->to));
    enum err err = move_all(j);
    if (err)
        entry_index_discard(j->conf->index);
    else
        err = entry_index_commit(j->conf->index);
    j->n = 0;
    j->bytes = 0;
    if (!err)
        log_writer_settle(j->to);
    return err;
}

/* ---- reading and appending ------------------------------------------------------------------ */

static enum err read_window(struct job *j, const struct entry_place *p, size_t ahead)
{
    slab_drop(&j->window);
    TRY(j->conf->pace(j->conf->ctx, 0));
    TRY(entry_log_read(j->conf->log, p, ahead, &j->window, &j->window_len));
    j->window_at = p->offset;
    return ERR_OK;
}

/* A place that cannot be read spoils the window, not the records beside it. */
static enum err read_record(struct job *j, const struct entry_place *p, struct view *out)
{
    const uint64_t end = p->offset + ENTRY_LOG_RECORD + p->length;
    if (!j->window || p->offset < j->window_at || end > j->window_at + j->window_len) {
        enum err err = read_window(j, p, AHEAD);
        if (err == ERR_IO)
            err = read_window(j, p, 0);
        TRY(err);
    }
    const size_t skip = p->offset - j->window_at;
    *out = view_of(slab_bytes(j->window) + skip, j->window_len - skip);
    return ERR_OK;
}

static bool is_damage(enum err err)
{
    return err == ERR_CHECKSUM || err == ERR_IO;
}

static enum err leave(struct job *j, int64_t entry, const struct entry_place *p, enum err why)
{
    j->result->unreadable_bytes += ENTRY_LOG_RECORD + (uint64_t)p->length;
    if (j->result->unreadable++ > 0) /* one line a log */
        return ERR_OK;
    log_event(LOG_ERROR, "entry_log.corrupted", F_U64("log", p->log), F_U64("offset", p->offset),
              F_I64("ledger", j->ledger), F_I64("entry", entry), F_ERR(why));
    return ERR_OK;
}

/* A log is sealed with what the index names in it, so nothing may be on its way there then. */
static enum err append(struct job *j, int64_t entry, const struct entry_place *p, struct view bytes)
{
    struct move *m = &j->moves[j->n];
    if (log_writer_is_full(j->to, bytes.len)) {
        TRY(flush(j));
        TRY(log_writer_close(j->to));
        log_writer_settle(j->to);
        m = &j->moves[0];
    }
    *m = (struct move){.ledger = j->ledger, .entry = entry, .from = *p};
    TRY(log_writer_append(j->to, bytes, &m->to));
    j->n++;
    j->bytes += bytes.len;
    TRY(j->conf->pace(j->conf->ctx, bytes.len));
    return j->n == MOVES || j->bytes >= BATCH_BYTES ? flush(j) : ERR_OK;
}

static enum err take_entry(struct job *j, int64_t entry, const struct entry_place *p)
{
    struct view record, bytes;
    enum err err = read_record(j, p, &record);
    if (!err)
        err = entry_log_check(record, p->length, j->ledger, entry, &bytes);
    if (is_damage(err))
        return leave(j, entry, p, err);
    TRY(err);
    return append(j, entry, p, bytes);
}

static enum err take_block(void *ctx, uint64_t number, const struct index_block *b)
{
    struct job *j = ctx;
    for (unsigned i = 0; i < INDEX_BLOCK; i++)
        if (index_block_has(b, i) && b->at[i].log == j->log)
            TRY(take_entry(j, (int64_t)(number * INDEX_BLOCK + i), &b->at[i]));
    return ERR_OK;
}

static enum err take_ledger(struct job *j)
{
    const uint64_t before = j->result->unreadable;
    TRY(entry_index_blocks(j->conf->index, j->ledger, take_block, j));
    if (j->result->unreadable > before && j->conf->damaged)
        j->conf->damaged(j->conf->ctx, j->ledger);
    return ERR_OK;
}

static enum err take_all(struct job *j, const struct log_usage *usage, const struct gc_ids *live)
{
    for (size_t i = 0; i < usage->n; i++) {
        j->ledger = usage->at[i].ledger;
        if (gc_ids_has(live, j->ledger))
            TRY(take_ledger(j));
    }
    return flush(j);
}

enum err compaction_run(const struct compaction *c, uint64_t log, const struct log_usage *usage,
                        const struct gc_ids *live, struct compaction_result *out)
{
    struct job j = {.conf = c, .to = entry_log_compactor(c->log), .log = log, .result = out};
    *out = (struct compaction_result){0};
    j.moves = mem_alloc(MOVES * sizeof j.moves[0]);
    const enum err err = take_all(&j, usage, live);
    if (err) { /* what was appended since the last flush is named by nobody */
        log_writer_abandon(j.to);
        if (!entry_index_is_doubtful(c->index)) /* or by a batch that a start finds again */
            log_writer_settle(j.to);
    }
    slab_drop(&j.window);
    mem_free(j.moves);
    return err;
}
