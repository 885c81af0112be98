/* A round with the metadata: who is here, who is there, and what becomes of those who are not. */
#include <stdlib.h>
#include <string.h>

#include "bookie/gc_inside.h"
#include "bookie/gc_memory.h"
#include "common/log.h"
#include "common/mem.h"
#include "common/rng.h"

enum { TOMBS_MAX = 1000000, STORE_US = 60 * 1000 * 1000 };

/* Ledgers that went from a device. */
struct tombs {
    struct gc_ids ids;
    uint64_t *ages; /* ms since 1970 */
    size_t room;
};

struct round {
    struct gc *g;
    struct gc_ids here;  /* ledgers with a row */
    struct tombs *tombs; /* one a device */
};

/* ---- remembering ---------------------------------------------------------------------------- */

static enum err store_memory(struct gc *g)
{
    enum err err = ERR_OK;
    for (unsigned i = 0; i < g->n; i++) {
        const enum err one = gc_memory_store(g->conf.disk, g->devices[i].dir, &g->guard.memory);
        if (one)
            log_event(LOG_WARN, "gc.memory_unsaved", F_STR("dir", g->devices[i].dir), F_ERR(one));
        err = err ? err : one;
    }
    return err;
}

void gc_round_tell(struct gc *g)
{
    const enum gc_halt halt = g->guard.memory.halt;
    pthread_mutex_lock(&g->lock);
    g->state.halt = halt;
    g->state.vanished = g->guard.vanished;
    pthread_mutex_unlock(&g->lock);
    metric_set(&g->stats.halted, halt != GC_GOES);
    if (halt)
        log_event(LOG_ERROR, "gc.halted", F_STR("bookie", g->conf.bookie_id),
                  F_STR("reason", gc_halt_text(halt)), F_U64("vanished", g->guard.vanished),
                  F_STR("resume", "lgm bookie gc resume"));
}

static void halt(struct gc *g)
{
    gc_round_tell(g);
    if (store_memory(g))
        log_event(LOG_WARN, "gc.memory_unsaved", F_STR("reason", "it is halted until a restart"));
}

static enum err recall_tomb(void *ctx, uint64_t id, struct view value)
{
    struct gc *g = ctx;
    struct ledger_tomb tomb;
    if (ledger_tomb_read(value, &tomb))
        return ERR_OK;
    if (tomb.kind == TOMB_TRASHED)
        gc_guard_remember(&g->guard, (int64_t)id, GC_TRASHED, tomb.since_ms);
    else if (tomb.kind == TOMB_GOING)
        gc_guard_remember(&g->guard, (int64_t)id, GC_GOING, tomb.since_ms);
    return ERR_OK;
}

void gc_round_recall(struct gc *g)
{
    for (unsigned i = 0; i < g->n; i++) {
        gc_memory_load(g->conf.disk, g->devices[i].dir, &g->guard.memory);
        if (entry_index_notes(g->devices[i].index, INDEX_TOMB, recall_tomb, g))
            log_event(LOG_WARN, "gc.trash_unreadable", F_STR("dir", g->devices[i].dir));
    }
    gc_round_tell(g);
}

/* ---- is it the store that it was? ----------------------------------------------------------- */

/* A beacon that may have been put already is put again, so that there are never more than two. */
static void move_beacon(struct gc *g)
{
    struct gc_memory *m = &g->guard.memory;
    static const uint8_t none[GC_BEACON];
    if (memcmp(m->next, none, GC_BEACON) == 0)
        rng_bytes(m->next, GC_BEACON);
    if (store_memory(g)) /* one that is put and not known here would halt us */
        return;
    const enum err err = gc_store_put_beacon(&g->store, m->next);
    if (err) {
        log_event(LOG_WARN, "gc.beacon_unsure", F_ERR(err));
        return;
    }
    memcpy(m->beacon, m->next, GC_BEACON);
    memset(m->next, 0, GC_BEACON);
}

static enum err check_store(struct gc *g)
{
    struct gc_sight sight;
    TRY(gc_store_look(&g->store, &sight));
    if (gc_guard_saw(&g->guard, &sight) == GC_GOES)
        return ERR_OK;
    halt(g);
    return ERR_NOT_ALLOWED;
}

/* What it shows is written down once in a while; what was seen last is remembered until then. */
void gc_round_look(struct gc *g)
{
    const uint64_t before = g->guard.memory.revision;
    if (g->guard.memory.halt || check_store(g) || g->guard.memory.revision == before)
        return;
    if (loop_clock() < g->stored_at + STORE_US)
        return;
    g->stored_at = loop_clock();
    if (store_memory(g))
        log_event(LOG_WARN, "gc.memory_unsaved", F_STR("reason", "it is tried again"));
}

/* What an answer tells besides: it did not come from an older store. */
static enum err check_revision(struct gc *g, uint64_t revision)
{
    const struct gc_memory *m = &g->guard.memory;
    static const uint8_t none[GC_BEACON];
    const bool has_beacon = memcmp(m->beacon, none, GC_BEACON) != 0;
    const struct gc_sight sight = {
        .instance = m->instance, .revision = revision, .beacon = has_beacon ? m->beacon : NULL};
    if (gc_guard_saw(&g->guard, &sight) == GC_GOES)
        return ERR_OK;
    halt(g);
    return ERR_NOT_ALLOWED;
}

/* ---- who is here, and who is there ---------------------------------------------------------- */

static enum err take_ledger(void *ctx, int64_t ledger)
{
    gc_ids_add(ctx, ledger);
    return ERR_OK;
}

static enum err take_tomb(void *ctx, uint64_t id, struct view value)
{
    struct tombs *t = ctx;
    struct ledger_tomb tomb;
    if (ledger_tomb_read(value, &tomb) || tomb.kind < TOMB_DELETED)
        return ERR_OK;
    if (t->ids.n == t->room) {
        t->room = t->room ? t->room * 2 : 256;
        t->ages = mem_resize(t->ages, t->room * sizeof t->ages[0]);
    }
    t->ages[t->ids.n] = tomb.since_ms;
    gc_ids_add(&t->ids, (int64_t)id);
    return ERR_OK;
}

static void see(void *ctx, int64_t ledger)
{
    struct round *r = ctx;
    gc_ids_see(&r->here, ledger);
    for (unsigned i = 0; i < r->g->n; i++)
        gc_ids_see(&r->tombs[i].ids, ledger);
}

/* Those who are here are counted first: a ledger is in the metadata before anything of it is
 * here. */
static enum err list(struct round *r)
{
    struct gc *g = r->g;
    uint64_t revision = 0;
    for (unsigned i = 0; i < g->n; i++)
        TRY(entry_index_ledgers(g->devices[i].index, take_ledger, &r->here));
    gc_ids_sort(&r->here);
    TRY(gc_store_list(&g->store, see, r, &revision));
    return check_revision(g, revision);
}

/* ---- what went ------------------------------------------------------------------------------ */

static int by_age(const void *a, const void *b)
{
    const uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;
    return (x > y) - (x < y);
}

/* Tombs from before this go: of too many the oldest. */
static uint64_t oldest_kept(const uint64_t *ages, size_t n, uint64_t keep_ms)
{
    const uint64_t now = gc_now_ms();
    uint64_t limit = now > keep_ms ? now - keep_ms : 0;
    if (n <= TOMBS_MAX)
        return limit;
    uint64_t *sorted = mem_alloc(n * sizeof sorted[0]);
    memcpy(sorted, ages, n * sizeof sorted[0]);
    qsort(sorted, n, sizeof sorted[0], by_age);
    if (sorted[n - TOMBS_MAX] > limit)
        limit = sorted[n - TOMBS_MAX];
    mem_free(sorted);
    return limit;
}

/* One that is in the metadata after all may be brought here again. */
static size_t look_after(struct gc_device *d, const struct tombs *t, uint64_t keep_ms)
{
    const uint64_t limit = oldest_kept(t->ages, t->ids.n, keep_ms);
    size_t left = t->ids.n;
    for (size_t i = 0; i < t->ids.n; i++)
        if (t->ids.seen[i] || t->ages[i] < limit)
            left -= !entry_index_unnote(d->index, INDEX_TOMB, (uint64_t)t->ids.at[i]);
    return left;
}

static void look_after_tombs(struct round *r)
{
    struct gc *g = r->g;
    size_t left = 0;
    for (unsigned i = 0; i < g->n; i++)
        left += look_after(&g->devices[i], &r->tombs[i], (uint64_t)g->conf.conf->gc_tomb_s * 1000);
    metric_set(&g->stats.tombs, (int64_t)left);
}

/* ---- what is not there ---------------------------------------------------------------------- */

static void back(void *ctx, int64_t ledger)
{
    struct gc *g = ctx;
    const enum err err =
        entry_index_unnote(gc_device_of(g, ledger)->index, INDEX_TOMB, (uint64_t)ledger);
    log_event(LOG_WARN, "ledger.restored", F_I64("ledger", ledger), F_ERR(err));
}

static void found(struct gc *g, const struct gc_absent *a)
{
    const int64_t ledger = a->ledger;
    if (a->how == GC_TRASHED)
        back(g, ledger);
    gc_guard_found(&g->guard, ledger);
}

static enum err is_absent(struct gc *g, int64_t ledger, bool *out)
{
    Bookkeeper__LedgerMetadataFormat *record = NULL;
    uint64_t revision;
    const enum err err = gc_store_read(&g->store, ledger, &revision, &record);
    *out = err == ERR_NOT_FOUND;
    if (record)
        bookkeeper__ledger_metadata_format__free_unpacked(record, NULL);
    if (err && err != ERR_NOT_FOUND && err != ERR_MALFORMED)
        return err;
    return *out ? check_revision(g, revision) : ERR_OK;
}

static enum err bury(struct gc *g, int64_t ledger, enum tomb_kind kind)
{
    const struct ledger_tomb tomb = {.kind = kind, .fenced = true, .since_ms = gc_now_ms()};
    return ledger_tomb_put(gc_device_of(g, ledger)->index, ledger, &tomb);
}

static enum err go(struct gc *g, int64_t ledger)
{
    TRY(gc_purge_begin(g, ledger));
    TRY(gc_purge_end(g, ledger, TOMB_GOING));
    gc_guard_gone(&g->guard, ledger);
    metric_add(&g->stats.deleted_ledgers, 1);
    log_event(LOG_INFO, "ledger.deleted", F_I64("ledger", ledger));
    return ERR_OK;
}

/* The index has it before it counts: what is not written there is asked again. */
static enum err judge(struct gc *g, const struct gc_absent *a)
{
    const int64_t ledger = a->ledger;
    bool absent;
    if (a->how == GC_GOING)
        return go(g, ledger);
    TRY(is_absent(g, ledger, &absent));
    if (!absent) {
        found(g, a);
        return ERR_OK;
    }
    if (a->how == GC_TRASHED) {
        TRY(bury(g, ledger, TOMB_GOING));
    } else {
        TRY(bury(g, ledger, TOMB_TRASHED));
        log_event(LOG_INFO, "ledger.trashed", F_I64("ledger", ledger));
    }
    if (gc_guard_asked(&g->guard, ledger, gc_now_ms()) == GC_GOING)
        return go(g, ledger);
    return ERR_OK;
}

static void judge_all(struct gc *g)
{
    const struct gc_absent *a;
    for (int64_t after = -1;
         !gc_stops(g) && (a = gc_guard_next(&g->guard, after, gc_now_ms())) != NULL;) {
        const int64_t ledger = a->ledger;
        const enum err err = judge(g, a);
        if (err && err != ERR_BUSY)
            log_event(LOG_WARN, "gc.ledger_unknown", F_I64("ledger", ledger), F_ERR(err));
        if (err == ERR_NOT_READY)
            return;
        after = ledger;
    }
}

/* ---- a round -------------------------------------------------------------------------------- */

static enum err listed(struct round *r)
{
    struct gc *g = r->g;
    if (gc_guard_listed(&g->guard, &r->here, back, g) != GC_GOES) {
        halt(g);
        return ERR_NOT_ALLOWED;
    }
    judge_all(g);
    if (g->guard.delay_ms == 0) /* what has just come into the trash */
        judge_all(g);
    look_after_tombs(r);
    if (loop_clock() >= g->moved_at && !g->guard.memory.halt) {
        gc_moved_run(g, &r->here);
        g->moved_at = loop_clock() + (uint64_t)g->conf.conf->gc_moved_wait_ms * 1000;
    }
    return ERR_OK;
}

static enum err run(struct round *r)
{
    struct gc *g = r->g;
    for (unsigned i = 0; i < g->n; i++)
        TRY(entry_index_notes(g->devices[i].index, INDEX_TOMB, take_tomb, &r->tombs[i]));
    TRY(check_store(g));
    move_beacon(g);
    TRY(list(r));
    TRY(listed(r));
    return store_memory(g);
}

static void end(struct round *r)
{
    for (unsigned i = 0; i < r->g->n; i++) {
        gc_ids_end(&r->tombs[i].ids);
        mem_free(r->tombs[i].ages);
    }
    mem_free(r->tombs);
    gc_ids_end(&r->here);
}

void gc_round_run(struct gc *g)
{
    struct round r = {.g = g};
    if (g->guard.memory.halt) {
        gc_round_tell(g);
        return;
    }
    r.tombs = mem_alloc(g->n * sizeof r.tombs[0]);
    const enum err err = run(&r);
    metric_add(err ? &g->stats.failed_listings : &g->stats.listings, 1);
    if (err && err != ERR_NOT_ALLOWED && err != ERR_CLOSED)
        log_event(LOG_WARN, "gc.unlisted", F_ERR(err));
    metric_set(&g->stats.trashed, (int64_t)gc_guard_trashed(&g->guard));
    end(&r);
}
