#include "cli/perf_topics.h"

#include "cli/command.h"
#include "common/mem.h"

enum { ASKING_MAX = 64 };

struct perf_question {
    struct perf_topics *all;
    char *topic;
    unsigned partitions; /* 0: it has none */
};

static unsigned topics_of(const struct perf_question *q)
{
    return q->partitions ? q->partitions : 1;
}

static void name_them(struct perf_topics *t)
{
    uint64_t at = 0;

    for (uint64_t i = 0; i < t->o->topics; i++)
        t->n += topics_of(&t->questions[i]);
    t->names = mem_alloc(t->n * sizeof(*t->names));
    for (uint64_t i = 0; i < t->o->topics; i++) {
        const struct perf_question *q = &t->questions[i];
        if (q->partitions == 0)
            t->names[at++] = mem_string(q->topic);
        for (unsigned p = 0; p < q->partitions; p++)
            t->names[at++] = mem_format("%s-partition-%u", q->topic, p);
    }
    t->known(t->ctx);
}

static void ask_more(struct perf_topics *t);

static void answered(void *ctx, enum err err, const char *text, unsigned partitions)
{
    struct perf_question *q = ctx;
    struct perf_topics *t = q->all;

    if (t->dropped)
        return;
    if (err) {
        cli_say(t->cli, "%s: %s", q->topic, text ? text : err_text(err));
        cli_end(t->cli, EXIT_FAILED);
        return;
    }
    q->partitions = partitions;
    if (++t->answered == t->o->topics)
        name_them(t);
    else
        ask_more(t);
}

static void ask_more(struct perf_topics *t)
{
    while (t->asked < t->o->topics && t->asked - t->answered < ASKING_MAX) {
        struct perf_question *q = &t->questions[t->asked];

        q->all = t;
        q->topic = perf_topic(t->o, t->asked++);
        client_partitions(t->cli->client, q->topic, answered, q);
    }
}

void perf_topics_ask(struct perf_topics *t, struct cli *cli, const struct perf_options *o,
                     void (*known)(void *ctx), void *ctx)
{
    t->cli = cli;
    t->o = o;
    t->known = known;
    t->ctx = ctx;
    t->questions = mem_alloc(o->topics * sizeof(*t->questions));
    ask_more(t);
}

void perf_topics_drop(struct perf_topics *t)
{
    t->dropped = true;
    for (uint64_t i = 0; i < t->asked; i++)
        mem_free(t->questions[i].topic);
    for (uint64_t i = 0; i < t->n; i++)
        mem_free(t->names[i]);
    mem_free(t->questions);
    mem_free(t->names);
    *t = (struct perf_topics){.dropped = true};
}
