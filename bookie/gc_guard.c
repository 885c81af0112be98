#include "bookie/gc_guard.h"

#include <stdlib.h>
#include <string.h>

#include "common/mem.h"

const char *gc_halt_text(enum gc_halt h)
{
    static const char *const texts[GC_HALTS] = {
        [GC_GOES] = "",
        [GC_OTHER_STORE] = "the metadata store is another one than before",
        [GC_OLDER_STORE] = "the metadata store has gone back to an older revision",
        [GC_BEACON_LOST] = ("the metadata store lacks what this bookie has written there: it was "
                            "emptied or restored from an older copy"),
        [GC_TOO_MANY] = "too many ledgers have vanished from the metadata at once",
        [GC_MEMORY_LOST] = "what was remembered of the metadata store cannot be read",
    };
    return texts[h];
}

/* ---- ids ------------------------------------------------------------------------------------ */

void gc_ids_add(struct gc_ids *ids, int64_t ledger)
{
    if (ids->n == ids->room) {
        ids->room = ids->room ? ids->room * 2 : 256;
        ids->at = mem_resize(ids->at, ids->room * sizeof ids->at[0]);
        ids->seen = mem_resize(ids->seen, ids->room * sizeof ids->seen[0]);
    }
    ids->at[ids->n] = ledger;
    ids->seen[ids->n++] = false;
}

static int by_ledger(const void *a, const void *b)
{
    const int64_t x = *(const int64_t *)a, y = *(const int64_t *)b;
    return (x > y) - (x < y);
}

void gc_ids_sort(struct gc_ids *ids)
{
    if (ids->n > 0)
        qsort(ids->at, ids->n, sizeof ids->at[0], by_ledger);
}

/* Where it is, or would be. */
static size_t find_id(const struct gc_ids *ids, int64_t ledger)
{
    size_t from = 0, to = ids->n;
    while (from < to) {
        const size_t mid = from + (to - from) / 2;
        if (ids->at[mid] < ledger)
            from = mid + 1;
        else
            to = mid;
    }
    return from;
}

bool gc_ids_has(const struct gc_ids *ids, int64_t ledger)
{
    const size_t i = find_id(ids, ledger);
    return i < ids->n && ids->at[i] == ledger;
}

void gc_ids_see(struct gc_ids *ids, int64_t ledger)
{
    const size_t i = find_id(ids, ledger);
    if (i < ids->n && ids->at[i] == ledger)
        ids->seen[i] = true;
}

void gc_ids_end(struct gc_ids *ids)
{
    mem_free(ids->at);
    mem_free(ids->seen);
    *ids = (struct gc_ids){0};
}

/* ---- the store ------------------------------------------------------------------------------ */

static bool is_none(const uint8_t beacon[GC_BEACON])
{
    static const uint8_t none[GC_BEACON];
    return memcmp(beacon, none, GC_BEACON) == 0;
}

static bool is_mine(const struct gc_memory *m, const uint8_t *beacon)
{
    if (!beacon)
        return is_none(m->beacon);
    return memcmp(beacon, m->beacon, GC_BEACON) == 0 ||
           (!is_none(m->next) && memcmp(beacon, m->next, GC_BEACON) == 0);
}

static enum gc_halt judge(const struct gc_memory *m, const struct gc_sight *s)
{
    if (strncmp(m->instance, s->instance, GC_INSTANCE_MAX) != 0)
        return GC_OTHER_STORE;
    if (m->store && s->store && m->store != s->store)
        return GC_OTHER_STORE;
    if (s->revision < m->revision)
        return GC_OLDER_STORE;
    return is_mine(m, s->beacon) ? GC_GOES : GC_BEACON_LOST;
}

static void adopt(struct gc_memory *m, const struct gc_sight *s)
{
    *m = (struct gc_memory){.is_known = true};
    memcpy(m->instance, s->instance, strnlen(s->instance, GC_INSTANCE_MAX));
    if (s->beacon)
        memcpy(m->beacon, s->beacon, GC_BEACON);
}

enum gc_halt gc_guard_saw(struct gc_guard *g, const struct gc_sight *s)
{
    struct gc_memory *m = &g->memory;
    if (m->halt)
        return m->halt;
    if (!m->is_known)
        adopt(m, s);
    m->halt = judge(m, s);
    if (m->halt)
        return m->halt;
    m->revision = s->revision;
    if (s->store)
        m->store = s->store;
    return GC_GOES;
}

/* ---- absences ------------------------------------------------------------------------------- */

void gc_guard_end(struct gc_guard *g)
{
    mem_free(g->at);
    g->at = NULL;
    g->n = g->room = 0;
}

static size_t find(const struct gc_guard *g, int64_t ledger)
{
    size_t from = 0, to = g->n;
    while (from < to) {
        const size_t mid = from + (to - from) / 2;
        if (g->at[mid].ledger < ledger)
            from = mid + 1;
        else
            to = mid;
    }
    return from;
}

static struct gc_absent *absent_of(const struct gc_guard *g, int64_t ledger)
{
    const size_t i = find(g, ledger);
    return i < g->n && g->at[i].ledger == ledger ? &g->at[i] : NULL;
}

void gc_guard_remember(struct gc_guard *g, int64_t ledger, enum gc_absence how, uint64_t since_ms)
{
    const size_t i = find(g, ledger);
    if (g->n == g->room) {
        g->room = g->room ? g->room * 2 : 64;
        g->at = mem_resize(g->at, g->room * sizeof g->at[0]);
    }
    memmove(&g->at[i + 1], &g->at[i], (g->n - i) * sizeof g->at[0]);
    g->at[i] = (struct gc_absent){.ledger = ledger, .how = how, .since_ms = since_ms};
    g->n++;
}

void gc_guard_gone(struct gc_guard *g, int64_t ledger)
{
    const size_t i = find(g, ledger);
    if (i == g->n || g->at[i].ledger != ledger)
        return;
    memmove(&g->at[i], &g->at[i + 1], (g->n - i - 1) * sizeof g->at[0]);
    g->n--;
}

void gc_guard_found(struct gc_guard *g, int64_t ledger)
{
    gc_guard_gone(g, ledger);
}

static uint64_t count_fresh(const struct gc_guard *g, const struct gc_ids *here)
{
    uint64_t fresh = 0;
    for (size_t i = 0; i < here->n; i++)
        fresh += !here->seen[i] && !absent_of(g, here->at[i]);
    return fresh;
}

static bool is_too_many(const struct gc_guard *g, size_t here)
{
    return !g->lets_pass && g->vanished > g->least && (double)g->vanished > g->share * (double)here;
}

/* What is neither seen nor known to be absent is not here any more. */
static void keep(struct gc_guard *g, const struct gc_ids *here,
                 void (*back)(void *ctx, int64_t ledger), void *ctx)
{
    size_t kept = 0;
    for (size_t i = 0; i < g->n; i++) {
        struct gc_absent a = g->at[i];
        const size_t k = find_id(here, a.ledger);
        const bool is_here = k < here->n && here->at[k] == a.ledger;
        if (a.how != GC_GOING && (!is_here || here->seen[k])) {
            if (a.how == GC_TRASHED)
                back(ctx, a.ledger);
            continue;
        }
        if (a.how == GC_ONCE)
            a.how = GC_TWICE;
        a.is_listed_so = true;
        g->at[kept++] = a;
    }
    g->n = kept;
}

/* Both are in order. */
static void add_fresh(struct gc_guard *g, const struct gc_ids *here, uint64_t fresh)
{
    const size_t old = g->n;
    size_t from = old, to = old + fresh;
    if (fresh == 0)
        return;
    g->n = g->room = to;
    g->at = mem_resize(g->at, g->room * sizeof g->at[0]);
    for (size_t i = here->n; i-- > 0 && to > from;) {
        while (from > 0 && g->at[from - 1].ledger > here->at[i])
            g->at[--to] = g->at[--from];
        const bool is_known = from > 0 && g->at[from - 1].ledger == here->at[i];
        if (!here->seen[i] && !is_known)
            g->at[--to] = (struct gc_absent){.ledger = here->at[i], .how = GC_ONCE};
    }
}

enum gc_halt gc_guard_listed(struct gc_guard *g, const struct gc_ids *here,
                             void (*back)(void *ctx, int64_t ledger), void *ctx)
{
    if (g->memory.halt)
        return g->memory.halt;
    g->vanished = count_fresh(g, here);
    if (is_too_many(g, here->n))
        return g->memory.halt = GC_TOO_MANY;
    g->lets_pass = false;
    keep(g, here, back, ctx);
    add_fresh(g, here, g->vanished);
    return GC_GOES;
}

static bool is_due(const struct gc_guard *g, const struct gc_absent *a, uint64_t now_ms)
{
    if (a->how == GC_GOING)
        return true;
    if (!a->is_listed_so)
        return false;
    return a->how == GC_TWICE || (a->how == GC_TRASHED && now_ms >= a->since_ms + g->delay_ms);
}

const struct gc_absent *gc_guard_next(const struct gc_guard *g, int64_t after, uint64_t now_ms)
{
    if (g->memory.halt)
        return NULL;
    for (size_t i = find(g, after + 1); i < g->n; i++)
        if (is_due(g, &g->at[i], now_ms))
            return &g->at[i];
    return NULL;
}

enum gc_absence gc_guard_asked(struct gc_guard *g, int64_t ledger, uint64_t now_ms)
{
    struct gc_absent *a = absent_of(g, ledger);
    if (a->how == GC_TWICE) {
        a->how = GC_TRASHED;
        a->since_ms = now_ms;
    } else if (a->how == GC_TRASHED) {
        a->how = GC_GOING;
    }
    return a->how;
}

size_t gc_guard_trashed(const struct gc_guard *g)
{
    size_t n = 0;
    for (size_t i = 0; i < g->n; i++)
        n += g->at[i].how == GC_TRASHED;
    return n;
}

/* What was absent from the other store says nothing of this one. */
void gc_guard_resume(struct gc_guard *g)
{
    size_t kept = 0;
    g->lets_pass = true;
    g->memory = (struct gc_memory){0};
    for (size_t i = 0; i < g->n; i++)
        if (g->at[i].how >= GC_TRASHED) {
            g->at[kept] = g->at[i];
            g->at[kept++].is_listed_so = false;
        }
    g->n = kept;
}
