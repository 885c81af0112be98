#include "ledger/reader.h"

#include <assert.h>
#include <string.h>

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

static void read_from(struct entry_reader *r, entry_id e, unsigned slot)
{
    at(r, e)->asked |= 1u << slot;
    at(r, e)->awaited |= 1u << slot;
    r->effects->read(r->ctx, slot, e);
}

static size_t window(const struct entry_reader *r)
{
    size_t budget = READER_BYTES;

    if (r->max_bytes && r->max_bytes - r->bytes < budget)
        budget = r->max_bytes - r->bytes;
    size_t n = r->typical ? budget / r->typical + 1 : 8;
    return n < READER_WINDOW ? n : READER_WINDOW;
}

static void ask(struct entry_reader *r)
{
    while (r->asked < r->last && (size_t)(r->asked - r->next + 1) < window(r)) {
        unsigned slot = 0;
        entry_id e = ++r->asked;
        *at(r, e) = (struct reader_entry){.err = ERR_NO_ENTRY};
        if (next_slot(r, e, 0, &slot))
            read_from(r, e, slot);
    }
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

void reader_start(struct entry_reader *r, struct quorum q, entry_id first, entry_id last,
                  size_t max_bytes, uint32_t prefer, uint32_t avoid,
                  const struct reader_effects *effects, void *ctx)
{
    memset(r, 0, sizeof *r);
    r->quorum = q;
    r->next = first;
    r->asked = first - 1;
    r->last = last;
    r->max_bytes = max_bytes;
    r->prefer = prefer;
    r->avoid = avoid;
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

void reader_found(struct entry_reader *r, unsigned slot, entry_id e, size_t size, void *item)
{
    struct reader_entry *s = waiting_for(r, slot, e);

    if (!s) {
        r->effects->drop(r->ctx, item);
        return;
    }
    s->state = READ_FOUND;
    s->item = item;
    s->size = size;
    r->typical = r->typical ? (3 * r->typical + size + 3) / 4 : size + 1;
    go_on(r);
}

void reader_failed(struct entry_reader *r, unsigned slot, entry_id e, enum err err)
{
    struct reader_entry *s = waiting_for(r, slot, e);
    unsigned other;

    if (!s)
        return;
    s->awaited &= ~(1u << slot);
    if (!is_negative(err)) {
        s->err = err;
        avoid(r, slot);
    }
    if (s->awaited) {
        return; /* another one has been asked besides */
    } else if (next_slot(r, e, s->asked, &other)) {
        read_from(r, e, other);
    } else {
        s->state = READ_FAILED; /* reported in its turn: those before it may still come */
        go_on(r);
    }
}

bool reader_slow(struct entry_reader *r, unsigned slot, entry_id e)
{
    struct reader_entry *s = waiting_for(r, slot, e);
    unsigned other;

    if (!s)
        return false;
    avoid(r, slot);
    if (!next_slot(r, e, s->asked, &other))
        return false;
    read_from(r, e, other);
    return true;
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
