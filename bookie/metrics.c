#include "bookie/metrics.h"

#include "bookie/storage.h"

static const struct metric_def own[] = {
#define X(member, name, kind, help) \
    {name, METRIC_##kind, help, offsetof(struct bookie_metrics, member)},
#include "bookie/metrics.def"
#undef X
};

static const struct metric_def journal[] = {
    {"bookie_journal_JOURNAL_WRITE_BYTES", METRIC_COUNTER, "bytes written to the journal",
     offsetof(struct journal_stats, bytes)},
    {"bookie_journal_JOURNAL_ADD_ENTRY_count", METRIC_COUNTER, "records written to the journal",
     offsetof(struct journal_stats, records)},
    {"bookie_journal_JOURNAL_QUEUE_BYTES", METRIC_GAUGE, "bytes that wait for the journal",
     offsetof(struct journal_stats, queued_bytes)},
};

static const struct metric_def checkpoints[] = {
    {"bookie_flush_failures", METRIC_COUNTER, "checkpoints that failed and were tried again",
     offsetof(struct checkpoint_stats, failures)},
    {"bookie_flush_entries", METRIC_COUNTER, "entries moved to entry logs",
     offsetof(struct checkpoint_stats, entries)},
    {"bookie_flush_size", METRIC_COUNTER, "bytes moved to entry logs",
     offsetof(struct checkpoint_stats, bytes)},
};

#define COUNT(table) (sizeof(table) / sizeof((table)[0]))

void bookie_metrics_render(const struct bookie_metrics *m, const struct storage *s, struct text *t)
{
    const struct journal_stats *j = journal_stats(s->journal);
    const struct checkpoint_stats *c = checkpoint_stats(s->checkpoint);
    metric_render(t, own, COUNT(own), m, NULL);
    histogram_render(t, "bookkeeper_server_ADD_ENTRY_REQUEST", "time of an add", &m->add_us, NULL);
    histogram_render(t, "bookkeeper_server_READ_ENTRY_REQUEST", "time of a read", &m->read_us,
                     NULL);
    metric_render(t, journal, COUNT(journal), j, NULL);
    histogram_render(t, "bookie_journal_JOURNAL_SYNC", "time of a write and its sync", &j->sync_us,
                     NULL);
    metric_render(t, checkpoints, COUNT(checkpoints), c, NULL);
    histogram_render(t, "bookie_flush", "time of a checkpoint", &c->run_us, NULL);
}
