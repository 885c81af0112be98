/* FLOW, ACK, REDELIVER, UNSUBSCRIBE, GET_LAST_MESSAGE_ID: what is asked of a consumer.
 *
 * They may come after the consumer was closed: then they mean nothing (clients.md 19), but
 * who waits for an answer gets one. */
#include <string.h>

#include "broker/broker.h"
#include "broker/session/asks.h"
#include "broker/session/reply.h"
#include "broker/session/rules.h"
#include "common/log.h"

struct topic_consumer *session_consumer_ready(struct session *s, uint64_t id)
{
    struct handle *h = handle_find(s->consumers, id);

    return h && h->state == HANDLE_READY ? &container_of(h, struct session_consumer, handle)->guest
                                         : NULL;
}

struct consumer_ask *session_ask_new(enum consumer_ask_kind kind, size_t n)
{
    struct consumer_ask *a = mem_alloc(sizeof(*a) + n * sizeof(a->at[0]));

    a->kind = kind;
    return a;
}

static struct position position_of(const Pulsar__Proto__MessageIdData *id)
{
    return (struct position){.ledger = (int64_t)id->ledgerid, .entry = (int64_t)id->entryid};
}

/* ---- FLOW, REDELIVER ---- */

enum err on_flow(struct session *s, const struct command *c)
{
    const Pulsar__Proto__CommandFlow *flow = c->base->flow;
    struct topic_consumer *k = session_consumer_ready(s, flow->consumer_id);

    if (k && flow->messagepermits > 0) {
        struct consumer_ask *a = session_ask_new(ASK_FLOW, 0);
        a->permits = flow->messagepermits;
        topic_consumer_ask(k, a);
    }
    return ERR_OK;
}

enum err on_redeliver(struct session *s, const struct command *c)
{
    const Pulsar__Proto__CommandRedeliverUnacknowledgedMessages *r =
        c->base->redeliverunacknowledgedmessages;
    struct topic_consumer *k = session_consumer_ready(s, r->consumer_id);

    if (k) {
        struct consumer_ask *a = session_ask_new(ASK_REDELIVER, r->n_message_ids);
        for (size_t i = 0; i < r->n_message_ids; i++)
            a->at[a->n++] = position_of(r->message_ids[i]);
        a->has_epoch = r->has_consumer_epoch;
        a->epoch = r->consumer_epoch;
        topic_consumer_ask(k, a);
    }
    return ERR_OK;
}

/* ---- ACK ---- */

static void reply_ack(struct session *s, uint64_t consumer, uint64_t request, enum err err,
                      const char *why)
{
    Pulsar__Proto__CommandAckResponse r = PULSAR__PROTO__COMMAND_ACK_RESPONSE__INIT;

    r.consumer_id = consumer;
    r.has_request_id = true;
    r.request_id = request;
    if (err) {
        r.has_error = true;
        r.error = (Pulsar__Proto__ServerError)reply_code_open(err);
        r.message = (char *)(uintptr_t)why;
    }
    REPLY(base, ACK_RESPONSE, ackresponse, r);
    session_send(s, &base);
}

/* Some of the batch is not acknowledged: the entry is, once all of it was. */
static bool is_partial(const Pulsar__Proto__MessageIdData *id)
{
    for (size_t i = 0; i < id->n_ack_set; i++)
        if (id->ack_set[i])
            return true;
    return false;
}

/* Which messages those are is kept, unless the settings say not to. */
static bool is_kept(const struct session *s, const Pulsar__Proto__MessageIdData *id)
{
    return session_env(s)->conf->batch_index_acks && id->n_ack_set <= CURSOR_PART_WORDS &&
           is_partial(id);
}

static void add_parts(const struct session *s, const Pulsar__Proto__CommandAck *ack,
                      struct consumer_ask *a)
{
    size_t n = 0, words = 0;
    uint64_t *at;

    for (size_t i = 0; i < ack->n_message_id; i++) {
        bool kept = is_kept(s, ack->message_id[i]);
        n += kept;
        words += kept ? ack->message_id[i]->n_ack_set : 0;
    }
    if (n == 0)
        return;
    a->parts = mem_alloc(n * sizeof(a->parts[0]) + words * sizeof(uint64_t));
    at = (uint64_t *)(a->parts + n);
    for (size_t i = 0; i < ack->n_message_id; i++) {
        const Pulsar__Proto__MessageIdData *id = ack->message_id[i];
        if (!is_kept(s, id))
            continue;
        memcpy(at, id->ack_set, id->n_ack_set * sizeof(uint64_t));
        a->parts[a->n_parts++] =
            (struct ask_part){.at = position_of(id), .n = (unsigned)id->n_ack_set, .words = at};
        at += id->n_ack_set;
    }
}

static struct consumer_ask *individual(const Pulsar__Proto__CommandAck *ack)
{
    struct consumer_ask *a = session_ask_new(ASK_ACK, ack->n_message_id);

    for (size_t i = 0; i < ack->n_message_id; i++)
        if (!is_partial(ack->message_id[i]))
            a->at[a->n++] = position_of(ack->message_id[i]);
    return a;
}

/* Up to the entry before, when only part of this one is acknowledged. */
static struct consumer_ask *cumulative(const Pulsar__Proto__CommandAck *ack)
{
    struct consumer_ask *a = session_ask_new(ASK_ACK_UPTO, 1);

    a->n = 1;
    a->at[0] = position_of(ack->message_id[0]);
    if (is_partial(ack->message_id[0]))
        a->at[0] = position_before(a->at[0]);
    return a;
}

static const char *refusal(const Pulsar__Proto__CommandAck *ack)
{
    if (ack->has_txnid_least_bits || ack->has_txnid_most_bits)
        return "transactions are not supported yet";
    if (ack->ack_type != PULSAR__PROTO__COMMAND_ACK__ACK_TYPE__Individual &&
        ack->ack_type != PULSAR__PROTO__COMMAND_ACK__ACK_TYPE__Cumulative)
        return "an acknowledgement is individual or cumulative";
    if (ack->ack_type == PULSAR__PROTO__COMMAND_ACK__ACK_TYPE__Cumulative && ack->n_message_id != 1)
        return "a cumulative acknowledgement has exactly one message id";
    return NULL;
}

static void refuse(struct session *s, const Pulsar__Proto__CommandAck *ack, enum err err,
                   const char *why)
{
    if (ack->has_request_id)
        reply_ack(s, ack->consumer_id, ack->request_id, err, why);
}

enum err on_ack(struct session *s, const struct command *c)
{
    const Pulsar__Proto__CommandAck *ack = c->base->ack;
    struct topic_consumer *k = session_consumer_ready(s, ack->consumer_id);
    const char *why = refusal(ack);

    if (why) {
        log_event(LOG_WARN, "ack.refused", F_STR("peer", conn_peer(s->conn)), F_STR("why", why));
        refuse(s, ack, ERR_NOT_ALLOWED, why);
        return ERR_OK;
    }
    if (!k) {
        refuse(s, ack, ERR_CONSUMER_NOT_FOUND, "the consumer is closed");
        return ERR_OK;
    }
    if (ack->has_validation_error)
        log_event(LOG_WARN, "ack.damaged", F_STR("peer", conn_peer(s->conn)),
                  F_I64("error", ack->validation_error));
    struct consumer_ask *a = ack->ack_type == PULSAR__PROTO__COMMAND_ACK__ACK_TYPE__Cumulative
                                 ? cumulative(ack)
                                 : individual(ack);
    add_parts(s, ack, a);
    a->wanted = ack->has_request_id;
    a->request = ack->request_id;
    topic_consumer_ask(k, a);
    return ERR_OK;
}

/* ---- UNSUBSCRIBE, GET_LAST_MESSAGE_ID ---- */

static enum err ask_with_error(struct session *s, uint64_t consumer, uint64_t request,
                               enum consumer_ask_kind kind, bool force)
{
    struct topic_consumer *k = session_consumer_ready(s, consumer);

    if (!k) {
        reply_error(s, request, reply_code_open(ERR_CONSUMER_NOT_FOUND),
                    "there is no such consumer");
        return ERR_OK;
    }
    struct consumer_ask *a = session_ask_new(kind, 0);
    a->wanted = true;
    a->request = request;
    a->force = force;
    topic_consumer_ask(k, a);
    return ERR_OK;
}

enum err on_unsubscribe(struct session *s, const struct command *c)
{
    const Pulsar__Proto__CommandUnsubscribe *u = c->base->unsubscribe;
    return ask_with_error(s, u->consumer_id, u->request_id, ASK_UNSUBSCRIBE, u->force);
}

enum err on_last_id(struct session *s, const struct command *c)
{
    const Pulsar__Proto__CommandGetLastMessageId *g = c->base->getlastmessageid;
    return ask_with_error(s, g->consumer_id, g->request_id, ASK_LAST_ID, false);
}

static Pulsar__Proto__MessageIdData id_of(struct position p, const struct handle *h)
{
    Pulsar__Proto__MessageIdData id = PULSAR__PROTO__MESSAGE_ID_DATA__INIT;

    id.ledgerid = (uint64_t)p.ledger;
    id.entryid = (uint64_t)p.entry;
    id.has_partition = h->partition >= 0;
    id.partition = h->partition;
    return id;
}

static void reply_last_id(struct session *s, const struct handle *h, const struct consumer_ask *a)
{
    Pulsar__Proto__MessageIdData last = id_of(a->last, h);
    Pulsar__Proto__MessageIdData done = id_of(a->mark_delete, h);
    Pulsar__Proto__CommandGetLastMessageIdResponse r =
        PULSAR__PROTO__COMMAND_GET_LAST_MESSAGE_ID_RESPONSE__INIT;

    last.has_batch_index = true;
    last.batch_index = a->batch_index;
    r.request_id = a->request;
    r.last_message_id = &last;
    r.consumer_mark_delete_position = &done;
    REPLY(base, GET_LAST_MESSAGE_ID_RESPONSE, getlastmessageidresponse, r);
    session_send(s, &base);
}

/* ---- answers from the topic ---- */

/* Its client takes a consumer that unsubscribed for closed. */
static void unsubscribed(struct session *s, struct handle *h, const struct consumer_ask *a)
{
    reply_success(s, a->request);
    if (h->state == HANDLE_READY)
        session_forget_consumer(s, h);
}

static void answer(struct session *s, struct handle *h, const struct consumer_ask *a)
{
    bool ack = a->kind == ASK_ACK || a->kind == ASK_ACK_UPTO;

    if (!a->wanted)
        return;
    if (a->kind == ASK_REPORT)
        session_reported(s, a->consumer, a);
    else if (a->kind == ASK_SEEK)
        session_sought(s, a);
    else if (ack)
        reply_ack(s, h->id, a->request, a->err, err_text(a->err));
    else if (a->err)
        reply_error(s, a->request, reply_code_open(a->err), err_text(a->err));
    else if (a->kind == ASK_UNSUBSCRIBE)
        unsubscribed(s, h, a);
    else if (a->kind == ASK_LAST_ID)
        reply_last_id(s, h, a);
}

void session_answered(struct topic_consumer *c, struct consumer_ask *a)
{
    struct session_consumer *k = container_of(c, struct session_consumer, guest);

    answer(k->handle.session, &k->handle, a);
    topic_consumer_ask_drop(&a);
}
