#include "metadata/wait.h"

#include <assert.h>

#include "common/mem.h"

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
