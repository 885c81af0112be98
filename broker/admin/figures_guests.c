/* What is known of the producers and consumers of a topic. */
#include "broker/admin/figures.h"
#include "broker/admin/figures_words.h"
#include "broker/topic/producer.h"
#include "broker/topic/subscription.h"

static json_object *words(const struct pairs *p)
{
    json_object *o = json_object_new_object();

    for (unsigned i = 0; p && i < p->n; i++)
        text(o, p->at[i].name, p->at[i].value);
    return o;
}

static void add_guest(json_object *o, const struct guest *g)
{
    char since[GUEST_SINCE_TEXT];

    guest_since(g, since);
    text(o, "address", g->who ? g->who->address : "");
    text(o, "clientVersion", g->who ? g->who->client : "");
    text(o, "connectedSince", since);
    json_object_object_add(o, "metadata", words(g->metadata));
}

json_object *figures_publisher(const struct topic_producer *p)
{
    static const char *const modes[] = {[ACCESS_SHARED] = "Shared",
                                        [ACCESS_EXCLUSIVE] = "Exclusive",
                                        [ACCESS_WAIT] = "WaitForExclusive",
                                        [ACCESS_FENCE] = "ExclusiveWithFencing"};
    json_object *o = json_object_new_object();

    text(o, "accessMode", modes[p->mode]);
    number(o, "producerId", (int64_t)p->id);
    text(o, "producerName", p->name ? p->name : "");
    add_in(o, &p->in);
    rate(o, "chunkedMessageRate", 0);
    flag(o, "supportsPartialProducer", false);
    add_guest(o, &p->guest);
    return o;
}

json_object *figures_consumer(const struct topic_consumer *c)
{
    const struct consuming *all = &c->consuming;
    json_object *o = json_object_new_object();
    struct consumer_report r;

    topic_consumer_report(c, &r);
    text(o, "consumerName", c->name ? c->name : "");
    number(o, "availablePermits", r.permits);
    number(o, "unackedMessages", r.unacked);
    flag(o, "blockedConsumerOnUnackedMsgs", r.blocked);
    number(o, "avgMessagesPerEntry",
           all->entries ? (int64_t)((all->out.messages + all->entries / 2) / all->entries) : 0);
    rate(o, "chunkedMessageRate", 0);
    add_consuming(o, all);
    add_guest(o, &c->guest);
    return o;
}

json_object *figures_consumers(const struct subscription *s)
{
    json_object *list = json_object_new_array();

    if (s)
        list_each(&s->consumers, n) json_object_array_add(
            list, figures_consumer(topic_consumer_of(list_entry(n, struct guest, node))));
    return list;
}

const char *figures_type(const struct subscription *s)
{
    if (!s || s->n_consumers == 0)
        return "None";
    return consumer_type_name(s->feed.type);
}
