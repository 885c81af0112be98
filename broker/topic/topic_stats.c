#include "broker/topic/topic_stats.h"

#include "common/mem.h"

static unsigned place_of(const uint64_t *bounds, unsigned n, uint64_t value)
{
    unsigned i = 0;

    while (i < n && value > bounds[i])
        i++;
    return i;
}

void topic_stats_stored(struct topic_stats *s, uint64_t messages, uint64_t bytes, uint64_t us)
{
    static const uint64_t latency[LATENCY_BUCKETS - 1] = {500,   1000,   5000,   10000,  20000,
                                                          50000, 100000, 200000, 1000000};
    static const uint64_t size[SIZE_BUCKETS - 1] = {128,  512,   1024,   2048,
                                                    4096, 16384, 102400, 1048576};
    if (!s->spreads)
        s->spreads = mem_new(struct spreads);
    struct spread *g = &s->spreads->gathering;

    traffic_note(&s->in, messages, bytes);
    g->latency[place_of(latency, LATENCY_BUCKETS - 1, us)]++;
    g->size[place_of(size, SIZE_BUCKETS - 1, bytes)]++;
    g->latency_us += us;
    g->bytes += bytes;
    g->entries++;
}

void traffic_tick(struct traffic *t, double seconds)
{
    t->message_rate = (double)(t->messages - t->last_messages) / seconds;
    t->byte_rate = (double)(t->bytes - t->last_bytes) / seconds;
    t->last_messages = t->messages;
    t->last_bytes = t->bytes;
}

void consuming_tick(struct consuming *c, double seconds)
{
    traffic_tick(&c->out, seconds);
    traffic_tick(&c->again, seconds);
    traffic_tick(&c->acked, seconds);
}

static void turn_over(struct topic_stats *s)
{
    s->spreads->shown = s->spreads->gathering;
    s->spreads->gathering = (struct spread){0};
    if (s->spreads->shown.entries > 0)
        return;
    mem_free(s->spreads);
    s->spreads = NULL;
}

void topic_stats_tick(struct topic_stats *s, uint64_t now_us)
{
    const double seconds = (double)(now_us - s->ticked_us) / 1e6;

    if (now_us <= s->ticked_us)
        return;
    traffic_tick(&s->in, seconds);
    traffic_tick(&s->out, seconds);
    s->write_rate = s->spreads ? (double)s->spreads->gathering.entries / seconds : 0;
    if (s->spreads)
        turn_over(s);
    s->ticked_us = now_us;
}

const struct spread *topic_stats_spread(const struct topic_stats *s)
{
    static const struct spread none;

    return s->spreads ? &s->spreads->shown : &none;
}

void topic_stats_drop(struct topic_stats *s)
{
    mem_free(s->spreads);
    *s = (struct topic_stats){0};
}
