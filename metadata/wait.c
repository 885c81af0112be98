#include "metadata/wait.h"

#include <assert.h>

#include "common/mem.h"

enum { PAGE = 500 };

static void done(struct meta_call *c, const struct meta_reply *r)
{
    struct meta_wait *w = container_of(c, struct meta_wait, call);

    if (w->look)
        w->look(w, r);
    w->reply = *r;
    w->value = slice_share(r->value);
    w->reply.value = (struct slice){0};
    w->reply.items = NULL;
    w->reply.count = 0;
    loop_stop(c->home);
}

void meta_wait_begin(struct meta_wait *w)
{
    assert(!loop_mine());
    *w = (struct meta_wait){.call = {.home = loop_new("wait"), .done = done}};
}

enum err meta_wait_end(struct meta_wait *w)
{
    loop_run(w->call.home);
    loop_drop(&w->call.home);
    return w->reply.err;
}

enum err meta_get_wait(struct metadata *m, const char *key, struct slice *value, int64_t *version)
{
    struct meta_wait w;

    meta_wait_begin(&w);
    meta_get(m, key, &w.call);
    TRY(meta_wait_end(&w));
    *value = w.value;
    if (version)
        *version = w.reply.version;
    return ERR_OK;
}

enum err meta_put_wait(struct metadata *m, const char *key, struct slice value, int64_t expected)
{
    struct meta_wait w;

    meta_wait_begin(&w);
    meta_put(m, key, value, expected, &w.call);
    return meta_wait_end(&w);
}

/* ---- pages ---------------------------------------------------------------------------------- */

struct pages {
    struct meta_wait wait;
    enum err (*each)(void *ctx, const struct meta_item *item);
    void *ctx;
    enum err err;
    char *after; /* the last key seen; NULL: none */
    bool more;
};

static void take_page(struct meta_wait *w, const struct meta_reply *r)
{
    struct pages *p = container_of(w, struct pages, wait);

    p->more = !r->err && r->more && r->count > 0;
    for (size_t i = 0; !r->err && !p->err && i < r->count; i++)
        p->err = p->each(p->ctx, &r->items[i]);
    if (!p->more)
        return;
    mem_free(p->after);
    p->after = mem_string(r->items[r->count - 1].key);
}

static enum err ask_page(struct pages *p, struct metadata *m, const char *prefix)
{
    meta_wait_begin(&p->wait);
    p->wait.look = take_page;
    meta_range(m, prefix, p->after, PAGE, false, &p->wait.call);
    TRY(meta_wait_end(&p->wait));
    return p->err;
}

enum err meta_each_wait(struct metadata *m, const char *prefix,
                        enum err (*each)(void *ctx, const struct meta_item *item), void *ctx)
{
    struct pages p = {.each = each, .ctx = ctx, .more = true};
    enum err err = ERR_OK;

    while (!err && p.more)
        err = ask_page(&p, m, prefix);
    mem_free(p.after);
    return err;
}
