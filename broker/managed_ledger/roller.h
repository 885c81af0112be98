/* roller.h - when a ledger has lived long enough; pure.
 *
 * Full (entries or bytes) and not too young, or old.  The greatest age is stretched by up to
 * 5 % a ledger, so that a broker's idle topics do not all roll in one second.  Never an empty
 * one.  pulsar-broker.md B.4.
 */
#ifndef BROKER_MANAGED_LEDGER_ROLLER_H
#define BROKER_MANAGED_LEDGER_ROLLER_H

#include <stdbool.h>
#include <stdint.h>

struct ml_conf;

struct roller_ledger {
    int64_t id;
    int64_t entries, bytes; /* that were sent to it */
    int64_t age_ms;
};

bool roller_due(const struct ml_conf *conf, const struct roller_ledger *l);

#endif
