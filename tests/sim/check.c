#include <string.h>

#include "tests/sim/sim.h"

/* The invariants of the protocol (D.8), asked of what really is on the disks and in the metadata.
 * Nothing here uses ledger/quorum.c: it is one of the things that are tested. */

static const struct fragment *fragment_of(const struct record *r, entry_id e)
{
    unsigned i = r->n - 1;

    while (i > 0 && r->fragment[i].first > e)
        i--;
    return &r->fragment[i];
}

/* The k-th bookie that must hold e. */
static unsigned holder(const struct sim *s, const struct record *r, entry_id e, unsigned k)
{
    return fragment_of(r, e)->bookie[((unsigned)e + k) % s->knobs.quorum.ensemble];
}

static int64_t length_at(const struct truth *t, entry_id e)
{
    int64_t length = 0;

    for (entry_id i = 0; i <= e; i++)
        length += size_of(t->value[i]);
    return length;
}

/* With those that went with a disk, as long as nobody says that they are back. */
static unsigned copies(const struct sim *s, unsigned ledger, entry_id e, unsigned *there)
{
    const struct record *r = &s->records[ledger];
    unsigned n = 0;

    *there = 0;
    for (unsigned k = 0; k < s->knobs.quorum.write; k++) {
        const struct sim_bookie *b = &s->bookie[holder(s, r, e, k)];
        const struct image *i = &b->disk[ledger][e];
        *there += i->here && i->value == s->truth[ledger].value[e];
        n += b->lost[ledger][e];
    }
    return n + *there;
}

static bool is_safe(const struct sim *s, unsigned ledger, entry_id e)
{
    unsigned there;

    return copies(s, ledger, e, &there) >= s->knobs.quorum.ack && there > 0;
}

/* The k-th bookie that the writer wants e from, as long as it does not know of the recovery. */
static unsigned tail_holder(const struct sim *s, const struct truth *t, entry_id e, unsigned k)
{
    return t->tail.bookie[((unsigned)e + k) % s->knobs.quorum.ensemble];
}

/* Some Qa bookies of a write set could still take a plain add and not know of the fence. */
static bool is_covered(const struct sim *s, unsigned ledger)
{
    const struct truth *t = &s->truth[ledger];
    struct quorum q = s->knobs.quorum;

    if (s->records[ledger].state == LEDGER_OPEN)
        return false;
    for (unsigned start = 0; start < q.ensemble; start++) {
        unsigned unfenced = 0;
        for (unsigned k = 0; k < q.write; k++) {
            unsigned b = tail_holder(s, t, start, k);
            unfenced += !s->bookie[b].durable_fenced[ledger] && !s->bookie[b].lost_fence[ledger];
        }
        if (unfenced >= q.ack)
            return false;
    }
    return true;
}

void check_covered(struct sim *s, unsigned ledger)
{
    if (!s->truth[ledger].covered)
        fault(s, "I5: ledger %u is read for its end before it is fenced", ledger);
}

static void check_late_copy(struct sim *s, unsigned bookie, const struct journal_line *line)
{
    struct truth *t = &s->truth[line->ledger];
    unsigned n = 0;

    if (line->entry < t->tail.first)
        return; /* it was confirmed elsewhere, before its bookies were replaced */
    t->late_copies[line->entry] |= 1u << bookie;
    for (unsigned k = 0; k < s->knobs.quorum.write; k++)
        n += t->late_copies[line->entry] >> tail_holder(s, t, line->entry, k) & 1;
    if (n >= s->knobs.quorum.ack)
        fault(s, "I5: entry %d of ledger %u reached its ack quorum after the fence covered it",
              (int)line->entry, line->ledger);
}

static void check_image(struct sim *s, const struct journal_line *line)
{
    const struct truth *t = &s->truth[line->ledger];

    if (line->image.lac >= line->entry)
        fault(s, "I9: entry %d says that %d is confirmed", (int)line->entry, (int)line->image.lac);
    if (line->image.value != t->value[line->entry])
        fault(s, "I1: entry %d of ledger %u is stored as value %u", (int)line->entry, line->ledger,
              line->image.value);
    if (line->image.length != length_at(t, line->entry))
        fault(s, "I9: entry %d of ledger %u is stored with length %d", (int)line->entry,
              line->ledger, (int)line->image.length);
}

void check_durable(struct sim *s, unsigned bookie, const struct journal_line *line)
{
    struct truth *t = &s->truth[line->ledger];

    t->touched = true;
    if (line->entry == ENTRY_NONE) {
        t->covered = t->covered || is_covered(s, line->ledger);
        return;
    }
    check_image(s, line);
    if (t->covered && line->image.plain)
        check_late_copy(s, bookie, line);
}

void check_confirmed(struct sim *s, unsigned ledger, entry_id e, unsigned value)
{
    struct truth *t = &s->truth[ledger];

    if (e != (entry_id)t->confirmed || value != t->value[e])
        fault(s, "I4: entry %d of ledger %u is confirmed, %u was due", (int)e, ledger,
              t->confirmed);
    t->confirmed = (unsigned)e + 1;
    t->touched = true;
}

static void check_fragments(struct sim *s, const struct record *r)
{
    for (unsigned i = 0; i < r->n; i++) {
        const struct fragment *f = &r->fragment[i];
        if (i == 0 ? f->first != 0 : f->first <= r->fragment[i - 1].first)
            fault(s, "I8: fragment %u begins at %d", i, (int)f->first);
        for (unsigned a = 0; a < s->knobs.quorum.ensemble; a++)
            for (unsigned b = 0; b < a; b++)
                if (f->bookie[a] == f->bookie[b])
                    fault(s, "I8: b%u is twice in a fragment", f->bookie[a]);
    }
}

/* Only the last fragment, from behind what is confirmed on, and never once somebody recovers. */
static void check_change(struct sim *s, const struct meta_request *m)
{
    const struct record *old = &s->records[m->ledger], *new = &m->record;
    entry_id first = new->fragment[new->n - 1].first;

    if (old->state != LEDGER_OPEN || m->actor != WRITER)
        fault(s, "I2: a%u opens ledger %u again", m->actor, m->ledger);
    if (first != (entry_id)s->truth[m->ledger].confirmed)
        fault(s, "I1: ledger %u gets other bookies from %d on, with %u entries confirmed",
              m->ledger, (int)first, s->truth[m->ledger].confirmed);
    for (unsigned i = 0; i + 1 < new->n; i++)
        if (i >= old->n || memcmp(&new->fragment[i], &old->fragment[i], sizeof old->fragment[i]))
            fault(s, "I2: a change of ledger %u touches fragment %u", m->ledger, i);
    for (unsigned i = 0; i < old->n; i++)
        if (old->fragment[i].first < first && i + 1 >= new->n)
            fault(s, "I2: a change of ledger %u drops fragment %u", m->ledger, i);
}

/* Whoever is named has it all, or had. */
static void check_newcomer(struct sim *s, const struct meta_request *m, unsigned fragment,
                           unsigned slot)
{
    const struct record *r = &m->record;
    unsigned b = r->fragment[fragment].bookie[slot];
    entry_id end = fragment + 1 < r->n ? r->fragment[fragment + 1].first - 1 : r->last;

    for (entry_id e = r->fragment[fragment].first; e <= end; e++)
        for (unsigned k = 0; k < s->knobs.quorum.write; k++)
            if (((unsigned)e + k) % s->knobs.quorum.ensemble == slot &&
                !s->bookie[b].disk[m->ledger][e].here && !s->bookie[b].lost[m->ledger][e])
                fault(s, "R1: b%u is named for entry %d of ledger %u, and does not have it", b,
                      (int)e, m->ledger);
}

/* A re-replicator's: another bookie in one slot, and nothing else. */
static void check_move(struct sim *s, const struct meta_request *m)
{
    const struct record *old = &s->records[m->ledger], *new = &m->record;
    unsigned moved = 0;

    if (new->n != old->n || new->last != old->last || new->length != old->length)
        fault(s, "R3: a%u changes more than bookies of ledger %u", m->actor, m->ledger);
    for (unsigned i = 0; i < new->n; i++)
        for (unsigned k = 0; k < s->knobs.quorum.ensemble; k++) {
            if (new->fragment[i].bookie[k] == old->fragment[i].bookie[k])
                continue;
            moved++;
            if (old->state != LEDGER_CLOSED && i + 1 == new->n)
                fault(s, "R3: a%u changes the end of ledger %u, which is not closed", m->actor,
                      m->ledger);
            check_newcomer(s, m, i, k);
        }
    if (moved > 1)
        fault(s, "R3: a%u changes many bookies of ledger %u", m->actor, m->ledger);
}

void check_put(struct sim *s, const struct meta_request *m)
{
    const struct record *old = &s->records[m->ledger];

    check_fragments(s, &m->record);
    if (!old->exists)
        return;
    if (m->actor >= MENDERS && m->record.state == old->state) {
        check_move(s, m);
        return;
    }
    if (old->state == LEDGER_CLOSED)
        fault(s, "I2: a%u changes ledger %u, which is closed", m->actor, m->ledger);
    if (m->record.state == LEDGER_OPEN)
        check_change(s, m);
    if (old->state == LEDGER_IN_RECOVERY && m->actor == WRITER)
        fault(s, "I2: the writer closes ledger %u, which is in recovery", m->ledger);
    if (old->state == LEDGER_OPEN && m->record.state == LEDGER_CLOSED && m->actor != WRITER)
        fault(s, "I2: a%u closes ledger %u without a mark", m->actor, m->ledger);
}

static void check_closed(struct sim *s, unsigned ledger)
{
    const struct record *r = &s->records[ledger];
    const struct truth *t = &s->truth[ledger];

    if ((entry_id)t->confirmed > r->last + 1)
        fault(s, "I2: ledger %u is closed at %d, but %u entries were confirmed", ledger,
              (int)r->last, t->confirmed);
    else if (r->last >= (entry_id)t->sent)
        fault(s, "I2: ledger %u is closed at %d, but only %u were sent", ledger, (int)r->last,
              t->sent);
    else if (r->length != length_at(t, r->last))
        fault(s, "I2: ledger %u is closed with length %d, it is %d", ledger, (int)r->length,
              (int)length_at(t, r->last));
    for (entry_id e = 0; e <= r->last && !s->fault; e++)
        if (!is_safe(s, ledger, e))
            fault(s, "I3: entry %d of ledger %u, closed at %d, has too few copies", (int)e, ledger,
                  (int)r->last);
}

static void check_ledger(struct sim *s, unsigned ledger)
{
    const struct truth *t = &s->truth[ledger];

    for (entry_id e = 0; e < (entry_id)t->confirmed && !s->fault; e++)
        if (!is_safe(s, ledger, e))
            fault(s, "I1: entry %d of ledger %u was confirmed and has too few copies", (int)e,
                  ledger);
    if (s->records[ledger].state == LEDGER_CLOSED)
        check_closed(s, ledger);
    if (t->sealed && s->records[ledger].last != (entry_id)t->confirmed - 1)
        fault(s, "I2: ledger %u was sealed at %d with %u confirmed", ledger,
              (int)s->records[ledger].last, t->confirmed);
}

void check_all(struct sim *s)
{
    for (unsigned l = 0; l < s->ledgers; l++) {
        if (!s->truth[l].touched)
            continue;
        s->truth[l].touched = false;
        check_ledger(s, l);
    }
}

/* Nobody would know any more that the ledger lacks what this bookie had. */
void check_unmarked(struct sim *s, unsigned ledger)
{
    const struct record *r = &s->records[ledger];

    for (unsigned i = 0; i < r->n; i++)
        for (unsigned k = 0; k < s->knobs.quorum.ensemble; k++) {
            unsigned b = r->fragment[i].bookie[k];
            if (s->lost_at[ledger][b] && !bookie_is_here(s, b))
                fault(s, "R2: ledger %u is not marked any more, and b%u is away since %u", ledger,
                      b, s->lost_at[ledger][b]);
        }
}

static void check_full(struct sim *s, unsigned ledger)
{
    for (entry_id e = 0; e <= s->records[ledger].last; e++) {
        unsigned there = 0;
        for (unsigned k = 0; k < s->knobs.quorum.write; k++)
            there += s->bookie[holder(s, &s->records[ledger], e, k)].memory[ledger][e].here;
        if (there < s->knobs.quorum.write)
            fault(s, "L2: entry %d of ledger %u has %u copies only", (int)e, ledger, there);
    }
}

void check_end(struct sim *s)
{
    for (unsigned l = 0; l < s->ledgers; l++)
        if (s->records[l].state != LEDGER_CLOSED)
            fault(s, "L1: ledger %u was never closed", l);
    for (unsigned a = RECOVERERS; a < MENDERS; a++)
        if (!recovery_is_over(s, a))
            fault(s, "L1: a%u was never done", a);
    if (!mending_is_over(s))
        fault(s, "L2: ledgers were never brought back to full replication");
    for (unsigned l = 0; l < s->ledgers; l++)
        check_full(s, l);
}
