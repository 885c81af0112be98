#include <assert.h>
#include <inttypes.h>
#include <stdio.h>

#include "broker/managed_ledger/managed_ledger_inside.h"
#include "common/log.h"
#include "metadata/paths.h"

static struct managed_ledger *of_node(struct ml_node *n)
{
    return container_of(n, struct managed_ledger, node);
}

/* The index goes in with every write, as of what is confirmed: it must not be ahead of what a
 * new owner finds, and where it is behind, the last entry knows better. */
static struct slice render(struct ml_node *n)
{
    struct managed_ledger *m = of_node(n);
    char index[24];

    m->dirty = false;
    m->doomed_written = m->n_doomed;
    ml_record_set_segments(m->record, &m->segments);
    if (m->core.confirmed_index > 0) {
        snprintf(index, sizeof(index), "%" PRIu64, m->core.confirmed_index - 1);
        ml_record_set_property(m->record, ML_RECORD_INDEX, index);
    }
    return managed_ledger_record_write(m->record);
}

static void put_done(struct meta_call *c, const struct meta_reply *r);
static void got(struct meta_call *c, const struct meta_reply *r);

/* One of these at a time: they share a call. */
static void put(struct ml_node *n, struct slice value, int64_t expected)
{
    struct managed_ledger *m = of_node(n);
    char path[META_KEY_MAX];

    /* The name was a path when it was opened. */
    if (path_managed_ledger(m->name, path))
        assert(0);
    ml_hold(m);
    m->node_call.done = put_done;
    meta_put(m->env->meta, path, value, expected, &m->node_call);
}

/* A store that went back may take a write all the same, and know nothing of what it names. */
static void put_done(struct meta_call *c, const struct meta_reply *r)
{
    struct managed_ledger *m = container_of(c, struct managed_ledger, node_call);

    ml_mend_heard(m, r->ahead);
    ml_node_put_done(&m->node, r->err, r->version);
    if (!r->err && ml_mend_is_due(m))
        ml_node_doubt(m);
    ml_release(m);
}

static void get(struct ml_node *n)
{
    struct managed_ledger *m = of_node(n);
    char path[META_KEY_MAX];

    if (path_managed_ledger(m->name, path))
        assert(0);
    ml_hold(m);
    m->node_call.done = got;
    meta_get(m->env->meta, path, &m->node_call);
}

static void got(struct meta_call *c, const struct meta_reply *r)
{
    struct managed_ledger *m = container_of(c, struct managed_ledger, node_call);

    ml_mend_heard(m, r->ahead);
    ml_node_got(&m->node, r->err, r->value, r->version);
    ml_release(m);
}

static void delay(struct ml_node *n, uint64_t us)
{
    struct managed_ledger *m = of_node(n);

    ml_hold(m);
    loop_after(m->env->home, &m->node_timer, us);
}

static void delayed(struct timer *t)
{
    struct managed_ledger *m = container_of(t, struct managed_ledger, node_timer);

    ml_node_delayed(&m->node);
    ml_release(m);
}

static void stored(struct ml_node *n)
{
    struct managed_ledger *m = of_node(n);

    for (unsigned i = 0; i < m->doomed_written; i++)
        ml_env_delete_ledger(m->env, m->doomed[i]);
    m->n_doomed -= m->doomed_written;
    for (unsigned i = 0; i < m->n_doomed; i++)
        m->doomed[i] = m->doomed[i + m->doomed_written];
    m->doomed_written = 0;
}

void ml_node_start(struct managed_ledger *m, int64_t version)
{
    static const struct ml_node_ops ops = {
        .render = render,
        .put = put,
        .get = get,
        .delay = delay,
        .stored = stored,
        .judge = ml_mend_judge,
        .mend = ml_mend_node,
        .sure = ml_mend_sure,
    };

    ml_node_init(&m->node, &ops, version);
    m->node_call.home = m->env->home;
    m->node_timer.run = delayed;
}

void ml_node_at_once(struct managed_ledger *m)
{
    ml_node_hurry(&m->node, true);
    if (!timer_armed(&m->node_timer))
        return;
    loop_cancel(m->env->home, &m->node_timer);
    delayed(&m->node_timer);
}

static void quietly_saved(struct ml_save *s, enum err err)
{
    struct managed_ledger *m = container_of(s, struct managed_ledger, quiet_save);

    m->quiet_saving = false;
    if (err && m->deleting)
        m->end_err = err;
    if (err == ERR_FENCED)
        ml_fail(m, err);
    else if (err)
        log_event(LOG_WARN, "managed_ledger.save_failed", F_STR("topic", m->name), F_ERR(err));
    else if (m->dirty && m->life <= ML_LIFE_SAVING)
        ml_node_quietly(m);
    ml_release(m);
}

void ml_node_quietly(struct managed_ledger *m)
{
    m->dirty = true;
    if (m->quiet_saving || m->failed)
        return;
    m->quiet_save.done = quietly_saved;
    if (ml_node_save(&m->node, &m->quiet_save))
        return;
    m->quiet_saving = true;
    ml_hold(m);
}

/* What is written now must be in ledgers that the store knows; and an owner that writes nothing
 * must not take another's version for its own, once the store has counted up to it again. */
void ml_node_doubt(struct managed_ledger *m)
{
    if (m->life == ML_LIFE_OPENING)
        m->doubted = true;
    else if (m->life <= ML_LIFE_CURSORS && !m->failed)
        ml_node_look(&m->node);
}

/* ---- because somebody asks
 * --------------------------------------------------------------------------------
 */

struct asked_save {
    struct ml_save save;
    struct task refused;
    struct managed_ledger *ml;
    struct ml_call *call;
};

static void asked_saved(struct ml_save *s, enum err err)
{
    struct asked_save *p = container_of(s, struct asked_save, save);
    struct managed_ledger *m = p->ml;
    struct ml_call *call = p->call;

    mem_free(p);
    if (err == ERR_FENCED)
        ml_fail(m, err);
    call->done(call, err, NULL);
    ml_release(m);
}

static void asked_refused(struct task *t)
{
    asked_saved(&container_of(t, struct asked_save, refused)->save, ERR_FENCED);
}

void managed_ledger_prove(struct managed_ledger *m, struct ml_call *call)
{
    struct asked_save *p = mem_new(struct asked_save);

    *p = (struct asked_save){
        .save.done = asked_saved, .refused.run = asked_refused, .ml = m, .call = call};
    ml_hold(m);
    if (ml_node_save(&m->node, &p->save))
        loop_post(m->env->home, &p->refused);
}

void managed_ledger_set_property(struct managed_ledger *m, const char *key, const char *value,
                                 struct ml_call *call)
{
    ml_record_set_property(m->record, key, value);
    managed_ledger_prove(m, call);
}

const char *managed_ledger_property(const struct managed_ledger *m, const char *key)
{
    return ml_record_property(m->record, key);
}
