/* feed.h - the hands of the dispatcher: reads, sends, acknowledges markers, waits.
 *
 * Threads: the topic's loop.
 */
#ifndef BROKER_TOPIC_FEED_H
#define BROKER_TOPIC_FEED_H

#include "broker/dispatch/exclusive.h"
#include "broker/managed_ledger/managed_ledger.h"
#include "broker/topic/consumer.h"

struct feed {
    struct exclusive core;
    struct topic_consumer *consumer; /* NULL: none */
    struct ml_read read;
    struct timer retry;
};

void feed_init(struct feed *f, const struct topics_env *env);
void feed_start(struct feed *f, struct topic_consumer *c); /* from its cursor's mark-delete */
void feed_stop(struct feed *f);
void feed_rewind(struct feed *f);
void feed_grew(struct feed *f);

#endif
