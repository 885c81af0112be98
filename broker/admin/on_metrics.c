/* GET /metrics: figures from every loop, then text in chunks as fast as the client takes them.
 *
 *   each loop: series_collect ---> all are here ---> head, then name by name, row by row
 *
 * A second one waits until the first has been sent, so that what they hold stays bounded. */
#include "broker/admin/routes.h"
#include "broker/broker.h"
#include "broker/metrics.h"
#include "broker/topic/series.h"
#include "common/mem.h"
#include "common/process.h"
#include "metadata/metadata.h"

enum { CHUNK = 64 * 1024, WAITING_MAX = 8 };

struct scrape {
    struct admin *admin;
    struct http_request *request;
    struct list_node node; /* among those that wait */
    unsigned n, left;      /* loops; of them, still collecting */
    unsigned name, part;   /* what is written next */
    size_t row;
    bool headed, begun;
    struct text text;
    struct series_call part_of[];
};

/* ---- the whole broker ---- */

static void add_gauge(struct text *t, const char *name, const char *help, const char *cluster,
                      double value)
{
    metric_head(t, name, "gauge", help);
    text_add(t, "%s{%s} %.16g\n", name, cluster, value);
}

static double sum_of(const struct scrape *s, enum topic_figure f)
{
    double sum = 0;

    for (unsigned i = 0; i < s->n; i++)
        sum += s->part_of[i].series.sum[f];
    return sum;
}

static void add_sums(struct text *t, const struct scrape *s, const char *cluster)
{
    static const struct {
        const char *name, *help;
        enum topic_figure figure;
    } sums[] = {
        {"pulsar_broker_rate_in", "messages published a second", TOPIC_rate_in},
        {"pulsar_broker_rate_out", "messages sent to consumers a second", TOPIC_rate_out},
        {"pulsar_broker_throughput_in", "bytes published a second", TOPIC_throughput_in},
        {"pulsar_broker_throughput_out", "bytes sent to consumers a second", TOPIC_throughput_out},
        {"pulsar_broker_storage_size", "bytes stored, all copies", TOPIC_storage_size},
        {"pulsar_broker_storage_write_rate", "entries stored a second", TOPIC_write_rate},
        {"pulsar_broker_msg_backlog", "entries not acknowledged", TOPIC_backlog},
    };

    for (size_t i = 0; i < sizeof(sums) / sizeof(sums[0]); i++)
        add_gauge(t, sums[i].name, sums[i].help, cluster, sum_of(s, sums[i].figure));
}

static void add_managed_ledgers(struct text *t, const struct scrape *s, const char *cluster)
{
    struct ml_figures f = {0};
    double hits = 0, misses = 0, evictions = 0;

    for (unsigned i = 0; i < s->n; i++) {
        const struct series *p = &s->part_of[i].series;
        f.count += p->ledgers.count;
        f.cache_bytes += p->ledgers.cache_bytes;
        f.cache_entries += p->ledgers.cache_entries;
        f.cache_evictions += p->ledgers.cache_evictions;
        hits += p->hits_rate;
        misses += p->misses_rate;
        evictions += p->evictions_rate;
    }
    add_gauge(t, "pulsar_ml_count", "managed ledgers that are open", cluster, (double)f.count);
    add_gauge(t, "pulsar_ml_cache_used_size", "bytes of entries kept in memory", cluster,
              (double)f.cache_bytes);
    add_gauge(t, "pulsar_ml_cache_entries", "entries kept in memory", cluster,
              (double)f.cache_entries);
    add_gauge(t, "pulsar_ml_cache_hits_rate", "entries read from memory a second", cluster, hits);
    add_gauge(t, "pulsar_ml_cache_misses_rate", "entries read from bookies a second", cluster,
              misses);
    add_gauge(t, "pulsar_ml_cache_evictions", "entries dropped from memory a second", cluster,
              evictions);
}

static void add_head(struct scrape *s)
{
    const struct admin_env *env = &s->admin->env;
    struct histogram publish_us = {0};
    struct text cluster = {0}, *t = &s->text;

    text_add_label(&cluster, "cluster", env->conf->cluster);
    broker_metrics_render(env->metrics, cluster.at, t);
    for (unsigned i = 0; i < s->n; i++)
        histogram_merge(&publish_us, &s->part_of[i].series.publish_us);
    metric_head(t, "pulsar_broker_publish_latency", "summary", "ms from a publish to its storing");
    summary_lines(t, "pulsar_broker_publish_latency", &publish_us, cluster.at);
    add_sums(t, s, cluster.at);
    add_managed_ledgers(t, s, cluster.at);
    meta_render_times(env->meta, t, cluster.at);
    process_render(t, cluster.at);
    text_drop(&cluster);
}

/* ---- topics, subscriptions, namespaces ---- */

static void begin_name(struct scrape *s)
{
    const struct series_name *n = &series_names[s->name];

    metric_head(&s->text, n->name, n->type, n->help);
    s->headed = true;
    s->part = 0;
    s->row = 0;
}

static void add_row(struct scrape *s)
{
    const struct series_name *n = &series_names[s->name];
    const struct series *part = &s->part_of[s->part].series;
    const double figure = part->rows[n->kind].figures[s->row * series_width(n->kind) + n->figure];

    text_add(&s->text, "%s{%s} %.16g\n", n->name, series_labels(part, n->kind, s->row), figure);
    s->row++;
}

/* Up to a chunk of text; false when all of it has been written. */
static bool add_rows(struct scrape *s)
{
    while (s->name < series_n_names) {
        const enum series_kind kind = series_names[s->name].kind;
        if (s->text.len >= CHUNK)
            return true;
        if (!s->headed)
            begin_name(s);
        if (s->part < s->n && s->row < s->part_of[s->part].series.rows[kind].n) {
            add_row(s);
        } else if (s->part + 1 < s->n) {
            s->part++;
            s->row = 0;
        } else {
            s->name++;
            s->headed = false;
        }
    }
    return s->text.len > 0;
}

/* ---- one scrape ---- */

static void start(struct scrape *s);

static void scrape_over(struct scrape *s)
{
    struct admin *a = s->admin;

    for (unsigned i = 0; i < s->n; i++)
        series_drop(&s->part_of[i].series);
    text_drop(&s->text);
    mem_free(s);
    a->scraping = false;
    struct list_node *next = list_pop_front(&a->scrapes);
    if (next) {
        a->n_scrapes--;
        start(list_entry(next, struct scrape, node));
    }
    admin_lets_go(a);
}

static void send_next(void *ctx, bool gone)
{
    struct scrape *s = ctx;

    s->text.len = 0;
    if (gone || !add_rows(s)) {
        http_reply_end(s->request);
        scrape_over(s);
        return;
    }
    http_reply_chunk(s->request, view_of(s->text.at, s->text.len));
}

static void write_out(struct scrape *s)
{
    for (unsigned i = 1; i < s->n; i++) {
        struct series *from = &s->part_of[i].series;
        const bool by_namespace = s->part_of[i].by_namespace;
        series_merge_namespaces(&s->part_of[0].series, from, by_namespace);
        from->rows[SERIES_NAMESPACES].n = 0;
        if (by_namespace)
            from->rows[SERIES_TOPICS].n = 0;
    }
    add_head(s);
    http_reply_begin(s->request, 200, "text/plain; version=0.0.4; charset=utf-8", send_next, s);
    http_reply_chunk(s->request, view_of(s->text.at, s->text.len));
}

static void part_came(struct series_call *c)
{
    struct scrape *s = c->private;

    if (--s->left == 0)
        write_out(s);
}

static void start(struct scrape *s)
{
    struct admin *a = s->admin;

    a->scraping = true;
    for (unsigned i = 0; i < s->n; i++)
        series_collect(&s->part_of[i]);
}

void on_metrics(struct admin *a, struct http_request *r, const struct segments_of_path *p)
{
    const struct topics_map *topics = a->env.topics;

    (void)p;
    if (a->n_scrapes == WAITING_MAX) {
        http_reply_reason(r, 503, "%d others wait for metrics already", WAITING_MAX);
        return;
    }
    struct scrape *s = mem_alloc(sizeof(*s) + topics->n * sizeof(s->part_of[0]));
    *s = (struct scrape){.admin = a, .request = r, .n = topics->n, .left = topics->n};
    for (unsigned i = 0; i < s->n; i++)
        s->part_of[i] = (struct series_call){.topics = topics->at[i],
                                             .home = a->env.home,
                                             .cluster = a->env.conf->cluster,
                                             .by_namespace = !a->env.conf->topic_metrics,
                                             .private = s,
                                             .done = part_came};
    admin_holds(a);
    if (!a->scraping) {
        start(s);
        return;
    }
    list_push_back(&a->scrapes, &s->node);
    a->n_scrapes++;
}
