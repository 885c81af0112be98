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

static bool is_over(const struct appender *a)
{
    return a->state == APPENDER_FAILED || a->state == APPENDER_FENCED;
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
    if (a->state == APPENDER_CHANGING)
        assert(a->wanted.first == a->lac + 1);
    if (in_flight(a) == 0)
        assert(a->bytes == 0);
}

void appender_init(struct appender *a, struct quorum q, const struct fragment *tail,
                   const struct appender_conf *conf, const struct appender_effects *effects,
                   void *ctx)
{
    assert(quorum_valid(q));
    *a = (struct appender){.quorum = q,
                           .tail = *tail,
                           .lac = ENTRY_NONE,
                           .conf = *conf,
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

static void send(struct appender *a, entry_id e, uint32_t slots)
{
    struct appender_slot *s = at(a, e);
    struct appender_add add = {.item = s->item, .entry = e, .lac = a->lac, .length = s->length};

    slots &= quorum_write_set(a->quorum, e);
    s->lost &= ~slots;
    if (slots)
        a->effects->send(a->ctx, slots, &add);
}

enum err appender_append(struct appender *a, void *item, uint32_t size)
{
    if (is_over(a))
        return a->why;
    if (in_flight(a) == a->room)
        return ERR_BUSY;
    if (in_flight(a) > 0 && a->bytes + size > a->conf.window_bytes)
        return ERR_BUSY;

    entry_id e = a->next++;
    a->bytes += size;
    *at(a, e) =
        (struct appender_slot){.item = item, .size = size, .length = a->length + (int64_t)a->bytes};
    if (a->state == APPENDER_CHANGING) /* whoever takes a failed one's place gets it then */
        at(a, e)->lost = a->failed & quorum_write_set(a->quorum, e);
    send(a, e, ~at(a, e)->lost);
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
    if (a->state != APPENDER_OPEN)
        return; /* what is wanted begins at lac + 1: that must not move under it */
    while (in_flight(a) > 0 && is_safe(a, a->lac + 1)) {
        struct appender_slot *s = take_first(a, ++a->lac);
        a->length += s->size;
        a->effects->confirm(a->ctx, a->lac, s->item);
    }
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

/* ---- a failed bookie's place ---- */

/* Not even when all that are asked store it. */
static bool is_hopeless(const struct appender *a, entry_id e)
{
    uint32_t left = quorum_write_set(a->quorum, e) & ~at(a, e)->lost;

    return (unsigned)__builtin_popcount(left) < a->quorum.ack;
}

static bool any_is_hopeless(const struct appender *a)
{
    for (entry_id e = a->lac + 1; e < a->next; e++)
        if (is_hopeless(a, e))
            return true;
    return false;
}

static void tell_lack(struct appender *a, uint32_t slots)
{
    if (slots == a->lacking)
        return;
    a->lacking = slots;
    a->effects->lack(a->ctx, slots);
}

/* The slots of `wanted` that somebody else is found for. */
static uint32_t find_spares(struct appender *a, bool must)
{
    uint32_t found = 0;

    a->wanted = a->tail;
    a->wanted.first = a->lac + 1;
    for (unsigned s = 0; s < a->quorum.ensemble; s++)
        if (a->failed & 1u << s &&
            a->effects->spare(a->ctx, &a->wanted, s, must, &a->wanted.bookie[s]))
            found |= 1u << s;
    return found;
}

static void consider(struct appender *a)
{
    if (a->state != APPENDER_OPEN)
        return; /* one change at a time: what has failed since is looked at after it */

    bool must = a->failed && any_is_hopeless(a);
    bool wait = a->conf.delay_changes && !must;
    if (!a->failed || wait || !find_spares(a, must)) {
        if (must)
            end(a, APPENDER_FAILED, ERR_NOT_ENOUGH_BOOKIES);
        else
            tell_lack(a, a->failed);
    } else if (a->changes == a->conf.changes_max) {
        end(a, APPENDER_FAILED, ERR_IO);
    } else {
        a->state = APPENDER_CHANGING;
        a->changes++;
        a->effects->change(a->ctx, &a->wanted);
    }
}

static uint32_t replaced_slots(const struct appender *a)
{
    uint32_t slots = 0;

    for (unsigned s = 0; s < a->quorum.ensemble; s++)
        if (a->tail.bookie[s] != a->wanted.bookie[s])
            slots |= 1u << s;
    return slots;
}

/* All acks of the old members go, also those that made a quorum, before anything is sent, and all
 * is sent before anything is confirmed: the newcomers have none of these entries yet. */
static void adopt(struct appender *a)
{
    uint32_t replaced = replaced_slots(a);

    a->tail = a->wanted;
    a->state = APPENDER_OPEN;
    a->failed &= ~replaced;
    for (entry_id e = a->lac + 1; e < a->next; e++)
        at(a, e)->acks &= ~replaced;
    for (entry_id e = a->lac + 1; e < a->next; e++)
        send(a, e, replaced);
    consider(a);
    confirm(a);
    if (!is_over(a))
        tell_lack(a, a->failed & a->lacking);
}

void appender_changed(struct appender *a, enum err err)
{
    if (a->state != APPENDER_CHANGING)
        return;
    if (err == ERR_OK)
        adopt(a);
    else if (err_class(err) == CLASS_FATAL)
        end(a, APPENDER_FENCED, ERR_FENCED);
    else
        end(a, APPENDER_FAILED, err_class(err) == CLASS_RETRY ? err : ERR_IO);
    check(a);
}

void appender_try(struct appender *a)
{
    if (a->state == APPENDER_OPEN && a->failed)
        consider(a);
    check(a);
}

/* ---- answers ---- */

/* The slot of a bookie that is to hold e, or -1: it was replaced, or never asked. */
static int slot_of(const struct appender *a, uint32_t bookie, entry_id e)
{
    uint32_t set = quorum_write_set(a->quorum, e);

    for (unsigned s = 0; s < a->quorum.ensemble; s++)
        if (a->tail.bookie[s] == bookie)
            return set & 1u << s ? (int)s : -1;
    return -1;
}

/* One that had failed, and that nobody was found for, answers again: what it missed of the entries
 * in flight it gets now. */
static void back(struct appender *a, unsigned slot)
{
    a->failed &= ~(1u << slot);
    for (entry_id e = a->lac + 1; e < a->next; e++)
        if (at(a, e)->lost & 1u << slot)
            send(a, e, 1u << slot);
    tell_lack(a, a->lacking & a->failed);
}

void appender_acked(struct appender *a, uint32_t bookie, entry_id e)
{
    int slot = slot_of(a, bookie, e);

    if (is_over(a) || slot < 0)
        return; /* lac was fixed when it failed: it may be in the metadata by now */
    if (is_in_flight(a, e)) {
        at(a, e)->acks |= 1u << slot;
        at(a, e)->lost &= ~(1u << slot);
    }
    if (a->state == APPENDER_OPEN && a->failed & 1u << slot)
        back(a, (unsigned)slot);
    confirm(a);
    check(a);
}

/* Also of an entry that was confirmed without it: it will not store the next ones either. */
void appender_refused(struct appender *a, uint32_t bookie, entry_id e, enum err why)
{
    int slot = slot_of(a, bookie, e);

    if (is_over(a) || slot < 0)
        return;
    if (err_class(why) == CLASS_FATAL) {
        end(a, APPENDER_FENCED, ERR_FENCED);
        return;
    }
    bool known = a->failed & 1u << slot;
    a->failed |= 1u << slot;
    if (is_in_flight(a, e) && !(at(a, e)->acks & 1u << slot))
        at(a, e)->lost |= 1u << slot;
    if (!known || (is_in_flight(a, e) && is_hopeless(a, e)))
        consider(a);
    check(a);
}

void appender_stop(struct appender *a, enum err why)
{
    if (!is_over(a))
        end(a, APPENDER_FAILED, why);
}
