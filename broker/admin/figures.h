/* figures.h - what is known of a loaded topic, in the JSON that pulsar-admin and dashboards read.
 *
 * Names are Pulsar's (pulsar-broker.md F.4); what is not measured is 0, so that who adds them
 * up goes on working.
 *
 * Memory:  gives.
 * Threads: the topic's loop.
 */
#ifndef BROKER_ADMIN_FIGURES_H
#define BROKER_ADMIN_FIGURES_H

#include <json-c/json.h>

#include "broker/topic/topic.h"

struct topic_consumer;

json_object *figures_stats(const struct topic *t);    /* TopicStats */
json_object *figures_internal(const struct topic *t); /* PersistentTopicInternalStats */

json_object *figures_fleeting(const struct topic *t); /* of one that is not stored */
json_object *figures_fleeting_internal(const struct topic *t);

json_object *figures_consumers(const struct subscription *s); /* NULL: nobody */
const char *figures_type(const struct subscription *s);       /* "Shared"; NULL: "None" */
json_object *figures_publisher(const struct topic_producer *p);
json_object *figures_consumer(const struct topic_consumer *c);

/* Of two that are figures: numbers are added, objects too, the rest is that of `into`. */
void figures_add(json_object *into, json_object *other);

/* About: as many bytes as entries, of the ledgers that they are in. */
int64_t figures_bytes_after(const struct segments *all, struct position p);

/* "ledger:entry" */
json_object *figures_position(struct position p);

#endif
