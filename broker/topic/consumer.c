#include "broker/topic/consumer.h"

#include <assert.h>

#include "broker/topic/kind.h"
#include "broker/topic/subscription.h"
#include "common/log.h"
#include "proto/message.h"

static const struct topic_consumer_front *front_of(const struct topic_consumer *c)
{
    return container_of(c->guest.front_ops, const struct topic_consumer_front, guest);
}

const char *consumer_type_name(enum consumer_type type)
{
    static const char *const names[] = {
        [CONSUMER_EXCLUSIVE] = "Exclusive", [CONSUMER_SHARED] = "Shared"};

    return names[type];
}

/* ---- answers ---- */

static void on_answered(struct task *t)
{
    struct consumer_ask *a = container_of(t, struct consumer_ask, task);
    front_of(a->consumer)->answered(a->consumer, a);
}

void topic_consumer_answer(struct consumer_ask *a, enum err err)
{
    struct guest *g = &a->consumer->guest;

    a->err = err;
    a->task.run = on_answered;
    loop_post(g->front, &a->task);
    guest_lets_go(g);
}

/* ---- acknowledging ---- */

static void acked(struct cursor_ack_call *call, enum err err)
{
    topic_consumer_answer(container_of(call, struct consumer_ask, ack), err);
}

/* Nobody may acknowledge what was not published yet. */
static struct position at_most(struct position p, struct position end)
{
    return position_compare(p, end) < 0 ? p : end;
}

/* What its dispatcher counts is what is left now; false: there was no room for it. */
static bool ack_part(struct subscription *s, const struct ask_part *p)
{
    if (!cursor_ack_part(s->cursor, p->at, p->words, p->n, NULL))
        return false;
    const struct cursor_part *left = cursor_part(s->cursor, p->at);
    if (left)
        s->feed.ops->acked_part(&s->feed, p->at, cursor_part_left(left, UINT32_MAX));
    else
        s->feed.ops->acked(&s->feed, &p->at, 1);
    return true;
}

static enum err ack_parts(struct subscription *s, const struct consumer_ask *a)
{
    enum err err = ERR_OK;

    for (unsigned i = 0; i < a->n_parts; i++)
        if (!ack_part(s, &a->parts[i]))
            err = ERR_BUSY;
    return err;
}

static void refuse_upto(struct topic_consumer *c, struct consumer_ask *a)
{
    log_event(LOG_WARN, "ack.refused", F_STR("topic", c->guest.topic->name.full),
              F_STR("subscription", c->subscription->name),
              F_STR("why", "cumulative on a shared subscription"));
    topic_consumer_answer(a, ERR_NOT_ALLOWED);
}

static int64_t unacked_of(const struct subscription *s)
{
    return s->feed.type == CONSUMER_SHARED ? s->feed.shared->unacked : 0;
}

/* A Shared subscription knows how many messages that was; of others an entry's average is. */
static void note_acked(struct topic_consumer *c, const struct consumer_ask *a, int64_t unacked)
{
    struct subscription *s = c->subscription;
    const struct consuming *all = &c->consuming;
    uint64_t messages = a->n;

    if (s->feed.type == CONSUMER_SHARED)
        messages = (uint64_t)(unacked - unacked_of(s));
    else if (all->entries > 0)
        messages = a->n * all->out.messages / all->entries;
    traffic_note(&c->consuming.acked, messages, 0);
    traffic_note(&s->consuming.acked, messages, 0);
    c->consuming.acked_ms = s->consuming.acked_ms = loop_wall_ms();
}

static void ack(struct topic_consumer *c, struct consumer_ask *a)
{
    struct subscription *s = c->subscription;
    struct position end = managed_ledger_max_readable(c->guest.topic->ml);
    const int64_t unacked = unacked_of(s);
    enum err err;

    if (a->kind == ASK_ACK_UPTO && c->type != CONSUMER_EXCLUSIVE) {
        refuse_upto(c, a);
        return;
    }
    err = ack_parts(s, a);
    a->ack.done = acked;
    if (a->kind == ASK_ACK_UPTO)
        cursor_ack_upto(s->cursor, at_most(a->at[0], end), a->wanted && !err ? &a->ack : NULL);
    else
        cursor_ack(s->cursor, a->at, a->n, a->wanted && !err ? &a->ack : NULL);
    s->feed.ops->acked(&s->feed, a->at, a->n);
    note_acked(c, a, unacked);
    subscription_check_end(s);
    if (!a->wanted || err)
        topic_consumer_answer(a, err);
}

static void redeliver(struct topic_consumer *c, struct consumer_ask *a)
{
    if (a->has_epoch && (!c->has_epoch || a->epoch > c->epoch)) {
        c->has_epoch = true;
        c->epoch = a->epoch;
    }
    struct feed *f = &c->subscription->feed;
    f->ops->redeliver(f, c, a->at, a->n);
    topic_consumer_answer(a, ERR_OK);
}

/* ---- the last message's id ---- */

static void read_last(struct topic_consumer *c, struct consumer_ask *a);

static enum err peek_into(const struct ml_entry *e, struct message_peek *peek)
{
    struct broker_entry front;
    struct view rest;
    struct frame frame;

    TRY(broker_entry_read(slice_view(e->payload), &front, &rest));
    TRY(frame_split_body(rest, &frame));
    return message_peek(frame.metadata, peek);
}

/* Markers are no messages: readers would wait for them in vain. */
static void last_read(struct ml_read *r, enum err err, struct ml_entry *entries, unsigned n,
                      struct position next)
{
    struct consumer_ask *a = container_of(r, struct consumer_ask, read);
    struct topic_consumer *c = a->consumer;
    struct message_peek peek = {0};
    bool known = n > 0 && !peek_into(&entries[0], &peek);

    (void)next;
    list_remove(&a->node);
    for (unsigned i = 0; i < n; i++)
        slice_drop(&entries[i].payload);
    if (known && peek.is_batch)
        a->batch_index = peek.num_messages - 1;
    if (known && peek.has_marker) {
        a->last = segments_at_or_before(managed_ledger_segments(c->guest.topic->ml),
                                        (struct position){a->last.ledger, a->last.entry - 1});
        read_last(c, a);
        return;
    }
    topic_consumer_answer(a, err);
}

static void read_last(struct topic_consumer *c, struct consumer_ask *a)
{
    a->batch_index = -1;
    if (a->last.entry < 0) {
        a->last = POSITION_EARLIEST;
        topic_consumer_answer(a, ERR_OK);
        return;
    }
    a->read = (struct ml_read){.from = a->last, .max_entries = 1, .done = last_read};
    list_push_back(&c->reading, &a->node);
    managed_ledger_read(c->guest.topic->ml, &a->read);
}

static void last_id(struct topic_consumer *c, struct consumer_ask *a)
{
    a->last = managed_ledger_max_readable(c->guest.topic->ml);
    a->mark_delete = cursor_mark_delete(c->subscription->cursor);
    read_last(c, a);
}

static void sought(struct seek *k, enum err err)
{
    topic_consumer_answer(k->owner, err);
}

static void seek(struct topic_consumer *c, struct consumer_ask *a)
{
    a->seek->owner = a;
    a->seek->done = sought;
    seek_begin(c->subscription, a->seek);
}

/* ---- what is known of it ---- */

void topic_consumer_report(const struct topic_consumer *c, struct consumer_report *out)
{
    const struct consuming *all = &c->consuming;
    const bool shared = c->subscription->feed.ops == &feed_shared;

    *out = (struct consumer_report){
        .out_rate = all->out.message_rate,
        .out_byte_rate = all->out.byte_rate,
        .again_rate = all->again.message_rate,
        .acked_rate = all->acked.message_rate,
        .permits = c->subscription->feed.ops->permits(&c->subscription->feed, c),
        .unacked = shared ? c->shared.unacked : 0,
        .backlog = c->subscription->cursor ? cursor_backlog(c->subscription->cursor) : 0,
        .blocked = shared && c->shared.blocked,
    };
    guest_since(&c->guest, out->since);
}

static void report(struct topic_consumer *c, struct consumer_ask *a)
{
    a->report = mem_alloc(sizeof(*a->report));
    topic_consumer_report(c, a->report);
    topic_consumer_answer(a, ERR_OK);
}

/* ---- asks ---- */

void topic_consumer_take(struct topic_consumer *c, struct consumer_ask *a)
{
    switch (a->kind) {
    case ASK_FLOW:
        c->consuming.flowed_ms = c->subscription->consuming.flowed_ms = loop_wall_ms();
        c->subscription->feed.ops->flow(&c->subscription->feed, c, a->permits);
        topic_consumer_answer(a, ERR_OK);
        break;
    case ASK_ACK:
    case ASK_ACK_UPTO:
        ack(c, a);
        break;
    case ASK_REDELIVER:
        redeliver(c, a);
        break;
    case ASK_UNSUBSCRIBE:
        subscription_delete(c->subscription, a);
        break;
    case ASK_LAST_ID:
        last_id(c, a);
        break;
    case ASK_REPORT:
        report(c, a);
        break;
    case ASK_SEEK:
        seek(c, a);
        break;
    }
}

static void on_ask(struct task *t)
{
    struct consumer_ask *a = container_of(t, struct consumer_ask, task);
    struct topic_consumer *c = a->consumer;
    bool in = c->guest.state == GUEST_IN && c->subscription &&
              c->subscription->state == SUBSCRIPTION_READY;

    guest_holds(&c->guest);
    if (in)
        c->guest.topic->kind->ask(c, a);
    else
        topic_consumer_answer(a, ERR_NOT_READY);
}

void topic_consumer_ask(struct topic_consumer *c, struct consumer_ask *a)
{
    a->consumer = c;
    a->task.run = on_ask;
    loop_post(guest_back_loop(&c->guest), &a->task);
}

void topic_consumer_ask_drop(struct consumer_ask **a)
{
    mem_free((*a)->parts);
    mem_free((*a)->report);
    mem_free((*a)->seek);
    mem_free(*a);
    *a = NULL;
}

/* ---- deliveries ---- */

static void on_deliver(struct task *t)
{
    struct delivery *d = container_of(t, struct delivery, task);
    front_of(d->consumer)->deliver(d->consumer, d);
}

struct delivery *delivery_new(unsigned room)
{
    struct delivery *d = mem_alloc(sizeof(*d) + room * sizeof(d->item[0]));

    *d = (struct delivery){0};
    return d;
}

struct delivery *delivery_grow(struct delivery *d, unsigned room)
{
    return mem_resize(d, sizeof(*d) + room * sizeof(d->item[0]));
}

void topic_consumer_gets(struct topic_consumer *c, const struct delivery_item *item, unsigned left)
{
    unsigned room = c->building ? c->building->n : 0;

    if (!c->building)
        c->building = delivery_new(left < 16 ? left : 16);
    else if (room >= 16 && (room & (room - 1)) == 0)
        c->building = delivery_grow(c->building, 2 * room);
    c->building->item[c->building->n++] = *item;
}

void delivery_item_drop(struct delivery_item *item)
{
    slice_drop(&item->magic);
    slice_drop(&item->body);
    mem_free(item->left);
    item->left = NULL;
}

void delivery_drop(struct delivery **d)
{
    for (unsigned i = 0; i < (*d)->n; i++)
        delivery_item_drop(&(*d)->item[i]);
    mem_free(*d);
    *d = NULL;
}

static void note_delivered(struct consuming *c, const struct delivery *d, uint64_t messages,
                           uint64_t again)
{
    traffic_note(&c->out, messages, d->bytes);
    traffic_note(&c->again, again, 0);
    c->entries += d->n;
    c->delivered_ms = loop_wall_ms();
}

static void count(struct topic_consumer *c, struct delivery *d)
{
    uint64_t messages = 0, again = 0;

    for (unsigned i = 0; i < d->n; i++) {
        messages += d->item[i].messages;
        again += d->item[i].redeliveries ? d->item[i].messages : 0;
        d->bytes += d->item[i].body.len;
    }
    traffic_note(&c->guest.topic->stats.out, messages, d->bytes);
    note_delivered(&c->consuming, d, messages, again);
    note_delivered(&c->subscription->consuming, d, messages, again);
    topics_delivering(c->guest.topics, d->bytes);
}

void topic_consumer_deliver(struct topic_consumer *c, struct delivery *d)
{
    d->consumer = c;
    d->has_epoch = c->has_epoch;
    d->epoch = c->epoch;
    d->task.run = on_deliver;
    guest_holds(&c->guest);
    c->out++;
    count(c, d);
    loop_post(c->guest.front, &d->task);
}

static void on_delivered(struct task *t)
{
    struct delivery *d = container_of(t, struct delivery, task);
    struct topic_consumer *c = d->consumer;

    topics_delivered(c->guest.topics, d->bytes);
    c->out--;
    c->returned = d->charge;
    mem_free(d);
    if (c->subscription)
        c->subscription->feed.ops->delivered(&c->subscription->feed, c);
    guest_lets_go(&c->guest);
}

void topic_consumer_delivered(struct topic_consumer *c, struct delivery *d)
{
    for (unsigned i = 0; i < d->n; i++)
        delivery_item_drop(&d->item[i]);
    d->task.run = on_delivered;
    loop_post(guest_back_loop(&c->guest), &d->task);
}

/* ---- the end of a terminated topic ---- */

static void on_end(struct task *t)
{
    struct topic_consumer *c = container_of(t, struct topic_consumer, end_task);

    if (front_of(c)->reached_end)
        front_of(c)->reached_end(c);
}

/* It comes to the front before ended(), which is posted later. */
void topic_consumer_reached_end(struct topic_consumer *c)
{
    if (c->told_end)
        return;
    c->told_end = true;
    c->end_task.run = on_end;
    loop_post(c->guest.front, &c->end_task);
}

/* ---- coming and going ---- */

static void arrive(struct guest *g)
{
    struct topic_consumer *c = topic_consumer_of(g);

    if (topic_takes_type(g->topic, consumer_type_name(c->type)))
        g->topic->kind->subscribe(g->topic, c);
    else
        guest_refuse(g, ERR_NOT_ALLOWED, "subscriptions of type %s are not enabled",
                     consumer_type_name(c->type));
}

static void leave(struct guest *g)
{
    struct topic_consumer *c = topic_consumer_of(g);
    struct managed_ledger *ml = g->topic->ml;

    if (c->subscription)
        subscription_leave(c->subscription, c);
    for (struct list_node *n; (n = list_pop_front(&c->reading));) {
        struct consumer_ask *a = list_entry(n, struct consumer_ask, node);
        managed_ledger_read_cancel(ml, &a->read);
        topic_consumer_answer(a, ERR_CLOSED);
    }
}

static const struct guest_back back = {.arrive = arrive, .leave = leave, .busy = ERR_CONSUMER_BUSY};

void topic_consumer_open(struct topic_consumer *c)
{
    c->subscription = NULL;
    c->building = NULL;
    c->out = 0;
    c->told_end = false;
    c->consuming = (struct consuming){0};
    list_init(&c->reading);
    list_init(&c->due.node);
    c->guest.back_ops = &back;
    guest_open(&c->guest);
}
