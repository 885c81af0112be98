#include "tests/unit/metadata/listener.h"

#include <check.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>

#include "common/mem.h"

enum { HEARD_MAX = 20000 };

struct listener {
    struct meta_watch watch;
    struct metadata *m;
    const char *prefix;
    struct loop *loop;
    pthread_mutex_t lock; /* guards the rest */
    pthread_cond_t more;
    char *heard[HEARD_MAX];
    unsigned n, from;
    uint64_t revision;
};

static void changed(struct meta_watch *w, const struct meta_change *c)
{
    struct listener *l = container_of(w, struct listener, watch);
    char *text =
        c->kind == META_CHANGED_PUT
            ? mem_format("put %s=%.*s", c->key, (int)c->value.len,
                         c->value.len ? (const char *)c->value.base : "")
            : mem_format("%s %s", c->kind == META_CHANGED_UNSURE ? "unsure" : "removed", c->key);

    pthread_mutex_lock(&l->lock);
    ck_assert_uint_ge(c->revision, l->revision);
    l->revision = c->revision;
    ck_assert_uint_lt(l->n, HEARD_MAX);
    l->heard[l->n++] = text;
    pthread_cond_signal(&l->more);
    pthread_mutex_unlock(&l->lock);
}

static void begin(void *ctx)
{
    struct listener *l = ctx;

    meta_watch(l->m, l->prefix, &l->watch);
}

static void end(void *ctx)
{
    struct listener *l = ctx;

    meta_unwatch(l->m, &l->watch);
}

struct listener *listener_new(struct metadata *m, const char *prefix)
{
    struct listener *l = mem_new(struct listener);

    l->m = m;
    l->prefix = prefix;
    l->loop = loop_new("listener");
    l->watch = (struct meta_watch){.home = l->loop, .changed = changed};
    pthread_mutex_init(&l->lock, NULL);
    pthread_cond_init(&l->more, NULL);
    loop_start(l->loop);
    loop_call(l->loop, begin, l);
    return l;
}

void listener_drop(struct listener **lp)
{
    struct listener *l = *lp;

    *lp = NULL;
    loop_call(l->loop, end, l);
    loop_drop(&l->loop);
    for (unsigned i = 0; i < l->n; i++)
        mem_free(l->heard[i]);
    mem_free(l);
}

void listener_await(struct listener *l, const char *what)
{
    pthread_mutex_lock(&l->lock);
    for (;;) {
        while (l->from == l->n)
            pthread_cond_wait(&l->more, &l->lock);
        if (strcmp(l->heard[l->from++], what) == 0)
            break;
    }
    pthread_mutex_unlock(&l->lock);
}

unsigned listener_count(struct listener *l, const char *what)
{
    unsigned count = 0;

    pthread_mutex_lock(&l->lock);
    for (unsigned i = 0; i < l->n; i++)
        count += strcmp(l->heard[i], what) == 0;
    pthread_mutex_unlock(&l->lock);
    return count;
}
