#include <assert.h>

#include "broker/managed_ledger/cursor_set.h"
#include "broker/managed_ledger/managed_ledger_inside.h"

/* Entries that nobody wants, between two that are: read too, which costs less than a second read.
 */
enum { GAP_MAX = 16 };

/* One managed_ledger_read() on its way: cache, then runs of entries from sources. */
struct read_job {
    struct list_node node;
    struct ml_read *r;
    struct managed_ledger *ml;
    enum { JOB_DUE, JOB_OPENING, JOB_READING } state;
    struct ml_source *source; /* unless DUE */
    struct segment_read read;
    struct ml_entry *entries;
    unsigned n, room;
    bool came; /* an entry of the run did */
    size_t bytes;
    struct position next;
};

static void step(struct read_job *j);

static struct position before(struct position p)
{
    if (p.entry > INT64_MIN)
        p.entry--;
    return p;
}

static struct position after(struct position p)
{
    if (p.entry < INT64_MAX)
        p.entry++;
    return p;
}

static void finish(struct read_job *j, enum err err)
{
    struct ml_read *r = j->r;
    struct ml_entry *entries = j->entries;
    unsigned n = j->n;
    struct position next = j->next;

    list_remove(&j->node);
    mem_free(j);
    r->private = NULL;
    r->done(r, err, entries, n, next);
    mem_free(entries);
}

static void keep(struct read_job *j, struct position at, struct slice payload)
{
    if (j->n == j->room) {
        j->room = j->room ? j->room * 2 : 16;
        j->entries = mem_resize(j->entries, j->room * sizeof(*j->entries));
    }
    j->entries[j->n++] = (struct ml_entry){.at = at, .payload = payload};
    j->bytes += payload.len;
    j->next = after(at);
}

static bool enough(const struct read_job *j)
{
    const struct ml_read *r = j->r;

    return j->n >= r->max_entries || (r->max_bytes > 0 && j->n > 0 && j->bytes >= r->max_bytes);
}

static struct position existing(const struct read_job *j, struct position p)
{
    return j->r->skip ? cursor_next_unacked(j->r->skip, before(p))
                      : segments_next(&j->ml->segments, before(p));
}

/* The first place from p on that is wanted. */
static struct position wanted(const struct read_job *j, struct position p)
{
    struct position at;

    if (!j->r->only)
        return existing(j, p);
    while (cursor_set_first(j->r->only, p, &at)) {
        p = existing(j, at);
        if (position_equal(p, at))
            return at;
    }
    return POSITION_LATEST;
}

/* ---- from a source
 * ------------------------------------------------------------------------------- */

static void let_go(struct read_job *j)
{
    if (j->source)
        j->source->readers--;
    j->source = NULL;
    j->state = JOB_DUE;
}

static void on_entry(struct segment_read *r, int64_t id, struct slice payload)
{
    struct read_job *j = container_of(r, struct read_job, read);
    struct position at = {j->source->ledger, id};

    j->came = true;
    if (position_equal(wanted(j, at), at)) {
        keep(j, at, payload);
        return;
    }
    slice_drop(&payload);
    j->next = after(at);
}

static void on_done(struct segment_read *r, enum err err)
{
    struct read_job *j = container_of(r, struct read_job, read);
    struct managed_ledger *m = j->ml;

    let_go(j);
    if (!err && !j->came)
        err = ERR_NO_ENTRY;
    ml_hold(m);
    if (err)
        finish(j, err);
    else
        step(j);
    ml_release(m);
}

/* The last entry of the run that begins here: wanted, readable and not in the cache. */
static int64_t run_end(const struct read_job *j, struct position at)
{
    const struct segment *s = segments_find(&j->ml->segments, at.ledger);
    int64_t last = at.entry;

    for (unsigned n = j->n + 1; n < j->r->max_entries; n++) {
        struct position one = wanted(j, (struct position){at.ledger, last + 1});
        if (one.ledger != at.ledger || one.entry >= s->entries || one.entry - last > GAP_MAX ||
            entry_cache_has(j->ml->env->cache, one))
            break;
        last = one.entry;
    }
    return last;
}

static void read_run(struct read_job *j, struct position at)
{
    j->state = JOB_READING;
    j->came = false;
    j->read = (struct segment_read){
        .first = at.entry,
        .last = run_end(j, at),
        .max_bytes = j->r->max_bytes ? j->r->max_bytes - j->bytes : 0,
        .entry = on_entry,
        .done = on_done,
    };
    j->source->source->ops->read(j->source->source, &j->read);
}

static void read_source(struct read_job *j, struct position at)
{
    struct ml_source *s = ml_source_for(j->ml, at.ledger);

    if (!s)
        return; /* ml_read_soon() comes when the ledger is closed */
    s->readers++;
    j->source = s;
    j->state = JOB_OPENING;
    if (s->source)
        read_run(j, at);
}

/* ---- on and on
 * ----------------------------------------------------------------------------------- */

static void step(struct read_job *j)
{
    struct position last = managed_ledger_max_readable(j->ml);

    while (!enough(j)) {
        struct position at = wanted(j, j->next);
        struct slice payload;

        j->next = at;
        if (at.entry < 0 || position_compare(at, last) > 0)
            break;
        if (j->r->cached_only && j->n > 0 && !entry_cache_has(j->ml->env->cache, at))
            break;
        if (!entry_cache_get(j->ml->env->cache, at, &payload)) {
            read_source(j, at);
            return;
        }
        keep(j, at, payload);
    }
    finish(j, ERR_OK);
}

/* A reader in done() may cancel another one, so none is looked at before its turn. */
static void step_due(struct managed_ledger *m, enum err err, bool all)
{
    struct list_node turn;

    list_init(&turn);
    while (!list_empty(&m->reads))
        list_push_back(&turn, list_pop_front(&m->reads));
    while (!list_empty(&turn)) {
        struct read_job *j = list_entry(list_pop_front(&turn), struct read_job, node);
        list_push_back(&m->reads, &j->node);
        if (all && j->state == JOB_DUE)
            finish(j, err);
        else if (j->state == JOB_DUE)
            step(j);
    }
}

static void read_due(struct task *t)
{
    struct managed_ledger *m = container_of(t, struct managed_ledger, read_task);

    m->reading = false;
    step_due(m, ERR_CLOSED, m->life != ML_LIFE_SERVING);
    ml_release(m);
}

void ml_read_soon(struct managed_ledger *m)
{
    if (m->reading || list_empty(&m->reads))
        return;
    m->reading = true;
    m->read_task.run = read_due;
    ml_hold(m);
    loop_post(m->env->home, &m->read_task);
}

void ml_read_opened(struct managed_ledger *m, struct ml_source *s, enum err err)
{
    struct list_node turn;

    list_init(&turn);
    list_each(&m->reads, node)
    {
        struct read_job *j = list_entry(node, struct read_job, node);
        if (j->source == s) {
            list_remove(node);
            list_push_back(&turn, node);
        }
    }
    while (!list_empty(&turn)) {
        struct read_job *j = list_entry(list_pop_front(&turn), struct read_job, node);
        list_push_back(&m->reads, &j->node);
        let_go(j);
        if (err)
            finish(j, err);
        else
            step(j); /* what it wants may be elsewhere by now */
    }
}

static void cancel(struct read_job *j)
{
    if (j->state == JOB_READING)
        j->source->source->ops->cancel(j->source->source, &j->read);
    let_go(j);
}

void ml_read_lost_source(struct managed_ledger *m, struct ml_source *s)
{
    list_each(&m->reads, node)
    {
        struct read_job *j = list_entry(node, struct read_job, node);
        if (j->source == s)
            cancel(j);
    }
    ml_read_soon(m);
}

void ml_read_end(struct managed_ledger *m, enum err err)
{
    ml_sources_end(m);
    step_due(m, err, true);
}

/* ---- asked for
 * ----------------------------------------------------------------------------------- */

void managed_ledger_read(struct managed_ledger *m, struct ml_read *r)
{
    struct read_job *j = mem_new(struct read_job);

    assert(loop_is_mine(m->env->home));
    assert(r->max_entries > 0);
    j->r = r;
    j->ml = m;
    j->next = r->from;
    r->private = j;
    m->last_read_us = loop_now(m->env->home);
    list_push_back(&m->reads, &j->node);
    ml_read_soon(m);
}

bool managed_ledger_has_in_memory(struct managed_ledger *m, struct ml_read *r)
{
    const struct read_job j = {.r = r, .ml = m};
    const struct position at = wanted(&j, r->from);

    return at.entry < 0 || position_compare(at, managed_ledger_max_readable(m)) > 0 ||
           entry_cache_has(m->env->cache, at);
}

void managed_ledger_read_cancel(struct managed_ledger *m, struct ml_read *r)
{
    struct read_job *j = r->private;

    (void)m;
    if (!j)
        return;
    cancel(j);
    for (unsigned i = 0; i < j->n; i++)
        slice_drop(&j->entries[i].payload);
    list_remove(&j->node);
    mem_free(j->entries);
    mem_free(j);
    r->private = NULL;
}
