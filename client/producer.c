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
    CHUNK_METADATA = 16 * 1024, /* room for the metadata of each piece */
    CLOSE_GRACE_US = 5 * 1000 * 1000,
};

struct producer {
    struct client *client;
    struct producer_conf conf;
    char *topic, *wanted_name, *name;
    struct attach attach;
    uint64_t epoch;
    uint64_t next_sequence;
    struct batch batch;
    struct timer batch_due;
    struct list_node ops; /* not acknowledged, in order; those on the wire come first */
    unsigned pending;     /* messages, those in the batch too */
    size_t pending_bytes;
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
    link_forget(&p->close_request);
    attach_end(&p->attach);
    loop_cancel(home, &p->close_due);
    loop_cancel(home, &p->batch_due);
    loop_cancel(home, &p->send_due);
    batch_drop(&p->batch);
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
    Pulsar__Proto__BaseCommand base = PULSAR__PROTO__BASE_COMMAND__INIT;
    Pulsar__Proto__CommandCloseProducer close = PULSAR__PROTO__COMMAND_CLOSE_PRODUCER__INIT;
    base.type = PULSAR__PROTO__BASE_COMMAND__TYPE__CLOSE_PRODUCER;
    base.close_producer = &close;
    close.producer_id = p->attach.user.id;
    close.request_id = link_next_request(&p->client->links);
    p->close_request.done = close_answered;
    link_call(link, &base, close.request_id, &p->close_request);
    loop_after(p->client->home, &p->close_due, CLOSE_GRACE_US);
}

/* ---- acknowledgements ------------------------------------------------------------------------ */

static void op_done(struct producer *p, struct op *op, enum err err, struct message_id id)
{
    list_remove(&op->node);
    for (unsigned i = 0; i < op->n_sends; i++) {
        struct send *s = op->sends[i];
        p->pending--;
        p->pending_bytes -= s->len;
        id.batch_index = op->highest ? (int32_t)i : -1;
        s->done(s, err, id);
    }
    op_drop(&op);
}

static void fail_all(struct producer *p, enum err err)
{
    struct message_id none = {.ledger = -1, .entry = -1, .partition = -1, .batch_index = -1};
    if (p->batch.n > 0) {
        struct op *last = batch_close(&p->batch, p->name ? p->name : "", COMPRESS_NONE);
        list_push_back(&p->ops, &last->node);
    }
    while (!list_empty(&p->ops))
        op_done(p, op_at(p->ops.next), err, none);
}

static void send_overdue(struct timer *t)
{
    struct producer *p = container_of(t, struct producer, send_due);
    log_event(LOG_WARN, "producer.timed_out", F_STR("topic", p->topic),
              F_U64("pending", p->pending));
    fail_all(p, ERR_TIMEOUT);
    close_when_idle(p);
}

/* Armed while something is pending; any receipt starts it anew. */
static void watch_sends(struct producer *p)
{
    if (!p->conf.send_timeout_us || p->state == PRODUCER_GONE)
        return;
    if (p->pending > 0)
        loop_after(p->client->home, &p->send_due, p->conf.send_timeout_us);
    else
        loop_cancel(p->client->home, &p->send_due);
}

static void on_receipt(struct producer *p, const Pulsar__Proto__CommandSendReceipt *r)
{
    struct op *head = list_empty(&p->ops) ? NULL : op_at(p->ops.next);
    if (!head || r->sequence_id < head->sequence_id)
        return; /* of a send that was resent and acknowledged since */
    if (r->sequence_id > head->sequence_id || !head->on_wire) {
        log_event(LOG_WARN, "producer.out_of_step", F_STR("topic", p->topic),
                  F_U64("expected", head->sequence_id), F_U64("got", r->sequence_id));
        attach_again(&p->attach);
        return;
    }
    struct message_id id = {.ledger = -1, .entry = -1, .partition = -1, .batch_index = -1};
    if (r->message_id) {
        id.ledger = (int64_t)r->message_id->ledgerid;
        id.entry = (int64_t)r->message_id->entryid;
        id.partition = r->message_id->partition;
    }
    op_done(p, head, ERR_OK, id);
    watch_sends(p);
    close_when_idle(p);
}

static void give_up(struct producer *p, enum err err, const char *text)
{
    attach_end(&p->attach);
    fail_all(p, err);
    if (p->conf.failed)
        p->conf.failed(p->conf.ctx, err, text);
    close_when_idle(p);
}

static void on_send_error(struct producer *p, const Pulsar__Proto__CommandSendError *e)
{
    enum err err = server_error_to_err((int)e->error);
    struct message_id none = {.ledger = -1, .entry = -1, .partition = -1, .batch_index = -1};

    log_event(LOG_WARN, "producer.send_refused", F_STR("topic", p->topic),
              F_U64("sequence", e->sequence_id), F_ERR(err), F_STR("text", e->message));
    if (err == ERR_TERMINATED || err == ERR_FENCED) {
        give_up(p, err, e->message);
    } else if (err == ERR_NOT_ALLOWED && !list_empty(&p->ops)) {
        struct op *head = op_at(p->ops.next);
        uint64_t highest = head->highest ? head->highest : head->sequence_id;
        if (e->sequence_id == highest)
            op_done(p, head, err, none); /* this message for good; those behind it go on */
        close_when_idle(p);
    } else {
        attach_again(&p->attach);
    }
}

/* ---- sending --------------------------------------------------------------------------------- */

static void put_on_wire(struct producer *p, struct link *link, struct op *op)
{
    struct chain frame = {0};
    chain_push(&frame, op_front(op, p->attach.user.id));
    chain_push(&frame, slice_share(op->body));
    if (op->was_sent && p->conf.resent)
        for (unsigned i = 0; i < op->n_sends; i++)
            p->conf.resent(p->conf.ctx, op->sends[i]->sequence_id);
    op->on_wire = op->was_sent = true;
    link_send_chain(link, &frame);
}

static void add_op(struct producer *p, struct op *op)
{
    struct link *link = attach_link(&p->attach);
    list_push_back(&p->ops, &op->node);
    if (link)
        put_on_wire(p, link, op);
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

static size_t message_limit(const struct producer *p)
{
    struct link *link = attach_link(&p->attach);
    return link ? link_max_message(link) : MAX_MESSAGE_SIZE;
}

static void gather(struct producer *p, struct send *s)
{
    if (p->batch.len + s->len > p->conf.batch_bytes)
        producer_flush(p);
    batch_put(&p->batch, s);
    if (p->batch.n >= p->conf.batch_max || p->batch.len >= p->conf.batch_bytes)
        producer_flush(p);
    else if (p->batch.n == 1)
        loop_after(p->client->home, &p->batch_due, p->conf.batch_delay_us);
}

static void send_pieces(struct producer *p, const struct op_source *from, size_t limit)
{
    unsigned n;
    struct op **pieces = op_chunks(from, limit, &n);
    for (unsigned i = 0; i < n; i++)
        add_op(p, pieces[i]);
    mem_free(pieces);
}

enum err producer_send(struct producer *p, struct send *s)
{
    if (p->state != PRODUCER_OPEN || p->attach.state == ATTACH_ENDED)
        return ERR_CLOSED;
    if (!p->name)
        return ERR_NOT_READY;
    if (p->pending > 0 &&
        (p->pending >= p->conf.pending_max || p->pending_bytes + s->len > p->conf.pending_bytes))
        return ERR_BUSY;
    size_t limit = message_limit(p) - CHUNK_METADATA;
    if (s->len > limit && !p->conf.chunking && p->conf.compression == COMPRESS_NONE)
        return ERR_TOO_BIG;
    s->sequence_id = p->next_sequence++;
    p->pending++;
    p->pending_bytes += s->len;
    struct op_source from = {.producer_name = p->name,
                             .sequence_id = s->sequence_id,
                             .compression = p->conf.compression,
                             .send = s};
    if (p->conf.batching && s->len < p->conf.batch_bytes) {
        gather(p, s);
    } else {
        producer_flush(p);
        if (s->len > limit && p->conf.chunking)
            send_pieces(p, &from, limit);
        else
            add_op(p, op_single(&from));
    }
    if (p->pending == 1)
        watch_sends(p);
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
    if (first) {
        p->name = mem_string(s->producer_name);
        p->next_sequence = (uint64_t)(s->last_sequence_id + 1);
    }
    list_each(&p->ops, node)
    {
        op_at(node)->on_wire = false;
        put_on_wire(p, a->user.link, op_at(node));
    }
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
    list_each(&p->ops, node) op_at(node)->on_wire = false;
    close_when_idle(p);
}

static void failed(struct attach *a, enum err err, const char *text)
{
    give_up(producer_of(a), err, text);
}

static const struct attach_ops attach_ops = {
    .open = open_at, .opened = opened, .command = command, .lost = lost, .failed = failed};

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
    list_init(&p->ops);
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
    assert(old->state == PRODUCER_OPEN);
    old->state = PRODUCER_CLOSING;
    old->closed = done;
    old->closed_ctx = ctx;
    if (old->attach.state != ATTACH_ENDED)
        producer_flush(old);
    close_when_idle(old);
}
