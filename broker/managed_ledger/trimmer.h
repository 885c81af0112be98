/* trimmer.h - which ledgers nobody needs any more; pure.
 *
 * Those before the slowest durable cursor's durable mark-delete, oldest first, as long as
 * either retention limit is exceeded; never the last one.  pulsar-broker.md B.5.
 */
#ifndef BROKER_MANAGED_LEDGER_TRIMMER_H
#define BROKER_MANAGED_LEDGER_TRIMMER_H

#include <stdint.h>

#include "broker/managed_ledger/position.h"
#include "broker/managed_ledger/segments.h"

struct ml_conf;

/* How many from the front.  `acked`: everything up to here is acknowledged by every durable
 * cursor; POSITION_LATEST when there is none. */
unsigned trimmer_count(const struct segments *s, struct position acked, const struct ml_conf *conf,
                       int64_t now_ms);

#endif
