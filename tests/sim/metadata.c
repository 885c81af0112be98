#include "tests/sim/sim.h"

enum { ANY_VERSION = -2 };

static unsigned delay(struct sim *s)
{
    return 1 + roll(s, healed(s) ? 5 : s->knobs.slow);
}

struct ledger_facts facts_of(const struct sim *s, const struct record *r)
{
    return (struct ledger_facts){.state = r->state,
                                 .quorum = s->knobs.quorum,
                                 .last = r->last,
                                 .length = r->length,
                                 .tail = r->fragment[r->n - 1]};
}

static void answer(struct sim *s, struct event *e)
{
    struct meta_request m = s->meta_requests[e->a];

    if (m.life != actor_life(s, m.actor))
        return;
    if (m.actor == WRITER)
        writer_meta(s, &m, e->reply.err);
    else if (m.actor == AUDITOR)
        audit_meta(s, &m, e->reply.err);
    else if (m.actor >= MENDERS)
        mending_meta(s, &m, e->reply.err);
    else
        recovery_meta(s, &m, e->reply.err);
}

static enum err put_mark(struct sim *s, struct meta_request *m)
{
    struct sim_mark *k = &s->mark[m->ledger];

    if (m->of == META_UNMARK && !k->here)
        return ERR_NOT_FOUND;
    if (m->expected != ANY_VERSION && m->expected != (k->here ? k->version : -1))
        return ERR_BAD_VERSION;
    say(s, "metadata: the mark of ledger %u, %x, is %s by a%u", m->ledger,
        m->of == META_UNMARK ? k->bookies : m->mark.bookies,
        m->of == META_UNMARK ? "removed" : "put", m->actor);
    s->revision++;
    if (m->of == META_UNMARK) {
        k->here = false;
        check_unmarked(s, m->ledger);
        return ERR_OK;
    }
    *k = (struct sim_mark){true, k->version + 1, m->mark.bookies};
    for (unsigned b = 0; b < BOOKIES; b++)
        if (m->mark.bookies >> b & 1 && !bookie_is_here(s, b) && !s->lost_at[m->ledger][b])
            s->lost_at[m->ledger][b] = s->now + 1;
    return ERR_OK;
}

static enum err put(struct sim *s, struct meta_request *m)
{
    if (m->of != META_RECORD)
        return put_mark(s, m);
    struct record *r = &s->records[m->ledger];
    int64_t version = r->exists ? r->version : -1;

    if (version != m->expected)
        return ERR_BAD_VERSION;
    check_put(s, m);
    /* Whoever names a lost one anew has to see to it; the mark did not mean that. */
    for (unsigned b = 0; b < BOOKIES; b++)
        if (!record_names(s, r, b))
            s->lost_at[m->ledger][b] = 0;
    if (m->record.state == LEDGER_IN_RECOVERY && r->state == LEDGER_OPEN)
        s->truth[m->ledger].tail = m->record.fragment[m->record.n - 1];
    *r = m->record;
    r->exists = true;
    r->version = m->record.version = version + 1;
    s->revision++;
    s->truth[m->ledger].touched = true;
    if (m->ledger >= s->ledgers)
        s->ledgers = m->ledger + 1;
    if (version == -1)
        writer_past(s, m->ledger);
    say(s, "metadata: ledger %u is %s, version %d, by a%u", m->ledger,
        r->state == LEDGER_OPEN     ? "open"
        : r->state == LEDGER_CLOSED ? "closed"
                                    : "in recovery",
        (int)r->version, m->actor);
    return ERR_OK;
}

static enum err get(struct sim *s, struct meta_request *m)
{
    m->revision = s->revision;
    m->mark = s->mark[m->ledger];
    m->record = s->records[m->ledger];
    if (m->of == META_MARK)
        return m->mark.here ? ERR_OK : ERR_NOT_FOUND;
    return m->record.exists ? ERR_OK : ERR_NOT_FOUND;
}

static void take(struct sim *s, struct event *e)
{
    struct meta_request *m = &s->meta_requests[e->a];
    bool unsure = m->put && !healed(s) && chance(s, s->knobs.meta_unsure);
    bool lost = unsure && chance(s, 500);
    enum err err = ERR_UNKNOWN_STATE;

    if (!healed(s) && chance(s, s->knobs.meta_away))
        err = ERR_NOT_READY;
    else if (m->put && !lost)
        err = put(s, m);
    else if (!m->put)
        err = get(s, m);
    if (unsure && err == ERR_OK)
        err = ERR_UNKNOWN_STATE;
    if (err == ERR_UNKNOWN_STATE)
        s->tally->unsure++;
    struct event *back = later(s, delay(s), answer);
    back->a = e->a;
    back->reply.err = err;
}

void meta_ask(struct sim *s, const struct meta_request *m)
{
    unsigned i = s->next_meta++ % REQUESTS;

    s->meta_requests[i] = *m;
    s->meta_requests[i].life = actor_life(s, m->actor);
    later(s, delay(s), take)->a = i;
}
