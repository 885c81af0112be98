#include "tests/lib/shaky_meta.h"

#include <assert.h>

#include "common/mem.h"

/* A call that is answered by us, now or after the inner store has. */
struct answer {
    struct task task;
    struct meta_call inner;
    struct meta_call *call;
    enum err err;
};

static struct shaky_meta *shaky_of(struct metadata *m)
{
    return container_of(m, struct shaky_meta, base);
}

static void end(struct answer *a)
{
    struct meta_call *call = a->call;
    struct meta_reply r = {.err = a->err};

    mem_free(a);
    call->done(call, &r);
}

static void run(struct task *t)
{
    end(container_of(t, struct answer, task));
}

static void inner_done(struct meta_call *c, const struct meta_reply *r)
{
    (void)r;
    end(container_of(c, struct answer, inner));
}

static struct answer *answer_new(struct meta_call *c, enum err err)
{
    struct answer *a = mem_new(struct answer);

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
    loop_post(c->home, &answer_new(c, ERR_NOT_READY)->task);
    return true;
}

static void get(struct metadata *m, const char *key, struct meta_call *c)
{
    struct shaky_meta *s = shaky_of(m);

    if (!refuses(s, c))
        meta_get(s->inner, key, c);
}

static void put(struct metadata *m, const char *key, struct slice value, int64_t expected,
                struct meta_call *c)
{
    struct shaky_meta *s = shaky_of(m);

    if (refuses(s, c)) {
        slice_drop(&value);
    } else if (fault_strikes(&s->forgotten)) {
        slice_drop(&value);
        loop_post(c->home, &answer_new(c, ERR_UNKNOWN_STATE)->task);
    } else if (fault_strikes(&s->unsure)) {
        meta_put(s->inner, key, value, expected, &answer_new(c, ERR_UNKNOWN_STATE)->inner);
    } else {
        meta_put(s->inner, key, value, expected, c);
    }
}

static void remove_key(struct metadata *m, const char *key, int64_t expected, struct meta_call *c)
{
    struct shaky_meta *s = shaky_of(m);

    if (refuses(s, c))
        return;
    if (fault_strikes(&s->unsure))
        meta_remove(s->inner, key, expected, &answer_new(c, ERR_UNKNOWN_STATE)->inner);
    else
        meta_remove(s->inner, key, expected, c);
}

static void range(struct metadata *m, const char *prefix, const char *after, size_t limit,
                  bool keys_only, struct meta_call *c)
{
    struct shaky_meta *s = shaky_of(m);

    if (!refuses(s, c))
        meta_range(s->inner, prefix, after, limit, keys_only, c);
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
        loop_post(c->home, &answer_new(c, ERR_UNKNOWN_STATE)->task);
    } else if (fault_strikes(&s->unsure)) {
        meta_txn(s->inner, steps, n, &answer_new(c, ERR_UNKNOWN_STATE)->inner);
    } else {
        meta_txn(s->inner, steps, n, c);
    }
}

static void hold(struct metadata *m, const char *key, struct slice value, struct meta_call *c)
{
    struct shaky_meta *s = shaky_of(m);

    if (refuses(s, c))
        slice_drop(&value);
    else
        meta_hold(s->inner, key, value, c);
}

static void release(struct metadata *m, const char *key, struct meta_call *c)
{
    struct shaky_meta *s = shaky_of(m);

    if (!refuses(s, c))
        meta_release(s->inner, key, c);
}

static void counter(struct metadata *m, const char *key, int64_t n, struct meta_call *c)
{
    struct shaky_meta *s = shaky_of(m);

    if (!refuses(s, c))
        meta_counter(s->inner, key, n, c);
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

static void close_both(struct metadata *m)
{
    struct shaky_meta *s = shaky_of(m);

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
