#include "tests/sim/exhaust/model.h"

/* What commutes with everything that could happen before it, and takes no choice away: it happens
 * at once, and the states in which it has not happened yet need not be looked at. */

static bool may_crash(unsigned bookie)
{
    return world.crashes && world.mortal == bookie;
}

/* A failure of this bookie, as this actor sees it, may still come. */
static bool may_fail(const struct exchange *x)
{
    if (may_crash(x->bookie) || world.bookie[x->bookie].down)
        return true;
    for (const struct exchange *y = world.exchange; y < world.exchange + world.top; y++)
        if (y->used && y->bookie == x->bookie && y->actor == x->actor && y->doomed)
            return true;
    return false;
}

static bool is_being_copied(unsigned bookie, const struct exchange *but)
{
    for (const struct exchange *y = world.exchange; y < world.exchange + world.top; y++)
        if (y != but && y->used && y->bookie == bookie && y->add && !y->plain && !y->answered)
            return true;
    return false;
}

/* A fenced bookie refuses its writer, and what it has stays as it is: when it is asked makes no
 * difference.  A copy is not read again by whoever has it written. */
static bool arrives_any_time(const struct exchange *x)
{
    const struct bookie *b = &world.bookie[x->bookie];

    if (b->down)
        return true;
    if (x->add && !x->plain)
        return x->heard && !may_crash(x->bookie) && !is_being_copied(x->bookie, x);
    return bookie_is_fenced(b) && (x->add || !is_being_copied(x->bookie, NULL));
}

static unsigned count(uint32_t slots)
{
    return (unsigned)__builtin_popcount(slots);
}

/* One more, and it is not the one that decides. */
static bool writer_only_counts(const struct exchange *x)
{
    const struct appender *a = &world.appender;

    if (x->err || a->state != APPENDER_OPEN || a->failed & 1u << x->slot ||
        a->tail.bookie[x->slot] != x->bookie)
        return false;
    return x->entry <= a->lac ||
           count(world.ring[x->entry % RING].acks | 1u << x->slot) < setting.quorum.ack;
}

static bool recoverer_only_counts(const struct exchange *x)
{
    const struct recoverer *r = &world.recoverer;
    const struct recoverer_entry *c = &r->ring[x->entry % RECOVERER_WINDOW];

    if (r->state != RECOVERER_COPYING || x->entry == ENTRY_NONE)
        return false;
    if (!x->add)
        return x->err == ERR_NO_ENTRY && c->state == COPY_READING &&
               count(c->negative) + 1 <= setting.quorum.write - setting.quorum.ack &&
               count(c->negative | c->unknown) + 1 < setting.quorum.write;
    return !x->err && !r->dead && (x->entry <= r->lac || count(c->acks) + 1 < setting.quorum.ack);
}

static bool only_counts(const struct exchange *x)
{
    if (!x->heard || x->doomed || may_fail(x))
        return false;
    return x->actor == WRITER ? writer_only_counts(x) : recoverer_only_counts(x);
}

bool eager_step(void)
{
    for (struct exchange *x = world.exchange; x < world.exchange + world.top; x++) {
        if (!x->used || !(x->answered ? only_counts(x) : arrives_any_time(x)))
            continue;
        exchange_move(x);
        actors_settle();
        return true;
    }
    return false;
}
