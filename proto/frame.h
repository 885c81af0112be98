/* frame.h - the Pulsar binary frame, without its first length (conn.h cuts that off).
 *
 *   u32 command size | command |
 *   [ u16 0x0e01 | u32 crc32c | ] u32 metadata size | metadata | payload
 *
 * The crc covers everything after itself and is optional on receive: where the two bytes
 * after the command are not 0x0e01 the rest is metadata size, metadata, payload.
 * Facts: reference/pulsar-broker.md A.1.
 */
#ifndef PROTO_FRAME_H
#define PROTO_FRAME_H

#include <stdbool.h>

#include "common/buf.h"
#include "common/err.h"

enum { FRAME_MAGIC = 0x0e01, FRAME_BROKER_MAGIC = 0x0e02 };

/* Beyond max_message_size, for the command and the metadata. */
enum { FRAME_PADDING = 10240, MAX_MESSAGE_SIZE = 5 * 1024 * 1024 };

struct frame {
    struct view command;
    struct view body; /* what a SEND stores: from 0x0e01, or from metadata size; empty: none */
    bool has_crc;
    uint32_t crc;        /* as sent */
    struct view checked; /* what it covers: metadata size, metadata, payload */
    struct view metadata;
    struct view payload;
};

/* Borrows; the crc is not checked. */
MUST_CHECK enum err frame_split(struct view bytes, struct frame *out);
/* The same from a body that starts at 0x0e01 or at metadata size: what an entry holds after
 * its broker entry metadata. */
MUST_CHECK enum err frame_split_body(struct view body, struct frame *out);
MUST_CHECK enum err frame_check(const struct frame *f); /* ERR_CHECKSUM; no crc is fine */

/* The 6 bytes 0x0e01 + crc for a body that came without. */
enum { FRAME_MAGIC_SIZE = 6 };
void frame_magic(uint8_t into[FRAME_MAGIC_SIZE], uint32_t crc);

#endif
