/* cursor_parts.h - batches of which only some messages are acknowledged.
 *
 *   words, bit i of word i / 64 (lowest first): 1: message i is not acknowledged yet
 *
 * As clients send them and Pulsar stores them (pulsar-broker.md A.12, K 6): words that are not
 * there are zeros, and with nothing but zeros the entry is acknowledged, so it is no part.
 *
 * Memory: an embedded struct; end it with cursor_parts_drop().
 * Limits: CURSOR_PART_WORDS a batch, CURSOR_PARTS_WORDS all together; what does not fit is not
 *         kept, so that the batch is delivered again as a whole.
 */
#ifndef BROKER_MANAGED_LEDGER_CURSOR_PARTS_H
#define BROKER_MANAGED_LEDGER_CURSOR_PARTS_H

#include <stdbool.h>
#include <stdint.h>

#include "broker/managed_ledger/position.h"
#include "common/table.h"

enum { CURSOR_PART_WORDS = 1024, CURSOR_PARTS_WORDS = 1024 * 1024 };

struct cursor_part {
    struct position at;
    UT_hash_handle hh;
    unsigned n;
    uint64_t words[];
};

struct cursor_parts {
    struct cursor_part *by_position;
    unsigned words;
    struct position lowest; /* nothing is below */
};

enum cursor_parts_outcome {
    PARTS_SAME,  /* all of that was acknowledged before */
    PARTS_KEPT,  /* less is left of it */
    PARTS_EMPTY, /* nothing is left of it: it is no part any more */
    PARTS_FULL,  /* there is no room for it */
};

unsigned cursor_parts_count(const struct cursor_parts *p);
const struct cursor_part *cursor_parts_find(const struct cursor_parts *p, struct position at);
/* What is left is what was left and is in `words`. */
enum cursor_parts_outcome cursor_parts_and(struct cursor_parts *p, struct position at,
                                           const uint64_t *words, unsigned n);
/* Whatever was known of it; false: there is no room, or nothing is left. */
bool cursor_parts_set(struct cursor_parts *p, struct position at, const uint64_t *words,
                      unsigned n);
void cursor_parts_remove(struct cursor_parts *p, struct position at);
void cursor_parts_remove_upto(struct cursor_parts *p, struct position upto);
void cursor_parts_drop(struct cursor_parts *p); /* empty afterwards, and may be used again */

/* Of its first `messages`, those that are not acknowledged. */
uint32_t cursor_part_left(const struct cursor_part *part, uint32_t messages);

/* In no order; `next` may be removed after the following one was asked for. */
const struct cursor_part *cursor_parts_next(const struct cursor_parts *p,
                                            const struct cursor_part *before);

#endif
