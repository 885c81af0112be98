/* etcd_cutter.h - the bytes of a gRPC stream, cut into messages.
 *
 *   one byte: compressed? | length, 4 bytes big-endian | the message
 *
 * DATA frames end where they like: a message that came in one piece is shown where it
 * stands, one that came in several is gathered first.
 *
 * Memory:  a message is borrowed until the next call.
 * Limits:  longer messages than `max` are ERR_TOO_BIG; memory grows with what has come, not
 *          with what was announced.
 */
#ifndef METADATA_ETCD_CUTTER_H
#define METADATA_ETCD_CUTTER_H

#include "common/buf.h"
#include "common/err.h"

enum { ETCD_PREFIX = 5 };

struct etcd_cutter {
    size_t max;
    uint8_t prefix[ETCD_PREFIX];
    size_t prefix_len;
    uint8_t *body; /* of a message that has come in part */
    size_t len, room, want;
};

/* Takes from the front of *bytes.  ERR_END: all of it is taken, no message yet. */
MUST_CHECK enum err etcd_cut(struct etcd_cutter *c, struct view *bytes, struct view *message);
void etcd_cutter_drop(struct etcd_cutter *c);
void etcd_prefix(uint8_t into[ETCD_PREFIX], size_t len);

#endif
