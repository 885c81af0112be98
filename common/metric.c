#include "common/metric.h"

#include <inttypes.h>
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#include "common/mem.h"

#define SMALLEST_ROOM 4096

/* Bucket i holds what took at most 2^i us. */
static unsigned bucket_of(uint64_t us)
{
    const unsigned i = us <= 1 ? 0 : 64 - (unsigned)__builtin_clzll(us - 1);
    return i < HISTOGRAM_BUCKETS ? i : HISTOGRAM_BUCKETS;
}

void histogram_note(struct histogram *h, uint64_t us)
{
    atomic_fetch_add_explicit(&h->bucket[bucket_of(us)], 1, memory_order_relaxed);
    atomic_fetch_add_explicit(&h->sum_us, us, memory_order_relaxed);
}

static void add_mine(_Atomic uint64_t *to, uint64_t by)
{
    const uint64_t now = atomic_load_explicit(to, memory_order_relaxed);
    atomic_store_explicit(to, now + by, memory_order_relaxed);
}

void histogram_note_mine(struct histogram *h, uint64_t us)
{
    add_mine(&h->bucket[bucket_of(us)], 1);
    add_mine(&h->sum_us, us);
}

/* A copy: the buckets move on while they are read. */
static uint64_t read_buckets(const struct histogram *h, uint64_t into[HISTOGRAM_BUCKETS + 1])
{
    struct histogram *readable = (struct histogram *)(uintptr_t)h;
    uint64_t total = 0;
    for (unsigned i = 0; i <= HISTOGRAM_BUCKETS; i++) {
        into[i] = atomic_load_explicit(&readable->bucket[i], memory_order_relaxed);
        total += into[i];
    }
    return total;
}

static uint64_t sum_of(const struct histogram *h)
{
    struct histogram *readable = (struct histogram *)(uintptr_t)h;
    return atomic_load_explicit(&readable->sum_us, memory_order_relaxed);
}

void histogram_merge(struct histogram *into, const struct histogram *more)
{
    uint64_t bucket[HISTOGRAM_BUCKETS + 1];
    read_buckets(more, bucket);
    for (unsigned i = 0; i <= HISTOGRAM_BUCKETS; i++)
        atomic_fetch_add_explicit(&into->bucket[i], bucket[i], memory_order_relaxed);
    atomic_fetch_add_explicit(&into->sum_us, sum_of(more), memory_order_relaxed);
}

uint64_t histogram_quantile(const struct histogram *h, double q)
{
    uint64_t bucket[HISTOGRAM_BUCKETS + 1];
    const uint64_t total = read_buckets(h, bucket);
    if (total == 0)
        return 0;
    const double wanted = ceil(q * (double)total);
    uint64_t below = 0;
    for (unsigned i = 0; i < HISTOGRAM_BUCKETS; i++) {
        below += bucket[i];
        if (below > 0 && (double)below >= wanted)
            return (uint64_t)1 << i;
    }
    return (uint64_t)1 << HISTOGRAM_BUCKETS;
}

static void text_reserve(struct text *t, size_t more)
{
    if (t->at && t->room - t->len > more)
        return;
    size_t room = t->room ? t->room * 2 : SMALLEST_ROOM;
    while (room - t->len <= more)
        room *= 2;
    t->at = mem_resize(t->at, room);
    t->room = room;
}

void text_add(struct text *t, const char *fmt, ...)
{
    va_list args, again;
    text_reserve(t, 256);
    va_start(args, fmt);
    va_copy(again, args);
    const int len = vsnprintf(t->at + t->len, t->room - t->len, fmt, args);
    va_end(args);
    if (len > 0 && (size_t)len >= t->room - t->len) {
        text_reserve(t, (size_t)len);
        vsnprintf(t->at + t->len, t->room - t->len, fmt, again);
    }
    va_end(again);
    if (len > 0)
        t->len += (size_t)len;
}

void text_drop(struct text *t)
{
    mem_free(t->at);
    *t = (struct text){0};
}

/* Bytes of the UTF-8 character at `s`: 0 when it is none (too long, a surrogate, cut off). */
static unsigned utf8_len(const unsigned char *s)
{
    static const uint32_t least[] = {0, 0, 0x80, 0x800, 0x10000};
    const unsigned n = s[0] < 0x80 ? 1 : s[0] >> 5 == 6 ? 2 : s[0] >> 4 == 14 ? 3 : 4;
    if (n == 1)
        return 1;
    if (n == 4 && s[0] >> 3 != 30)
        return 0;
    uint32_t c = s[0] & (0xffu >> (n + 1));
    for (unsigned i = 1; i < n; i++) {
        if (s[i] >> 6 != 2) /* the NUL at the end is no part of one either */
            return 0;
        c = c << 6 | (s[i] & 0x3f);
    }
    return c < least[n] || c > 0x10ffff || (c >= 0xd800 && c < 0xe000) ? 0 : n;
}

/* Bytes that can stay as they are. */
static size_t plain_len(const char *s)
{
    size_t n = 0;
    for (unsigned more; s[n] && s[n] != '"' && s[n] != '\\' && s[n] != '\n'; n += more)
        if ((more = utf8_len((const unsigned char *)s + n)) == 0)
            break;
    return n;
}

static void add_escaped(struct text *t, const char *value)
{
    for (const char *c = value; *c;) {
        const size_t n = plain_len(c);
        text_add(t, "%.*s", (int)n, c);
        c += n;
        if (*c == '\n')
            text_add(t, "\\n");
        else if (*c == '\\' || *c == '"')
            text_add(t, "\\%c", *c);
        else if (*c)
            text_add(t, "?");
        c += *c != '\0';
    }
}

void text_add_label(struct text *t, const char *key, const char *value)
{
    text_add(t, "%s=\"", key);
    add_escaped(t, value);
    text_add(t, "\"");
}

void metric_head(struct text *t, const char *name, const char *kind, const char *help)
{
    text_add(t, "# HELP %s %s\n# TYPE %s %s\n", name, help, name, kind);
}

static void add_labels(struct text *t, const char *labels)
{
    if (labels && *labels)
        text_add(t, "{%s}", labels);
}

void metric_render(struct text *t, const struct metric_def *defs, size_t n, const void *metrics,
                   const char *labels)
{
    for (size_t i = 0; i < n; i++) {
        const struct metric_def *d = &defs[i];
        const struct metric *m = (const void *)((const char *)metrics + d->offset);
        metric_head(t, d->name, d->kind == METRIC_COUNTER ? "counter" : "gauge", d->help);
        text_add(t, "%s", d->name);
        add_labels(t, labels);
        text_add(t, " %" PRId64 "\n", metric_get(m));
    }
}

/* Buckets that add up, as Prometheus wants them. */
void histogram_lines(struct text *t, const char *name, const struct histogram *h,
                     const char *labels, double unit_us)
{
    uint64_t bucket[HISTOGRAM_BUCKETS + 1], below = 0;
    const uint64_t total = read_buckets(h, bucket);
    const char *all = labels ? labels : "", *comma = *all ? "," : "";
    for (unsigned i = 0; i < HISTOGRAM_BUCKETS; i++) {
        below += bucket[i];
        text_add(t, "%s_bucket{%s%sle=\"%.9g\"} %" PRIu64 "\n", name, all, comma,
                 (double)((uint64_t)1 << i) / unit_us, below);
    }
    text_add(t, "%s_bucket{%s%sle=\"+Inf\"} %" PRIu64 "\n%s_sum", name, all, comma, total, name);
    add_labels(t, labels);
    text_add(t, " %.9g\n%s_count", (double)sum_of(h) / unit_us, name);
    add_labels(t, labels);
    text_add(t, " %" PRIu64 "\n", total);
}

void histogram_render(struct text *t, const char *name, const char *help, const struct histogram *h,
                      const char *labels)
{
    metric_head(t, name, "histogram", help);
    histogram_lines(t, name, h, labels, 1e6);
}

/* ---- summaries ------------------------------------------------------------------------------ */

/* Within its bucket a value is taken to be anywhere with the same chance. */
static double estimate_us(const uint64_t bucket[HISTOGRAM_BUCKETS + 1], uint64_t total, double q)
{
    const double wanted = q * (double)total;
    double below = 0;
    for (unsigned i = 0; i <= HISTOGRAM_BUCKETS; i++) {
        const double here = (double)bucket[i];
        const double top = (double)((uint64_t)1 << i), bottom = i > 0 ? top / 2 : 0;
        if (here > 0 && below + here >= wanted)
            return bottom + (top - bottom) * (wanted - below) / here;
        below += here;
    }
    return 0;
}

void summary_lines(struct text *t, const char *name, const struct histogram *h, const char *labels)
{
    static const char *const quantiles[] = {"0.5",   "0.75",   "0.95", "0.99",
                                            "0.999", "0.9999", "1.0"};
    uint64_t bucket[HISTOGRAM_BUCKETS + 1];
    const uint64_t total = read_buckets(h, bucket);
    for (size_t i = 0; i < sizeof quantiles / sizeof *quantiles; i++) {
        text_add(t, "%s{%s,quantile=\"%s\"} ", name, labels, quantiles[i]);
        if (total == 0)
            text_add(t, "NaN\n");
        else
            text_add(t, "%.9g\n", estimate_us(bucket, total, strtod(quantiles[i], NULL)) / 1e3);
    }
    text_add(t, "%s_count{%s} %" PRIu64 "\n", name, labels, total);
    text_add(t, "%s_sum{%s} %.9g\n", name, labels, (double)sum_of(h) / 1e3);
}

void summary_render(struct text *t, const char *name, const char *help,
                    const struct histogram *good, const struct histogram *failed)
{
    static const struct histogram none;
    metric_head(t, name, "summary", help);
    summary_lines(t, name, failed ? failed : &none, "success=\"false\"");
    summary_lines(t, name, good, "success=\"true\"");
}
