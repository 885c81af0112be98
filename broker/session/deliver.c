/* MESSAGE: from a delivery to frames, as fast as the connection takes them. */
#include "broker/session/asks.h"
#include "broker/session/reply.h"
#include "common/memory_guard.h"

static struct slice front_of(const struct handle *h, const struct delivery *d,
                             const struct delivery_item *item)
{
    Pulsar__Proto__MessageIdData id = PULSAR__PROTO__MESSAGE_ID_DATA__INIT;
    Pulsar__Proto__CommandMessage m = PULSAR__PROTO__COMMAND_MESSAGE__INIT;

    id.ledgerid = (uint64_t)item->at.ledger;
    id.entryid = (uint64_t)item->at.entry;
    id.has_partition = h->partition >= 0;
    id.partition = h->partition;
    m.consumer_id = h->id;
    m.message_id = &id;
    m.n_ack_set = item->n_left;
    m.ack_set = item->left;
    m.has_redelivery_count = item->redeliveries > 0;
    m.redelivery_count = item->redeliveries;
    m.has_consumer_epoch = d->has_epoch;
    m.consumer_epoch = d->epoch;
    REPLY(base, MESSAGE, message, m);
    return command_front(&base, item->magic.len + item->body.len);
}

/* ---- how much connections hold ---- */

void session_unsent_look(struct session *s)
{
    const size_t now = s->conn ? conn_waiting(s->conn) : 0;

    s->home->unsent += now - s->unsent_seen;
    s->unsent_seen = now;
}

static bool is_tight(const struct sessions *home)
{
    return (home->env.unsent_budget > 0 && home->unsent > home->env.unsent_budget) ||
           memory_guard_level(home->env.memory) >= MEMORY_LOW;
}

/* What will lie here for a while shall hold on to no more than about twice itself: an entry that
 * was read is part of a larger piece. */
static void settle(struct slice *body)
{
    if (!body->slab || slab_size(body->slab) <= 2 * body->len)
        return;
    struct slice own = slice_copy(body->base, body->len);

    slice_drop(body);
    *body = own;
}

static bool takes_more(struct session *s)
{
    if (!s->conn)
        return true;
    session_unsent_look(s);
    const bool tight = is_tight(s->home);
    const size_t most = tight ? WRITE_TIGHT : WRITE_HIGH;

    if (tight != s->tight)
        conn_set_write_high(s->conn, most);
    s->tight = tight;
    return conn_waiting(s->conn) <= most;
}

/* ---- deliveries ---- */

static void write_out(struct session *s, const struct handle *h, struct delivery *d)
{
    const bool stays = s->tight && conn_waiting(s->conn) > 0;

    for (unsigned i = 0; i < d->n; i++) {
        struct delivery_item *item = &d->item[i];
        struct slice front = front_of(h, d, item);
        unsent_put(&s->unsent, front.len + item->magic.len + item->body.len);
        conn_send(s->conn, front);
        if (stays)
            settle(&item->body);
        if (item->magic.len > 0)
            conn_send(s->conn, item->magic);
        conn_send(s->conn, item->body);
        item->magic = item->body = (struct slice){0};
    }
    d->written = true;
}

static struct handle *handle_of(const struct delivery *d)
{
    return &container_of(d->consumer, struct session_consumer, guest)->handle;
}

/* For a consumer that the client does not know any more it is dropped. */
static bool is_wanted(const struct delivery *d)
{
    const struct handle *h = handle_of(d);

    return !d->written && h->session->conn && h->state == HANDLE_READY;
}

void session_deliver(struct topic_consumer *c, struct delivery *d)
{
    struct handle *h = handle_of(d);
    struct session *s = h->session;
    const bool wanted = is_wanted(d);

    if (wanted && list_empty(&s->undelivered) && takes_more(s))
        write_out(s, h, d);
    if (!wanted || (d->written && takes_more(s)))
        topic_consumer_delivered(c, d);
    else
        list_push_back(&s->undelivered, &d->node);
}

/* The feeds may go on: the connection has room again, or is gone. */
void session_undelivered_go(struct session *s)
{
    while (!list_empty(&s->undelivered)) {
        struct delivery *d = list_entry(s->undelivered.next, struct delivery, node);
        if (is_wanted(d) && !takes_more(s))
            return;
        list_remove(&d->node);
        if (is_wanted(d))
            write_out(s, handle_of(d), d);
        topic_consumer_delivered(d->consumer, d);
    }
}

/* It leaves: its topic waits for what it has, and must not wait for a client that does not read. */
void session_undelivered_drop(struct session *s, const struct topic_consumer *c)
{
    list_each(&s->undelivered, n)
    {
        struct delivery *d = list_entry(n, struct delivery, node);
        if (d->consumer != c)
            continue;
        list_remove(n);
        topic_consumer_delivered(d->consumer, d);
    }
}
