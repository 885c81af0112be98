#include "bookie/integrity.h"

#include <string.h>

#include "bookie/checkup.h"
#include "common/log.h"
#include "common/mem.h"
#include "metadata/paths.h"
#include "metadata/records.h"

enum {
    ROWS_A_ROUND = 256,
    WAIT_US = 200 * 1000, /* for those who are alive; for what was cleared to be durable */
    RETRY_MAX = 6         /* doublings of the wait after a pass that failed */
};

/* ---- which ledgers -------------------------------------------------------------------------- */

static bool names(const Bookkeeper__LedgerMetadataFormat__Segment *s, const char *bookie_id)
{
    for (size_t i = 0; i < s->n_ensemblemember; i++)
        if (strcmp(s->ensemblemember[i], bookie_id) == 0)
            return true;
    return false;
}

enum integrity_verdict integrity_judge(const Bookkeeper__LedgerMetadataFormat *ledger,
                                       const char *bookie_id)
{
    const bool is_open = ledger->state == BOOKKEEPER__LEDGER_METADATA_FORMAT__STATE__OPEN;
    const bool is_sealing = ledger->state == BOOKKEEPER__LEDGER_METADATA_FORMAT__STATE__IN_RECOVERY;
    enum integrity_verdict verdict = NOT_HERE;
    for (size_t i = 0; i < ledger->n_segment; i++) {
        const bool is_last = i + 1 == ledger->n_segment;
        if (names(ledger->segment[i], bookie_id) && verdict != FENCED_IN_LIMBO)
            verdict = is_last || !is_open ? FENCED_IN_LIMBO : IN_LIMBO;
    }
    if (verdict == NOT_HERE && is_sealing)
        verdict = IN_LIMBO;
    return verdict;
}

/* ---- before the port is opened -------------------------------------------------------------- */

struct scan {
    const struct integrity_conf *conf;
    int64_t newest;
    uint64_t ledgers, limbo, fenced;
};

static enum err claim(struct storage *s, int64_t id, const uint8_t *key, struct ledger **out)
{
    struct ledgers *t = &storage_shard(s, id)->ledgers;
    enum err err = ledgers_claim(t, id, key, out);
    if (err == ERR_BUSY) { /* rows must become durable before others have room */
        TRY(storage_flush(s));
        err = ledgers_claim(t, id, key, out);
    }
    if (err == ERR_UNAUTHORIZED)
        log_event(LOG_WARN, "integrity.key_differs", F_I64("ledger", id));
    return err == ERR_UNAUTHORIZED ? ERR_OK : err;
}

static enum err put_into_limbo(struct scan *scan, int64_t id,
                               const Bookkeeper__LedgerMetadataFormat *record, bool fence)
{
    struct storage *s = scan->conf->storage;
    const struct view password =
        view_of(record->password.data, record->has_password ? record->password.len : 0);
    uint8_t key[MASTER_KEY_SIZE];
    struct ledger *l;
    master_key_of(password, key);
    TRY(claim(s, id, key, &l));
    l->row.limbo = true;
    if (fence) {
        l->row.fenced = true;
        l->fence = LEDGER_FENCED;
    }
    ledger_changed(&storage_shard(s, id)->ledgers, l);
    scan->limbo++;
    scan->fenced += fence;
    return ERR_OK;
}

static enum err look_at(void *ctx, const struct meta_item *item)
{
    struct scan *s = ctx;
    Bookkeeper__LedgerMetadataFormat *record;
    int64_t id;
    if (path_ledger_id(item->key, &id))
        return ERR_OK;
    enum err err = ledger_record_read(slice_view(item->value), &record);
    if (err) { /* nobody can read it, so nobody asks us for its entries */
        log_event(LOG_ERROR, "integrity.ledger_unreadable", F_I64("ledger", id), F_ERR(err));
        return ERR_OK;
    }
    s->ledgers++;
    s->newest = id > s->newest ? id : s->newest;
    const enum integrity_verdict v = integrity_judge(record, s->conf->bookie_id);
    if (v != NOT_HERE)
        err = put_into_limbo(s, id, record, v == FENCED_IN_LIMBO);
    bookkeeper__ledger_metadata_format__free_unpacked(record, NULL);
    return err;
}

static enum err store(const struct integrity_conf *c, const struct integrity_state *state)
{
    for (unsigned i = 0; i < c->n; i++)
        TRY(integrity_store(c->disk, c->dirs[i], state));
    return ERR_OK;
}

static enum err scan_all(const struct integrity_conf *c, struct integrity_state *state)
{
    struct scan scan = {.conf = c, .newest = state->newest};
    TRY(meta_each_wait(c->meta, PATH_LEDGERS "/", look_at, &scan));
    TRY(storage_flush(c->storage));
    *state = (struct integrity_state){scan.limbo ? INTEGRITY_CHECK : INTEGRITY_WHOLE, scan.newest};
    TRY(store(c, state));
    log_event(scan.limbo ? LOG_WARN : LOG_INFO, "integrity.scanned", F_STR("bookie", c->bookie_id),
              F_U64("ledgers", scan.ledgers), F_U64("limbo", scan.limbo),
              F_U64("fenced", scan.fenced));
    return ERR_OK;
}

enum err integrity_find(const struct integrity_conf *c, struct integrity_state *out)
{
    *out = (struct integrity_state){INTEGRITY_WHOLE, -1};
    for (unsigned i = 0; i < c->n; i++) {
        struct integrity_state s;
        TRY(integrity_load(c->disk, c->dirs[i], &s));
        out->need = s.need > out->need ? s.need : out->need;
        out->newest = s.newest > out->newest ? s.newest : out->newest;
    }
    return ERR_OK;
}

enum err integrity_scan(const struct integrity_conf *conf, struct integrity_state *state)
{
    const enum err err = state->need == INTEGRITY_SCAN ? scan_all(conf, state) : ERR_OK;
    if (err)
        log_event(LOG_ERROR, "integrity.scan_failed", F_STR("bookie", conf->bookie_id), F_ERR(err));
    metric_set(&conf->metrics->integrity_need, state->need);
    return err;
}

/* ---- afterwards ----------------------------------------------------------------------------- */

struct integrity {
    struct integrity_conf conf;
    struct integrity_state state;
    struct loop *loop;
    struct checkup *checkup;
    unsigned device;          /* whose rows are looked at */
    int64_t after;            /* those up to it were, in this pass */
    int64_t ledger;           /* that is being checked */
    unsigned found, failures; /* in this pass */
    unsigned tries;           /* passes with failures, one after the other */
    bool is_out;              /* a task is posted */
    bool gone;
    struct task next, clear;
    struct timer timer;
};

static void rest(struct integrity *g, uint64_t us)
{
    loop_after(g->loop, &g->timer, us);
}

static void go_on(struct integrity *g)
{
    g->is_out = true;
    loop_post(g->loop, &g->next);
}

static bool came_back(struct integrity *g)
{
    g->is_out = false;
    if (!g->gone)
        return true;
    mem_free(g);
    return false;
}

/* ---- the next one in limbo, by what is durable ---- */

struct search {
    int64_t after;
    unsigned rows;
    bool found;
};

static enum err is_it(void *ctx, const struct ledger_row *row)
{
    struct search *s = ctx;
    s->after = row->id;
    s->found = row->limbo;
    return s->found || ++s->rows == ROWS_A_ROUND ? ERR_END : ERR_OK;
}

static void become_whole(struct integrity *g)
{
    g->state.need = INTEGRITY_WHOLE;
    if (store(&g->conf, &g->state)) { /* told by the disk; until it works it is looked at again */
        rest(g, (uint64_t)g->conf.settings->repair_retry_ms * 1000);
        return;
    }
    metric_set(&g->conf.metrics->integrity_need, INTEGRITY_WHOLE);
    log_event(LOG_INFO, "integrity.restored", F_STR("bookie", g->conf.bookie_id));
}

/* Those that were cleared are still found until a checkpoint has made it durable. */
static void end_pass(struct integrity *g)
{
    const uint64_t retry_us = (uint64_t)g->conf.settings->repair_retry_ms * 1000;
    if (g->found == 0) {
        become_whole(g);
        return;
    }
    const unsigned failures = g->failures;
    g->device = 0;
    g->after = -1;
    g->found = g->failures = 0;
    g->tries = failures == 0 ? 0 : g->tries < RETRY_MAX ? g->tries + 1 : RETRY_MAX;
    storage_kick(g->conf.storage);
    rest(g, failures ? retry_us << (g->tries - 1) : WAIT_US);
}

static void step(struct integrity *g)
{
    struct search s = {.after = g->after};
    if (!checkup_ready(g->checkup)) {
        rest(g, WAIT_US);
        return;
    }
    struct entry_index *index = g->conf.storage->devices[g->device].index;
    const enum err err = entry_index_rows(index, g->after, is_it, &s);
    if (err && err != ERR_END) {
        g->failures++;
        g->found++; /* what cannot be read is not known to be whole */
        end_pass(g);
        return;
    }
    g->after = s.after;
    if (!s.found && err == ERR_END) {
        go_on(g);
    } else if (!s.found && g->device + 1 < g->conf.storage->n_devices) {
        g->device++;
        g->after = -1;
        go_on(g);
    } else if (!s.found) {
        end_pass(g);
    } else {
        g->found++;
        g->ledger = s.after;
        checkup_begin(g->checkup, g->ledger);
    }
}

static void next(struct task *t)
{
    struct integrity *g = container_of(t, struct integrity, next);
    if (came_back(g))
        step(g);
}

static void rested(struct timer *t)
{
    step(container_of(t, struct integrity, timer));
}

/* ---- one is whole again ---- */

/* On the ledger's loop.  Not durable at once: after a crash it is checked again. */
static void clear(struct task *t)
{
    struct integrity *g = container_of(t, struct integrity, clear);
    struct ledgers *table = &storage_shard(g->conf.storage, g->ledger)->ledgers;
    struct ledger *l;
    if (ledgers_find(table, g->ledger, &l) == ERR_OK && l->row.limbo) {
        l->row.limbo = false;
        ledger_changed(table, l);
    }
    loop_post(g->loop, &g->next);
}

static void checked(void *ctx, enum err err, uint64_t copied)
{
    struct integrity *g = ctx;
    struct bookie_metrics *m = g->conf.metrics;
    if (err) {
        g->failures++;
        metric_add(&m->limbo_failures, 1);
        log_event(LOG_WARN, "integrity.check_failed", F_I64("ledger", g->ledger), F_ERR(err),
                  F_U64("tries", g->tries + 1));
        go_on(g);
        return;
    }
    metric_add(&m->limbo_checked, 1);
    log_event(LOG_INFO, "integrity.ledger_checked", F_I64("ledger", g->ledger),
              F_U64("entries", copied));
    g->is_out = true;
    loop_post(g->conf.loops->at[(uint64_t)g->ledger % g->conf.loops->n], &g->clear);
}

static void begin(void *ctx)
{
    struct integrity *g = ctx;
    const struct bookie_conf *s = g->conf.settings;
    const struct checkup_conf conf = {
        .loop = g->loop,
        .meta = g->conf.meta,
        .distinct_hosts = s->different_hosts,
        .window = (unsigned)s->repair_entries,
        .bytes_per_s = s->repair_rate < 1 ? 0 : (uint64_t)s->repair_rate,
        .done = checked,
        .ctx = g,
    };
    g->checkup = checkup_new(&conf);
    step(g);
}

struct integrity *integrity_open(const struct integrity_conf *conf,
                                 const struct integrity_state *state)
{
    if (state->need == INTEGRITY_WHOLE)
        return NULL;
    struct integrity *g = mem_new(struct integrity);
    g->conf = *conf;
    g->state = *state;
    g->loop = conf->loops->at[conf->loops->n - 1];
    g->after = -1;
    g->next.run = next;
    g->clear.run = clear;
    g->timer.run = rested;
    loop_call(g->loop, begin, g);
    return g;
}

static void stop(void *ctx)
{
    struct integrity *g = ctx;
    checkup_drop(&g->checkup);
    loop_cancel(g->loop, &g->timer);
    g->gone = true;
    if (!g->is_out)
        mem_free(g);
}

static void run_nothing(void *ctx)
{
    (void)ctx;
}

/* A task that is out has run when this returns: the storage may go. */
void integrity_close(struct integrity **integrity)
{
    struct integrity *g = *integrity;
    *integrity = NULL;
    if (!g)
        return;
    struct loops *loops = g->conf.loops;
    loop_call(g->loop, stop, g);
    for (unsigned i = 0; i < 2 * loops->n; i++)
        loop_call(loops->at[i % loops->n], run_nothing, NULL);
}
