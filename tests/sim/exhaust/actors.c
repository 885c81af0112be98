#include <string.h>

#include "proto/bookie_frame.h"
#include "tests/sim/exhaust/model.h"

/* Entry e as an item of the cores. */
static void *item_of(entry_id e)
{
    return (void *)((uintptr_t)e + 1);
}

static entry_id entry_of(const void *item)
{
    return (entry_id)((uintptr_t)item - 1);
}

static struct ledger_facts facts_of(const struct record *r)
{
    return (struct ledger_facts){.state = r->state,
                                 .quorum = setting.quorum,
                                 .last = r->last,
                                 .length = r->length,
                                 .tail = r->fragment[r->n - 1]};
}

/* One that is none of these, or nobody: all of it is tried. */
static bool any_spare(const uint32_t *not_these, unsigned n, uint32_t *out)
{
    uint32_t free_ones[BOOKIES];
    unsigned count = 0;

    for (uint32_t b = 0; b < ENSEMBLE + setting.spares; b++) {
        bool taken = false;
        for (unsigned i = 0; i < n; i++)
            taken |= not_these[i] == b;
        if (!taken)
            free_ones[count++] = b;
    }
    unsigned which = count ? choose(count + 1) : 0;
    if (which == count)
        return false;
    *out = free_ones[which];
    say("b%u shall take a failed one's place", *out);
    return true;
}

/* ---- the writer: effects ---- */

static void send_copies(void *ctx, uint32_t slots, const struct appender_add *add)
{
    (void)ctx;
    if (add->lac >= add->entry)
        fault("I9: entry %d says that %d is confirmed", (int)add->entry, (int)add->lac);
    if (add->length != length_at(add->entry))
        fault("I9: entry %d is sent with length %d", (int)add->entry, (int)add->length);
    for (uint8_t s = 0; s < ENSEMBLE; s++)
        if (slots & 1u << s)
            ask(&(struct exchange){.used = true,
                                   .heard = true,
                                   .actor = WRITER,
                                   .bookie = (uint8_t)world.appender.tail.bookie[s],
                                   .slot = s,
                                   .add = true,
                                   .plain = true,
                                   .entry = (int8_t)add->entry,
                                   .lac = (int8_t)add->lac});
}

static void confirmed(void *ctx, entry_id e, void *item)
{
    (void)ctx;
    say("the writer confirms %d", (int)e);
    if (e != (entry_id)world.confirmed || entry_of(item) != e)
        fault("I4: entry %d is confirmed, %u was due", (int)e, world.confirmed);
    world.confirmed++;
}

static void failed(void *ctx, entry_id e, void *item, enum err why)
{
    (void)ctx;
    (void)item;
    say("the writer fails %d: %s", (int)e, err_name(why));
}

static bool spare_for_slot(void *ctx, const struct fragment *next, unsigned slot, bool must,
                           uint32_t *out)
{
    (void)ctx;
    (void)slot;
    (void)must;
    return any_spare(next->bookie, ENSEMBLE, out);
}

static void change_put(void *ctx)
{
    struct meta_exchange m = {.put = true,
                              .change = true,
                              .actor = WRITER,
                              .expected = world.writer_record.version,
                              .record = world.writer_record};
    struct record *r = &m.record;

    (void)ctx;
    while (r->n > 0 && r->fragment[r->n - 1].first >= world.changer.wanted.first)
        r->n--;
    r->fragment[r->n++] = world.changer.wanted;
    meta_ask(&m);
}

static void change_look(void *ctx)
{
    (void)ctx;
    meta_ask(&(struct meta_exchange){.actor = WRITER, .change = true});
}

static void wait(void *ctx, unsigned tries)
{
    (void)ctx;
    (void)tries;
    world.waits = true;
}

static void change_done(void *ctx, enum err err)
{
    (void)ctx;
    world.change_ended = true;
    world.change_err = err;
}

static const struct changer_effects to_change = {
    .put = change_put, .look = change_look, .wait = wait, .done = change_done};

static void change(void *ctx, const struct fragment *next)
{
    (void)ctx;
    if (world.record.n == FRAGMENTS)
        fault("more fragments than there is room for");
    say("the writer changes bookies from %d on", (int)next->first);
    changer_start(&world.changer, ENSEMBLE, &world.appender.tail, next, &to_change, NULL);
}

static void lack(void *ctx, uint32_t slots)
{
    (void)ctx;
    (void)slots;
}

static const struct appender_effects to_append = {.send = send_copies,
                                                  .confirm = confirmed,
                                                  .fail = failed,
                                                  .spare = spare_for_slot,
                                                  .change = change,
                                                  .lack = lack};

static void close_put(void *ctx)
{
    struct meta_exchange m = {.put = true,
                              .actor = WRITER,
                              .expected = world.writer_record.version,
                              .record = world.writer_record};

    (void)ctx;
    m.record.state = LEDGER_CLOSED;
    m.record.last = world.closer.last;
    m.record.length = world.closer.length;
    meta_ask(&m);
}

static void close_look(void *ctx)
{
    (void)ctx;
    meta_ask(&(struct meta_exchange){.actor = WRITER});
}

static void close_done(void *ctx, enum err err)
{
    (void)ctx;
    say("the writer's close ends: %s", err_name(err));
    world.writer = STOPPED;
    world.sealed = !err;
}

static const struct closer_effects to_close = {
    .put = close_put, .look = close_look, .wait = wait, .done = close_done};

/* ---- the writer ---- */

void writer_begin(void)
{
    static const struct appender_conf conf = {.window_bytes = 1000, .changes_max = 2};

    world.writer_record = world.record;
    appender_init(&world.appender, setting.quorum, &world.record.fragment[0], &conf, &to_append,
                  NULL);
    appender_move(&world.appender, world.ring, RING);
}

void writer_append(void)
{
    entry_id e = world.appender.next;
    enum err err = appender_append(&world.appender, item_of(e), size_at(e));

    say("the writer appends %d", (int)e);
    if (err)
        fault("an append that there was room for: %s", err_name(err));
}

void writer_close(void)
{
    say("the writer closes at %d", (int)world.appender.lac);
    world.waits = false;
    world.writer = CLOSING;
    appender_stop(&world.appender, ERR_CLOSED);
    closer_start(&world.closer, world.appender.lac, world.appender.length, &to_close, NULL);
}

void writer_wake(void)
{
    world.waits = false;
    if (world.writer == WRITING)
        changer_waited(&world.changer);
    else
        closer_waited(&world.closer);
}

void writer_answer(const struct exchange *x, enum err err)
{
    if (err)
        appender_refused(&world.appender, x->bookie, x->entry, err);
    else
        appender_acked(&world.appender, x->bookie, x->entry);
}

void writer_meta(const struct meta_exchange *m, enum err err)
{
    struct ledger_facts facts = {0};

    if (!err) {
        world.writer_record = m->record;
        facts = facts_of(&m->record);
    }
    if (m->change && m->put)
        changer_put(&world.changer, err);
    else if (m->change)
        changer_saw(&world.changer, err, &facts);
    else if (m->put)
        closer_put(&world.closer, err);
    else
        closer_saw(&world.closer, err, &facts);
}

static bool is_changing(void)
{
    return world.writer == WRITING && world.appender.state == APPENDER_CHANGING;
}

static void writer_settle(void)
{
    if (world.change_ended) {
        world.change_ended = false;
        if (is_changing())
            appender_changed(&world.appender, world.change_err);
    }
    if (world.writer != WRITING)
        return;
    if (world.appender.state == APPENDER_FENCED) {
        say("the writer is fenced, and stops");
        world.writer = STOPPED;
        world.waits = false;
    } else if (world.appender.state == APPENDER_FAILED) {
        writer_close();
    }
}

/* ---- the recoverer: effects ---- */

static void recoverer_put(const struct record *r)
{
    meta_ask(&(struct meta_exchange){
        .put = true, .actor = RECOVERER, .expected = world.recoverer_record.version, .record = *r});
}

static void mark(void *ctx)
{
    struct record r = world.recoverer_record;

    (void)ctx;
    r.state = LEDGER_IN_RECOVERY;
    recoverer_put(&r);
}

static void look(void *ctx)
{
    (void)ctx;
    meta_ask(&(struct meta_exchange){.actor = RECOVERER});
}

/* What lies behind the first entry that nobody ever wrote is asked for in advance, and never looked
 * at: only its fencing counts. */
static void read_from(void *ctx, unsigned slot, entry_id e, uint16_t flags)
{
    const struct fragment *f = fragment_at(&world.recoverer_record, e == ENTRY_NONE ? ENTRIES : e);
    bool beyond = e > (entry_id)setting.entries;

    (void)ctx;
    if (e != ENTRY_NONE && !world.covered)
        fault("I5: entry %d is read for the end before the ledger is fenced", (int)e);
    ask(&(struct exchange){.used = true,
                           .heard = !beyond,
                           .actor = RECOVERER,
                           .bookie = (uint8_t)f->bookie[slot],
                           .slot = (uint8_t)slot,
                           .fencing = flags & BOOKIE_DO_FENCING,
                           .entry = (int8_t)(beyond ? ENTRY_NONE : e)});
}

static void write_to(void *ctx, uint32_t bookie, const struct recoverer_write *w)
{
    (void)ctx;
    if (w->lac >= w->entry)
        fault("I9: a copy of entry %d says that %d is confirmed", (int)w->entry, (int)w->lac);
    if (w->length != length_at(w->entry) || entry_of(w->item) != w->entry)
        fault("I9: entry %d is copied with length %d", (int)w->entry, (int)w->length);
    ask(&(struct exchange){.used = true,
                           .heard = true,
                           .actor = RECOVERER,
                           .bookie = (uint8_t)bookie,
                           .add = true,
                           .plain = !(w->flags & BOOKIE_RECOVERY_ADD),
                           .entry = (int8_t)w->entry,
                           .lac = (int8_t)w->lac});
}

static bool spare(void *ctx, const uint32_t *not_these, unsigned n, uint32_t *out)
{
    (void)ctx;
    return any_spare(not_these, n, out);
}

static void drop(void *ctx, void *item)
{
    (void)ctx;
    (void)item;
}

static void close_at(void *ctx, entry_id last, int64_t length)
{
    struct record r = world.recoverer_record;
    const struct recoverer *c = &world.recoverer;

    (void)ctx;
    while (c->changes > 0 && r.n > 0 && r.fragment[r.n - 1].first >= c->changed[0].first)
        r.n--;
    if (r.n + c->changes > FRAGMENTS) {
        fault("more fragments than there is room for");
        return;
    }
    for (unsigned i = 0; i < c->changes; i++)
        r.fragment[r.n++] = c->changed[i];
    r.state = LEDGER_CLOSED;
    r.last = last;
    r.length = length;
    recoverer_put(&r);
}

static void done(void *ctx, enum err err, entry_id last, int64_t length)
{
    (void)ctx;
    say("the recovery ends: %s, last %d", err_name(err), (int)last);
    world.ended = true;
    world.end_err = err;
    if (!err && (world.record.state != LEDGER_CLOSED || world.record.last != last ||
                 world.record.length != length))
        fault("I2: the recoverer believes in an end that is not in the metadata");
}

static const struct recoverer_effects to_recover = {.mark = mark,
                                                    .look = look,
                                                    .read = read_from,
                                                    .write = write_to,
                                                    .spare = spare,
                                                    .drop = drop,
                                                    .close = close_at,
                                                    .done = done};

/* ---- the recoverer ---- */

void recoverer_begin(void)
{
    say("the recoverer begins");
    world.recovery = FINDING;
    look(NULL);
}

void recoverer_answer(const struct exchange *x, enum err err)
{
    struct recoverer *r = &world.recoverer;

    if (x->add)
        recoverer_wrote(r, x->bookie, x->entry, err);
    else if (x->entry == ENTRY_NONE)
        recoverer_fenced(r, x->slot, err, x->lac);
    else if (err)
        recoverer_not_found(r, x->slot, x->entry, err);
    else
        recoverer_found(r, x->slot, x->entry, length_at(x->entry), item_of(x->entry));
}

static void again(void)
{
    world.recovery = ++world.attempts == ATTEMPTS ? OVER : IDLE;
}

static void found_ledger(enum err err, const struct ledger_facts *facts)
{
    if (err) {
        again();
        return;
    }
    world.recovery = RECOVERING;
    recoverer_start(&world.recoverer, facts, &to_recover, NULL);
}

void recoverer_meta(const struct meta_exchange *m, enum err err)
{
    struct ledger_facts facts = {0};

    if (!err) {
        world.recoverer_record = m->record;
        facts = facts_of(&m->record);
    }
    if (world.recovery == FINDING)
        found_ledger(err, &facts);
    else if (!m->put)
        recoverer_saw(&world.recoverer, err, &facts);
    else if (m->record.state == LEDGER_IN_RECOVERY)
        recoverer_marked(&world.recoverer, err);
    else
        recoverer_closed(&world.recoverer, err);
}

static void forget(void)
{
    for (unsigned i = 0; i < world.top; i++)
        world.exchange[i].heard &= world.exchange[i].actor != RECOVERER;
    for (unsigned i = 0; i < META_EXCHANGES; i++)
        world.meta[i].heard &= world.meta[i].actor != RECOVERER;
    memset(&world.recoverer, 0, sizeof world.recoverer);
}

void recoverer_crash(void)
{
    say("the recoverer crashes, and begins again");
    world.crashes--;
    recoverer_stop(&world.recoverer);
    forget();
    again();
}

void actors_settle(void)
{
    writer_settle();
    if (!world.ended)
        return;
    world.ended = false;
    forget();
    if (world.end_err)
        again();
    else
        world.recovery = OVER;
}

/* ---- whose answers still count ---- */

static bool recoverer_waits(const struct exchange *x)
{
    const struct recoverer *r = &world.recoverer;

    if (world.recovery != RECOVERING)
        return false;
    if (x->add)
        return r->state == RECOVERER_COPYING;
    if (x->entry == ENTRY_NONE)
        return r->state == RECOVERER_FENCING;
    return (r->state == RECOVERER_COPYING && x->entry > r->pushed && !r->has_end) ||
           (r->state == RECOVERER_MEASURING && x->entry == r->end);
}

bool actor_waits(const struct exchange *x)
{
    return x->actor == WRITER ? world.writer == WRITING : recoverer_waits(x);
}

bool actor_waits_meta(const struct meta_exchange *m)
{
    if (m->actor == WRITER)
        return m->change ? is_changing() : world.writer == CLOSING;
    return world.recovery == FINDING || world.recovery == RECOVERING;
}
