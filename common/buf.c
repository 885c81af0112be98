#include "common/buf.h"

#include <assert.h>
#include <string.h>

#include "common/slab_pool.h"

struct slab *slab_new(size_t size)
{
    struct slab *s = slab_pool_take(size);
    atomic_init(&s->refs, 1);
    return s;
}

uint8_t *slab_bytes(struct slab *s)
{
    return s->bytes;
}

size_t slab_size(const struct slab *s)
{
    return s->size;
}

void slab_drop(struct slab **s)
{
    struct slab *old = *s;
    *s = NULL;
    if (old && atomic_fetch_sub_explicit(&old->refs, 1, memory_order_acq_rel) == 1)
        slab_pool_give(old);
}

struct slice slice_of(struct slab *s, size_t offset, size_t len)
{
    assert(offset <= s->size);
    assert(len <= s->size - offset);
    atomic_fetch_add_explicit(&s->refs, 1, memory_order_relaxed);
    return (struct slice){.slab = s, .base = s->bytes + offset, .len = len};
}

struct slice slice_take(struct slab **s, size_t len)
{
    assert(len <= (*s)->size);
    struct slice all = {.slab = *s, .base = (*s)->bytes, .len = len};
    *s = NULL;
    return all;
}

struct slice slice_copy(const void *bytes, size_t len)
{
    struct slab *s = slab_new(len);
    if (len > 0)
        memcpy(s->bytes, bytes, len);
    return slice_take(&s, len);
}

struct slice slice_share(struct slice s)
{
    return slice_part(s, 0, s.len);
}

struct slice slice_part(struct slice s, size_t offset, size_t len)
{
    assert(offset <= s.len);
    assert(len <= s.len - offset);
    if (s.slab)
        atomic_fetch_add_explicit(&s.slab->refs, 1, memory_order_relaxed);
    return (struct slice){.slab = s.slab, .base = s.base ? s.base + offset : NULL, .len = len};
}

void slice_drop(struct slice *s)
{
    slab_drop(&s->slab);
    *s = (struct slice){0};
}

void chain_push(struct chain *c, struct slice s)
{
    assert(c->n < CHAIN_MAX);
    c->at[c->n++] = s;
}

size_t chain_len(const struct chain *c)
{
    size_t len = 0;
    for (unsigned i = 0; i < c->n; i++)
        len += c->at[i].len;
    return len;
}

int chain_iov(const struct chain *c, struct iovec iov[CHAIN_MAX])
{
    for (unsigned i = 0; i < c->n; i++)
        iov[i] =
            (struct iovec){.iov_base = (void *)(uintptr_t)c->at[i].base, .iov_len = c->at[i].len};
    return (int)c->n;
}

struct chain chain_share(const struct chain *c)
{
    struct chain copy = {.n = c->n};
    for (unsigned i = 0; i < c->n; i++)
        copy.at[i] = slice_share(c->at[i]);
    return copy;
}

void chain_drop(struct chain *c)
{
    for (unsigned i = 0; i < c->n; i++)
        slice_drop(&c->at[i]);
    c->n = 0;
}

size_t slab_bytes_in_use(void)
{
    return slab_pool_in_use();
}
