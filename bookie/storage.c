#include "bookie/storage.h"

#include <string.h>

#include "bookie/bytes.h"
#include "common/log.h"
#include "common/mem.h"

/* ---- replay --------------------------------------------------------------------------------- */

static enum err ledger_of_record(struct storage *s, int64_t id, const uint8_t *key,
                                 struct ledger **out)
{
    const enum err err = ledgers_claim(&storage_shard(s, id)->ledgers, id, key, out);
    if (err == ERR_UNAUTHORIZED)
        log_event(LOG_ERROR, "journal.contradicted", F_I64("ledger", id),
                  F_STR("reason", "its master key in the index is another one"));
    return err == ERR_UNAUTHORIZED ? ERR_CHECKSUM : err;
}

static enum err replay_add(struct storage *s, struct view payload)
{
    struct entry_header h;
    struct ledger *l;
    const struct view entry =
        view_of(payload.base + MASTER_KEY_SIZE, payload.len - MASTER_KEY_SIZE);
    if (entry.len < 24)
        return ERR_CHECKSUM;
    h.ledger = (int64_t)get_u64(entry.base);
    h.entry = (int64_t)get_u64(entry.base + 8);
    h.lac = (int64_t)get_u64(entry.base + 16);
    TRY(ledger_of_record(s, h.ledger, payload.base, &l));
    return storage_put(s, l, h.entry, h.lac, slice_copy(entry.base, entry.len));
}

static enum err replay_fence(struct storage *s, struct view payload)
{
    struct ledger *l;
    if (payload.len != FENCE_RECORD)
        return ERR_CHECKSUM;
    const int64_t id = (int64_t)get_u64(payload.base + MASTER_KEY_SIZE);
    TRY(ledger_of_record(s, id, payload.base, &l));
    l->row.fenced = true;
    l->fence = LEDGER_FENCED;
    ledger_changed(&storage_shard(s, id)->ledgers, l);
    return ERR_OK;
}

static enum err replay_lac(struct storage *s, struct view payload)
{
    struct ledger *l;
    const struct view body = view_of(payload.base + MASTER_KEY_SIZE, payload.len - MASTER_KEY_SIZE);
    if (body.len < 16 || body.len > EXPLICIT_LAC_MAX)
        return ERR_CHECKSUM;
    TRY(ledger_of_record(s, (int64_t)get_u64(body.base), payload.base, &l));
    storage_put_lac(s, l, body);
    return ERR_OK;
}

static enum err replay_once(struct storage *s, uint8_t kind, struct view payload)
{
    if (kind == RECORD_ADD && payload.len >= MASTER_KEY_SIZE)
        return replay_add(s, payload);
    if (kind == RECORD_FENCE)
        return replay_fence(s, payload);
    if (kind == RECORD_LAC && payload.len >= MASTER_KEY_SIZE)
        return replay_lac(s, payload);
    return ERR_CHECKSUM;
}

static enum err replay_record(void *ctx, uint8_t kind, struct view payload)
{
    struct storage *s = ctx;
    enum err err = replay_once(s, kind, payload);
    if (err == ERR_BUSY) { /* memory is full: it goes to the entry log, the mark stays */
        TRY(checkpoint_run(s->checkpoint, false));
        err = replay_once(s, kind, payload);
    }
    if (err)
        log_event(LOG_ERROR, "journal.unreplayable", F_I64("kind", kind), F_ERR(err));
    s->replayed++;
    return err;
}

/* ---- opening and closing -------------------------------------------------------------------- */

static enum err open_parts(struct storage *s)
{
    const struct storage_conf *c = &s->conf;
    TRY(c->disk->ops->mkdir(c->disk, c->dir));
    TRY(disk_real()->ops->mkdir(disk_real(), c->index_dir));
    TRY(entry_index_open(&s->index, c->index_dir));
    TRY(entry_log_open(&s->log, c->disk, c->dir, c->log_limit));
    TRY(checkpoint_open(&s->checkpoint, s));
    return journal_open(&s->journal, &c->journal, c->disk, checkpoint_mark(s->checkpoint));
}

static enum err replay(struct storage *s)
{
    const uint64_t began = loop_clock();
    TRY(journal_replay(s->journal, replay_record, s));
    TRY(journal_start(s->journal));
    TRY(checkpoint_run(s->checkpoint, true));
    log_event(LOG_INFO, "journal.replayed", F_STR("dir", s->conf.journal.dir),
              F_U64("records", s->replayed), F_U64("ms", (loop_clock() - began) / 1000));
    return ERR_OK;
}

enum err storage_open(struct storage **out, const struct storage_conf *conf)
{
    struct storage *s = mem_new(struct storage);
    s->conf = *conf;
    s->loops = conf->journal.loops;
    *out = s;
    enum err err = open_parts(s);
    for (unsigned i = 0; i < s->loops->n; i++) {
        ledgers_init(&s->shards[i].ledgers, s->index);
        write_cache_init(&s->shards[i].cache);
        read_cache_init(&s->shards[i].read, conf->read_cache_bytes / s->loops->n);
    }
    if (!err)
        err = replay(s);
    if (err)
        storage_close(out);
    return err;
}

enum err storage_serve(struct storage *s)
{
    s->is_serving = true;
    return checkpoint_start(s->checkpoint);
}

void storage_stop(struct storage *s)
{
    checkpoint_stop(s->checkpoint);
    journal_close(&s->journal);
}

void storage_close(struct storage **storage)
{
    struct storage *s = *storage;
    *storage = NULL;
    if (!s)
        return;
    if (s->journal)
        journal_close(&s->journal);
    checkpoint_close(&s->checkpoint);
    for (unsigned i = 0; i < s->loops->n; i++) {
        ledgers_end(&s->shards[i].ledgers);
        write_cache_end(&s->shards[i].cache);
        read_cache_end(&s->shards[i].read);
    }
    entry_log_close(&s->log);
    entry_index_close(&s->index);
    mem_free(s);
}

/* ---- shards --------------------------------------------------------------------------------- */

struct shard_call {
    void (*fn)(void *ctx, unsigned shard);
    void *ctx;
    unsigned shard;
};

static void call_shard(void *ctx)
{
    struct shard_call *c = ctx;
    c->fn(c->ctx, c->shard);
}

void storage_each_shard(struct storage *s, void (*fn)(void *ctx, unsigned shard), void *ctx)
{
    for (unsigned i = 0; i < s->loops->n; i++) {
        struct shard_call c = {fn, ctx, i};
        if (s->is_serving)
            loop_call(s->loops->at[i], call_shard, &c);
        else
            call_shard(&c);
    }
}

enum err storage_put(struct storage *s, struct ledger *l, int64_t entry, int64_t lac,
                     struct slice bytes)
{
    struct storage_shard *sh = storage_shard(s, l->row.id);
    const size_t cost = write_cache_cost(bytes.len);
    const size_t before = atomic_load(&s->active_bytes);
    if (before > 0 && before + cost > s->conf.half_bytes) {
        slice_drop(&bytes);
        if (s->is_serving)
            checkpoint_kick(s->checkpoint);
        return ERR_BUSY;
    }
    write_cache_put(&sh->cache, l->row.id, entry, bytes);
    atomic_fetch_add(&s->active_bytes, cost);
    if (before < s->conf.half_bytes / 2 && before + cost >= s->conf.half_bytes / 2 && s->is_serving)
        checkpoint_kick(s->checkpoint);
    if (entry > l->row.last)
        l->row.last = entry;
    if (lac > l->row.lac)
        l->row.lac = lac;
    ledger_changed(&sh->ledgers, l);
    return ERR_OK;
}

void storage_put_lac(struct storage *s, struct ledger *l, struct view body)
{
    const int64_t lac = (int64_t)get_u64(body.base + 8);
    if (l->row.explicit_len > 0 && lac < (int64_t)get_u64(l->row.explicit_lac + 8))
        return;
    memcpy(l->row.explicit_lac, body.base, body.len);
    l->row.explicit_len = (uint8_t)body.len;
    if (lac > l->row.lac)
        l->row.lac = lac;
    ledger_changed(&storage_shard(s, l->row.id)->ledgers, l);
}

const struct slice *storage_look(struct storage *s, int64_t ledger, int64_t entry)
{
    struct storage_shard *sh = storage_shard(s, ledger);
    const struct slice *found = write_cache_find(&sh->cache, ledger, entry);
    return found ? found : read_cache_find(&sh->read, ledger, entry);
}

void storage_forget_read(struct storage *s, int64_t ledger, int64_t entry)
{
    read_cache_forget(&storage_shard(s, ledger)->read, ledger, entry);
}
