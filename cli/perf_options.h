/* perf_options.h - the options of `lgm perf`, named as pulsar-perf's are: -bm,
 * --batch-max-messages.
 *
 * Memory: strings are argv's; the topics are the struct's.
 */
#ifndef CLI_PERF_OPTIONS_H
#define CLI_PERF_OPTIONS_H

#include <stdbool.h>
#include <stdint.h>

#include "client/client.h"

enum perf_command { PERF_PRODUCE, PERF_CONSUME, PERF_READ };

struct perf_options {
    enum perf_command command;
    const char *url, *json, *trust_file, *cert_file, *key_file;
    bool insecure;
    uint64_t topics;
    double rate;       /* messages a second of all together; 0: no limit */
    uint64_t messages; /* 0: no end */
    double test_s;     /* 0: no end */
    double warmup_s;   /* at first; not in the summary */
    double interval_s; /* of the lines */
    const char *topic; /* of several: the front of their names */
    bool wants_help;

    uint64_t producers; /* a topic */
    uint64_t size;      /* of a message */
    uint64_t outstanding, outstanding_all;
    double batch_ms;
    uint64_t batch_messages, batch_bytes, burst;
    bool no_batching, chunking;
    const char *compression_name, *producer_name;
    enum compression compression;

    uint64_t consumers; /* a subscription */
    uint64_t n_subscriptions, queue;
    const char *subscriptions, *type_name, *position_name;
    enum subscription_type type;
    bool earliest;
    const char *start; /* of readers */
    struct message_id after;
};

/* 0, or an exit code, and then a sentence was printed. */
int perf_options_parse(struct perf_options *o, enum perf_command command, int argc, char **argv);
void perf_options_help(enum perf_command command);
const char *perf_command_name(enum perf_command command);
/* Topic `i`: NAME, or NAME-i of several.  Gives. */
char *perf_topic(const struct perf_options *o, uint64_t i);
/* Subscription `i`: of the list, or with -ns NAME-i.  Gives; NULL: there are fewer. */
char *perf_subscription(const struct perf_options *o, uint64_t i);

#endif
