/* ring.h - 32 MiB that are mapped twice in a row, so that what wraps round is in one piece.
 *
 * Positions count all bytes ever; ring_at() says where one is.  Every page is touched at birth.
 */
#ifndef BENCH_CEILING_RING_H
#define BENCH_CEILING_RING_H

#include <stdbool.h>
#include <stdint.h>

#include "bench/ceiling/ceiling.h"

#define RING_BYTES ((uint64_t)32 << 20)

struct ring {
    uint8_t *base;
    uint64_t received, parsed; /* positions: bytes there, whole entries there */
};

void ring_open(struct ring *r);
static inline uint8_t *ring_at(const struct ring *r, uint64_t position)
{
    return r->base + (position & (RING_BYTES - 1));
}
static inline struct entry_head *ring_entry(const struct ring *r, uint64_t position)
{
    return (struct entry_head *)(void *)ring_at(r, position);
}
static inline uint64_t entry_bytes(const struct entry_head *h)
{
    return sizeof *h + h->len;
}
/* The next whole entry, its checksum found right; NULL: not there yet. */
struct entry_head *ring_next(struct ring *r);
/* recv() into it.  0: the other end has closed; -1: nothing now. */
int64_t ring_receive(struct ring *r, int fd);

#endif
