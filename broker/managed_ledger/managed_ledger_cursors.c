#include <string.h>

#include "broker/managed_ledger/managed_ledger_inside.h"
#include "common/log.h"

static void moved(struct cursor_env *e, struct cursor *c)
{
    struct managed_ledger *m = container_of(e, struct managed_ledger, cursor_env);

    /* Only one that leaves the first ledger can set anything free. */
    if (m->segments.n > 1 && cursor_durable_mark_delete(c).ledger >= m->segments.at[0].ledger &&
        position_compare(
            cursor_durable_mark_delete(c),
            (struct position){m->segments.at[0].ledger, m->segments.at[0].entries - 1}) >= 0)
        ml_care(m);
}

static void failed(struct cursor_env *e, struct cursor *c, enum err err)
{
    struct managed_ledger *m = container_of(e, struct managed_ledger, cursor_env);

    log_event(LOG_WARN, "cursor.failed", F_STR("topic", m->name), F_STR("cursor", cursor_name(c)),
              F_ERR(err));
    ml_fail(m, ERR_FENCED);
}

static int64_t node_version(const struct cursor_env *e)
{
    return container_of((struct cursor_env *)(uintptr_t)e, struct managed_ledger, cursor_env)
        ->node.version;
}

static enum err prove(struct cursor_env *e, struct ml_save *s)
{
    return ml_node_save(&container_of(e, struct managed_ledger, cursor_env)->node, s);
}

static void doubted(struct cursor_env *e)
{
    ml_node_doubt(container_of(e, struct managed_ledger, cursor_env));
}

void ml_cursors_init(struct managed_ledger *m)
{
    m->cursor_env = (struct cursor_env){
        .home = m->env->home,
        .ledgers = m->env->ledgers,
        .meta = m->env->meta,
        .pool = m->env->cursors_pool,
        .conf = ml_conf_of(m),
        .ml_name = m->name,
        .segments = &m->segments,
        .moved = moved,
        .failed = failed,
        .node_version = node_version,
        .prove = prove,
        .doubted = doubted,
    };
}

void ml_cursors_add(struct managed_ledger *m, struct cursor *c)
{
    if (m->n_cursors == m->cursors_room) {
        m->cursors_room = m->cursors_room ? m->cursors_room * 2 : 4;
        m->cursors = mem_resize(m->cursors, m->cursors_room * sizeof(*m->cursors));
    }
    m->cursors[m->n_cursors++] = c;
    cursor_doubt(c);
}

void ml_cursors_doubt(struct managed_ledger *m, bool went_back)
{
    m->cursor_env.looks++;
    m->cursor_env.returns += went_back;
    for (unsigned i = 0; i < m->n_cursors && went_back; i++)
        cursor_doubt(m->cursors[i]);
}

struct cursor *ml_cursors_take_last(struct managed_ledger *m)
{
    return m->n_cursors ? m->cursors[--m->n_cursors] : NULL;
}

struct position ml_cursors_slowest(const struct managed_ledger *m)
{
    struct position slowest = POSITION_LATEST;

    for (unsigned i = 0; i < m->n_cursors; i++) {
        struct position p = cursor_durable_mark_delete(m->cursors[i]);
        if (position_compare(p, slowest) < 0)
            slowest = p;
    }
    /* One that is being made may start at any place that is readable now. */
    return m->making ? POSITION_EARLIEST : slowest;
}

static unsigned place_of(const struct managed_ledger *m, const char *name)
{
    unsigned i = 0;

    while (i < m->n_cursors && strcmp(cursor_name(m->cursors[i]), name) != 0)
        i++;
    return i;
}

struct cursor *managed_ledger_cursor(const struct managed_ledger *m, const char *name)
{
    unsigned i = place_of(m, name);

    return i < m->n_cursors ? m->cursors[i] : NULL;
}

unsigned managed_ledger_n_cursors(const struct managed_ledger *m)
{
    return m->n_cursors;
}

void managed_ledger_cursors(const struct managed_ledger *m,
                            void (*each)(void *ctx, struct cursor *c), void *ctx)
{
    for (unsigned i = m->n_cursors; i-- > 0;)
        each(ctx, m->cursors[i]);
}

/* ---- making and unmaking ------------------------------------------------------------------------
 */

struct cursor_job {
    struct cursor_call call;
    struct task refused;
    struct managed_ledger *ml;
    struct ml_cursor_call *answer;
    char *name;
    enum err err;
    struct ml_save save; /* making it: the node is written once more */
    struct cursor *cursor;
    bool adopting;
};

static void job_over(struct cursor_job *j, enum err err, struct cursor *c)
{
    struct managed_ledger *m = j->ml;
    struct ml_cursor_call *answer = j->answer;

    mem_free(j->name);
    mem_free(j);
    answer->done(answer, err, c);
    ml_release(m);
}

static void refused(struct task *t)
{
    struct cursor_job *j = container_of(t, struct cursor_job, refused);

    job_over(j, j->err, NULL);
}

static struct cursor_job *new_job(struct managed_ledger *m, const char *name,
                                  struct ml_cursor_call *answer)
{
    struct cursor_job *j = mem_new(struct cursor_job);

    j->ml = m;
    j->answer = answer;
    j->name = mem_string(name);
    j->refused.run = refused;
    ml_hold(m);
    return j;
}

static void refuse(struct cursor_job *j, enum err err)
{
    j->err = err;
    loop_post(j->ml->env->home, &j->refused);
}

static void proven(struct ml_save *s, enum err err)
{
    struct cursor_job *j = container_of(s, struct cursor_job, save);
    struct managed_ledger *m = j->ml;
    struct cursor *c = j->cursor;

    m->making--;
    if (!err && m->life != ML_LIFE_SERVING)
        err = ERR_CLOSED;
    if (err)
        cursor_abandon(&c);
    else
        ml_cursors_add(m, c);
    if (err == ERR_FENCED)
        ml_fail(m, err);
    ml_care(m);
    job_over(j, err, c);
}

/* It counts once the node was written after it: a request for it that is still on its way finds
 * another node then (cursor_open.c), and of one that was there already, left by an owner that was
 * overtaken, whoever comes next lists it and does not trim what it needs. */
static void made(struct cursor_call *call, enum err err, struct cursor *c)
{
    struct cursor_job *j = container_of(call, struct cursor_job, call);
    struct managed_ledger *m = j->ml;

    if (err == ERR_EXISTS && !j->adopting && m->life == ML_LIFE_SERVING) {
        j->adopting = true;
        cursor_open(&m->cursor_env, j->name, &j->call);
        return;
    }
    if (err) {
        m->making--;
        if (err == ERR_FENCED)
            ml_fail(m, err);
        ml_care(m);
        job_over(j, err, NULL);
        return;
    }
    j->cursor = c;
    j->save.done = proven;
    if (ml_node_save(&m->node, &j->save))
        proven(&j->save, ERR_FENCED);
}

static struct position normal(const struct managed_ledger *m, struct position p)
{
    return segments_at_or_before(&m->segments, p);
}

void managed_ledger_cursor_create(struct managed_ledger *m, const char *name,
                                  struct position mark_delete, struct ml_cursor_call *call)
{
    struct cursor_job *j = new_job(m, name, call);

    if (m->life != ML_LIFE_SERVING || m->failed) {
        refuse(j, m->failed ? ERR_FENCED : ERR_CLOSED);
    } else if (managed_ledger_cursor(m, name)) {
        refuse(j, ERR_EXISTS);
    } else {
        j->call.done = made;
        j->call.properties = call->properties;
        m->making++;
        cursor_create(&m->cursor_env, name, normal(m, mark_delete), &j->call);
    }
}

static void unmade(struct cursor_call *call, enum err err, struct cursor *c)
{
    struct cursor_job *j = container_of(call, struct cursor_job, call);

    (void)c;
    ml_care(j->ml);
    job_over(j, err, NULL);
}

void managed_ledger_cursor_delete(struct managed_ledger *m, const char *name,
                                  struct ml_cursor_call *call)
{
    struct cursor_job *j = new_job(m, name, call);
    unsigned i = place_of(m, name);

    if (m->life != ML_LIFE_SERVING || m->failed) {
        refuse(j, m->failed ? ERR_FENCED : ERR_CLOSED);
    } else if (i == m->n_cursors) {
        refuse(j, ERR_SUBSCRIPTION_NOT_FOUND);
    } else {
        struct cursor *c = m->cursors[i];
        m->cursors[i] = m->cursors[--m->n_cursors];
        j->call.done = unmade;
        cursor_delete(&c, &j->call);
    }
}

struct cursor *managed_ledger_cursor_passing(struct managed_ledger *m, const char *name,
                                             struct position mark_delete)
{
    return cursor_passing(&m->cursor_env, name, normal(m, mark_delete));
}
