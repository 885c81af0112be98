#include "ledger/reader.h"

#include <assert.h>
#include <string.h>

enum {
    FIRST_FEW = 8,        /* of unknown size */
    BATCH_COST = 56,      /* of an entry in an answer, besides its payload: prefix and length */
    BATCH_SLACK = 4 << 10 /* for the entry that reaches max_bytes */
};

static struct reader_entry *at(struct entry_reader *r, entry_id e)
{
    return &r->ring[(size_t)e % READER_WINDOW];
}

static bool is_negative(enum err err)
{
    return err == ERR_NO_ENTRY || err == ERR_NO_LEDGER;
}

static void check(const struct entry_reader *r)
{
    assert(r->next <= r->asked + 1);
    assert(r->asked - r->next + 1 <= READER_WINDOW);
    assert(r->asked <= r->last || r->last < r->next);
    assert(r->due <= READER_WINDOW);
}

void reader_stop(struct entry_reader *r)
{
    r->state = READER_DONE;
    for (size_t i = 0; i < READER_WINDOW; i++) {
        if (r->ring[i].item)
            r->effects->drop(r->ctx, r->ring[i].item);
        r->ring[i].item = NULL;
    }
}

static void done(struct entry_reader *r, enum err err)
{
    reader_stop(r);
    r->effects->done(r->ctx, err);
}

/* A slot of the write set that was not asked yet: a good one first.  The same start for all
 * entries of a ledger lets one bookie read ahead. */
static bool next_slot(const struct entry_reader *r, entry_id e, uint32_t asked, unsigned *out)
{
    uint32_t left = quorum_write_set(r->quorum, e) & ~asked;
    uint32_t good = left & ~r->avoid;

    if (good)
        left = good;
    for (unsigned k = 0; k < r->quorum.ensemble; k++) {
        unsigned slot = (r->prefer + k) % r->quorum.ensemble;
        if (left & 1u << slot) {
            *out = slot;
            return true;
        }
    }
    return false;
}

static void make_due(struct entry_reader *r, entry_id e)
{
    if (at(r, e)->due)
        return;
    at(r, e)->due = true;
    if (r->due++ == 0 || e < r->due_from)
        r->due_from = e;
}

static void not_due(struct entry_reader *r, entry_id e)
{
    r->due -= at(r, e)->due;
    at(r, e)->due = false;
}

static unsigned reach(const struct entry_reader *r, unsigned slot, entry_id e)
{
    if (r->quorum.write < r->quorum.ensemble || r->one_each & 1u << slot)
        return 1;
    return r->effects->reach(r->ctx, slot, e);
}

static size_t wanted_bytes(const struct entry_reader *r)
{
    if (r->max_bytes && r->max_bytes - r->bytes < READER_BYTES)
        return r->max_bytes - r->bytes;
    return READER_BYTES;
}

static size_t batch_bytes(const struct entry_reader *r)
{
    size_t wanted = wanted_bytes(r);

    wanted += wanted / 8 + BATCH_SLACK;
    return wanted < READER_BATCH_BYTES ? wanted : READER_BATCH_BYTES;
}

/* So that most answers get to the last one, and two of small entries are under way. */
static size_t batch_entries(const struct entry_reader *r)
{
    if (!r->typical)
        return READER_WINDOW;
    size_t n = (size_t)READER_BATCH_BYTES / 8 * 7 / (r->typical + BATCH_COST);
    return n < READER_WINDOW / 2 ? n : READER_WINDOW / 2;
}

static size_t window(const struct entry_reader *r)
{
    unsigned slot;
    size_t n;

    if (r->typical)
        n = wanted_bytes(r) / r->typical + 1;
    else if (next_slot(r, r->next, 0, &slot) && reach(r, slot, r->next) > 1)
        n = READER_WINDOW;
    else
        n = FIRST_FEW;
    return n < READER_WINDOW ? n : READER_WINDOW;
}

/* Those that are due from e on, as many as one slot can be asked for at once. */
static struct reader_run run_of(const struct entry_reader *r, unsigned slot, entry_id e,
                                entry_id end)
{
    const size_t fit = batch_entries(r), most = fit > 1 ? reach(r, slot, e) : 1;
    struct reader_run run = {e, 1};

    for (e++; run.n < fit && run.n < most && e < end; e++, run.n++) {
        const struct reader_entry *s = &r->ring[(size_t)e % READER_WINDOW];
        unsigned other;
        if (!s->due || !next_slot(r, e, s->asked, &other) || other != slot)
            break;
    }
    return run;
}

static void read_from(struct entry_reader *r, unsigned slot, struct reader_run run)
{
    for (entry_id e = run.first; e < run.first + run.n; e++) {
        not_due(r, e);
        at(r, e)->asked |= 1u << slot;
        at(r, e)->awaited |= 1u << slot;
    }
    r->effects->read(r->ctx, slot, run, batch_bytes(r));
}

static void ask_due(struct entry_reader *r, size_t room)
{
    entry_id end = r->next + (entry_id)room, e = r->due_from;

    if (end > r->asked + 1)
        end = r->asked + 1;
    while (r->due > 0 && e < end) {
        struct reader_run run = {e, 1};
        unsigned slot;
        if (at(r, e)->due && next_slot(r, e, at(r, e)->asked, &slot)) {
            run = run_of(r, slot, e, end);
            read_from(r, slot, run);
        }
        e += run.n;
    }
    r->due_from = e;
}

static void ask(struct entry_reader *r)
{
    const size_t room = window(r);

    while (r->asked < r->last && (size_t)(r->asked - r->next + 1) < room) {
        *at(r, ++r->asked) = (struct reader_entry){.err = ERR_NO_ENTRY};
        make_due(r, r->asked);
    }
    ask_due(r, room);
}

static bool is_full(const struct entry_reader *r)
{
    return r->max_bytes > 0 && r->bytes >= r->max_bytes;
}

static void deliver(struct entry_reader *r)
{
    while (r->next <= r->asked && at(r, r->next)->state == READ_FOUND && !is_full(r)) {
        struct reader_entry *s = at(r, r->next);
        void *item = s->item;
        s->item = NULL;
        r->bytes += s->size;
        r->effects->deliver(r->ctx, r->next++, item);
    }
}

static void go_on(struct entry_reader *r)
{
    deliver(r);
    if (r->next > r->last || is_full(r)) {
        done(r, ERR_OK);
        return;
    }
    if (r->next <= r->asked && at(r, r->next)->state == READ_FAILED) {
        done(r, at(r, r->next)->err);
        return;
    }
    ask(r);
    check(r);
}

void reader_start(struct entry_reader *r, const struct reader_conf *conf,
                  const struct reader_effects *effects, void *ctx)
{
    memset(r, 0, sizeof *r);
    r->quorum = conf->quorum;
    r->next = conf->first;
    r->asked = conf->first - 1;
    r->last = conf->last;
    r->max_bytes = conf->max_bytes;
    r->prefer = conf->prefer;
    r->avoid = conf->avoid;
    r->typical = conf->typical;
    r->effects = effects;
    r->ctx = ctx;
    go_on(r);
}

/* The read in flight that this answers, or is about. */
static struct reader_entry *waiting_for(struct entry_reader *r, unsigned slot, entry_id e)
{
    if (r->state == READER_DONE || e < r->next || e > r->asked)
        return NULL;
    struct reader_entry *s = at(r, e);
    return s->state == READ_AWAITED && s->awaited & 1u << slot ? s : NULL;
}

/* When all have failed some time there is nobody to be preferred. */
static void avoid(struct entry_reader *r, unsigned slot)
{
    r->avoid |= 1u << slot;
    if (r->avoid == (1u << r->quorum.ensemble) - 1)
        r->avoid = 1u << slot;
}

static bool take_found(struct entry_reader *r, unsigned slot, entry_id e, size_t size, void *item)
{
    struct reader_entry *s = waiting_for(r, slot, e);

    if (!s) {
        r->effects->drop(r->ctx, item);
        return false;
    }
    not_due(r, e);
    s->state = READ_FOUND;
    s->item = item;
    s->size = size;
    r->typical = r->typical ? (3 * r->typical + size + 3) / 4 : size + 1;
    return true;
}

static bool take_failed(struct entry_reader *r, unsigned slot, entry_id e, enum err err)
{
    struct reader_entry *s = waiting_for(r, slot, e);
    unsigned other;

    if (!s)
        return false;
    s->awaited &= ~(1u << slot);
    if (!is_negative(err)) {
        s->err = err;
        avoid(r, slot);
    }
    if (s->awaited)
        return false; /* another one has been asked besides */
    if (next_slot(r, e, s->asked, &other))
        make_due(r, e);
    else
        s->state = READ_FAILED; /* reported in its turn: those before it may still come */
    return true;
}

/* As if that slot had not been asked.  One that is good goes on, whoever else is still asked. */
static void take_silence(struct entry_reader *r, unsigned slot, struct reader_run run)
{
    for (entry_id e = run.first; e < run.first + run.n; e++) {
        struct reader_entry *s = waiting_for(r, slot, e);
        if (!s)
            continue;
        s->awaited &= ~(1u << slot);
        s->asked &= ~(1u << slot);
        if (!s->awaited || !(r->avoid & 1u << slot))
            make_due(r, e);
    }
}

void reader_found(struct entry_reader *r, unsigned slot, entry_id e, size_t size, void *item)
{
    if (take_found(r, slot, e, size, item))
        go_on(r);
}

void reader_failed(struct entry_reader *r, unsigned slot, entry_id e, enum err err)
{
    if (take_failed(r, slot, e, err))
        go_on(r);
}

/* Who has not even the first one may lack the others too: it is asked last. */
static void take_nothing(struct entry_reader *r, unsigned slot, struct reader_run *run,
                         enum err err)
{
    if (err == ERR_UNSUPPORTED_VERSION) {
        r->one_each |= 1u << slot;
        return;
    }
    if (waiting_for(r, slot, run->first))
        avoid(r, slot);
    (void)take_failed(r, slot, run->first++, err ? err : ERR_MALFORMED);
    run->n--;
}

void reader_answered(struct entry_reader *r, unsigned slot, struct reader_run run,
                     const struct reader_item *items, unsigned got, enum err err)
{
    assert(got <= run.n);
    for (unsigned i = 0; i < got; i++, run.first++, run.n--) {
        if (items[i].item)
            (void)take_found(r, slot, run.first, items[i].size, items[i].item);
        else
            (void)take_failed(r, slot, run.first, items[i].err);
    }
    if (r->state == READER_DONE)
        return;
    if (got == 0)
        take_nothing(r, slot, &run, err);
    take_silence(r, slot, run);
    go_on(r);
}

unsigned reader_slow(struct entry_reader *r, unsigned slot, struct reader_run run)
{
    bool is_awaited = false;
    unsigned n = 0, other;

    for (entry_id e = run.first; e < run.first + run.n; e++) {
        const struct reader_entry *s = waiting_for(r, slot, e);
        if (!s)
            continue;
        if (!is_awaited)
            avoid(r, slot);
        is_awaited = true;
        if (!next_slot(r, e, s->asked, &other))
            continue;
        make_due(r, e);
        n++;
    }
    if (n > 0)
        ask_due(r, READER_WINDOW);
    return n;
}

void lac_poll_start(struct lac_poll *p, struct quorum q, entry_id floor)
{
    *p = (struct lac_poll){.quorum = q, .lac = floor, .err = ERR_OK};
}

bool lac_poll_answer(struct lac_poll *p, unsigned slot, enum err err, entry_id lac)
{
    p->answered |= 1u << slot;
    if (err == ERR_OK || is_negative(err))
        p->good |= 1u << slot;
    else
        p->err = err;
    if (err == ERR_OK && lac > p->lac)
        p->lac = lac;
    if (quorum_fenced(p->quorum, p->good)) {
        p->err = ERR_OK;
        return true;
    }
    if ((unsigned)__builtin_popcount(p->answered) < p->quorum.ensemble)
        return false;
    if (p->good)
        p->err = ERR_OK;
    return true;
}
