#include "metadata/etcd_cutter.h"

#include <string.h>

#include "common/mem.h"

enum { LEAST_ROOM = 4096 };

void etcd_prefix(uint8_t into[ETCD_PREFIX], size_t len)
{
    into[0] = 0;
    for (int i = 0; i < 4; i++)
        into[1 + i] = (uint8_t)(len >> (24 - 8 * i));
}

void etcd_cutter_drop(struct etcd_cutter *c)
{
    mem_free(c->body);
    *c = (struct etcd_cutter){.max = c->max};
}

static void take(struct view *bytes, size_t n)
{
    bytes->base += n;
    bytes->len -= n;
}

/* ERR_OK: c->want is known. */
static enum err read_prefix(struct etcd_cutter *c, struct view *bytes)
{
    while (c->prefix_len < ETCD_PREFIX) {
        if (bytes->len == 0)
            return ERR_END;
        c->prefix[c->prefix_len++] = bytes->base[0];
        take(bytes, 1);
    }
    if (c->prefix[0] != 0)
        return ERR_MALFORMED; /* compressed, which was not asked for */
    c->want = 0;
    for (int i = 1; i < ETCD_PREFIX; i++)
        c->want = c->want << 8 | c->prefix[i];
    return c->want > c->max ? ERR_TOO_BIG : ERR_OK;
}

static void gather(struct etcd_cutter *c, struct view *bytes)
{
    size_t part = c->want - c->len < bytes->len ? c->want - c->len : bytes->len;

    if (c->len + part > c->room) {
        size_t room = c->room * 2 > c->len + part ? c->room * 2 : c->len + part;
        c->room = room > LEAST_ROOM ? room : LEAST_ROOM;
        c->body = mem_resize(c->body, c->room);
    }
    if (part)
        memcpy(c->body + c->len, bytes->base, part);
    c->len += part;
    take(bytes, part);
}

enum err etcd_cut(struct etcd_cutter *c, struct view *bytes, struct view *message)
{
    TRY(read_prefix(c, bytes));
    if (c->len == 0 && bytes->len >= c->want) {
        *message = view_of(bytes->base, c->want);
        take(bytes, c->want);
    } else {
        gather(c, bytes);
        if (c->len < c->want)
            return ERR_END;
        *message = view_of(c->body, c->want);
    }
    c->prefix_len = c->len = 0;
    return ERR_OK;
}
