#include "cli/perf_options.h"

#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>

#include "cli/command.h"
#include "common/mem.h"
#include "common/parse.h"

enum kind { FLAG, NUMBER, REAL, TEXT };
enum {
    P = 1 << PERF_PRODUCE,
    C = 1 << PERF_CONSUME,
    R = 1 << PERF_READ,
    ALL = P | C | R,
    SIZE_MAX_BYTES = 128 * 1024 * 1024,
    EVERYTHING_MAX = 1000 * 1000, /* topics, producers and so on: a slip of the finger */
};

static const struct perf_option {
    const char *short_name, *name;
    unsigned on;
    enum kind kind;
    size_t offset;
    const char *preset, *arg, *what;
} table[] = {
#define OPTION(s, n, on, kind, member, preset, arg, what)                        \
    {                                                                            \
        s, n, on, kind, offsetof(struct perf_options, member), preset, arg, what \
    }
    OPTION("u", "service-url", ALL, TEXT, url, NULL, "URL",
           "LGM_URL, else pulsar://127.0.0.1:6650; also --url"),
    OPTION("t", "num-topics", ALL, NUMBER, topics, "1", "N", "topics: TOPIC-0, TOPIC-1 ..."),
    OPTION("n", "num-producers", P, NUMBER, producers, "1", "N", "producers a topic"),
    OPTION("r", "rate", P, REAL, rate, "100", "N",
           "messages a second, of all together; 0: as many as are taken"),
    OPTION("s", "size", P, NUMBER, size, "1024", "BYTES", "of a message"),
    OPTION("m", "num-messages", P | C, NUMBER, messages, "0", "N", "end after so many; 0: never"),
    OPTION("o", "max-outstanding", P, NUMBER, outstanding, "1000", "N",
           "messages without a receipt, a producer"),
    OPTION("p", "max-outstanding-across-partitions", P, NUMBER, outstanding_all, "0", "N",
           "the same of all together; 0: no limit"),
    OPTION("b", "batch-time-window", P, REAL, batch_ms, "1", "MS", "a batch gathers for so long"),
    OPTION("bm", "batch-max-messages", P, NUMBER, batch_messages, "1000", "N", "in a batch"),
    OPTION("bb", "batch-max-bytes", P, NUMBER, batch_bytes, "4194304", "BYTES",
           "in a batch (never more than a third of the broker's limit)"),
    OPTION("bd", "disable-batching", P, FLAG, no_batching, NULL, NULL,
           "every message an entry of its own"),
    OPTION("bu", "burst", P, NUMBER, burst, "1", "N",
           "messages in a row to a producer before the next has its turn"),
    OPTION("z", "compression", P, TEXT, compression_name, "NONE", "HOW",
           "NONE, LZ4, ZLIB, ZSTD or SNAPPY"),
    OPTION("ch", "chunking", P, FLAG, chunking, NULL, NULL, "large messages go in pieces"),
    OPTION("pn", "producer-name", P, TEXT, producer_name, NULL, "NAME",
           "front of the producers' names"),
    OPTION("n", "num-consumers", C, NUMBER, consumers, "1", "N", "consumers a subscription"),
    OPTION("ss", "subscriptions", C, TEXT, subscriptions, "sub", "NAME[,NAME]...", "of each topic"),
    OPTION("ns", "num-subscriptions", C, NUMBER, n_subscriptions, "1", "N",
           "of each topic: NAME-0, NAME-1 ..."),
    OPTION("st", "subscription-type", C, TEXT, type_name, "Exclusive", "TYPE",
           "Exclusive, Shared, Failover or Key_Shared"),
    OPTION("sp", "subscription-position", C, TEXT, position_name, "Latest", "WHERE",
           "where a new subscription begins: Latest or Earliest"),
    OPTION("n", "num-messages", R, NUMBER, messages, "0", "N", "end after so many; 0: never"),
    OPTION("m", "start-message-id", R, TEXT, start, "earliest", "WHERE",
           "earliest, latest or LEDGER:ENTRY: after that one"),
    OPTION("r", "rate", C | R, REAL, rate, "0", "N",
           "messages a second, of all together; 0: as many as come"),
    OPTION("q", "receiver-queue-size", C | R, NUMBER, queue, "1000", "N", "permits a consumer"),
    OPTION("time", "test-duration", ALL, REAL, test_s, "0", "SECONDS",
           "end after so long; 0: never"),
    OPTION("w", "warmup-time", ALL, REAL, warmup_s, "0", "SECONDS",
           "at first, and not in the summary"),
    OPTION("i", "stats-interval-seconds", ALL, REAL, interval_s, "1", "SECONDS",
           "between two lines"),
    OPTION("", "json", ALL, TEXT, json, NULL, "FILE",
           "the summary there too; it is always the last line of the output"),
    OPTION("", "trust-cert-file", ALL, TEXT, trust_file, NULL, "FILE",
           "PEM certificates to trust, for pulsar+ssl; else the system's"),
    OPTION("", "tls-trust", ALL, TEXT, trust_file, NULL, "FILE", "the same, as in other commands"),
    OPTION("", "tls-cert", ALL, TEXT, cert_file, NULL, "FILE", "PEM certificate for the broker"),
    OPTION("", "tls-key", ALL, TEXT, key_file, NULL, "FILE", "and its key"),
    OPTION("", "tls-allow-insecure", ALL, FLAG, insecure, NULL, NULL,
           "whatever certificate the broker shows"),
    OPTION("h", "help", ALL, FLAG, wants_help, NULL, NULL, "this"),
};
enum { N_OPTIONS = sizeof table / sizeof *table };

const char *perf_command_name(enum perf_command command)
{
    static const char *const names[] = {"perf produce", "perf consume", "perf read"};
    return names[command];
}

/* ---- help ------------------------------------------------------------------------------------ */

static void print_option(const struct perf_option *o)
{
    char left[64];
    snprintf(left, sizeof left, "%s%s%s--%s%s%s", *o->short_name ? "-" : "", o->short_name,
             *o->short_name ? ", " : "", o->name, o->arg ? " " : "", o->arg ? o->arg : "");
    printf("  %-42s %s%s%s%s\n", left, o->what, o->preset ? " (" : "", o->preset ? o->preset : "",
           o->preset ? ")" : "");
}

void perf_options_help(enum perf_command command)
{
    static const char *const what[] = {
        "Publishes messages and measures how long each takes to be acknowledged.  At a rate of "
        "more\n"
        "than 0 a message's time begins when it was due, whether it could be sent then or not.\n",
        "Receives messages, acknowledges them, and measures how old they are: since they were "
        "due,\n"
        "for those that `lgm perf produce` wrote (16 bytes or more), else since they were "
        "published.\n",
        ("Reads messages without a subscription that lasts, and measures how old they are, as\n"
         "`lgm perf consume` does.\n")};
    static const char *const examples[] = {"-r 10000 -time 10 -bm 100", "-sp Earliest -time 10",
                                           "-m latest -time 10"};
    printf("usage: lgm %s TOPIC [OPTION]...\n%s\n", perf_command_name(command), what[command]);
    for (unsigned i = 0; i < N_OPTIONS; i++)
        if (table[i].on & 1U << command)
            print_option(&table[i]);
    printf("\nA line every second; the last line is a summary in JSON.  SIGINT ends it with one, "
           "too.\n"
           "Exit code 1: some message was not acknowledged, or it could not go on.\n"
           "Example: lgm %s my-topic %s\n",
           perf_command_name(command), examples[command]);
}

/* ---- parsing --------------------------------------------------------------------------------- */

static const struct perf_option *find(enum perf_command command, const char *name, size_t len)
{
    if (len == 3 && strncmp(name, "url", len) == 0)
        return &table[0];
    for (unsigned i = 0; i < N_OPTIONS; i++) {
        const struct perf_option *o = &table[i];
        if (!(o->on & 1U << command))
            continue;
        if ((strlen(o->short_name) == len && len > 0 && strncmp(o->short_name, name, len) == 0) ||
            (strlen(o->name) == len && strncmp(o->name, name, len) == 0))
            return o;
    }
    return NULL;
}

static bool set(struct perf_options *o, const struct perf_option *option, const char *text)
{
    char *at = (char *)o + option->offset;
    double real;
    switch (option->kind) {
    case FLAG:
        *(bool *)at = true;
        return true;
    case TEXT:
        *(const char **)(void *)at = text;
        return true;
    case REAL:
        if (parse_double(text, &real) || real < 0)
            return false;
        *(double *)(void *)at = real;
        return true;
    default:
        return !parse_u64(text, (uint64_t *)(void *)at);
    }
}

/* Places of the arguments used; 0: complained about. */
static int take(struct perf_options *o, int left, char **argv)
{
    const char *name = argv[0] + 1 + (argv[0][1] == '-'), *equals = strchr(name, '=');
    size_t len = equals ? (size_t)(equals - name) : strlen(name);
    const struct perf_option *option = find(o->command, name, len);
    const char *value = equals ? equals + 1 : left > 1 ? argv[1] : NULL;

    if (!option || (option->kind == FLAG && equals)) {
        usage_error(perf_command_name(o->command), "there is no option '%s'", argv[0]);
        return 0;
    }
    if (option->kind != FLAG && !value) {
        usage_error(perf_command_name(o->command), "'%s' needs a value", argv[0]);
        return 0;
    }
    if (!set(o, option, value)) {
        usage_error(perf_command_name(o->command), "'%s' cannot be '%s'", option->name, value);
        return 0;
    }
    return option->kind == FLAG || equals ? 1 : 2;
}

static int one_of(const char *text, const char *const *names)
{
    for (int i = 0; names[i]; i++)
        if (strcasecmp(text, names[i]) == 0)
            return i;
    return -1;
}

static bool parse_start(const char *text, struct message_id *out)
{
    const char *colon = strchr(text, ':');
    *out = strcasecmp(text, "latest") == 0 ? MESSAGE_LATEST : MESSAGE_EARLIEST;
    if (!colon)
        return strcasecmp(text, "latest") == 0 || strcasecmp(text, "earliest") == 0;
    char *ledger = mem_string_n(text, (size_t)(colon - text));
    bool fine = !parse_i64(ledger, &out->ledger) && !parse_i64(colon + 1, &out->entry) &&
                out->ledger >= 0 && out->entry >= 0;
    mem_free(ledger);
    return fine;
}

/* What is wrong, or NULL. */
static const char *words(struct perf_options *o)
{
    static const char *const kinds[] = {"NONE", "LZ4", "ZLIB", "ZSTD", "SNAPPY", NULL};
    static const char *const types[] = {"Exclusive", "Shared", "Failover", "Key_Shared", NULL};
    static const char *const places[] = {"Latest", "Earliest", NULL};
    int kind = one_of(o->compression_name, kinds), type = one_of(o->type_name, types),
        place = one_of(o->position_name, places);
    if (kind < 0)
        return "-z is NONE, LZ4, ZLIB, ZSTD or SNAPPY";
    if (type < 0)
        return "-st is Exclusive, Shared, Failover or Key_Shared";
    if (place < 0)
        return "-sp is Latest or Earliest";
    o->compression = (enum compression)kind;
    o->type = (enum subscription_type)type;
    o->earliest = place == 1;
    return parse_start(o->start, &o->after) ? NULL : "-m is earliest, latest or LEDGER:ENTRY";
}

static bool out_of(uint64_t n, uint64_t most)
{
    return n < 1 || n > most;
}

static const char *check(struct perf_options *o)
{
    if (!o->topic)
        return "one TOPIC is needed";
    if (out_of(o->topics, EVERYTHING_MAX) || out_of(o->producers, EVERYTHING_MAX) ||
        out_of(o->consumers, EVERYTHING_MAX) || out_of(o->n_subscriptions, EVERYTHING_MAX))
        return "-t, -n and -ns are 1 to 1,000,000";
    if (out_of(o->outstanding, UINT32_MAX) || out_of(o->queue, UINT32_MAX / 2) ||
        out_of(o->batch_messages, UINT32_MAX) || out_of(o->batch_bytes, UINT32_MAX) ||
        out_of(o->burst, UINT32_MAX))
        return "-o, -q, -bm, -bb and --burst are at least 1";
    if (o->size > SIZE_MAX_BYTES)
        return "-s is at most 128 MiB";
    if (o->interval_s < 0.01)
        return "-i is at least 0.01";
    return words(o);
}

/* The command's own last: another's may stand for the same thing. */
static void presets(struct perf_options *o)
{
    for (int own = 0; own < 2; own++)
        for (unsigned i = 0; i < N_OPTIONS; i++)
            if (table[i].preset && ((table[i].on >> o->command & 1) != 0) == (own == 1))
                (void)set(o, &table[i], table[i].preset);
}

int perf_options_parse(struct perf_options *o, enum perf_command command, int argc, char **argv)
{
    *o = (struct perf_options){.command = command};
    presets(o);
    for (int i = 1, used; i < argc; i += used) {
        used = 1;
        if (argv[i][0] == '-' && argv[i][1] != '\0')
            used = take(o, argc - i, argv + i);
        else if (o->topic)
            return usage_error(perf_command_name(command), "one TOPIC, and not '%s' too", argv[i]);
        else
            o->topic = argv[i];
        if (used == 0)
            return EXIT_USAGE;
    }
    const char *wrong = o->wants_help ? NULL : check(o);
    return wrong ? usage_error(perf_command_name(command), "%s", wrong) : EXIT_DONE;
}

/* ---- names ----------------------------------------------------------------------------------- */

char *perf_topic(const struct perf_options *o, uint64_t i)
{
    if (o->topics == 1)
        return mem_string(o->topic);
    return mem_format("%s-%llu", o->topic, (unsigned long long)i);
}

char *perf_subscription(const struct perf_options *o, uint64_t i)
{
    const char *at = o->subscriptions;
    if (o->n_subscriptions > 1) {
        if (i >= o->n_subscriptions)
            return NULL;
        return mem_format("%s-%llu", at, (unsigned long long)i);
    }
    for (; i > 0 && at; i--) {
        at = strchr(at, ',');
        at = at ? at + 1 : NULL;
    }
    return at && *at ? mem_string_n(at, strcspn(at, ",")) : NULL;
}
