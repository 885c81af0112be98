/* series.h - the labelled metrics: figures of every topic, taken on its loop, told elsewhere.
 *
 *   series_collect -> [each topics' loop, a few topics a round] rows -> done() on home
 *
 * A row is the labels of one topic (or subscription, or namespace) and all its figures, so that
 * they can be written name by name, as Prometheus wants them, without asking again.  With
 * by_namespace the figures of a namespace's topics are added up into one row.
 *
 * Memory:  about half a kilobyte a topic until series_drop().
 * Threads: collect from home; what is collected is the caller's then.
 */
#ifndef BROKER_TOPIC_SERIES_H
#define BROKER_TOPIC_SERIES_H

#include "common/table.h"

#include "broker/topic/topics.h"
#include "broker/topic/topics_stats.h"

enum series_kind { SERIES_NAMESPACES, SERIES_TOPICS, SERIES_SUBSCRIPTIONS, SERIES_KINDS };

/* The figures, in the order of series.def. */
enum namespace_figure {
#define SERIES_NAMESPACE(member, name, kind, help) NAMESPACE_##member,
#include "broker/topic/series.def"
    NAMESPACE_FIGURES
};
enum topic_figure {
#define SERIES_TOPIC(member, name, kind, help) TOPIC_##member,
#include "broker/topic/series.def"
    TOPIC_FIGURES
};
enum subscription_figure {
#define SERIES_SUBSCRIPTION(member, name, kind, help) SUBSCRIPTION_##member,
#include "broker/topic/series.def"
    SUBSCRIPTION_FIGURES
};

struct series_name {
    enum series_kind kind;
    unsigned figure;
    const char *name, *type, *help;
};
extern const struct series_name series_names[];
extern const unsigned series_n_names;

struct series_rows {
    size_t n, room;
    size_t *labels; /* where they begin in the text */
    double *figures;
};

/* Where a namespace's rows are. */
struct series_place {
    UT_hash_handle hh;
    char *ns;
    size_t row;
};

struct series {
    struct text labels; /* each ends with a NUL */
    struct series_rows rows[SERIES_KINDS];
    struct series_place *places;
    double sum[TOPIC_FIGURES]; /* of all topics */
    struct ml_figures ledgers; /* of the loop */
    double hits_rate, misses_rate, evictions_rate;
    struct histogram publish_us;
};

struct series_call {
    struct topics *topics;
    struct loop *home;
    const char *cluster;
    bool by_namespace;
    void *private; /* the caller's */
    void (*done)(struct series_call *c);
    struct series series; /* what was found */
    struct task task;     /* private, as the next */
    struct topics_walk walk;
};
void series_collect(struct series_call *c); /* all above done() is set, the rest zeroed */
void series_drop(struct series *s);

unsigned series_width(enum series_kind kind);
static inline const char *series_labels(const struct series *s, enum series_kind kind, size_t row)
{
    return s->labels.at + s->rows[kind].labels[row];
}
/* Adds one part's namespaces to another's, so that each comes once. */
void series_merge_namespaces(struct series *into, const struct series *from, bool topics_too);

#endif
