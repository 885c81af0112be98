#include "ledger/replicator.h"

#include <stddef.h>

static void finish(struct replicator *r, enum err err)
{
    r->state = REPLICATOR_DONE;
    r->effects->done(r->ctx, err);
}

static void look(struct replicator *r)
{
    r->state = REPLICATOR_LOOKING;
    r->fragments = NULL;
    if (r->looks++ == REPLICATOR_LOOKS)
        finish(r, ERR_BUSY);
    else
        r->effects->look(r->ctx);
}

void replicator_start(struct replicator *r, struct replicator_how how,
                      const struct replicator_effects *effects, void *ctx)
{
    *r = (struct replicator){.how = how, .effects = effects, .ctx = ctx};
    look(r);
}

/* All but the last fragment of a ledger that is not closed. */
static unsigned sealed(const struct replicator *r)
{
    return r->facts.state == LEDGER_CLOSED ? r->n : r->n - 1;
}

static entry_id last_of(const struct replicator *r, unsigned fragment)
{
    return fragment + 1 < r->n ? r->fragments[fragment + 1].first - 1 : r->facts.last;
}

static uint32_t bad_slots(const struct replicator *r, unsigned fragment)
{
    uint32_t bad = 0;

    for (unsigned i = 0; i < r->facts.quorum.ensemble; i++)
        if (r->effects->is_bad(r->ctx, r->fragments[fragment].bookie[i]))
            bad |= 1u << i;
    return bad;
}

static void copy(struct replicator *r, unsigned fragment, uint32_t bad)
{
    const struct fragment *f = &r->fragments[fragment];

    r->fragment = fragment;
    r->slot = (unsigned)__builtin_ctz(bad);
    if (!r->effects->spare(r->ctx, f->bookie, r->slot, &r->to)) {
        finish(r, ERR_NOT_ENOUGH_BOOKIES);
        return;
    }
    r->state = REPLICATOR_COPYING;
    r->effects->copy(r->ctx, f, last_of(r, fragment), r->slot, r->to, bad);
}

/* False: none of the fragments whose end is known lacks anybody. */
static bool copy_next(struct replicator *r)
{
    for (unsigned i = 0; i < sealed(r); i++) {
        uint32_t bad = bad_slots(r, i);
        if (bad) {
            copy(r, i, bad);
            return true;
        }
    }
    return false;
}

/* Of a recovery whose recoverer went away, too: it is as bad as an old writer. */
static bool seal(struct replicator *r)
{
    if (sealed(r) == r->n || !bad_slots(r, r->n - 1))
        return false;
    if (!r->how.may_fence) {
        finish(r, ERR_BUSY);
        return true;
    }
    r->state = REPLICATOR_RECOVERING;
    r->effects->recover(r->ctx);
    return true;
}

static void compare(struct replicator *r, unsigned fragment, bool sample)
{
    r->state = REPLICATOR_COMPARING;
    r->fragment = fragment;
    r->sample = sample;
    r->effects->compare(r->ctx, &r->fragments[fragment], last_of(r, fragment), sample);
}

static void compare_next(struct replicator *r)
{
    for (unsigned i = 0; i < sealed(r); i++)
        if (r->fragments[i].first >= r->compared) {
            compare(r, i, !r->how.thorough);
            return;
        }
    finish(r, r->err);
}

void replicator_saw(struct replicator *r, enum err err, const struct ledger_facts *facts,
                    const struct fragment *fragments, unsigned n)
{
    if (r->state != REPLICATOR_LOOKING)
        return;
    if (err) {
        finish(r, err == ERR_NO_LEDGER ? ERR_OK : err);
        return;
    }
    r->facts = *facts;
    r->fragments = fragments;
    r->n = n;
    if (!copy_next(r) && !seal(r))
        compare_next(r);
}

void replicator_copied(struct replicator *r, enum err err)
{
    if (r->state != REPLICATOR_COPYING)
        return;
    if (err) {
        finish(r, err);
        return;
    }
    r->state = REPLICATOR_CHANGING;
    r->effects->change(r->ctx, r->fragment, r->slot, r->to);
}

/* Somebody was faster, or it may have happened: what is there now decides. */
void replicator_changed(struct replicator *r, enum err err)
{
    if (r->state != REPLICATOR_CHANGING)
        return;
    if (!err || err == ERR_BAD_VERSION || err == ERR_UNKNOWN_STATE)
        look(r);
    else
        finish(r, err);
}

void replicator_recovered(struct replicator *r, enum err err)
{
    if (r->state != REPLICATOR_RECOVERING)
        return;
    if (err && err != ERR_NO_LEDGER)
        finish(r, err);
    else
        look(r);
}

/* What was lacking at an edge may be lacking in between. */
void replicator_compared(struct replicator *r, enum err err, uint64_t repaired)
{
    if (r->state != REPLICATOR_COMPARING)
        return;
    if (r->sample && !err && repaired > 0) {
        compare(r, r->fragment, false);
        return;
    }
    if (err && !r->err)
        r->err = err;
    r->compared = r->fragments[r->fragment].first + 1;
    compare_next(r);
}
