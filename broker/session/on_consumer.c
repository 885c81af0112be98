/* SUBSCRIBE, UNSUBSCRIBE, CLOSE_CONSUMER, and what the topic says of a consumer. */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "broker/broker.h"
#include "broker/session/asks.h"
#include "broker/session/checks.h"
#include "broker/session/reply.h"
#include "broker/session/rules.h"

static struct session_consumer *of_handle(struct handle *h)
{
    return container_of(h, struct session_consumer, handle);
}

static struct session_consumer *of_guest(struct guest *g)
{
    return container_of(topic_consumer_of(g), struct session_consumer, guest);
}

static void consumer_free(struct session_consumer *c)
{
    mem_free(c->subscription);
    mem_free(c->name);
    mem_free(c->handle.topic);
    pairs_drop(&c->handle.metadata);
    pairs_drop(&c->properties);
    mem_pool_give(c);
}

/* ---- what the topic says ---- */

static void on_opened(struct guest *g, enum err err, const char *why)
{
    struct handle *h = &of_guest(g)->handle;

    if (h->state != HANDLE_OPENING)
        return; /* closed meanwhile: that was answered */
    if (err) {
        reply_error(h->session, h->open_request, reply_code_open(err), why);
        handle_remove(&h->session->consumers, h);
        guest_close(g);
        return;
    }
    h->state = HANDLE_READY;
    reply_success(h->session, h->open_request);
}

static void reply_gone(struct handle *h)
{
    Pulsar__Proto__CommandCloseConsumer gone = PULSAR__PROTO__COMMAND_CLOSE_CONSUMER__INIT;

    gone.consumer_id = h->id;
    gone.request_id = REPLY_NO_REQUEST;
    REPLY(base, CLOSE_CONSUMER, close_consumer, gone);
    session_send(h->session, &base);
}

static void on_go(struct guest *g)
{
    struct handle *h = &of_guest(g)->handle;

    if (h->state != HANDLE_READY)
        return;
    h->state = HANDLE_SENT_AWAY;
    reply_gone(h);
    session_undelivered_drop(h->session, topic_consumer_of(g));
    guest_close(g);
}

static void on_check(struct guest *g)
{
    handle_check(&of_guest(g)->handle);
}

static void on_ended(struct guest *g)
{
    struct session_consumer *c = of_guest(g);
    struct session *s = c->handle.session;

    if (handle_ended(&c->handle)) {
        s->handles--;
        consumer_free(c);
    }
    session_let_go(s);
}

static void on_reached_end(struct topic_consumer *tc)
{
    struct handle *h = &of_guest(&tc->guest)->handle;
    Pulsar__Proto__CommandReachedEndOfTopic end = PULSAR__PROTO__COMMAND_REACHED_END_OF_TOPIC__INIT;

    if (h->state != HANDLE_READY || !h->session->hears_end)
        return;
    end.consumer_id = h->id;
    REPLY(base, REACHED_END_OF_TOPIC, reachedendoftopic, end);
    session_send(h->session, &base);
}

static const struct topic_consumer_front front = {
    .guest = {.opened = on_opened, .go = on_go, .check = on_check, .ended = on_ended},
    .deliver = session_deliver,
    .answered = session_answered,
    .reached_end = on_reached_end,
};

/* ---- SUBSCRIBE ---- */

/* As far back as anybody means: a thousand years. */
#define BACK_MAX_S (1000ull * 366 * 24 * 3600)

#define SUB_TYPE(t) PULSAR__PROTO__COMMAND_SUBSCRIBE__SUB_TYPE__##t

static bool has_internal(const Pulsar__Proto__CommandSubscribe *c)
{
    for (size_t i = 0; i < c->n_subscription_properties; i++)
        if (strncmp(c->subscription_properties[i]->key, PAIRS_INTERNAL,
                    sizeof(PAIRS_INTERNAL) - 1) == 0)
            return true;
    return false;
}

/* What is not there yet is said so, before anything is made. */
static const char *refusal(const Pulsar__Proto__CommandSubscribe *c)
{
    if (c->subtype != SUB_TYPE(Exclusive) && c->subtype != SUB_TYPE(Shared))
        return "only Exclusive and Shared subscriptions are supported yet";
    if (c->read_compacted && c->subtype != SUB_TYPE(Exclusive))
        return "what was compacted is read by one consumer at a time";
    if (c->replicate_subscription_state)
        return "replicated subscriptions are not supported yet";
    if (checks_too_much(c->subscription_properties, c->n_subscription_properties))
        return "a subscription's properties are 64 KiB and 1,024 words at most";
    if (has_internal(c))
        return "properties of that name are the system's own";
    if (checks_too_much(c->metadata, c->n_metadata))
        return "a consumer's metadata is 64 KiB and 1,024 words at most";
    return checks_schema(c->schema);
}

static enum err check_names(const Pulsar__Proto__CommandSubscribe *c, const char **why)
{
    *why = "a subscription must have a name"; /* ProducerBusy: clients.md 20 */
    if (!*c->subscription)
        return ERR_PRODUCER_BUSY;
    *why = "a subscription's name has 1,024 bytes at most";
    if (checks_too_long(c->subscription))
        return ERR_NOT_ALLOWED;
    *why = "a consumer's name has 1,024 bytes at most";
    if (checks_too_long(c->consumer_name))
        return ERR_NOT_ALLOWED;
    *why = "this subscription name is kept for the system";
    return checks_reserved(c->subscription) ? ERR_NOT_ALLOWED : ERR_OK;
}

static enum err check_key(const struct topic_name *name, const char *subscription)
{
    char key[META_KEY_MAX];
    char *stored = managed_ledger_name(name);
    enum err err = path_cursor(stored, subscription, key);

    mem_free(stored);
    return err;
}

static enum err check(struct session *s, const Pulsar__Proto__CommandSubscribe *c,
                      struct topic_name *name, const char **why)
{
    TRY(check_names(c, why));
    TRY(checks_topic(s, c->topic, ACTION_CONSUME, name, why));
    *why = refusal(c);
    if (!name->persistent && c->read_compacted)
        *why = "only a persistent topic has a compacted form to read";
    if (!*why && s->handles >= HANDLES_MAX)
        *why = "too many producers and consumers on one connection";
    if (!*why && check_key(name, c->subscription))
        *why = "the names of topic and subscription are too long together";
    if (!*why)
        return ERR_OK;
    topic_name_drop(name);
    return ERR_NOT_ALLOWED;
}

/* Clients give one; for those that do not, one that tells them apart. */
static char *name_of(const struct session *s, const Pulsar__Proto__CommandSubscribe *c)
{
    char made[48];

    if (c->consumer_name && *c->consumer_name)
        return mem_string(c->consumer_name);
    snprintf(made, sizeof(made), "%" PRIu64 "-%" PRIu64, s->id, c->consumer_id);
    return mem_string(made);
}

/* A durable one has its initial position, another one an entry (clients.md 7). */
static struct position start_of(const Pulsar__Proto__CommandSubscribe *c)
{
    const Pulsar__Proto__MessageIdData *id = c->start_message_id;

    if (!c->durable)
        return id ? (struct position){(int64_t)id->ledgerid, (int64_t)id->entryid}
                  : POSITION_LATEST;
    return c->initialposition == PULSAR__PROTO__COMMAND_SUBSCRIBE__INITIAL_POSITION__Earliest
               ? POSITION_EARLIEST
               : POSITION_LATEST;
}

static int64_t back_of(const Pulsar__Proto__CommandSubscribe *c)
{
    uint64_t s = c->start_message_rollback_duration_sec;

    return s < BACK_MAX_S ? (int64_t)s * 1000 : (int64_t)BACK_MAX_S * 1000;
}

static void open_consumer(struct session *s, const Pulsar__Proto__CommandSubscribe *c,
                          const struct topic_name *name)
{
    struct session_consumer *k = mem_pool_take(s->home->consumers);

    k->handle.id = c->consumer_id;
    k->handle.guest = &k->guest.guest;
    k->handle.open_request = c->request_id;
    k->handle.topic = mem_string(name->full);
    k->handle.partition = name->partition;
    k->subscription = mem_string(c->subscription);
    k->name = name_of(s, c);
    k->guest.subscription_name = k->subscription;
    k->guest.name = k->name;
    k->guest.type = c->subtype == SUB_TYPE(Shared) ? CONSUMER_SHARED : CONSUMER_EXCLUSIVE;
    k->guest.priority = c->priority_level;
    k->guest.passing = !c->durable;
    k->guest.start = start_of(c);
    k->guest.back_ms = back_of(c);
    k->guest.has_epoch = c->has_consumer_epoch;
    k->guest.epoch = c->consumer_epoch;
    checks_keep(&k->handle.metadata, c->metadata, c->n_metadata);
    checks_keep(&k->properties, c->subscription_properties, c->n_subscription_properties);
    k->guest.properties = &k->properties;
    k->guest.guest = (struct guest){
        .front_ops = &front.guest,
        .front = session_env(s)->home,
        .topics = topics_of(session_env(s)->topics, k->handle.topic),
        .topic_name = k->handle.topic,
        .create = c->force_topic_creation,
        .session = s->id,
        .who = &s->who,
        .metadata = &k->handle.metadata,
    };
    handle_add(s, &s->consumers, &k->handle);
    topic_consumer_open(&k->guest);
}

/* As forget() of producers: the id and the place are free for what the client asks next. */
void session_forget_consumer(struct session *s, struct handle *h)
{
    handle_remove(&s->consumers, h);
    session_undelivered_drop(s, topic_consumer_of(h->guest));
    guest_close(h->guest);
    if (h->ended) {
        s->handles--;
        consumer_free(of_handle(h));
    }
}

enum err on_subscribe(struct session *s, const struct command *c)
{
    const Pulsar__Proto__CommandSubscribe *sub = c->base->subscribe;
    struct handle *old = handle_find(s->consumers, sub->consumer_id);
    struct topic_name name;
    const char *why;

    if (old && old->state == HANDLE_OPENING) {
        reply_error(s, sub->request_id, reply_code_open(ERR_NOT_READY),
                    "this consumer is being created");
        return ERR_OK;
    }
    if (old && old->state == HANDLE_READY) {
        reply_success(s, sub->request_id);
        return ERR_OK;
    }
    if (old)
        session_forget_consumer(s, old);
    enum err err = check(s, sub, &name, &why);
    if (err) {
        reply_error(s, sub->request_id, reply_code_open(err), why);
        return ERR_OK;
    }
    open_consumer(s, sub, &name);
    topic_name_drop(&name);
    return ERR_OK;
}

/* ---- CLOSE_CONSUMER ---- */

enum err on_close_consumer(struct session *s, const struct command *c)
{
    const Pulsar__Proto__CommandCloseConsumer *close = c->base->close_consumer;
    struct handle *h = handle_find(s->consumers, close->consumer_id);

    if (!h || h->ended) {
        if (h)
            session_forget_consumer(s, h);
        reply_success(s, close->request_id);
        return ERR_OK;
    }
    if (h->state == HANDLE_OPENING)
        reply_error(s, h->open_request, reply_code_open(ERR_NOT_READY),
                    "closed before it was created");
    h->answer_close = true;
    h->close_request = close->request_id;
    session_forget_consumer(s, h);
    return ERR_OK;
}

void session_consumers_leave(struct session *s)
{
    struct handle *h, *next;

    HASH_ITER(hh, s->consumers, h, next)
    session_forget_consumer(s, h);
}
