/* producer_ops.h - what a producer has sent, or will send, and nobody has acknowledged: in order.
 *
 * An op is one frame: a message, a batch, or one piece of a large message.  Its body is built
 * once and kept for a resend.
 */
#ifndef CLIENT_PRODUCER_OPS_H
#define CLIENT_PRODUCER_OPS_H

#include "client/client.h"
#include "common/list.h"

struct op {
    struct list_node node;
    struct slice body; /* from 0x0e01 */
    uint64_t sequence_id;
    uint64_t highest; /* 0: no batch */
    unsigned messages;
    bool is_chunk;
    bool on_wire;        /* sent on the present connection */
    bool was_sent;       /* on some connection */
    struct send **sends; /* told when this op is acknowledged; none on all but a chunk's last */
    unsigned n_sends;
};

/* A message's metadata as the protocol wants it; strings are borrowed from `s`. */
struct op_source {
    const char *producer_name;
    uint64_t sequence_id;
    enum compression compression;
    const struct send *send;
};
struct op *op_single(const struct op_source *from); /* gives */
/* The pieces of a message, each with at most `limit` bytes of payload; *n of them.  Gives. */
struct op **op_chunks(const struct op_source *from, size_t limit, unsigned *n);
void op_drop(struct op **op);

/* A batch that gathers. */
struct batch {
    uint8_t *base;
    size_t len, room;
    struct send **sends;
    unsigned n, sends_room;
    uint64_t first_sequence;
};
void batch_put(struct batch *b, struct send *s); /* copies the payload */
/* Gives the op and empties the batch. */
struct op *batch_close(struct batch *b, const char *producer_name, enum compression compression);
void batch_drop(struct batch *b);

/* The SEND frame's front; the body goes behind it. */
struct slice op_front(const struct op *op, uint64_t producer_id);

#endif
