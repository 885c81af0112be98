#include "tests/unit/client/fake_broker.h"

#include <assert.h>
#include <stdio.h>
#include <string.h>

#include "common/arena.h"
#include "common/conn.h"
#include "common/list.h"
#include "common/listener.h"
#include "common/mem.h"
#include "common/metric.h"
#include "proto/command.h"
#include "proto/frame.h"
#include "proto/message.h"

enum { TRICKS_MAX = 16, ARENA = 16 << 20, FRAME_MOST = 64 << 20 };

struct guest {
    struct list_node node;
    struct fake_broker *broker;
    struct conn *conn;
};

struct fake_broker {
    struct loop *loop;
    struct listener *listener;
    struct list_node guests; /* the newest last */
    struct arena *arena;
    struct text told;
    struct trick tricks[TRICKS_MAX];
    unsigned n_tricks;
    int max_message;
    int64_t entries;
    unsigned partitions;
};

static Pulsar__Proto__BaseCommand command_of(int type)
{
    Pulsar__Proto__BaseCommand c = PULSAR__PROTO__BASE_COMMAND__INIT;
    c.type = (Pulsar__Proto__BaseCommand__Type)type;
    return c;
}

static void say(struct guest *g, const Pulsar__Proto__BaseCommand *c)
{
    if (g->conn)
        conn_send(g->conn, command_frame(c));
}

/* ---- what it was told ------------------------------------------------------------------------ */

static void note_send(struct text *t, const Pulsar__Proto__CommandSend *s, const struct frame *f)
{
    struct message_peek m;
    enum err err = message_peek(f->metadata, &m);
    assert(err == ERR_OK && frame_check(f) == ERR_OK);
    text_add(t, "SEND %d #%d", (int)s->producer_id, (int)s->sequence_id);
    if (m.is_batch)
        text_add(t, "-%d batch", (int)s->highest_sequence_id);
    else if (m.num_chunks > 1)
        text_add(t, " piece %d/%d", m.chunk_id + 1, m.num_chunks);
    else
        text_add(t, " '%.*s'", f->payload.len < 40 ? (int)f->payload.len : 3,
                 (const char *)f->payload.base);
    text_add(t, "\n");
}

static void note_ack(struct text *t, const Pulsar__Proto__CommandAck *a)
{
    text_add(t, "ACK %d", (int)a->consumer_id);
    if (a->ack_type == PULSAR__PROTO__COMMAND_ACK__ACK_TYPE__Cumulative)
        text_add(t, " upto");
    for (size_t i = 0; i < a->n_message_id; i++)
        text_add(t, " %d:%d", (int)a->message_id[i]->ledgerid, (int)a->message_id[i]->entryid);
    text_add(t, "\n");
}

static void note_subscribe(struct text *t, const Pulsar__Proto__CommandSubscribe *s)
{
    const Pulsar__Proto__MessageIdData *m = s->start_message_id;
    text_add(t, "SUBSCRIBE %d", (int)s->consumer_id);
    if (m)
        text_add(t, " after %lld:%lld/%d", (long long)m->ledgerid, (long long)m->entryid,
                 m->has_batch_index ? m->batch_index : -1);
    if (!s->durable)
        text_add(t, " for now");
    text_add(t, "\n");
}

static void note(struct text *t, const Pulsar__Proto__BaseCommand *c, const struct frame *f)
{
    switch (c->type) {
    case CMD(PARTITIONED_METADATA):
        text_add(t, "PARTITIONS %s\n", c->partitionmetadata->topic);
        break;
    case CMD(LOOKUP):
        text_add(t, "LOOKUP %s%s\n", c->lookuptopic->topic,
                 c->lookuptopic->authoritative ? " authoritative" : "");
        break;
    case CMD(PRODUCER):
        text_add(t, "PRODUCER %d\n", (int)c->producer->producer_id);
        break;
    case CMD(SEND):
        note_send(t, c->send, f);
        break;
    case CMD(SUBSCRIBE):
        note_subscribe(t, c->subscribe);
        break;
    case CMD(FLOW):
        text_add(t, "FLOW %d %d\n", (int)c->flow->consumer_id, (int)c->flow->messagepermits);
        break;
    case CMD(ACK):
        note_ack(t, c->ack);
        break;
    case CMD(CLOSE_PRODUCER):
        text_add(t, "CLOSE_PRODUCER %d\n", (int)c->close_producer->producer_id);
        break;
    case CMD(CLOSE_CONSUMER):
        text_add(t, "CLOSE_CONSUMER %d\n", (int)c->close_consumer->consumer_id);
        break;
    default:
        text_add(t, "%s\n", command_name((int)c->type));
    }
}

const char *fake_broker_told(const struct fake_broker *b)
{
    return b->told.at ? b->told.at : "";
}

unsigned fake_broker_count(const struct fake_broker *b, const char *front)
{
    unsigned n = 0;
    for (const char *at = fake_broker_told(b); *at; at = strchr(at, '\n') + 1)
        n += strncmp(at, front, strlen(front)) == 0;
    return n;
}

void fake_broker_forget(struct fake_broker *b)
{
    text_drop(&b->told);
}

/* ---- answering ------------------------------------------------------------------------------- */

static void connected(struct guest *g)
{
    Pulsar__Proto__BaseCommand c = command_of(CMD(CONNECTED));
    Pulsar__Proto__CommandConnected m = PULSAR__PROTO__COMMAND_CONNECTED__INIT;
    char version[] = "fake";
    c.connected = &m;
    m.server_version = version;
    m.has_max_message_size = g->broker->max_message > 0;
    m.max_message_size = g->broker->max_message;
    say(g, &c);
}

static void look_up(struct guest *g, uint64_t request, bool redirect, uint16_t port, int error)
{
    Pulsar__Proto__BaseCommand c = command_of(CMD(LOOKUP_RESPONSE));
    Pulsar__Proto__CommandLookupTopicResponse m =
        PULSAR__PROTO__COMMAND_LOOKUP_TOPIC_RESPONSE__INIT;
    char url[64], text[] = "lookup failed";
    snprintf(url, sizeof url, "pulsar://127.0.0.1:%u", port);
    c.lookuptopicresponse = &m;
    m.request_id = request;
    m.has_response = m.has_authoritative = true;
    if (port) {
        m.brokerserviceurl = url;
        m.authoritative = redirect;
        m.response = redirect ? PULSAR__PROTO__COMMAND_LOOKUP_TOPIC_RESPONSE__LOOKUP_TYPE__Redirect
                              : PULSAR__PROTO__COMMAND_LOOKUP_TOPIC_RESPONSE__LOOKUP_TYPE__Connect;
    } else {
        m.response = PULSAR__PROTO__COMMAND_LOOKUP_TOPIC_RESPONSE__LOOKUP_TYPE__Failed;
        m.has_error = true;
        m.error = (Pulsar__Proto__ServerError)error;
        m.message = text;
    }
    say(g, &c);
}

static void partitions(struct guest *g, uint64_t request, int code)
{
    Pulsar__Proto__BaseCommand c = command_of(CMD(PARTITIONED_METADATA_RESPONSE));
    Pulsar__Proto__CommandPartitionedTopicMetadataResponse m =
        PULSAR__PROTO__COMMAND_PARTITIONED_TOPIC_METADATA_RESPONSE__INIT;
    char text[] = "so it was asked for";
    c.partitionmetadataresponse = &m;
    m.request_id = request;
    m.has_response = true;
    m.has_partitions = code < 0;
    m.partitions = g->broker->partitions;
    m.has_error = code >= 0;
    m.error = (Pulsar__Proto__ServerError)(code >= 0 ? code : 0);
    m.message = code >= 0 ? text : NULL;
    say(g, &c);
}

static void success(struct guest *g, uint64_t request)
{
    Pulsar__Proto__BaseCommand c = command_of(CMD(SUCCESS));
    Pulsar__Proto__CommandSuccess m = PULSAR__PROTO__COMMAND_SUCCESS__INIT;
    c.success = &m;
    m.request_id = request;
    say(g, &c);
}

static void error(struct guest *g, uint64_t request, int code)
{
    Pulsar__Proto__BaseCommand c = command_of(CMD(ERROR));
    Pulsar__Proto__CommandError m = PULSAR__PROTO__COMMAND_ERROR__INIT;
    char text[] = "so it was asked for";
    c.error = &m;
    m.request_id = request;
    m.error = (Pulsar__Proto__ServerError)code;
    m.message = text;
    say(g, &c);
}

static void producer_success(struct guest *g, uint64_t request)
{
    Pulsar__Proto__BaseCommand c = command_of(CMD(PRODUCER_SUCCESS));
    Pulsar__Proto__CommandProducerSuccess m = PULSAR__PROTO__COMMAND_PRODUCER_SUCCESS__INIT;
    char name[] = "fake-0";
    c.producer_success = &m;
    m.request_id = request;
    m.producer_name = name;
    m.has_last_sequence_id = true;
    m.last_sequence_id = -1;
    say(g, &c);
}

static void receipt(struct guest *g, uint64_t producer, uint64_t sequence)
{
    Pulsar__Proto__BaseCommand c = command_of(CMD(SEND_RECEIPT));
    Pulsar__Proto__CommandSendReceipt m = PULSAR__PROTO__COMMAND_SEND_RECEIPT__INIT;
    Pulsar__Proto__MessageIdData id = PULSAR__PROTO__MESSAGE_ID_DATA__INIT;
    c.send_receipt = &m;
    m.producer_id = producer;
    m.sequence_id = sequence;
    m.message_id = &id;
    id.ledgerid = 1;
    id.entryid = (uint64_t)g->broker->entries++;
    say(g, &c);
}

static void send_error(struct guest *g, const Pulsar__Proto__CommandSend *s, int code)
{
    Pulsar__Proto__BaseCommand c = command_of(CMD(SEND_ERROR));
    Pulsar__Proto__CommandSendError m = PULSAR__PROTO__COMMAND_SEND_ERROR__INIT;
    char text[] = "so it was asked for";
    c.send_error = &m;
    m.producer_id = s->producer_id;
    m.sequence_id = s->has_highest_sequence_id ? s->highest_sequence_id : s->sequence_id;
    m.error = (Pulsar__Proto__ServerError)code;
    m.message = text;
    say(g, &c);
}

static void ack_response(struct guest *g, const Pulsar__Proto__CommandAck *a, int code)
{
    Pulsar__Proto__BaseCommand c = command_of(CMD(ACK_RESPONSE));
    Pulsar__Proto__CommandAckResponse m = PULSAR__PROTO__COMMAND_ACK_RESPONSE__INIT;
    c.ackresponse = &m;
    m.consumer_id = a->consumer_id;
    m.has_request_id = true;
    m.request_id = a->request_id;
    m.has_error = code >= 0;
    m.error = (Pulsar__Proto__ServerError)(code >= 0 ? code : 0);
    say(g, &c);
}

static uint64_t request_of(const Pulsar__Proto__BaseCommand *c)
{
    switch (c->type) {
    case CMD(LOOKUP):
        return c->lookuptopic->request_id;
    case CMD(PARTITIONED_METADATA):
        return c->partitionmetadata->request_id;
    case CMD(PRODUCER):
        return c->producer->request_id;
    case CMD(SUBSCRIBE):
        return c->subscribe->request_id;
    case CMD(UNSUBSCRIBE):
        return c->unsubscribe->request_id;
    case CMD(CLOSE_PRODUCER):
        return c->close_producer->request_id;
    case CMD(CLOSE_CONSUMER):
        return c->close_consumer->request_id;
    case CMD(ACK):
        return c->ack->request_id;
    default:
        return UINT64_MAX;
    }
}

static void answer_well(struct guest *g, const Pulsar__Proto__BaseCommand *c)
{
    Pulsar__Proto__BaseCommand pong = command_of(CMD(PONG));
    Pulsar__Proto__CommandPong empty = PULSAR__PROTO__COMMAND_PONG__INIT;
    switch (c->type) {
    case CMD(CONNECT):
        connected(g);
        break;
    case CMD(LOOKUP):
        look_up(g, c->lookuptopic->request_id, false, fake_broker_port(g->broker), 0);
        break;
    case CMD(PARTITIONED_METADATA):
        partitions(g, c->partitionmetadata->request_id, -1);
        break;
    case CMD(PRODUCER):
        producer_success(g, c->producer->request_id);
        break;
    case CMD(SEND):
        receipt(g, c->send->producer_id, c->send->sequence_id);
        break;
    case CMD(ACK):
        ack_response(g, c->ack, -1);
        break;
    case CMD(PING):
        pong.pong = &empty;
        say(g, &pong);
        break;
    case CMD(SUBSCRIBE):
    case CMD(UNSUBSCRIBE):
    case CMD(CLOSE_PRODUCER):
    case CMD(CLOSE_CONSUMER):
        success(g, request_of(c));
        break;
    default:
        break;
    }
}

static void refuse(struct guest *g, const Pulsar__Proto__BaseCommand *c, int code)
{
    if (c->type == CMD(SEND))
        send_error(g, c->send, code);
    else if (c->type == CMD(ACK))
        ack_response(g, c->ack, code);
    else if (c->type == CMD(LOOKUP))
        look_up(g, c->lookuptopic->request_id, false, 0, code);
    else if (c->type == CMD(PARTITIONED_METADATA))
        partitions(g, c->partitionmetadata->request_id, code);
    else
        error(g, request_of(c), code);
}

/* ---- tricks ---------------------------------------------------------------------------------- */

static void leave(struct guest *g)
{
    list_remove(&g->node);
    mem_free(g);
}

static void cut(struct guest *g)
{
    conn_finish(&g->conn);
    leave(g);
}

static void do_trick(struct guest *g, const Pulsar__Proto__BaseCommand *c, const struct trick *t)
{
    static const char noise[] = "\0\0\0\x10 this is no command";
    switch (t->how) {
    case TRICK_MUTE:
        break;
    case TRICK_CUT:
        cut(g);
        break;
    case TRICK_TAKE_AND_CUT:
        g->broker->entries += c->type == CMD(SEND);
        cut(g);
        break;
    case TRICK_ERROR:
        refuse(g, c, t->code);
        break;
    case TRICK_REDIRECT:
        look_up(g, c->lookuptopic->request_id, true, t->port, 0);
        break;
    case TRICK_LATER:
        receipt(g, c->send->producer_id, c->send->sequence_id + 1);
        break;
    case TRICK_GARBAGE:
        conn_send(g->conn, slice_copy(noise, sizeof noise));
        break;
    case TRICK_WRONG_KIND:
        success(g, request_of(c));
        break;
    }
}

static bool tricked(struct guest *g, const Pulsar__Proto__BaseCommand *c)
{
    struct fake_broker *b = g->broker;
    for (unsigned i = 0; i < b->n_tricks; i++) {
        struct trick *t = &b->tricks[i];
        if (t->on != (int)c->type)
            continue;
        if (t->after > 0) {
            t->after--;
            return false;
        }
        struct trick now = *t;
        if (--t->times == 0) {
            b->n_tricks--;
            memmove(t, t + 1, (b->n_tricks - i) * sizeof *t);
        }
        do_trick(g, c, &now);
        return true;
    }
    return false;
}

void fake_broker_partition(struct fake_broker *b, unsigned n)
{
    b->partitions = n;
}

void fake_broker_trick(struct fake_broker *b, struct trick t)
{
    assert(b->n_tricks < TRICKS_MAX);
    t.times = t.times ? t.times : 1;
    b->tricks[b->n_tricks++] = t;
}

void fake_broker_untrick(struct fake_broker *b)
{
    b->n_tricks = 0;
}

/* ---- connections ----------------------------------------------------------------------------- */

static void on_frame(void *ctx, struct slice bytes)
{
    struct guest *g = ctx;
    struct fake_broker *b = g->broker;
    struct frame f;
    Pulsar__Proto__BaseCommand *c;
    enum err err = frame_split(slice_view(bytes), &f);
    if (!err)
        err = command_read(f.command, b->arena, &c);
    assert(err == ERR_OK);
    note(&b->told, c, &f);
    if (!tricked(g, c))
        answer_well(g, c);
    arena_reset(b->arena);
    slice_drop(&bytes);
}

static void on_closed(void *ctx, enum err why)
{
    (void)why;
    leave(ctx);
}

static const struct conn_handler handler = {.frame = on_frame, .closed = on_closed};

static void accepted(void *ctx, int fd)
{
    struct fake_broker *b = ctx;
    const struct conn_conf conf = {.frame_max = FRAME_MOST};
    struct guest *g = mem_new(struct guest);
    g->broker = b;
    list_push_back(&b->guests, &g->node);
    g->conn = conn_accepted(b->loop, fd, &conf, &handler, g);
}

struct fake_broker *fake_broker_new(struct loop *l, int max_message)
{
    struct fake_broker *b = mem_new(struct fake_broker);
    b->loop = l;
    b->max_message = max_message;
    b->arena = arena_new(ARENA);
    list_init(&b->guests);
    enum err err = listener_open(&b->listener, l, "127.0.0.1", 0, accepted, b);
    assert(err == ERR_OK);
    return b;
}

uint16_t fake_broker_port(const struct fake_broker *b)
{
    return listener_port(b->listener);
}

void fake_broker_cut(struct fake_broker *b)
{
    list_each(&b->guests, node) cut(list_entry(node, struct guest, node));
}

void fake_broker_drop(struct fake_broker **bp)
{
    struct fake_broker *b = *bp;
    *bp = NULL;
    fake_broker_cut(b);
    listener_close(&b->listener);
    arena_drop(&b->arena);
    text_drop(&b->told);
    mem_free(b);
}

/* ---- of its own accord ----------------------------------------------------------------------- */

static struct guest *newest(struct fake_broker *b)
{
    assert(!list_empty(&b->guests));
    return list_entry(b->guests.prev, struct guest, node);
}

void fake_broker_say(struct fake_broker *b, const Pulsar__Proto__BaseCommand *c)
{
    say(newest(b), c);
}

void fake_broker_pause(struct fake_broker *b)
{
    conn_pause(newest(b)->conn);
}

void fake_broker_resume(struct fake_broker *b)
{
    conn_resume(newest(b)->conn);
}

void fake_broker_ping(struct fake_broker *b)
{
    Pulsar__Proto__BaseCommand c = command_of(CMD(PING));
    Pulsar__Proto__CommandPing m = PULSAR__PROTO__COMMAND_PING__INIT;
    c.ping = &m;
    fake_broker_say(b, &c);
}

void fake_broker_close_producer(struct fake_broker *b, uint64_t id)
{
    Pulsar__Proto__BaseCommand c = command_of(CMD(CLOSE_PRODUCER));
    Pulsar__Proto__CommandCloseProducer m = PULSAR__PROTO__COMMAND_CLOSE_PRODUCER__INIT;
    c.close_producer = &m;
    m.producer_id = id;
    m.request_id = UINT64_MAX;
    fake_broker_say(b, &c);
}

void fake_broker_close_consumer(struct fake_broker *b, uint64_t id)
{
    Pulsar__Proto__BaseCommand c = command_of(CMD(CLOSE_CONSUMER));
    Pulsar__Proto__CommandCloseConsumer m = PULSAR__PROTO__COMMAND_CLOSE_CONSUMER__INIT;
    c.close_consumer = &m;
    m.consumer_id = id;
    m.request_id = UINT64_MAX;
    fake_broker_say(b, &c);
}

void fake_broker_receipt(struct fake_broker *b, uint64_t producer, uint64_t sequence)
{
    receipt(newest(b), producer, sequence);
}

void fake_broker_deliver(struct fake_broker *b, int64_t entry, struct view body)
{
    Pulsar__Proto__BaseCommand c = command_of(CMD(MESSAGE));
    Pulsar__Proto__CommandMessage m = PULSAR__PROTO__COMMAND_MESSAGE__INIT;
    Pulsar__Proto__MessageIdData id = PULSAR__PROTO__MESSAGE_ID_DATA__INIT;
    struct guest *g = newest(b);
    c.message = &m;
    m.message_id = &id;
    id.ledgerid = 1;
    id.entryid = (uint64_t)entry;
    conn_send(g->conn, command_front(&c, body.len));
    conn_send(g->conn, slice_copy(body.base, body.len));
}
