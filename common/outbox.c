#include "common/outbox.h"

#include <assert.h>
#include <string.h>

#include "common/mem.h"

#define SMALLEST_ROOM 16
#define KEPT_ROOM     256 /* a burst leaves no larger ring behind */

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

/* Bytes that nobody counts are copied: they may be gone before they are written. */
void outbox_put(struct outbox *o, struct slice s)
{
    if (s.len == 0) {
        slice_drop(&s);
        return;
    }
    if (o->n == o->room)
        grow(o);
    *nth(o, o->n++) = s.slab ? s : slice_copy(s.base, s.len);
    o->bytes += s.len;
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
    if (o->n == 0 && o->room > KEPT_ROOM)
        outbox_drop(o);
}

void outbox_drop(struct outbox *o)
{
    for (size_t i = 0; i < o->n; i++)
        slice_drop(nth(o, i));
    mem_free(o->at);
    *o = (struct outbox){0};
}
