/* slow_publish.h - a publish that took too long: where the time went, as one line of the log.
 *
 *   came -> held -> added -> queue | waits for a ledger -> sent -> quorum -> order -> done -> reply
 *
 * The stamps are the loops' readings of the clock, taken once a round: nothing is measured for
 * this that was not known anyway.
 *
 * Threads: any; the publish is done.
 */
#ifndef BROKER_TOPIC_SLOW_PUBLISH_H
#define BROKER_TOPIC_SLOW_PUBLISH_H

#include "broker/topic/producer.h"

struct log_limit;

enum publish_stage {
    STAGE_HELD,    /* on its way to the topic's loop, behind the producer's others, no budget */
    STAGE_QUEUE,   /* in the managed ledger, before it was sent to the bookies */
    STAGE_BOOKIES, /* of that time: too few bookies for a ledger */
    STAGE_CLOSE,   /* the ledger before had to be closed */
    STAGE_CREATE,  /* the next one had to be created */
    STAGE_NODE,    /* the topic's node had to list it */
    STAGE_LOST,    /* with a ledger that failed it */
    STAGE_QUORUM,  /* from sending to the Qa-th answer */
    STAGE_ORDER,   /* stored, but earlier ones were not */
    STAGE_REPLY,   /* back to the connection, behind the receipts before it */
    STAGES
};

/* Us of each; their sum is about the whole. */
void slow_publish_stages(const struct publish *m, uint64_t now_us, uint64_t us[STAGES]);
/* "publish.slow", unless too many were written this second. */
void slow_publish_tell(struct log_limit *limit, const char *topic, const char *producer,
                       const struct publish *m, uint64_t now_us);

#endif
