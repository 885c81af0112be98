#include "broker/managed_ledger/managed_ledger_inside.h"

/* A wait that is no lack of bookies is of whatever failed before it. */
static enum ml_wait cause_of(const struct managed_ledger *m)
{
    switch (m->core.state) {
    case ML_WAITING:
        if (m->wait_why == ERR_NOT_ENOUGH_BOOKIES)
            return ML_WAIT_BOOKIES;
        return m->waits_for == ML_WAITS ? ML_WAIT_CREATE : m->waits_for;
    case ML_CREATING:
        return ML_WAIT_CREATE;
    case ML_LISTING:
        return ML_WAIT_NODE;
    case ML_DRAINING:
    case ML_CLOSING:
        return ML_WAIT_CLOSE;
    default:
        return ML_WAITS;
    }
}

/* Whole milliseconds; what is left of one counts with the next. */
void ml_waits_note(struct managed_ledger *m)
{
    const uint64_t now = loop_now(m->env->home);
    const enum ml_wait cause = cause_of(m);

    if (m->waits_for != ML_WAITS) {
        const uint64_t ms = (now - m->waits_us) / 1000;
        m->waits.ms[m->waits_for] += (uint32_t)ms;
        m->waits_us += ms * 1000;
    }
    if (m->waits_for == ML_WAITS)
        m->waits_us = now;
    m->waits_for = cause;
}

void ml_waits_since(const struct managed_ledger *m, struct ml_waits *then)
{
    for (unsigned i = 0; i < ML_WAITS; i++)
        then->ms[i] = m->waits.ms[i] - then->ms[i];
}
