/* cutter.h - bytes as they come from a socket, cut into frames.
 *
 *   readv { room of a frame that has begun | the loop's slab } -> cutter_filled, cutter_take
 *   cutter_next -> frame, frame ... ERR_END
 *
 * A frame that lies whole in what was read is a slice of it.  One that does not gets a
 * slab of its own; what is there of it is moved and the rest is read in place.  That slab begins
 * with 256 KiB, more than the batches of most, and grows fourfold as bytes come: who only says
 * that much will come gets little for it.
 *
 * Memory:  holds the slices that it has not cut yet.  The CUTTER_FRONT bytes before a frame, its
 *          length, are nobody else's: who has the frame may write there.
 * Limits:  frame_max; ERR_TOO_BIG is for good.
 */
#ifndef COMMON_CUTTER_H
#define COMMON_CUTTER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/buf.h"
#include "common/err.h"

enum { CUTTER_FRONT = 4 };

struct cutter {
    size_t frame_max;
    uint8_t head[CUTTER_FRONT]; /* a length that has come in part */
    size_t head_len;
    struct slab *part; /* a frame that has come in part */
    size_t part_len, part_room, part_want;
    struct slice rest; /* read, not yet cut */
};

/* Where the rest of a begun frame may be read to; empty when none is, or when bytes wait. */
struct iovec cutter_room(const struct cutter *c);
void cutter_filled(struct cutter *c, size_t n);     /* so many bytes were put there */
void cutter_take(struct cutter *c, struct slice s); /* takes what was read besides */
/* Gives the next frame; ERR_END: not without more bytes; ERR_TOO_BIG. */
MUST_CHECK enum err cutter_next(struct cutter *c, struct slice *frame);
size_t cutter_wanted(const struct cutter *c);   /* length of the frame that is to come or too big */
bool cutter_is_between(const struct cutter *c); /* no frame has begun */
void cutter_drop(struct cutter *c);

#endif
