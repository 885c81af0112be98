#include <string.h>

#include "common/mem.h"
#include "tests/sim/actor.h"

enum { RETRY_MAX = 100, DEATH_PER_MILLE = 4 };

static bool writer_may_go_on(const struct sim *s)
{
    return s->actor[WRITER]->writer != STOPPED;
}

static void find_event(struct sim *s, struct event *e);

static void find_later(struct actor *a, unsigned delay)
{
    struct event *e = later(a->sim, delay, find_event);

    a->recovery = IDLE;
    e->a = a->number;
    e->b = a->life;
}

/* ---- effects of the recoverer ---- */

static void put(struct actor *a, const struct record *record)
{
    struct meta_request m = {.put = true,
                             .actor = a->number,
                             .ledger = a->ledger,
                             .expected = a->record.version,
                             .record = *record};

    meta_ask(a->sim, &m);
}

static void mark(void *ctx)
{
    struct actor *a = ctx;
    struct record r = a->record;

    r.state = LEDGER_IN_RECOVERY;
    put(a, &r);
}

static void look(void *ctx)
{
    struct actor *a = ctx;

    meta_ask(a->sim, &(struct meta_request){.actor = a->number, .ledger = a->ledger});
}

static const struct fragment *fragment_of(const struct record *r, entry_id e)
{
    unsigned i = r->n - 1;

    while (i > 0 && r->fragment[i].first > e)
        i--;
    return &r->fragment[i];
}

/* In whatever read that slot is asked by then: a little early is no harm. */
static void slow_event(struct sim *s, struct event *e)
{
    struct actor *a = s->actor[e->a % ACTORS];
    const struct reader_run run = {e->b % ENTRIES, e->reply.got};

    if (a->life == e->b / ENTRIES && a->recovery == READING)
        s->tally->second_reads += reader_slow(&a->reader, e->a / ACTORS, run);
}

static void slow_later(struct actor *a, unsigned slot, struct reader_run run)
{
    struct event *event = later(a->sim, a->sim->knobs.timeout / 4, slow_event);

    event->a = slot * ACTORS + a->number;
    event->b = a->life * ENTRIES + (unsigned)run.first;
    event->reply.got = run.n;
}

static void send_read(struct actor *a, unsigned slot, struct reader_run run, uint16_t flags)
{
    entry_id where = run.first == ENTRY_NONE ? ENTRIES : run.first;
    struct request q = {.actor = a->number,
                        .ledger = a->ledger,
                        .slot = slot,
                        .bookie = fragment_of(&a->record, where)->bookie[slot],
                        .entry = run.first,
                        .n = run.n,
                        .flags = flags};

    request_send(a->sim, &q);
}

static void read_from(void *ctx, unsigned slot, entry_id e, uint16_t flags)
{
    struct actor *a = ctx;

    if (e != ENTRY_NONE)
        check_covered(a->sim, a->ledger);
    send_read(a, slot, (struct reader_run){e, 1}, flags);
}

static void write_to(void *ctx, uint32_t bookie, const struct recoverer_write *w)
{
    struct actor *a = ctx;
    struct request q = {.actor = a->number,
                        .ledger = a->ledger,
                        .bookie = bookie,
                        .entry = w->entry,
                        .add = true,
                        .flags = w->flags};

    a->sim->tally->copied++;
    q.image = (struct image){.lac = w->lac, .length = w->length, .value = value_of(w->item)};
    request_send(a->sim, &q);
}

static bool spare(void *ctx, const uint32_t *not_these, unsigned n, uint32_t *out)
{
    struct actor *a = ctx;
    unsigned start = roll(a->sim, BOOKIES);

    for (unsigned i = 0; i < BOOKIES; i++) {
        uint32_t b = (start + i) % BOOKIES;
        bool taken = false;
        for (unsigned k = 0; k < n; k++)
            taken |= not_these[k] == b;
        taken |= bookie_is_out(a->sim, b);
        if (taken)
            continue;
        *out = b;
        a->sim->tally->replaced++;
        say(a->sim, "a%u: b%u takes a failed one's place", a->number, b);
        return true;
    }
    return false;
}

static void drop(void *ctx, void *item)
{
    struct actor *a = ctx;

    (void)item;
    if (a->held-- == 0)
        fault(a->sim, "an item is given back twice");
}

static void close_at(void *ctx, entry_id last, int64_t length)
{
    struct actor *a = ctx;
    struct record r = a->record;
    const struct recoverer *c = &a->recoverer;

    while (c->changes > 0 && r.n > 0 && r.fragment[r.n - 1].first >= c->changed[0].first)
        r.n--;
    for (unsigned i = 0; i < c->changes && r.n < FRAGMENTS; i++)
        r.fragment[r.n++] = c->changed[i];
    r.state = LEDGER_CLOSED;
    r.last = last;
    r.length = length;
    say(a->sim, "a%u: wants to close ledger %u at %d", a->number, a->ledger, (int)last);
    put(a, &r);
}

static void done(void *ctx, enum err err, entry_id last, int64_t length)
{
    struct actor *a = ctx;

    a->ended = true;
    a->err = err;
    a->last = last;
    a->length = length;
}

static const struct recoverer_effects to_recover = {.mark = mark,
                                                    .look = look,
                                                    .read = read_from,
                                                    .write = write_to,
                                                    .spare = spare,
                                                    .drop = drop,
                                                    .close = close_at,
                                                    .done = done};

/* ---- effects of the reader ---- */

static void read_plain(void *ctx, unsigned slot, struct reader_run run, size_t max_bytes)
{
    (void)max_bytes;
    send_read(ctx, slot, run, 0);
    slow_later(ctx, slot, run);
}

static unsigned reach(void *ctx, unsigned slot, entry_id e)
{
    const struct actor *a = ctx;
    const struct fragment *f = fragment_of(&a->record, e);
    unsigned most = a->sim->knobs.batch;

    (void)slot;
    if (f < &a->record.fragment[a->record.n - 1] && f[1].first - e < most)
        most = (unsigned)(f[1].first - e);
    return most;
}

static void deliver(void *ctx, entry_id e, void *item)
{
    struct actor *a = ctx;
    const struct truth *t = &a->sim->truth[a->ledger];

    if (e != a->delivered + 1)
        fault(a->sim, "I4: entry %d is read after %d", (int)e, (int)a->delivered);
    else if (value_of(item) != t->value[e])
        fault(a->sim, "I1: entry %d of ledger %u is read as value %u", (int)e, a->ledger,
              value_of(item));
    a->delivered = e;
    drop(a, item);
}

static void read_done(void *ctx, enum err err)
{
    done(ctx, err, 0, 0);
}

static const struct reader_effects to_read = {
    .read = read_plain, .reach = reach, .deliver = deliver, .drop = drop, .done = read_done};

/* ---- its ways ---- */

static void begin_reading(struct actor *a, entry_id last)
{
    a->recovery = READING;
    a->ended = false;
    a->delivered = ENTRY_NONE;
    const struct reader_conf conf = {.quorum = a->sim->knobs.quorum,
                                     .last = last,
                                     .prefer = a->number,
                                     .avoid = a->reader.avoid,
                                     .typical = a->reader.typical};
    reader_start(&a->reader, &conf, &to_read, a);
}

static void check_held(struct actor *a)
{
    if (a->held > 0)
        fault(a->sim, "%u items were never given back", a->held);
}

/* To whoever wanted the ledger closed. */
static void hand_back(struct actor *a)
{
    a->recovery = IDLE;
    a->life++; /* what is still under way is not wanted any more */
    mending_recovered(a->sim, a->number, a->err);
}

static void after_recovery(struct actor *a)
{
    struct sim *s = a->sim;
    const struct record *r = &s->records[a->ledger];

    say(s, "a%u: recovery of ledger %u ends: %s, last %d", a->number, a->ledger, err_name(a->err),
        (int)a->last);
    check_held(a);
    if (a->err && a->number >= MENDERS) {
        hand_back(a);
        return;
    }
    if (a->err) {
        s->tally->hindered++;
        find_later(a, 1 + roll(s, RETRY_MAX));
        return;
    }
    s->tally->short_end += r->last + 1 < (entry_id)s->truth[a->ledger].sent;
    if (r->state != LEDGER_CLOSED || r->last != a->last || r->length != a->length)
        fault(s, "I2: a%u believes in an end of ledger %u that is not in the metadata", a->number,
              a->ledger);
    if (a->number >= MENDERS) {
        hand_back(a);
        return;
    }
    a->record = *r; /* as a look would show */
    begin_reading(a, a->last);
}

static void after_reading(struct actor *a)
{
    struct sim *s = a->sim;

    check_held(a);
    if (a->err == ERR_NO_ENTRY || a->err == ERR_NO_LEDGER)
        fault(s, "I1: entry %d of ledger %u is said not to be there", (int)a->delivered + 1,
              a->ledger);
    if (!a->err) {
        if (a->delivered != a->record.last)
            fault(s, "I1: ledger %u was read up to %d only", a->ledger, (int)a->delivered);
        a->ledger++;
    }
    find_later(a, 1 + roll(s, RETRY_MAX));
}

/* Outside the cores. */
static void settle(struct actor *a)
{
    while (a->ended) {
        a->ended = false;
        if (a->recovery == RECOVERING)
            after_recovery(a);
        else if (a->recovery == READING)
            after_reading(a);
    }
}

static void find_event(struct sim *s, struct event *e)
{
    struct actor *a = s->actor[e->a];

    if (a->life != e->b)
        return;
    if (a->ledger >= s->ledgers && !writer_may_go_on(s) && healed(s)) {
        a->recovery = OVER;
        return;
    }
    if (a->ledger == LEDGERS) { /* there will be no more */
        find_later(a, RETRY_MAX);
        return;
    }
    a->recovery = FINDING;
    look(a);
}

void recovery_start(struct sim *s, unsigned actor)
{
    find_later(s->actor[actor], 1);
}

void recovery_begin(struct sim *s, unsigned actor)
{
    struct actor *a = s->actor[actor];

    a->recovery = FINDING;
    look(a);
}

void recovery_stop(struct sim *s, unsigned actor)
{
    struct actor *a = s->actor[actor];

    if (a->recovery == RECOVERING)
        recoverer_stop(&a->recoverer);
    a->recovery = IDLE;
    a->ended = false;
    check_held(a);
}

static void found(struct actor *a, enum err err)
{
    struct sim *s = a->sim;

    if (err && a->number >= MENDERS) {
        a->err = err;
        hand_back(a);
        return;
    }
    if (err) {
        find_later(a, 1 + roll(s, RETRY_MAX));
        return;
    }
    say(s, "a%u: recovers ledger %u", a->number, a->ledger);
    struct ledger_facts facts = facts_of(s, &a->record);
    s->tally->recovered += facts.state != LEDGER_CLOSED;
    s->tally->adopted += facts.state == LEDGER_CLOSED;
    s->tally->many += facts.state != LEDGER_CLOSED && a->record.n > 2;
    a->recovery = RECOVERING;
    a->ended = false;
    recoverer_start(&a->recoverer, &facts, &to_recover, a);
}

void recovery_meta(struct sim *s, const struct meta_request *m, enum err err)
{
    struct actor *a = s->actor[m->actor];
    struct ledger_facts facts = {0};

    if (!err) {
        a->record = m->record;
        facts = facts_of(s, &a->record);
    }
    s->tally->overtaken += a->recovery == RECOVERING && !m->put && a->recoverer.has_end &&
                           facts.state == LEDGER_CLOSED;
    if (a->recovery == FINDING)
        found(a, err);
    else if (!m->put)
        recoverer_saw(&a->recoverer, err, &facts);
    else if (m->record.state == LEDGER_IN_RECOVERY)
        recoverer_marked(&a->recoverer, err);
    else
        recoverer_closed(&a->recoverer, err);
    settle(a);
}

static bool dies(struct actor *a)
{
    if (healed(a->sim) || !chance(a->sim, DEATH_PER_MILLE))
        return false;
    say(a->sim, "a%u: dies, and begins again later", a->number);
    a->life++;
    if (a->recovery == RECOVERING)
        recoverer_stop(&a->recoverer);
    if (a->recovery == READING)
        reader_stop(&a->reader);
    check_held(a);
    find_later(a, 1 + roll(a->sim, RETRY_MAX));
    return true;
}

static void recoverer_answer(struct actor *a, const struct request *q, const struct reply *r)
{
    if (q->add) {
        recoverer_wrote(&a->recoverer, q->bookie, q->entry, r->err);
    } else if (q->entry == ENTRY_NONE) {
        recoverer_fenced(&a->recoverer, q->slot, r->err, r->image.lac);
    } else if (r->err) {
        recoverer_not_found(&a->recoverer, q->slot, q->entry, r->err);
    } else {
        a->held++;
        recoverer_found(&a->recoverer, q->slot, q->entry, r->image.length, item_of(r->image.value));
    }
}

static void one_answered(struct actor *a, const struct request *q, const struct reply *r)
{
    if (r->err) {
        reader_failed(&a->reader, q->slot, q->entry, r->err);
        return;
    }
    a->held++;
    reader_found(&a->reader, q->slot, q->entry, size_of(r->image.value), item_of(r->image.value));
}

static void many_answered(struct actor *a, const struct request *q, const struct reply *r)
{
    const struct reader_run run = {q->entry, q->n};
    struct reader_item items[BATCH] = {0};

    for (unsigned i = 0; i < r->got; i++) {
        if (r->damaged & 1u << i) {
            items[i].err = ERR_CHECKSUM;
            continue;
        }
        a->held++;
        items[i].item = item_of(r->value[i]);
        items[i].size = size_of(r->value[i]);
    }
    reader_answered(&a->reader, q->slot, run, items, r->got, r->err);
}

void recovery_reply(struct sim *s, const struct request *q, const struct reply *r)
{
    struct actor *a = s->actor[q->actor];

    if (q->ledger != a->ledger || dies(a))
        return;
    say(s, "a%u: b%u, entry %d %s: %s", a->number, q->bookie, (int)q->entry,
        q->add ? "written" : "read", err_name(r->err));
    if (a->recovery == RECOVERING)
        recoverer_answer(a, q, r);
    else if (a->recovery == READING && !q->add && q->flags == 0 && q->n > 1)
        many_answered(a, q, r);
    else if (a->recovery == READING && !q->add && q->flags == 0)
        one_answered(a, q, r);
    settle(a);
}

void recovery_take(struct actor *a, const struct request *q, const struct reply *r)
{
    recoverer_answer(a, q, r);
    settle(a);
}

bool recovery_is_over(const struct sim *s, unsigned actor)
{
    return s->actor[actor]->recovery == OVER;
}

void actors_drop(struct sim *s)
{
    for (unsigned a = 0; a < ACTORS; a++) {
        if (s->actor[a])
            mem_free(s->actor[a]->copier);
        mem_free(s->actor[a]);
        s->actor[a] = NULL;
    }
}
