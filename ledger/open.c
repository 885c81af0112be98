#include "common/mem.h"
#include "ledger/handle.h"
#include "metadata/paths.h"

struct opening {
    struct ledger *ledger;
    enum ledger_open_how how;
    struct ledger_call *call;
    struct meta_call meta;
    struct task fail; /* for an id that no path can be made of */
    char path[META_KEY_MAX];
};

static void end(struct opening *o, enum err err)
{
    struct ledger_call *call = o->call;
    struct ledger *l = o->ledger;

    mem_free(o);
    if (err)
        ledger_drop(&l);
    call->done(call, err, l);
}

static void ready(void *ctx, enum err err)
{
    end(ctx, err);
}

static void have_metadata(struct meta_call *c, const struct meta_reply *r)
{
    struct opening *o = container_of(c, struct opening, meta);
    struct ledger *l = o->ledger;
    const struct ledger_facts *f = &l->layout.facts;
    enum err err = r->err == ERR_NOT_FOUND ? ERR_NO_LEDGER : r->err;

    if (!err)
        err = layout_read(&l->layout, l->client->bookies, slice_view(r->value), r->version);
    if (err) {
        end(o, err);
    } else if (f->state == LEDGER_CLOSED) {
        l->lac = f->last;
        l->length = f->length;
        end(o, ERR_OK);
    } else if (o->how == LEDGER_OPEN_RECOVER) {
        recovery_start(l, ready, o);
    } else {
        lac_start(l, ready, o);
    }
}

static void fail(struct task *t)
{
    end(container_of(t, struct opening, fail), ERR_NO_LEDGER);
}

void ledger_open(struct ledger_client *c, int64_t id, enum ledger_open_how how,
                 struct ledger_call *call)
{
    struct opening *o = mem_new(struct opening);

    o->ledger = handle_new(c, id);
    o->how = how;
    o->call = call;
    o->fail.run = fail;
    o->meta = (struct meta_call){.home = c->loop, .done = have_metadata};
    if (path_ledger(id, o->path))
        loop_post(c->loop, &o->fail);
    else
        meta_get(c->meta, o->path, &o->meta);
}
