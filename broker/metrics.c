#include "broker/metrics.h"

static const struct metric_def defs[] = {
#define X(member, name, kind, help) {name, kind, help, offsetof(struct broker_metrics, member)},
#include "broker/metrics.def"
#undef X
};

void broker_metrics_render(const struct broker_metrics *m, const char *cluster, struct text *into)
{
    metric_render(into, defs, sizeof(defs) / sizeof(defs[0]), m, cluster);
    metric_head(into, "pulsar_topic_load_times", "summary", "ms to load a topic");
    summary_lines(into, "pulsar_topic_load_times", &m->load_us, cluster);
    metric_head(into, "pulsar_version_info", "gauge", "1, and the version as a label");
    text_add(into, "pulsar_version_info{%s,version=\"%s\"} 1\n", cluster, LGM_VERSION);
}
