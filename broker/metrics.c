#include "broker/metrics.h"

static const struct metric_def defs[] = {
#define X(member, name, kind, help) {name, kind, help, offsetof(struct broker_metrics, member)},
#include "broker/metrics.def"
#undef X
};

void broker_metrics_render(const struct broker_metrics *m, const char *cluster, struct text *into)
{
    struct text label = {0};

    text_add(&label, "cluster=\"%s\"", cluster);
    metric_render(into, defs, sizeof(defs) / sizeof(defs[0]), m, label.at);
    text_add(into, "# TYPE pulsar_version_info gauge\npulsar_version_info{%s,version=\"%s\"} 1\n",
             label.at, LGM_VERSION);
    text_drop(&label);
}
