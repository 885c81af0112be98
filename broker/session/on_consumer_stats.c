/* CONSUMER_STATS: what is known of a consumer.  Failures have its own answer's form: clients.md 2.
 */
#include "broker/session/asks.h"
#include "broker/session/reply.h"
#include "broker/session/rules.h"

typedef Pulsar__Proto__CommandConsumerStatsResponse response;

static void reply(struct session *s, response *r)
{
    REPLY(base, CONSUMER_STATS_RESPONSE, consumerstatsresponse, *r);
    session_send(s, &base);
}

static void refuse(struct session *s, uint64_t request, enum err err)
{
    response r = PULSAR__PROTO__COMMAND_CONSUMER_STATS_RESPONSE__INIT;

    r.request_id = request;
    r.has_error_code = true;
    r.error_code = (Pulsar__Proto__ServerError)reply_code_open(err);
    r.error_message = (char *)(uintptr_t)err_text(err);
    reply(s, &r);
}

enum err on_consumer_stats(struct session *s, const struct command *c)
{
    const Pulsar__Proto__CommandConsumerStats *asked = c->base->consumerstats;
    struct handle *h = handle_find(s->consumers, asked->consumer_id);

    if (!h || h->state != HANDLE_READY) {
        refuse(s, asked->request_id, ERR_CONSUMER_NOT_FOUND);
        return ERR_OK;
    }
    struct consumer_ask *a = mem_new(struct consumer_ask);
    a->kind = ASK_REPORT;
    a->wanted = true;
    a->request = asked->request_id;
    topic_consumer_ask(&container_of(h, struct session_consumer, handle)->guest, a);
    return ERR_OK;
}

static uint64_t at_least_none(int64_t n)
{
    return n > 0 ? (uint64_t)n : 0;
}

/* Nothing expires yet. */
static void fill(response *r, const struct topic_consumer *c, const struct consumer_report *from)
{
    r->has_msgrateout = r->has_msgthroughputout = r->has_msgrateredeliver = true;
    r->msgrateout = from->out_rate;
    r->msgthroughputout = from->out_byte_rate;
    r->msgrateredeliver = from->again_rate;
    r->has_messageackrate = r->has_msgrateexpired = true;
    r->messageackrate = from->acked_rate;
    r->has_availablepermits = r->has_unackedmessages = r->has_msgbacklog = true;
    r->availablepermits = at_least_none(from->permits);
    r->unackedmessages = at_least_none(from->unacked);
    r->msgbacklog = at_least_none(from->backlog);
    r->has_blockedconsumeronunackedmsgs = true;
    r->blockedconsumeronunackedmsgs = from->blocked;
    r->consumername = (char *)(uintptr_t)c->name;
    r->address = c->guest.who->address;
    r->connectedsince = (char *)(uintptr_t)from->since;
    r->type = (char *)(uintptr_t)consumer_type_name(c->type);
}

void session_reported(struct session *s, const struct topic_consumer *c,
                      const struct consumer_ask *a)
{
    response r = PULSAR__PROTO__COMMAND_CONSUMER_STATS_RESPONSE__INIT;

    if (a->err) { /* it was sent away meanwhile */
        refuse(s, a->request, ERR_CONSUMER_NOT_FOUND);
        return;
    }
    r.request_id = a->request;
    fill(&r, c, a->report);
    reply(s, &r);
}
