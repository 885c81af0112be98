/* The metadata store was put back to an older state while this owner lived on: its node is behind,
 * and ledgers made since are unknown.  First what the node names is written back, then the node,
 * then each cursor looks after its own. */
#include "broker/managed_ledger/managed_ledger_inside.h"
#include "common/log.h"

enum { AGAIN_US = 500 * 1000, LEARNED_MAX = 64, FLYING_MAX = 16, GRACE_US = 2000 * 1000 };

struct ml_mend {
    struct managed_ledger *ml;
    struct task task;
    struct timer retry;
    unsigned flying;   /* write-backs under way */
    int64_t after;     /* ledgers up to this one are done with */
    bool running;      /* through the ledgers */
    bool afresh;       /* once more from the first: it went back again meanwhile */
    bool node_waits;   /* for that */
    bool ledgers_done; /* for the node that is being written */
    bool forgotten;    /* the store has surely gone back */
    enum err err;      /* why not all were written */
    unsigned written;
};

/* ---- whose node it is ------------------------------------------------------------------------ */

void ml_mend_heard(struct managed_ledger *m, uint64_t ahead)
{
    if (ahead > m->heard_ahead)
        m->heard_ahead = ahead;
    (void)ml_mend_grace_us(m->env, ahead);
}

uint64_t ml_mend_grace_us(struct ml_env *e, uint64_t ahead)
{
    const uint64_t now = loop_now(e->home);

    if (ahead > e->ahead) {
        e->ahead = ahead;
        e->went_back_us = now;
    }
    return e->ahead > 0 && now < e->went_back_us + GRACE_US ? e->went_back_us + GRACE_US - now : 0;
}

bool ml_mend_is_due(const struct managed_ledger *m)
{
    return m->heard_ahead > m->sure_ahead;
}

static bool is_doomed(const struct managed_ledger *m, int64_t ledger)
{
    for (unsigned i = 0; i < m->n_doomed; i++)
        if (m->doomed[i] == ledger)
            return true;
    return false;
}

/* What was trimmed since is named again: it goes once more. */
static void doom_returned(struct managed_ledger *m, const struct segments *row)
{
    for (unsigned i = 0; i < row->n; i++)
        if (!segments_find(&m->segments, row->at[i].ledger) && !is_doomed(m, row->at[i].ledger))
            ml_doom(m, row->at[i].ledger);
}

static enum kin judge_record(struct managed_ledger *m, const struct slice *value, int64_t version)
{
    ManagedLedger__ManagedLedgerInfo *r = NULL;
    struct segments row = {0};
    enum kin kin = KIN_OTHER;

    if (managed_ledger_record_read(slice_view(*value), &r))
        return KIN_OTHER;
    if (!ml_record_segments(r, &row)) {
        const struct lineage_node mine = {.owners = ml_record_property(m->record, ML_RECORD_OWNER),
                                          .version = m->node.version,
                                          .row = &m->segments,
                                          .newest = m->core.ledger,
                                          .terminated = m->terminated};
        const struct lineage_node theirs = {.owners = ml_record_property(r, ML_RECORD_OWNER),
                                            .version = version,
                                            .row = &row,
                                            .terminated = r->terminatedposition != NULL};
        kin = lineage_judge(&mine, &theirs, ml_mend_is_due(m));
    }
    if (kin == KIN_BEHIND)
        doom_returned(m, &row);
    segments_clear(&row);
    managed_ledger__managed_ledger_info__free_unpacked(r, NULL);
    return kin;
}

/* Only who has served knows more than the store. */
enum kin ml_mend_judge(struct ml_node *n, const struct slice *value, int64_t version)
{
    struct managed_ledger *m = container_of(n, struct managed_ledger, node);

    if (m->life == ML_LIFE_OPENING)
        return value && version == n->version ? KIN_SAME : KIN_OTHER;
    if (value)
        return judge_record(m, value, version);
    if (n->version == META_ABSENT)
        return KIN_SAME;
    return ml_mend_is_due(m) ? KIN_BEHIND : KIN_OTHER;
}

/* ---- its ledgers ------------------------------------------------------------------------------
 */

void ml_mend_remember(struct managed_ledger *m, const struct ledger *l, int64_t closed_ms)
{
    struct ledger_known k = ledger_known(l);

    remembered_note(&m->remembered, &k, closed_ms, (int64_t)loop_wall_ms());
    slice_drop(&k.value);
}

static void take_if_next(const struct ml_mend *k, const struct ledger *l,
                         const struct ledger **next)
{
    if (l && ledger_id(l) > k->after && (!*next || ledger_id(l) < ledger_id(*next)))
        *next = l;
}

/* Of one that a handle is at hand for, the handle knows best. */
static bool next_known(struct ml_mend *k, struct ledger_known *out)
{
    const struct managed_ledger *m = k->ml;
    const struct remembered_ledger *old = remembered_after(&m->remembered, k->after);
    const struct ledger *live = NULL;

    take_if_next(k, m->current, &live);
    take_if_next(k, m->sealing, &live);
    take_if_next(k, m->created, &live);
    if (live && (!old || ledger_id(live) <= old->ledger))
        *out = ledger_known(live);
    else if (old)
        *out = remembered_known(old);
    else
        return false;
    k->after = out->ledger;
    return true;
}

static void step(struct ml_mend *k);

static void pass_over(struct ml_mend *k)
{
    struct managed_ledger *m = k->ml;

    k->running = false;
    if (k->node_waits) {
        k->node_waits = false;
        k->ledgers_done = true;
        ml_node_mended(&m->node, k->err);
    } else if (k->err && m->life == ML_LIFE_SERVING) {
        ml_hold(m);
        loop_after(m->env->home, &k->retry, AGAIN_US);
    }
    ml_release(m);
}

struct ml_return {
    struct ledger_return back;
    struct ml_mend *mend;
};

static void returned(struct ledger_return *r, enum err err, bool written)
{
    struct ml_return *one = container_of(r, struct ml_return, back);
    struct ml_mend *k = one->mend;

    mem_free(one);
    k->flying--;
    k->written += written;
    if (err && err_class(err) == CLASS_RETRY)
        k->err = err;
    step(k);
}

static void send(struct ml_mend *k, const struct ledger_known *known)
{
    struct ml_return *one = mem_new(struct ml_return);

    one->back.done = returned;
    one->mend = k;
    k->flying++;
    ledger_write_back(k->ml->env->ledgers, known, k->forgotten, &one->back);
}

static void step(struct ml_mend *k)
{
    struct managed_ledger *m = k->ml;
    struct ledger_known known;

    if (k->afresh && k->flying == 0) {
        k->afresh = false;
        k->after = -1;
        k->err = ERR_OK;
    }
    while (!k->afresh && !m->failed && k->flying < FLYING_MAX && next_known(k, &known)) {
        send(k, &known);
        slice_drop(&known.value);
    }
    if (k->flying == 0)
        pass_over(k);
}

static void first_step(struct task *t)
{
    step(container_of(t, struct ml_mend, task));
}

static void retry(struct timer *t)
{
    struct ml_mend *k = container_of(t, struct ml_mend, retry);
    struct managed_ledger *m = k->ml;

    ml_node_doubt(m);
    ml_release(m);
}

static struct ml_mend *mend_of(struct managed_ledger *m)
{
    if (!m->mend) {
        m->mend = mem_new(struct ml_mend);
        m->mend->ml = m;
        m->mend->task.run = first_step;
        m->mend->retry.run = retry;
    }
    return m->mend;
}

static void pass(struct ml_mend *k, bool forgotten)
{
    struct managed_ledger *m = k->ml;

    k->afresh = true;
    k->forgotten = k->forgotten || forgotten;
    if (k->running)
        return;
    k->running = true;
    k->written = 0;
    ml_hold(m);
    loop_post(m->env->home, &k->task);
}

/* ---- what others made before -------------------------------------------------------------------
 */

/* Their metadata is what this owner would have to write back, too. */
struct ml_learning {
    struct managed_ledger *ml;
    struct ledger_recall recall;
    unsigned left;
    int64_t below;
};

static bool next_unknown(struct ml_learning *k)
{
    const struct managed_ledger *m = k->ml;
    const int64_t now_ms = (int64_t)loop_wall_ms();

    for (unsigned i = m->segments.n; i-- > 0 && k->left > 0;) {
        const struct segment *s = &m->segments.at[i];
        if (s->ledger >= k->below)
            continue;
        k->below = s->ledger;
        if (s->open || remembered_find(&m->remembered, s->ledger))
            continue;
        k->left--;
        return now_ms - s->closed_ms < REMEMBERED_MS; /* those before it are older yet */
    }
    return false;
}

static void learn(struct ml_learning *k);

static void learned(struct ledger_recall *r, enum err err, const struct ledger_known *known)
{
    struct ml_learning *k = container_of(r, struct ml_learning, recall);
    struct managed_ledger *m = k->ml;
    const struct segment *s = segments_find(&m->segments, k->below);

    if (!err && s && !remembered_find(&m->remembered, k->below))
        remembered_note(&m->remembered, known, s->closed_ms, (int64_t)loop_wall_ms());
    learn(k);
}

static void learn(struct ml_learning *k)
{
    struct managed_ledger *m = k->ml;

    if (m->life != ML_LIFE_SERVING || m->failed || !next_unknown(k)) {
        mem_free(k);
        ml_release(m);
        return;
    }
    k->recall.done = learned;
    ledger_recall(m->env->ledgers, k->below, &k->recall);
}

void ml_mend_learn(struct managed_ledger *m)
{
    struct ml_learning *k = mem_new(struct ml_learning);

    *k = (struct ml_learning){.ml = m, .left = LEARNED_MAX, .below = INT64_MAX};
    ml_hold(m);
    learn(k);
}

/* ---- the node, then the cursors ---------------------------------------------------------------
 */

void ml_mend_node(struct ml_node *n)
{
    struct managed_ledger *m = container_of(n, struct managed_ledger, node);
    struct ml_mend *k = mend_of(m);

    k->node_waits = true;
    pass(k, true);
}

static void tell(struct managed_ledger *m, const struct ml_mend *k)
{
    log_event(LOG_WARN, "managed_ledger.written_back", F_STR("topic", m->name),
              F_I64("version", m->node.version), F_U64("ledgers", m->segments.n),
              F_U64("forgotten", k->written), F_U64("cursors", m->n_cursors));
}

/* Without a sign that the store went back there is nothing to mend: a watch was unsure, no more. */
void ml_mend_sure(struct ml_node *n, enum err err)
{
    struct managed_ledger *m = container_of(n, struct managed_ledger, node);
    bool was_behind = m->mend && m->mend->ledgers_done, went_back = ml_mend_is_due(m);

    if (m->mend)
        m->mend->ledgers_done = false;
    if (err == ERR_FENCED)
        ml_fail(m, err);
    if (err)
        return;
    m->sure_ahead = m->heard_ahead;
    if (was_behind)
        tell(m, m->mend);
    else if (went_back || (m->mend && m->mend->err))
        pass(mend_of(m), true);
    ml_cursors_doubt(m, was_behind || went_back);
}
