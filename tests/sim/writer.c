#include "common/mem.h"
#include "tests/sim/actor.h"

enum { BURST_MAX = 4 };

static struct actor *writer_of(const struct sim *s)
{
    return s->actor[WRITER];
}

static bool wants_to_close(const struct actor *w)
{
    return w->confirmed == w->sim->knobs.total || w->appender.next >= (entry_id)w->close_at;
}

/* ---- effects of the appender ---- */

static void send_copies(void *ctx, uint32_t slots, const struct appender_add *add)
{
    struct actor *w = ctx;
    struct request q = {.actor = WRITER, .ledger = w->ledger, .entry = add->entry, .add = true};

    q.image = (struct image){.lac = add->lac, .length = add->length, .value = value_of(add->item)};
    for (q.slot = 0; q.slot < w->sim->knobs.quorum.ensemble; q.slot++) {
        q.bookie = w->appender.tail.bookie[q.slot];
        if (slots & 1u << q.slot)
            request_send(w->sim, &q);
    }
}

static void confirmed(void *ctx, entry_id e, void *item)
{
    struct actor *w = ctx;

    say(w->sim, "writer: entry %d of ledger %u is confirmed", (int)e, w->ledger);
    check_confirmed(w->sim, w->ledger, e, value_of(item));
    if (value_of(item) != w->confirmed)
        fault(w->sim, "I4: value %u confirmed, %u was due", value_of(item), w->confirmed);
    w->confirmed++;
}

static void failed(void *ctx, entry_id e, void *item, enum err why)
{
    struct actor *w = ctx;

    say(w->sim, "writer: entry %d of ledger %u, value %u, fails: %s", (int)e, w->ledger,
        value_of(item), err_name(why));
}

/* ---- other bookies ---- */

static bool spare(void *ctx, const struct fragment *next, unsigned slot, bool must, uint32_t *out)
{
    struct actor *w = ctx;
    struct sim *s = w->sim;
    unsigned start = roll(s, BOOKIES);

    if (!(must && healed(s)) && chance(s, s->knobs.alone))
        return false;
    for (unsigned i = 0; i < BOOKIES; i++) {
        uint32_t b = (start + i) % BOOKIES;
        bool taken = false;
        for (unsigned k = 0; k < s->knobs.quorum.ensemble; k++)
            taken |= next->bookie[k] == b;
        taken |= bookie_is_out(s, b);
        if (taken)
            continue;
        say(s, "writer: b%u shall take b%u's place", b, w->appender.tail.bookie[slot]);
        *out = b;
        return true;
    }
    return false;
}

static void change_put(void *ctx)
{
    struct actor *w = ctx;
    struct meta_request m = {.put = true,
                             .actor = WRITER,
                             .change = w->changes,
                             .ledger = w->ledger,
                             .expected = w->record.version,
                             .record = w->record};
    struct record *r = &m.record;

    while (r->n > 0 && r->fragment[r->n - 1].first >= w->changer.wanted.first)
        r->n--;
    r->fragment[r->n++] = w->changer.wanted;
    meta_ask(w->sim, &m);
}

static void change_look(void *ctx)
{
    struct actor *w = ctx;

    w->sim->tally->change_unsure++;
    meta_ask(w->sim,
             &(struct meta_request){.actor = WRITER, .change = w->changes, .ledger = w->ledger});
}

static void settle(struct actor *w);

static void change_waited(struct sim *s, struct event *e)
{
    struct actor *w = writer_of(s);

    if (w->life != e->a || w->changes != e->b || w->appender.state != APPENDER_CHANGING)
        return;
    changer_waited(&w->changer);
    settle(w);
}

static void change_wait(void *ctx, unsigned tries)
{
    struct actor *w = ctx;
    struct event *e = later(w->sim, 5 + 5 * tries, change_waited);

    e->a = w->life;
    e->b = w->changes;
}

static void change_done(void *ctx, enum err err)
{
    struct actor *w = ctx;

    w->change_ended = true;
    w->change_err = err;
}

static const struct changer_effects to_change = {
    .put = change_put, .look = change_look, .wait = change_wait, .done = change_done};

static void count_change(struct actor *w)
{
    const struct appender *a = &w->appender;
    struct tally *t = w->sim->tally;
    bool at_quorum = false;

    for (entry_id e = a->lac + 1; e < a->next; e++)
        at_quorum |=
            (unsigned)__builtin_popcount(a->ring[(size_t)e & (a->room - 1)].acks) >= a->quorum.ack;
    t->changes++;
    t->at_quorum += at_quorum;
    t->instead += a->wanted.first == a->tail.first;
    t->chained += w->change_ended;
}

static void change(void *ctx, const struct fragment *next)
{
    struct actor *w = ctx;

    count_change(w);
    say(w->sim, "writer: changes the bookies of ledger %u from %d on", w->ledger, (int)next->first);
    w->changes++;
    changer_start(&w->changer, w->sim->knobs.quorum.ensemble, &w->appender.tail, next, &to_change,
                  w);
}

static void lack(void *ctx, uint32_t slots)
{
    struct actor *w = ctx;

    say(w->sim, "writer: goes on without slots %x", slots);
    if (slots)
        w->sim->tally->lacking++;
    else
        w->sim->tally->taken_back++;
}

static const struct appender_effects to_append = {.send = send_copies,
                                                  .confirm = confirmed,
                                                  .fail = failed,
                                                  .spare = spare,
                                                  .change = change,
                                                  .lack = lack};

/* ---- effects of the closer ---- */

static void put(void *ctx)
{
    struct actor *w = ctx;
    struct meta_request m = {.put = true,
                             .actor = WRITER,
                             .ledger = w->ledger,
                             .expected = w->record.version,
                             .record = w->record};

    m.record.state = LEDGER_CLOSED;
    m.record.last = w->closer.last;
    m.record.length = w->closer.length;
    meta_ask(w->sim, &m);
}

static void look(void *ctx)
{
    struct actor *w = ctx;

    meta_ask(w->sim, &(struct meta_request){.actor = WRITER, .ledger = w->ledger});
}

static void waited(struct sim *s, struct event *e)
{
    struct actor *w = writer_of(s);

    if (w->life == e->a)
        closer_waited(&w->closer);
}

static void wait(void *ctx, unsigned tries)
{
    struct actor *w = ctx;

    later(w->sim, 10 + 10 * tries, waited)->a = w->life;
}

static void create(struct sim *s, struct event *e);

static void closed(void *ctx, enum err err)
{
    struct actor *w = ctx;
    struct sim *s = w->sim;

    say(s, "writer: its close of ledger %u ends: %s", w->ledger, err_name(err));
    w->writer = STOPPED;
    if (err)
        return;
    s->truth[w->ledger].sealed = true;
    s->tally->sealed++;
    w->next = w->confirmed;
    if (w->confirmed == s->knobs.total || w->ledger + 1 == LEDGERS)
        return;
    w->writer = CREATING;
    w->ledger++;
    later(s, 1 + roll(s, 10), create)->a = w->life;
}

static const struct closer_effects to_close = {
    .put = put, .look = look, .wait = wait, .done = closed};

/* ---- its ways ---- */

static void close_event(struct sim *s, struct event *e)
{
    struct actor *w = writer_of(s);

    if (w->life != e->a)
        return;
    w->writer = CLOSING;
    say(s, "writer: closes ledger %u at %d", w->ledger, (int)w->appender.lac);
    closer_start(&w->closer, w->appender.lac, w->appender.length, &to_close, w);
}

static void end_change(struct actor *w)
{
    struct tally *t = w->sim->tally;

    t->changed += w->change_err == ERR_OK;
    t->change_fenced += w->change_err == ERR_FENCED;
    say(w->sim, "writer: the change ends: %s", err_name(w->change_err));
    appender_changed(&w->appender, w->change_err);
    w->change_ended = false;
}

/* Outside the cores: a ledger that failed, or is full, is closed where it is. */
static void settle(struct actor *w)
{
    struct sim *s = w->sim;

    if (w->change_ended)
        end_change(w);
    if (w->writer != WRITING)
        return;
    if (w->appender.state == APPENDER_FENCED) {
        say(s, "writer: fenced, stops");
        s->tally->fenced++;
        w->writer = STOPPED;
        return;
    }
    if (w->appender.state != APPENDER_FAILED && !wants_to_close(w))
        return;
    s->tally->failed += w->appender.state == APPENDER_FAILED;
    s->tally->too_few += w->appender.why == ERR_NOT_ENOUGH_BOOKIES;
    appender_stop(&w->appender, ERR_CLOSED);
    w->writer = ENDING;
    later(s, 1 + roll(s, 20), close_event)->a = w->life;
}

static void append_event(struct sim *s, struct event *e)
{
    struct actor *w = writer_of(s);

    if (w->life != e->a || w->writer != WRITING || w->ledger != e->b)
        return;
    if (writer_sleeps(s)) {
        struct event *then = later(s, s->knobs.writer_goes_on - s->now, append_event);
        then->a = e->a;
        then->b = e->b;
        s->tally->slept++;
        return;
    }
    if (chance(s, 300))
        appender_try(&w->appender);
    for (unsigned n = 1 + roll(s, BURST_MAX); n > 0; n--) {
        if (w->next == s->knobs.total || w->appender.next == ENTRIES)
            break;
        enum err err = appender_append(&w->appender, item_of(w->next), size_of(w->next));
        if (err)
            break;
        s->truth[w->ledger].value[w->appender.next - 1] = w->next;
        s->truth[w->ledger].sent = (unsigned)w->appender.next;
        say(s, "writer: appends value %u as entry %d", w->next, (int)w->appender.next - 1);
        w->next++;
    }
    settle(w);
    struct event *again = later(s, 1 + roll(s, s->knobs.pause), append_event);
    again->a = w->life;
    again->b = w->ledger;
}

/* A ledger may come with a first fragment whose entries were all confirmed before its bookies
 * changed: what an ensemble change leaves behind. */
void writer_past(struct sim *s, unsigned ledger)
{
    struct actor *w = writer_of(s);
    const struct record *r = &s->records[ledger];
    struct truth *t = &s->truth[ledger];
    int64_t length = 0;

    for (entry_id e = 0; r->n == 2 && e < r->fragment[1].first; e++) {
        struct image i = {.here = true, .plain = true, .lac = e - 1, .value = w->next};
        i.length = length += size_of(w->next);
        t->value[e] = w->next++;
        t->sent = (unsigned)e + 1;
        for (unsigned k = 0; k < s->knobs.quorum.write; k++) {
            unsigned slot = ((unsigned)e + k) % s->knobs.quorum.ensemble;
            struct sim_bookie *b = &s->bookie[r->fragment[0].bookie[slot]];
            b->memory[ledger][e] = b->disk[ledger][e] = i;
        }
        check_confirmed(s, ledger, e, t->value[e]);
        w->confirmed++;
    }
}

static void go_on_from(struct actor *w)
{
    const struct truth *t = &w->sim->truth[w->ledger];

    w->appender.next = (entry_id)t->confirmed;
    w->appender.lac = w->appender.next - 1;
    for (unsigned e = 0; e < t->confirmed; e++)
        w->appender.length += size_of(t->value[e]);
}

static void begin_writing(struct actor *w)
{
    struct sim *s = w->sim;

    w->writer = WRITING;
    w->close_at = chance(s, 300) ? 1 + roll(s, 10) : ENTRIES;
    struct appender_conf conf = {
        .window_bytes = 200, .changes_max = CHANGES, .delay_changes = s->knobs.delay_changes};
    appender_init(&w->appender, s->knobs.quorum, &w->record.fragment[w->record.n - 1], &conf,
                  &to_append, w);
    appender_move(&w->appender, w->ring, ENTRIES);
    go_on_from(w);
    s->tally->ledgers++;
    struct event *e = later(s, 1, append_event);
    e->a = w->life;
    e->b = w->ledger;
}

static void choose(struct sim *s, struct fragment *f)
{
    unsigned left[BOOKIES], n = 0;

    for (unsigned b = 0; b < BOOKIES; b++)
        if (!bookie_is_out(s, b))
            left[n++] = b;
    for (unsigned i = 0; i < s->knobs.quorum.ensemble; i++) {
        unsigned pick = i + roll(s, n - i), t = left[i];
        left[i] = left[pick];
        left[pick] = t;
        f->bookie[i] = left[i];
    }
}

static void create(struct sim *s, struct event *e)
{
    struct actor *w = writer_of(s);

    if (w->life != e->a)
        return;
    struct meta_request m = {.put = true, .actor = WRITER, .ledger = w->ledger, .expected = -1};
    m.record = (struct record){.state = LEDGER_OPEN, .last = ENTRY_NONE, .n = 1};
    choose(s, &m.record.fragment[0]);
    unsigned past = 1 + roll(s, 4);
    if (chance(s, s->knobs.past) && w->confirmed + past < s->knobs.total) {
        m.record.n = 2;
        m.record.fragment[1].first = past;
        choose(s, &m.record.fragment[1]);
    }
    meta_ask(s, &m);
}

static void on_create(struct actor *w, const struct meta_request *m, enum err err)
{
    if (err == ERR_OK) {
        w->record = m->record;
        begin_writing(w);
    } else if (err == ERR_NOT_READY) {
        later(w->sim, 20, create)->a = w->life;
    } else {
        w->writer = LOOKING;
        look(w);
    }
}

static void on_look(struct actor *w, const struct meta_request *m, enum err err)
{
    if (err == ERR_NOT_READY) {
        look(w);
    } else if (err) {
        w->writer = CREATING;
        later(w->sim, 20, create)->a = w->life;
    } else if (m->record.state != LEDGER_OPEN) {
        w->writer = STOPPED;
    } else {
        w->record = m->record;
        begin_writing(w);
    }
}

/* Of a change that its ledger has not outlived. */
static void on_change(struct actor *w, const struct meta_request *m, enum err err)
{
    if (m->change != w->changes || m->ledger != w->ledger || w->writer != WRITING ||
        w->appender.state != APPENDER_CHANGING)
        return;
    struct ledger_facts facts = {0};
    if (!err) {
        w->record = m->record;
        facts = facts_of(w->sim, &m->record);
    }
    if (m->put)
        changer_put(&w->changer, err);
    else
        changer_saw(&w->changer, err, &facts);
    settle(w);
}

void writer_meta(struct sim *s, const struct meta_request *m, enum err err)
{
    struct actor *w = writer_of(s);

    if (m->change) {
        on_change(w, m, err);
    } else if (w->writer == CREATING) {
        on_create(w, m, err);
    } else if (w->writer == LOOKING) {
        on_look(w, m, err);
    } else if (m->put) {
        closer_put(&w->closer, err);
    } else {
        if (!err)
            w->record = m->record;
        struct ledger_facts facts = {0};
        if (!err)
            facts = facts_of(s, &m->record);
        closer_saw(&w->closer, err, &facts);
    }
}

void writer_reply(struct sim *s, const struct request *q, const struct reply *r)
{
    struct actor *w = writer_of(s);

    if (q->ledger != w->ledger || w->writer == CREATING || w->writer == LOOKING)
        return;
    if (r->err)
        say(s, "writer: b%u, entry %d: %s", q->bookie, (int)q->entry, err_name(r->err));
    if (r->err)
        appender_refused(&w->appender, q->bookie, q->entry, r->err);
    else
        appender_acked(&w->appender, q->bookie, q->entry);
    settle(w);
}

void writer_start(struct sim *s)
{
    for (unsigned a = 0; a < ACTORS; a++) {
        if (!s->actor[a])
            s->actor[a] = mem_new(struct actor);
        *s->actor[a] = (struct actor){.sim = s, .number = a, .life = 1};
        if (a >= MENDERS)
            s->actor[a]->copier = mem_new(struct copier);
    }
    later(s, 1, create)->a = 1;
}

bool writer_sleeps(const struct sim *s)
{
    return s->knobs.writer_stops && s->now >= s->knobs.writer_stops &&
           s->now < s->knobs.writer_goes_on;
}

void writer_kill(struct sim *s)
{
    struct actor *w = writer_of(s);

    if (w->writer == STOPPED)
        return;
    say(s, "writer: dies");
    s->tally->change_dead += w->writer == WRITING && w->appender.state == APPENDER_CHANGING;
    w->life++;
    w->writer = STOPPED;
}

unsigned actor_life(const struct sim *s, unsigned actor)
{
    return s->actor[actor]->life;
}
