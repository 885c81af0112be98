/* SEND: from the frame to the topic, and back as a receipt. */
#include "broker/broker.h"
#include "broker/metrics.h"
#include "broker/session/put_off.h"
#include "broker/session/reply.h"
#include "broker/session/rules.h"
#include "broker/topic/slow_publish.h"
#include "common/crc32c.h"
#include "common/cutter.h"
#include "common/log.h"
#include "proto/message.h"

enum { POOL_MAX = 16384 };

/* Clients keep a message within max_message_size but for what they add to its metadata last (a
 * chunk's place among others); with what we store around it, it must fit a bookie's frame. */
enum { BODY_PADDING = FRAME_PADDING - 256 };

/* ---- sendings come from a pool ---- */

static struct sending *sending_new(struct sessions *home)
{
    struct sending *m = home->pool;

    if (!m)
        return mem_new(struct sending);
    home->pool = m->next;
    home->pooled--;
    *m = (struct sending){0};
    return m;
}

static void sending_free(struct sessions *home, struct sending *m)
{
    chain_drop(&m->publish.add.payload);
    if (home->pooled >= POOL_MAX) {
        mem_free(m);
        return;
    }
    m->next = home->pool;
    home->pool = m;
    home->pooled++;
}

void sending_pool_drop(struct sessions *home)
{
    while (home->pool) {
        struct sending *m = home->pool;
        home->pool = m->next;
        mem_free(m);
    }
    home->pooled = 0;
}

/* ---- answers ---- */

static void reply_receipt(struct session *s, uint64_t producer, const struct sending *m)
{
    Pulsar__Proto__MessageIdData id = PULSAR__PROTO__MESSAGE_ID_DATA__INIT;
    Pulsar__Proto__CommandSendReceipt ok = PULSAR__PROTO__COMMAND_SEND_RECEIPT__INIT;

    id.ledgerid = (uint64_t)m->publish.at.ledger;
    id.entryid = (uint64_t)m->publish.at.entry;
    ok.producer_id = producer;
    ok.sequence_id = m->sequence;
    ok.message_id = &id;
    ok.has_highest_sequence_id = m->highest != 0;
    ok.highest_sequence_id = m->highest;
    REPLY(base, SEND_RECEIPT, send_receipt, ok);
    session_send(s, &base);
}

static void reply_send_error(struct session *s, uint64_t producer, const struct sending *m)
{
    Pulsar__Proto__CommandSendError e = PULSAR__PROTO__COMMAND_SEND_ERROR__INIT;

    e.producer_id = producer;
    e.sequence_id = m->highest > m->sequence ? m->highest : m->sequence;
    e.error = (Pulsar__Proto__ServerError)err_to_pulsar(m->err);
    e.message = (char *)(uintptr_t)m->why;
    REPLY(base, SEND_ERROR, send_error, e);
    session_send(s, &base);
}

/* ---- back from the topic ---- */

static void tell_if_slow(const struct session_producer *p, const struct sending *m)
{
    const struct session *s = p->handle.session;
    const uint64_t now = loop_now(session_env(s)->home);

    if (s->home->slow_us == 0 || m->publish.came_us == 0 ||
        now - m->publish.came_us < s->home->slow_us)
        return;
    metric_add(&session_env(s)->metrics->slow_publishes, 1);
    slow_publish_tell(&session_env(s)->metrics->slow_lines, p->handle.topic, p->guest.name,
                      &m->publish, now);
}

/* In the order in which they came.  One that was stored for a producer that is gone from the
 * client's sight still gets its receipt: CLOSE_PRODUCER is answered after it. */
void session_sent(struct receipts *q, struct receipt *r)
{
    struct session_producer *p = container_of(q, struct session_producer, receipts);
    struct sending *m = container_of(r, struct sending, receipt);
    struct session *s = p->handle.session;

    if (!m->err)
        reply_receipt(s, p->handle.id, m);
    else if (m->why)
        reply_send_error(s, p->handle.id, m);
    tell_if_slow(p, m);
    put_off_discharge(p, m->publish.bytes);
    sending_free(s->home, m);
}

/* A publish that failed is not answered, unless it was too late: the topic is gone, and told its
 * producers so. */
void session_published(struct topic_producer *tp, struct publish *publish)
{
    struct session_producer *p = container_of(tp, struct session_producer, guest);
    struct sending *m = container_of(publish, struct sending, publish);

    p->handle.session->fleeting -= p->fleeting;
    m->err = publish->err;
    if (m->err == ERR_TERMINATED)
        m->why = "the topic was terminated";
    receipts_done(&p->receipts, &m->receipt);
}

/* ---- to the topic ---- */

static enum err refuse(struct sending *m, enum err err, const char *why)
{
    m->err = err;
    m->why = why;
    return err;
}

/* What a client may get wrong without its connection being broken. */
static enum err check(struct session *s, const Pulsar__Proto__CommandSend *send,
                      const struct frame *f, uint32_t crc, struct sending *m)
{
    if (f->has_crc && crc != f->crc)
        return refuse(m, ERR_CHECKSUM, "the checksum does not match");
    if (m->highest != 0 && m->sequence > m->highest)
        return refuse(m, ERR_BAD_VERSION, "the lowest sequence id is above the highest");
    if (send->has_txnid_least_bits || send->has_txnid_most_bits)
        return refuse(m, ERR_NOT_ALLOWED, "transactions are not supported yet");
    if (f->body.len > (size_t)session_env(s)->conf->max_message_size + BODY_PADDING)
        return refuse(m, ERR_NOT_ALLOWED, "the message is larger than the limit");
    return ERR_OK;
}

/* What is stored: the client's bytes, with 0x0e01 and a checksum in front if it sent none. */
static void fill(struct ml_add *add, const struct command *c, uint32_t crc)
{
    const struct frame *f = &c->frame;
    uint8_t magic[FRAME_MAGIC_SIZE];

    frame_magic(magic, crc);
    if (!f->has_crc)
        chain_push(&add->payload, slice_copy(magic, sizeof(magic)));
    chain_push(&add->payload,
               slice_part(c->bytes, (size_t)(f->body.base - c->bytes.base), f->body.len));
    if (c->bytes.slab)
        add->front = (uint32_t)(f->body.base - c->bytes.base) + CUTTER_FRONT;
    add->crc = crc32c_combine(crc32c(magic, sizeof(magic)), crc, f->checked.len);
}

static size_t charge_of(const struct command *c)
{
    return c->bytes.len + sizeof(struct sending);
}

/* What a topic that is not stored has no time for is not kept for later. */
static bool is_one_too_many(const struct session_producer *p)
{
    struct session *s = p->handle.session;

    return p->fleeting && s->fleeting++ >= (uint64_t)session_env(s)->conf->max_fleeting;
}

static enum err send_on(struct session_producer *p, const struct command *c)
{
    const Pulsar__Proto__CommandSend *send = c->base->send;
    struct session *s = p->handle.session;
    struct message_peek peek;
    uint32_t crc = crc32c(c->frame.checked.base, c->frame.checked.len);
    struct sending *m = sending_new(s->home);

    m->sequence = send->sequence_id;
    m->highest = send->highest_sequence_id;
    enum err err = check(s, send, &c->frame, crc, m);
    if (!err && message_peek(c->frame.metadata, &peek)) {
        sending_free(s->home, m);
        return ERR_MALFORMED;
    }
    m->publish.dropped = !err && is_one_too_many(p);
    m->publish.bytes = m->publish.dropped ? sizeof(*m) : charge_of(c);
    receipts_add(&p->receipts, &m->receipt);
    put_off_charge(p, m->publish.bytes);
    if (err) {
        receipts_done(&p->receipts, &m->receipt);
        return ERR_OK;
    }
    m->publish.add.messages = peek.num_messages > 0 ? (uint32_t)peek.num_messages : 1;
    if (!m->publish.dropped)
        fill(&m->publish.add, c, crc);
    topic_producer_publish(&p->guest, &m->publish);
    return ERR_OK;
}

enum err on_send(struct session *s, const struct command *c)
{
    struct handle *h = handle_find(s->producers, c->base->send->producer_id);

    if (!h || h->state == HANDLE_OPENING || c->frame.body.len == 0)
        return ERR_MALFORMED;
    struct session_producer *p = container_of(h, struct session_producer, handle);
    if (h->state != HANDLE_READY || !put_off_takes(p, charge_of(c)))
        return ERR_OK; /* we close the producer, or have: it will be sent again */
    return send_on(p, c);
}
