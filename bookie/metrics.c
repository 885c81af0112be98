#include "bookie/metrics.h"

#include <ctype.h>
#include <inttypes.h>
#include <string.h>

#include "bookie/storage.h"
#include "common/mem.h"
#include "common/process.h"
#include "proto/bookie_v3.h"

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

/* What else clients ask. */
static const struct {
    uint8_t op;
    const char *name, *help;
} other_ops[OTHER_OPS] = {
    {BOOKIE_READ_LAC, "bookkeeper_server_READ_LAC_REQUEST", "ms of a read of an explicit LAC"},
    {BOOKIE_WRITE_LAC, "bookkeeper_server_WRITE_LAC_REQUEST", "ms of a write of one"},
    {BOOKIE_INFO, "bookkeeper_server_GET_BOOKIE_INFO_REQUEST", "ms of a question for space"},
    {BOOKIE_FORCE, "bookkeeper_server_FORCE_LEDGER_REQUEST", "ms of a wait for a sync"},
    {BOOKIE_LIST, "bookkeeper_server_GET_LIST_OF_ENTRIES_OF_LEDGER_REQUEST",
     "ms of a list of a ledger's entries"},
};

struct op_times *bookie_metrics_of(struct bookie_metrics *m, uint8_t op)
{
    for (unsigned i = 0; i < OTHER_OPS; i++)
        if (other_ops[i].op == op)
            return &m->others[i];
    return NULL;
}

#define COUNT(table) (sizeof(table) / sizeof((table)[0]))

/* What there may be several of; where there is one it has no label. */
struct several {
    const struct storage *storage;
    unsigned n;
    const void *(*stats)(const struct storage *s, unsigned i);
    const struct histogram *(*times)(const struct storage *s, unsigned i);
    void (*label)(struct text *t, const struct storage *s, unsigned i);
};

static void line(struct text *t, const struct several *v, const struct metric_def *def, unsigned i)
{
    const char *stats = v->stats(v->storage, i);
    const struct metric *m = (const struct metric *)(const void *)(stats + def->offset);
    text_add(t, "%s", def->name);
    if (v->n > 1) {
        text_add(t, "{");
        v->label(t, v->storage, i);
        text_add(t, "}");
    }
    text_add(t, " %" PRId64 "\n", metric_get(m));
}

static void render_several(struct text *t, const struct several *v, const struct metric_def *defs,
                           size_t n)
{
    for (size_t d = 0; d < n; d++) {
        metric_head(t, defs[d].name, defs[d].kind == METRIC_COUNTER ? "counter" : "gauge",
                    defs[d].help);
        for (unsigned i = 0; i < v->n; i++)
            line(t, v, &defs[d], i);
    }
}

/* None of them fails and goes on. */
static void render_times(struct text *t, const struct several *v, const char *name,
                         const char *help)
{
    static const struct histogram none;
    metric_head(t, name, "summary", help);
    for (unsigned i = 0; i < v->n; i++) {
        struct text good = {0}, failed = {0};
        if (v->n > 1) {
            v->label(&good, v->storage, i);
            text_add(&good, ",");
        }
        text_add(&failed, "%ssuccess=\"false\"", good.at ? good.at : "");
        text_add(&good, "success=\"true\"");
        summary_lines(t, name, &none, failed.at);
        summary_lines(t, name, v->times(v->storage, i), good.at);
        text_drop(&good);
        text_drop(&failed);
    }
}

static const void *journal_counts(const struct storage *s, unsigned i)
{
    return journal_stats(s->journals[i]);
}

static const struct histogram *sync_times(const struct storage *s, unsigned i)
{
    return &journal_stats(s->journals[i])->sync_us;
}

static void journal_label(struct text *t, const struct storage *s, unsigned i)
{
    (void)s;
    text_add(t, "journalIndex=\"%u\"", i);
}

static const void *flush_counts(const struct storage *s, unsigned i)
{
    return checkpoint_stats(s->devices[i].checkpoint);
}

static const struct histogram *flush_times(const struct storage *s, unsigned i)
{
    return &checkpoint_stats(s->devices[i].checkpoint)->run_us;
}

static void device_label(struct text *t, const struct storage *s, unsigned i)
{
    text_add_label(t, "ledgerDir", s->devices[i].conf.dir);
}

static void render_journals(struct text *t, const struct storage *s)
{
    const struct several v = {s, s->n_journals, journal_counts, sync_times, journal_label};
    render_several(t, &v, journal, COUNT(journal));
    render_times(t, &v, "bookie_journal_JOURNAL_SYNC", "ms of a write and its sync");
}

/* As BookKeeper names it: by its directory, with what a name may not have as underscores. */
static void render_usage(struct text *t, const struct device *d)
{
    struct disk *disk = d->conf.disk;
    uint64_t free_bytes, total;
    if (disk->ops->space(disk, d->conf.dir, &free_bytes, &total) || total == 0)
        return;
    const size_t len = strlen(d->conf.dir), last = strlen("/current");
    char *dir = mem_string_n(d->conf.dir, len > last ? len - last : len);
    for (char *at = dir; *at; at++)
        if (!isalnum((unsigned char)*at))
            *at = '_';
    char *name = mem_format("bookie_ledger_dir_%s_usage", dir);
    metric_head(t, name, "gauge", "percent of the device of a ledger directory that are in use");
    text_add(t, "%s %.6g\n", name, 100.0 - 100.0 * (double)free_bytes / (double)total);
    mem_free(name);
    mem_free(dir);
}

static void render_devices(struct text *t, const struct storage *s)
{
    for (unsigned i = 0; i < s->n_devices; i++)
        render_usage(t, &s->devices[i]);
    const struct several v = {s, s->n_devices, flush_counts, flush_times, device_label};
    render_several(t, &v, checkpoints, COUNT(checkpoints));
    render_times(t, &v, "bookie_flush", "ms of a checkpoint");
}

static void render_caches(struct text *t, const struct storage *s)
{
    struct storage *readable = (struct storage *)(uintptr_t)s;
    int64_t read = 0;
    size_t written = 0;
    for (unsigned i = 0; i < s->n_devices; i++)
        written += atomic_load(&readable->devices[i].active_bytes) +
                   atomic_load(&readable->devices[i].frozen_bytes);
    for (unsigned i = 0; i < s->loops->n; i++)
        read += metric_get(&s->shards[i].read.held);
    metric_head(t, "bookie_write_cache_size", "gauge", "bytes in both halves of the write cache");
    text_add(t, "bookie_write_cache_size %zu\n", written);
    metric_head(t, "bookie_read_cache_size", "gauge", "bytes in the read cache");
    text_add(t, "bookie_read_cache_size %" PRId64 "\n", read);
}

static void render_limits(struct text *t, const struct storage *s)
{
    metric_head(t, "bookie_journal_JOURNAL_MEMORY_MAX", "gauge",
                "bytes that may wait for the journals");
    text_add(t, "bookie_journal_JOURNAL_MEMORY_MAX %" PRIu64 "\n", s->conf.journal.queue_bytes);
    metric_head(t, "bookie_journal_DIRS", "gauge", "journal directories");
    text_add(t, "bookie_journal_DIRS %u\n", s->n_journals);
    metric_head(t, "bookie_ledger_num_dirs", "gauge", "ledger directories");
    text_add(t, "bookie_ledger_num_dirs %u\n", s->n_devices);
}

void bookie_metrics_render(const struct bookie_metrics *m, const struct storage *s, struct text *t)
{
    metric_render(t, own, COUNT(own), m, NULL);
    summary_render(t, "bookkeeper_server_ADD_ENTRY_REQUEST", "ms of an add", &m->add_us,
                   &m->add_failed_us);
    summary_render(t, "bookkeeper_server_READ_ENTRY_REQUEST", "ms of a read", &m->read_us,
                   &m->read_failed_us);
    for (unsigned i = 0; i < OTHER_OPS; i++)
        summary_render(t, other_ops[i].name, other_ops[i].help, &m->others[i].good,
                       &m->others[i].failed);
    render_limits(t, s);
    render_journals(t, s);
    render_devices(t, s);
    render_caches(t, s);
    process_render(t, NULL);
}
