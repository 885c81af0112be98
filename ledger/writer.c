#include <assert.h>
#include <string.h>

#include "common/log.h"
#include "common/mem.h"
#include "ledger/appender.h"
#include "ledger/handle.h"

enum { RING_FIRST = 64 };

/* One entry on its way: a request for each bookie of its write set. */
struct add_copy {
    struct link_request q;
    struct add *add;
    unsigned slot;
    bool answered;
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
    uint32_t members[ENSEMBLE_MAX];
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

static void note_failure(struct writer *w, unsigned slot, entry_id e, enum err err)
{
    struct bookies *bookies = w->ledger->client->bookies;
    bool fatal = err_class(err) == CLASS_FATAL;

    if (w->core.state != APPENDER_OPEN)
        return;
    log_event(LOG_WARN, fatal ? "ledger.fenced" : "ledger.failed", F_I64("ledger", w->ledger->id),
              F_STR("bookie", bookies_id(bookies, w->members[slot])), F_I64("entry", e),
              F_I64("last", w->core.lac), F_ERR(err));
    if (!fatal)
        bookies_suspect(bookies, w->members[slot]);
}

static const char *who(const struct writer *w, const struct add_copy *c)
{
    return bookies_id(w->ledger->client->bookies, w->members[c->slot]);
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
    if (err) {
        note_failure(w, c->slot, q->entry, err);
        appender_refused(&w->core, c->slot, err);
    } else {
        note_stored(w, c);
        appender_acked(&w->core, c->slot, q->entry);
    }
    d->under_way--;
    add_give_back(d);
}

/* The payload, in as many slices as leave room for the front. */
static struct chain payload_of(const struct ledger_append *a)
{
    struct chain c = {0};
    size_t len = chain_len(&a->payload), at = 0;

    if (a->payload.n < CHAIN_MAX)
        return chain_share(&a->payload);
    struct slab *s = slab_new(len);
    for (unsigned i = 0; i < a->payload.n; at += a->payload.at[i++].len)
        memcpy(slab_bytes(s) + at, a->payload.at[i].base, a->payload.at[i].len);
    chain_push(&c, slice_take(&s, len));
    return c;
}

/* Everything before the payload: the same bytes for each bookie. */
static struct slice front_of(const struct writer *w, const struct appender_add *add, uint32_t crc,
                             size_t len)
{
    struct entry_header h = {
        .ledger = w->ledger->id, .entry = add->entry, .lac = add->lac, .length = add->length};
    struct slab *s = slab_new(BOOKIE_ADD_FRONT + ENTRY_PREFIX);

    bookie_write_add(slab_bytes(s), 0, w->ledger->layout.key, ENTRY_PREFIX + len);
    entry_prefix(&h, crc, len, slab_bytes(s) + BOOKIE_ADD_FRONT);
    return slice_take(&s, BOOKIE_ADD_FRONT + ENTRY_PREFIX);
}

static struct chain frame_of(struct slice front, const struct chain *payload)
{
    struct chain c = {0};

    chain_push(&c, slice_share(front));
    for (unsigned i = 0; i < payload->n; i++)
        chain_push(&c, slice_share(payload->at[i]));
    return c;
}

/* ---- effects ---- */

static void send_copies(void *ctx, uint32_t slots, const struct appender_add *add)
{
    struct writer *w = ctx;
    struct add *d = add->item;
    struct chain payload = payload_of(d->append);
    struct slice front = front_of(w, add, d->append->crc, chain_len(&payload));

    d->append->id = add->entry;
    for (unsigned k = 0; k < w->core.quorum.write; k++) {
        struct add_copy *c = &d->copy[k];
        struct chain frame = frame_of(front, &payload);
        c->slot = quorum_slot(w->core.quorum, add->entry, k);
        c->answered = false;
        assert(slots & 1u << c->slot);
        d->under_way++;
        link_add(bookies_link(w->ledger->client->bookies, w->members[c->slot], LINK_PLAIN), &c->q,
                 w->ledger->id, add->entry, &frame);
    }
    slice_drop(&front);
    chain_drop(&payload);
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

static const struct appender_effects effects = {
    .send = send_copies, .confirm = confirmed, .fail = failed};

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
    appender_init(&w->core, l->layout.facts.quorum, l->client->conf.window_bytes, &effects, w);
    for (unsigned s = 0; s < w->core.quorum.ensemble; s++) {
        w->members[s] = l->layout.facts.tail.bookie[s];
        bookies_use(l->client->bookies, w->members[s], +1);
    }
    return w;
}

void writer_stop(struct writer *w, enum err why)
{
    appender_stop(&w->core, why);
}

/* Whoever is called back while this happens finds the writer gone. */
void writer_drop(struct writer **writer)
{
    struct writer *w = *writer;
    struct list_node *node;

    *writer = NULL;
    if (!w)
        return;
    while ((node = list_pop_front(&w->alive))) {
        struct add *d = list_entry(node, struct add, node);
        for (unsigned k = 0; k < w->core.quorum.write; k++)
            link_cancel(&d->copy[k].q);
        mem_free(d);
    }
    for (unsigned s = 0; s < w->core.quorum.ensemble; s++)
        bookies_use(w->ledger->client->bookies, w->members[s], -1);
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
