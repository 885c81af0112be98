#include <assert.h>

#include "broker/managed_ledger/managed_ledger_inside.h"
#include "common/log.h"
#include "metadata/paths.h"

/* ---- holding
 * ------------------------------------------------------------------------------------- */

struct managed_ledger *ml_new(struct ml_env *e, const char *name, struct ml_owner *owner)
{
    struct managed_ledger *m = mem_pool_take(e->ledgers_pool);

    m->env = e;
    m->owner = owner;
    m->name = mem_string(name);
    list_push_back(&e->all, &m->in_env);
    e->n++;
    list_init(&m->answered);
    list_init(&m->reads);
    list_init(&m->sources);
    ml_write_init(m, -1, 0);
    ml_cursors_init(m);
    remembered_init(&m->remembered, &e->remembered);
    return m;
}

void ml_free(struct managed_ledger *m)
{
    assert(m->n_cursors == 0 && list_empty(&m->reads));
    list_remove(&m->in_env);
    m->env->n--;
    if (m->record)
        managed_ledger__managed_ledger_info__free_unpacked(m->record, NULL);
    if (m->current)
        ledger_drop(&m->current);
    if (m->created)
        ledger_drop(&m->created);
    slice_drop(&m->node.value);
    remembered_drop(&m->remembered);
    mem_free(m->mend);
    segments_clear(&m->segments);
    mem_free(m->cursors);
    mem_free(m->doomed);
    mem_free(m->rolling);
    mem_free(m->terminating);
    mem_free(m->own_conf);
    mem_free(m->name);
    mem_pool_give(m);
}

void ml_hold(struct managed_ledger *m)
{
    m->holds++;
}

void ml_release(struct managed_ledger *m)
{
    assert(m->holds > 0);
    m->holds--;
    ml_end_step(m);
}

/* ---- one ending after the other
 * -------------------------------------------------------------------- */

static void note(struct managed_ledger *m, enum err err)
{
    if (err && !m->end_err)
        m->end_err = err;
}

struct ending_cursor {
    struct cursor_call call;
    struct managed_ledger *ml;
};

static void cursor_ended(struct cursor_call *call, enum err err, struct cursor *c)
{
    struct ending_cursor *one = container_of(call, struct ending_cursor, call);
    struct managed_ledger *m = one->ml;

    (void)c;
    mem_free(one);
    note(m, err);
    m->end_pending--;
    ml_release(m);
}

static void end_cursors(struct managed_ledger *m)
{
    struct cursor *c;

    while ((c = ml_cursors_take_last(m))) {
        if (m->failed || (m->deleting && m->end_err)) {
            cursor_abandon(&c);
            continue;
        }
        struct ending_cursor *one = mem_new(struct ending_cursor);
        one->call.done = cursor_ended;
        one->ml = m;
        m->end_pending++;
        ml_hold(m);
        if (m->deleting)
            cursor_delete(&c, &one->call);
        else
            cursor_close(&c, &one->call);
    }
}

struct ending_ledger {
    struct ledger_call call;
    struct managed_ledger *ml;
};

static void ledger_ended(struct ledger_call *call, enum err err, struct ledger *l)
{
    struct ending_ledger *one = container_of(call, struct ending_ledger, call);
    struct managed_ledger *m = one->ml;

    (void)l;
    mem_free(one);
    note(m, err);
    m->end_pending--;
    ml_release(m);
}

static void end_ledger(struct managed_ledger *m, int64_t ledger)
{
    struct ending_ledger *one = mem_new(struct ending_ledger);

    one->call.done = ledger_ended;
    one->ml = m;
    m->end_pending++;
    ml_hold(m);
    ledger_delete(m->env->ledgers, ledger, &one->call);
}

static void end_ledgers(struct managed_ledger *m)
{
    for (unsigned i = 0; i < m->segments.n; i++)
        end_ledger(m, m->segments.at[i].ledger);
    for (unsigned i = 0; i < m->n_doomed; i++)
        end_ledger(m, m->doomed[i]);
}

static void node_ended(struct meta_call *c, const struct meta_reply *r)
{
    struct managed_ledger *m = container_of(c, struct managed_ledger, node_call);

    if (r->err != ERR_NOT_FOUND)
        note(m, r->err == ERR_BAD_VERSION ? ERR_FENCED : r->err);
    m->end_pending--;
    ml_release(m);
}

static void end_node(struct managed_ledger *m)
{
    char path[META_KEY_MAX];

    if (path_managed_ledger(m->name, path))
        assert(0);
    m->node_call.done = node_ended;
    m->end_pending++;
    ml_hold(m);
    meta_remove(m->env->meta, path, m->node.version, &m->node_call);
}

static void leave(struct managed_ledger *m)
{
    struct ml_call *call = m->end_call;
    enum err err = m->end_err;

    if (m->holds > 0)
        return;
    ml_free(m);
    call->done(call, err, NULL);
}

/* What is done on the way into each life.  Before anything is deleted the node is written once
 * more: only its owner may. */
static void enter(struct managed_ledger *m, enum ml_life next)
{
    m->life = next;
    if (next == ML_LIFE_SAVING && (m->dirty || m->deleting))
        ml_node_quietly(m);
    else if (next == ML_LIFE_CURSORS)
        end_cursors(m);
    else if (next == ML_LIFE_LEDGERS && m->deleting && !m->end_err && !m->failed)
        end_ledgers(m);
    else if (next == ML_LIFE_NODE && m->deleting && !m->end_err && !m->failed)
        end_node(m);
    else if (next == ML_LIFE_LEAVING && m->failed)
        note(m, ERR_FENCED);
}

void ml_end_step(struct managed_ledger *m)
{
    if (m->life == ML_LIFE_SERVING)
        ml_terminate_step(m);
    if (m->life < ML_LIFE_SEALING)
        return;
    if (m->life == ML_LIFE_SEALING) {
        if (!ml_core_settled(&m->core) || m->making > 0)
            return;
        ml_wait_over(m);
        enter(m, ML_LIFE_SAVING);
    }
    while (m->life < ML_LIFE_LEAVING) {
        bool at_rest = m->node.state == ML_NODE_IDLE || m->node.state == ML_NODE_FENCED;
        if (m->end_pending > 0 || !at_rest)
            return;
        enter(m, m->life + 1);
    }
    leave(m);
}

/* ---- asked for
 * ------------------------------------------------------------------------------------- */

static void begin(struct task *t)
{
    struct managed_ledger *m = container_of(t, struct managed_ledger, end_task);

    ml_read_end(m, ERR_CLOSED);
    m->life = ML_LIFE_SEALING;
    ml_core_end(&m->core);
    ml_close_again(m);
    ml_node_at_once(m);
    ml_release(m);
}

static void end(struct managed_ledger **ml, struct ml_call *call, bool deleting)
{
    struct managed_ledger *m = *ml;

    *ml = NULL;
    assert(m->life == ML_LIFE_SERVING);
    assert(!ml_is_terminating(m));
    m->life = ML_LIFE_STOPPING;
    m->end_call = call;
    m->deleting = deleting;
    m->end_task.run = begin;
    ml_hold(m);
    loop_post(m->env->home, &m->end_task);
}

void managed_ledger_close(struct managed_ledger **m, struct ml_call *call)
{
    end(m, call, false);
}

void managed_ledger_delete(struct managed_ledger **m, struct ml_call *call)
{
    end(m, call, true);
}
