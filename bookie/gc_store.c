#include "bookie/gc_store.h"

#include <string.h>

#include "common/log.h"
#include "common/mem.h"
#include "metadata/paths.h"
#include "metadata/records.h"
#include "metadata/wait.h"

enum { PAGE = 1000 };

static void pace(struct gc_store *s)
{
    const uint64_t now = loop_clock();
    if (s->per_second == 0)
        return;
    if (s->free_at > now)
        s->pause(s->ctx, s->free_at - now);
    else
        s->free_at = now;
    s->free_at += 1000000 / s->per_second;
}

/* Gives w->value. */
static enum err get(struct gc_store *s, const char *key, struct meta_wait *w)
{
    pace(s);
    meta_wait_begin(w);
    meta_get(s->meta, key, &w->call);
    return meta_wait_end(w);
}

/* ---- who it is ------------------------------------------------------------------------------ */

static enum err look_at_instance(struct gc_store *s)
{
    struct meta_wait w;
    TRY(get(s, PATH_INSTANCE_ID, &w));
    const size_t len = w.value.len < GC_INSTANCE_MAX ? w.value.len : GC_INSTANCE_MAX;
    memset(s->instance, 0, sizeof s->instance);
    memcpy(s->instance, w.value.base, len);
    slice_drop(&w.value);
    return ERR_OK;
}

/* A store that has gone back shows it here, though its revisions do not. */
static uint64_t counted(const struct meta_reply *r)
{
    return r->revision - r->ahead;
}

/* A store without an instance id is no store of ours: that is told as one with another. */
enum err gc_store_look(struct gc_store *s, struct gc_sight *out)
{
    struct meta_wait w;
    memset(s->instance, 0, sizeof s->instance);
    enum err err = look_at_instance(s);
    if (err && err != ERR_NOT_FOUND)
        return err;
    TRY(path_gc_beacon(s->bookie_id, s->beacon_key));
    err = get(s, s->beacon_key, &w);
    if (err && err != ERR_NOT_FOUND)
        return err;
    const bool has_beacon = !err;
    memset(s->beacon, 0, GC_BEACON);
    if (has_beacon && w.value.len == GC_BEACON)
        memcpy(s->beacon, w.value.base, GC_BEACON);
    slice_drop(&w.value);
    s->beacon_version = has_beacon ? w.reply.version : META_ABSENT;
    *out = (struct gc_sight){.instance = s->instance,
                             .store = w.reply.store,
                             .revision = counted(&w.reply),
                             .beacon = has_beacon ? s->beacon : NULL};
    return ERR_OK;
}

enum err gc_store_put_beacon(struct gc_store *s, const uint8_t beacon[GC_BEACON])
{
    return meta_put_wait(s->meta, s->beacon_key, slice_copy(beacon, GC_BEACON), s->beacon_version);
}

/* ---- listing -------------------------------------------------------------------------------- */

struct listing {
    struct meta_wait wait;
    void (*each)(void *ctx, int64_t ledger);
    void *ctx;
    char *after;
    bool more, has_instance;
    uint64_t revision;
};

static void take_page(struct meta_wait *w, const struct meta_reply *r)
{
    struct listing *l = container_of(w, struct listing, wait);
    int64_t ledger;
    l->more = false;
    if (r->err)
        return;
    if (l->revision == 0 || counted(r) < l->revision)
        l->revision = counted(r);
    for (size_t i = 0; i < r->count; i++)
        if (!path_ledger_id(r->items[i].key, &ledger))
            l->each(l->ctx, ledger);
        else
            l->has_instance |= strcmp(r->items[i].key, PATH_INSTANCE_ID) == 0;
    l->more = r->more && r->count > 0;
    if (!l->more)
        return;
    mem_free(l->after);
    l->after = mem_string(r->items[r->count - 1].key);
}

static enum err ask_page(struct gc_store *s, struct listing *l)
{
    if (s->stops(s->ctx))
        return ERR_CLOSED;
    pace(s);
    meta_wait_begin(&l->wait);
    l->wait.look = take_page;
    meta_range(s->meta, PATH_LEDGERS "/", l->after, PAGE, true, &l->wait.call);
    return meta_wait_end(&l->wait);
}

/* The instance id stands among the ledgers: a listing without it has not seen all of them. */
enum err gc_store_list(struct gc_store *s, void (*each)(void *ctx, int64_t ledger), void *ctx,
                       uint64_t *revision)
{
    struct listing l = {.each = each, .ctx = ctx, .more = true};
    enum err err = ERR_OK;
    while (!err && l.more)
        err = ask_page(s, &l);
    mem_free(l.after);
    *revision = l.revision;
    if (!err && !l.has_instance)
        err = ERR_NOT_READY;
    return err;
}

/* ---- one ledger ----------------------------------------------------------------------------- */

enum err gc_store_read(struct gc_store *s, int64_t ledger, uint64_t *revision,
                       Bookkeeper__LedgerMetadataFormat **out)
{
    char key[META_KEY_MAX];
    struct meta_wait w;
    TRY(path_ledger(ledger, key));
    enum err err = get(s, key, &w);
    *revision = counted(&w.reply);
    TRY(err);
    err = ledger_record_read(slice_view(w.value), out);
    slice_drop(&w.value);
    return err == ERR_NOT_FOUND ? ERR_MALFORMED : err;
}

enum err gc_store_lock(struct gc_store *s, int64_t ledger)
{
    char key[META_KEY_MAX];
    struct meta_wait w;
    TRY(path_mark_lock(ledger, key));
    pace(s);
    meta_wait_begin(&w);
    meta_hold(s->meta, key, lock_record_write(s->bookie_id), &w.call);
    return meta_wait_end(&w);
}

void gc_store_unlock(struct gc_store *s, int64_t ledger)
{
    char key[META_KEY_MAX];
    struct meta_wait w;
    if (path_mark_lock(ledger, key))
        return;
    meta_wait_begin(&w);
    meta_release(s->meta, key, &w.call);
    const enum err err = meta_wait_end(&w);
    if (err)
        log_event(LOG_WARN, "gc.lock_kept", F_I64("ledger", ledger), F_ERR(err));
}

enum err gc_store_is_marked(struct gc_store *s, int64_t ledger, bool *out)
{
    char key[META_KEY_MAX];
    struct meta_wait w;
    TRY(path_mark(ledger, key));
    const enum err err = get(s, key, &w);
    slice_drop(&w.value);
    *out = err != ERR_NOT_FOUND;
    return err == ERR_NOT_FOUND ? ERR_OK : err;
}
