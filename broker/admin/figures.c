#include "broker/admin/figures.h"

#include <stdio.h>
#include <string.h>

#include "broker/dispatch/exclusive.h"
#include "broker/topic/explain.h"
#include "broker/topic/producer.h"
#include "broker/topic/subscription.h"

static void number(json_object *o, const char *key, int64_t n)
{
    json_object_object_add(o, key, json_object_new_int64(n));
}

static void text(json_object *o, const char *key, const char *value)
{
    json_object_object_add(o, key, json_object_new_string(value));
}

static void flag(json_object *o, const char *key, bool value)
{
    json_object_object_add(o, key, json_object_new_boolean(value));
}

/* What nobody measures yet. */
static void zeros(json_object *o, const char *const *keys)
{
    for (; *keys; keys++)
        json_object_object_add(o, *keys,
                               strncmp(*keys, "msgRate", 7) == 0 ||
                                       strncmp(*keys, "msgThroughput", 13) == 0
                                   ? json_object_new_double(0)
                                   : json_object_new_int64(0));
}

json_object *figures_position(struct position p)
{
    char at[48];

    snprintf(at, sizeof(at), "%lld:%lld", (long long)p.ledger, (long long)p.entry);
    return json_object_new_string(at);
}

/* ---- who is inside ---- */

static json_object *publisher(const struct topic_producer *p)
{
    static const char *const unknown[] = {"msgRateIn",          "msgThroughputIn", "averageMsgSize",
                                          "chunkedMessageRate", "producerId",      NULL};
    json_object *o = json_object_new_object();

    text(o, "accessMode", "Shared");
    text(o, "producerName", p->name ? p->name : "");
    zeros(o, unknown);
    flag(o, "supportsPartialProducer", false);
    json_object_object_add(o, "metadata", json_object_new_object());
    return o;
}

static json_object *publishers(const struct topic *t)
{
    json_object *list = json_object_new_array();

    list_each(&t->producers, n) json_object_array_add(
        list, publisher(topic_producer_of(list_entry(n, struct guest, node))));
    return list;
}

static json_object *consumer(const struct subscription *s, const struct topic_consumer *c)
{
    static const char *const unknown[] = {"msgRateOut",
                                          "msgThroughputOut",
                                          "bytesOutCounter",
                                          "msgOutCounter",
                                          "msgRateRedeliver",
                                          "messageAckRate",
                                          "chunkedMessageRate",
                                          "avgMessagesPerEntry",
                                          "lastAckedTimestamp",
                                          "lastConsumedTimestamp",
                                          "lastConsumedFlowTimestamp",
                                          NULL};
    json_object *o = json_object_new_object();
    bool shared = s->feed.type == CONSUMER_SHARED;

    text(o, "consumerName", c->name ? c->name : "");
    number(o, "availablePermits", shared ? c->shared.permits : s->feed.exclusive.permits);
    number(o, "unackedMessages", shared ? c->shared.unacked : 0);
    flag(o, "blockedConsumerOnUnackedMsgs", shared && c->shared.blocked);
    zeros(o, unknown);
    json_object_object_add(o, "metadata", json_object_new_object());
    return o;
}

static void rate(json_object *o, const char *key, double n)
{
    json_object_object_add(o, key, json_object_new_double(n));
}

static void add_out(json_object *o, const struct traffic *out)
{
    rate(o, "msgRateOut", out->message_rate);
    rate(o, "msgThroughputOut", out->byte_rate);
    number(o, "msgOutCounter", (int64_t)out->messages);
    number(o, "bytesOutCounter", (int64_t)out->bytes);
}

static void add_in(json_object *o, const struct traffic *in)
{
    rate(o, "msgRateIn", in->message_rate);
    rate(o, "msgThroughputIn", in->byte_rate);
    number(o, "msgInCounter", (int64_t)in->messages);
    number(o, "bytesInCounter", (int64_t)in->bytes);
    rate(o, "averageMsgSize", in->messages ? (double)in->bytes / (double)in->messages : 0);
}

static json_object *consumers(const struct subscription *s)
{
    json_object *list = json_object_new_array();

    if (s)
        list_each(&s->consumers, n) json_object_array_add(
            list, consumer(s, topic_consumer_of(list_entry(n, struct guest, node))));
    return list;
}

/* ---- subscriptions ---- */

/* About: as many bytes as entries, of the ledgers that they are in. */
static int64_t bytes_after(const struct segments *all, struct position p)
{
    int64_t bytes = 0;

    for (unsigned i = 0; i < all->n; i++) {
        const struct segment *s = &all->at[i];
        int64_t left = s->ledger > p.ledger    ? s->entries
                       : s->ledger == p.ledger ? s->entries - p.entry - 1
                                               : 0;
        if (left > 0 && s->entries > 0)
            bytes += (int64_t)((double)s->bytes * (double)left / (double)s->entries);
    }
    return bytes;
}

static const char *type_of(const struct subscription *s)
{
    if (!s || s->n_consumers == 0)
        return "None";
    return s->feed.type == CONSUMER_SHARED ? "Shared" : "Exclusive";
}

struct walk {
    const struct topic *topic;
    json_object *all;
    int64_t backlog_bytes;
};

static json_object *subscription(struct walk *w, const struct cursor *c)
{
    static const char *const unknown[] = {"msgRateRedeliver",
                                          "messageAckRate",
                                          "chunkedMessageRate",
                                          "earliestMsgPublishTimeInBacklog",
                                          "msgDelayed",
                                          "msgRateExpired",
                                          "totalMsgExpired",
                                          "lastExpireTimestamp",
                                          "lastConsumedFlowTimestamp",
                                          "lastConsumedTimestamp",
                                          "lastAckedTimestamp",
                                          "lastMarkDeleteAdvancedTimestamp",
                                          "nonContiguousDeletedMessagesRangesSerializedSize",
                                          NULL};
    const struct subscription *s = subscription_find(w->topic, cursor_name(c));
    struct explanation e = {0};
    json_object *o = json_object_new_object();
    int64_t bytes = bytes_after(managed_ledger_segments(w->topic->ml), cursor_mark_delete(c));

    if (s && explain_here(w->topic, cursor_name(c), &e))
        e = (struct explanation){0};
    number(o, "msgBacklog", cursor_backlog(c));
    number(o, "msgBacklogNoDelayed", cursor_backlog(c));
    number(o, "backlogSize", cursor_backlog(c) ? bytes : 0);
    number(o, "unackedMessages", e.unacked);
    flag(o, "blockedSubscriptionOnUnackedMsgs", e.reason == EXPLAIN_SUBSCRIPTION_UNACKED);
    text(o, "type", type_of(s));
    zeros(o, unknown);
    add_out(o, s ? &s->consuming.out : &(struct traffic){0});
    number(o, "nonContiguousDeletedMessagesRanges", (int64_t)cursor_holes(c));
    json_object_object_add(o, "consumers", consumers(s));
    flag(o, "isDurable", true);
    flag(o, "isReplicated", false);
    flag(o, "allowOutOfOrderDelivery", false);
    json_object_object_add(o, "consumersAfterMarkDeletePosition", json_object_new_object());
    json_object_object_add(o, "subscriptionProperties", json_object_new_object());
    if (cursor_backlog(c) && bytes > w->backlog_bytes)
        w->backlog_bytes = bytes;
    return o;
}

static void add_subscription(void *ctx, struct cursor *c)
{
    struct walk *w = ctx;

    json_object_object_add(w->all, cursor_name(c), subscription(w, c));
}

/* ---- the topic ---- */

static int64_t bytes_of(const struct topic *t)
{
    const struct segments *all = managed_ledger_segments(t->ml);
    int64_t bytes = 0;

    for (unsigned i = 0; i < all->n; i++)
        bytes += all->at[i].bytes;
    return bytes;
}

json_object *figures_stats(const struct topic *t)
{
    static const char *const unknown[] = {"backlogQuotaLimitSize",
                                          "backlogQuotaLimitTime",
                                          "oldestBacklogMessageAgeSeconds",
                                          "publishRateLimitedTimes",
                                          "earliestMsgPublishTimeInBacklogs",
                                          "offloadedStorageSize",
                                          "ongoingTxnCount",
                                          "abortedTxnCount",
                                          "committedTxnCount",
                                          "waitingPublishers",
                                          "delayedMessageIndexSizeInBytes",
                                          "nonContiguousDeletedMessagesRanges",
                                          "nonContiguousDeletedMessagesRangesSerializedSize",
                                          NULL};
    json_object *o = json_object_new_object();
    struct walk w = {.topic = t, .all = json_object_new_object()};

    zeros(o, unknown);
    add_in(o, &t->stats.in);
    add_out(o, &t->stats.out);
    managed_ledger_cursors(t->ml, add_subscription, &w);
    number(o, "storageSize", bytes_of(t));
    number(o, "backlogSize", w.backlog_bytes);
    flag(o, "msgChunkPublished", false);
    json_object_object_add(o, "publishers", publishers(t));
    json_object_object_add(o, "subscriptions", w.all);
    json_object_object_add(o, "replication", json_object_new_object());
    text(o, "deduplicationStatus", "Disabled");
    return o;
}

/* ---- inside ---- */

static json_object *ledgers(const struct segments *all)
{
    json_object *list = json_object_new_array();

    for (unsigned i = 0; i < all->n; i++) {
        json_object *o = json_object_new_object();
        number(o, "ledgerId", all->at[i].ledger);
        number(o, "entries", all->at[i].open ? 0 : all->at[i].entries);
        number(o, "size", all->at[i].open ? 0 : all->at[i].bytes);
        flag(o, "offloaded", false);
        flag(o, "underReplicated", false);
        json_object_array_add(list, o);
    }
    return list;
}

static void add_cursor(void *ctx, struct cursor *c)
{
    struct walk *w = ctx;
    static const char *const unknown[] = {
        "pendingReadOps",        "messagesConsumedCounter",   "cursorLedger",
        "cursorLedgerLastEntry", "lastLedgerSwitchTimestamp", NULL};
    const struct subscription *s = subscription_find(w->topic, cursor_name(c));
    json_object *o = json_object_new_object();

    json_object_object_add(o, "markDeletePosition", figures_position(cursor_mark_delete(c)));
    json_object_object_add(o, "readPosition",
                           figures_position(cursor_next_unacked(c, cursor_mark_delete(c))));
    flag(o, "waitingReadOp", false);
    zeros(o, unknown);
    text(o, "state", "Open");
    flag(o, "active", s && s->n_consumers > 0);
    number(o, "numberOfEntriesSinceFirstNotAckedMessage",
           segments_count(managed_ledger_segments(w->topic->ml), cursor_mark_delete(c),
                          managed_ledger_max_readable(w->topic->ml)));
    number(o, "totalNonContiguousDeletedMessagesRange", (int64_t)cursor_holes(c));
    json_object_object_add(o, "properties", json_object_new_object());
    json_object_object_add(w->all, cursor_name(c), o);
}

static void add_property(void *ctx, const char *key, const char *value)
{
    text(ctx, key, value);
}

json_object *figures_internal(const struct topic *t)
{
    static const char *const unknown[] = {"lastLedgerCreatedTimestamp", "waitingCursorsCount",
                                          "pendingAddEntriesCount", NULL};
    const struct segments *all = managed_ledger_segments(t->ml);
    const struct segment *last = segments_last(all);
    struct walk w = {.topic = t, .all = json_object_new_object()};
    json_object *o = json_object_new_object(), *properties = json_object_new_object();
    int64_t entries = 0;

    for (unsigned i = 0; i < all->n; i++)
        entries += all->at[i].entries;
    zeros(o, unknown);
    number(o, "entriesAddedCounter", entries);
    number(o, "numberOfEntries", entries);
    number(o, "totalSize", bytes_of(t));
    number(o, "currentLedgerEntries", last && last->open ? last->entries : 0);
    number(o, "currentLedgerSize", last && last->open ? last->bytes : 0);
    json_object_object_add(o, "lastConfirmedEntry",
                           figures_position(managed_ledger_max_readable(t->ml)));
    text(o, "state", managed_ledger_state(t->ml));
    json_object_object_add(o, "ledgers", ledgers(all));
    managed_ledger_cursors(t->ml, add_cursor, &w);
    json_object_object_add(o, "cursors", w.all);
    managed_ledger_properties(t->ml, add_property, properties);
    json_object_object_add(o, "properties", properties);
    json_object_object_add(o, "schemaLedgers", json_object_new_array());
    json_object_object_add(o, "compactedLedger", json_object_new_object());
    return o;
}

/* ---- sums ---- */

void figures_add(json_object *into, json_object *other)
{
    json_object_object_foreach(other, key, value)
    {
        json_object *old = json_object_object_get(into, key);
        if (!old)
            json_object_object_add(into, key, json_object_get(value));
        else if (json_object_is_type(old, json_type_int) &&
                 json_object_is_type(value, json_type_int))
            json_object_set_int64(old, json_object_get_int64(old) + json_object_get_int64(value));
        else if (json_object_is_type(old, json_type_object) &&
                 json_object_is_type(value, json_type_object))
            figures_add(old, value);
        else if (json_object_is_type(old, json_type_array) &&
                 json_object_is_type(value, json_type_array))
            for (size_t i = 0; i < json_object_array_length(value); i++)
                json_object_array_add(old, json_object_get(json_object_array_get_idx(value, i)));
    }
}
