#include <assert.h>

#include "client/attach.h"
#include "client/client_private.h"
#include "client/consumer_acks.h"
#include "client/consumer_inbox.h"
#include "client/server_error.h"
#include "common/log.h"
#include "common/mem.h"
#include "common/rng.h"

enum {
    QUEUE_SIZE = 1000,
    ACK_DELAY_US = 10 * 1000,
    ACK_RETRY_US = 100 * 1000,
    ACK_COMMAND_MAX = 1000,
    CLOSE_GRACE_US = 5 * 1000 * 1000,
    PUMP_MAX = 1000, /* messages handed out in one go, so that sockets get their turn */
};

/* Acks that are with the broker and not answered. */
struct ack_flight {
    struct list_node node;
    struct link_request request;
    struct consumer *consumer;
    struct message_id *ids;
    unsigned n;
    bool upto;
};

struct flush_waiter {
    struct list_node node;
    void (*done)(void *ctx, enum err err);
    void *ctx;
};

struct consumer {
    struct client *client;
    struct list_node node; /* in the client's */
    struct consumer_conf conf;
    char *topic, *subscription, *name;
    struct message_id after; /* of a reader: what was handed out last */
    struct attach attach;
    struct inbox inbox;
    struct acks *acks;
    struct list_node flights;
    struct list_node waiters;
    bool has_upto;
    struct message_id upto; /* the newest cumulative ack, not sent */
    enum err ack_err;       /* of acks that were refused since somebody was told */
    struct timer ack_due;
    unsigned used_permits;
    unsigned paused;
    bool pumping;
    struct task pump_task;
    bool pump_posted;
    enum { CONSUMER_OPEN, CONSUMER_CLOSING, CONSUMER_GONE } state;
    struct link_request end_request;               /* UNSUBSCRIBE, CLOSE_CONSUMER */
    void (*unsubscribed)(void *ctx, enum err err); /* NULL: nobody waits */
    void *unsubscribed_ctx;
    void (*closed)(void *ctx);
    void *closed_ctx;
    struct timer close_due;
    struct task free_task;
};

static struct consumer *consumer_of(struct attach *a)
{
    return container_of(a, struct consumer, attach);
}

/* ---- the end --------------------------------------------------------------------------------- */

static void flight_drop(struct ack_flight *f)
{
    link_forget(&f->request);
    list_remove(&f->node);
    mem_free(f->ids);
    mem_free(f);
}

static void tell_waiters(struct consumer *c, enum err err)
{
    struct list_node *node;
    while ((node = list_pop_front(&c->waiters))) {
        struct flush_waiter *w = list_entry(node, struct flush_waiter, node);
        w->done(w->ctx, err);
        mem_free(w);
    }
}

static void run_free(struct task *t)
{
    struct consumer *c = container_of(t, struct consumer, free_task);
    if (c->closed)
        c->closed(c->closed_ctx);
    inbox_drop(&c->inbox);
    acks_drop(&c->acks);
    mem_free(c->topic);
    mem_free(c->subscription);
    mem_free(c->name);
    mem_free(c);
}

static void tell_unsubscribed(struct consumer *c, enum err err)
{
    void (*done)(void *, enum err) = c->unsubscribed;
    c->unsubscribed = NULL;
    if (done)
        done(c->unsubscribed_ctx, err);
}

/* The free task runs behind a pump that was posted before it. */
static void finish(struct consumer *c)
{
    if (c->state == CONSUMER_GONE)
        return;
    c->state = CONSUMER_GONE;
    list_remove(&c->node);
    link_forget(&c->end_request);
    attach_end(&c->attach);
    loop_cancel(c->client->home, &c->ack_due);
    loop_cancel(c->client->home, &c->close_due);
    while (!list_empty(&c->flights))
        flight_drop(list_entry(c->flights.next, struct ack_flight, node));
    c->free_task.run = run_free;
    loop_post(c->client->home, &c->free_task);
    tell_waiters(c, ERR_CLOSED);
    tell_unsubscribed(c, ERR_CLOSED);
}

static bool acks_settled(const struct consumer *c)
{
    return acks_gathered(c->acks) == 0 && !c->has_upto && list_empty(&c->flights);
}

static void close_answered(struct link_request *r, enum err err, const char *text,
                           const Pulsar__Proto__BaseCommand *reply)
{
    (void)err, (void)text, (void)reply; /* gone either way */
    finish(container_of(r, struct consumer, end_request));
}

/* request NULL: nobody waits for the answer. */
static void call_close(struct consumer *c, struct link *link, uint64_t id,
                       struct link_request *request)
{
    Pulsar__Proto__BaseCommand base = PULSAR__PROTO__BASE_COMMAND__INIT;
    Pulsar__Proto__CommandCloseConsumer close = PULSAR__PROTO__COMMAND_CLOSE_CONSUMER__INIT;
    base.type = PULSAR__PROTO__BASE_COMMAND__TYPE__CLOSE_CONSUMER;
    base.close_consumer = &close;
    close.consumer_id = c->attach.user.id;
    close.request_id = id;
    if (request)
        link_call(link, &base, id, request);
    else
        link_send(link, command_frame(&base));
}

static void abandon(struct attach *a, struct link *link)
{
    struct consumer *c = consumer_of(a);
    call_close(c, link, link_next_request(&c->client->links), NULL);
}

static void close_when_settled(struct consumer *c)
{
    struct link *link = attach_link(&c->attach);
    if (c->state != CONSUMER_CLOSING || c->end_request.link)
        return;
    if (!link) {
        finish(c);
    } else if (acks_settled(c)) {
        c->end_request.done = close_answered;
        call_close(c, link, link_next_request(&c->client->links), &c->end_request);
    }
}

static void close_overdue(struct timer *t)
{
    finish(container_of(t, struct consumer, close_due));
}

/* ---- acknowledging --------------------------------------------------------------------------- */

static void settled(struct consumer *c)
{
    if (!acks_settled(c))
        return;
    enum err err = c->ack_err;
    if (!list_empty(&c->waiters))
        c->ack_err = ERR_OK;
    tell_waiters(c, err);
    close_when_settled(c);
}

static void send_acks(struct consumer *c);

/* An answer that never came leaves it open whether the broker took them: they are sent again, which
 * does no harm. */
static void ack_answered(struct link_request *r, enum err err, const char *text,
                         const Pulsar__Proto__BaseCommand *reply)
{
    struct ack_flight *f = container_of(r, struct ack_flight, request);
    struct consumer *c = f->consumer;
    (void)text, (void)reply;
    if (err && err_is_worth_retrying(err)) {
        if (!f->upto)
            acks_put_back(c->acks, f->ids, f->n);
        else if (!c->has_upto) {
            c->has_upto = true;
            c->upto = f->ids[0];
        }
        if (attach_link(&c->attach))
            loop_after(c->client->home, &c->ack_due, ACK_RETRY_US);
    } else if (err) {
        c->ack_err = err;
        log_event(LOG_WARN, "consumer.ack_refused", F_STR("topic", c->topic), F_ERR(err));
    }
    flight_drop(f);
    settled(c);
}

static void send_ack(struct consumer *c, struct link *link, struct message_id *ids, unsigned n,
                     bool upto)
{
    Pulsar__Proto__BaseCommand base = PULSAR__PROTO__BASE_COMMAND__INIT;
    Pulsar__Proto__CommandAck ack = PULSAR__PROTO__COMMAND_ACK__INIT;
    Pulsar__Proto__MessageIdData *data = mem_alloc(n * sizeof *data);
    Pulsar__Proto__MessageIdData **to = mem_alloc(n * sizeof *to);
    struct ack_flight *f = mem_new(struct ack_flight);

    for (unsigned i = 0; i < n; i++) {
        pulsar__proto__message_id_data__init(&data[i]);
        data[i].ledgerid = (uint64_t)ids[i].ledger;
        data[i].entryid = (uint64_t)ids[i].entry;
        to[i] = &data[i];
    }
    base.type = PULSAR__PROTO__BASE_COMMAND__TYPE__ACK;
    base.ack = &ack;
    ack.consumer_id = c->attach.user.id;
    ack.ack_type = upto ? PULSAR__PROTO__COMMAND_ACK__ACK_TYPE__Cumulative
                        : PULSAR__PROTO__COMMAND_ACK__ACK_TYPE__Individual;
    ack.n_message_id = n;
    ack.message_id = to;
    ack.has_request_id = true;
    ack.request_id = link_next_request(&c->client->links);
    *f = (struct ack_flight){.consumer = c, .ids = ids, .n = n, .upto = upto};
    f->request.done = ack_answered;
    list_push_back(&c->flights, &f->node);
    link_call(link, &base, ack.request_id, &f->request);
    mem_free(data);
    mem_free(to);
}

static void send_acks(struct consumer *c)
{
    struct link *link = attach_link(&c->attach);
    unsigned n;
    struct message_id *ids;

    loop_cancel(c->client->home, &c->ack_due);
    if (!link)
        return;
    if (c->has_upto) {
        struct message_id *one = mem_alloc(sizeof *one);
        *one = c->upto;
        c->has_upto = false;
        send_ack(c, link, one, 1, true);
    }
    while ((ids = acks_take(c->acks, ACK_COMMAND_MAX, &n)))
        send_ack(c, link, ids, n, false);
}

static void ack_overdue(struct timer *t)
{
    send_acks(container_of(t, struct consumer, ack_due));
}

static void acks_due(struct consumer *c)
{
    if (c->state == CONSUMER_GONE)
        return;
    if (acks_gathered(c->acks) >= ACK_COMMAND_MAX)
        send_acks(c);
    else if (!timer_armed(&c->ack_due) && (acks_gathered(c->acks) > 0 || c->has_upto))
        loop_after(c->client->home, &c->ack_due, ACK_DELAY_US);
}

void consumer_ack(struct consumer *c, struct message_id id)
{
    acks_one(c->acks, id);
    acks_due(c);
}

static bool is_after(struct message_id a, struct message_id b)
{
    return a.ledger > b.ledger || (a.ledger == b.ledger && a.entry > b.entry);
}

/* Inside a batch whose rest is not acknowledged: all before the entry.  Where that is in another
 * ledger we cannot name it, and the next one will. */
void consumer_ack_upto(struct consumer *c, struct message_id id)
{
    if (!acks_upto(c->acks, id))
        id.entry--;
    if (id.entry >= 0 && (!c->has_upto || is_after(id, c->upto))) {
        c->has_upto = true;
        c->upto = id;
    }
    acks_due(c);
}

void consumer_flush(struct consumer *c, void (*done)(void *ctx, enum err err), void *ctx)
{
    struct flush_waiter *w = mem_new(struct flush_waiter);
    w->done = done;
    w->ctx = ctx;
    list_push_back(&c->waiters, &w->node);
    send_acks(c);
    settled(c);
    if (c->attach.state == ATTACH_ENDED)
        tell_waiters(c, ERR_CLOSED);
}

/* ---- handing out ----------------------------------------------------------------------------- */

static void send_flow(struct consumer *c, unsigned permits)
{
    struct link *link = attach_link(&c->attach);
    Pulsar__Proto__BaseCommand base = PULSAR__PROTO__BASE_COMMAND__INIT;
    Pulsar__Proto__CommandFlow flow = PULSAR__PROTO__COMMAND_FLOW__INIT;
    if (!link || permits == 0)
        return;
    base.type = PULSAR__PROTO__BASE_COMMAND__TYPE__FLOW;
    base.flow = &flow;
    flow.consumer_id = c->attach.user.id;
    flow.messagepermits = permits;
    link_send(link, command_frame(&base));
}

/* No more than there are: what counts a damaged entry's messages may be damaged too. */
static void use_permits(struct consumer *c, unsigned n)
{
    c->used_permits += n < c->conf.queue_size ? n : c->conf.queue_size;
    if (c->used_permits >= (c->conf.queue_size + 1) / 2) {
        send_flow(c, c->used_permits);
        c->used_permits = 0;
    }
}

/* The broker begins again with the entry of which the reader has seen a part. */
static bool was_read(const struct consumer *c, struct message_id id)
{
    return c->conf.reader && id.ledger == c->after.ledger && id.entry == c->after.entry &&
           id.batch_index <= c->after.batch_index;
}

static bool is_last_of(const struct batch_shape *b, struct message_id id)
{
    return b->size == 0 || (unsigned)id.batch_index == b->size - 1;
}

/* An acknowledgement only tells the broker how far the reader is; one an entry will do. */
static void note_read(struct consumer *c, struct message_id id, const struct batch_shape *batch)
{
    c->after = id;
    if (!is_last_of(batch, id) || c->state != CONSUMER_OPEN)
        return;
    c->after.batch_index = -1;
    consumer_ack_upto(c, id);
}

static void hand_out(struct consumer *c, struct inbox_next *next)
{
    struct received *m = &next->message;
    const struct message_id id = m->id;
    const struct batch_shape batch = {.size = next->batch.size};
    if (was_read(c, id)) {
        mem_free(next->chunk_ids);
        return;
    }
    if (next->batch.size > 0)
        acks_expect_batch(c->acks, m->id, &next->batch);
    if (next->chunk_ids)
        acks_expect_pieces(c->acks, m->id, next->chunk_ids, next->n_chunk_ids);
    m->topic = c->topic;
    c->conf.received(c, c->conf.ctx, m);
    if (c->conf.reader)
        note_read(c, id, &batch);
}

static void run_pump(struct task *t);

static void post_pump(struct consumer *c)
{
    if (c->pump_posted || c->state == CONSUMER_GONE)
        return;
    c->pump_posted = true;
    c->pump_task.run = run_pump;
    loop_post(c->client->home, &c->pump_task);
}

static void pump(struct consumer *c)
{
    struct inbox_next next;
    unsigned n = 0;

    c->pumping = true;
    while (c->paused == 0 && c->state == CONSUMER_OPEN) {
        if (++n > PUMP_MAX) {
            post_pump(c);
            break;
        }
        enum inbox_result result = inbox_next(&c->inbox, &next);
        if (result == INBOX_EMPTY)
            break;
        if (result == INBOX_MESSAGE)
            hand_out(c, &next);
        else
            mem_free(next.chunk_ids);
        if (result == INBOX_DAMAGED && c->conf.damaged)
            c->conf.damaged(c, c->conf.ctx, next.message.id, next.err);
        use_permits(c, next.permits);
    }
    c->pumping = false;
}

static void run_pump(struct task *t)
{
    struct consumer *c = container_of(t, struct consumer, pump_task);
    c->pump_posted = false;
    if (!c->pumping)
        pump(c);
}

void consumer_pause(struct consumer *c)
{
    c->paused++;
}

void consumer_resume(struct consumer *c)
{
    assert(c->paused > 0);
    c->paused--;
    post_pump(c);
}

/* ---- attaching ------------------------------------------------------------------------------- */

static void fill_start(Pulsar__Proto__MessageIdData *to, struct message_id after)
{
    pulsar__proto__message_id_data__init(to);
    to->ledgerid = (uint64_t)after.ledger;
    to->entryid = (uint64_t)after.entry;
    to->has_batch_index = after.batch_index >= 0;
    to->batch_index = after.batch_index;
}

static void open_at(struct attach *a, uint64_t request_id)
{
    struct consumer *c = consumer_of(a);
    Pulsar__Proto__BaseCommand base = PULSAR__PROTO__BASE_COMMAND__INIT;
    Pulsar__Proto__CommandSubscribe s = PULSAR__PROTO__COMMAND_SUBSCRIBE__INIT;
    Pulsar__Proto__MessageIdData start;
    base.type = PULSAR__PROTO__BASE_COMMAND__TYPE__SUBSCRIBE;
    base.subscribe = &s;
    s.topic = c->topic;
    s.subscription = c->subscription;
    s.subtype = (Pulsar__Proto__CommandSubscribe__SubType)c->conf.type;
    s.consumer_id = a->user.id;
    s.request_id = request_id;
    s.consumer_name = c->name;
    s.has_initialposition = true;
    s.initialposition = c->conf.earliest
                            ? PULSAR__PROTO__COMMAND_SUBSCRIBE__INITIAL_POSITION__Earliest
                            : PULSAR__PROTO__COMMAND_SUBSCRIBE__INITIAL_POSITION__Latest;
    if (c->conf.reader) {
        fill_start(&start, c->after);
        s.has_durable = true;
        s.durable = false;
        s.start_message_id = &start;
    }
    link_call(a->user.link, &base, request_id, &a->request);
}

static void opened(struct attach *a, const Pulsar__Proto__BaseCommand *reply)
{
    struct consumer *c = consumer_of(a);
    bool first = c->conf.ready != NULL;
    (void)reply;
    c->used_permits = 0;
    send_acks(c);
    send_flow(c, c->conf.queue_size);
    if (first) {
        void (*ready)(struct consumer *, void *) = c->conf.ready;
        c->conf.ready = NULL;
        ready(c, c->conf.ctx);
    }
}

static void command(struct attach *a, const Pulsar__Proto__BaseCommand *cmd, const struct frame *f,
                    struct slice bytes)
{
    struct consumer *c = consumer_of(a);
    (void)f;
    if (cmd->type == PULSAR__PROTO__BASE_COMMAND__TYPE__MESSAGE) {
        if (c->inbox.n_frames / 2 > c->conf.queue_size) {
            attach_out_of_step(a, "many more messages than were asked for");
            return;
        }
        inbox_put(&c->inbox, slice_share(bytes), cmd->message);
        post_pump(c);
    } else if (cmd->type == PULSAR__PROTO__BASE_COMMAND__TYPE__CLOSE_CONSUMER) {
        attach_again(a);
    }
}

/* What was handed out and not acknowledged will come again. */
static void lost(struct attach *a)
{
    struct consumer *c = consumer_of(a);
    inbox_clear(&c->inbox);
    acks_forget_batches(c->acks);
    close_when_settled(c);
}

static void failed(struct attach *a, enum err err, const char *text)
{
    struct consumer *c = consumer_of(a);
    inbox_clear(&c->inbox);
    tell_waiters(c, err);
    if (c->conf.failed && c->state == CONSUMER_OPEN)
        c->conf.failed(c->conf.ctx, err, text);
    close_when_settled(c);
}

static const struct attach_ops attach_ops = {.open = open_at,
                                             .opened = opened,
                                             .abandon = abandon,
                                             .command = command,
                                             .lost = lost,
                                             .failed = failed};

/* Readers of a topic are told apart by it, in different processes too. */
static char *reader_name(void)
{
    return mem_format("reader-%010llx", (unsigned long long)(rng_seed() & 0xffffffffff));
}

struct consumer *consumer_open(struct client *client, const struct consumer_conf *conf)
{
    struct consumer *c = mem_new(struct consumer);
    c->client = client;
    c->conf = *conf;
    c->conf.queue_size = conf->queue_size ? conf->queue_size : QUEUE_SIZE;
    c->topic = mem_string(conf->topic);
    c->subscription = conf->subscription ? mem_string(conf->subscription) : reader_name();
    c->after = conf->after;
    c->name = conf->name ? mem_string(conf->name) : NULL;
    c->acks = acks_new();
    inbox_init(&c->inbox);
    list_init(&c->flights);
    list_init(&c->waiters);
    list_push_back(&client->consumers, &c->node);
    c->ack_due.run = ack_overdue;
    c->close_due.run = close_overdue;
    attach_start(&c->attach, &attach_ops, &client->links, &client->service, c->topic, USER_CONSUMER,
                 client->next_consumer++);
    return c;
}

static void unsubscribe_answered(struct link_request *r, enum err err, const char *text,
                                 const Pulsar__Proto__BaseCommand *reply)
{
    struct consumer *c = container_of(r, struct consumer, end_request);
    (void)text, (void)reply;
    if (!err)
        attach_end(&c->attach); /* subscribing again would make it anew */
    tell_unsubscribed(c, err);
    close_when_settled(c);
}

void consumer_unsubscribe(struct consumer *c, void (*done)(void *ctx, enum err err), void *ctx)
{
    struct link *link = attach_link(&c->attach);
    Pulsar__Proto__BaseCommand base = PULSAR__PROTO__BASE_COMMAND__INIT;
    Pulsar__Proto__CommandUnsubscribe u = PULSAR__PROTO__COMMAND_UNSUBSCRIBE__INIT;
    if (!link || c->end_request.link) {
        if (done)
            done(ctx, ERR_NOT_READY);
        return;
    }
    c->unsubscribed = done;
    c->unsubscribed_ctx = ctx;
    base.type = PULSAR__PROTO__BASE_COMMAND__TYPE__UNSUBSCRIBE;
    base.unsubscribe = &u;
    u.consumer_id = c->attach.user.id;
    u.request_id = link_next_request(&c->client->links);
    c->end_request.done = unsubscribe_answered;
    link_call(link, &base, u.request_id, &c->end_request);
}

void consumer_close(struct consumer **c, void (*done)(void *ctx), void *ctx)
{
    struct consumer *old = *c;
    *c = NULL;
    assert(old->state != CONSUMER_CLOSING);
    old->closed = done;
    old->closed_ctx = ctx;
    if (old->state == CONSUMER_GONE)
        return; /* the client ends it right now */
    old->state = CONSUMER_CLOSING;
    loop_after(old->client->home, &old->close_due, CLOSE_GRACE_US);
    send_acks(old);
    close_when_settled(old);
}

void consumers_end(struct client *c)
{
    while (!list_empty(&c->consumers))
        finish(list_entry(c->consumers.next, struct consumer, node));
}
