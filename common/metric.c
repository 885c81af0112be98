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
    unsigned i = 0;
    while (i < HISTOGRAM_BUCKETS && ((uint64_t)1 << i) < us)
        i++;
    return i;
}

void histogram_note(struct histogram *h, uint64_t us)
{
    atomic_fetch_add_explicit(&h->bucket[bucket_of(us)], 1, memory_order_relaxed);
    atomic_fetch_add_explicit(&h->sum_us, us, memory_order_relaxed);
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

static void add_head(struct text *t, const char *name, const char *kind, const char *help)
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
        add_head(t, d->name, d->kind == METRIC_COUNTER ? "counter" : "gauge", d->help);
        text_add(t, "%s", d->name);
        add_labels(t, labels);
        text_add(t, " %" PRId64 "\n", metric_get(m));
    }
}

/* Seconds, as Prometheus wants its durations, and buckets that add up. */
void histogram_render(struct text *t, const char *name, const char *help, const struct histogram *h,
                      const char *labels)
{
    uint64_t bucket[HISTOGRAM_BUCKETS + 1], below = 0;
    const uint64_t total = read_buckets(h, bucket);
    const char *all = labels ? labels : "", *comma = *all ? "," : "";
    struct histogram *readable = (struct histogram *)(uintptr_t)h;
    const uint64_t sum = atomic_load_explicit(&readable->sum_us, memory_order_relaxed);
    add_head(t, name, "histogram", help);
    for (unsigned i = 0; i < HISTOGRAM_BUCKETS; i++) {
        below += bucket[i];
        text_add(t, "%s_bucket{%s%sle=\"%.9g\"} %" PRIu64 "\n", name, all, comma,
                 (double)((uint64_t)1 << i) / 1e6, below);
    }
    text_add(t, "%s_bucket{%s%sle=\"+Inf\"} %" PRIu64 "\n%s_sum", name, all, comma, total, name);
    add_labels(t, labels);
    text_add(t, " %.9g\n%s_count", (double)sum / 1e6, name);
    add_labels(t, labels);
    text_add(t, " %" PRIu64 "\n", total);
}
