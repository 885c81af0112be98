/* A bookie whose disk is lost with all that was on it, and the ways it may come back (E.8, E.9). */
#include <string.h>

#include "tests/sim/sim.h"

enum { OPERATOR_MAX = 400, SCAN_MAX = 30, POLL = 40, LEAVES = 300, LIMBO_PER_MILLE = 600 };

bool bookie_is_here(const struct sim *s, unsigned b)
{
    return !s->bookie[b].down;
}

bool bookie_is_out(const struct sim *s, unsigned b)
{
    enum identity i = s->bookie[b].identity;

    return i != IDENTITY_SOUND && i != IDENTITY_LIMBO;
}

enum err bookie_denial(const struct sim_bookie *k, enum err no)
{
    return k->identity == IDENTITY_LIMBO ? ERR_UNKNOWN_STATE : no;
}

static bool names(const struct record *r, unsigned ensemble, unsigned b)
{
    for (unsigned i = 0; i < r->n; i++)
        for (unsigned k = 0; k < ensemble; k++)
            if (r->fragment[i].bookie[k] == b)
                return true;
    return false;
}

static void forget_losses(struct sim *s, unsigned b)
{
    memset(s->bookie[b].lost, 0, sizeof s->bookie[b].lost);
    for (unsigned l = 0; l < s->ledgers; l++)
        s->truth[l].touched = true;
}

static void serve(struct sim *s, unsigned b, enum identity as)
{
    struct sim_bookie *k = &s->bookie[b];

    k->identity = as;
    k->down = false;
    s->revision++;
    for (unsigned l = 0; l < LEDGERS; l++)
        s->lost_at[l][b] = 0;
}

/* ---- told to start without what it had ---- */

/* What it may have promised: to take no more from whoever wrote before, which a ledger's record
 * does not say of each bookie; and copies, also of a recovery that has not put its name there. */
static void scan_one(struct sim *s, unsigned b, unsigned ledger)
{
    struct sim_bookie *k = &s->bookie[b];
    const struct record *r = &s->records[ledger];
    const struct fragment *tail = &r->fragment[r->n - 1];

    if (!r->exists)
        return;
    bool in_tail = false;
    for (unsigned i = 0; i < s->knobs.quorum.ensemble; i++)
        in_tail |= tail->bookie[i] == b;
    if (r->state != LEDGER_CLOSED && in_tail)
        k->fenced[ledger] = k->durable_fenced[ledger] = true;
    if (names(r, s->knobs.quorum.ensemble, b) || r->state == LEDGER_IN_RECOVERY)
        k->unhealed |= 1u << ledger;
}

static void scan_event(struct sim *s, struct event *e)
{
    unsigned b = e->a;
    struct sim_bookie *k = &s->bookie[b];

    if (k->scanned < s->ledgers) {
        scan_one(s, b, k->scanned++);
        later(s, 1 + roll(s, SCAN_MAX), scan_event)->a = b;
        return;
    }
    say(s, "b%u starts without its disk; to be made up for: ledgers %x", b, k->unhealed);
    s->tally->limbo++;
    serve(s, b, IDENTITY_LIMBO);
}

void amnesia_healed(struct sim *s, unsigned b)
{
    say(s, "b%u has everything again", b);
    s->tally->healed++;
    s->bookie[b].identity = IDENTITY_SOUND;
    forget_losses(s, b);
}

/* ---- decommissioned, and a new one where it was ---- */

static void poll_event(struct sim *s, struct event *e)
{
    unsigned b = e->a;

    for (unsigned l = 0; l < s->ledgers; l++)
        if (names(&s->records[l], s->knobs.quorum.ensemble, b)) {
            later(s, POLL, poll_event)->a = b;
            return;
        }
    say(s, "b%u has left; a new one is at its address", b);
    s->tally->fresh++;
    memset(s->bookie[b].memory, 0, sizeof s->bookie[b].memory);
    memset(s->bookie[b].disk, 0, sizeof s->bookie[b].disk);
    forget_losses(s, b);
    serve(s, b, IDENTITY_SOUND);
}

/* ---- both ---- */

static void operator_event(struct sim *s, struct event *e)
{
    struct sim_bookie *k = &s->bookie[e->a];
    bool limbo = chance(s, LIMBO_PER_MILLE);

    say(s, "b%u %s", e->a, limbo ? "is told to start without its disk" : "is decommissioned");
    k->identity = limbo ? IDENTITY_SCANNING : IDENTITY_LEAVING;
    s->revision++;
    later(s, limbo ? 1 : LEAVES, limbo ? scan_event : poll_event)->a = e->a;
}

/* With the identity that the cluster knows it is refused, until somebody decides. */
void bookie_wipe(struct sim *s, unsigned b)
{
    struct sim_bookie *k = &s->bookie[b];

    bookie_crash(s, b);
    say(s, "b%u loses its disk, and is refused", b);
    s->tally->wiped++;
    k->life++; /* does not come back by itself */
    k->identity = IDENTITY_REFUSED;
    k->scanned = k->unhealed = 0;
    for (unsigned l = 0; l < LEDGERS; l++)
        for (unsigned e = 0; e < ENTRIES; e++)
            k->lost[l][e] = k->disk[l][e].here;
    memcpy(k->lost_fence, k->durable_fenced, sizeof k->lost_fence);
    memset(k->memory, 0, sizeof k->memory);
    memset(k->disk, 0, sizeof k->disk);
    memset(k->fenced, 0, sizeof k->fenced);
    memset(k->durable_fenced, 0, sizeof k->durable_fenced);
    later(s, 1 + roll(s, OPERATOR_MAX), operator_event)->a = b;
}

bool amnesia_is_over(const struct sim *s)
{
    for (unsigned b = 0; b < BOOKIES; b++)
        if (s->bookie[b].identity != IDENTITY_SOUND)
            return false;
    return true;
}
