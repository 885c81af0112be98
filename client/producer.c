#include <assert.h>
#include <string.h>

#include "client/attach.h"
#include "client/client_private.h"
#include "client/producer_ops.h"
#include "client/server_error.h"
#include "common/log.h"
#include "common/mem.h"

enum {
    BATCH_MAX = 1000,
    BATCH_BYTES = 128 * 1024,
    BATCH_DELAY_US = 1000,
    PENDING_MAX = 1000,
    PENDING_BYTES = 64 * 1024 * 1024,
    BATCH_PART = 3, /* of the broker's limit: the batch's own metadata has the key again */
    CLOSE_GRACE_US = 5 * 1000 * 1000,
};

struct producer {
    struct client *client;
    struct list_node node; /* in the client's */
    struct producer_conf conf;
    char *topic, *wanted_name, *name;
    struct attach attach;
    uint64_t epoch;
    uint64_t next_sequence;
    struct batch batch;
    struct timer batch_due;
    struct list_node ops; /* not acknowledged, in order; attached: all are on the wire */
    unsigned pending;     /* messages, those in the batch too */
    size_t ops_bytes;
    size_t max_message; /* of the broker that had us last */
    struct timer send_due;
    enum { PRODUCER_OPEN, PRODUCER_CLOSING, PRODUCER_GONE } state;
    struct link_request close_request;
    void (*closed)(void *ctx);
    void *closed_ctx;
    struct timer close_due;
    struct task free_task;
};

static struct producer *producer_of(struct attach *a)
{
    return container_of(a, struct producer, attach);
}

static struct op *op_at(struct list_node *node)
{
    return list_entry(node, struct op, node);
}

/* ---- the end --------------------------------------------------------------------------------- */

static void run_free(struct task *t)
{
    struct producer *p = container_of(t, struct producer, free_task);
    if (p->closed)
        p->closed(p->closed_ctx);
    batch_drop(&p->batch);
    mem_free(p->topic);
    mem_free(p->wanted_name);
    mem_free(p->name);
    mem_free(p);
}

static void finish(struct producer *p)
{
    struct loop *home = p->client->home;
    if (p->state == PRODUCER_GONE)
        return;
    p->state = PRODUCER_GONE;
    list_remove(&p->node);
    link_forget(&p->close_request);
    attach_end(&p->attach);
    loop_cancel(home, &p->close_due);
    loop_cancel(home, &p->batch_due);
    loop_cancel(home, &p->send_due);
    p->free_task.run = run_free;
    loop_post(home, &p->free_task);
}

static void close_answered(struct link_request *r, enum err err, const char *text,
                           const Pulsar__Proto__BaseCommand *reply)
{
    (void)err, (void)text, (void)reply; /* gone either way */
    finish(container_of(r, struct producer, close_request));
}

static void close_overdue(struct timer *t)
{
    finish(container_of(t, struct producer, close_due));
}

/* request NULL: nobody waits for the answer. */
static void call_close(struct producer *p, struct link *link, uint64_t id,
                       struct link_request *request)
{
    Pulsar__Proto__BaseCommand base = PULSAR__PROTO__BASE_COMMAND__INIT;
    Pulsar__Proto__CommandCloseProducer close = PULSAR__PROTO__COMMAND_CLOSE_PRODUCER__INIT;
    base.type = PULSAR__PROTO__BASE_COMMAND__TYPE__CLOSE_PRODUCER;
    base.close_producer = &close;
    close.producer_id = p->attach.user.id;
    close.request_id = id;
    if (request)
        link_call(link, &base, id, request);
    else
        link_send(link, command_frame(&base));
}

/* Closes at the broker once nothing is pending. */
static void close_when_idle(struct producer *p)
{
    if (p->state != PRODUCER_CLOSING || p->pending > 0 || p->close_request.link)
        return;
    struct link *link = attach_link(&p->attach);
    if (!link) {
        finish(p);
        return;
    }
    uint64_t id = link_next_request(&p->client->links);
    p->close_request.done = close_answered;
    call_close(p, link, id, &p->close_request);
    loop_after(p->client->home, &p->close_due, CLOSE_GRACE_US);
}

/* ---- acknowledgements ------------------------------------------------------------------------ */

static const struct message_id nowhere = {
    .ledger = -1, .entry = -1, .partition = -1, .batch_index = -1};

static void tell_sends(struct producer *p, const struct op *op, enum err err, struct message_id id)
{
    for (unsigned i = 0; i < op->n_sends; i++) {
        p->pending--;
        if (op->is_batch && !err)
            id.batch_index = (int32_t)i;
        op->sends[i]->done(op->sends[i], err, id);
    }
}

/* The message or batch in front is over: a large one with all its pieces. */
static void front_done(struct producer *p, enum err err, struct message_id id)
{
    bool last = false;
    while (!last) {
        struct op *op = op_at(list_pop_front(&p->ops));
        p->ops_bytes -= op->body.len;
        last = op->n_sends > 0;
        tell_sends(p, op, err, id);
        op_drop(&op);
    }
}

/* The one whose answer comes next. */
static struct op *unanswered(struct producer *p)
{
    list_each(&p->ops, node) if (!op_at(node)->acked) return op_at(node);
    return NULL;
}

static void keep_op(struct producer *p, struct op *op)
{
    op->since_us = loop_now(p->client->home);
    p->ops_bytes += op->body.len;
    list_push_back(&p->ops, &op->node);
}

static void fail_all(struct producer *p, enum err err)
{
    loop_cancel(p->client->home, &p->batch_due);
    if (p->batch.n > 0)
        keep_op(p, batch_close(&p->batch, p->name, COMPRESS_NONE));
    while (!list_empty(&p->ops))
        front_done(p, err, nowhere);
}

/* Armed while something is pending, for what is in front. */
static void watch_sends(struct producer *p)
{
    if (!p->conf.send_timeout_us || list_empty(&p->ops) || timer_armed(&p->send_due))
        return;
    uint64_t due = op_at(p->ops.next)->since_us + p->conf.send_timeout_us;
    uint64_t now = loop_now(p->client->home);
    loop_after(p->client->home, &p->send_due, due > now ? due - now : 0);
}

static bool front_is_overdue(const struct producer *p)
{
    return !list_empty(&p->ops) &&
           op_at(p->ops.next)->since_us + p->conf.send_timeout_us <= loop_now(p->client->home);
}

static void send_overdue(struct timer *t)
{
    struct producer *p = container_of(t, struct producer, send_due);
    while (front_is_overdue(p))
        front_done(p, ERR_TIMEOUT, nowhere);
    if (p->state != PRODUCER_GONE)
        watch_sends(p);
    close_when_idle(p);
}

static void on_receipt(struct producer *p, const Pulsar__Proto__CommandSendReceipt *r)
{
    struct op *op = unanswered(p);
    if (!op || r->sequence_id < op->sequence_id)
        return; /* of a send that was given up, or resent and acknowledged since */
    if (r->sequence_id > op->sequence_id) {
        log_event(LOG_WARN, "producer.out_of_step", F_STR("topic", p->topic),
                  F_U64("expected", op->sequence_id), F_U64("got", r->sequence_id));
        attach_out_of_step(&p->attach, "a receipt for a later message than the next");
        return;
    }
    struct message_id id = nowhere;
    if (r->message_id) {
        id.ledger = (int64_t)r->message_id->ledgerid;
        id.entry = (int64_t)r->message_id->entryid;
        id.partition = r->message_id->partition;
    }
    op->acked = true;
    if (op->n_sends > 0)
        front_done(p, ERR_OK, id);
    close_when_idle(p);
}

static void give_up(struct producer *p, enum err err, const char *text)
{
    attach_end(&p->attach);
    fail_all(p, err);
    if (p->conf.failed && p->state == PRODUCER_OPEN)
        p->conf.failed(p->conf.ctx, err, text);
    close_when_idle(p);
}

static void abandon(struct attach *a, struct link *link)
{
    struct producer *p = producer_of(a);
    call_close(p, link, link_next_request(&p->client->links), NULL);
}

/* Not allowed: this message for good, those behind it go on.  Everything else may pass: all of it
 * is sent again, over a new connection. */
static void on_send_error(struct producer *p, const Pulsar__Proto__CommandSendError *e)
{
    enum err err = server_error_to_err((int)e->error);
    const struct op *op = unanswered(p);

    log_event(LOG_WARN, "producer.send_refused", F_STR("topic", p->topic),
              F_U64("sequence", e->sequence_id), F_ERR(err), F_STR("text", e->message));
    if (err == ERR_TERMINATED || err == ERR_FENCED) {
        abandon(&p->attach, p->attach.user.link);
        give_up(p, err, e->message);
    } else if (e->error != PULSAR__PROTO__SERVER_ERROR__NotAllowedError) {
        attach_out_of_step(&p->attach, e->message);
    } else if (op && (e->sequence_id == op->sequence_id || e->sequence_id == op->highest)) {
        front_done(p, err, nowhere);
        close_when_idle(p);
    } else if (op && e->sequence_id > op->highest) {
        attach_out_of_step(&p->attach, "a refusal of a later message than the next");
    }
}

/* ---- sending --------------------------------------------------------------------------------- */

static void put_on_wire(struct producer *p, struct link *link, struct op *op)
{
    struct chain frame = {0};
    chain_push(&frame, op_front(op, p->attach.user.id));
    chain_push(&frame, slice_share(op->body));
    op->was_sent = true;
    link_send_chain(link, &frame);
}

static void add_op(struct producer *p, struct op *op)
{
    struct link *link = attach_link(&p->attach);
    keep_op(p, op);
    if (link)
        put_on_wire(p, link, op);
    watch_sends(p);
}

/* All of it is told before any of it goes out: who keeps a log has it before the broker can have a
 * message twice. */
static void send_all_again(struct producer *p)
{
    list_each(&p->ops, node)
    {
        const struct op *op = op_at(node);
        for (unsigned i = 0; i < op->n_sends && op->was_sent && p->conf.resent; i++)
            p->conf.resent(p->conf.ctx, op->sends[i]->sequence_id);
    }
    list_each(&p->ops, node) put_on_wire(p, p->attach.user.link, op_at(node));
}

void producer_flush(struct producer *p)
{
    if (p->batch.n == 0)
        return;
    loop_cancel(p->client->home, &p->batch_due);
    add_op(p, batch_close(&p->batch, p->name, p->conf.compression));
}

static void batch_overdue(struct timer *t)
{
    producer_flush(container_of(t, struct producer, batch_due));
}

static size_t batch_limit(const struct producer *p)
{
    size_t most = p->max_message / BATCH_PART;
    return p->conf.batch_bytes < most ? p->conf.batch_bytes : most;
}

static void gather(struct producer *p, struct send *s, size_t cost)
{
    if (p->batch.len + cost > batch_limit(p) || !batch_suits(&p->batch, s))
        producer_flush(p);
    batch_put(&p->batch, s);
    if (p->batch.n >= p->conf.batch_max)
        producer_flush(p);
    else if (p->batch.n == 1)
        loop_after(p->client->home, &p->batch_due, p->conf.batch_delay_us);
}

static enum err send_alone(struct producer *p, struct send *s)
{
    const struct op_source from = {.producer_name = p->name,
                                   .sequence_id = s->sequence_id,
                                   .compression = p->conf.compression,
                                   .send = s};
    unsigned n;
    struct op **ops = op_build(&from, p->max_message, p->conf.chunking, &n);
    if (!ops)
        return ERR_TOO_BIG;
    producer_flush(p);
    for (unsigned i = 0; i < n; i++)
        add_op(p, ops[i]);
    mem_free(ops);
    return ERR_OK;
}

static bool is_full(const struct producer *p, size_t more)
{
    return p->pending > 0 && (p->pending >= p->conf.pending_max ||
                              p->ops_bytes + p->batch.len + more > p->conf.pending_bytes);
}

enum err producer_send(struct producer *p, struct send *s)
{
    if (p->state != PRODUCER_OPEN || p->attach.state == ATTACH_ENDED)
        return ERR_CLOSED;
    if (!p->name)
        return ERR_NOT_READY;
    if (s->len > INT32_MAX)
        return ERR_TOO_BIG;
    if (is_full(p, s->len))
        return ERR_BUSY;
    s->sequence_id = p->next_sequence;
    size_t cost = batch_cost(s);
    if (p->conf.batching && cost <= batch_limit(p))
        gather(p, s, cost);
    else
        TRY(send_alone(p, s));
    p->next_sequence++;
    p->pending++;
    return ERR_OK;
}

/* ---- attaching ------------------------------------------------------------------------------- */

static void open_at(struct attach *a, uint64_t request_id)
{
    struct producer *p = producer_of(a);
    Pulsar__Proto__BaseCommand base = PULSAR__PROTO__BASE_COMMAND__INIT;
    Pulsar__Proto__CommandProducer cmd = PULSAR__PROTO__COMMAND_PRODUCER__INIT;
    base.type = PULSAR__PROTO__BASE_COMMAND__TYPE__PRODUCER;
    base.producer = &cmd;
    cmd.topic = p->topic;
    cmd.producer_id = a->user.id;
    cmd.request_id = request_id;
    cmd.producer_name = p->name ? p->name : p->wanted_name;
    cmd.has_user_provided_producer_name = true;
    cmd.user_provided_producer_name = p->wanted_name != NULL;
    cmd.has_epoch = true;
    cmd.epoch = p->epoch++;
    link_call(a->user.link, &base, request_id, &a->request);
}

static void opened(struct attach *a, const Pulsar__Proto__BaseCommand *reply)
{
    struct producer *p = producer_of(a);
    const Pulsar__Proto__CommandProducerSuccess *s = reply->producer_success;
    bool first = !p->name;
    p->max_message = link_max_message(a->user.link);
    if (first) {
        p->name = mem_string(s->producer_name);
        p->next_sequence = (uint64_t)(s->last_sequence_id + 1);
    }
    send_all_again(p);
    if (first && p->conf.ready)
        p->conf.ready(p, p->conf.ctx);
    close_when_idle(p);
}

static void command(struct attach *a, const Pulsar__Proto__BaseCommand *cmd, const struct frame *f,
                    struct slice bytes)
{
    struct producer *p = producer_of(a);
    (void)f, (void)bytes;
    if (cmd->type == PULSAR__PROTO__BASE_COMMAND__TYPE__SEND_RECEIPT)
        on_receipt(p, cmd->send_receipt);
    else if (cmd->type == PULSAR__PROTO__BASE_COMMAND__TYPE__SEND_ERROR)
        on_send_error(p, cmd->send_error);
    else if (cmd->type == PULSAR__PROTO__BASE_COMMAND__TYPE__CLOSE_PRODUCER)
        attach_again(a);
}

static void lost(struct attach *a)
{
    struct producer *p = producer_of(a);
    list_each(&p->ops, node) op_at(node)->acked = false;
    close_when_idle(p);
}

static void failed(struct attach *a, enum err err, const char *text)
{
    give_up(producer_of(a), err, text);
}

static const struct attach_ops attach_ops = {.open = open_at,
                                             .opened = opened,
                                             .abandon = abandon,
                                             .command = command,
                                             .lost = lost,
                                             .failed = failed};

static void fill_defaults(struct producer_conf *c)
{
    c->batch_max = c->batch_max ? c->batch_max : BATCH_MAX;
    c->batch_bytes = c->batch_bytes ? c->batch_bytes : BATCH_BYTES;
    c->batch_delay_us = c->batch_delay_us ? c->batch_delay_us : BATCH_DELAY_US;
    c->pending_max = c->pending_max ? c->pending_max : PENDING_MAX;
    c->pending_bytes = c->pending_bytes ? c->pending_bytes : PENDING_BYTES;
}

struct producer *producer_open(struct client *c, const struct producer_conf *conf)
{
    struct producer *p = mem_new(struct producer);
    p->client = c;
    p->conf = *conf;
    fill_defaults(&p->conf);
    p->topic = mem_string(conf->topic);
    p->wanted_name = conf->name ? mem_string(conf->name) : NULL;
    p->max_message = MAX_MESSAGE_SIZE;
    list_init(&p->ops);
    list_push_back(&c->producers, &p->node);
    p->batch_due.run = batch_overdue;
    p->send_due.run = send_overdue;
    p->close_due.run = close_overdue;
    attach_start(&p->attach, &attach_ops, &c->links, &c->service, p->topic, USER_PRODUCER,
                 c->next_producer++);
    return p;
}

unsigned producer_pending(const struct producer *p)
{
    return p->pending;
}

const char *producer_name(const struct producer *p)
{
    return p->name ? p->name : "";
}

void producer_close(struct producer **p, void (*done)(void *ctx), void *ctx)
{
    struct producer *old = *p;
    *p = NULL;
    assert(old->state != PRODUCER_CLOSING);
    old->closed = done;
    old->closed_ctx = ctx;
    if (old->state == PRODUCER_GONE)
        return; /* the client ends it right now */
    old->state = PRODUCER_CLOSING;
    if (old->attach.state != ATTACH_ENDED)
        producer_flush(old);
    close_when_idle(old);
}

void producers_end(struct client *c)
{
    while (!list_empty(&c->producers)) {
        struct producer *p = list_entry(c->producers.next, struct producer, node);
        finish(p);
        fail_all(p, ERR_CLOSED);
    }
}
