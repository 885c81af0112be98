#include "broker/cluster/bundles.h"

#include <assert.h>
#include <string.h>

#include "common/log.h"
#include "common/table.h"
#include "metadata/paths.h"

struct entry {
    UT_hash_handle hh;
    char *name; /* "tenant/namespace" */
    struct bundles *home;
    struct ranges ranges; /* n 0: none were read yet */
    bool loading;
    bool old; /* changed since it was, or began to be, read */
    struct meta_call call;
    struct list_node asks;
};

struct bundles {
    struct loop *home;
    struct metadata *meta;
    struct entry *by_name;
    struct meta_watch local, global;
};

static void load(struct entry *e);

static void forget(struct entry *e)
{
    HASH_DEL(e->home->by_name, e);
    ranges_drop(&e->ranges);
    mem_free(e->name);
    mem_free(e);
}

/* ---- answers ---- */

static void answer(struct entry *e, enum err err)
{
    for (struct list_node *n; (n = list_pop_front(&e->asks));) {
        struct bundles_ask *a = list_entry(n, struct bundles_ask, node);
        a->done(a, err, err ? NULL : &e->ranges);
    }
}

static void loaded(struct entry *e, struct ranges *r)
{
    ranges_drop(&e->ranges);
    e->ranges = *r;
    e->loading = false;
    if (e->old)
        load(e);
    else
        answer(e, ERR_OK);
}

static void not_loaded(struct entry *e, enum err err)
{
    log_event(LOG_WARN, "bundles.not_read", F_STR("namespace", e->name), F_ERR(err));
    e->loading = false;
    e->old = true;
    if (e->ranges.n > 0) {
        answer(e, ERR_OK);
        return;
    }
    answer(e, err);
    forget(e);
}

/* ---- reading ---- */

static void get(struct entry *e, const char *prefix,
                void (*done)(struct meta_call *c, const struct meta_reply *r))
{
    char *key = mem_format("%s%s", prefix, e->name);

    e->call = (struct meta_call){.home = e->home->home, .done = done};
    meta_get(e->home->meta, key, &e->call);
    mem_free(key);
}

static enum err read_reply(const struct meta_reply *r, struct ranges *out)
{
    TRY(r->err);
    return ranges_read(slice_view(r->value), out);
}

static void global_read(struct meta_call *c, const struct meta_reply *r)
{
    struct entry *e = container_of(c, struct entry, call);
    struct ranges ranges;
    enum err err = read_reply(r, &ranges);

    if (err == ERR_NOT_FOUND) {
        ranges_equal(&ranges, RANGES_DEFAULT);
        err = ERR_OK;
    }
    if (err)
        not_loaded(e, err);
    else
        loaded(e, &ranges);
}

static void local_read(struct meta_call *c, const struct meta_reply *r)
{
    struct entry *e = container_of(c, struct entry, call);
    struct ranges ranges;
    enum err err = read_reply(r, &ranges);

    if (err == ERR_NOT_FOUND)
        get(e, PATH_POLICIES, global_read);
    else if (err)
        not_loaded(e, err);
    else
        loaded(e, &ranges);
}

static void load(struct entry *e)
{
    e->loading = true;
    e->old = false;
    get(e, PATH_LOCAL_POLICIES, local_read);
}

/* ---- asking ---- */

static bool make_room(struct bundles *b)
{
    struct entry *e, *next;

    if (HASH_COUNT(b->by_name) < BUNDLES_KEPT)
        return true;
    HASH_ITER(hh, b->by_name, e, next)
    {
        if (!e->loading) {
            forget(e);
            return true;
        }
    }
    return false;
}

static struct entry *add(struct bundles *b, const char *name)
{
    struct entry *e = mem_new(struct entry);

    e->home = b;
    e->name = mem_string(name);
    e->old = true;
    list_init(&e->asks);
    HASH_ADD_KEYPTR(hh, b->by_name, e->name, strlen(e->name), e);
    return e;
}

static struct entry *find(struct bundles *b, const char *name)
{
    struct entry *e;

    HASH_FIND_STR(b->by_name, name, e);
    return e;
}

void bundles_ask(struct bundles *b, const char *tenant, const char *ns, struct bundles_ask *a)
{
    char *name = mem_format("%s/%s", tenant, ns);
    struct entry *e = find(b, name);

    if (!e && make_room(b))
        e = add(b, name);
    mem_free(name);
    if (!e) {
        a->done(a, ERR_BUSY, NULL);
        return;
    }
    if (!e->loading && !e->old) {
        a->done(a, ERR_OK, &e->ranges);
        return;
    }
    list_push_back(&e->asks, &a->node);
    if (!e->loading)
        load(e);
}

/* ---- changes ---- */

static void changed(struct bundles *b, const char *prefix, const struct meta_change *c)
{
    struct entry *e, *next;

    if (c->kind != META_CHANGED_UNSURE) {
        e = find(b, c->key + strlen(prefix));
        if (e)
            e->old = true;
        return;
    }
    HASH_ITER(hh, b->by_name, e, next)
    e->old = true;
}

static void local_changed(struct meta_watch *w, const struct meta_change *c)
{
    changed(container_of(w, struct bundles, local), PATH_LOCAL_POLICIES, c);
}

static void global_changed(struct meta_watch *w, const struct meta_change *c)
{
    changed(container_of(w, struct bundles, global), PATH_POLICIES, c);
}

struct bundles *bundles_new(struct loop *home, struct metadata *meta)
{
    struct bundles *b = mem_new(struct bundles);

    b->home = home;
    b->meta = meta;
    b->local = (struct meta_watch){.home = home, .changed = local_changed};
    b->global = (struct meta_watch){.home = home, .changed = global_changed};
    meta_watch(meta, PATH_LOCAL_POLICIES, &b->local);
    meta_watch(meta, PATH_POLICIES, &b->global);
    return b;
}

void bundles_drop(struct bundles **bp)
{
    struct bundles *b = *bp;
    struct entry *e, *next;

    *bp = NULL;
    meta_unwatch(b->meta, &b->local);
    meta_unwatch(b->meta, &b->global);
    HASH_ITER(hh, b->by_name, e, next)
    {
        assert(!e->loading);
        forget(e);
    }
    mem_free(b);
}
