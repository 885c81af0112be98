#include <string.h>

#include "common/log.h"
#include "common/mem.h"
#include "ledger/handle.h"
#include "ledger/recoverer.h"
#include "metadata/paths.h"

/* The recoverer's shell: its reads and copies go over links of their own (bookie_link.h). */
struct recovery {
    struct ledger *ledger;
    struct recoverer core;
    struct list_node tries; /* requests under way */
    struct meta_call call;
    struct slice value; /* what a compare-and-set in flight writes */
    unsigned noted;     /* bookies that the log has heard of */
    uint32_t noted_bookie[ENSEMBLE_MAX];
    char path[META_KEY_MAX];
    bool ended;
    enum err err;
    entry_id last;
    int64_t length;
    void (*done)(void *ctx, enum err err);
    void *ctx;
};

struct
try {
    struct list_node node;
    struct link_request q;
    struct recovery *recovery;
    unsigned slot;   /* reads */
    uint32_t bookie; /* copies */
};

/* A payload that was read: the core's item. */
struct payload {
    struct slice bytes;
};

static struct bookies *bookies_of(const struct recovery *r)
{
    return r->ledger->client->bookies;
}

static void drop(void *ctx, void *item)
{
    struct payload *p = item;

    (void)ctx;
    slice_drop(&p->bytes);
    mem_free(p);
}

static void log_end(const struct recovery *r)
{
    if (r->err)
        log_event(LOG_WARN, "ledger.recovery_failed", F_I64("ledger", r->ledger->id),
                  F_ERR(r->err));
    else
        log_event(LOG_INFO, "ledger.recovered", F_I64("ledger", r->ledger->id),
                  F_I64("last", r->last), F_I64("length", r->length));
}

/* Outside the core. */
static void settle(struct recovery *r)
{
    struct list_node *node;

    if (!r->ended)
        return;
    while ((node = list_pop_front(&r->tries))) {
        struct try *t = list_entry(node, struct try, node);
        link_cancel(&t->q);
        mem_free(t);
    }
    log_end(r);
    r->ledger->lac = r->last;
    r->ledger->length = r->length;
    void (*done)(void *ctx, enum err err) = r->done;
    void *ctx = r->ctx;
    enum err err = r->err;
    slice_drop(&r->value);
    mem_free(r);
    done(ctx, err);
}

static void done(void *ctx, enum err err, entry_id last, int64_t length)
{
    struct recovery *r = ctx;

    r->ended = true;
    r->err = err;
    r->last = last;
    r->length = length;
}

/* ---- bookies ---- */

static struct try *try_new(struct recovery *r)
{
    struct try *t = mem_new(struct try);

    t->recovery = r;
    list_push_back(&r->tries, &t->node);
    return t;
}

static struct recovery *try_end(struct try *t)
{
    struct recovery *r = t->recovery;

    list_remove(&t->node);
    mem_free(t);
    return r;
}

static void note_failure(struct recovery *r, uint32_t bookie, entry_id e, enum err err)
{
    if (err == ERR_OK || err == ERR_NO_ENTRY || err == ERR_NO_LEDGER)
        return;
    for (unsigned i = 0; i < r->noted; i++)
        if (r->noted_bookie[i] == bookie)
            return;
    if (r->noted < ENSEMBLE_MAX)
        r->noted_bookie[r->noted++] = bookie;
    log_event(LOG_WARN, "ledger.recovery_hindered", F_I64("ledger", r->ledger->id),
              F_STR("bookie", bookies_id(bookies_of(r), bookie)), F_I64("entry", e), F_ERR(err));
}

static void read_done(struct link_request *q, enum err err, struct slice body)
{
    struct try *t = container_of(q, struct try, q);
    unsigned slot = t->slot;
    uint32_t bookie = t->bookie;
    entry_id e = q->entry;
    struct recovery *r = try_end(t);
    struct entry_header h = {.lac = ENTRY_NONE};
    struct view payload;

    if (!err)
        err =
            entry_open(&r->ledger->layout.digest, slice_view(body), r->ledger->id, e, &h, &payload);
    note_failure(r, bookie, e, err);
    metric_add(&r->ledger->client->counts->corrupt, err == ERR_CHECKSUM);
    if (e == ENTRY_NONE) {
        recoverer_fenced(&r->core, slot, err, h.lac);
    } else if (err) {
        recoverer_not_found(&r->core, slot, e, err);
    } else {
        struct payload *p = mem_new(struct payload);
        p->bytes = slice_part(body, (size_t)(payload.base - body.base), payload.len);
        recoverer_found(&r->core, slot, e, h.length, p);
    }
    settle(r);
}

static void read_from(void *ctx, unsigned slot, entry_id e, uint16_t flags)
{
    struct recovery *r = ctx;
    const struct layout *layout = &r->ledger->layout;
    struct try *t = try_new(r);

    t->slot = slot;
    t->bookie =
        e == ENTRY_NONE ? layout->facts.tail.bookie[slot] : layout_find(layout, e)->bookie[slot];
    t->q.done = read_done;
    link_read(bookies_link(bookies_of(r), t->bookie, LINK_RECOVERY), &t->q, flags, r->ledger->id, e,
              layout->key);
}

static void write_done(struct link_request *q, enum err err, struct slice body)
{
    struct try *t = container_of(q, struct try, q);
    uint32_t bookie = t->bookie;
    entry_id e = q->entry;
    struct recovery *r = try_end(t);

    (void)body;
    note_failure(r, bookie, e, err);
    if (err)
        bookies_suspect(bookies_of(r), bookie);
    recoverer_wrote(&r->core, bookie, e, err);
    settle(r);
}

/* The header is made anew: only length and payload are the writer's. */
enum { FRONT_MAX = BOOKIE_ADD_FRONT + ENTRY_HEADER + DIGEST_SIZE_MAX };

static struct view front_of(const struct recovery *r, const struct recoverer_write *w,
                            struct slice payload, uint8_t into[FRONT_MAX])
{
    const struct layout *layout = &r->ledger->layout;
    struct entry_header h = {
        .ledger = r->ledger->id, .entry = w->entry, .lac = w->lac, .length = w->length};
    size_t n;

    entry_prefix_with(&layout->digest, &h, slice_view(payload), into + BOOKIE_ADD_FRONT, &n);
    bookie_write_add(into, w->flags, layout->key, n + payload.len);
    return view_of(into, BOOKIE_ADD_FRONT + n);
}

static void write_to(void *ctx, uint32_t bookie, const struct recoverer_write *w)
{
    struct recovery *r = ctx;
    const struct payload *p = w->item;
    struct try *t = try_new(r);
    const struct chain rest = {.n = 1, .at = {p->bytes}};
    uint8_t front[FRONT_MAX];

    t->bookie = bookie;
    t->q.done = write_done;
    link_add(bookies_link(bookies_of(r), bookie, LINK_RECOVERY), &t->q, r->ledger->id, w->entry,
             front_of(r, w, p->bytes, front), &rest);
}

static bool spare(void *ctx, const uint32_t *not_these, unsigned n, uint32_t *out)
{
    const struct recovery *r = ctx;

    return bookies_spare(bookies_of(ctx), layout_wish(&r->ledger->layout).groups, not_these, n,
                         out);
}

/* ---- metadata ---- */

static void put(struct recovery *r, struct slice value,
                void (*then)(struct meta_call *c, const struct meta_reply *reply))
{
    slice_drop(&r->value);
    r->value = slice_share(value);
    r->call = (struct meta_call){.home = r->ledger->client->loop, .done = then};
    meta_put(r->ledger->client->meta, r->path, value, r->ledger->layout.version, &r->call);
}

/* What was written is now what the metadata says. */
static enum err written(struct recovery *r, const struct meta_reply *reply)
{
    TRY(reply->err);
    return layout_read(&r->ledger->layout, bookies_of(r), slice_view(r->value), reply->version);
}

static void marked(struct meta_call *c, const struct meta_reply *reply)
{
    struct recovery *r = container_of(c, struct recovery, call);

    recoverer_marked(&r->core, written(r, reply));
    settle(r);
}

static void mark(void *ctx)
{
    struct recovery *r = ctx;

    put(r, layout_marked(&r->ledger->layout), marked);
}

static void looked(struct meta_call *c, const struct meta_reply *reply)
{
    struct recovery *r = container_of(c, struct recovery, call);
    enum err err = reply->err;

    if (!err)
        err = layout_read(&r->ledger->layout, bookies_of(r), slice_view(reply->value),
                          reply->version);
    recoverer_saw(&r->core, err, &r->ledger->layout.facts);
    settle(r);
}

static void look(void *ctx)
{
    struct recovery *r = ctx;

    r->call = (struct meta_call){.home = r->ledger->client->loop, .done = looked};
    meta_get(r->ledger->client->meta, r->path, &r->call);
}

static void closed(struct meta_call *c, const struct meta_reply *reply)
{
    struct recovery *r = container_of(c, struct recovery, call);

    recoverer_closed(&r->core, written(r, reply));
    settle(r);
}

static void close_at(void *ctx, entry_id last, int64_t length)
{
    struct recovery *r = ctx;

    put(r,
        layout_closed(&r->ledger->layout, bookies_of(r), last, length, r->core.changed,
                      r->core.changes),
        closed);
}

static const struct recoverer_effects effects = {.mark = mark,
                                                 .look = look,
                                                 .read = read_from,
                                                 .write = write_to,
                                                 .spare = spare,
                                                 .drop = drop,
                                                 .close = close_at,
                                                 .done = done};

void recovery_start(struct ledger *l, void (*then)(void *ctx, enum err err), void *ctx)
{
    struct recovery *r = mem_new(struct recovery);

    r->ledger = l;
    r->done = then;
    r->ctx = ctx;
    list_init(&r->tries);
    enum err err = path_ledger(l->id, r->path);
    if (err)
        done(r, err, ENTRY_NONE, 0);
    else
        recoverer_start(&r->core, &l->layout.facts, &effects, r);
    settle(r);
}
