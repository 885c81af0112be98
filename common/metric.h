/* metric.h - counters and gauges under the names that dashboards know, as Prometheus text.
 *
 * A component lists its metrics in a .def file: X(member, name, kind, help), and embeds a
 * struct of `struct metric`.  Labelled series (a topic's, a subscription's) are not kept
 * here: their owner writes them when it is asked to render.
 *
 * Threads: metric_add() and metric_set() from any (relaxed atomics); rendering from any.
 */
#ifndef COMMON_METRIC_H
#define COMMON_METRIC_H

#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>

#include "common/buf.h"

enum metric_kind { METRIC_COUNTER, METRIC_GAUGE };

struct metric {
    _Atomic int64_t value;
};

struct metric_def {
    const char *name;
    enum metric_kind kind;
    const char *help;
    size_t offset; /* of the struct metric in its struct */
};

/* Upper bounds fixed at birth, in us; the last bucket is everything above. */
#define HISTOGRAM_BUCKETS 24
struct histogram {
    _Atomic uint64_t bucket[HISTOGRAM_BUCKETS + 1]; /* of 2^i us */
    _Atomic uint64_t sum_us;
};

static inline void metric_add(struct metric *m, int64_t by)
{
    atomic_fetch_add_explicit(&m->value, by, memory_order_relaxed);
}

static inline void metric_set(struct metric *m, int64_t to)
{
    atomic_store_explicit(&m->value, to, memory_order_relaxed);
}

static inline int64_t metric_get(const struct metric *m)
{
    return atomic_load_explicit(&((struct metric *)(uintptr_t)m)->value, memory_order_relaxed);
}

void histogram_note(struct histogram *h, uint64_t us);
void histogram_note_mine(struct histogram *h, uint64_t us); /* one thread only notes, any reads */
void histogram_merge(struct histogram *into, const struct histogram *more);
uint64_t histogram_quantile(const struct histogram *h, double q); /* us: the bucket's upper bound */

/* Text that grows; the renderer's own. */
struct text {
    char *at; /* NUL-terminated; NULL when empty */
    size_t len, room;
};
void text_add(struct text *t, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
void text_drop(struct text *t);

/* `key="value"`, the value escaped; what is no UTF-8 becomes '?', or a scraper would refuse all. */
void text_add_label(struct text *t, const char *key, const char *value);

/* HELP and TYPE: once a name, before all of its lines.  kind: "counter", "gauge" ... */
void metric_head(struct text *t, const char *name, const char *kind, const char *help);
void metric_render(struct text *t, const struct metric_def *defs, size_t n, const void *metrics,
                   const char *labels); /* labels: `cluster="c"`, or NULL */
void histogram_render(struct text *t, const char *name, const char *help, const struct histogram *h,
                      const char *labels);
/* The same without a head, in units of `unit_us`: 1e6 for seconds, 1e3 for ms. */
void histogram_lines(struct text *t, const char *name, const struct histogram *h,
                     const char *labels, double unit_us);
/* Quantiles in ms, without a head. */
void summary_lines(struct text *t, const char *name, const struct histogram *h, const char *labels);
/* Times of an operation as BookKeeper prints them: quantiles in ms, failures apart (NULL: there
 * are none). */
void summary_render(struct text *t, const char *name, const char *help,
                    const struct histogram *good, const struct histogram *failed);

#endif
