/* outbox.h - slices in the order in which they must leave a socket.
 *
 * Small ones are gathered into one piece; the others leave from where they lie.
 *
 * Memory:  holds what was put in until outbox_sent() has passed it.
 */
#ifndef COMMON_OUTBOX_H
#define COMMON_OUTBOX_H

#include <stddef.h>
#include <sys/uio.h>

#include "common/buf.h"

struct outbox {
    struct slice *at; /* a ring of `room`, a power of two */
    size_t first, n, room;
    size_t bytes;
    struct slab *gathering; /* the slab for small ones, used so far; NULL: none */
    size_t gathered;
};

void outbox_put(struct outbox *o, struct slice s);                  /* takes; empty ones vanish */
void outbox_copy_in(struct outbox *o, struct view v);               /* copies */
void outbox_share(struct outbox *o, const struct slice *s);         /* shares, or copies */
int outbox_iov(const struct outbox *o, struct iovec *iov, int max); /* borrows: the first ones */
size_t outbox_copy(const struct outbox *o, void *into, size_t max);
void outbox_sent(struct outbox *o, size_t n); /* drops the first n bytes */
void outbox_drop(struct outbox *o);

#endif
