#include "broker/admin/figures.h"

#include <stdio.h>
#include <string.h>

#include "broker/admin/figures_words.h"
#include "broker/admin/properties.h"
#include "broker/topic/explain.h"
#include "broker/topic/producer.h"
#include "broker/topic/subscription.h"

json_object *figures_position(struct position p)
{
    char at[48];

    snprintf(at, sizeof(at), "%lld:%lld", (long long)p.ledger, (long long)p.entry);
    return json_object_new_string(at);
}

/* ---- who is inside ---- */

static json_object *publishers(const struct topic *t)
{
    json_object *list = json_object_new_array();

    list_each(&t->producers, n) json_object_array_add(
        list, figures_publisher(topic_producer_of(list_entry(n, struct guest, node))));
    return list;
}

/* ---- subscriptions ---- */

int64_t figures_bytes_after(const struct segments *all, struct position p)
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

struct walk {
    const struct topic *topic;
    json_object *all;
    int64_t backlog_bytes;
};

static json_object *subscription(struct walk *w, const struct cursor *c)
{
    static const char *const unknown[] = {"chunkedMessageRate",
                                          "earliestMsgPublishTimeInBacklog",
                                          "msgDelayed",
                                          "msgRateExpired",
                                          "totalMsgExpired",
                                          "lastExpireTimestamp",
                                          "lastMarkDeleteAdvancedTimestamp",
                                          "nonContiguousDeletedMessagesRangesSerializedSize",
                                          NULL};
    const struct subscription *s = subscription_find(w->topic, cursor_name(c));
    struct explanation e = {0};
    json_object *o = json_object_new_object();
    int64_t bytes =
        figures_bytes_after(managed_ledger_segments(w->topic->ml), cursor_mark_delete(c));

    if (s && explain_here(w->topic, cursor_name(c), &e))
        e = (struct explanation){0};
    number(o, "msgBacklog", cursor_backlog(c));
    number(o, "msgBacklogNoDelayed", cursor_backlog(c));
    number(o, "backlogSize", cursor_backlog(c) ? bytes : 0);
    number(o, "unackedMessages", e.unacked);
    flag(o, "blockedSubscriptionOnUnackedMsgs", e.reason == EXPLAIN_SUBSCRIPTION_UNACKED);
    text(o, "type", figures_type(s));
    zeros(o, unknown);
    add_consuming(o, s ? &s->consuming : &(struct consuming){0});
    if (s && s->n_consumers > 0 && s->feed.type == CONSUMER_EXCLUSIVE)
        text(o, "activeConsumerName",
             topic_consumer_of(list_entry(s->consumers.next, struct guest, node))->name);
    number(o, "nonContiguousDeletedMessagesRanges", (int64_t)cursor_holes(c));
    json_object_object_add(o, "consumers", figures_consumers(s));
    flag(o, "isDurable", !cursor_is_passing(c));
    flag(o, "isReplicated", false);
    flag(o, "allowOutOfOrderDelivery", false);
    json_object_object_add(o, "consumersAfterMarkDeletePosition", json_object_new_object());
    json_object_object_add(o, "subscriptionProperties", properties_shown(cursor_properties(c)));
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

static json_object *stored(const struct topic *t)
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
                                          "delayedMessageIndexSizeInBytes",
                                          "nonContiguousDeletedMessagesRanges",
                                          "nonContiguousDeletedMessagesRangesSerializedSize",
                                          NULL};
    json_object *o = json_object_new_object();
    struct walk w = {.topic = t, .all = json_object_new_object()};

    zeros(o, unknown);
    add_in(o, &t->stats.in);
    number(o, "msgInCounter", (int64_t)t->stats.in.messages);
    number(o, "bytesInCounter", (int64_t)t->stats.in.bytes);
    number(o, "waitingPublishers", t->access.n_waiting);
    if (t->access.epoch >= 0)
        number(o, "topicEpoch", t->access.epoch);
    add_out(o, &t->stats.out);
    subscription_cursors(t, add_subscription, &w);
    number(o, "storageSize", bytes_of(t));
    number(o, "backlogSize", w.backlog_bytes);
    flag(o, "msgChunkPublished", false);
    json_object_object_add(o, "publishers", publishers(t));
    json_object_object_add(o, "subscriptions", w.all);
    json_object_object_add(o, "replication", json_object_new_object());
    text(o, "deduplicationStatus", "Disabled");
    return o;
}

json_object *figures_stats(const struct topic *t)
{
    return topic_is_stored(t) ? stored(t) : figures_fleeting(t);
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

static json_object *stored_internal(const struct topic *t)
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
    subscription_cursors(t, add_cursor, &w);
    json_object_object_add(o, "cursors", w.all);
    managed_ledger_properties(t->ml, add_property, properties);
    json_object_object_add(o, "properties", properties);
    json_object_object_add(o, "schemaLedgers", json_object_new_array());
    json_object_object_add(o, "compactedLedger", json_object_new_object());
    return o;
}

json_object *figures_internal(const struct topic *t)
{
    return topic_is_stored(t) ? stored_internal(t) : figures_fleeting_internal(t);
}

/* ---- sums ---- */

static bool ends_with(const char *key, const char *end)
{
    const size_t len = strlen(key), n = strlen(end);

    return len >= n && strcmp(key + len - n, end) == 0;
}

/* Of times the last counts; the epoch of one partition says nothing of another's. */
static void add_number(const char *key, json_object *old, json_object *value)
{
    const int64_t a = json_object_get_int64(old), b = json_object_get_int64(value);

    if (json_object_is_type(old, json_type_double))
        json_object_set_double(old, json_object_get_double(old) + json_object_get_double(value));
    else if (ends_with(key, "Timestamp"))
        json_object_set_int64(old, a > b ? a : b);
    else if (strcmp(key, "topicEpoch") != 0)
        json_object_set_int64(old, a + b);
}

static void add_value(json_object *into, const char *key, json_object *value)
{
    json_object *old = json_object_object_get(into, key);
    const json_type type = json_object_get_type(value);

    if (!old)
        json_object_object_add(into, key, json_object_get(value));
    else if (json_object_get_type(old) != type)
        return;
    else if (type == json_type_int || type == json_type_double)
        add_number(key, old, value);
    else if (type == json_type_object)
        figures_add(old, value);
    else if (type == json_type_array)
        for (size_t i = 0; i < json_object_array_length(value); i++)
            json_object_array_add(old, json_object_get(json_object_array_get_idx(value, i)));
}

void figures_add(json_object *into, json_object *other)
{
    json_object_object_foreach(other, key, value) add_value(into, key, value);
    const double messages = json_object_get_double(json_object_object_get(into, "msgInCounter"));
    json_object *average = json_object_object_get(into, "averageMsgSize");
    if (average && messages > 0)
        json_object_set_double(
            average,
            json_object_get_double(json_object_object_get(into, "bytesInCounter")) / messages);
}
