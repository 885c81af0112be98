/* on_subscription.h - what all that is done to one subscription has in common.
 *
 * Threads: subscription_at() on the topic's loop, the rest on a clerk's.
 */
#ifndef BROKER_ADMIN_ON_SUBSCRIPTION_H
#define BROKER_ADMIN_ON_SUBSCRIPTION_H

#include "broker/admin/visits.h"
#include "broker/topic/subscription.h"

/* Segment 4 of the path names it.  parts: of a partitioned topic, of each partition; else that is
 * refused.  `fill` may be NULL; false: it has answered. */
void subscription_job(struct job *j, bool parts, void (*at)(struct visit *v, struct topic *t),
                      bool (*fill)(struct job *j, struct visit *v));
/* NULL: ended with 404, or because it is being made, moved or deleted. */
struct subscription *subscription_at(struct visit *v, struct topic *t);
bool position_read(json_object *o, struct position *out); /* {ledgerId, entryId} */

#endif
