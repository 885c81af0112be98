#include "common/outbox.h"

#include <assert.h>
#include <string.h>

#include "common/mem.h"

#define SMALLEST_ROOM 16
#define KEPT_ROOM     256 /* a burst leaves no larger ring behind */
#define SMALL         ((size_t)512)
#define GATHERED      ((size_t)16 << 10)

static struct slice *nth(const struct outbox *o, size_t i)
{
    return &o->at[(o->first + i) & (o->room - 1)];
}

static void grow(struct outbox *o)
{
    const size_t room = o->room ? o->room * 2 : SMALLEST_ROOM;
    struct slice *at = mem_resize(NULL, room * sizeof *at);
    for (size_t i = 0; i < o->n; i++)
        at[i] = *nth(o, i);
    mem_free(o->at);
    o->at = at;
    o->first = 0;
    o->room = room;
}

static void push(struct outbox *o, struct slice s)
{
    if (o->n == o->room)
        grow(o);
    *nth(o, o->n++) = s;
}

/* Small ones stand in one slab, so that they are one piece for the kernel, and theirs go back at
 * once: a count and an iovec cost more than to copy them. */
static void gather(struct outbox *o, struct view v)
{
    if (o->gathering && slab_size(o->gathering) - o->gathered < v.len)
        slab_drop(&o->gathering);
    if (!o->gathering) {
        o->gathering = slab_new(GATHERED);
        o->gathered = 0;
    }
    uint8_t *at = slab_bytes(o->gathering) + o->gathered;
    struct slice *last = o->n > 0 ? nth(o, o->n - 1) : NULL;

    memcpy(at, v.base, v.len);
    if (last && last->slab == o->gathering && last->base + last->len == at)
        last->len += v.len;
    else
        push(o, slice_of(o->gathering, o->gathered, v.len));
    o->gathered += v.len;
}

/* Bytes that nobody counts are copied: they may be gone before they are written. */
void outbox_put(struct outbox *o, struct slice s)
{
    o->bytes += s.len;
    if (s.len > SMALL) {
        push(o, s.slab ? s : slice_copy(s.base, s.len));
        return;
    }
    if (s.len > 0)
        gather(o, slice_view(s));
    slice_drop(&s);
}

void outbox_copy_in(struct outbox *o, struct view v)
{
    o->bytes += v.len;
    if (v.len > SMALL)
        push(o, slice_copy(v.base, v.len));
    else if (v.len > 0)
        gather(o, v);
}

void outbox_share(struct outbox *o, const struct slice *s)
{
    if (s->len <= SMALL || !s->slab) {
        outbox_copy_in(o, slice_view(*s));
        return;
    }
    o->bytes += s->len;
    push(o, slice_share(*s));
}

int outbox_iov(const struct outbox *o, struct iovec *iov, int max)
{
    int n = 0;
    for (; n < max && (size_t)n < o->n; n++) {
        const struct slice *s = nth(o, (size_t)n);
        iov[n] = (struct iovec){.iov_base = (void *)(uintptr_t)s->base, .iov_len = s->len};
    }
    return n;
}

size_t outbox_copy(const struct outbox *o, void *into, size_t max)
{
    size_t len = 0;
    for (size_t i = 0; i < o->n && len < max; i++) {
        const struct slice *s = nth(o, i);
        const size_t part = s->len < max - len ? s->len : max - len;
        memcpy((char *)into + len, s->base, part);
        len += part;
    }
    return len;
}

void outbox_sent(struct outbox *o, size_t n)
{
    assert(n <= o->bytes);
    o->bytes -= n;
    while (o->n > 0 && n >= nth(o, 0)->len) {
        n -= nth(o, 0)->len;
        slice_drop(nth(o, 0));
        o->first = (o->first + 1) & (o->room - 1);
        o->n--;
    }
    if (n > 0) {
        nth(o, 0)->base += n;
        nth(o, 0)->len -= n;
    }
    if (o->n > 0)
        return;
    slab_drop(&o->gathering); /* who has nothing to say keeps no memory */
    if (o->room > KEPT_ROOM)
        outbox_drop(o);
}

void outbox_drop(struct outbox *o)
{
    for (size_t i = 0; i < o->n; i++)
        slice_drop(nth(o, i));
    slab_drop(&o->gathering);
    mem_free(o->at);
    *o = (struct outbox){0};
}
