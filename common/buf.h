/* buf.h - bytes that are written once and shared by many.
 *
 * A published message goes to Qw bookies and to every consumer without being
 * copied: each holder keeps a slice, and the slab under it lives until the last
 * slice is dropped.  A chain is a short row of slices that leaves in one writev.
 * Slabs come from pools by size class and go back to them; what is too large for
 * a class is allocated by itself.
 *
 * Ownership words used in every header of this project:
 *   gives    the caller owns the result and must end it
 *   takes    the callee ends the argument, also when it fails
 *   shares   a counted reference is added; both sides end theirs
 *   borrows  valid only during the call, or as long as the named owner
 *
 * Threads: a slab may be dropped on any thread (atomic count); a chain belongs
 * to one thread.
 */
#ifndef COMMON_BUF_H
#define COMMON_BUF_H

#include <stddef.h>
#include <stdint.h>
#include <sys/uio.h>

struct slab;

struct slice {
    struct slab *slab; /* NULL: an empty slice, or borrowed bytes (slice_borrow) */
    const uint8_t *base;
    size_t len;
};

/* Bytes that somebody else keeps: a reader's view of them. */
struct view {
    const uint8_t *base;
    size_t len;
};

#define CHAIN_MAX 8

struct chain {
    unsigned n;
    struct slice at[CHAIN_MAX];
};

struct slab *slab_new(size_t size);     /* gives one reference; not zeroed */
uint8_t *slab_bytes(struct slab *s);    /* borrows; write only before sharing */
size_t slab_size(const struct slab *s); /* at least what was asked for */
void slab_drop(struct slab **s);        /* takes; *s becomes NULL */

struct slice slice_of(struct slab *s, size_t offset, size_t len); /* shares s */
struct slice slice_take(struct slab **s, size_t len);   /* takes the caller's reference, from 0 */
struct slice slice_copy(const void *bytes, size_t len); /* gives: in a slab of its own */
struct slice slice_share(struct slice s);               /* shares */
struct slice slice_part(struct slice s, size_t offset, size_t len); /* shares a part of it */
void slice_drop(struct slice *s); /* NULL slab is fine; *s becomes empty */

static inline struct view slice_view(struct slice s)
{
    return (struct view){.base = s.base, .len = s.len};
}

static inline struct view view_of(const void *base, size_t len)
{
    return (struct view){.base = (const uint8_t *)base, .len = len};
}

void chain_push(struct chain *c, struct slice s); /* takes s; asserts that there is room */
size_t chain_len(const struct chain *c);
int chain_iov(const struct chain *c, struct iovec iov[CHAIN_MAX]); /* borrows */
struct chain chain_share(const struct chain *c);                   /* shares every slice */
void chain_drop(struct chain *c);

/* Bytes held by all slabs that are alive, pooled ones not counted: a gauge. */
size_t slab_bytes_in_use(void);

#endif
