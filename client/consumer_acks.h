/* consumer_acks.h - which entries may be acknowledged, gathered into few commands.
 *
 * An entry is acknowledged once all its messages are; a large message's pieces with its last.
 * Pure: the consumer sends what is gathered and says what became of it.
 */
#ifndef CLIENT_CONSUMER_ACKS_H
#define CLIENT_CONSUMER_ACKS_H

#include <stdbool.h>

#include "client/client.h"

struct acks;

struct acks *acks_new(void); /* gives */
void acks_drop(struct acks **a);

/* A message was handed out that is one of `size` of its entry, of which `wanted` are handed out
 * (the others were acknowledged earlier), or one that has pieces before it. */
void acks_expect_batch(struct acks *a, struct message_id id, unsigned size, unsigned wanted);
void acks_expect_pieces(struct acks *a, struct message_id last, struct message_id *pieces,
                        unsigned n); /* takes pieces */
/* Forgets what was handed out over a lost connection; what was gathered stays. */
void acks_forget_expected(struct acks *a);

void acks_one(struct acks *a, struct message_id id);
void acks_put_back(struct acks *a, const struct message_id *ids, unsigned n); /* not taken */
unsigned acks_gathered(const struct acks *a);
/* Gives at most `max` gathered ids, oldest first; NULL when there are none. */
struct message_id *acks_take(struct acks *a, unsigned max, unsigned *n);

#endif
