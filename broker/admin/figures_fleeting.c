/* What is known of a topic that is not stored: who is inside, what passed, what was dropped. */
#include "broker/admin/figures.h"
#include "broker/admin/figures_words.h"
#include "broker/topic/producer.h"
#include "broker/topic/subscription.h"

static void add_dropped(json_object *o, const struct traffic *dropped)
{
    rate(o, "msgDropRate", dropped->message_rate);
    number(o, "msgDropCounter", (int64_t)dropped->messages);
}

static void add_up(struct traffic *sum, const struct traffic *one)
{
    sum->messages += one->messages;
    sum->message_rate += one->message_rate;
}

static json_object *publishers(const struct topic *t, struct traffic *dropped)
{
    json_object *list = json_object_new_array();

    list_each(&t->producers, n)
    {
        const struct topic_producer *p = topic_producer_of(list_entry(n, struct guest, node));
        json_object *o = figures_publisher(p);
        add_dropped(o, &p->dropped);
        add_up(dropped, &p->dropped);
        json_object_array_add(list, o);
    }
    return list;
}

static json_object *subscription(const struct subscription *s)
{
    static const char *const none[] = {
        "msgBacklog",         "msgBacklogNoDelayed", "backlogSize",
        "unackedMessages",    "msgDelayed",          "msgRateExpired",
        "chunkedMessageRate", "totalMsgExpired",     NULL};
    json_object *o = json_object_new_object();

    zeros(o, none);
    text(o, "type", figures_type(s));
    add_consuming(o, &s->consuming);
    add_dropped(o, &s->dropped);
    flag(o, "blockedSubscriptionOnUnackedMsgs", false);
    json_object_object_add(o, "consumers", figures_consumers(s));
    flag(o, "isDurable", false);
    flag(o, "isReplicated", false);
    json_object_object_add(o, "subscriptionProperties", json_object_new_object());
    return o;
}

static json_object *subscriptions(const struct topic *t, struct traffic *dropped)
{
    json_object *all = json_object_new_object();

    list_each(&t->subscriptions, n)
    {
        const struct subscription *s = list_entry(n, struct subscription, node);
        add_up(dropped, &s->dropped);
        json_object_object_add(all, s->name, subscription(s));
    }
    return all;
}

json_object *figures_fleeting(const struct topic *t)
{
    static const char *const none[] = {"storageSize", "backlogSize", "offloadedStorageSize", NULL};
    json_object *o = json_object_new_object();
    struct traffic dropped = {0};

    zeros(o, none);
    add_in(o, &t->stats.in);
    number(o, "msgInCounter", (int64_t)t->stats.in.messages);
    number(o, "bytesInCounter", (int64_t)t->stats.in.bytes);
    number(o, "waitingPublishers", t->access.n_waiting);
    if (t->access.epoch >= 0)
        number(o, "topicEpoch", t->access.epoch);
    add_out(o, &t->stats.out);
    json_object_object_add(o, "publishers", publishers(t, &dropped));
    json_object_object_add(o, "subscriptions", subscriptions(t, &dropped));
    json_object_object_add(o, "replication", json_object_new_object());
    add_dropped(o, &dropped);
    return o;
}

static void add_cursor(json_object *all, const struct subscription *s)
{
    json_object *o = json_object_new_object();

    flag(o, "active", s->n_consumers > 0);
    json_object_object_add(all, s->name, o);
}

json_object *figures_fleeting_internal(const struct topic *t)
{
    static const char *const none[] = {"numberOfEntries", "totalSize", "currentLedgerEntries",
                                       "currentLedgerSize", NULL};
    json_object *o = json_object_new_object(), *cursors = json_object_new_object();

    zeros(o, none);
    number(o, "entriesAddedCounter", (int64_t)t->passed);
    list_each(&t->subscriptions, n) add_cursor(cursors, list_entry(n, struct subscription, node));
    json_object_object_add(o, "ledgers", json_object_new_array());
    json_object_object_add(o, "cursors", cursors);
    return o;
}
