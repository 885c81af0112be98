#include "broker/policy/policies.h"

#include <assert.h>
#include <string.h>

#include "common/log.h"
#include "common/table.h"

struct kept {
    UT_hash_handle hh;
    char *key;
    struct policies *home;
    bool reading, stale; /* stale: it changed while it was read */
    bool replaced;       /* by one that is read for those who asked after that */
    struct policies_fact fact;
    struct list_node asks;
    struct list_node used; /* in policies.used: last first; while it is not being read */
    struct meta_call call;
};

struct policies {
    struct loop *home;
    struct metadata *meta;
    struct kept *by_key;
    struct list_node used;
    struct meta_watch namespaces, topics;
    policies_changed_fn *changed;
    void *ctx;
};

/* ---- what is kept ---- */

static void forget(struct policies *p, struct kept *k)
{
    assert(list_empty(&k->asks));
    if (!k->replaced)
        HASH_DEL(p->by_key, k);
    list_remove(&k->used);
    mem_free(k->key);
    mem_free(k);
}

static void doubt(struct policies *p, struct kept *k)
{
    if (k->reading)
        k->stale = true;
    else
        forget(p, k);
}

static void make_room(struct policies *p)
{
    if (HASH_COUNT(p->by_key) < POLICIES_MAX || list_empty(&p->used))
        return;
    forget(p, list_entry(p->used.prev, struct kept, used));
}

static struct kept *find(struct policies *p, const char *key)
{
    struct kept *k;

    HASH_FIND_STR(p->by_key, key, k);
    return k;
}

static struct kept *add(struct policies *p, const char *key)
{
    struct kept *k = mem_new(struct kept);

    make_room(p);
    k->key = mem_string(key);
    k->home = p;
    list_init(&k->asks);
    list_init(&k->used);
    HASH_ADD_KEYPTR(hh, p->by_key, k->key, strlen(k->key), k);
    return k;
}

/* ---- asking ---- */

static enum err parse(const char *key, struct view value, struct policies_fact *f)
{
    *f = (struct policies_fact){.there = true};
    if (strncmp(key, PATH_POLICIES, strlen(PATH_POLICIES)) == 0)
        return ns_policies_read(value, &f->ns);
    return partitioned_topic_read(value, &f->topic);
}

static void came(struct meta_call *c, const struct meta_reply *r)
{
    struct kept *k = container_of(c, struct kept, call);
    struct policies *p = k->home;
    struct policies_fact fact = {0};
    struct list_node asks;
    enum err err = r->err;

    if (!err)
        err = parse(k->key, slice_view(r->value), &fact);
    if (err == ERR_MALFORMED)
        log_event(LOG_ERROR, "policies.unreadable", F_STR("key", k->key));
    list_init(&asks);
    for (struct list_node *n; (n = list_pop_front(&k->asks));)
        list_push_back(&asks, n);
    k->reading = false;
    k->fact = fact;
    if (err || k->stale)
        forget(p, k);
    else
        list_push_front(&p->used, &k->used);
    for (struct list_node *n; (n = list_pop_front(&asks));) {
        struct policies_ask *a = list_entry(n, struct policies_ask, node);
        a->done(a, err == ERR_NOT_FOUND ? ERR_OK : err, &fact);
    }
}

static void answer(struct task *t)
{
    struct policies_ask *a = container_of(t, struct policies_ask, task);
    a->done(a, ERR_OK, &a->fact);
}

static void refuse(struct task *t)
{
    struct policies_ask *a = container_of(t, struct policies_ask, task);
    a->done(a, ERR_INVALID_NAME, &a->fact);
}

static void post(struct policies *p, struct policies_ask *a, void (*run)(struct task *t))
{
    a->task.run = run;
    loop_post(p->home, &a->task);
}

/* What is being read may be older than this question. */
static void replace(struct policies *p, struct kept *k)
{
    HASH_DEL(p->by_key, k);
    k->replaced = true;
}

static void join(struct policies *p, const char *key, struct policies_ask *a)
{
    struct kept *k = find(p, key);

    if (k && k->stale) {
        replace(p, k);
        k = NULL;
    }
    if (!k)
        k = add(p, key);
    list_push_back(&k->asks, &a->node);
    if (k->reading)
        return;
    k->reading = true;
    k->call = (struct meta_call){.home = p->home, .done = came};
    meta_get(p->meta, key, &k->call);
}

static void ask(struct policies *p, enum err path, const char *key, struct policies_ask *a)
{
    struct kept *k = path ? NULL : find(p, key);

    assert(loop_is_mine(p->home));
    a->fact = (struct policies_fact){0};
    if (path) {
        post(p, a, refuse);
    } else if (k && !k->reading) {
        a->fact = k->fact;
        list_remove(&k->used);
        list_push_front(&p->used, &k->used);
        post(p, a, answer);
    } else {
        join(p, key, a);
    }
}

void policies_namespace(struct policies *p, const char *tenant, const char *ns,
                        struct policies_ask *a)
{
    char key[META_KEY_MAX];

    ask(p, path_namespace(tenant, ns, key), key, a);
}

void policies_partitioned(struct policies *p, const struct topic_name *name, struct policies_ask *a)
{
    char key[META_KEY_MAX];

    ask(p, path_partitioned(name, key), key, a);
}

/* ---- changes ---- */

static void tell(struct policies *p, const char *key)
{
    if (p->changed && strncmp(key, PATH_POLICIES, strlen(PATH_POLICIES)) == 0)
        p->changed(p->ctx, key + strlen(PATH_POLICIES));
}

void policies_forget(struct policies *p, const char *key)
{
    struct kept *k = find(p, key);

    if (k)
        doubt(p, k);
    tell(p, key);
}

static void forget_all(struct policies *p)
{
    struct kept *k, *next;

    HASH_ITER(hh, p->by_key, k, next)
    doubt(p, k);
    if (p->changed)
        p->changed(p->ctx, NULL);
}

static void on_change(struct policies *p, const struct meta_change *c)
{
    if (c->kind == META_CHANGED_UNSURE)
        forget_all(p);
    else
        policies_forget(p, c->key);
}

static void namespaces_changed(struct meta_watch *w, const struct meta_change *c)
{
    on_change(container_of(w, struct policies, namespaces), c);
}

static void topics_changed(struct meta_watch *w, const struct meta_change *c)
{
    on_change(container_of(w, struct policies, topics), c);
}

/* ---- life ---- */

struct policies *policies_new(struct loop *home, struct metadata *meta)
{
    struct policies *p = mem_new(struct policies);

    p->home = home;
    p->meta = meta;
    list_init(&p->used);
    p->namespaces = (struct meta_watch){.home = home, .changed = namespaces_changed};
    p->topics = (struct meta_watch){.home = home, .changed = topics_changed};
    meta_watch(meta, PATH_POLICIES, &p->namespaces);
    meta_watch(meta, PATH_PARTITIONED, &p->topics);
    return p;
}

void policies_drop(struct policies **pp)
{
    struct policies *p = *pp;
    struct kept *k, *next;

    *pp = NULL;
    if (!p)
        return;
    meta_unwatch(p->meta, &p->namespaces);
    meta_unwatch(p->meta, &p->topics);
    HASH_ITER(hh, p->by_key, k, next)
    forget(p, k);
    mem_free(p);
}

struct metadata *policies_metadata(const struct policies *p)
{
    return p->meta;
}

void policies_listen(struct policies *p, policies_changed_fn *changed, void *ctx)
{
    p->changed = changed;
    p->ctx = ctx;
}

size_t policies_kept(const struct policies *p)
{
    return HASH_COUNT(p->by_key);
}
