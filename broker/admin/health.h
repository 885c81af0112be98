/* health.h - can this broker store a message and read it back?  It tries.
 *
 *   ask -> [a try is under way: join it] -> heartbeat log opened, once -> add -> read -> "ok"
 *                                                \-- or 503 with what failed, or in HEALTH_S
 *
 * The log is pulsar/<broker id>/persistent/healthcheck, where Pulsar's tools expect it.  It is
 * kept open, so that being asked every second costs an entry, not a ledger; it has no cursor
 * and is trimmed as soon as it rolls.
 *
 * Threads: the admin's loop, which is that of the managed ledgers it is made with.
 */
#ifndef BROKER_ADMIN_HEALTH_H
#define BROKER_ADMIN_HEALTH_H

#include "broker/admin/routes.h"

enum { HEALTH_S = 10 };

struct health *health_open(struct admin *a); /* gives; holds the admin until it is closed */
void health_ask(struct health *h, struct http_request *r); /* answers it */
void health_close(struct health **h);                      /* takes; what waits is answered */

#endif
