/* The shells of a re-replicator's cores, and of who brings back what a bookie's disk had. */
#include "common/mem.h"
#include "proto/bookie_frame.h"
#include "tests/sim/actor.h"

enum { REST_MAX = 60, GRACE = 100, DEATH_PER_MILLE = 6, SESSION = 80, BUSY_PER_MILLE = 60 };

static void settle(struct actor *a);
static void rest_event(struct sim *s, struct event *e);

static void rest(struct actor *a, unsigned us)
{
    struct event *e = later(a->sim, us, rest_event);

    a->mend = MEND_RESTING;
    a->life++; /* what is under way is not wanted any more */
    e->a = a->number;
    e->b = a->life;
}

static void look_around(struct actor *a)
{
    struct sim *s = a->sim;

    a->here = a->leaving = 0;
    a->census = s->revision;
    for (unsigned b = 0; b < BOOKIES; b++) {
        a->here |= bookie_is_here(s, b) ? 1u << b : 0;
        a->leaving |= s->bookie[b].identity == IDENTITY_LEAVING ? 1u << b : 0;
    }
}

/* ---- effects of the copier ---- */

static void go_event(struct sim *s, struct event *e)
{
    struct actor *a = s->actor[e->a];

    if (a->life != e->b)
        return;
    copier_go(a->copier);
    settle(a);
}

static bool may(void *ctx)
{
    struct actor *a = ctx;

    if (!chance(a->sim, BUSY_PER_MILLE))
        return true;
    struct event *e = later(a->sim, 5, go_event);
    e->a = a->number;
    e->b = a->life;
    return false;
}

static void read_copy(void *ctx, unsigned slot, entry_id e)
{
    struct actor *a = ctx;

    request_send(a->sim, &(struct request){.actor = a->number,
                                           .ledger = a->ledger,
                                           .slot = slot,
                                           .bookie = a->from.bookie[slot],
                                           .entry = e});
}

static void write_copy(void *ctx, unsigned slot, entry_id e, void *item)
{
    struct actor *a = ctx;

    a->sim->tally->rewritten += !a->copying;
    request_send(a->sim, &(struct request){.actor = a->number,
                                           .ledger = a->ledger,
                                           .slot = slot,
                                           .bookie = a->copying ? a->to : a->from.bookie[slot],
                                           .entry = e,
                                           .add = true,
                                           .flags = BOOKIE_RECOVERY_ADD,
                                           .image = *(struct image *)item});
}

static bool same(void *ctx, const void *a, const void *b)
{
    const struct image *x = a, *y = b;

    (void)ctx;
    return x->value == y->value && x->length == y->length;
}

static void drop(void *ctx, void *item)
{
    struct actor *a = ctx;

    a->held--;
    mem_free(item);
}

static void differ(void *ctx, entry_id e)
{
    struct actor *a = ctx;

    fault(a->sim, "R4: copies of entry %d of ledger %u differ", (int)e, a->ledger);
}

static void lost(void *ctx, entry_id e)
{
    struct actor *a = ctx;

    fault(a->sim, "R4: nobody has entry %d of ledger %u", (int)e, a->ledger);
}

static void copied(void *ctx, enum err err)
{
    struct actor *a = ctx;

    a->copied = true;
    a->copy_err = err;
}

static const struct copier_effects to_copy = {.may = may,
                                              .read = read_copy,
                                              .write = write_copy,
                                              .same = same,
                                              .drop = drop,
                                              .differ = differ,
                                              .lost = lost,
                                              .done = copied};

/* ---- effects of the replicator ---- */

static void look(void *ctx)
{
    struct actor *a = ctx;

    meta_ask(a->sim, &(struct meta_request){.actor = a->number, .ledger = a->ledger});
}

static bool is_bad(void *ctx, uint32_t b)
{
    const struct actor *a = ctx;

    if (a->number == HEALER)
        return false;
    return a->leaving >> b & 1 || (!(a->here >> b & 1) && a->marked >> b & 1);
}

static bool spare(void *ctx, const uint32_t *members, unsigned slot, uint32_t *out)
{
    struct actor *a = ctx;
    unsigned start = roll(a->sim, BOOKIES);

    (void)slot;
    for (unsigned i = 0; i < BOOKIES; i++) {
        uint32_t b = (start + i) % BOOKIES;
        bool taken = is_bad(a, b) || !(a->here >> b & 1);
        for (unsigned k = 0; k < a->sim->knobs.quorum.ensemble; k++)
            taken |= members[k] == b;
        if (taken)
            continue;
        *out = b;
        return true;
    }
    return false;
}

static void start_copier(struct actor *a, const struct fragment *f, entry_id last,
                         const struct copier_job *how)
{
    struct copier_job job = *how;

    a->from = *f;
    job.quorum = a->sim->knobs.quorum;
    job.first = f->first;
    job.last = last;
    job.window = 1 + roll(a->sim, 4);
    copier_start(a->copier, &job, &to_copy, a);
}

static void copy(void *ctx, const struct fragment *f, entry_id last, unsigned slot, uint32_t to,
                 uint32_t avoid)
{
    struct actor *a = ctx;

    say(a->sim, "a%u: copies %d to %d of ledger %u from b%u to b%u", a->number, (int)f->first,
        (int)last, a->ledger, f->bookie[slot], to);
    a->copying = true;
    a->to = to;
    a->to_life = a->sim->bookie[to].life;
    start_copier(a, f, last,
                 &(struct copier_job){.what = COPIER_COPY, .slot = slot, .avoid = avoid});
}

static void compare(void *ctx, const struct fragment *f, entry_id last, bool sample)
{
    struct actor *a = ctx;

    a->copying = false;
    start_copier(a, f, last, &(struct copier_job){.what = COPIER_COMPARE, .sample = sample});
}

static void change(void *ctx, unsigned fragment, unsigned slot, uint32_t to)
{
    struct actor *a = ctx;
    struct meta_request m = {.put = true,
                             .actor = a->number,
                             .ledger = a->ledger,
                             .expected = a->record.version,
                             .record = a->record};

    m.record.fragment[fragment].bookie[slot] = to;
    meta_ask(a->sim, &m);
}

static void recover(void *ctx)
{
    struct actor *a = ctx;

    a->sim->tally->mend_fenced++;
    recovery_begin(a->sim, a->number);
}

static void mended(void *ctx, enum err err)
{
    struct actor *a = ctx;

    a->mended = true;
    a->mend_err = err;
}

static const struct replicator_effects to_mend = {.look = look,
                                                  .is_bad = is_bad,
                                                  .spare = spare,
                                                  .copy = copy,
                                                  .change = change,
                                                  .recover = recover,
                                                  .compare = compare,
                                                  .done = mended};

/* ---- effects of the work on a mark ---- */

static void read_mark(void *ctx)
{
    struct actor *a = ctx;

    meta_ask(a->sim,
             &(struct meta_request){.of = META_MARK, .actor = a->number, .ledger = a->ledger});
}

static void census_event(struct sim *s, struct event *e)
{
    struct actor *a = s->actor[e->a];

    if (a->life != e->b)
        return;
    look_around(a);
    mark_work_census(&a->work, a->census);
    settle(a);
}

static void look_again(void *ctx)
{
    struct actor *a = ctx;
    struct event *e = later(a->sim, 1 + roll(a->sim, 20), census_event);

    a->sim->tally->stale_census++;
    e->a = a->number;
    e->b = a->life;
}

static void repair(void *ctx)
{
    struct actor *a = ctx;
    const struct replicator_how how = {.may_fence = a->may_fence >> a->ledger & 1};

    replicator_start(&a->replicator, how, &to_mend, a);
}

static void remove_mark(void *ctx, int64_t version)
{
    struct actor *a = ctx;

    meta_ask(a->sim, &(struct meta_request){.put = true,
                                            .of = META_UNMARK,
                                            .actor = a->number,
                                            .ledger = a->ledger,
                                            .expected = version});
}

static void unlock(struct actor *a)
{
    if (a->sim->lock[a->ledger] == a->number)
        a->sim->lock[a->ledger] = 0;
}

static void end_work(void *ctx, enum mark_work_end how, enum err err)
{
    struct actor *a = ctx;
    uint32_t bit = 1u << a->ledger;
    bool in_use = how == MARK_WORK_LATER && err == ERR_BUSY && !(a->may_fence & bit);

    say(a->sim, "a%u: its work on ledger %u ends: %d, %s", a->number, a->ledger, (int)how,
        err_name(err));
    a->sim->tally->unmarked += how == MARK_WORK_DONE;
    a->sim->tally->newer += how == MARK_WORK_NEWER && err == ERR_BAD_VERSION;
    a->sim->tally->waited += in_use;
    if (in_use)
        a->may_fence |= bit;
    else if (how != MARK_WORK_LATER)
        a->may_fence &= ~bit;
    unlock(a);
    rest(a, in_use ? GRACE : 1 + roll(a->sim, REST_MAX));
}

static const struct mark_work_effects to_work = {.read = read_mark,
                                                 .look = look_again,
                                                 .repair = repair,
                                                 .remove = remove_mark,
                                                 .end = end_work};

/* ---- which ledger ---- */

static bool lock(struct actor *a, unsigned ledger)
{
    struct sim *s = a->sim;

    if (s->lock[ledger] && s->lock[ledger] != a->number) {
        if (!chance(s, s->knobs.lockless))
            return false;
        s->tally->together++;
    }
    s->lock[ledger] = a->number;
    return true;
}

static void take_mark(struct actor *a)
{
    struct sim *s = a->sim;
    unsigned start = roll(s, LEDGERS);

    if (a->census == 0 || chance(s, 700))
        look_around(a);
    for (unsigned i = 0; i < LEDGERS; i++) {
        unsigned ledger = (start + i) % LEDGERS;
        if (!s->mark[ledger].here || !lock(a, ledger))
            continue;
        a->ledger = ledger;
        a->mend = MEND_MARK;
        mark_work_start(&a->work, &to_work, a);
        return;
    }
    rest(a, 1 + roll(s, REST_MAX));
}

/* ---- the healer ---- */

static struct sim_bookie *in_limbo(struct sim *s)
{
    for (unsigned b = 0; b < BOOKIES; b++)
        if (s->bookie[b].unhealed && !s->bookie[b].down)
            return &s->bookie[b];
    return NULL;
}

static bool all_closed(const struct sim *s)
{
    for (unsigned l = 0; l < s->ledgers; l++)
        if (s->records[l].state != LEDGER_CLOSED || s->mark[l].here)
            return false;
    for (unsigned a = RECOVERERS; a < MENDERS; a++)
        if (!recovery_is_over(s, a))
            return false;
    return healed(s) && amnesia_is_over(s);
}

/* Closed first, if need be by a recovery: then every entry that it should have is known. */
static void heal(struct actor *a, unsigned ledger)
{
    const struct sim_bookie *k = in_limbo(a->sim);

    a->to_life = k ? k->life : 0;
    a->ledger = ledger;
    a->mend = MEND_LEDGER;
    recovery_begin(a->sim, a->number);
}

static void heal_next(struct actor *a)
{
    struct sim *s = a->sim;
    struct sim_bookie *k = in_limbo(s);
    uint32_t all = (1u << s->ledgers) - 1;

    if (k) {
        heal(a, (unsigned)__builtin_ctz(k->unhealed));
    } else if (!all_closed(s)) {
        rest(a, REST_MAX);
    } else if (a->scrubbed != all) {
        heal(a, (unsigned)__builtin_ctz(~a->scrubbed));
    } else {
        a->mend = MEND_OVER;
    }
}

/* What was found there may have been in its memory only. */
static bool is_durable(const struct actor *a, const struct sim_bookie *k)
{
    return k->lines == 0 && k->life == a->to_life;
}

static void heal_done(struct actor *a)
{
    struct sim_bookie *k = in_limbo(a->sim);

    say(a->sim, "a%u: every copy of ledger %u is compared: %s", a->number, a->ledger,
        err_name(a->mend_err));
    if (k && !a->mend_err && is_durable(a, k))
        amnesia_healed(a->sim, (unsigned)(k - a->sim->bookie), a->ledger);
    else if (!k && !a->mend_err)
        a->scrubbed |= 1u << a->ledger;
    rest(a, 1 + (a->mend_err ? roll(a->sim, REST_MAX) : 0));
}

/* ---- events ---- */

static void rest_event(struct sim *s, struct event *e)
{
    struct actor *a = s->actor[e->a];

    if (a->life != e->b)
        return;
    if (a->number == HEALER)
        heal_next(a);
    else
        take_mark(a);
    settle(a);
}

static void copier_ended(struct actor *a)
{
    a->copied = false;
    a->life++; /* what is still under way is not wanted any more */
    if (a->held > 0)
        fault(a->sim, "%u items were never given back", a->held);
    /* Its connection broke: it may not be the one that has the copies. */
    if (a->copying && a->to_life != a->sim->bookie[a->to].life)
        a->copy_err = ERR_IO;
    if (a->copying)
        replicator_copied(&a->replicator, a->copy_err);
    else
        replicator_compared(&a->replicator, a->copy_err, a->copier->written);
}

/* Outside the cores. */
static void settle(struct actor *a)
{
    while (a->copied || a->mended) {
        if (a->copied)
            copier_ended(a);
        if (!a->mended)
            continue;
        a->mended = false;
        if (a->mend == MEND_MARK)
            mark_work_repaired(&a->work, a->mend_err);
        else
            heal_done(a);
    }
}

void mending_recovered(struct sim *s, unsigned actor, enum err err)
{
    struct actor *a = s->actor[actor];

    if (a->mend == MEND_MARK) {
        replicator_recovered(&a->replicator, err);
    } else if (err) {
        mended(a, err);
    } else {
        replicator_start(&a->replicator, (struct replicator_how){.thorough = true}, &to_mend, a);
    }
    settle(a);
}

static void session_event(struct sim *s, struct event *e)
{
    if (s->lock[e->b] == e->a)
        s->lock[e->b] = 0;
}

/* Wherever it is: its lock goes with its session. */
static bool dies(struct actor *a)
{
    if (healed(a->sim) || !chance(a->sim, DEATH_PER_MILLE))
        return false;
    say(a->sim, "a%u: dies, and begins again later", a->number);
    a->sim->tally->mend_dead++;
    if (a->recovery != IDLE)
        recovery_stop(a->sim, a->number);
    if (a->copier->effects)
        copier_stop(a->copier);
    mark_work_stop(&a->work);
    a->copied = a->mended = false;
    a->may_fence = 0;
    a->census = 0;
    struct event *e = later(a->sim, roll(a->sim, SESSION), session_event);
    e->a = a->number;
    e->b = a->ledger;
    rest(a, 1 + roll(a->sim, REST_MAX));
    return true;
}

static void copier_answer(struct actor *a, const struct request *q, const struct reply *r)
{
    if (q->add) {
        copier_wrote(a->copier, q->slot, q->entry, r->err);
    } else if (r->err) {
        copier_failed(a->copier, q->slot, q->entry, r->err);
    } else {
        struct image *i = mem_new(struct image);
        *i = r->image;
        a->held++;
        copier_found(a->copier, q->slot, q->entry, i);
    }
}

void mending_reply(struct sim *s, const struct request *q, const struct reply *r)
{
    struct actor *a = s->actor[q->actor];

    if (dies(a))
        return;
    if (r->err)
        say(s, "a%u: b%u, entry %d %s: %s", a->number, q->bookie, (int)q->entry,
            q->add ? "written" : "read", err_name(r->err));
    if (a->recovery != IDLE)
        recovery_take(a, q, r);
    else
        copier_answer(a, q, r);
    settle(a);
}

static void saw(struct actor *a, const struct meta_request *m, enum err err)
{
    struct ledger_facts facts = {0};

    if (!err) {
        a->record = m->record;
        facts = facts_of(a->sim, &a->record);
    }
    replicator_saw(&a->replicator, err == ERR_NOT_FOUND ? ERR_NO_LEDGER : err, &facts,
                   a->record.fragment, a->record.n);
}

static void changed(struct actor *a, const struct meta_request *m, enum err err)
{
    struct tally *t = a->sim->tally;

    t->moved += !err;
    t->moved_open += !err && m->record.state != LEDGER_CLOSED;
    t->move_lost += err == ERR_BAD_VERSION;
    replicator_changed(&a->replicator, err);
}

void mending_meta(struct sim *s, const struct meta_request *m, enum err err)
{
    struct actor *a = s->actor[m->actor];

    if (dies(a))
        return;
    if (a->recovery != IDLE) {
        recovery_meta(s, m, err);
    } else if (m->of == META_MARK) {
        a->marked = m->mark.bookies;
        mark_work_read(&a->work, err, m->mark.version, m->revision, a->census);
    } else if (m->of == META_UNMARK) {
        mark_work_removed(&a->work, err);
    } else if (m->put) {
        changed(a, m, err);
    } else {
        saw(a, m, err);
    }
    settle(a);
}

void mending_start(struct sim *s)
{
    for (unsigned n = MENDERS; n <= HEALER; n++)
        rest(s->actor[n], 1 + roll(s, REST_MAX));
}

bool mending_is_over(const struct sim *s)
{
    return s->actor[HEALER]->mend == MEND_OVER;
}
