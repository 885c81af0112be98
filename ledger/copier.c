#include "ledger/copier.h"

#include <assert.h>

static struct copier_entry *entry_of(struct copier *c, entry_id e)
{
    return &c->ring[e % COPIER_WINDOW];
}

static bool is_mine(const struct copier *c, entry_id e)
{
    const struct copier_job *j = &c->job;
    entry_id edge = (entry_id)j->quorum.ensemble;

    if (j->what == COPIER_COPY)
        return quorum_write_set(j->quorum, e) & 1u << j->slot;
    return !j->sample || e < j->first + edge || e > j->last - edge;
}

/* Of a sample the middle is not walked through. */
static entry_id after(const struct copier *c, entry_id e)
{
    const struct copier_job *j = &c->job;
    entry_id edge = (entry_id)j->quorum.ensemble;

    if (j->what == COPIER_COMPARE && j->sample && e + 1 >= j->first + edge &&
        e + 1 <= j->last - edge)
        return j->last - edge + 1;
    for (e++; e <= j->last && !is_mine(c, e); e++)
        ;
    return e;
}

static bool is_negative(enum err err)
{
    return err == ERR_NO_ENTRY || err == ERR_NO_LEDGER;
}

static void drop_items(struct copier *c, struct copier_entry *x)
{
    for (unsigned i = 0; i < c->job.quorum.ensemble; i++) {
        if (x->item[i])
            c->effects->drop(c->ctx, x->item[i]);
        x->item[i] = NULL;
    }
}

static void finish(struct copier *c, enum err err)
{
    copier_stop(c);
    c->effects->done(c->ctx, err);
}

static void settle(struct copier *c, struct copier_entry *x)
{
    drop_items(c, x);
    x->state = ENTRY_SETTLED;
}

static void *instead(struct copier *c, entry_id e)
{
    return c->effects->instead ? c->effects->instead(c->ctx, e) : NULL;
}

/* ---- copy ------------------------------------------------------------------------------------ */

/* The next one that was not asked yet, those to be avoided last; false: there is none. */
static bool ask_next(struct copier *c, struct copier_entry *x, entry_id e)
{
    uint32_t left = quorum_write_set(c->job.quorum, e) & ~x->asked;
    uint32_t best = left & ~c->job.avoid ? left & ~c->job.avoid : left;

    if (!best)
        return false;
    /* Different entries begin with different replicas, so that all of them are read from. */
    unsigned slot, n = c->job.quorum.ensemble, from = (unsigned)(e % (entry_id)n);
    for (slot = from; !(best & 1u << slot); slot = (slot + 1) % n)
        ;
    x->asked |= 1u << slot;
    x->awaited = 1u << slot;
    c->effects->read(c->ctx, slot, e);
    return true;
}

static void copy_found(struct copier *c, struct copier_entry *x, unsigned slot, entry_id e)
{
    x->state = ENTRY_WRITING;
    x->awaited = 1u << c->job.slot;
    c->effects->write(c->ctx, c->job.slot, e, x->item[slot]);
}

static void copy_failed(struct copier *c, struct copier_entry *x, entry_id e, enum err err)
{
    if (!is_negative(err))
        x->err = err;
    if (ask_next(c, x, e))
        return;
    x->item[c->job.slot] = instead(c, e);
    if (x->item[c->job.slot]) {
        copy_found(c, x, c->job.slot, e);
        return;
    }
    if (x->err == ERR_NO_ENTRY)
        c->effects->lost(c->ctx, e);
    finish(c, x->err);
}

/* ---- compare --------------------------------------------------------------------------------- */

static uint32_t alike(const struct copier *c, const struct copier_entry *x, unsigned slot)
{
    uint32_t all = 0;

    for (unsigned i = 0; i < c->job.quorum.ensemble; i++)
        if (x->item[i] && (i == slot || c->effects->same(c->ctx, x->item[slot], x->item[i])))
            all |= 1u << i;
    return all;
}

static unsigned count(uint32_t bits)
{
    return (unsigned)__builtin_popcount(bits);
}

/* Which of those found is right: all agree, or at least Qa and more than of any other. */
static bool choose(const struct copier *c, const struct copier_entry *x, unsigned *slot,
                   uint32_t *right)
{
    uint32_t found = 0, best = 0;
    bool tie = false;

    for (unsigned i = 0; i < c->job.quorum.ensemble; i++)
        found |= x->item[i] ? 1u << i : 0;
    for (unsigned i = 0; i < c->job.quorum.ensemble; i++) {
        uint32_t group = x->item[i] ? alike(c, x, i) : 0;
        if (count(group) > count(best)) {
            best = group;
            *slot = i;
            tie = false;
        } else if (count(group) == count(best) && group != best) {
            tie = true;
        }
    }
    *right = best;
    return best == found || (!tie && count(best) >= c->job.quorum.ack);
}

static void note(struct copier *c, enum err err)
{
    if (err && !c->err)
        c->err = err;
}

static void compare(struct copier *c, struct copier_entry *x, entry_id e)
{
    uint32_t right = 0, wrong;
    unsigned from = 0;

    if (!choose(c, x, &from, &right)) {
        c->effects->differ(c->ctx, e);
        note(c, ERR_CHECKSUM);
        settle(c, x);
        return;
    }
    wrong = x->negative;
    for (unsigned i = 0; i < c->job.quorum.ensemble; i++)
        if (x->item[i] && !(right & 1u << i))
            wrong |= 1u << i;
    if (!right)
        x->item[from] = instead(c, e);
    bool there = x->item[from] != NULL;
    if (!there || x->asked & ~right & ~wrong)
        note(c, x->err);
    if (!there && x->err == ERR_NO_ENTRY)
        c->effects->lost(c->ctx, e);
    if (!there || !wrong) {
        settle(c, x);
        return;
    }
    x->state = ENTRY_WRITING;
    x->awaited = wrong;
    for (unsigned i = 0; i < c->job.quorum.ensemble; i++)
        if (wrong & 1u << i)
            c->effects->write(c->ctx, i, e, x->item[from]);
}

/* A damaged copy is as good as none: it is written again from one that is whole.  A bookie says
 * IO of one; if it was the way there that failed, so does the write.  One that has lost its disk
 * says that it does not know (UNKNOWN_STATE, or IO). */
static void compare_failed(struct copier_entry *x, unsigned slot, enum err err)
{
    if (is_negative(err) || err == ERR_CHECKSUM || err == ERR_IO || err == ERR_UNKNOWN_STATE)
        x->negative |= 1u << slot;
    if (!is_negative(err))
        x->err = err;
}

/* ---- both ------------------------------------------------------------------------------------ */

static void begin(struct copier *c, entry_id e)
{
    struct copier_entry *x = entry_of(c, e);
    uint32_t set = quorum_write_set(c->job.quorum, e);

    *x = (struct copier_entry){.state = ENTRY_READING, .err = ERR_NO_ENTRY};
    if (c->job.what == COPIER_COPY) {
        ask_next(c, x, e);
        return;
    }
    x->asked = x->awaited = set;
    for (unsigned i = 0; i < c->job.quorum.ensemble; i++)
        if (set & 1u << i)
            c->effects->read(c->ctx, i, e);
}

static void advance(struct copier *c)
{
    while (c->base < c->next && entry_of(c, c->base)->state == ENTRY_SETTLED) {
        *entry_of(c, c->base) = (struct copier_entry){0};
        c->base = after(c, c->base);
    }
}

static bool has_room(const struct copier *c)
{
    return c->next - c->base < (entry_id)c->job.window;
}

void copier_go(struct copier *c)
{
    if (c->done)
        return;
    advance(c);
    if (c->base > c->job.last) {
        finish(c, c->err);
        return;
    }
    while (c->next <= c->job.last && (c->next == c->base || has_room(c)) &&
           c->effects->may(c->ctx)) {
        entry_id e = c->next;
        c->next = after(c, e);
        begin(c, e);
    }
}

void copier_start(struct copier *c, const struct copier_job *job,
                  const struct copier_effects *effects, void *ctx)
{
    *c = (struct copier){.job = *job, .effects = effects, .ctx = ctx};
    if (c->job.window == 0 || c->job.window > COPIER_WINDOW)
        c->job.window = COPIER_WINDOW;
    c->base = c->next = after(c, job->first - 1);
    copier_go(c);
}

/* An answer that is still awaited, by an entry in that state. */
static struct copier_entry *awaiting(struct copier *c, int state, unsigned slot, entry_id e)
{
    if (c->done || e < c->base || e >= c->next)
        return NULL;
    struct copier_entry *x = entry_of(c, e);
    if ((int)x->state != state || !(x->awaited & 1u << slot))
        return NULL;
    x->awaited &= ~(1u << slot);
    return x;
}

void copier_found(struct copier *c, unsigned slot, entry_id e, void *item)
{
    struct copier_entry *x = awaiting(c, ENTRY_READING, slot, e);

    if (!x) {
        c->effects->drop(c->ctx, item);
        return;
    }
    x->item[slot] = item;
    if (c->job.what == COPIER_COPY)
        copy_found(c, x, slot, e);
    else if (!x->awaited)
        compare(c, x, e);
    copier_go(c);
}

void copier_failed(struct copier *c, unsigned slot, entry_id e, enum err err)
{
    struct copier_entry *x = awaiting(c, ENTRY_READING, slot, e);

    if (!x)
        return;
    if (c->job.what == COPIER_COPY) {
        copy_failed(c, x, e, err);
    } else {
        compare_failed(x, slot, err);
        if (!x->awaited)
            compare(c, x, e);
    }
    copier_go(c);
}

void copier_wrote(struct copier *c, unsigned slot, entry_id e, enum err err)
{
    struct copier_entry *x = awaiting(c, ENTRY_WRITING, slot, e);

    if (!x)
        return;
    if (err && c->job.what == COPIER_COPY) {
        finish(c, err);
        return;
    }
    note(c, err);
    c->written += !err;
    if (!x->awaited)
        settle(c, x);
    copier_go(c);
}

void copier_stop(struct copier *c)
{
    c->done = true;
    for (unsigned i = 0; i < COPIER_WINDOW; i++)
        drop_items(c, &c->ring[i]);
}
