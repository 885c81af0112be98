/* SEEK: a subscription goes to another place.  Its consumers are closed first, then it is answered
 * (clients.md 6). */
#include <stdio.h>
#include <string.h>

#include "broker/broker.h"
#include "broker/session/asks.h"
#include "broker/session/reply.h"
#include "broker/session/rules.h"
#include "broker/topic/seek.h"

#define CODE(c) PULSAR__PROTO__SERVER_ERROR__##c

/* Gives.  Of a batch the messages that are to come, where they can be kept. */
static struct seek *seek_new(const struct session *s, const Pulsar__Proto__CommandSeek *c)
{
    const Pulsar__Proto__MessageIdData *id = c->message_id;
    bool part = id && session_env(s)->conf->batch_index_acks && id->n_ack_set <= CURSOR_PART_WORDS;
    size_t words = part ? id->n_ack_set : 0;
    struct seek *k = mem_alloc(sizeof(*k) + words * sizeof(uint64_t));

    *k = (struct seek){.by_time = !id, .n_words = (unsigned)words, .words = (uint64_t *)(k + 1)};
    if (!id) {
        k->ms = c->message_publish_time < INT64_MAX ? (int64_t)c->message_publish_time : INT64_MAX;
        return k;
    }
    k->to = (struct position){(int64_t)id->ledgerid, (int64_t)id->entryid};
    if (words > 0)
        memcpy(k->words, id->ack_set, words * sizeof(uint64_t));
    return k;
}

static void refuse(struct session *s, uint64_t request, const char *reason)
{
    char why[160];

    snprintf(why, sizeof(why), "Error when resetting subscription: %s", reason);
    reply_error(s, request, CODE(UnknownError), why);
}

static const char moving[] = "it is being moved, or its topic is being closed";

enum err on_seek(struct session *s, const struct command *c)
{
    const Pulsar__Proto__CommandSeek *seek = c->base->seek;
    struct topic_consumer *k = session_consumer_ready(s, seek->consumer_id);

    if (!seek->message_id && !seek->has_message_publish_time) {
        reply_error(s, seek->request_id, CODE(MetadataError),
                    "a seek needs a message id or a publish time");
    } else if (k) {
        struct consumer_ask *a = session_ask_new(ASK_SEEK, 0);
        a->wanted = true;
        a->request = seek->request_id;
        a->seek = seek_new(s, seek);
        topic_consumer_ask(k, a);
    } else if (handle_find(s->consumers, seek->consumer_id)) {
        refuse(s, seek->request_id, moving);
    } else {
        reply_error(s, seek->request_id, CODE(ConsumerNotFound), "there is no such consumer");
    }
    return ERR_OK;
}

void session_sought(struct session *s, const struct consumer_ask *a)
{
    bool busy = a->err == ERR_BUSY || a->err == ERR_NOT_READY;

    if (a->err)
        refuse(s, a->request, busy ? moving : err_text(a->err));
    else
        reply_success(s, a->request);
}
