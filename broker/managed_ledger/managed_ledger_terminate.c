/* The end of a log that stays readable: nothing is added any more, and the node says so. */
#include "broker/managed_ledger/managed_ledger_inside.h"
#include "common/log.h"

bool managed_ledger_is_terminated(const struct managed_ledger *m)
{
    return m->terminated;
}

bool managed_ledger_has_ended(const struct managed_ledger *m)
{
    return m->record->terminatedposition && !m->terminate_saving;
}

static struct position terminated_at(const struct managed_ledger *m)
{
    const ManagedLedger__NestedPositionInfo *p = m->record->terminatedposition;

    return p ? (struct position){p->ledgerid, p->entryid} : POSITION_EARLIEST;
}

static void tell(struct managed_ledger *m, enum err err)
{
    struct position at = terminated_at(m);

    for (struct list_node *n; (n = list_pop_front(&m->terminations));) {
        struct ml_terminate *t = list_entry(n, struct ml_terminate, node);
        t->done(t, err, at);
    }
}

static void saved(struct ml_save *s, enum err err)
{
    struct managed_ledger *m = container_of(s, struct managed_ledger, terminate_save);

    m->terminate_saving = false;
    if (err == ERR_FENCED)
        ml_fail(m, err);
    if (!err)
        log_event(LOG_INFO, "managed_ledger.terminated", F_STR("topic", m->name),
                  F_I64("ledger", terminated_at(m).ledger), F_I64("entry", terminated_at(m).entry));
    tell(m, err);
    ml_release(m);
}

static void save(struct managed_ledger *m)
{
    struct position last = segments_last_entry(&m->segments);
    ManagedLedger__NestedPositionInfo *p = m->record->terminatedposition;

    if (!p) {
        p = mem_new(ManagedLedger__NestedPositionInfo);
        managed_ledger__nested_position_info__init(p);
        m->record->terminatedposition = p;
        p->ledgerid = last.ledger;
        p->entryid = last.entry;
    }
    m->terminate_save.done = saved;
    if (ml_node_save(&m->node, &m->terminate_save)) {
        tell(m, ERR_FENCED);
        return;
    }
    m->terminate_saving = true;
    ml_hold(m);
}

/* What was taken before is stored first; then the last ledger is sealed, then the node written. */
void ml_terminate_step(struct managed_ledger *m)
{
    if (list_empty(&m->terminations) || m->terminate_saving)
        return;
    if (m->failed) {
        tell(m, ERR_FENCED);
        return;
    }
    if (m->core.pending_bytes > 0)
        return;
    if (!m->core.ending)
        ml_core_end(&m->core);
    if (ml_core_settled(&m->core) && !m->failed)
        save(m);
}

static void begin(struct task *t)
{
    struct managed_ledger *m = container_of(t, struct managed_ledger, terminate_task);

    m->terminate_posted = false;
    ml_release(m); /* goes on with it */
}

void managed_ledger_terminate(struct managed_ledger *m, struct ml_terminate *t)
{
    m->terminated = true;
    list_push_back(&m->terminations, &t->node);
    if (m->terminate_posted)
        return;
    m->terminate_posted = true;
    m->terminate_task.run = begin;
    ml_hold(m);
    loop_post(m->env->home, &m->terminate_task);
}

/* ---- what its namespace says of it ---- */

void managed_ledger_configure(struct managed_ledger *m, const struct ml_policy *p)
{
    m->conf.retention_ms = p->retention_ms;
    m->conf.retention_bytes = p->retention_bytes;
    m->conf.quorum = p->quorum;
    ml_care(m);
}
