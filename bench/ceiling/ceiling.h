/* ceiling.h - a bare pipeline of LGM's shape and nothing else: what this machine could do at best.
 *
 *   producer -> relay -> 3 sinks, each: journal (synced in groups) and entry log, O_DIRECT
 *                 |  <- acks; Qa of them: receipt -> producer
 *                 +---> consumer (what is confirmed, out of the relay's ring)
 *
 * A process each, TCP over loopback, epoll, a checksum at every hop.  No protocol, no topics, no
 * metadata, no cursors, no index, no flow control but rings that are full.  Bytes are received into
 * a ring that is at once what is written to disk and what is sent on.
 *
 * Threads: a process has one, a sink three: its own, the journal's, the entry log's.
 */
#ifndef BENCH_CEILING_CEILING_H
#define BENCH_CEILING_CEILING_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "common/percentiles.h"

enum { SINKS = 3, PROCESSES = SINKS + 3, RECEIVE_MAX = 1 << 20 };

struct options {
    uint64_t batch, size; /* messages an entry, bytes a message */
    uint64_t write_quorum, ack_quorum;
    uint64_t window; /* entries in flight */
    double seconds, warmup_s;
    double rate;    /* entries a second; 0: as many as go */
    bool disk;      /* else sinks acknowledge what they have received */
    bool entry_log; /* besides the journal */
    bool consumer;
    const char *dir;
};

static inline unsigned process_count(const struct options *o)
{
    return PROCESSES - !o->consumer;
}

/* Before every entry. */
struct entry_head {
    uint32_t len, crc; /* of what follows */
    uint64_t id;       /* the relay's */
    uint64_t due_ns;   /* when it was to be sent */
};

struct quantiles {
    double mean, p50, p95, p99, p999, p9999, max; /* us */
};

/* What a process says at its end. */
struct result {
    char name[16];
    double user_s, system_s;
    uint64_t entries; /* since it was warm, as the next */
    uint64_t minor_faults, switches;
    uint64_t flushes, flushed; /* a sink's journal */
    double seconds;            /* the producer's */
    uint64_t confirmed;        /* the producer's, in those seconds */
    struct quantiles times;    /* the producer's: until the receipt; the consumer's: until there */
};

struct usage {
    double user_s, system_s;
    uint64_t minor_faults, switches;
};

/* One page that all processes have. */
struct shared {
    _Atomic unsigned ready;
    _Atomic bool warm;
    struct result results[PROCESSES];
};

/* A process's own: what it has counted since it was warm. */
struct account {
    struct shared *shared;
    struct result *result;
    struct usage base;
    bool is_warm;
};
void account_open(struct account *a, struct shared *s, unsigned place, const char *name);
void account_ready(struct account *a); /* and waits for nobody */
static inline void account_note(struct account *a, uint64_t entries);
void account_warm(struct account *a); /* the others are warm: forget what was counted */
void account_times(struct account *a, const struct percentiles *p);
void account_close(struct account *a) __attribute__((noreturn)); /* ends the process */

static inline bool account_is_warm(struct account *a)
{
    if (!a->is_warm && atomic_load_explicit(&a->shared->warm, memory_order_relaxed))
        account_warm(a);
    return a->is_warm;
}

static inline void account_note(struct account *a, uint64_t entries)
{
    (void)account_is_warm(a);
    a->result->entries += entries;
}

uint64_t now_ns(void);
void die(const char *what) __attribute__((noreturn)); /* with errno's text */

/* The whole life of each.  Sockets are connected or listen already. */
void producer_run(const struct options *o, struct account *a, uint16_t relay_port);
void relay_run(const struct options *o, struct account *a, int for_producer, int for_consumer,
               const uint16_t *sink_ports);
void sink_run(const struct options *o, struct account *a, unsigned number, int listener);
void consumer_run(const struct options *o, struct account *a, uint16_t relay_port);

#endif
