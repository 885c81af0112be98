#include <assert.h>
#include <string.h>

#include "common/log.h"
#include "common/mem.h"
#include "ledger/appender.h"
#include "ledger/handle.h"

enum {
    RING_FIRST = 64,
    CHANGES_MAX = 64,           /* of one ledger's bookies */
    TRY_AGAIN_US = 1000 * 1000, /* for a spare, when no bookie says that it is there */
};

/* One entry on its way: a request for each bookie of its write set. */
struct add_copy {
    struct link_request q;
    struct add *add;
    uint32_t bookie;
    bool under_way, answered;
};

struct add {
    struct list_node node; /* in writer.alive, or among the client's spare ones */
    struct writer *writer;
    struct ledger_append *append; /* NULL once its fate is known */
    unsigned under_way;
    unsigned stored; /* by so many */
    struct add_copy copy[];
};

struct writer {
    struct ledger *ledger;
    struct appender core;
    struct change *change; /* of its bookies, under way */
    struct bookies_watch watch;
    struct timer try_again;
    uint64_t lacking_since;
    struct list_node alive;
    struct list_node confirmed, failed; /* appends whose done() is due */
    struct task tell;
    bool telling; /* the task waits or runs */
    bool gone;
};

static struct loop *loop_of(const struct writer *w)
{
    return w->ledger->client->loop;
}

/* ---- failed bookies ---- */

static void stop_lacking(struct writer *w)
{
    struct ledger_client *c = w->ledger->client;

    loop_cancel(c->loop, &w->try_again);
    if (!w->lacking_since)
        return;
    w->lacking_since = 0;
    metric_add(&c->counts->lacking, -1);
    bookies_unwatch(c->bookies, &w->watch);
}

/* A writer that takes no more has no need of other bookies. */
static void stop_change(struct writer *w)
{
    if (w->core.state == APPENDER_OPEN || w->core.state == APPENDER_CHANGING)
        return;
    change_abandon(&w->change);
    stop_lacking(w);
}

/* ---- the adds ---- */

static void copy_done(struct link_request *q, enum err err, struct slice body);

void adds_init(struct ledger_client *c)
{
    for (unsigned w = 0; w <= ENSEMBLE_MAX; w++)
        list_init(&c->spare_adds[w]);
}

void adds_free(struct ledger_client *c)
{
    for (unsigned w = 0; w <= ENSEMBLE_MAX; w++) {
        struct list_node *node;
        while ((node = list_pop_front(&c->spare_adds[w])))
            mem_free(list_entry(node, struct add, node));
    }
}

static struct add *add_new(unsigned copies)
{
    struct add *d = mem_alloc(sizeof *d + copies * sizeof d->copy[0]);

    for (unsigned k = 0; k < copies; k++)
        d->copy[k] = (struct add_copy){.q.done = copy_done, .add = d};
    return d;
}

static struct add *add_take(struct writer *w, struct ledger_append *a)
{
    struct ledger_client *c = w->ledger->client;
    struct list_node *node = list_pop_front(&c->spare_adds[w->core.quorum.write]);
    struct add *d;

    if (node) {
        d = list_entry(node, struct add, node);
        c->spares--;
    } else {
        d = add_new(w->core.quorum.write);
    }
    d->writer = w;
    d->append = a;
    d->stored = 0;
    for (unsigned k = 0; k < w->core.quorum.write; k++)
        d->copy[k].answered = true; /* nobody has been asked yet */
    list_push_back(&w->alive, &d->node);
    return d;
}

/* Once its fate is known and nobody is to answer any more. */
static void add_give_back(struct add *d)
{
    struct writer *w = d->writer;
    struct ledger_client *c = w->ledger->client;

    if (d->append || d->under_way > 0)
        return;
    list_remove(&d->node);
    if (c->spares == SPARE_ADDS) {
        mem_free(d);
        return;
    }
    c->spares++;
    list_push_front(&c->spare_adds[w->core.quorum.write], &d->node);
}

static int slot_of(const struct writer *w, uint32_t bookie)
{
    for (unsigned s = 0; s < w->core.quorum.ensemble; s++)
        if (w->core.tail.bookie[s] == bookie)
            return (int)s;
    return -1;
}

static bool has_failed_before(const struct writer *w, uint32_t bookie)
{
    int s = slot_of(w, bookie);

    return s < 0 || w->core.failed & 1u << s;
}

/* Once for each failure, not for all that was under way to it. */
static void note_failure(struct writer *w, uint32_t bookie, entry_id e, enum err err)
{
    struct bookies *bookies = w->ledger->client->bookies;
    bool fatal = err_class(err) == CLASS_FATAL;

    if (w->core.state == APPENDER_FAILED || w->core.state == APPENDER_FENCED)
        return;
    if (!fatal && has_failed_before(w, bookie))
        return;
    log_event(LOG_WARN, fatal ? "ledger.fenced" : "ledger.bookie_failed",
              F_I64("ledger", w->ledger->id), F_STR("bookie", bookies_id(bookies, bookie)),
              F_I64("entry", e), F_I64("last", w->core.lac), F_ERR(err));
    if (!fatal)
        bookies_suspect(bookies, bookie);
}

static const char *who(const struct writer *w, const struct add_copy *c)
{
    return bookies_id(w->ledger->client->bookies, c->bookie);
}

/* For whoever asks what took so long.  Who was late is looked up only when it is worth it. */
static void note_stored(struct writer *w, struct add_copy *c)
{
    struct ledger_append *a = c->add->append;
    const uint64_t slow_us = w->ledger->client->conf.slow_us;

    c->answered = true;
    if (++c->add->stored != w->core.quorum.ack || !a)
        return;
    a->safe_us = loop_now(loop_of(w));
    a->last = who(w, c);
    if (slow_us == 0 || a->safe_us - a->sent_us < slow_us)
        return;
    for (unsigned k = 0; k < w->core.quorum.write && !a->silent; k++)
        if (!c->add->copy[k].answered)
            a->silent = who(w, &c->add->copy[k]);
}

static void copy_done(struct link_request *q, enum err err, struct slice body)
{
    struct add_copy *c = container_of(q, struct add_copy, q);
    struct add *d = c->add;
    struct writer *w = d->writer;

    (void)body;
    c->under_way = false;
    if (err) {
        note_failure(w, c->bookie, q->entry, err);
        appender_refused(&w->core, c->bookie, q->entry, err);
    } else {
        note_stored(w, c);
        appender_acked(&w->core, c->bookie, q->entry);
    }
    d->under_way--;
    add_give_back(d);
    stop_change(w);
}

static void take_back(struct add_copy *c)
{
    if (!c->under_way)
        return;
    link_cancel(&c->q);
    c->under_way = false;
    c->add->under_way--;
}

/* What is under way to a bookie that is none of ours any more, confirmed without it long ago,
 * holds memory for nothing. */
static void forget_the_replaced(struct writer *w)
{
    list_each(&w->alive, node)
    {
        struct add *d = list_entry(node, struct add, node);
        for (unsigned k = 0; k < w->core.quorum.write; k++)
            if (slot_of(w, d->copy[k].bookie) < 0)
                take_back(&d->copy[k]);
        add_give_back(d);
    }
}

/* The payload, in as many slices as leave room for the front; drop what it gives in *own. */
static const struct chain *payload_of(const struct ledger_append *a, struct chain *own)
{
    const size_t len = chain_len(&a->payload);
    size_t at = 0;

    if (a->payload.n < CHAIN_MAX)
        return &a->payload;
    struct slab *s = slab_new(len);
    for (unsigned i = 0; i < a->payload.n; at += a->payload.at[i++].len)
        memcpy(slab_bytes(s) + at, a->payload.at[i].base, a->payload.at[i].len);
    chain_push(own, slice_take(&s, len));
    return own;
}

enum { ADD_FRONT = BOOKIE_ADD_FRONT + ENTRY_PREFIX };

/* Everything before the payload: the same bytes for each bookie. */
static void write_front(const struct writer *w, const struct appender_add *add, uint32_t crc,
                        size_t len, uint8_t into[ADD_FRONT])
{
    struct entry_header h = {
        .ledger = w->ledger->id, .entry = add->entry, .lac = add->lac, .length = add->length};

    bookie_write_add(into, 0, w->ledger->layout.key, ENTRY_PREFIX + len);
    entry_prefix(&h, crc, len, into + BOOKIE_ADD_FRONT);
}

/* ---- effects ---- */

static void send_copies(void *ctx, uint32_t slots, const struct appender_add *add)
{
    struct writer *w = ctx;
    struct add *d = add->item;
    struct chain own = {0};
    const struct chain *payload = payload_of(d->append, &own);
    uint8_t front[ADD_FRONT];

    write_front(w, add, d->append->crc, chain_len(payload), front);
    d->append->id = add->entry;
    for (unsigned k = 0; k < w->core.quorum.write; k++) {
        struct add_copy *c = &d->copy[k];
        unsigned slot = quorum_slot(w->core.quorum, add->entry, k);
        if (!(slots & 1u << slot))
            continue;
        take_back(c);
        c->bookie = w->core.tail.bookie[slot];
        c->answered = false;
        c->under_way = true;
        d->under_way++;
        link_add(bookies_link(w->ledger->client->bookies, c->bookie, LINK_PLAIN), &c->q,
                 w->ledger->id, add->entry, view_of(front, sizeof front), payload);
    }
    chain_drop(&own);
}

static void tell_later(struct writer *w, struct list_node *which, struct add *d)
{
    list_push_back(which, &d->append->node);
    d->append = NULL;
    add_give_back(d);
    if (w->telling)
        return;
    w->telling = true;
    handle_hold(w->ledger);
    loop_post(loop_of(w), &w->tell);
}

static void confirmed(void *ctx, entry_id e, void *item)
{
    struct writer *w = ctx;

    (void)e;
    tell_later(w, &w->confirmed, item);
}

static void failed(void *ctx, entry_id e, void *item, enum err why)
{
    struct writer *w = ctx;

    (void)e;
    (void)why;
    tell_later(w, &w->failed, item);
}

static bool spare(void *ctx, const struct fragment *next, unsigned slot, bool must, uint32_t *out)
{
    struct writer *w = ctx;

    const struct bookies_wish wish = layout_wish(&w->ledger->layout);

    return bookies_replace(w->ledger->client->bookies, &wish, next->bookie, slot, must, out);
}

/* Each member is counted once among the ledgers that are written at its bookie. */
static void use(struct writer *w, const struct fragment *f, int by)
{
    for (unsigned s = 0; s < w->core.quorum.ensemble; s++)
        bookies_use(w->ledger->client->bookies, f->bookie[s], by);
}

static void changed(void *ctx, enum err err)
{
    struct writer *w = ctx;
    struct fragment old = w->core.tail;

    w->change = NULL;
    if (!err) {
        log_event(LOG_INFO, "ledger.ensemble_changed", F_I64("ledger", w->ledger->id),
                  F_I64("first", w->core.wanted.first), F_U64("changes", w->core.changes));
        metric_add(&w->ledger->client->counts->changes, 1);
    }
    appender_changed(&w->core, err);
    use(w, &w->core.tail, +1);
    use(w, &old, -1);
    forget_the_replaced(w);
    stop_change(w);
}

static void change(void *ctx, const struct fragment *next)
{
    struct writer *w = ctx;

    w->change = change_start(w->ledger, next, changed, w);
}

static void lack(void *ctx, uint32_t slots)
{
    struct writer *w = ctx;
    struct ledger_client *c = w->ledger->client;
    unsigned n = (unsigned)__builtin_popcount(slots);

    if (slots && !w->lacking_since) {
        w->lacking_since = loop_now(c->loop);
        metric_add(&c->counts->lacking, 1);
        bookies_watch(c->bookies, &w->watch);
        log_event(LOG_WARN, "ledger.bookies_lacking", F_I64("ledger", w->ledger->id),
                  F_U64("failed", n), F_U64("of", w->core.quorum.ensemble),
                  F_U64("writable", bookies_writable(c->bookies)));
    } else if (!slots && w->lacking_since) {
        log_event(LOG_INFO, "ledger.bookies_restored", F_I64("ledger", w->ledger->id),
                  F_U64("after_us", loop_now(c->loop) - w->lacking_since));
        stop_lacking(w);
    }
    if (slots && !timer_armed(&w->try_again))
        loop_after(c->loop, &w->try_again, TRY_AGAIN_US);
}

static const struct appender_effects effects = {.send = send_copies,
                                                .confirm = confirmed,
                                                .fail = failed,
                                                .spare = spare,
                                                .change = change,
                                                .lack = lack};

static void bookies_changed(struct bookies_watch *watch)
{
    struct writer *w = container_of(watch, struct writer, watch);

    appender_try(&w->core);
    stop_change(w);
}

static void try_again(struct timer *t)
{
    struct writer *w = container_of(t, struct writer, try_again);

    appender_try(&w->core);
    stop_change(w);
    if (w->lacking_since && !timer_armed(t))
        loop_after(loop_of(w), t, TRY_AGAIN_US);
}

/* ---- telling the owner: nothing is confirmed after a failure, so the order is this ---- */

static void end(struct writer *w)
{
    mem_free(w->core.ring);
    mem_free(w);
}

static void tell(struct task *t)
{
    struct writer *w = container_of(t, struct writer, tell);
    struct ledger *l = w->ledger;
    struct list_node *node;

    while (!w->gone && (node = list_pop_front(&w->confirmed))) {
        struct ledger_append *a = list_entry(node, struct ledger_append, node);
        a->done(a, ERR_OK, a->id);
    }
    while (!w->gone && (node = list_pop_front(&w->failed))) {
        struct ledger_append *a = list_entry(node, struct ledger_append, node);
        a->done(a, w->core.why, a->id);
    }
    w->telling = false;
    if (w->gone)
        end(w);
    handle_release(l);
}

/* ---- the writer ---- */

struct writer *writer_new(struct ledger *l)
{
    struct writer *w = mem_new(struct writer);

    w->ledger = l;
    list_init(&w->alive);
    list_init(&w->confirmed);
    list_init(&w->failed);
    w->tell.run = tell;
    w->watch.changed = bookies_changed;
    w->try_again.run = try_again;
    struct appender_conf conf = {.window_bytes = l->client->conf.window_bytes,
                                 .changes_max = CHANGES_MAX,
                                 .delay_changes = l->client->conf.delay_changes};
    appender_init(&w->core, l->layout.facts.quorum, &l->layout.facts.tail, &conf, &effects, w);
    use(w, &w->core.tail, +1);
    return w;
}

void writer_stop(struct writer *w, enum err why)
{
    appender_stop(&w->core, why);
    stop_change(w);
}

/* Whoever is called back while this happens finds the writer gone. */
void writer_drop(struct writer **writer)
{
    struct writer *w = *writer;
    struct list_node *node;

    *writer = NULL;
    if (!w)
        return;
    change_abandon(&w->change);
    stop_lacking(w);
    while ((node = list_pop_front(&w->alive))) {
        struct add *d = list_entry(node, struct add, node);
        for (unsigned k = 0; k < w->core.quorum.write; k++)
            link_cancel(&d->copy[k].q);
        mem_free(d);
    }
    use(w, &w->core.tail, -1);
    w->gone = true;
    if (!w->telling)
        end(w);
}

/* Small at first: most ledgers never have many entries in flight. */
static bool grow(struct writer *w)
{
    size_t room = w->core.room ? 2 * w->core.room : RING_FIRST;
    struct appender_slot *old = w->core.ring;

    if (room >= 2 * (size_t)w->ledger->client->conf.window_entries)
        return false;
    appender_move(&w->core, mem_alloc(room * sizeof *old), room);
    mem_free(old);
    return true;
}

static bool window_is_full(const struct writer *w)
{
    return w->core.next - w->core.lac - 1 >= (entry_id)w->ledger->client->conf.window_entries;
}

static bool ring_is_full(const struct writer *w)
{
    return (size_t)(w->core.next - w->core.lac - 1) == w->core.room;
}

enum err ledger_append(struct ledger *l, struct ledger_append *a)
{
    struct writer *w = l->writer;
    size_t len = chain_len(&a->payload);

    if (!w)
        return ERR_CLOSED;
    if (len > BOOKIE_FRAME_MAX - BOOKIE_ADD_FRONT - ENTRY_PREFIX)
        return ERR_TOO_BIG;
    if (w->core.state == APPENDER_OPEN && window_is_full(w))
        return ERR_BUSY;
    if (ring_is_full(w) && !grow(w))
        return ERR_BUSY;
    a->sent_us = loop_now(loop_of(w));
    a->safe_us = 0;
    a->last = a->silent = NULL;
    struct add *d = add_take(w, a);
    enum err err = appender_append(&w->core, d, (uint32_t)len);
    if (err) {
        d->append = NULL;
        add_give_back(d);
    }
    return err;
}

entry_id writer_last_confirmed(const struct writer *w)
{
    return w->core.lac;
}

int64_t writer_length(const struct writer *w)
{
    return w->core.length;
}

bool writer_is_fenced(const struct writer *w)
{
    return w->core.state == APPENDER_FENCED;
}
