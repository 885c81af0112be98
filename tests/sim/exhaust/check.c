#include <string.h>

#include "tests/sim/exhaust/model.h"

/* The invariants of the protocol, asked of the disks and the metadata.  Nothing here uses
 * ledger/quorum.c: it is one of the things that are tested. */

unsigned size_at(entry_id e)
{
    return 3 + 4 * (unsigned)e;
}

int64_t length_at(entry_id e)
{
    int64_t length = 0;

    for (entry_id i = 0; i <= e; i++)
        length += size_at(i);
    return length;
}

const struct fragment *fragment_at(const struct record *r, entry_id e)
{
    unsigned i = r->n - 1;

    while (i > 0 && r->fragment[i].first > e)
        i--;
    return &r->fragment[i];
}

/* The k-th bookie that must hold e. */
static struct bookie *holder(entry_id e, unsigned k)
{
    return &world.bookie[fragment_at(&world.record, e)->bookie[((unsigned)e + k) % ENSEMBLE]];
}

static unsigned copies(entry_id e)
{
    unsigned n = 0;

    for (unsigned k = 0; k < setting.quorum.write; k++)
        n += holder(e, k)->disk[e].here;
    return n;
}

/* Where the writer's add of e counts; whom a recovery puts there instead, it does not know. */
static unsigned late_copies(entry_id e)
{
    unsigned n = 0;

    for (unsigned k = 0; k < setting.quorum.write; k++) {
        const struct image *i =
            &world.bookie[world.tail.bookie[((unsigned)e + k) % ENSEMBLE]].disk[e];
        n += i->here && i->late;
    }
    return n;
}

void check_store(unsigned bookie, const struct exchange *x)
{
    if (x->actor == RECOVERER && x->plain)
        fault("I5: b%u gets a copy of entry %d as a plain add", bookie, x->entry);
}

static void check_fragments(const struct record *r)
{
    for (unsigned i = 0; i < r->n; i++) {
        const struct fragment *f = &r->fragment[i];
        if (i == 0 ? f->first != 0 : f->first <= r->fragment[i - 1].first)
            fault("I8: fragment %u begins at %d", i, (int)f->first);
        for (unsigned a = 0; a < ENSEMBLE; a++)
            for (unsigned b = 0; b < a; b++)
                if (f->bookie[a] == f->bookie[b])
                    fault("I8: b%u is twice in a fragment", f->bookie[a]);
    }
}

static void check_change(const struct meta_exchange *m)
{
    const struct record *old = &world.record, *new = &m->record;
    entry_id first = new->fragment[new->n - 1].first;

    if (old->state != LEDGER_OPEN || m->actor != WRITER)
        fault("I2: the ledger is opened again");
    if (first != (entry_id)world.confirmed)
        fault("I1: other bookies from %d on, with %u entries confirmed", (int)first,
              world.confirmed);
    for (unsigned i = 0; i < old->n; i++)
        if (old->fragment[i].first < first &&
            (i + 1 >= new->n ||
             memcmp(&new->fragment[i], &old->fragment[i], sizeof *old->fragment)))
            fault("I2: a change touches fragment %u", i);
}

void check_put(const struct meta_exchange *m)
{
    const struct record *old = &world.record;

    check_fragments(&m->record);
    if (old->state == LEDGER_CLOSED)
        fault("I2: a closed ledger is changed");
    if (m->record.state == LEDGER_OPEN)
        check_change(m);
    if (old->state == LEDGER_IN_RECOVERY && m->actor == WRITER)
        fault("I2: the writer closes a ledger that is in recovery");
    if (old->state == LEDGER_OPEN && m->record.state == LEDGER_CLOSED && m->actor != WRITER)
        fault("I2: the recoverer closes a ledger without a mark");
}

static void check_closed(void)
{
    const struct record *r = &world.record;

    if ((entry_id)world.confirmed > r->last + 1)
        fault("I2: closed at %d, but %u entries were confirmed", (int)r->last, world.confirmed);
    if (r->length != length_at(r->last))
        fault("I2: closed with length %d, it is %d", (int)r->length, (int)length_at(r->last));
    for (entry_id e = 0; e <= r->last; e++)
        if (copies(e) < setting.quorum.ack)
            fault("I3: entry %d, closed at %d, has %u copies", (int)e, (int)r->last, copies(e));
    if (world.sealed && r->last != (entry_id)world.confirmed - 1)
        fault("I2: sealed at %d with %u confirmed", (int)r->last, world.confirmed);
}

void check_state(void)
{
    for (entry_id e = 0; e < (entry_id)world.confirmed; e++)
        if (copies(e) < setting.quorum.ack)
            fault("I1: entry %d was confirmed and has %u copies", (int)e, copies(e));
    for (entry_id e = world.tail.first; world.covered && e < ENTRIES; e++)
        if (late_copies(e) >= setting.quorum.ack)
            fault("I5: entry %d reached its ack quorum after the fence covered it", (int)e);
    if (world.record.state == LEDGER_CLOSED)
        check_closed();
    else if (world.sealed)
        fault("I2: the writer's seal is not in the metadata");
}

/* A bookie that is gone for good may leave too few for a recovery. */
void check_end(void)
{
    for (unsigned b = 0; b < ENSEMBLE + setting.spares; b++)
        if (world.bookie[b].down)
            return;
    if (world.record.state != LEDGER_CLOSED)
        fault("L1: nothing can happen any more, and the ledger is not closed");
}
