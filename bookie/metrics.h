/* metrics.h - what a bookie counts, and its rendering as Prometheus text. */
#ifndef BOOKIE_METRICS_H
#define BOOKIE_METRICS_H

#include "common/metric.h"

struct storage;

/* Operations of version 3 beside adds and reads. */
enum { OTHER_OPS = 5 };

struct bookie_metrics {
#define X(member, name, kind, help) struct metric member;
#include "bookie/metrics.def"
#undef X
    struct histogram add_us, read_us; /* that went well */
    struct histogram add_failed_us, read_failed_us;
    struct op_times {
        struct histogram good, failed;
    } others[OTHER_OPS]; /* in the order of other_ops */
};

struct op_times *bookie_metrics_of(struct bookie_metrics *m, uint8_t op); /* NULL: none of these */
void bookie_metrics_render(const struct bookie_metrics *m, const struct storage *s, struct text *t);

#endif
