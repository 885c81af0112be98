/* message.h - what is inside an entry of a topic.
 *
 *   [ u16 0x0e02 | u32 size | BrokerEntryMetadata ]
 *   u16 0x0e01 | u32 crc | u32 size | MessageMetadata | payload
 *
 * The broker reads of a message's metadata only what it decides by (message_peek, parsed
 * by hand, no allocation); clients read all of it.  Facts: pulsar-broker.md A.1.
 */
#ifndef PROTO_MESSAGE_H
#define PROTO_MESSAGE_H

#include <stdbool.h>
#include <stdint.h>

#include "common/arena.h"
#include "common/buf.h"
#include "common/err.h"
#include "proto/frame.h"
#include "proto/pulsar.pb-c.h"

/* Of MessageMetadata; views borrow. */
struct message_peek {
    struct view producer_name;
    uint64_t sequence_id;
    uint64_t highest_sequence_id; /* 0: not sent */
    uint64_t publish_time;        /* ms */
    uint64_t deliver_at_time;     /* ms; 0: now (absent or negative) */
    int32_t num_messages;         /* num_messages_in_batch; 1 when absent or below: it is counted */
    bool is_batch;                /* num_messages_in_batch was sent */
    int32_t num_chunks;           /* num_chunks_from_msg; 0 when absent */
    int32_t chunk_id;
    struct view partition_key;
    bool partition_key_b64;
    struct view ordering_key;
    struct view uuid;
    bool has_marker;
    int32_t marker_type;
    int32_t compression;
    uint32_t uncompressed_size;
};
/* ERR_MALFORMED also when producer_name, sequence_id or publish_time is missing. */
MUST_CHECK enum err message_peek(struct view metadata, struct message_peek *out);

/* Broker entry metadata: always written by our brokers, stripped on delivery. */
struct broker_entry {
    bool present;
    uint64_t timestamp; /* ms */
    uint64_t index;     /* of the entry's last message, dense in the topic, from 0 */
};
enum { BROKER_ENTRY_MAX = 6 + 2 * 11 };
size_t broker_entry_write(const struct broker_entry *b, uint8_t into[BROKER_ENTRY_MAX]);
/* Splits an entry's payload; *rest is from 0x0e01 (or metadata size).  No 0x0e02: present is
 * false and *rest is everything. */
MUST_CHECK enum err broker_entry_read(struct view entry, struct broker_entry *out,
                                      struct view *rest);

/* Batch bodies, uncompressed: repeated u32 size | SingleMessageMetadata | payload.
 * batch_next: ERR_END after the last; *single lives in the arena. */
MUST_CHECK enum err batch_next(struct view *rest, struct arena *arena,
                               Pulsar__Proto__SingleMessageMetadata **single, struct view *payload);
/* Appends one to memory that grows (*base, *len, *room; starts as all zero; mem_free() it). */
void batch_add(uint8_t **base, size_t *len, size_t *room,
               Pulsar__Proto__SingleMessageMetadata *single, struct view payload);

/* A whole SEND frame body from metadata and payload: 0x0e01, crc and so on.  Gives. */
struct slice message_body(const Pulsar__Proto__MessageMetadata *m, struct view payload);

#endif
