/* The end of a log that stays readable: nothing is added any more, and the node says so. */
#include "broker/managed_ledger/managed_ledger_inside.h"
#include "common/log.h"

bool managed_ledger_is_terminated(const struct managed_ledger *m)
{
    return m->terminated;
}

bool managed_ledger_has_ended(const struct managed_ledger *m)
{
    return m->record->terminatedposition && !(m->terminating && m->terminating->saving);
}

static struct position terminated_at(const struct managed_ledger *m)
{
    const ManagedLedger__NestedPositionInfo *p = m->record->terminatedposition;

    return p ? (struct position){p->ledgerid, p->entryid} : POSITION_EARLIEST;
}

static void tell(struct managed_ledger *m, enum err err)
{
    struct position at = terminated_at(m);

    for (struct list_node *n; (n = list_pop_front(&m->terminating->asked));) {
        struct ml_terminate *t = list_entry(n, struct ml_terminate, node);
        t->done(t, err, at);
    }
}

static void saved(struct ml_save *s, enum err err)
{
    struct managed_ledger *m = container_of(s, struct ml_terminating, save)->ml;

    m->terminating->saving = false;
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
    m->terminating->save.done = saved;
    if (ml_node_save(&m->node, &m->terminating->save)) {
        tell(m, ERR_FENCED);
        return;
    }
    m->terminating->saving = true;
    ml_hold(m);
}

bool ml_is_terminating(const struct managed_ledger *m)
{
    return m->terminating && !list_empty(&m->terminating->asked);
}

/* What was taken before is stored first; then the last ledger is sealed, then the node written. */
void ml_terminate_step(struct managed_ledger *m)
{
    if (!ml_is_terminating(m) || m->terminating->saving)
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
    struct managed_ledger *m = container_of(t, struct ml_terminating, task)->ml;

    m->terminating->posted = false;
    ml_release(m); /* goes on with it */
}

static struct ml_terminating *terminating_of(struct managed_ledger *m)
{
    if (!m->terminating) {
        m->terminating = mem_new(struct ml_terminating);
        m->terminating->ml = m;
        list_init(&m->terminating->asked);
    }
    return m->terminating;
}

void managed_ledger_terminate(struct managed_ledger *m, struct ml_terminate *t)
{
    struct ml_terminating *all = terminating_of(m);

    m->terminated = true;
    list_push_back(&all->asked, &t->node);
    if (all->posted)
        return;
    all->posted = true;
    all->task.run = begin;
    ml_hold(m);
    loop_post(m->env->home, &all->task);
}

/* ---- what its namespace says of it ---- */

static bool is_policy_of(const struct ml_conf *c, const struct ml_policy *p)
{
    return c->retention_ms == p->retention_ms && c->retention_bytes == p->retention_bytes &&
           c->quorum.ensemble == p->quorum.ensemble && c->quorum.write == p->quorum.write &&
           c->quorum.ack == p->quorum.ack;
}

void managed_ledger_configure(struct managed_ledger *m, const struct ml_policy *p)
{
    mem_free(m->own_conf);
    m->own_conf = NULL;
    if (!is_policy_of(&m->env->conf, p)) {
        m->own_conf = mem_new(struct ml_conf);
        *m->own_conf = m->env->conf;
        m->own_conf->retention_ms = p->retention_ms;
        m->own_conf->retention_bytes = p->retention_bytes;
        m->own_conf->quorum = p->quorum;
    }
    m->cursor_env.conf = ml_conf_of(m);
    ml_care(m);
}
