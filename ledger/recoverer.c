#include "ledger/recoverer.h"

#include <assert.h>
#include <string.h>

#include "proto/bookie_frame.h"

static struct recoverer_entry *at(struct recoverer *r, entry_id e)
{
    return &r->ring[(size_t)e % RECOVERER_WINDOW];
}

static uint32_t write_set(const struct recoverer *r, entry_id e)
{
    return quorum_write_set(r->facts.quorum, e);
}

static unsigned count(uint32_t slots)
{
    return (unsigned)__builtin_popcount(slots);
}

static bool is_negative(enum err err)
{
    return err == ERR_NO_ENTRY || err == ERR_NO_LEDGER;
}

/* What is always true between two events. */
static void check(const struct recoverer *r)
{
    assert(r->floor <= r->lac && r->lac <= r->pushed && r->pushed <= r->asked);
    assert(r->asked - r->lac <= RECOVERER_WINDOW);
    if (r->state == RECOVERER_CLOSING)
        assert(r->has_end && r->lac == r->end);
}

void recoverer_stop(struct recoverer *r)
{
    for (size_t i = 0; i < RECOVERER_WINDOW; i++) {
        if (r->ring[i].item)
            r->effects->drop(r->ctx, r->ring[i].item);
        r->ring[i].item = NULL;
    }
    r->state = RECOVERER_DONE;
}

static void done(struct recoverer *r, enum err err, entry_id last, int64_t length)
{
    recoverer_stop(r);
    r->effects->done(r->ctx, err, last, length);
}

/* The ledger stays in recovery, for the next one who tries. */
static void give_up(struct recoverer *r, enum err err)
{
    done(r, err, ENTRY_NONE, 0);
}

/* ---- the ensemble in memory ---- */

const uint32_t *recoverer_ensemble(const struct recoverer *r)
{
    return r->changes ? r->changed[r->changes - 1].bookie : r->facts.tail.bookie;
}

static int slot_of(const struct recoverer *r, uint32_t bookie)
{
    const uint32_t *members = recoverer_ensemble(r);

    for (unsigned s = 0; s < r->facts.quorum.ensemble; s++)
        if (members[s] == bookie)
            return (int)s;
    return -1;
}

/* How far the copies are safe where the metadata looks for them: another recoverer that reads
 * this in a header begins behind it, and it does not know the ensemble in our memory. */
static entry_id known_safe(const struct recoverer *r)
{
    return r->changes ? r->changed[0].first - 1 : r->lac;
}

static void write_back(struct recoverer *r, entry_id e, uint32_t slots)
{
    struct recoverer_entry *c = at(r, e);
    struct recoverer_write w = {.item = c->item,
                                .entry = e,
                                .lac = known_safe(r),
                                .length = c->length,
                                .flags = BOOKIE_RECOVERY_ADD | BOOKIE_HIGH_PRIORITY};

    slots &= write_set(r, e) & ~r->dead;
    for (unsigned s = 0; s < r->facts.quorum.ensemble; s++)
        if (slots & 1u << s)
            r->effects->write(r->ctx, recoverer_ensemble(r)[s], &w);
}

/* Nobody takes the place: what the others hold must be enough. */
static bool others_suffice(struct recoverer *r)
{
    for (entry_id e = r->lac + 1; e <= r->pushed; e++) {
        uint32_t possible = at(r, e)->acks | (write_set(r, e) & ~r->dead);
        if (count(possible) < r->facts.quorum.ack)
            return false;
    }
    return true;
}

static bool find_spare(struct recoverer *r, uint32_t *spare)
{
    uint32_t not_these[ENSEMBLE_MAX + RECOVERER_CHANGES];
    unsigned e = r->facts.quorum.ensemble;

    if (r->changes == RECOVERER_CHANGES || r->lost == RECOVERER_CHANGES)
        return false;
    memcpy(not_these, recoverer_ensemble(r), e * sizeof *not_these);
    memcpy(not_these + e, r->lost_bookie, r->lost * sizeof *not_these);
    return r->effects->spare(r->ctx, not_these, e + r->lost, spare);
}

static void join(struct recoverer *r, unsigned slot, uint32_t spare)
{
    struct fragment next = {.first = r->lac + 1};

    memcpy(next.bookie, recoverer_ensemble(r), sizeof next.bookie);
    next.bookie[slot] = spare;
    if (r->changes == 0 || r->changed[r->changes - 1].first != next.first)
        r->changes++;
    r->changed[r->changes - 1] = next;
    /* All acks of the old member go before anything is looked at again: the newcomer has none
     * of these entries yet. */
    for (entry_id e = r->lac + 1; e <= r->pushed; e++)
        at(r, e)->acks &= ~(1u << slot);
    for (entry_id e = r->lac + 1; e <= r->pushed; e++)
        write_back(r, e, 1u << slot);
}

/* ---- the phases ---- */

static void fence(struct recoverer *r)
{
    r->state = RECOVERER_FENCING;
    for (unsigned s = 0; s < r->facts.quorum.ensemble; s++)
        r->effects->read(r->ctx, s, ENTRY_NONE, BOOKIE_DO_FENCING);
}

/* Fencing, each of them: a bookie that the coverage could do without may still take adds, and
 * its "no entry" would then mean nothing. */
static void read_entry(struct recoverer *r, entry_id e)
{
    uint32_t slots = write_set(r, e);

    *at(r, e) = (struct recoverer_entry){.state = COPY_READING};
    for (unsigned s = 0; s < r->facts.quorum.ensemble; s++)
        if (slots & 1u << s)
            r->effects->read(r->ctx, s, e, BOOKIE_DO_FENCING | BOOKIE_HIGH_PRIORITY);
}

static void close_at_end(struct recoverer *r)
{
    r->state = RECOVERER_CLOSING;
    while (r->changes > 0 && r->changed[r->changes - 1].first > r->end)
        r->changes--; /* nothing was ever confirmed there */
    check(r);
    r->effects->close(r->ctx, r->end, r->length);
}

/* The length that came with a LAC belongs to another entry: without a copy it is not known. */
static void finish(struct recoverer *r)
{
    if (r->end > r->floor || r->end == ENTRY_NONE) {
        close_at_end(r);
        return;
    }
    r->state = RECOVERER_MEASURING;
    read_entry(r, r->end);
}

static void confirm(struct recoverer *r)
{
    while (r->lac < r->pushed && count(at(r, r->lac + 1)->acks) >= r->facts.quorum.ack) {
        struct recoverer_entry *c = at(r, ++r->lac);
        r->length = c->length;
        r->effects->drop(r->ctx, c->item);
        c->item = NULL;
    }
}

static void push(struct recoverer *r)
{
    while (r->pushed < r->asked && at(r, r->pushed + 1)->state == COPY_FOUND) {
        write_back(r, ++r->pushed, ~0u);
        if (r->ahead < RECOVERER_WINDOW)
            r->ahead *= 2;
    }
}

static void ask(struct recoverer *r)
{
    while (r->asked - r->pushed < r->ahead && r->asked - r->lac < RECOVERER_WINDOW)
        read_entry(r, ++r->asked);
}

/* Whatever has changed, this decides what comes next. */
static void go_on(struct recoverer *r)
{
    confirm(r);
    if (!r->has_end) {
        push(r);
        if (!others_suffice(r)) {
            give_up(r, r->err);
            return;
        }
        if (r->pushed < r->asked && at(r, r->pushed + 1)->state == COPY_UNSURE) {
            give_up(r, at(r, r->pushed + 1)->err);
            return;
        }
        r->has_end = r->pushed < r->asked && at(r, r->pushed + 1)->state == COPY_ABSENT;
        r->end = r->pushed;
    }
    if (!r->has_end)
        ask(r);
    else if (r->lac == r->end)
        finish(r);
}

static void begin_copying(struct recoverer *r)
{
    r->state = RECOVERER_COPYING;
    r->asked = r->pushed = r->lac = r->floor;
    r->ahead = 1;
    go_on(r);
}

/* ---- events ---- */

static void take_facts(struct recoverer *r, const struct ledger_facts *facts)
{
    r->facts = *facts;
    /* All entries before the last fragment were confirmed, whatever its bookies know. */
    r->floor = facts->tail.first - 1;
}

void recoverer_start(struct recoverer *r, const struct ledger_facts *facts,
                     const struct recoverer_effects *effects, void *ctx)
{
    memset(r, 0, sizeof *r);
    r->effects = effects;
    r->ctx = ctx;
    r->err = ERR_IO;
    recoverer_saw(r, ERR_OK, facts);
}

void recoverer_marked(struct recoverer *r, enum err err)
{
    if (r->state != RECOVERER_MARKING)
        return;
    if (err == ERR_OK) {
        r->facts.state = LEDGER_IN_RECOVERY;
        fence(r);
    } else if (err == ERR_BAD_VERSION || err == ERR_UNKNOWN_STATE) {
        r->state = RECOVERER_LOOKING;
        r->effects->look(r->ctx);
    } else {
        give_up(r, err == ERR_NOT_FOUND ? ERR_NO_LEDGER : err);
    }
}

static bool same_tail(const struct ledger_facts *a, const struct ledger_facts *b)
{
    return a->tail.first == b->tail.first &&
           memcmp(a->tail.bookie, b->tail.bookie, a->quorum.ensemble * sizeof a->tail.bookie[0]) ==
               0;
}

/* The close may not have happened: the ledger is as it was, or another recoverer marked it. */
static void saw_after_closing(struct recoverer *r, const struct ledger_facts *facts)
{
    if (facts->state != LEDGER_IN_RECOVERY || !same_tail(facts, &r->facts))
        give_up(r, ERR_UNKNOWN_STATE);
    else
        close_at_end(r);
}

void recoverer_saw(struct recoverer *r, enum err err, const struct ledger_facts *facts)
{
    if (r->state == RECOVERER_DONE)
        return;
    if (err) {
        give_up(r, err == ERR_NOT_FOUND ? ERR_NO_LEDGER : err);
    } else if (facts->state == LEDGER_CLOSED) {
        done(r, ERR_OK, facts->last, facts->length);
    } else if (r->has_end) {
        saw_after_closing(r, facts);
    } else {
        take_facts(r, facts);
        r->state = RECOVERER_MARKING;
        if (facts->state == LEDGER_OPEN)
            r->effects->mark(r->ctx);
        else
            fence(r);
    }
}

void recoverer_fenced(struct recoverer *r, unsigned slot, enum err err, entry_id lac)
{
    if (r->state != RECOVERER_FENCING)
        return;
    if (err == ERR_UNAUTHORIZED) {
        give_up(r, err);
        return;
    }
    r->answered |= 1u << slot;
    if (err == ERR_OK || err == ERR_CHECKSUM || is_negative(err))
        r->fenced |= 1u << slot;
    else
        r->err = err;
    if (err == ERR_OK && lac > r->floor)
        r->floor = lac;
    if (quorum_fenced(r->facts.quorum, r->fenced))
        begin_copying(r);
    else if (count(r->answered) == r->facts.quorum.ensemble)
        give_up(r, r->err);
}

/* The entry that this answer is about, if it still matters. */
static struct recoverer_entry *waiting_for(struct recoverer *r, unsigned slot, entry_id e)
{
    bool copying = r->state == RECOVERER_COPYING && e > r->pushed && e <= r->asked;
    bool measuring = r->state == RECOVERER_MEASURING && e == r->end;

    if (!copying && !measuring)
        return NULL;
    if (at(r, e)->state != COPY_READING || !(write_set(r, e) & 1u << slot))
        return NULL;
    return at(r, e);
}

void recoverer_found(struct recoverer *r, unsigned slot, entry_id e, int64_t length, void *item)
{
    struct recoverer_entry *c = waiting_for(r, slot, e);

    if (!c) {
        r->effects->drop(r->ctx, item);
    } else if (r->state == RECOVERER_MEASURING) {
        r->effects->drop(r->ctx, item);
        r->length = length;
        close_at_end(r);
    } else {
        c->state = COPY_FOUND;
        c->item = item;
        c->length = length;
        go_on(r);
        check(r);
    }
}

static void decide(struct recoverer *r, entry_id e)
{
    struct recoverer_entry *c = at(r, e);

    if (r->state == RECOVERER_COPYING && count(c->negative) >= quorum_negatives(r->facts.quorum))
        c->state = COPY_ABSENT;
    else if ((c->negative | c->unknown) == write_set(r, e))
        c->state = COPY_UNSURE;
    if (c->state == COPY_READING)
        return;
    if (r->state == RECOVERER_MEASURING)
        give_up(r, c->err);
    else
        go_on(r);
}

void recoverer_not_found(struct recoverer *r, unsigned slot, entry_id e, enum err err)
{
    struct recoverer_entry *c = waiting_for(r, slot, e);

    if (!c)
        return;
    if (is_negative(err)) {
        c->negative |= 1u << slot;
        if (!c->err)
            c->err = err;
    } else {
        c->unknown |= 1u << slot;
        c->err = err;
    }
    decide(r, e);
    check(r);
}

static void refused(struct recoverer *r, unsigned slot, uint32_t bookie, enum err err)
{
    uint32_t spare;

    if (r->dead & 1u << slot)
        return;
    r->err = err_class(err) == CLASS_RETRY ? err : ERR_IO;
    if (r->lost < RECOVERER_CHANGES)
        r->lost_bookie[r->lost++] = bookie;
    if (find_spare(r, &spare))
        join(r, slot, spare);
    else
        r->dead |= 1u << slot;
    if (others_suffice(r))
        go_on(r);
    else
        give_up(r, r->err);
}

void recoverer_wrote(struct recoverer *r, uint32_t bookie, entry_id e, enum err err)
{
    int slot = slot_of(r, bookie);

    if (r->state != RECOVERER_COPYING || slot < 0)
        return; /* too late, or of one that was replaced */
    if (err) {
        refused(r, (unsigned)slot, bookie, err);
    } else if (e > r->lac && e <= r->pushed && write_set(r, e) & 1u << slot) {
        at(r, e)->acks |= 1u << slot;
        go_on(r);
    }
    check(r);
}

void recoverer_closed(struct recoverer *r, enum err err)
{
    if (r->state != RECOVERER_CLOSING)
        return;
    if (err == ERR_OK) {
        done(r, ERR_OK, r->end, r->length);
    } else if (err == ERR_BAD_VERSION || err == ERR_UNKNOWN_STATE) {
        r->state = RECOVERER_LOOKING;
        r->effects->look(r->ctx);
    } else {
        give_up(r, err == ERR_NOT_FOUND ? ERR_NO_LEDGER : err);
    }
}
