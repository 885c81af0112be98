#include "broker/topic/series.h"

#include <string.h>

#include "broker/broker.h"
#include "broker/topic/subscription.h"
#include "broker/topic/topic.h"

const struct series_name series_names[] = {
#define SERIES_NAMESPACE(member, name, kind, help) \
    {SERIES_NAMESPACES, NAMESPACE_##member, name, kind, help},
#include "broker/topic/series.def"
#define SERIES_TOPIC(member, name, kind, help) {SERIES_TOPICS, TOPIC_##member, name, kind, help},
#include "broker/topic/series.def"
#define SERIES_SUBSCRIPTION(member, name, kind, help) \
    {SERIES_SUBSCRIPTIONS, SUBSCRIPTION_##member, name, kind, help},
#include "broker/topic/series.def"
};
const unsigned series_n_names = sizeof(series_names) / sizeof(series_names[0]);

unsigned series_width(enum series_kind kind)
{
    static const unsigned widths[SERIES_KINDS] = {NAMESPACE_FIGURES, TOPIC_FIGURES,
                                                  SUBSCRIPTION_FIGURES};
    return widths[kind];
}

/* ---- rows ---- */

/* Zeroed; its labels follow. */
static double *add_row(struct series *s, enum series_kind kind)
{
    struct series_rows *r = &s->rows[kind];
    const unsigned width = series_width(kind);

    if (r->n == r->room) {
        r->room = r->room ? r->room * 2 : 64;
        r->labels = mem_resize(r->labels, r->room * sizeof(r->labels[0]));
        r->figures = mem_resize(r->figures, r->room * width * sizeof(r->figures[0]));
    }
    double *row = &r->figures[r->n * width];
    memset(row, 0, width * sizeof(row[0]));
    r->labels[r->n++] = s->labels.len;
    return row;
}

static void end_labels(struct series *s)
{
    s->labels.len++; /* over the NUL */
}

static void add_rows_up(double *into, const double *from, unsigned n)
{
    for (unsigned i = 0; i < n; i++)
        into[i] += from[i];
}

/* A namespace has the same place among the namespaces and, by_namespace, among the topics. */
static size_t place_of(struct series *s, const char *ns, bool topics_too)
{
    struct series_place *p;

    HASH_FIND_STR(s->places, ns, p);
    if (p)
        return p->row;
    p = mem_new(struct series_place);
    p->ns = mem_string(ns);
    p->row = s->rows[SERIES_NAMESPACES].n;
    HASH_ADD_KEYPTR(hh, s->places, p->ns, strlen(p->ns), p);
    add_row(s, SERIES_NAMESPACES);
    if (topics_too)
        add_row(s, SERIES_TOPICS);
    text_add(&s->labels, "%s", ns);
    end_labels(s);
    return p->row;
}

static double *row_at(struct series *s, enum series_kind kind, size_t row)
{
    return &s->rows[kind].figures[row * series_width(kind)];
}

void series_merge_namespaces(struct series *into, const struct series *from, bool topics_too)
{
    const struct series_place *p, *next;

    HASH_ITER(hh, (struct series_place *)(uintptr_t)from->places, p, next)
    {
        const size_t row = place_of(into, p->ns, topics_too);
        const struct series_rows *r = from->rows;
        add_rows_up(row_at(into, SERIES_NAMESPACES, row),
                    &r[SERIES_NAMESPACES].figures[p->row * NAMESPACE_FIGURES], NAMESPACE_FIGURES);
        if (topics_too)
            add_rows_up(row_at(into, SERIES_TOPICS, row),
                        &r[SERIES_TOPICS].figures[p->row * TOPIC_FIGURES], TOPIC_FIGURES);
    }
}

void series_drop(struct series *s)
{
    struct series_place *p, *next;

    HASH_ITER(hh, s->places, p, next)
    {
        HASH_DEL(s->places, p);
        mem_free(p->ns);
        mem_free(p);
    }
    for (unsigned k = 0; k < SERIES_KINDS; k++) {
        mem_free(s->rows[k].labels);
        mem_free(s->rows[k].figures);
    }
    text_drop(&s->labels);
    *s = (struct series){0};
}

/* ---- figures ---- */

struct backlog {
    struct series *series;
    const char *labels; /* of the topic; NULL: no rows of subscriptions are wanted */
    unsigned n;
    double all;
    struct position slowest;
    bool any;
};

/* sub: NULL: nobody has used it since the topic was loaded */
static double *add_subscription(struct backlog *b, const char *name, const struct subscription *sub)
{
    double *row = add_row(b->series, SERIES_SUBSCRIPTIONS);

    row[SUBSCRIPTION_rate_out] = sub ? sub->consuming.out.message_rate : 0;
    row[SUBSCRIPTION_throughput_out] = sub ? sub->consuming.out.byte_rate : 0;
    row[SUBSCRIPTION_drop_rate] = sub ? sub->dropped.message_rate : 0;
    row[SUBSCRIPTION_dropped] = sub ? (double)sub->dropped.messages : 0;
    text_add(&b->series->labels, "%s,", b->labels);
    text_add_label(&b->series->labels, "subscription", name);
    end_labels(b->series);
    return row;
}

static void count_cursor(void *ctx, struct cursor *c)
{
    struct backlog *b = ctx;
    const struct position mark = cursor_mark_delete(c);
    const double backlog = (double)cursor_backlog(c);

    b->n++;
    b->all += backlog;
    if (!b->any || position_compare(mark, b->slowest) < 0)
        b->slowest = mark;
    b->any = true;
    if (!b->labels)
        return;
    add_subscription(b, cursor_name(c), cursor_user(c))[SUBSCRIPTION_back_log] = backlog;
}

/* Of a ledger that is acknowledged in part: as if its entries were of one size. */
static double bytes_behind(const struct segments *s, struct position mark)
{
    double bytes = 0;

    for (unsigned i = 0; i < s->n; i++) {
        const struct segment *g = &s->at[i];
        if (g->ledger > mark.ledger)
            bytes += (double)g->bytes;
        else if (g->ledger == mark.ledger && g->entries > mark.entry + 1)
            bytes += (double)g->bytes * (double)(g->entries - mark.entry - 1) / (double)g->entries;
    }
    return bytes;
}

static double bytes_stored(const struct segments *s)
{
    double bytes = 0;

    for (unsigned i = 0; i < s->n; i++)
        bytes += (double)s->at[i].bytes;
    return bytes;
}

static unsigned count_nodes(const struct list_node *list)
{
    unsigned n = 0;

    list_each(list, node) n++;
    return n;
}

static void fill_stats(double *row, const struct topic_stats *s)
{
    const struct spread *d = topic_stats_spread(s);

    row[TOPIC_rate_in] = s->in.message_rate;
    row[TOPIC_rate_out] = s->out.message_rate;
    row[TOPIC_throughput_in] = s->in.byte_rate;
    row[TOPIC_throughput_out] = s->out.byte_rate;
    row[TOPIC_in_messages] = (double)s->in.messages;
    row[TOPIC_in_bytes] = (double)s->in.bytes;
    row[TOPIC_out_messages] = (double)s->out.messages;
    row[TOPIC_out_bytes] = (double)s->out.bytes;
    row[TOPIC_write_rate] = s->write_rate;
    for (unsigned i = 0; i < LATENCY_BUCKETS; i++)
        row[TOPIC_latency_0 + i] = d->latency[i];
    for (unsigned i = 0; i < SIZE_BUCKETS; i++)
        row[TOPIC_size_0 + i] = d->size[i];
    row[TOPIC_latency_count] = row[TOPIC_size_count] = (double)d->entries;
    row[TOPIC_latency_sum] = (double)d->latency_us;
    row[TOPIC_size_sum] = (double)d->bytes;
}

static void fill_stored(double *row, struct topic *t, struct backlog *b, unsigned copies)
{
    const struct segments *s = managed_ledger_segments(t->ml);

    subscription_cursors(t, count_cursor, b);
    row[TOPIC_subscriptions] = b->n;
    row[TOPIC_storage_logical] = bytes_stored(s);
    row[TOPIC_storage_size] = row[TOPIC_storage_logical] * copies;
    row[TOPIC_backlog] = b->all;
    row[TOPIC_backlog_size] = b->any ? bytes_behind(s, b->slowest) : 0;
}

static void fill_fleeting(double *row, const struct topic *t, struct backlog *b)
{
    list_each(&t->subscriptions, n)
    {
        const struct subscription *sub = list_entry(n, struct subscription, node);
        if (b->labels)
            add_subscription(b, sub->name, sub);
        row[TOPIC_subscriptions]++;
    }
}

static void fill_topic(double *row, struct topic *t, struct backlog *b, unsigned copies)
{
    const unsigned producers = count_nodes(&t->producers);

    fill_stats(row, &t->stats);
    row[TOPIC_producers] = producers;
    row[TOPIC_consumers] = t->inside > producers ? t->inside - producers : 0;
    if (topic_is_stored(t))
        fill_stored(row, t, b, copies);
    else
        fill_fleeting(row, t, b);
}

/* A cursor that is counted knows meanwhile whose it is: what its consumers were sent is known of
 * a subscription that had any since the topic was loaded. */
static void name_users(const struct topic *t, bool on)
{
    list_each(&t->subscriptions, n)
    {
        struct subscription *sub = list_entry(n, struct subscription, node);
        if (sub->cursor && (sub->state == SUBSCRIPTION_READY || sub->state == SUBSCRIPTION_SEEKING))
            cursor_set_user(sub->cursor, on ? sub : NULL);
    }
}

/* ---- collecting ---- */

static void labels_of(struct text *t, const char *cluster, const char *ns, const char *topic)
{
    text_add_label(t, "cluster", cluster);
    text_add(t, ",");
    text_add_label(t, "namespace", ns);
    if (!topic)
        return;
    text_add(t, ",");
    text_add_label(t, "topic", topic);
}

static void visit(struct topics_walk *w, struct topic *t)
{
    struct series_call *c = container_of(w, struct series_call, walk);
    const struct topics_env *env = topics_env_of(c->topics);
    struct series *s = &c->series;
    struct text ns = {0}, labels = {0};
    double figures[TOPIC_FIGURES] = {0};
    struct backlog b = {.series = s};

    if (!topic_is_ready(t))
        return;
    char *name = mem_format("%s/%s", t->name.tenant, t->name.ns);
    labels_of(&ns, c->cluster, name, NULL);
    labels_of(&labels, c->cluster, name, t->name.full);
    b.labels = c->by_namespace ? NULL : labels.at;
    const size_t place = place_of(s, ns.at, c->by_namespace);
    row_at(s, SERIES_NAMESPACES, place)[NAMESPACE_topics]++;
    name_users(t, true);
    fill_topic(figures, t, &b, (unsigned)env->conf->write_quorum);
    name_users(t, false);
    double *row = c->by_namespace ? row_at(s, SERIES_TOPICS, place) : add_row(s, SERIES_TOPICS);
    if (!c->by_namespace) {
        text_add(&s->labels, "%s", labels.at);
        end_labels(s);
    }
    add_rows_up(row, figures, TOPIC_FIGURES);
    add_rows_up(s->sum, figures, TOPIC_FIGURES);
    text_drop(&ns);
    text_drop(&labels);
    mem_free(name);
}

static void is_done(struct task *t)
{
    struct series_call *c = container_of(t, struct series_call, task);
    c->done(c);
}

static void over(struct topics_walk *w)
{
    struct series_call *c = container_of(w, struct series_call, walk);
    const struct topics_stats *s = topics_stats_of(c->topics);

    ml_env_figures(topics_env_of(c->topics)->ledgers, &c->series.ledgers);
    c->series.hits_rate = s->hits_rate;
    c->series.misses_rate = s->misses_rate;
    c->series.evictions_rate = s->evictions_rate;
    histogram_merge(&c->series.publish_us, &s->publish_us);
    c->task.run = is_done;
    loop_post(c->home, &c->task);
}

static void begin(struct task *t)
{
    struct series_call *c = container_of(t, struct series_call, task);

    c->walk = (struct topics_walk){.visit = visit, .over = over};
    topics_walk(c->topics, &c->walk);
}

void series_collect(struct series_call *c)
{
    c->task.run = begin;
    loop_post(topics_loop(c->topics), &c->task);
}
