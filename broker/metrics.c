#include "broker/metrics.h"

static const struct metric_def defs[] = {
#define X(member, name, kind, help) {name, kind, help, offsetof(struct broker_metrics, member)},
#include "broker/metrics.def"
#undef X
};

static const struct metric_def ledger_defs[] = {
#define X(member, name, kind, help) {name, kind, help, offsetof(struct ledger_counts, member)},
    X(changes, "lgm_ledger_bookies_replaced_total", METRIC_COUNTER,
      "times that bookies which failed under a ledger were replaced while it was written")
        X(lacking, "lgm_ledgers_lacking_bookies", METRIC_GAUGE,
          "ledgers written without a bookie that failed, because no other is there")
            X(second_reads, "lgm_ledger_second_reads_total", METRIC_COUNTER,
              "entries that a second bookie was asked for because the first one was slow")
                X(corrupt, "lgm_ledger_corrupt_entries_total", METRIC_COUNTER,
                  "entries that a bookie gave out with a wrong digest; another was asked")
#undef X
};

void broker_metrics_render(const struct broker_metrics *m, const char *cluster, struct text *into)
{
    metric_render(into, defs, sizeof(defs) / sizeof(defs[0]), m, cluster);
    metric_render(into, ledger_defs, sizeof(ledger_defs) / sizeof(ledger_defs[0]), &m->ledgers,
                  cluster);
    metric_head(into, "pulsar_topic_load_times", "summary", "ms to load a topic");
    summary_lines(into, "pulsar_topic_load_times", &m->load_us, cluster);
    metric_head(into, "pulsar_version_info", "gauge", "1, and the version as a label");
    text_add(into, "pulsar_version_info{%s,version=\"%s\"} 1\n", cluster, LGM_VERSION);
}
