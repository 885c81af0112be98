#include "broker/topic/access.h"

#include <assert.h>

#include "common/parse.h"

static const char fenced_out[] = "fenced out by another producer";

static struct access_seat *seat_of(struct list_node *n)
{
    return list_entry(n, struct access_seat, node);
}

/* Between two events. */
static void access_check(const struct access *a)
{
    const bool alone = !list_empty(&a->inside) && seat_of(a->inside.next)->mode != ACCESS_SHARED;

    assert(!alone || a->inside.next->next == &a->inside);
    assert((a->n_waiting == 0) == list_empty(&a->waiting));
    assert(!a->stored_for || a->stored_for == a->taker);
    assert(!a->shut || (!a->taker && a->n_waiting == 0));
}

/* ---- out ---- */

static void put_out(struct access *a, struct access_seat *s)
{
    if (s->place == ACCESS_WAITING)
        a->n_waiting--;
    if (s == a->taker)
        a->taker = NULL;
    if (s == a->stored_for)
        a->stored_for = NULL;
    if (s->place == ACCESS_WAITING || s->place == ACCESS_IN)
        list_remove(&s->node);
    s->place = ACCESS_OUT;
}

static void refuse(struct access *a, struct access_seat *s, enum err err, const char *why)
{
    put_out(a, s);
    a->fx->refuse(a, s, err, why);
}

static void clear(struct access *a, enum err err, const char *why)
{
    if (a->taker)
        refuse(a, a->taker, err, why);
    list_each(&a->waiting, n) refuse(a, seat_of(n), err, why);
    list_each(&a->inside, n) a->fx->send_away(a, seat_of(n));
}

/* ---- in ---- */

static void admit(struct access *a, struct access_seat *s, int64_t epoch)
{
    if (s == a->taker)
        a->taker = a->stored_for = NULL;
    s->place = ACCESS_IN;
    list_push_back(&a->inside, &s->node);
    a->fx->admit(a, s, epoch);
}

static bool is_stale(const struct access *a, const struct access_seat *s)
{
    return s->epoch >= 0 && s->epoch < a->epoch;
}

static void refuse_stale(struct access *a, struct access_seat *s)
{
    refuse(a, s, ERR_PRODUCER_FENCED, "the topic's epoch has moved on: another producer had it");
}

static void start(struct access *a, struct access_seat *s)
{
    s->place = ACCESS_TAKING;
    a->taker = s;
}

static void start_next(struct access *a)
{
    if (a->taker || list_empty(&a->waiting) || !list_empty(&a->inside))
        return;
    struct access_seat *s = seat_of(list_pop_front(&a->waiting));
    a->n_waiting--;
    start(a, s);
}

/* Whoever's turn it is: as far as it goes without waiting for others to leave or for the store. */
static void move_on(struct access *a)
{
    if (a->storing != ACCESS_NO_EPOCH)
        return;
    for (start_next(a); a->taker && is_stale(a, a->taker); start_next(a))
        refuse_stale(a, a->taker);
    struct access_seat *s = a->taker;
    if (!s || !list_empty(&a->inside))
        return;
    if (s->epoch >= 0 && s->epoch == a->epoch) {
        admit(a, s, a->epoch);
        return;
    }
    a->storing = s->epoch > a->epoch ? s->epoch : a->epoch + 1;
    a->stored_for = s;
    a->fx->store(a, a->storing);
}

/* ---- asking ---- */

static bool is_wanted_alone(const struct access *a)
{
    return a->taker || a->n_waiting > 0 ||
           (!list_empty(&a->inside) && seat_of(a->inside.next)->mode != ACCESS_SHARED);
}

static bool is_vacant(const struct access *a)
{
    return !is_wanted_alone(a) && list_empty(&a->inside);
}

static void ask_shared(struct access *a, struct access_seat *s)
{
    if (is_wanted_alone(a))
        refuse(a, s, ERR_PRODUCER_BUSY, "the topic has an exclusive producer, or one that waits");
    else
        admit(a, s, ACCESS_NO_EPOCH);
}

static void take(struct access *a, struct access_seat *s)
{
    start(a, s);
    move_on(a);
}

static void queue_up(struct access *a, struct access_seat *s)
{
    if (a->n_waiting >= ACCESS_WAITERS_MAX) {
        refuse(a, s, ERR_PRODUCER_BUSY, "too many producers wait for the topic");
        return;
    }
    if (s->epoch == a->epoch)
        s->epoch = ACCESS_NO_EPOCH; /* it comes after another owner: not the same one again */
    s->place = ACCESS_WAITING;
    list_push_back(&a->waiting, &s->node);
    a->n_waiting++;
    a->fx->queue(a, s);
}

static void ask_alone(struct access *a, struct access_seat *s)
{
    if (a->epoch == ACCESS_BAD_EPOCH) {
        refuse(a, s, ERR_MALFORMED, "the topic's stored epoch is not a number");
    } else if (s->epoch > ACCESS_EPOCH_MAX) {
        refuse(a, s, ERR_NOT_ALLOWED, "no topic has had such an epoch");
    } else if (is_stale(a, s)) {
        refuse_stale(a, s);
    } else if (s->mode == ACCESS_FENCE) {
        clear(a, ERR_PRODUCER_FENCED, fenced_out);
        take(a, s);
    } else if (is_vacant(a)) {
        take(a, s);
    } else if (s->mode == ACCESS_WAIT) {
        queue_up(a, s);
    } else {
        refuse(a, s, ERR_PRODUCER_FENCED, "the topic has other producers");
    }
}

void access_ask(struct access *a, struct access_seat *s)
{
    access_check(a);
    s->place = ACCESS_OUT;
    list_init(&s->node);
    if (a->shut)
        refuse(a, s, a->shut, a->why);
    else if (s->mode == ACCESS_SHARED)
        ask_shared(a, s);
    else
        ask_alone(a, s);
}

void access_leave(struct access *a, struct access_seat *s)
{
    if (s->place == ACCESS_OUT)
        return;
    put_out(a, s);
    access_check(a);
    move_on(a);
}

void access_stored(struct access *a, enum err err)
{
    const int64_t epoch = a->storing;
    struct access_seat *s = a->stored_for;

    assert(epoch != ACCESS_NO_EPOCH);
    a->storing = ACCESS_NO_EPOCH;
    a->stored_for = NULL;
    if (!err)
        a->epoch = epoch;
    access_check(a);
    if (s && !err) {
        admit(a, s, epoch);
        return;
    }
    if (s)
        refuse(a, s, err, "the topic's epoch could not be stored");
    move_on(a);
}

void access_shut(struct access *a, enum err err, const char *why)
{
    a->shut = err;
    a->why = why;
    clear(a, err, why);
}

void access_init(struct access *a, const struct access_fx *fx, int64_t epoch)
{
    *a = (struct access){.fx = fx, .epoch = epoch, .storing = ACCESS_NO_EPOCH};
    list_init(&a->inside);
    list_init(&a->waiting);
}

int64_t access_epoch_of(const char *text)
{
    uint64_t epoch;

    if (!text)
        return ACCESS_NO_EPOCH;
    if (parse_u64(text, &epoch) || epoch >= INT64_MAX)
        return ACCESS_BAD_EPOCH;
    return (int64_t)epoch;
}
