/* client.h - a client of the Pulsar protocol: what `lgm`, geo-replication and tests speak with.
 *
 * Producers batch, compress, and after a lost connection resend what was not acknowledged, in
 * order.  Consumers keep a queue that FLOW fills, and subscribe again by themselves.
 *
 *   producer_send -> batch -> connection (one a broker) -> receipt -> send->done()
 *   connection -> MESSAGE -> decompress, unbatch, join chunks -> consumer handler
 *
 * Memory:  payloads given to producer_send are copied; a received message is borrowed for the
 *          length of the callback.
 * Threads: everything on the client's loop (client_loop()), callbacks too.
 * Limits:  producer: conf.pending_max messages and conf.pending_bytes wait, then ERR_BUSY (go on
 * after the next done()); consumer: conf.queue_size permits.
 */
#ifndef CLIENT_CLIENT_H
#define CLIENT_CLIENT_H

#include <stdbool.h>
#include <stdint.h>

#include "common/buf.h"
#include "common/err.h"
#include "common/loop.h"
#include "proto/compress.h"

struct client;
struct producer;
struct consumer;
struct tls;

struct client_conf {
    const char *url;               /* pulsar://host:port[,host:port...] or pulsar+ssl:// */
    struct tls *tls;               /* for pulsar+ssl */
    uint64_t operation_timeout_us; /* lookups, creations; 0: 30 s */
    uint64_t keep_alive_us;        /* a silent broker is given up after twice as long; 0: 30 s */
};

MUST_CHECK enum err client_open(struct client **out, struct loop *home,
                                const struct client_conf *conf); /* ERR_MALFORMED: the url */
/* Producers and consumers that are still open end with it: what is pending is told ERR_CLOSED
 * before it returns, their pointers are void.  Their memory goes in the loop's next round. */
void client_close(struct client **c);

/* How many partitions a topic has, 0: it is an ordinary one; made now where topics are made on
 * first use.  They are named TOPIC-partition-0 and so on, each a topic of its own.  `text` may be
 * NULL. */
void client_partitions(struct client *c, const char *topic,
                       void (*done)(void *ctx, enum err err, const char *text, unsigned partitions),
                       void *ctx);

struct message_id {
    int64_t ledger, entry;
    int32_t partition;   /* -1: none */
    int32_t batch_index; /* -1: not in a batch */
};
/* Where a reader begins: with the oldest message there is, or with the next that is published. */
#define MESSAGE_EARLIEST \
    ((struct message_id){.ledger = -1, .entry = -1, .partition = -1, .batch_index = -1})
#define MESSAGE_LATEST    \
    ((struct message_id){ \
        .ledger = INT64_MAX, .entry = INT64_MAX, .partition = -1, .batch_index = -1})

struct property {
    const char *key, *value;
};

/* ---- producing ------------------------------------------------------------------------------ */

struct producer_conf {
    const char *topic;
    const char *name; /* NULL: the broker gives one */
    enum compression compression;
    bool batching;
    unsigned batch_max;       /* messages; 0: 1,000 */
    size_t batch_bytes;       /* 0: 128 KiB */
    uint64_t batch_delay_us;  /* 0: 1 ms */
    unsigned pending_max;     /* 0: 1,000 */
    size_t pending_bytes;     /* 0: 64 MiB */
    uint64_t send_timeout_us; /* of each message; 0: none: it waits for as long as it takes */
    bool chunking;            /* messages over the broker's limit go in pieces */
    void (*ready)(struct producer *p, void *ctx); /* first creation; may be NULL */
    /* Before a send goes out a second time after a reconnect, oldest first; may be NULL.  Nothing
     * is to be asked of the producer from here. */
    void (*resent)(void *ctx, uint64_t sequence_id);
    void (*failed)(void *ctx, enum err err, const char *text); /* for good; may be NULL */
    void *ctx;
};

struct send {
    const void *payload; /* copied by producer_send(), as are key and properties */
    size_t len;
    const char *key; /* NULL: none; a batch has messages of one key only */
    const struct property *properties;
    unsigned n_properties;
    uint64_t event_time; /* ms; 0: none */
    void (*done)(struct send *s, enum err err, struct message_id id);
    void *ctx;
    uint64_t sequence_id; /* set by producer_send() */
};

/* ready() or failed() tells how it went. */
struct producer *producer_open(struct client *c, const struct producer_conf *conf);
/* After ready().  s stays put until done().  ERR_BUSY: nothing was taken; ERR_NOT_READY before
 * ready(); ERR_CLOSED after failed(); ERR_TOO_BIG: over the broker's limit and not chunking, or
 * with key and properties that leave no room for pieces. */
MUST_CHECK enum err producer_send(struct producer *p, struct send *s);
void producer_flush(struct producer *p); /* sends the batch that gathers now */
unsigned producer_pending(const struct producer *p);
const char *producer_name(const struct producer *p);
/* Flushes, waits for what is pending, closes; done() may be NULL.  The producer is gone then. */
void producer_close(struct producer **p, void (*done)(void *ctx), void *ctx);

/* ---- consuming ------------------------------------------------------------------------------ */

enum subscription_type { SUB_EXCLUSIVE = 0, SUB_SHARED = 1, SUB_FAILOVER = 2, SUB_KEY_SHARED = 3 };

struct received {
    struct message_id id;
    struct view payload;
    const char *key; /* NULL: none */
    const struct property *properties;
    unsigned n_properties;
    const char *producer_name;
    uint64_t sequence_id;
    uint64_t publish_time; /* ms */
    uint64_t event_time;   /* ms; 0: none */
    uint32_t redelivery_count;
    const char *topic;
};

/* A reader is a consumer whose place nobody keeps but itself: it begins after a message, what it
 * hands out it acknowledges by itself, and after a lost connection it goes on behind what it handed
 * out last.  One that has handed out nothing begins where it began. */
struct consumer_conf {
    const char *topic;
    const char *subscription; /* of a reader NULL: a name of its own */
    const char *name;
    enum subscription_type type;
    bool earliest; /* where a new subscription begins; else at the latest */
    bool reader;
    struct message_id after; /* of a reader */
    unsigned queue_size;     /* permits; 0: 1,000 */
    void (*ready)(struct consumer *c, void *ctx);
    void (*received)(struct consumer *c, void *ctx, const struct received *m);
    /* A message that cannot be opened (checksum, decompression, half a chunk): it was not
     * acknowledged. */
    void (*damaged)(struct consumer *c, void *ctx, struct message_id id, enum err err);
    void (*failed)(void *ctx, enum err err, const char *text); /* for good */
    void *ctx;
};

struct consumer *consumer_open(struct client *c, const struct consumer_conf *conf);
/* An entry is acknowledged to the broker once every message of its batch is.  Acks are gathered for
 * at most 10 ms. */
void consumer_ack(struct consumer *c, struct message_id id); /* of a batch: one that was handed
                                                                out since the last reconnect */
void consumer_ack_upto(struct consumer *c, struct message_id id);
void consumer_pause(struct consumer *c); /* no more received() until consumer_resume() */
void consumer_resume(struct consumer *c);
/* Waits until the acks given so far are with the broker (and answered).  An error: some were
 * refused, or the consumer has ended. */
void consumer_flush(struct consumer *c, void (*done)(void *ctx, enum err err), void *ctx);
/* Afterwards nothing more is received; close it still. */
void consumer_unsubscribe(struct consumer *c, void (*done)(void *ctx, enum err err), void *ctx);
void consumer_close(struct consumer **c, void (*done)(void *ctx), void *ctx);

#endif
