#include "tests/lib/shaky_meta.h"

#include <assert.h>
#include <sched.h>
#include <stdatomic.h>
#include <string.h>

#include "common/mem.h"

/* A call that is answered by us, now or after the inner store has. */
struct answer {
    struct task task;
    struct shaky_meta *shaky;
    struct meta_call inner;
    struct meta_call *call;
    enum err err;
};

static struct shaky_meta *shaky_of(struct metadata *m)
{
    return container_of(m, struct shaky_meta, base);
}

static void end(struct answer *a, struct meta_reply r)
{
    struct meta_call *call = a->call;

    r.ahead = a->shaky->ahead;
    mem_free(a);
    call->done(call, &r);
}

static void run(struct task *t)
{
    struct answer *a = container_of(t, struct answer, task);

    end(a, (struct meta_reply){.err = a->err});
}

static void inner_done(struct meta_call *c, const struct meta_reply *r)
{
    struct answer *a = container_of(c, struct answer, inner);

    end(a, a->err ? (struct meta_reply){.err = a->err} : *r);
}

/* err OK: the inner store's own. */
static struct answer *answer_new(struct shaky_meta *s, struct meta_call *c, enum err err)
{
    struct answer *a = mem_new(struct answer);

    a->shaky = s;
    a->call = c;
    a->err = err;
    a->task.run = run;
    a->inner = (struct meta_call){.home = c->home, .done = inner_done};
    return a;
}

static bool refuses(struct shaky_meta *s, struct meta_call *c)
{
    if (!fault_strikes(&s->away))
        return false;
    loop_post(c->home, &answer_new(s, c, ERR_NOT_READY)->task);
    return true;
}

static void get(struct metadata *m, const char *key, struct meta_call *c)
{
    struct shaky_meta *s = shaky_of(m);

    if (!refuses(s, c))
        meta_get(s->inner, key, &answer_new(s, c, ERR_OK)->inner);
}

static void put(struct metadata *m, const char *key, struct slice value, int64_t expected,
                struct meta_call *c)
{
    struct shaky_meta *s = shaky_of(m);

    if (refuses(s, c)) {
        slice_drop(&value);
    } else if (fault_strikes(&s->forgotten)) {
        slice_drop(&value);
        loop_post(c->home, &answer_new(s, c, ERR_UNKNOWN_STATE)->task);
    } else if (fault_strikes(&s->unsure)) {
        meta_put(s->inner, key, value, expected, &answer_new(s, c, ERR_UNKNOWN_STATE)->inner);
    } else {
        meta_put(s->inner, key, value, expected, &answer_new(s, c, ERR_OK)->inner);
    }
}

static void remove_key(struct metadata *m, const char *key, int64_t expected, struct meta_call *c)
{
    struct shaky_meta *s = shaky_of(m);

    if (refuses(s, c))
        return;
    if (fault_strikes(&s->unsure))
        meta_remove(s->inner, key, expected, &answer_new(s, c, ERR_UNKNOWN_STATE)->inner);
    else
        meta_remove(s->inner, key, expected, &answer_new(s, c, ERR_OK)->inner);
}

static void range(struct metadata *m, const char *prefix, const char *after, size_t limit,
                  bool keys_only, struct meta_call *c)
{
    struct shaky_meta *s = shaky_of(m);

    if (!refuses(s, c))
        meta_range(s->inner, prefix, after, limit, keys_only, &answer_new(s, c, ERR_OK)->inner);
}

static void drop_values(const struct meta_op *steps, size_t n)
{
    for (size_t i = 0; i < n; i++)
        slice_drop(&(struct slice){.slab = steps[i].value.slab});
}

static void txn(struct metadata *m, const struct meta_op *steps, size_t n, struct meta_call *c)
{
    struct shaky_meta *s = shaky_of(m);

    if (refuses(s, c)) {
        drop_values(steps, n);
    } else if (fault_strikes(&s->forgotten)) {
        drop_values(steps, n);
        loop_post(c->home, &answer_new(s, c, ERR_UNKNOWN_STATE)->task);
    } else if (fault_strikes(&s->unsure)) {
        meta_txn(s->inner, steps, n, &answer_new(s, c, ERR_UNKNOWN_STATE)->inner);
    } else {
        meta_txn(s->inner, steps, n, &answer_new(s, c, ERR_OK)->inner);
    }
}

static void hold(struct metadata *m, const char *key, struct slice value, struct meta_call *c)
{
    struct shaky_meta *s = shaky_of(m);

    if (refuses(s, c))
        slice_drop(&value);
    else
        meta_hold(s->inner, key, value, &answer_new(s, c, ERR_OK)->inner);
}

static void release(struct metadata *m, const char *key, struct meta_call *c)
{
    struct shaky_meta *s = shaky_of(m);

    if (!refuses(s, c))
        meta_release(s->inner, key, &answer_new(s, c, ERR_OK)->inner);
}

static void counter(struct metadata *m, const char *key, int64_t n, struct meta_call *c)
{
    struct shaky_meta *s = shaky_of(m);

    if (!refuses(s, c))
        meta_counter(s->inner, key, n, &answer_new(s, c, ERR_OK)->inner);
}

static void watch(struct metadata *m, const char *prefix, struct meta_watch *w)
{
    struct shaky_meta *s = shaky_of(m);

    assert(s->n_watches < SHAKY_WATCHES_MAX);
    s->watches[s->n_watches++] = w;
    meta_watch(s->inner, prefix, w);
}

static void unwatch(struct metadata *m, struct meta_watch *w)
{
    struct shaky_meta *s = shaky_of(m);

    for (unsigned i = 0; i < s->n_watches; i++)
        if (s->watches[i] == w)
            s->watches[i--] = s->watches[--s->n_watches];
    meta_unwatch(s->inner, w);
}

void shaky_meta_doubt(struct shaky_meta *s)
{
    for (unsigned i = 0; i < s->n_watches; i++) {
        struct meta_watch *w = s->watches[i];
        w->changed(
            w, &(struct meta_change){.kind = META_CHANGED_UNSURE, .key = w->prefix, .version = -1});
    }
}

/* ---- put back ---- */

struct shaky_kept {
    char *key;
    struct slice value;
    int64_t version;
    bool same; /* as it is now */
};

static void let_go(struct shaky_meta *s)
{
    for (size_t i = 0; i < s->n_kept; i++) {
        mem_free(s->kept[i].key);
        slice_drop(&s->kept[i].value);
    }
    mem_free(s->kept);
    s->kept = NULL;
    s->n_kept = 0;
}

static enum err keep_one(void *ctx, const struct meta_item *item)
{
    struct shaky_meta *s = ctx;

    s->kept = mem_resize(s->kept, (s->n_kept + 1) * sizeof(*s->kept));
    s->kept[s->n_kept++] = (struct shaky_kept){
        .key = mem_string(item->key), .value = slice_share(item->value), .version = item->version};
    return ERR_OK;
}

void shaky_meta_keep(struct shaky_meta *s)
{
    let_go(s);
    enum err err = meta_each_wait(s->inner, "/", keep_one, s);
    assert(!err);
    (void)err;
}

static bool is_same(const struct shaky_kept *k, const struct meta_item *item)
{
    return strcmp(k->key, item->key) == 0 && k->version == item->version &&
           k->value.len == item->value.len &&
           (k->value.len == 0 || memcmp(k->value.base, item->value.base, k->value.len) == 0);
}

struct changed {
    struct shaky_meta *shaky;
    char **keys;
    size_t n;
};

static enum err look_at(void *ctx, const struct meta_item *item)
{
    struct changed *c = ctx;

    for (size_t i = 0; i < c->shaky->n_kept; i++)
        if (is_same(&c->shaky->kept[i], item)) {
            c->shaky->kept[i].same = true;
            return ERR_OK;
        }
    c->keys = mem_resize(c->keys, (c->n + 1) * sizeof(char *));
    c->keys[c->n++] = mem_string(item->key);
    return ERR_OK;
}

struct removal {
    struct meta_call call;
    struct loop *loop;
    struct metadata *inner;
    const char *key;
    _Atomic bool done;
};

static void removed(struct meta_call *c, const struct meta_reply *r)
{
    assert(!r->err);
    (void)r;
    container_of(c, struct removal, call)->done = true;
}

static void begin_removal(void *ctx)
{
    struct removal *r = ctx;

    r->call = (struct meta_call){.home = r->loop, .done = removed};
    meta_remove(r->inner, r->key, META_ANY, &r->call);
}

static void remove_all(struct shaky_meta *s, const struct changed *c)
{
    struct loop *loop = loop_new("putting-back");

    loop_start(loop);
    for (size_t i = 0; i < c->n; i++) {
        struct removal r = {.loop = loop, .inner = s->inner, .key = c->keys[i]};
        loop_call(loop, begin_removal, &r);
        while (!r.done)
            sched_yield();
        mem_free(c->keys[i]);
    }
    loop_drop(&loop);
}

void shaky_meta_put_back(struct shaky_meta *s)
{
    struct changed c = {.shaky = s};
    enum err err = meta_each_wait(s->inner, "/", look_at, &c);

    remove_all(s, &c);
    mem_free(c.keys);
    for (size_t i = 0; i < s->n_kept; i++) {
        struct shaky_kept *k = &s->kept[i];
        for (int64_t v = 0; v <= k->version && !k->same && !err; v++)
            err = meta_put_wait(s->inner, k->key, slice_share(k->value), v - 1);
        k->same = false;
    }
    assert(!err);
    (void)err;
    s->ahead++;
}

static void close_both(struct metadata *m)
{
    struct shaky_meta *s = shaky_of(m);

    let_go(s);
    meta_close(&s->inner);
    mem_free(s);
}

static const struct meta_ops ops = {.get = get,
                                    .put = put,
                                    .remove = remove_key,
                                    .range = range,
                                    .txn = txn,
                                    .hold = hold,
                                    .release = release,
                                    .counter = counter,
                                    .watch = watch,
                                    .unwatch = unwatch,
                                    .close = close_both};

struct shaky_meta *shaky_meta_new(struct metadata *inner)
{
    struct shaky_meta *s = mem_new(struct shaky_meta);

    s->base.ops = &ops;
    s->inner = inner;
    return s;
}
