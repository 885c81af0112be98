/* figures_words.h - what figures.c and figures_guests.c write with. */
#ifndef BROKER_ADMIN_FIGURES_WORDS_H
#define BROKER_ADMIN_FIGURES_WORDS_H

#include <json-c/json.h>
#include <string.h>

#include "broker/managed_ledger/pairs.h"
#include "broker/topic/topic_stats.h"

static inline void number(json_object *o, const char *key, int64_t n)
{
    json_object_object_add(o, key, json_object_new_int64(n));
}

static inline void text(json_object *o, const char *key, const char *value)
{
    json_object_object_add(o, key, json_object_new_string(value));
}

static inline void flag(json_object *o, const char *key, bool value)
{
    json_object_object_add(o, key, json_object_new_boolean(value));
}

static inline void rate(json_object *o, const char *key, double n)
{
    json_object_object_add(o, key, json_object_new_double(n));
}

/* What nobody measures yet. */
static inline void zeros(json_object *o, const char *const *keys)
{
    for (; *keys; keys++) {
        if (strncmp(*keys, "msgRate", 7) == 0 || strncmp(*keys, "msgThroughput", 13) == 0)
            rate(o, *keys, 0);
        else
            number(o, *keys, 0);
    }
}

static inline void add_in(json_object *o, const struct traffic *in)
{
    rate(o, "msgRateIn", in->message_rate);
    rate(o, "msgThroughputIn", in->byte_rate);
    rate(o, "averageMsgSize", in->messages ? (double)in->bytes / (double)in->messages : 0);
}

static inline void add_out(json_object *o, const struct traffic *out)
{
    rate(o, "msgRateOut", out->message_rate);
    rate(o, "msgThroughputOut", out->byte_rate);
    number(o, "msgOutCounter", (int64_t)out->messages);
    number(o, "bytesOutCounter", (int64_t)out->bytes);
}

/* Of a consumer, or a subscription. */
static inline void add_consuming(json_object *o, const struct consuming *c)
{
    add_out(o, &c->out);
    rate(o, "msgRateRedeliver", c->again.message_rate);
    rate(o, "messageAckRate", c->acked.message_rate);
    number(o, "lastConsumedFlowTimestamp", (int64_t)c->flowed_ms);
    number(o, "lastConsumedTimestamp", (int64_t)c->delivered_ms);
    number(o, "lastAckedTimestamp", (int64_t)c->acked_ms);
}

#endif
