/* pins.h - which consumer gets the chunks of a large message: all of them the same one.
 *
 *   chunk 0 -> whoever's turn it is, pinned -> chunk 1 -> the same ... last chunk -> unpinned
 *
 * A chunk that could not be sent holds the later ones of its message back, so that they stay
 * in order: `waiting` is its place.  A pin without a consumer belonged to one that has left.
 *
 * Memory: embed it; end it with pins_drop().  Pins point to consumers: pins_left() when one goes.
 * Limits: PINS_MAX messages at a time; the oldest is forgotten, its chunks may then be spread.
 */
#ifndef BROKER_DISPATCH_PINS_H
#define BROKER_DISPATCH_PINS_H

#include <stdbool.h>
#include <stdint.h>

#include "broker/managed_ledger/position.h"
#include "common/buf.h"
#include "common/table.h"

enum { PINS_MAX = 1024 };

struct shared_consumer;

struct pin {
    uint64_t message; /* a hash of its uuid */
    struct shared_consumer *to;
    struct position first; /* chunk that was seen */
    bool holds_back;
    struct position waiting;
    UT_hash_handle hh;
};

struct pins {
    struct pin *by_message;
};

struct pin *pins_find(const struct pins *p, struct view uuid); /* or NULL */
struct pin *pins_add(struct pins *p, struct view uuid, struct position first);
void pins_remove(struct pins *p, struct pin *pin);
void pins_left(struct pins *p, const struct shared_consumer *c);
void pins_drop(struct pins *p);

#endif
