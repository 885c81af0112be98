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

#include <assert.h>
#include <stdalign.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/uio.h>

struct slab { /* private: touched by the functions here and by slab_pool.c */
    union {
        atomic_uint refs;
        struct slab *next; /* while it is pooled */
    };
    size_t size;
    unsigned class;
    alignas(max_align_t) uint8_t bytes[];
};

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

#define CHAIN_MAX 4

struct chain {
    unsigned n;
    struct slice at[CHAIN_MAX];
};

struct slab *slab_new(size_t size); /* gives one reference; not zeroed */
void slab_give(struct slab *s);     /* for slab_drop(): the last reference is gone */

/* borrows; write only before sharing */
static inline uint8_t *slab_bytes(struct slab *s)
{
    return s->bytes;
}

/* At least what was asked for. */
static inline size_t slab_size(const struct slab *s)
{
    return s->size;
}

/* takes; *s becomes NULL.  Who sees a single reference holds it himself: nobody can add to it. */
static inline void slab_drop(struct slab **s)
{
    struct slab *old = *s;
    *s = NULL;
    if (old && (atomic_load_explicit(&old->refs, memory_order_acquire) == 1 ||
                atomic_fetch_sub_explicit(&old->refs, 1, memory_order_acq_rel) == 1))
        slab_give(old);
}

/* shares s */
static inline struct slice slice_of(struct slab *s, size_t offset, size_t len)
{
    assert(offset <= s->size);
    assert(len <= s->size - offset);
    atomic_fetch_add_explicit(&s->refs, 1, memory_order_relaxed);
    return (struct slice){.slab = s, .base = s->bytes + offset, .len = len};
}

/* takes the caller's reference, from 0 */
static inline struct slice slice_take(struct slab **s, size_t len)
{
    assert(len <= (*s)->size);
    struct slice all = {.slab = *s, .base = (*s)->bytes, .len = len};
    *s = NULL;
    return all;
}

struct slice slice_copy(const void *bytes, size_t len); /* gives: in a slab of its own */

/* shares a part of it */
static inline struct slice slice_part(struct slice s, size_t offset, size_t len)
{
    assert(offset <= s.len);
    assert(len <= s.len - offset);
    if (s.slab)
        atomic_fetch_add_explicit(&s.slab->refs, 1, memory_order_relaxed);
    return (struct slice){.slab = s.slab, .base = s.base ? s.base + offset : NULL, .len = len};
}

static inline struct slice slice_share(struct slice s)
{
    return slice_part(s, 0, s.len);
}

/* NULL slab is fine; *s becomes empty */
static inline void slice_drop(struct slice *s)
{
    slab_drop(&s->slab);
    *s = (struct slice){0};
}

static inline struct view slice_view(struct slice s)
{
    return (struct view){.base = s.base, .len = s.len};
}

static inline struct view view_of(const void *base, size_t len)
{
    return (struct view){.base = (const uint8_t *)base, .len = len};
}

/* What is to stay for a while does not keep a large slab for a small part of it: that is moved to
 * one of its own. */
void chain_settle(struct chain *c);

/* takes s; asserts that there is room */
static inline void chain_push(struct chain *c, struct slice s)
{
    assert(c->n < CHAIN_MAX);
    c->at[c->n++] = s;
}

static inline size_t chain_len(const struct chain *c)
{
    size_t len = 0;
    for (unsigned i = 0; i < c->n; i++)
        len += c->at[i].len;
    return len;
}

int chain_iov(const struct chain *c, struct iovec iov[CHAIN_MAX]); /* borrows */

static inline void chain_drop(struct chain *c)
{
    for (unsigned i = 0; i < c->n; i++)
        slice_drop(&c->at[i]);
    c->n = 0;
}

/* Bytes held by all slabs that are alive, pooled ones not counted: a gauge. */
size_t slab_bytes_in_use(void);

#endif
