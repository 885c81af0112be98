/* perf_topics.h - the topics that `lgm perf` uses: those that are partitioned are all their
 * partitions.
 *
 * Memory:  lives until perf_topics_drop(), which forgets what is asked; names stay as long.
 * Threads: the client's loop.
 * Limits:  ASKING_MAX questions at a time.
 */
#ifndef CLI_PERF_TOPICS_H
#define CLI_PERF_TOPICS_H

#include "cli/perf_options.h"
#include "cli/session.h"

struct perf_topics {
    struct cli *cli;
    const struct perf_options *o;
    /* Not called when one of them is known to nobody: that is said, and the command ends. */
    void (*known)(void *ctx);
    void *ctx;
    uint64_t n; /* names; 0: not known yet */
    char **names;
    struct perf_question *questions; /* private, as the rest; one a topic */
    uint64_t asked, answered;
    bool dropped;
};

/* t is zeroed. */
void perf_topics_ask(struct perf_topics *t, struct cli *cli, const struct perf_options *o,
                     void (*known)(void *ctx), void *ctx);
void perf_topics_drop(struct perf_topics *t); /* the client is closed */

#endif
