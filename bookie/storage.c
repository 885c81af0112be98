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
    if (err == ERR_BUSY) { /* memory is full: it goes to the entry logs, the marks stay */
        for (unsigned i = 0; i < s->n_devices; i++)
            TRY(checkpoint_run(s->devices[i].checkpoint, false));
        err = replay_once(s, kind, payload);
    }
    if (err == ERR_FENCED) /* of a ledger that was deleted since */
        err = ERR_OK;
    if (err)
        log_event(LOG_ERROR, "journal.unreplayable", F_I64("kind", kind), F_ERR(err));
    s->replayed++;
    return err;
}

/* ---- opening and closing -------------------------------------------------------------------- */

static enum err open_devices(struct storage *s)
{
    const struct storage_conf *c = &s->conf;
    for (unsigned i = 0; i < c->n_devices; i++) {
        const struct device_conf conf = {
            .disk = c->disk,
            .dir = c->dirs[i],
            .index_dir = c->index_dirs[i],
            .log_limit = c->log_limit,
            .journals = c->journal_dirs,
            .n_journals = c->n_journals,
        };
        struct device *d = &s->devices[s->n_devices++];
        TRY(device_open(d, i, &conf));
        d->checkpoint = checkpoint_open(s, d);
    }
    return ERR_OK;
}

/* What is before it all devices have already. */
static struct journal_mark least_mark(const struct storage *s, unsigned j)
{
    const struct journal_mark *least = NULL;
    for (unsigned i = 0; i < s->n_devices; i++) {
        const struct device *d = &s->devices[i];
        if (!d->is_new && (!least || mark_is_before(&d->marks.of[j], least)))
            least = &d->marks.of[j];
    }
    return least ? *least : JOURNAL_BEGIN;
}

/* Some device has what is before it, so it was synced. */
static uint64_t synced_of(const struct storage *s, unsigned j)
{
    uint64_t most = 0;
    for (unsigned i = 0; i < s->n_devices; i++) {
        const uint64_t sequence = s->devices[i].marks.of[j].sequence;
        most = sequence > most ? sequence : most;
    }
    return most;
}

/* Before anything can come to lie there: it needs what is replayed from now on, as the others. */
static enum err welcome_new(struct storage *s)
{
    struct marks marks = {.is_there = true};
    for (unsigned j = 0; j < s->conf.n_journals; j++)
        marks.of[j] = least_mark(s, j);
    for (unsigned i = 0; i < s->n_devices; i++) {
        struct device *d = &s->devices[i];
        if (!d->is_new)
            continue;
        TRY(device_store_marks(d, &marks));
        d->marks = marks;
        d->is_new = false;
    }
    return ERR_OK;
}

static enum err open_journals(struct storage *s)
{
    const struct storage_conf *c = &s->conf;
    struct journal_conf conf = c->journal;
    conf.queue_bytes /= c->n_journals;
    for (unsigned j = 0; j < c->n_journals; j++) {
        conf.dir = c->journal_dirs[j];
        conf.synced = synced_of(s, j);
        TRY(journal_open(&s->journals[j], &conf, c->disk, least_mark(s, j)));
        s->n_journals++;
    }
    return ERR_OK;
}

static void open_shards(struct storage *s)
{
    for (unsigned i = 0; i < s->loops->n; i++) {
        struct storage_shard *sh = &s->shards[i];
        ledgers_init(&sh->ledgers, s->devices, s->n_devices);
        read_cache_init(&sh->read, s->conf.read_cache_bytes / s->loops->n);
        sh->caches = mem_alloc(s->n_devices * sizeof sh->caches[0]);
        for (unsigned d = 0; d < s->n_devices; d++)
            write_cache_init(&sh->caches[d]);
    }
}

static enum err replay_journal(struct storage *s, unsigned j)
{
    const uint64_t began = loop_clock(), before = s->replayed;
    TRY(journal_replay(s->journals[j], replay_record, s));
    log_event(LOG_INFO, "journal.replayed", F_STR("dir", s->conf.journal_dirs[j]),
              F_U64("records", s->replayed - before), F_U64("ms", (loop_clock() - began) / 1000));
    return ERR_OK;
}

/* All are read before one is written to: what is damaged stays as it was found. */
static enum err replay(struct storage *s)
{
    for (unsigned j = 0; j < s->n_journals; j++)
        TRY(replay_journal(s, j));
    for (unsigned j = 0; j < s->n_journals; j++)
        TRY(journal_start(s->journals[j]));
    return storage_flush(s);
}

enum err storage_open(struct storage **out, const struct storage_conf *conf)
{
    struct storage *s = mem_new(struct storage);
    s->conf = *conf;
    s->loops = conf->journal.loops;
    s->device_bytes = conf->half_bytes / conf->n_devices;
    pthread_mutex_init(&s->marks_lock, NULL);
    *out = s;
    enum err err = open_devices(s);
    if (!err)
        err = welcome_new(s);
    if (!err)
        err = open_journals(s);
    open_shards(s);
    if (!err)
        err = replay(s);
    if (err)
        storage_close(out);
    return err;
}

enum err storage_serve(struct storage *s)
{
    s->is_serving = true;
    for (unsigned i = 0; i < s->n_devices; i++)
        TRY(checkpoint_start(s->devices[i].checkpoint));
    return ERR_OK;
}

static void close_journals(struct storage *s)
{
    for (unsigned j = 0; j < s->n_journals; j++)
        journal_close(&s->journals[j]);
}

void storage_stop(struct storage *s)
{
    for (unsigned i = 0; i < s->n_devices; i++)
        checkpoint_stop(s->devices[i].checkpoint);
    close_journals(s);
}

static void close_shards(struct storage *s)
{
    for (unsigned i = 0; i < s->loops->n; i++) {
        struct storage_shard *sh = &s->shards[i];
        ledgers_end(&sh->ledgers);
        read_cache_end(&sh->read);
        for (unsigned d = 0; d < s->n_devices; d++)
            write_cache_end(&sh->caches[d]);
        mem_free(sh->caches);
    }
}

void storage_close(struct storage **storage)
{
    struct storage *s = *storage;
    *storage = NULL;
    if (!s)
        return;
    close_journals(s);
    for (unsigned i = 0; i < s->n_devices; i++)
        checkpoint_close(&s->devices[i].checkpoint);
    close_shards(s);
    for (unsigned i = 0; i < s->n_devices; i++)
        device_close(&s->devices[i]);
    pthread_mutex_destroy(&s->marks_lock);
    mem_free(s);
}

/* The others too when one fails. */
enum err storage_flush(struct storage *s)
{
    enum err first = ERR_OK;
    for (unsigned i = 0; i < s->n_devices; i++) {
        const enum err err = checkpoint_run(s->devices[i].checkpoint, true);
        first = first ? first : err;
    }
    return first;
}

void storage_kick(struct storage *s)
{
    for (unsigned i = 0; i < s->n_devices; i++)
        checkpoint_kick(s->devices[i].checkpoint);
}

void storage_marks_moved(struct storage *s, struct device *d, const struct marks *stored)
{
    pthread_mutex_lock(&s->marks_lock);
    d->marks = *stored;
    for (unsigned j = 0; j < s->n_journals; j++)
        journal_trim(s->journals[j], least_mark(s, j));
    pthread_mutex_unlock(&s->marks_lock);
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
    struct device *d = l->device;
    const size_t cost = write_cache_cost(bytes.len);
    const size_t before = atomic_load(&d->active_bytes);
    if (before > 0 && before + cost > s->device_bytes) {
        slice_drop(&bytes);
        if (s->is_serving)
            checkpoint_kick(d->checkpoint);
        return ERR_BUSY;
    }
    write_cache_put(&sh->caches[d->number], l->row.id, entry, bytes);
    atomic_fetch_add(&d->active_bytes, cost);
    if (before < s->device_bytes / 2 && before + cost >= s->device_bytes / 2 && s->is_serving)
        checkpoint_kick(d->checkpoint);
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

const struct slice *storage_look(struct storage *s, const struct ledger *l, int64_t entry)
{
    struct storage_shard *sh = storage_shard(s, l->row.id);
    const struct slice *found = write_cache_find(&sh->caches[l->device->number], l->row.id, entry);
    return found ? found : read_cache_find(&sh->read, l->row.id, entry);
}

void storage_forget_read(struct storage *s, int64_t ledger, int64_t entry)
{
    read_cache_forget(&storage_shard(s, ledger)->read, ledger, entry);
}
