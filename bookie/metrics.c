#include "bookie/metrics.h"

#include <inttypes.h>

#include "bookie/storage.h"
#include "common/process.h"

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
    {"bookie_journal_JOURNAL_QUEUE_SIZE", METRIC_GAUGE, "records that wait for the journal",
     offsetof(struct journal_stats, queued)},
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

static void render_caches(struct text *t, const struct storage *s)
{
    struct storage *readable = (struct storage *)(uintptr_t)s;
    int64_t read = 0;
    for (unsigned i = 0; i < s->loops->n; i++)
        read += metric_get(&s->shards[i].read.held);
    metric_head(t, "bookie_write_cache_size", "gauge", "bytes in both halves of the write cache");
    text_add(t, "bookie_write_cache_size %zu\n",
             atomic_load(&readable->active_bytes) + atomic_load(&readable->frozen_bytes));
    metric_head(t, "bookie_read_cache_size", "gauge", "bytes in the read cache");
    text_add(t, "bookie_read_cache_size %" PRId64 "\n", read);
}

void bookie_metrics_render(const struct bookie_metrics *m, const struct storage *s, struct text *t)
{
    const struct journal_stats *j = journal_stats(s->journal);
    const struct checkpoint_stats *c = checkpoint_stats(s->checkpoint);
    metric_render(t, own, COUNT(own), m, NULL);
    summary_render(t, "bookkeeper_server_ADD_ENTRY_REQUEST", "ms of an add", &m->add_us,
                   &m->add_failed_us);
    summary_render(t, "bookkeeper_server_READ_ENTRY_REQUEST", "ms of a read", &m->read_us,
                   &m->read_failed_us);
    metric_render(t, journal, COUNT(journal), j, NULL);
    summary_render(t, "bookie_journal_JOURNAL_SYNC", "ms of a write and its sync", &j->sync_us,
                   NULL);
    metric_render(t, checkpoints, COUNT(checkpoints), c, NULL);
    summary_render(t, "bookie_flush", "ms of a checkpoint", &c->run_us, NULL);
    render_caches(t, s);
    process_render(t, NULL);
}
