/* topic_stats.h - what a topic and its subscriptions count, and how much that was of late.
 *
 *   note ... note --every statsUpdateFrequencyInSecs--> rates, and the spread of that time
 *
 * Spreads are those of the last interval, as Pulsar's are: not since the beginning.
 *
 * Memory:  embedded; end it with topic_stats_drop().
 * Threads: the topic's loop.
 */
#ifndef BROKER_TOPIC_TOPIC_STATS_H
#define BROKER_TOPIC_TOPIC_STATS_H

#include <stddef.h>
#include <stdint.h>

/* 0.5, 1, 5, 10, 20, 50, 100, 200, 1000 ms and above; 128, 512 bytes, 1, 2, 4, 16, 100 KB, 1 MB
 * and above. */
enum { LATENCY_BUCKETS = 10, SIZE_BUCKETS = 9 };

struct traffic {
    uint64_t messages, bytes;
    uint64_t last_messages, last_bytes; /* when the interval began */
    double message_rate, byte_rate;     /* a second, of the interval before */
};

static inline void traffic_note(struct traffic *t, uint64_t messages, uint64_t bytes)
{
    t->messages += messages;
    t->bytes += bytes;
}
void traffic_tick(struct traffic *t, double seconds);

/* What a consumer, or a subscription through all of them, was given and gave back. */
struct consuming {
    struct traffic out;
    struct traffic again; /* messages of it that had been delivered before */
    struct traffic acked; /* messages; of an Exclusive one about: by its average entry */
    uint64_t entries;     /* of `out` */
    uint64_t delivered_ms, acked_ms, flowed_ms; /* since 1970, the last; 0: never */
};
void consuming_tick(struct consuming *c, double seconds);

struct spread {
    uint32_t latency[LATENCY_BUCKETS], size[SIZE_BUCKETS];
    uint64_t latency_us, bytes; /* sums */
    uint64_t entries;
};

/* Of one to which nothing was published of late there are none. */
struct spreads {
    struct spread gathering, shown;
};

struct topic_stats {
    struct traffic in, out;
    struct spreads *spreads; /* NULL: both are empty */
    double write_rate;       /* entries a second */
    uint64_t ticked_us;
};

/* One entry, us after it came in. */
void topic_stats_stored(struct topic_stats *s, uint64_t messages, uint64_t bytes, uint64_t us);
void topic_stats_tick(struct topic_stats *s, uint64_t now_us);
const struct spread *topic_stats_spread(const struct topic_stats *s); /* borrows until a tick */
void topic_stats_drop(struct topic_stats *s); /* what it holds: it is zeroed, and may go on */

#endif
