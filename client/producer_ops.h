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
    uint64_t highest; /* of a batch's; else the same */
    unsigned messages;
    bool is_batch, is_chunk;
    bool was_sent;       /* on this connection or another */
    bool acked;          /* on this connection: a piece whose message is not complete there yet */
    uint64_t since_us;   /* when it was given to the producer */
    struct send **sends; /* told when this op is acknowledged; of pieces the last has it */
    unsigned n_sends;
};

/* A message's metadata as the protocol wants it; strings are borrowed from `s`. */
struct op_source {
    const char *producer_name;
    uint64_t sequence_id;
    enum compression compression;
    const struct send *send;
};
/* One op, or *n pieces of a message that would be larger than `max` (of metadata and payload).
 * NULL: it has no room, in pieces neither.  Gives (mem_free the array). */
struct op **op_build(const struct op_source *from, size_t max, bool chunking, unsigned *n);
void op_drop(struct op **op);

/* A batch that gathers. */
struct batch {
    uint8_t *base;
    size_t len, room;
    struct send **sends;
    unsigned n, sends_room;
    char *key; /* of all of them; NULL: none */
};
/* No less than the message takes in a batch. */
size_t batch_cost(const struct send *s);
bool batch_suits(const struct batch *b, const struct send *s); /* by its key */
void batch_put(struct batch *b, struct send *s);               /* copies the payload */
/* Gives the op and empties the batch. */
struct op *batch_close(struct batch *b, const char *producer_name, enum compression compression);
void batch_drop(struct batch *b);

/* The SEND frame's front; the body goes behind it. */
struct slice op_front(const struct op *op, uint64_t producer_id);

#endif
