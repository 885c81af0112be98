/* metrics.h - what the whole broker counts. */
#ifndef BROKER_METRICS_H
#define BROKER_METRICS_H

#include "common/log_limit.h"
#include "common/metric.h"
#include "ledger/client.h"

struct broker_metrics {
#define X(member, name, kind, help) struct metric member;
#include "broker/metrics.def"
#undef X
    struct ledger_counts ledgers;
    struct histogram load_us; /* of a topic */
    struct log_limit slow_lines;
};

/* cluster: the label, `cluster="c"`. */
void broker_metrics_render(const struct broker_metrics *m, const char *cluster, struct text *into);

#endif
