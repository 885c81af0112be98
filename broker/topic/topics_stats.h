/* topics_stats.h - what the topics of a loop count together, and the clock of their rates.
 *
 * One timer a loop, none a topic: at its time it walks over the topics, a few a round.
 *
 * Threads: the loop's.
 */
#ifndef BROKER_TOPIC_TOPICS_STATS_H
#define BROKER_TOPIC_TOPICS_STATS_H

#include "broker/managed_ledger/managed_ledger.h"
#include "broker/topic/topics.h"
#include "common/metric.h"

struct topics_stats {
    struct topics *topics;
    struct histogram publish_us; /* from coming in to stored */
    struct ml_figures last;      /* of the loop's managed ledgers, when the interval began */
    double hits_rate, misses_rate, evictions_rate; /* of their cache, a second */
    uint64_t ticked_us;
    struct timer tick;
    struct topics_walk walk;
    bool walking;
};

void topics_stats_start(struct topics_stats *s, struct topics *t);
void topics_stats_stop(struct topics_stats *s);

#endif
