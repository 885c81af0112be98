#include "common/log.h"
#include "common/mem.h"
#include "ledger/handle.h"
#include "ledger/reader.h"
#include "metadata/paths.h"

/* An entry that was read, until it is delivered: the core's item. */
struct got {
    struct list_node node;
    entry_id id;
    struct slice payload;
};

struct reading {
    struct list_node node; /* in ledger.readings */
    struct ledger *ledger;
    struct ledger_read *read; /* NULL: cancelled, or done */
    struct entry_reader core;
    struct list_node ready; /* to be delivered */
    struct list_node spare; /* got, to be used again */
    struct list_node tries; /* under way, in order of asking */
    struct timer second;    /* when one of them is slow */
    uint64_t second_us;     /* then it is; 0: never */
    bool ended;
    enum err err;
    enum { LOOK_NOT_YET, LOOK_UNDER_WAY, LOOK_DONE } look;
    struct meta_call meta;
    unsigned users;
    struct task start;
};

struct
try {
    struct list_node node;
    struct link_request q;
    struct reading *reading;
    unsigned slot;
    struct reader_run run;
    uint32_t bookie;
    uint64_t asked_us;
    bool slow; /* the core has been told */
};

static void got_drop(void *ctx, void *item)
{
    struct got *g = item;

    (void)ctx;
    slice_drop(&g->payload);
    mem_free(g);
}

static void release(struct reading *g)
{
    struct ledger *l = g->ledger;

    if (--g->users > 0)
        return;
    mem_free(g);
    handle_release(l);
}

/* Who is to be asked last, for those who read on where this one ends. */
static void remember(struct reading *g)
{
    struct ledger *l = g->ledger;
    entry_id e = g->core.next > l->lac && l->lac >= 0 ? l->lac : g->core.next;

    l->typical = g->core.typical;
    l->avoid = g->core.avoid;
    l->avoid_in = layout_find(&l->layout, e)->first;
}

static uint32_t remembered(const struct ledger *l, entry_id first)
{
    return layout_find(&l->layout, first)->first == l->avoid_in ? l->avoid : 0;
}

static void end_tries(struct reading *g)
{
    struct list_node *node;

    while ((node = list_pop_front(&g->tries))) {
        struct try *t = list_entry(node, struct try, node);
        link_cancel(&t->q);
        mem_free(t);
    }
}

/* No more answers and no more callbacks. */
static void end(struct reading *g)
{
    struct list_node *node;

    remember(g);
    loop_cancel(g->ledger->client->loop, &g->second);
    reader_stop(&g->core);
    while ((node = list_pop_front(&g->ready)))
        got_drop(NULL, list_entry(node, struct got, node));
    while ((node = list_pop_front(&g->spare)))
        mem_free(list_entry(node, struct got, node));
    end_tries(g);
    list_remove(&g->node);
    release(g);
}

static void look_again(struct reading *g);

/* Copies of a closed ledger may have been moved to other bookies since the handle was opened. */
static bool may_have_moved(const struct reading *g)
{
    return g->err && g->look == LOOK_NOT_YET && ledger_is_closed(g->ledger);
}

/* Outside the core, which may be cancelled by what is called here. */
static void settle(struct reading *g)
{
    struct list_node *node;

    g->users++;
    while (g->read && (node = list_pop_front(&g->ready))) {
        struct got *one = list_entry(node, struct got, node);
        struct slice payload = one->payload;
        entry_id id = one->id;
        list_push_back(&g->spare, node);
        g->read->entry(g->read, id, payload);
    }
    if (g->read && g->ended && may_have_moved(g)) {
        look_again(g);
    } else if (g->read && g->ended && g->look != LOOK_UNDER_WAY) {
        struct ledger_read *r = g->read;
        enum err err = g->err;
        g->read = NULL;
        r->private = NULL;
        end(g);
        r->done(r, err);
    }
    release(g);
}

static void note_corrupt(struct reading *g, uint32_t bookie, entry_id e)
{
    struct ledger_client *c = g->ledger->client;

    metric_add(&c->counts->corrupt, 1);
    log_event(LOG_ERROR, "ledger.entry_corrupt", F_I64("ledger", g->ledger->id), F_I64("entry", e),
              F_STR("bookie", bookies_id(c->bookies, bookie)));
}

/* The stored entry e, as the bookie has sent it: shares a part of `of`. */
static struct reader_item opened(struct reading *g, uint32_t bookie, entry_id e, struct slice of,
                                 struct view stored)
{
    struct ledger *l = g->ledger;
    struct reader_item item = {0};
    struct entry_header h;
    struct view payload;

    item.err = entry_open(&l->layout.digest, stored, l->id, e, &h, &payload);
    if (item.err == ERR_CHECKSUM)
        note_corrupt(g, bookie, e);
    if (item.err)
        return item;
    if (e == l->lac)
        l->length = h.length;
    struct list_node *node = list_pop_front(&g->spare);
    struct got *one = node ? list_entry(node, struct got, node) : mem_new(struct got);
    one->id = e;
    one->payload = slice_part(of, (size_t)(payload.base - of.base), payload.len);
    item.item = one;
    item.size = payload.len;
    return item;
}

static void one_came(struct reading *g, const struct try *t, struct slice body)
{
    struct reader_item item = opened(g, t->bookie, t->run.first, body, slice_view(body));

    if (item.item)
        reader_found(&g->core, t->slot, t->run.first, item.size, item.item);
    else
        reader_failed(&g->core, t->slot, t->run.first, item.err);
}

/* More than was asked for is not looked at, nor what follows an entry that is cut off. */
static void several_came(struct reading *g, const struct try *t, struct slice body)
{
    struct reader_item items[READER_WINDOW];
    struct view rest = slice_view(body), stored;
    enum err err = ERR_OK;
    unsigned got = 0;

    while (got < t->run.n && !(err = bookie_batch_next(&rest, &stored))) {
        items[got] = opened(g, t->bookie, t->run.first + got, body, stored);
        got++;
    }
    reader_answered(&g->core, t->slot, t->run, items, got, err);
}

static void try_done(struct link_request *q, enum err err, struct slice body)
{
    struct try *t = container_of(q, struct try, q);
    struct reading *g = t->reading;

    list_remove(&t->node);
    if (err && t->run.n > 1)
        reader_answered(&g->core, t->slot, t->run, NULL, 0, err);
    else if (err)
        reader_failed(&g->core, t->slot, t->run.first, err);
    else if (t->run.n > 1)
        several_came(g, t, body);
    else
        one_came(g, t, body);
    mem_free(t);
    settle(g);
}

/* ---- a second one besides a slow one ---- */

static struct try *first_in_time(struct reading *g)
{
    list_each(&g->tries, node)
    {
        struct try *t = list_entry(node, struct try, node);
        if (!t->slow)
            return t;
    }
    return NULL;
}

static void second_later(struct reading *g)
{
    struct loop *loop = g->ledger->client->loop;
    struct try *t = first_in_time(g);

    if (!g->second_us || timer_armed(&g->second) || !t)
        return;
    uint64_t due = t->asked_us + g->second_us, now = loop_now(loop);
    loop_after(loop, &g->second, due > now ? due - now : 0);
}

static void second_due(struct timer *timer)
{
    struct reading *g = container_of(timer, struct reading, second);
    struct ledger_client *c = g->ledger->client;
    struct try *t;

    while ((t = first_in_time(g)) && t->asked_us + g->second_us <= loop_now(c->loop)) {
        t->slow = true;
        metric_add(&c->counts->second_reads, reader_slow(&g->core, t->slot, t->run));
    }
    second_later(g);
}

static struct bookie_link *link_of(const struct reading *g, uint32_t bookie, enum link_kind kind)
{
    return bookies_link(g->ledger->client->bookies, bookie, kind);
}

static void read_from(void *ctx, unsigned slot, struct reader_run run, size_t max_bytes)
{
    struct reading *g = ctx;
    struct ledger *l = g->ledger;
    struct try *t = mem_new(struct try);

    t->reading = g;
    t->slot = slot;
    t->run = run;
    t->bookie = layout_find(&l->layout, run.first)->bookie[slot];
    t->asked_us = loop_now(l->client->loop);
    t->q.done = try_done;
    list_push_back(&g->tries, &t->node);
    second_later(g);
    if (run.n > 1)
        link_read_batch(link_of(g, t->bookie, LINK_BATCH), &t->q, l->id, run.first, run.n,
                        max_bytes);
    else
        link_read(link_of(g, t->bookie, LINK_PLAIN), &t->q, 0, l->id, run.first, NULL);
}

/* Up to where the same bookies have the entries. */
static unsigned reach(void *ctx, unsigned slot, entry_id e)
{
    const struct reading *g = ctx;
    const struct layout *layout = &g->ledger->layout;
    const struct fragment *f = layout_find(layout, e);
    const bool is_last = f == &layout->fragments[layout->n - 1];

    if (g->ledger->client->conf.one_read_each ||
        !link_takes_batches(link_of(g, f->bookie[slot], LINK_BATCH)))
        return 1;
    if (is_last || f[1].first - e > READER_WINDOW)
        return READER_WINDOW;
    return (unsigned)(f[1].first - e);
}

static void deliver(void *ctx, entry_id e, void *item)
{
    struct reading *g = ctx;
    struct got *one = item;

    (void)e;
    list_push_back(&g->ready, &one->node);
}

static void done(void *ctx, enum err err)
{
    struct reading *g = ctx;

    g->ended = true;
    g->err = err;
}

static const struct reader_effects effects = {
    .read = read_from, .reach = reach, .deliver = deliver, .drop = got_drop, .done = done};

static void start_from(struct reading *g, entry_id first, size_t max_bytes)
{
    const struct reader_conf conf = {.quorum = g->ledger->layout.facts.quorum,
                                     .first = first,
                                     .last = g->read->last,
                                     .max_bytes = max_bytes,
                                     .prefer = (uint32_t)g->ledger->id,
                                     .avoid = remembered(g->ledger, first),
                                     .typical = g->ledger->typical};

    reader_start(&g->core, &conf, &effects, g);
    settle(g);
}

static void start(struct task *t)
{
    struct reading *g = container_of(t, struct reading, start);

    if (g->read)
        start_from(g, g->read->first, g->read->max_bytes);
    release(g);
}

/* ---- copies that were moved ---- */

/* Goes on where it failed. */
static void read_on(struct reading *g)
{
    size_t max = g->core.max_bytes;

    end_tries(g);
    reader_stop(&g->core);
    g->ended = false;
    start_from(g, g->core.next, max ? max - g->core.bytes : 0);
}

static void looked(struct meta_call *c, const struct meta_reply *r)
{
    struct reading *g = container_of(c, struct reading, meta);
    struct ledger *l = g->ledger;
    bool moved = !r->err && r->version != l->layout.version;

    g->look = LOOK_DONE;
    if (moved && layout_learn(&l->layout, l->client->bookies, slice_view(r->value), r->version))
        moved = false;
    if (g->read && moved)
        read_on(g);
    else if (g->read)
        settle(g);
    release(g);
}

static void look_again(struct reading *g)
{
    struct ledger *l = g->ledger;
    char path[META_KEY_MAX];

    if (path_ledger(l->id, path)) {
        g->look = LOOK_DONE;
        settle(g);
        return;
    }
    g->users++;
    g->look = LOOK_UNDER_WAY;
    g->meta = (struct meta_call){.home = l->client->loop, .done = looked};
    meta_get(l->client->meta, path, &g->meta);
}

static uint64_t second_after(const struct ledger_client *c, const struct ledger_read *r)
{
    const uint64_t us = c->conf.second_read_us;

    return r->is_urgent && (us == 0 || us > LEDGER_URGENT_US) ? LEDGER_URGENT_US : us;
}

/* Begins from the loop: an empty range is done at once, and not in the caller's stack. */
void ledger_read(struct ledger *l, struct ledger_read *r)
{
    struct reading *g = mem_new(struct reading);

    handle_hold(l);
    g->ledger = l;
    g->read = r;
    g->users = 2; /* itself, and the task */
    g->core.effects = &effects;
    g->core.ctx = g;
    g->second.run = second_due;
    g->second_us = second_after(l->client, r);
    list_init(&g->ready);
    list_init(&g->spare);
    list_init(&g->tries);
    list_push_back(&l->readings, &g->node);
    r->private = g;
    g->start.run = start;
    loop_post(l->client->loop, &g->start);
}

static void cancel(struct reading *g)
{
    g->read->private = NULL;
    g->read = NULL;
    end(g);
}

void ledger_read_cancel(struct ledger_read *r)
{
    if (r->private)
        cancel(r->private);
}

void readings_cancel(struct ledger *l)
{
    while (!list_empty(&l->readings))
        cancel(list_entry(l->readings.next, struct reading, node));
}
