#include <assert.h>

#include "broker/managed_ledger/managed_ledger_inside.h"
#include "common/log.h"
#include "metadata/paths.h"

enum { LOOK_US = 60 * 1000 * 1000, DELETE_RETRY_US = 1000 * 1000, DELETE_TRIES = 8 };

struct deletion {
    struct list_node node;
    struct ledger_call call;
    struct timer retry;
    struct ml_env *env;
    int64_t ledger;
    unsigned tries;
};

static void free_env(struct ml_env *e)
{
    if (e->prefixes)
        slab_drop(&e->prefixes);
    entry_cache_drop(&e->cache);
    mem_pool_drop(&e->ledgers_pool);
    mem_pool_drop(&e->cursors_pool);
    mem_free(e);
}

static void deletion_over(struct deletion *d)
{
    struct ml_env *e = d->env;

    list_remove(&d->node);
    mem_free(d);
    if (e->dropped && list_empty(&e->deletions))
        free_env(e);
}

/* What stays after all tries is found by a checker that compares ledgers with nodes. */
static void deleted(struct ledger_call *call, enum err err, struct ledger *l)
{
    struct deletion *d = container_of(call, struct deletion, call);
    bool again = err && err_class(err) == CLASS_RETRY && !d->env->dropped;

    (void)l;
    if (again && ++d->tries < DELETE_TRIES) {
        loop_after(d->env->home, &d->retry, (uint64_t)DELETE_RETRY_US << d->tries);
        return;
    }
    if (err)
        log_event(LOG_WARN, "managed_ledger.left_ledger", F_I64("ledger", d->ledger), F_ERR(err));
    deletion_over(d);
}

static void delete_again(struct timer *t)
{
    struct deletion *d = container_of(t, struct deletion, retry);

    ledger_delete(d->env->ledgers, d->ledger, &d->call);
}

void ml_env_delete_ledger(struct ml_env *e, int64_t ledger)
{
    struct deletion *d = mem_new(struct deletion);

    *d = (struct deletion){
        .call.done = deleted, .retry.run = delete_again, .env = e, .ledger = ledger};
    list_push_back(&e->deletions, &d->node);
    ledger_delete(e->ledgers, ledger, &d->call);
}

void ml_env_squeeze(struct ml_env *e, unsigned halvings)
{
    entry_cache_set_limit(e->cache, e->conf.cache_bytes >> halvings);
}

static void bookies_changed(struct bookies_watch *w)
{
    struct ml_env *e = container_of(w, struct ml_env, watch);

    list_each(&e->all, node) ml_bookies_changed(list_entry(node, struct managed_ledger, in_env));
}

/* Restored from an older state it does not know the newest ledgers: nobody would look for what is
 * written there. */
static void store_changed(struct meta_watch *w, const struct meta_change *c)
{
    struct ml_env *e = container_of(w, struct ml_env, store);

    if (c->kind != META_CHANGED_UNSURE)
        return;
    list_each(&e->all, node) ml_node_doubt(list_entry(node, struct managed_ledger, in_env));
}

/* The age of ledgers and retention need no timer a topic: one slow look at all of them. */
static void look(struct timer *t)
{
    struct ml_env *e = container_of(t, struct ml_env, look);

    list_each(&e->all, node)
    {
        struct managed_ledger *m = list_entry(node, struct managed_ledger, in_env);
        ml_sources_idle(m);
        ml_care(m);
    }
    loop_after(e->home, &e->look, LOOK_US);
}

struct ml_env *ml_env_new(struct loop *home, struct ledger_client *ledgers, struct metadata *meta,
                          const struct ml_conf *conf)
{
    struct ml_env *e = mem_new(struct ml_env);

    assert(quorum_valid(conf->quorum));
    *e = (struct ml_env){
        .home = home,
        .ledgers = ledgers,
        .meta = meta,
        .conf = *conf,
        .cache = entry_cache_new(conf->cache_bytes),
        .watch.changed = bookies_changed,
        .look.run = look,
        .store = {.home = home, .changed = store_changed},
    };
    list_init(&e->all);
    list_init(&e->deletions);
    e->ledgers_pool = mem_pool_new(sizeof(struct managed_ledger));
    e->cursors_pool = cursor_pool_new();
    ledger_client_watch(ledgers, &e->watch);
    meta_watch(meta, PATH_LEDGER_COUNTER, &e->store);
    loop_after(home, &e->look, LOOK_US);
    return e;
}

void ml_env_figures(const struct ml_env *e, struct ml_figures *out)
{
    const struct entry_cache_counts c = entry_cache_counts(e->cache);

    *out = (struct ml_figures){
        .count = e->n,
        .cache_bytes = entry_cache_bytes(e->cache),
        .cache_entries = c.entries,
        .cache_hits = c.hits,
        .cache_misses = c.misses,
        .cache_evictions = c.evictions,
    };
}

void ml_env_drop(struct ml_env **env)
{
    struct ml_env *e = *env;

    *env = NULL;
    assert(list_empty(&e->all));
    loop_cancel(e->home, &e->look);
    ledger_client_unwatch(e->ledgers, &e->watch);
    meta_unwatch(e->meta, &e->store);
    e->dropped = true;
    if (list_empty(&e->deletions)) {
        free_env(e);
        return;
    }
    list_each(&e->deletions, node)
    {
        struct deletion *d = list_entry(node, struct deletion, node);
        bool last = d->node.next == &e->deletions && d->node.prev == &e->deletions;
        if (!timer_armed(&d->retry))
            continue;
        loop_cancel(e->home, &d->retry);
        deletion_over(d);
        if (last)
            return;
    }
}
