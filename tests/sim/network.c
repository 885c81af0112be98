#include "tests/sim/sim.h"

/* Now and then a message takes many times as long as others: what overtakes it is the test. */
static unsigned delay(struct sim *s, unsigned actor, unsigned bookie)
{
    if (healed(s))
        return 1 + roll(s, 5);
    unsigned most = s->knobs.slow * (chance(s, 50) ? 8 : 1);
    return 1 + roll(s, most) + s->knobs.far[actor][bookie];
}

static bool is_lost(struct sim *s, unsigned actor, unsigned bookie)
{
    if (healed(s))
        return false;
    return s->cut_until[actor][bookie] > s->now || roll(s, 100) < s->knobs.lost;
}

static bool still_waits(const struct sim *s, unsigned request, unsigned generation)
{
    return s->requests[request].generation == generation && s->requests[request].waiting;
}

static void answer(struct sim *s, unsigned request, const struct reply *r)
{
    struct request *q = &s->requests[request];

    q->waiting = false;
    if (q->life != actor_life(s, q->actor))
        return; /* whoever asked is gone */
    struct request copy = *q;
    if (q->actor == WRITER)
        writer_reply(s, &copy, r);
    else if (q->actor >= MENDERS)
        mending_reply(s, &copy, r);
    else
        recovery_reply(s, &copy, r);
}

static void arrives_at_bookie(struct sim *s, struct event *e)
{
    if (s->requests[e->a].generation == e->b)
        bookie_take(s, e->a);
}

/* Until its loop turns again; what came first is heard first. */
static bool is_put_off(struct sim *s, const struct event *e)
{
    if (s->requests[e->a].actor != WRITER || !writer_sleeps(s))
        return false;
    struct event again = *e;
    struct event *then = later(s, s->knobs.writer_goes_on - s->now, again.run);
    then->a = again.a;
    then->b = again.b;
    then->reply = again.reply;
    return true;
}

static void arrives_at_actor(struct sim *s, struct event *e)
{
    if (is_put_off(s, e))
        return;
    if (still_waits(s, e->a, e->b))
        answer(s, e->a, &e->reply);
}

static void is_overdue(struct sim *s, struct event *e)
{
    if (is_put_off(s, e))
        return;
    if (still_waits(s, e->a, e->b))
        answer(s, e->a, &(struct reply){.err = ERR_TIMEOUT});
}

void request_send(struct sim *s, const struct request *q)
{
    unsigned i = s->next_request++ % REQUESTS;
    unsigned generation = s->requests[i].generation + 1;
    struct event *e;

    if (s->requests[i].waiting)
        fault(s, "more requests than any life has");
    s->requests[i] = *q;
    s->requests[i].generation = generation;
    s->requests[i].waiting = true;
    s->requests[i].life = actor_life(s, q->actor);
    e = later(s, s->knobs.timeout, is_overdue);
    e->a = i;
    e->b = generation;
    if (is_lost(s, q->actor, q->bookie))
        return;
    e = later(s, delay(s, q->actor, q->bookie), arrives_at_bookie);
    e->a = i;
    e->b = generation;
}

void reply_send(struct sim *s, unsigned request, unsigned generation, const struct reply *r)
{
    const struct request *q = &s->requests[request];

    if (!still_waits(s, request, generation) || is_lost(s, q->actor, q->bookie))
        return;
    struct event *e = later(s, delay(s, q->actor, q->bookie), arrives_at_actor);
    e->a = request;
    e->b = generation;
    e->reply = *r;
}

static void is_cut(struct sim *s, struct event *e)
{
    if (is_put_off(s, e))
        return;
    if (still_waits(s, e->a, e->b))
        answer(s, e->a, &(struct reply){.err = ERR_IO});
}

/* All that was under way between the two fails for the one who asked; whether the bookie still
 * gets it is up to the network. */
void network_cut(struct sim *s, unsigned actor, unsigned bookie)
{
    say(s, "network: the connection of a%u and b%u is cut", actor, bookie);
    for (unsigned i = 0; i < REQUESTS; i++) {
        const struct request *q = &s->requests[i];
        if (!q->waiting || q->actor != actor || q->bookie != bookie)
            continue;
        struct event *e = later(s, 1, is_cut);
        e->a = i;
        e->b = q->generation;
    }
}
