/* PRODUCER, CLOSE_PRODUCER, and what the topic says of a producer. */
#include <string.h>

#include "broker/broker.h"
#include "broker/policy/topic_facts.h"
#include "broker/session/checks.h"
#include "broker/session/put_off.h"
#include "broker/session/reply.h"
#include "broker/session/rules.h"

static struct session_producer *of_handle(struct handle *h)
{
    return container_of(h, struct session_producer, handle);
}

static struct session_producer *of_guest(struct guest *g)
{
    return container_of(topic_producer_of(g), struct session_producer, guest);
}

static void producer_free(struct session_producer *p)
{
    mem_free(p->guest.name);
    mem_free(p->initial);
    mem_free(p->handle.topic);
    pairs_drop(&p->handle.metadata);
    mem_pool_give(p);
}

/* ---- what the topic says ---- */

void session_producer_success(struct session_producer *p, uint64_t request, bool ready)
{
    Pulsar__Proto__CommandProducerSuccess ok = PULSAR__PROTO__COMMAND_PRODUCER_SUCCESS__INIT;

    ok.request_id = request;
    ok.producer_name = p->guest.name;
    ok.has_last_sequence_id = true;
    ok.last_sequence_id = -1;
    ok.has_schema_version = true; /* empty: none */
    ok.has_producer_ready = true;
    ok.producer_ready = ready;
    ok.has_topic_epoch = ready && p->guest.epoch >= 0;
    ok.topic_epoch = ok.has_topic_epoch ? (uint64_t)p->guest.epoch : 0;
    REPLY(base, PRODUCER_SUCCESS, producer_success, ok);
    session_send(p->handle.session, &base);
}

static void on_opened(struct guest *g, enum err err, const char *why)
{
    struct session_producer *p = of_guest(g);
    struct handle *h = &p->handle;

    if (h->state != HANDLE_OPENING)
        return; /* closed meanwhile: that was answered */
    if (err) {
        reply_error(h->session, h->open_request, reply_code_open(err), why);
        handle_remove(&h->session->producers, h);
        guest_close(g);
        return;
    }
    if (!p->guest.queued)
        h->state = HANDLE_READY;
    session_producer_success(p, h->open_request, !p->guest.queued);
}

static void on_admitted(struct topic_producer *tp)
{
    struct session_producer *p = container_of(tp, struct session_producer, guest);
    struct handle *h = &p->handle;

    if (h->state != HANDLE_OPENING)
        return;
    h->state = HANDLE_READY;
    session_producer_success(p, h->open_request, true);
}

void session_producer_gone(struct handle *h)
{
    Pulsar__Proto__CommandCloseProducer gone = PULSAR__PROTO__COMMAND_CLOSE_PRODUCER__INIT;

    gone.producer_id = h->id;
    gone.request_id = REPLY_NO_REQUEST;
    REPLY(base, CLOSE_PRODUCER, close_producer, gone);
    session_send(h->session, &base);
}

static void refuse_open(struct handle *h, enum err err, const char *why)
{
    reply_error(h->session, h->open_request, reply_code_open(err), why);
    handle_remove(&h->session->producers, h);
    guest_close(h->guest);
}

static void on_go(struct guest *g)
{
    struct session_producer *p = of_guest(g);
    struct handle *h = &p->handle;

    switch (h->state) {
    case HANDLE_OPENING: /* it waits for the topic, in vain */
        refuse_open(h, p->guest.gone.err, p->guest.gone.why);
        break;
    case HANDLE_RETURNING:
        put_off_forget(p);
        refuse_open(h, ERR_NOT_READY, "the topic is being unloaded");
        break;
    case HANDLE_READY:
    case HANDLE_PUT_OFF:
        h->state = HANDLE_SENT_AWAY;
        session_producer_gone(h);
        guest_close(g);
        break;
    case HANDLE_TOLD: /* that was said */
        put_off_give_up(p);
        break;
    case HANDLE_LEAVING:
    case HANDLE_SENT_AWAY:
        break;
    }
}

static void on_check(struct guest *g)
{
    struct session_producer *p = of_guest(g);

    if (p->handle.state == HANDLE_TOLD)
        put_off_give_up(p);
    else
        handle_check(&p->handle);
}

static void on_ended(struct guest *g)
{
    struct session_producer *p = of_guest(g);
    struct session *s = p->handle.session;

    if (handle_ended(&p->handle)) {
        s->handles--;
        producer_free(p);
    }
    session_let_go(s);
}

static const struct topic_producer_front front = {
    .guest = {.opened = on_opened, .go = on_go, .check = on_check, .ended = on_ended},
    .published = session_published,
    .admitted = on_admitted,
};

/* ---- PRODUCER ---- */

/* What is not there yet is said so, before anything is made. */
static const char *refusal(const Pulsar__Proto__CommandProducer *p)
{
    if (p->txn_enabled)
        return "transactions are not supported yet";
    if (checks_too_long(p->initial_subscription_name))
        return "a subscription's name has 1,024 bytes at most";
    if (p->initial_subscription_name && checks_reserved(p->initial_subscription_name))
        return "subscriptions of that name are the broker's own";
    if (p->has_topic_epoch && p->topic_epoch > ACCESS_EPOCH_MAX)
        return "no topic has had such an epoch";
    if (checks_too_long(p->producer_name))
        return "a producer's name has 1,024 bytes at most";
    if (checks_too_much(p->metadata, p->n_metadata))
        return "a producer's metadata is 64 KiB and 1,024 words at most";
    return checks_schema(p->schema);
}

static enum err check(struct session *s, const Pulsar__Proto__CommandProducer *p,
                      struct topic_name *name, const char **why)
{
    TRY(checks_topic(s, p->topic, ACTION_PRODUCE, name, why));
    *why = refusal(p);
    if (!*why && s->handles >= HANDLES_MAX)
        *why = "too many producers and consumers on one connection";
    if (!*why)
        return ERR_OK;
    topic_name_drop(name);
    return ERR_NOT_ALLOWED;
}

static enum access_mode mode_of(const Pulsar__Proto__CommandProducer *c)
{
    switch (c->producer_access_mode) {
    case PULSAR__PROTO__PRODUCER_ACCESS_MODE__Exclusive:
        return ACCESS_EXCLUSIVE;
    case PULSAR__PROTO__PRODUCER_ACCESS_MODE__WaitForExclusive:
        return ACCESS_WAIT;
    case PULSAR__PROTO__PRODUCER_ACCESS_MODE__ExclusiveWithFencing:
        return ACCESS_FENCE;
    default:
        return ACCESS_SHARED;
    }
}

static void open_producer(struct session *s, const Pulsar__Proto__CommandProducer *c,
                          const struct topic_name *name)
{
    struct session_producer *p = mem_pool_take(s->home->producers);
    bool named = c->producer_name && *c->producer_name;
    bool brings = c->initial_subscription_name && *c->initial_subscription_name;

    p->handle.id = c->producer_id;
    p->handle.guest = &p->guest.guest;
    p->handle.open_request = c->request_id;
    p->handle.topic = mem_string(name->full);
    p->handle.partition = name->partition;
    p->fleeting = !name->persistent;
    p->epoch = c->epoch;
    p->guest.name = named ? mem_string(c->producer_name) : NULL;
    p->guest.mode = mode_of(c);
    p->guest.asked_epoch = c->has_topic_epoch ? (int64_t)c->topic_epoch : ACCESS_NO_EPOCH;
    p->guest.initial = p->initial = brings ? mem_string(c->initial_subscription_name) : NULL;
    p->guest.id = c->producer_id;
    checks_keep(&p->handle.metadata, c->metadata, c->n_metadata);
    p->guest.guest = (struct guest){
        .front_ops = &front.guest,
        .front = session_env(s)->home,
        .topics = topics_of(session_env(s)->topics, p->handle.topic),
        .topic_name = p->handle.topic,
        .create = true,
        .session = s->id,
        .who = &s->who,
        .metadata = &p->handle.metadata,
    };
    receipts_init(&p->receipts, session_sent);
    list_init(&p->turn);
    handle_add(s, &s->producers, &p->handle);
    topic_producer_open(&p->guest);
}

/* Takes it out of the client's sight: its id and, since posts keep their order, its name are
 * free for whatever the client asks next. */
static void forget(struct session *s, struct handle *h)
{
    struct session_producer *p = of_handle(h);

    handle_remove(&s->producers, h);
    put_off_forget(p);
    guest_close(h->guest);
    if (h->ended) {
        s->handles--;
        producer_free(p);
    }
}

/* The one that was told that there is no room, and nobody else. */
static bool comes_back(const struct session_producer *old, const Pulsar__Proto__CommandProducer *p,
                       const struct topic_name *name)
{
    return old->handle.state == HANDLE_TOLD && strcmp(old->handle.topic, name->full) == 0 &&
           old->guest.mode == mode_of(p) &&
           (!p->producer_name || !*p->producer_name ||
            strcmp(old->guest.name, p->producer_name) == 0);
}

/* `name` NULL: it may not. */
static void open_anew(struct session *s, struct handle *old,
                      const Pulsar__Proto__CommandProducer *p, const struct topic_name *name)
{
    if (old)
        forget(s, old);
    if (name)
        open_producer(s, p, name);
}

enum err on_producer(struct session *s, const struct command *c)
{
    const Pulsar__Proto__CommandProducer *p = c->base->producer;
    struct handle *old = handle_find(s->producers, p->producer_id);
    struct topic_name name;
    const char *why;

    if (old && (old->state == HANDLE_OPENING || old->state == HANDLE_RETURNING)) {
        reply_error(s, p->request_id, reply_code_open(ERR_NOT_READY),
                    "this producer is being created");
        return ERR_OK;
    }
    if (old && old->state == HANDLE_READY && p->epoch <= of_handle(old)->epoch) {
        session_producer_success(of_handle(old), p->request_id, true);
        return ERR_OK;
    }
    enum err err = check(s, p, &name, &why);
    if (!err && old && comes_back(of_handle(old), p, &name))
        put_off_return(of_handle(old), p->request_id, p->epoch);
    else
        open_anew(s, old, p, err ? NULL : &name);
    if (err)
        reply_error(s, p->request_id, reply_code_open(err), why);
    else
        topic_name_drop(&name);
    return ERR_OK;
}

/* ---- CLOSE_PRODUCER ---- */

enum err on_close_producer(struct session *s, const struct command *c)
{
    const Pulsar__Proto__CommandCloseProducer *close = c->base->close_producer;
    struct handle *h = handle_find(s->producers, close->producer_id);

    if (!h || h->ended) {
        if (h)
            forget(s, h);
        reply_success(s, close->request_id);
        return ERR_OK;
    }
    if (h->state == HANDLE_OPENING || h->state == HANDLE_RETURNING)
        reply_error(s, h->open_request, reply_code_open(ERR_NOT_READY),
                    "closed before it was created");
    h->answer_close = true; /* once what it published is stored */
    h->close_request = close->request_id;
    forget(s, h);
    return ERR_OK;
}

void session_producers_leave(struct session *s)
{
    struct handle *h, *next;

    HASH_ITER(hh, s->producers, h, next)
    forget(s, h);
}
