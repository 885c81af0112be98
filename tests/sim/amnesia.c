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

    return i != IDENTITY_SOUND;
}

enum err bookie_denial(const struct sim_bookie *k, unsigned ledger, enum err no)
{
    return k->unhealed >> ledger & 1 ? ERR_UNKNOWN_STATE : no;
}

bool record_names(const struct sim *s, const struct record *r, unsigned b)
{
    for (unsigned i = 0; i < r->n; i++)
        for (unsigned k = 0; k < s->knobs.quorum.ensemble; k++)
            if (r->fragment[i].bookie[k] == b)
                return true;
    return false;
}

/* Whoever a ledger was moved away from is not named any more, and who wrote it before need not know
 * that.  So of one that is older than its loss it asks the metadata, whatever it has of it since.
 */
bool bookie_may_have_fenced(const struct sim *s, unsigned b, unsigned ledger)
{
    const struct sim_bookie *k = &s->bookie[b];
    const struct record *r = &s->records[ledger];

    if (ledger >= k->newest)
        return false;
    struct record tail = {.n = 1};
    tail.fragment[0] = r->fragment[r->n - 1];
    return r->state != LEDGER_OPEN || !record_names(s, &tail, b);
}

static void serve(struct sim *s, unsigned b)
{
    struct sim_bookie *k = &s->bookie[b];

    k->identity = IDENTITY_SOUND;
    k->newest = s->ledgers;
    k->down = false;
    s->revision++;
    for (unsigned l = 0; l < LEDGERS; l++)
        s->lost_at[l][b] = 0;
}

/* ---- told to start without what it had ---- */

/* As bookie/integrity.c does it.  What it may have promised: to take no more from whoever wrote
 * before, and copies, also of a recovery that has not put its name there yet. */
static void scan_one(struct sim *s, unsigned b, unsigned ledger)
{
    struct sim_bookie *k = &s->bookie[b];
    const struct record *r = &s->records[ledger];
    struct record tail = {.n = 1};

    if (!r->exists)
        return;
    tail.fragment[0] = r->fragment[r->n - 1];
    if (r->state == LEDGER_OPEN ? record_names(s, &tail, b) : record_names(s, r, b))
        k->fenced[ledger] = k->durable_fenced[ledger] = true;
    if (record_names(s, r, b) || r->state == LEDGER_IN_RECOVERY)
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
    say(s, "b%u starts without its disk; in limbo: ledgers %x", b, k->unhealed);
    for (unsigned l = 0; l < LEDGERS; l++)
        if (!(k->unhealed >> l & 1)) /* nobody says that it lacks anything of it */
            memset(k->lost[l], 0, sizeof k->lost[l]);
    s->tally->limbo++;
    serve(s, b);
}

void amnesia_healed(struct sim *s, unsigned b, unsigned ledger)
{
    struct sim_bookie *k = &s->bookie[b];

    say(s, "b%u has all of ledger %u again", b, ledger);
    k->unhealed &= ~(1u << ledger);
    s->tally->healed += k->unhealed == 0;
    memset(k->lost[ledger], 0, sizeof k->lost[ledger]);
    s->truth[ledger].touched = true;
}

/* ---- decommissioned, and a new one where it was ---- */

/* Somebody names it, or may have given it entries and name it when he has found the end. */
static bool is_wanted(struct sim *s, unsigned b, unsigned ledger)
{
    const struct record *r = &s->records[ledger];
    uint32_t bit = 1u << ledger;

    if (r->state != LEDGER_IN_RECOVERY)
        s->bookie[b].in_recovery &= ~bit;
    return s->bookie[b].in_recovery & bit || record_names(s, r, b);
}

static void poll_event(struct sim *s, struct event *e)
{
    unsigned b = e->a;

    for (unsigned l = 0; l < s->ledgers; l++)
        if (is_wanted(s, b, l)) {
            later(s, POLL, poll_event)->a = b;
            return;
        }
    say(s, "b%u has left; a new one is at its address", b);
    s->tally->fresh++;
    memset(s->bookie[b].memory, 0, sizeof s->bookie[b].memory);
    memset(s->bookie[b].disk, 0, sizeof s->bookie[b].disk);
    memset(s->bookie[b].lost, 0, sizeof s->bookie[b].lost);
    for (unsigned l = 0; l < s->ledgers; l++)
        s->truth[l].touched = true;
    serve(s, b);
}

/* ---- both ---- */

static void operator_event(struct sim *s, struct event *e)
{
    struct sim_bookie *k = &s->bookie[e->a];
    bool limbo = chance(s, LIMBO_PER_MILLE);

    say(s, "b%u %s", e->a, limbo ? "is told to start without its disk" : "is decommissioned");
    for (unsigned l = 0; l < s->ledgers; l++)
        if (s->records[l].state == LEDGER_IN_RECOVERY)
            k->in_recovery |= 1u << l;
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
        if (s->bookie[b].identity != IDENTITY_SOUND || s->bookie[b].unhealed)
            return false;
    return true;
}
