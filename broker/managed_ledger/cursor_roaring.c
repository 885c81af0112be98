#include "broker/managed_ledger/cursor_roaring.h"

#include <stdbool.h>
#include <stddef.h>

enum {
    COOKIE_PLAIN = 12346,
    COOKIE_RUNS = 12347,
    OFFSETS_FROM = 4, /* containers, in the form with runs: fewer go without offsets */
    CONTAINERS_MAX = 65536,
    ARRAY_MAX = 4096, /* more values than that are a bitset */
    BITSET_BYTES = 8192,
};

struct walk {
    struct view all;
    size_t at;
    struct cursor_roaring_sink *sink;
    uint32_t base;
    int64_t first, last; /* the range that may still grow; first -1: none */
};

static enum err take(struct walk *w, size_t len, const uint8_t **out)
{
    if (w->all.len - w->at < len)
        return ERR_MALFORMED;
    *out = w->all.base + w->at;
    w->at += len;
    return ERR_OK;
}

static uint32_t little16(const uint8_t *p)
{
    return (uint32_t)p[0] | (uint32_t)p[1] << 8;
}

static uint32_t little32(const uint8_t *p)
{
    return little16(p) | little16(p + 2) << 16;
}

static void flush(struct walk *w)
{
    if (w->first >= 0)
        w->sink->range(w->sink, (uint32_t)w->first, (uint32_t)w->last);
    w->first = -1;
}

/* Neighbours become one range, across containers too. */
static void found(struct walk *w, uint32_t low_first, uint32_t low_last)
{
    int64_t first = (int64_t)(w->base | low_first);

    if (w->first < 0 || first != w->last + 1) {
        flush(w);
        w->first = first;
    }
    w->last = (int64_t)(w->base | low_last);
}

static enum err read_array(struct walk *w, uint32_t count)
{
    const uint8_t *p;
    int64_t before = -1;

    TRY(take(w, (size_t)count * 2, &p));
    for (uint32_t i = 0; i < count; i++) {
        uint32_t value = little16(p + (size_t)i * 2);
        if (value <= before)
            return ERR_MALFORMED;
        found(w, value, value);
        before = value;
    }
    return ERR_OK;
}

static enum err read_bitset(struct walk *w, uint32_t count)
{
    const uint8_t *p;
    uint32_t seen = 0;

    TRY(take(w, BITSET_BYTES, &p));
    for (uint32_t i = 0; i < BITSET_BYTES; i++) {
        for (uint32_t bit = 0; p[i] >> bit; bit++) {
            if (!(p[i] >> bit & 1))
                continue;
            found(w, i * 8 + bit, i * 8 + bit);
            seen++;
        }
    }
    return seen == count ? ERR_OK : ERR_MALFORMED;
}

static enum err read_runs(struct walk *w, uint32_t count)
{
    const uint8_t *p;
    uint32_t runs, seen = 0;
    int64_t before = -2; /* runs that touch would be one run */

    TRY(take(w, 2, &p));
    runs = little16(p);
    TRY(take(w, (size_t)runs * 4, &p));
    for (uint32_t i = 0; i < runs; i++) {
        uint32_t first = little16(p + (size_t)i * 4), more = little16(p + (size_t)i * 4 + 2);
        if (first <= before + 1 || first + more > UINT16_MAX)
            return ERR_MALFORMED;
        found(w, first, first + more);
        seen += more + 1;
        before = (int64_t)first + more;
    }
    return seen == count ? ERR_OK : ERR_MALFORMED;
}

/* NULL run flags: the form without. */
static enum err read_head(struct walk *w, uint32_t *containers, const uint8_t **run_flags)
{
    const uint8_t *p;
    uint32_t cookie;

    TRY(take(w, 4, &p));
    cookie = little32(p);
    *run_flags = NULL;
    if ((cookie & UINT16_MAX) == COOKIE_RUNS) {
        *containers = (cookie >> 16) + 1;
        return take(w, (*containers + 7) / 8, run_flags);
    }
    if (cookie != COOKIE_PLAIN)
        return ERR_MALFORMED;
    TRY(take(w, 4, &p));
    *containers = little32(p);
    return *containers <= CONTAINERS_MAX ? ERR_OK : ERR_MALFORMED;
}

static enum err read_container(struct walk *w, uint32_t count, bool is_run)
{
    if (is_run)
        return read_runs(w, count);
    return count <= ARRAY_MAX ? read_array(w, count) : read_bitset(w, count);
}

enum err cursor_roaring_read(struct view bytes, struct cursor_roaring_sink *sink)
{
    struct walk w = {.all = bytes, .sink = sink, .first = -1};
    const uint8_t *flags, *heads, *offsets = NULL;
    uint32_t containers;
    int64_t before = -1;

    TRY(read_head(&w, &containers, &flags));
    TRY(take(&w, (size_t)containers * 4, &heads));
    if (!flags || containers >= OFFSETS_FROM)
        TRY(take(&w, (size_t)containers * 4, &offsets));
    for (uint32_t i = 0; i < containers; i++) {
        uint32_t key = little16(heads + (size_t)i * 4);
        uint32_t count = little16(heads + (size_t)i * 4 + 2) + 1;
        if (key <= before || (offsets && little32(offsets + (size_t)i * 4) != w.at))
            return ERR_MALFORMED;
        before = key;
        w.base = key << 16;
        TRY(read_container(&w, count, flags && flags[i / 8] >> i % 8 & 1));
    }
    flush(&w);
    return w.at == bytes.len ? ERR_OK : ERR_MALFORMED;
}
