/* consumer_inbox.h - from MESSAGE frames to messages: checked, decompressed, taken out of their
 * batches, put together from their pieces.
 *
 * Memory:  the inbox holds frames until they are opened; one entry is open at a time.
 * Limits:  what the permits allow (the consumer checks n_frames); at most CHUNKED_MAX large
 * messages of CHUNKED_BYTES_MAX together gather at once, the oldest is given up for a newer one.
 */
#ifndef CLIENT_CONSUMER_INBOX_H
#define CLIENT_CONSUMER_INBOX_H

#include "client/client.h"
#include "client/consumer_acks.h"
#include "common/arena.h"
#include "common/list.h"
#include "proto/pulsar.pb-c.h"

enum { CHUNKED_MAX = 10, CHUNKED_BYTES_MAX = 256 * 1024 * 1024, CHUNKED_IDS_MAX = 64 * 1024 };

struct chunked;

/* The entry that is open. */
struct opened_entry {
    bool active;
    struct message_id id;
    uint32_t redelivery_count;
    Pulsar__Proto__MessageMetadata *meta; /* in the inbox's arena */
    struct slice plain;                   /* the payload, decompressed */
    struct view rest;                     /* of a batch: what is to come */
    unsigned index;
    struct batch_shape shape; /* size 0: no batch; its bits are in the inbox's arena */
};

struct inbox {
    struct list_node frames;
    unsigned n_frames;
    struct arena *arena;        /* of the open entry */
    struct arena *single_arena; /* of the message handed out */
    struct opened_entry open;
    struct list_node chunked; /* oldest first */
    unsigned n_chunked;
    size_t chunked_bytes;
};

void inbox_init(struct inbox *b);
void inbox_clear(struct inbox *b); /* everything that came over a lost connection */
void inbox_drop(struct inbox *b);
/* Takes bytes: the frame of a MESSAGE. */
void inbox_put(struct inbox *b, struct slice bytes, const Pulsar__Proto__CommandMessage *m);

enum inbox_result {
    INBOX_EMPTY,
    INBOX_MESSAGE, /* *out is filled, until the next call */
    INBOX_PIECE,   /* one piece of a large message: nothing to hand out yet */
    INBOX_DAMAGED, /* out->id and *err say which and why */
};
/* The pieces of a message whose last piece is handed out: chunk_ids (without the last). */
struct inbox_next {
    struct received message;
    enum err err;
    unsigned permits;             /* used up by this step: as many as the broker counted */
    struct message_id *chunk_ids; /* gives; NULL: no large message */
    unsigned n_chunk_ids;
    struct batch_shape batch; /* size 0: not in a batch; borrowed until the next call */
};
enum inbox_result inbox_next(struct inbox *b, struct inbox_next *out);

#endif
