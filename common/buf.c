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

void slab_give(struct slab *s)
{
    slab_pool_give(s);
}

struct slice slice_copy(const void *bytes, size_t len)
{
    struct slab *s = slab_new(len);
    if (len > 0)
        memcpy(s->bytes, bytes, len);
    return slice_take(&s, len);
}

enum { SETTLED = 4 }; /* a slab of at most so many times what is used of it */

void chain_settle(struct chain *c)
{
    for (unsigned i = 0; i < c->n; i++) {
        struct slice *s = &c->at[i];
        if (!s->slab || slab_size(s->slab) / SETTLED < s->len + sizeof(struct slab))
            continue;
        struct slice own = slice_copy(s->base, s->len);
        slice_drop(s);
        *s = own;
    }
}

int chain_iov(const struct chain *c, struct iovec iov[CHAIN_MAX])
{
    for (unsigned i = 0; i < c->n; i++)
        iov[i] =
            (struct iovec){.iov_base = (void *)(uintptr_t)c->at[i].base, .iov_len = c->at[i].len};
    return (int)c->n;
}

size_t slab_bytes_in_use(void)
{
    return slab_pool_in_use();
}
