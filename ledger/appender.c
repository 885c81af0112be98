#include "ledger/appender.h"

#include <assert.h>

static struct appender_slot *at(const struct appender *a, entry_id e)
{
    return &a->ring[(size_t)e & (a->room - 1)];
}

static size_t in_flight(const struct appender *a)
{
    return (size_t)(a->next - a->lac - 1);
}

static bool is_in_flight(const struct appender *a, entry_id e)
{
    return e > a->lac && e < a->next;
}

static bool is_safe(const struct appender *a, entry_id e)
{
    return (unsigned)__builtin_popcount(at(a, e)->acks) >= a->quorum.ack;
}

/* What is always true between two events. */
static void check(const struct appender *a)
{
    assert(a->lac >= ENTRY_NONE && a->lac < a->next);
    assert(in_flight(a) <= a->room);
    if (a->state == APPENDER_OPEN && in_flight(a) > 0)
        assert(!is_safe(a, a->lac + 1));
    if (in_flight(a) == 0)
        assert(a->bytes == 0);
}

void appender_init(struct appender *a, struct quorum q, size_t window_bytes,
                   const struct appender_effects *effects, void *ctx)
{
    assert(quorum_valid(q));
    *a = (struct appender){.quorum = q,
                           .lac = ENTRY_NONE,
                           .window_bytes = window_bytes,
                           .effects = effects,
                           .ctx = ctx};
}

void appender_move(struct appender *a, struct appender_slot *ring, size_t room)
{
    struct appender old = *a;

    assert((room & (room - 1)) == 0);
    assert(room > 0 && room >= in_flight(a));
    a->ring = ring;
    a->room = room;
    for (entry_id e = a->lac + 1; e < a->next; e++)
        *at(a, e) = *at(&old, e);
}

enum err appender_append(struct appender *a, void *item, uint32_t size)
{
    if (a->state != APPENDER_OPEN)
        return a->why;
    if (in_flight(a) == a->room)
        return ERR_BUSY;
    if (in_flight(a) > 0 && a->bytes + size > a->window_bytes)
        return ERR_BUSY;

    entry_id e = a->next++;
    int64_t length = a->length + (int64_t)(a->bytes + size);
    a->bytes += size;
    *at(a, e) = (struct appender_slot){.item = item, .size = size};
    struct appender_add add = {.item = item, .entry = e, .lac = a->lac, .length = length};
    a->effects->send(a->ctx, quorum_write_set(a->quorum, e), &add);
    check(a);
    return ERR_OK;
}

static struct appender_slot *take_first(struct appender *a, entry_id e)
{
    struct appender_slot *s = at(a, e);

    a->bytes -= s->size;
    return s;
}

/* In order only: a reader takes lac to mean that everything below it is there. */
static void confirm(struct appender *a)
{
    while (in_flight(a) > 0 && is_safe(a, a->lac + 1)) {
        struct appender_slot *s = take_first(a, ++a->lac);
        a->length += s->size;
        a->effects->confirm(a->ctx, a->lac, s->item);
    }
}

void appender_acked(struct appender *a, unsigned slot, entry_id e)
{
    if (a->state != APPENDER_OPEN)
        return; /* lac was fixed when it failed: it may be in the metadata by now */
    if (!is_in_flight(a, e))
        return; /* safe already without this one */
    if (!(quorum_write_set(a->quorum, e) & 1u << slot))
        return; /* it was not asked to hold it */
    at(a, e)->acks |= 1u << slot;
    confirm(a);
    check(a);
}

/* The entries fail after lac, so the next append would be lac + 1 again: nothing more is let in. */
static void end(struct appender *a, enum appender_state state, enum err why)
{
    entry_id first = a->lac + 1, end_ = a->next;

    a->state = state;
    a->why = why;
    for (entry_id e = first; e < end_; e++) {
        struct appender_slot *s = take_first(a, e);
        a->effects->fail(a->ctx, e, s->item, why);
    }
    a->next = first;
    check(a);
}

void appender_refused(struct appender *a, unsigned slot, enum err why)
{
    if (a->state != APPENDER_OPEN || slot >= a->quorum.ensemble)
        return;
    if (err_class(why) == CLASS_FATAL)
        end(a, APPENDER_FENCED, ERR_FENCED);
    else
        end(a, APPENDER_FAILED, err_class(why) == CLASS_RETRY ? why : ERR_IO);
}

void appender_stop(struct appender *a, enum err why)
{
    if (a->state == APPENDER_OPEN)
        end(a, APPENDER_FAILED, why);
}
