/* consumer_acks.h - which entries may be acknowledged, gathered into few commands.
 *
 * An entry is acknowledged once all its messages are; a large message's pieces with its last.
 * Pure: the consumer sends what is gathered and says what became of it.
 *
 * Limits:  what is handed out and not acknowledged; of batches only since the last reconnect.
 */
#ifndef CLIENT_CONSUMER_ACKS_H
#define CLIENT_CONSUMER_ACKS_H

#include <stdbool.h>

#include "client/client.h"

struct acks;

/* Which messages of a batch are handed out: all, or those whose bit is set. */
struct batch_shape {
    unsigned size;
    const int64_t *ack_set; /* NULL: all */
    size_t n_ack_set;
};
static inline bool batch_wants(const struct batch_shape *b, unsigned index)
{
    size_t word = index / 64;
    return !b->ack_set ||
           (word < b->n_ack_set && ((uint64_t)b->ack_set[word] >> (index % 64) & 1) != 0);
}

struct acks *acks_new(void); /* gives */
void acks_drop(struct acks **a);

/* A message was handed out that is one of its entry's, or one that has pieces before it. */
void acks_expect_batch(struct acks *a, struct message_id id, const struct batch_shape *shape);
void acks_expect_pieces(struct acks *a, struct message_id last, struct message_id *pieces,
                        unsigned n); /* takes pieces */
/* Forgets of which batches messages were handed out over a lost connection: they come again.  What
 * was gathered stays, and so do the pieces of large messages. */
void acks_forget_batches(struct acks *a);

/* A message of a batch that is not expected is left alone: its entry has others. */
void acks_one(struct acks *a, struct message_id id);
/* Those of id's entry that come before it, and id.  True: none of the entry is left, and the entry
 * was not gathered: it and all before it are for the caller to acknowledge.  Entries before id are
 * not expected any more. */
bool acks_upto(struct acks *a, struct message_id id);
void acks_put_back(struct acks *a, const struct message_id *ids, unsigned n); /* not taken */
unsigned acks_gathered(const struct acks *a);
/* Gives at most `max` gathered ids, oldest first; NULL when there are none. */
struct message_id *acks_take(struct acks *a, unsigned max, unsigned *n);

#endif
