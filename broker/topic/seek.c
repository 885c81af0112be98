#include "broker/topic/seek.h"

#include "broker/broker.h"
#include "broker/topic/subscription.h"
#include "common/log.h"

/* From here on the seek may be gone.  The topic is held as a guest holds it: its closing, which may
 * be what ends this, does not wait for it. */
static void finish(struct seek *k, enum err err)
{
    struct subscription *s = k->subscription;
    struct topic *t = s->topic;

    s->seek = NULL;
    s->state = SUBSCRIPTION_READY;
    log_event(err ? LOG_WARN : LOG_INFO, err ? "subscription.not_moved" : "subscription.moved",
              F_STR("topic", t->name.full), F_STR("subscription", s->name), F_ERR(err));
    if (topic_is_ready(t))
        s->feed.ops->rewind(&s->feed);
    k->done(k, err);
    subscription_moved(s);
    topic_guest_left(t);
}

static void was_proven(struct ml_call *call, enum err err, struct managed_ledger *m)
{
    (void)m;
    finish(container_of(call, struct seek, proof), err);
}

static void was_reset(struct cursor_ack_call *call, enum err err)
{
    struct seek *k = container_of(call, struct seek, reset);
    const struct subscription *s = k->subscription;

    if (err || !topic_is_ready(s->topic) || cursor_is_passing(s->cursor)) {
        finish(k, err);
        return;
    }
    k->proof.done = was_proven;
    managed_ledger_prove(s->topic->ml, &k->proof);
}

/* The answer waits for both changes: an ack of nothing waits for all that was before. */
static void reset(struct seek *k, struct position mark_delete)
{
    struct cursor *c = k->subscription->cursor;

    k->reset.done = was_reset;
    cursor_reset(c, mark_delete, NULL);
    if (k->n_words > 0)
        (void)cursor_ack_part(c, k->to, k->words, k->n_words, NULL);
    cursor_ack(c, NULL, 0, &k->reset);
}

static void found(struct ml_find *f, enum err err, struct position before)
{
    struct seek *k = container_of(f, struct seek, find);

    if (err || !topic_is_ready(k->subscription->topic))
        finish(k, err ? err : ERR_NOT_READY);
    else
        reset(k, before);
}

void seek_go_on(struct subscription *s)
{
    struct seek *k = s->seek;
    struct managed_ledger *ml = s->topic->ml;

    if (!topic_is_ready(s->topic)) {
        finish(k, ERR_NOT_READY);
    } else if (k->by_time) {
        k->find = (struct ml_find){.ms = k->ms, .done = found};
        managed_ledger_find(ml, &k->find);
    } else {
        reset(k, segments_at_or_before(managed_ledger_segments(ml), position_before(k->to)));
    }
}

void seek_begin(struct subscription *s, struct seek *k)
{
    if (s->state != SUBSCRIPTION_READY || !topic_is_ready(s->topic)) {
        k->done(k, ERR_BUSY);
        return;
    }
    k->subscription = s;
    s->seek = k;
    s->state = SUBSCRIPTION_SEEKING;
    topic_guest_came(s->topic);
    subscription_send_away(s);
    if (s->n_consumers == 0)
        seek_go_on(s);
}
