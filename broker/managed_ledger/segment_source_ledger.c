#include <assert.h>

#include "broker/managed_ledger/managed_ledger_inside.h"

struct ledger_source {
    struct segment_source base;
    struct ledger *ledger;
    bool owned;
    struct list_node reads;
};

struct source_read {
    struct list_node node;
    struct ledger_read read;
    struct segment_read *of;
};

static struct ledger_source *of_base(struct segment_source *s)
{
    return container_of(s, struct ledger_source, base);
}

static void on_entry(struct ledger_read *r, entry_id id, struct slice payload)
{
    struct source_read *one = container_of(r, struct source_read, read);

    one->of->entry(one->of, id, payload);
}

static void on_done(struct ledger_read *r, enum err err)
{
    struct source_read *one = container_of(r, struct source_read, read);
    struct segment_read *of = one->of;

    list_remove(&one->node);
    mem_free(one);
    of->done(of, err);
}

static void source_read(struct segment_source *s, struct segment_read *r)
{
    struct ledger_source *source = of_base(s);
    struct source_read *one = mem_new(struct source_read);

    one->of = r;
    one->read = (struct ledger_read){
        .first = r->first,
        .last = r->last,
        .max_bytes = r->max_bytes,
        .entry = on_entry,
        .done = on_done,
    };
    list_push_back(&source->reads, &one->node);
    ledger_read(source->ledger, &one->read);
}

static void source_cancel(struct segment_source *s, struct segment_read *r)
{
    list_each(&of_base(s)->reads, node)
    {
        struct source_read *one = list_entry(node, struct source_read, node);
        if (one->of != r)
            continue;
        ledger_read_cancel(&one->read);
        list_remove(&one->node);
        mem_free(one);
        return;
    }
}

static void source_close(struct segment_source *s)
{
    struct ledger_source *source = of_base(s);

    assert(list_empty(&source->reads));
    if (source->owned)
        ledger_drop(&source->ledger);
    mem_free(source);
}

struct segment_source *segment_source_of(struct ledger *l, bool owned)
{
    static const struct segment_source_ops ops = {
        .read = source_read, .cancel = source_cancel, .close = source_close};
    struct ledger_source *source = mem_new(struct ledger_source);

    source->base.ops = &ops;
    source->ledger = l;
    source->owned = owned;
    list_init(&source->reads);
    return &source->base;
}

struct source_opening {
    struct ledger_call ledger_call;
    struct segment_source_call *call;
};

static void opened(struct ledger_call *c, enum err err, struct ledger *l)
{
    struct source_opening *o = container_of(c, struct source_opening, ledger_call);
    struct segment_source_call *call = o->call;

    mem_free(o);
    call->done(call, err, err ? NULL : segment_source_of(l, true));
}

void segment_source_ledger(struct ledger_client *c, int64_t ledger,
                           struct segment_source_call *call)
{
    struct source_opening *o = mem_new(struct source_opening);

    o->ledger_call.done = opened;
    o->call = call;
    ledger_open(c, ledger, LEDGER_OPEN_READ, &o->ledger_call);
}
