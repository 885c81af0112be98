/* properties.h - words of users, in JSON; those of the system's own are neither seen nor set. */
#ifndef BROKER_ADMIN_PROPERTIES_H
#define BROKER_ADMIN_PROPERTIES_H

#include <json-c/json.h>

#include "broker/admin/jobs.h"
#include "broker/managed_ledger/pairs.h"

/* Of a topic.  The second answers when they are not (400). */
bool properties_is_private(const char *key);
bool properties_fine(struct job *j, json_object *o);

/* Of a subscription: gives an object; and false, when they are no texts, or too many: answered. */
json_object *properties_shown(const struct pairs *p);
bool properties_read(struct job *j, json_object *o, struct pairs *out);

#endif
