#include "tests/unit/broker/session/raw.h"

#include <arpa/inet.h>
#include <check.h>
#include <errno.h>
#include <netinet/in.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "common/mem.h"
#include "proto/message.h"

enum { FRAME_MOST = 6 * 1024 * 1024, PATIENCE_S = 20 };

int raw_socket(uint16_t port)
{
    struct sockaddr_in at = {.sin_family = AF_INET, .sin_port = htons(port)};
    struct timeval patience = {.tv_sec = PATIENCE_S};
    int fd = socket(AF_INET, SOCK_STREAM, 0);

    at.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    ck_assert_int_eq(setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof(patience)), 0);
    ck_assert_int_eq(connect(fd, (struct sockaddr *)&at, sizeof(at)), 0);
    return fd;
}

struct raw *raw_dial(uint16_t port)
{
    struct raw *r = mem_new(struct raw);

    r->fd = raw_socket(port);
    r->arena = arena_new(FRAME_MOST);
    return r;
}

void raw_drop(struct raw **r)
{
    close((*r)->fd);
    arena_drop(&(*r)->arena);
    mem_free((*r)->bytes);
    mem_free(*r);
    *r = NULL;
}

/* ---- bytes ---- */

void raw_write(struct raw *r, const void *bytes, size_t len)
{
    const uint8_t *at = bytes;

    while (len > 0) {
        ssize_t n = send(r->fd, at, len, MSG_NOSIGNAL);
        ck_assert_int_gt(n, 0);
        at += n;
        len -= (size_t)n;
    }
}

void raw_put_body(struct raw *r, const raw_command *c, struct slice body)
{
    struct slice front = command_front(c, body.len);

    raw_write(r, front.base, front.len);
    raw_write(r, body.base, body.len);
    slice_drop(&front);
    slice_drop(&body);
}

void raw_put(struct raw *r, const raw_command *c)
{
    raw_put_body(r, c, (struct slice){0});
}

/* False at the end of the stream. */
static bool read_all(struct raw *r, uint8_t *into, size_t len)
{
    for (size_t have = 0; have < len;) {
        ssize_t n = read(r->fd, into + have, len - have);
        ck_assert_msg(n >= 0 || len == 4, "nothing came in time");
        if (n <= 0)
            return false;
        have += (size_t)n;
    }
    return true;
}

static bool read_frame(struct raw *r)
{
    uint8_t size[4];
    Pulsar__Proto__BaseCommand *c;

    if (!read_all(r, size, 4))
        return false;
    size_t len = (size_t)size[0] << 24 | (size_t)size[1] << 16 | (size_t)size[2] << 8 | size[3];
    ck_assert_uint_lt(len, FRAME_MOST);
    mem_free(r->bytes);
    r->bytes = mem_alloc(len);
    ck_assert(read_all(r, r->bytes, len));
    arena_reset(r->arena);
    ck_assert_int_eq(frame_split(view_of(r->bytes, len), &r->frame), ERR_OK);
    ck_assert_int_eq(command_read(r->frame.command, r->arena, &c), ERR_OK);
    r->got = c;
    return true;
}

/* ---- what comes ---- */

static void put_pong(struct raw *r)
{
    RAW(base, PONG, pong, CommandPong, COMMAND_PONG, pong);
    raw_put(r, &base);
}

const raw_command *raw_get(struct raw *r)
{
    for (;;) {
        ck_assert_msg(read_frame(r), "closed, or nothing came in time");
        if (r->silent || r->got->type != RAW_TYPE(PING))
            return r->got;
        put_pong(r);
    }
}

const raw_command *raw_expect(struct raw *r, int type)
{
    const raw_command *c = raw_get(r);

    ck_assert_msg((int)c->type == type, "%s instead of %s (%s)", command_name((int)c->type),
                  command_name(type), c->error ? c->error->message : "");
    return c;
}

void raw_expect_error(struct raw *r, uint64_t request, int code)
{
    const raw_command *c = raw_expect(r, RAW_TYPE(ERROR));

    ck_assert_uint_eq(c->error->request_id, request);
    ck_assert_int_eq((int)c->error->error, code);
    ck_assert_str_ne(c->error->message, "");
}

void raw_expect_success(struct raw *r, uint64_t request)
{
    ck_assert_uint_eq(raw_expect(r, RAW_TYPE(SUCCESS))->success->request_id, request);
}

void raw_expect_closed(struct raw *r)
{
    uint8_t waste[4096];
    ssize_t n;

    while ((n = read(r->fd, waste, sizeof(waste))) > 0)
        continue;
    ck_assert_msg(n == 0 || errno == ECONNRESET, "the connection stays open");
}

void raw_expect_nothing(struct raw *r)
{
    RAW(base, PING, ping, CommandPing, COMMAND_PING, ping);

    raw_put(r, &base);
    raw_expect(r, RAW_TYPE(PONG));
}

/* ---- commands ---- */

struct raw *raw_connect(uint16_t port)
{
    struct raw *r = raw_dial(port);
    RAW(base, CONNECT, connect, CommandConnect, COMMAND_CONNECT, c);

    c.client_version = (char *)(uintptr_t) "raw";
    c.has_protocol_version = true;
    c.protocol_version = 21;
    raw_put(r, &base);
    raw_expect(r, RAW_TYPE(CONNECTED));
    return r;
}

void raw_lookup(struct raw *r, uint64_t request, const char *topic)
{
    RAW(base, LOOKUP, lookuptopic, CommandLookupTopic, COMMAND_LOOKUP_TOPIC, l);

    l.topic = (char *)(uintptr_t)topic;
    l.request_id = request;
    raw_put(r, &base);
}

void raw_partitions(struct raw *r, uint64_t request, const char *topic, bool create)
{
    RAW(base, PARTITIONED_METADATA, partitionmetadata, CommandPartitionedTopicMetadata,
        COMMAND_PARTITIONED_TOPIC_METADATA, p);

    p.topic = (char *)(uintptr_t)topic;
    p.request_id = request;
    p.has_metadata_auto_creation_enabled = true;
    p.metadata_auto_creation_enabled = create;
    raw_put(r, &base);
}

void raw_producer(struct raw *r, uint64_t id, uint64_t request, const char *topic, const char *name)
{
    RAW(base, PRODUCER, producer, CommandProducer, COMMAND_PRODUCER, p);

    p.topic = (char *)(uintptr_t)topic;
    p.producer_id = id;
    p.request_id = request;
    p.producer_name = (char *)(uintptr_t)name;
    raw_put(r, &base);
}

void raw_producer_ready(struct raw *r, uint64_t id, const char *topic)
{
    raw_producer(r, id, 1000 + id, topic, NULL);
    ck_assert_uint_eq(raw_expect(r, RAW_TYPE(PRODUCER_SUCCESS))->producer_success->request_id,
                      1000 + id);
}

struct slice raw_body(const char *text, uint64_t sequence, int batch)
{
    Pulsar__Proto__MessageMetadata m = PULSAR__PROTO__MESSAGE_METADATA__INIT;

    m.producer_name = (char *)(uintptr_t) "raw";
    m.sequence_id = sequence;
    m.publish_time = 1700000000000;
    m.has_num_messages_in_batch = batch > 0;
    m.num_messages_in_batch = batch;
    return message_body(&m, view_of(text, strlen(text)));
}

void raw_send(struct raw *r, uint64_t producer, uint64_t sequence, const char *text)
{
    RAW(base, SEND, send, CommandSend, COMMAND_SEND, s);

    s.producer_id = producer;
    s.sequence_id = sequence;
    raw_put_body(r, &base, raw_body(text, sequence, 0));
}

void raw_receipt(struct raw *r, uint64_t producer, uint64_t sequence)
{
    const raw_command *c = raw_expect(r, RAW_TYPE(SEND_RECEIPT));

    ck_assert_uint_eq(c->send_receipt->producer_id, producer);
    ck_assert_uint_eq(c->send_receipt->sequence_id, sequence);
    ck_assert_ptr_nonnull(c->send_receipt->message_id);
}

void raw_publish(struct raw *r, uint64_t producer, uint64_t sequence, const char *text)
{
    raw_send(r, producer, sequence, text);
    raw_receipt(r, producer, sequence);
}

void raw_subscribe(struct raw *r, uint64_t id, uint64_t request, const char *topic,
                   const char *subscription)
{
    RAW(base, SUBSCRIBE, subscribe, CommandSubscribe, COMMAND_SUBSCRIBE, s);

    s.topic = (char *)(uintptr_t)topic;
    s.subscription = (char *)(uintptr_t)subscription;
    s.consumer_id = id;
    s.request_id = request;
    s.has_initialposition = true;
    s.initialposition = PULSAR__PROTO__COMMAND_SUBSCRIBE__INITIAL_POSITION__Earliest;
    raw_put(r, &base);
}

void raw_subscribed(struct raw *r, uint64_t id, const char *topic, const char *subscription)
{
    raw_subscribe(r, id, 2000 + id, topic, subscription);
    raw_expect_success(r, 2000 + id);
}

void raw_flow(struct raw *r, uint64_t consumer, uint32_t permits)
{
    RAW(base, FLOW, flow, CommandFlow, COMMAND_FLOW, f);

    f.consumer_id = consumer;
    f.messagepermits = permits;
    raw_put(r, &base);
}

Pulsar__Proto__MessageIdData raw_message(struct raw *r, const char *text)
{
    const raw_command *c = raw_expect(r, RAW_TYPE(MESSAGE));
    Pulsar__Proto__MessageIdData id = *c->message->message_id;

    ck_assert(r->frame.has_crc);
    ck_assert_int_eq(frame_check(&r->frame), ERR_OK);
    ck_assert_uint_eq(r->frame.payload.len, strlen(text));
    ck_assert_int_eq(memcmp(r->frame.payload.base, text, strlen(text)), 0);
    id.n_ack_set = 0;
    id.ack_set = NULL;
    return id;
}

void raw_ack(struct raw *r, uint64_t consumer, Pulsar__Proto__MessageIdData id, bool upto)
{
    Pulsar__Proto__MessageIdData *ids[] = {&id};
    RAW(base, ACK, ack, CommandAck, COMMAND_ACK, a);

    a.consumer_id = consumer;
    a.ack_type = upto ? PULSAR__PROTO__COMMAND_ACK__ACK_TYPE__Cumulative
                      : PULSAR__PROTO__COMMAND_ACK__ACK_TYPE__Individual;
    a.n_message_id = 1;
    a.message_id = ids;
    a.has_request_id = true;
    a.request_id = 77;
    raw_put(r, &base);
    const raw_command *c = raw_expect(r, RAW_TYPE(ACK_RESPONSE));
    ck_assert_uint_eq(c->ackresponse->request_id, 77);
    ck_assert_msg(!c->ackresponse->has_error, "%s",
                  c->ackresponse->message ? c->ackresponse->message : "");
}

void raw_close_consumer(struct raw *r, uint64_t id, uint64_t request)
{
    RAW(base, CLOSE_CONSUMER, close_consumer, CommandCloseConsumer, COMMAND_CLOSE_CONSUMER, c);

    c.consumer_id = id;
    c.request_id = request;
    raw_put(r, &base);
    raw_expect_success(r, request);
}

void raw_close_producer(struct raw *r, uint64_t id, uint64_t request)
{
    RAW(base, CLOSE_PRODUCER, close_producer, CommandCloseProducer, COMMAND_CLOSE_PRODUCER, c);

    c.producer_id = id;
    c.request_id = request;
    raw_put(r, &base);
    raw_expect_success(r, request);
}
