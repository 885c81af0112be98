#include "broker/managed_ledger/managed_ledger_inside.h"

enum { SOURCES_MAX = 4, IDLE_US = 60 * 1000 * 1000 };

static struct ml_source *source_at(struct list_node *node)
{
    return list_entry(node, struct ml_source, node);
}

static struct ml_source *find(struct managed_ledger *m, int64_t ledger)
{
    list_each(&m->sources, node) if (source_at(node)->ledger == ledger) return source_at(node);
    return NULL;
}

static void close_source(struct ml_source *s)
{
    list_remove(&s->node);
    if (s->source)
        s->source->ops->close(s->source);
    mem_free(s);
}

static void opened(struct segment_source_call *c, enum err err, struct segment_source *source)
{
    struct ml_source *s = container_of(c, struct ml_source, call);
    struct managed_ledger *m = s->ml;

    s->source = source;
    if (err)
        list_remove(&s->node); /* nobody else finds it */
    if (!s->forgotten)
        ml_read_opened(m, s, err);
    if (err || s->forgotten)
        close_source(s);
    ml_release(m);
}

/* The one that nobody reads from, and that was used longest ago. */
static void make_room(struct managed_ledger *m)
{
    unsigned n = 0;

    list_each(&m->sources, counted) n++;
    for (struct list_node *node = m->sources.prev; n >= SOURCES_MAX && node != &m->sources;) {
        struct ml_source *s = source_at(node);
        node = node->prev;
        if (s->readers > 0 || !s->source)
            continue;
        close_source(s);
        n--;
    }
}

/* The handle that writes, or has just stopped to: it knows what is confirmed. */
static struct ledger *writing(const struct managed_ledger *m, int64_t ledger)
{
    if (ledger != m->core.ledger)
        return NULL;
    return m->current ? m->current : m->sealing;
}

static struct ml_source *start(struct managed_ledger *m, int64_t ledger)
{
    struct ml_source *s = mem_new(struct ml_source);

    s->ml = m;
    s->ledger = ledger;
    s->call.done = opened;
    list_push_front(&m->sources, &s->node);
    if (writing(m, ledger)) {
        s->source = segment_source_of(writing(m, ledger), false);
    } else {
        ml_hold(m);
        segment_source_ledger(m->env->ledgers, ledger, &s->call);
    }
    return s;
}

struct ml_source *ml_source_for(struct managed_ledger *m, int64_t ledger)
{
    struct ml_source *s = find(m, ledger);
    const struct segment *segment = segments_find(&m->segments, ledger);

    if (!s && segment->open && !writing(m, ledger))
        return NULL;
    if (!s) {
        make_room(m);
        s = start(m, ledger);
    }
    list_remove(&s->node);
    list_push_front(&m->sources, &s->node);
    s->used_us = loop_now(m->env->home);
    return s;
}

static void forget(struct ml_source *s)
{
    ml_read_lost_source(s->ml, s);
    if (s->source) {
        close_source(s);
        return;
    }
    s->forgotten = true;
    list_remove(&s->node);
}

void ml_source_forget(struct managed_ledger *m, int64_t ledger)
{
    struct ml_source *s = find(m, ledger);

    if (s)
        forget(s);
}

void ml_sources_idle(struct managed_ledger *m)
{
    list_each(&m->sources, node)
    {
        struct ml_source *s = source_at(node);
        if (s->readers == 0 && s->source && loop_now(m->env->home) > s->used_us + IDLE_US)
            close_source(s);
    }
}

void ml_sources_end(struct managed_ledger *m)
{
    while (!list_empty(&m->sources))
        forget(source_at(m->sources.next));
}
