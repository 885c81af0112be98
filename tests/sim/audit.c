/* The shell of the auditor: who is lost, which ledgers name it, and their marks. */
#include "common/mem.h"
#include "ledger/auditor.h"
#include "tests/sim/sim.h"

enum { TICK = 25, DELAY = 150, RETRY = 60 };

struct audit {
    struct auditor core;
    uint32_t here, leaving; /* as they were a tick ago */
    bool all_marked;
    unsigned ledger; /* that is being looked at */
    uint32_t lacks;
};

static void ask(struct sim *s, const struct meta_request *m)
{
    struct meta_request q = *m;

    q.actor = AUDITOR;
    q.ledger = s->audit->ledger;
    meta_ask(s, &q);
}

static void look_on(struct sim *s, bool marked)
{
    struct audit *a = s->audit;

    a->all_marked = a->all_marked && marked;
    if (++a->ledger < s->ledgers)
        ask(s, &(struct meta_request){.of = META_RECORD});
    else
        auditor_ended(&a->core, a->all_marked, s->now);
}

static void feed(struct sim *s)
{
    struct audit *a = s->audit;

    for (unsigned b = 0; b < BOOKIES; b++)
        auditor_saw(&a->core, b, a->here >> b & 1, a->leaving >> b & 1, s->now);
    a->here = a->leaving = 0;
    for (unsigned b = 0; b < BOOKIES; b++) {
        a->here |= bookie_is_here(s, b) ? 1u << b : 0;
        a->leaving |= s->bookie[b].identity == IDENTITY_LEAVING ? 1u << b : 0;
    }
}

static void tick(struct sim *s, struct event *e)
{
    struct audit *a = s->audit;

    (void)e;
    later(s, TICK, tick);
    feed(s);
    if (auditor_due(&a->core, s->now) > s->now)
        return;
    s->tally->audits++;
    auditor_began(&a->core, s->now);
    a->all_marked = true;
    a->ledger = 0;
    if (s->ledgers > 0)
        ask(s, &(struct meta_request){.of = META_RECORD});
    else
        auditor_ended(&a->core, true, s->now);
}

static void look_at(struct sim *s, const struct record *r)
{
    struct audit *a = s->audit;

    a->lacks = 0;
    if (r->state == LEDGER_IN_RECOVERY)
        auditor_in_recovery(&a->core);
    for (unsigned i = 0; i < r->n; i++)
        for (unsigned k = 0; k < s->knobs.quorum.ensemble; k++)
            if (auditor_is_after(&a->core, r->fragment[i].bookie[k]))
                a->lacks |= 1u << r->fragment[i].bookie[k];
    if (a->lacks)
        ask(s, &(struct meta_request){.of = META_MARK});
    else
        look_on(s, true);
}

static void mark(struct sim *s, const struct meta_request *m, enum err err)
{
    struct meta_request q = {.put = true, .of = META_MARK, .expected = -1};

    q.mark.bookies = s->audit->lacks;
    if (!err) {
        q.expected = m->mark.version;
        q.mark.bookies |= m->mark.bookies;
    }
    ask(s, &q);
}

static void marked(struct sim *s, const struct meta_request *m)
{
    s->tally->marks++;
    s->tally->marked_again += m->expected >= 0;
    look_on(s, true);
}

void audit_meta(struct sim *s, const struct meta_request *m, enum err err)
{
    if (m->of == META_RECORD && !err)
        look_at(s, &m->record);
    else if (m->of == META_RECORD)
        look_on(s, err == ERR_NOT_FOUND);
    else if (!m->put && (!err || err == ERR_NOT_FOUND))
        mark(s, m, err);
    else if (m->put && (err == ERR_BAD_VERSION || err == ERR_UNKNOWN_STATE))
        ask(s, &(struct meta_request){.of = META_MARK});
    else if (err)
        look_on(s, false);
    else
        marked(s, m);
}

void audit_start(struct sim *s)
{
    s->audit = mem_new(struct audit);
    auditor_init(&s->audit->core, DELAY, 0, RETRY, 0, AUDITOR_NEVER);
    later(s, s->knobs.unmarked ? HEAL : 1, tick);
}

void audit_drop(struct sim *s)
{
    if (s->audit)
        auditor_drop(&s->audit->core);
    mem_free(s->audit);
    s->audit = NULL;
}
