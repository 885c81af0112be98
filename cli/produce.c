/* lgm produce - publish texts, files or lines. */
#include <errno.h>
#include <getopt.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "cli/command.h"
#include "cli/fan.h"
#include "cli/lines.h"
#include "cli/session.h"
#include "common/disk.h"
#include "common/mem.h"
#include "common/parse.h"

enum {
    TEXTS_MAX = 1024,
    PROPERTIES_MAX = 256,
    FILE_MAX_BYTES = 256 * 1024 * 1024,
    TICK_US = 10000
};

struct text {
    char *bytes;
    size_t len;
};

struct produce {
    struct cli cli;
    struct tls_conf tls;
    struct producer_conf conf;
    struct fan fan;
    struct producer **producers; /* of each partition; NULL: it is closed */
    unsigned n_ready, n_open;
    const char *topic, *url, *lines_path;
    struct text texts[TEXTS_MAX];
    unsigned n_texts;
    uint64_t times;
    double rate;
    const char *key;
    struct property properties[PROPERTIES_MAX];
    unsigned n_properties;

    struct lines *lines;
    struct text line; /* the one that could not be sent yet */
    bool lines_ended;
    uint64_t asked, sent, acked, failed; /* messages */
    uint64_t began_us;
    struct timer tick;
    bool stopping, broken; /* by a signal; not everything was read or sent */
};

struct one_send {
    struct send send;
    struct produce *p;
};

static const char help[] =
    "usage: lgm produce TOPIC [OPTION]...\n"
    "Publishes messages and waits until every one is acknowledged.\n\n"
    "  -m, --message TEXT     a message; may be repeated\n"
    "  -f, --file FILE        a file as one message; may be repeated\n"
    "      --lines FILE       every line of FILE, or of standard input (-), as a message\n"
    "  -n, --times N          the messages of -m and -f so many times (1)\n"
    "  -k, --key KEY          key of every message\n"
    "  -p, --property K=V     property of every message; may be repeated\n"
    "  -r, --rate N           at most N messages a second\n"
    "  -c, --compression HOW  none, lz4, zlib, zstd or snappy (none)\n"
    "      --no-batching      every message by itself\n"
    "      --name NAME        name of the producer\n" FAN_HELP
    "      --timeout SECONDS  give up on a message after so long (it waits)\n"
    "      --url URL          service url (LGM_URL, else pulsar://127.0.0.1:6650)\n" CLI_TLS_HELP
    "\n"
    "To the partitions of a partitioned topic in turn, or to the one of the key.  Large messages\n"
    "are sent in pieces.  Exit code 1: some message was not acknowledged.\n"
    "Example: seq 1000 | lgm produce my-topic --lines - -c zstd\n";

static void finish(void *ctx)
{
    struct produce *p = ctx;
    cli_end(&p->cli, p->failed > 0 || p->broken ? EXIT_FAILED : EXIT_DONE);
}

static bool all_taken(const struct produce *p)
{
    return p->stopping ||
           (p->lines ? p->lines_ended && !p->line.bytes : p->asked == p->times * p->n_texts);
}

static void closed(void *ctx)
{
    struct produce *p = ctx;

    if (--p->n_open == 0)
        finish(p);
}

static void end_when_done(struct produce *p)
{
    if (!p->producers || !all_taken(p) || p->acked + p->failed != p->asked)
        return;
    for (unsigned i = 0; i < p->fan.n; i++)
        if (p->producers[i])
            producer_close(&p->producers[i], closed, p);
}

static void more(void *ctx);

static void done(struct send *s, enum err err, struct message_id id)
{
    struct one_send *one = container_of(s, struct one_send, send);
    struct produce *p = one->p;
    (void)id;
    if (err) {
        if (p->failed++ == 0)
            cli_say(&p->cli, "not published: %s", err_text(err));
    } else {
        p->acked++;
    }
    mem_free(one);
    more(p);
    end_when_done(p);
}

/* How many may be sent by now at this rate. */
static bool too_early(const struct produce *p)
{
    double seconds = (double)(loop_now(p->cli.loop) - p->began_us) / 1e6;
    return p->rate > 0 && (double)p->asked >= floor(seconds * p->rate) + 1;
}

/* false: not now. */
static bool send_one(struct produce *p, const struct text *t)
{
    struct one_send *one = mem_new(struct one_send);
    one->p = p;
    one->send = (struct send){.payload = t->bytes,
                              .len = t->len,
                              .key = p->key,
                              .properties = p->properties,
                              .n_properties = p->n_properties,
                              .done = done};
    p->asked++;
    const unsigned turn = p->fan.turn;
    enum err err = producer_send(p->producers[fan_place(&p->fan, p->key)], &one->send);
    if (!err)
        return true;
    p->fan.turn = turn;
    p->asked--;
    mem_free(one);
    if (err != ERR_BUSY && err != ERR_NOT_READY) {
        cli_say(&p->cli, "not published: %s", err_text(err));
        p->failed++;
        p->asked++;
        return true;
    }
    return false;
}

static void more_lines(struct produce *p)
{
    bool end = false;
    while (!too_early(p) && !p->stopping) {
        if (!p->line.bytes)
            p->line.bytes = lines_next(p->lines, &p->line.len, &end);
        if (!p->line.bytes || !send_one(p, &p->line))
            break;
        mem_free(p->line.bytes);
        p->line.bytes = NULL;
    }
    if (end && !p->lines_ended && lines_error(p->lines)) {
        cli_say(&p->cli, "%s: %s", p->lines_path, lines_error(p->lines));
        p->broken = true;
    }
    p->lines_ended |= end;
}

static void more(void *ctx)
{
    struct produce *p = ctx;
    if (p->n_ready == 0 || p->n_ready < p->fan.n || !p->producers[0])
        return;
    if (p->lines)
        more_lines(p);
    else
        while (!all_taken(p) && !too_early(p) && send_one(p, &p->texts[p->asked % p->n_texts]))
            ;
    if (p->rate > 0 && !all_taken(p) && !timer_armed(&p->tick))
        loop_after(p->cli.loop, &p->tick, TICK_US);
    end_when_done(p);
}

static void tick(struct timer *t)
{
    more(container_of(t, struct produce, tick));
}

static void ready(struct producer *producer, void *ctx)
{
    struct produce *p = ctx;
    (void)producer;
    if (++p->n_ready < p->fan.n)
        return;
    if (p->began_us == 0)
        p->began_us = loop_now(p->cli.loop);
    if (p->lines_path && !p->lines) {
        p->lines = lines_open(p->cli.loop, p->lines_path, more, p);
        if (!p->lines) {
            cli_say(&p->cli, "%s: %s", p->lines_path, strerror(errno));
            cli_end(&p->cli, EXIT_FAILED);
            return;
        }
    }
    more(p);
}

static void failed(void *ctx, enum err err, const char *text)
{
    struct produce *p = ctx;
    (void)err;
    cli_say(&p->cli, "%s", text);
    cli_end(&p->cli, EXIT_FAILED);
}

static void open_all(void *ctx)
{
    struct produce *p = ctx;

    p->producers = mem_alloc(p->fan.n * sizeof(struct producer *));
    p->n_open = p->fan.n;
    for (unsigned i = 0; i < p->fan.n; i++) {
        p->conf.topic = p->fan.topics[i];
        p->producers[i] = producer_open(p->cli.client, &p->conf);
    }
}

static void open_new(void *ctx, unsigned from)
{
    struct produce *p = ctx;

    p->producers = mem_resize(p->producers, p->fan.n * sizeof(struct producer *));
    for (unsigned i = from; i < p->fan.n; i++) {
        p->conf.topic = p->fan.topics[i];
        p->producers[i] = p->producers[0] ? producer_open(p->cli.client, &p->conf) : NULL;
        p->n_open += p->producers[i] != NULL;
    }
}

static void stop(void *ctx)
{
    struct produce *p = ctx;
    p->broken |= p->began_us == 0 || (!p->lines && !all_taken(p));
    p->stopping = true;
    if (p->producers)
        end_when_done(p);
    else
        cli_end(&p->cli, EXIT_FAILED); /* the topic's partitions are not even known */
}

static void tell(void *ctx)
{
    const struct produce *p = ctx;
    fprintf(stderr, "%llu sent, %llu acknowledged", (unsigned long long)p->asked,
            (unsigned long long)p->acked);
}

/* ---- the command line ------------------------------------------------------------------------ */

static const struct option options[] = {{"message", required_argument, NULL, 'm'},
                                        {"file", required_argument, NULL, 'f'},
                                        {"lines", required_argument, NULL, 'L'},
                                        {"times", required_argument, NULL, 'n'},
                                        {"key", required_argument, NULL, 'k'},
                                        {"property", required_argument, NULL, 'p'},
                                        {"rate", required_argument, NULL, 'r'},
                                        {"compression", required_argument, NULL, 'c'},
                                        {"no-batching", no_argument, NULL, 'B'},
                                        {"name", required_argument, NULL, 'N'},
                                        {"partitions-every", required_argument, NULL, 'P'},
                                        {"timeout", required_argument, NULL, 'T'},
                                        {"url", required_argument, NULL, 'u'},
                                        CLI_TLS_OPTIONS,
                                        {"help", no_argument, NULL, 'h'},
                                        {0}};

static bool add_text(struct produce *p, char *bytes, size_t len)
{
    if (p->n_texts == TEXTS_MAX)
        return false;
    p->texts[p->n_texts++] = (struct text){.bytes = bytes, .len = len};
    return true;
}

static bool add_file(struct produce *p, const char *path)
{
    char *bytes;
    size_t len;
    if (disk_load(disk_real(), path, FILE_MAX_BYTES, &bytes, &len))
        return false;
    return add_text(p, bytes, len);
}

static bool add_property(struct produce *p, char *text)
{
    char *equals = strchr(text, '=');
    if (!equals || p->n_properties == PROPERTIES_MAX)
        return false;
    *equals = '\0';
    p->properties[p->n_properties++] = (struct property){.key = text, .value = equals + 1};
    return true;
}

static bool set_compression(struct produce *p, const char *text)
{
    static const char *const names[] = {"none", "lz4", "zlib", "zstd", "snappy"};
    for (unsigned i = 0; i < sizeof names / sizeof *names; i++)
        if (strcmp(text, names[i]) == 0) {
            p->conf.compression = (enum compression)i;
            return true;
        }
    return false;
}

static bool set_timeout(struct produce *p, const char *text)
{
    double seconds;
    if (parse_double(text, &seconds) || seconds <= 0)
        return false;
    p->conf.send_timeout_us = (uint64_t)(seconds * 1e6);
    return true;
}

static bool take(struct produce *p, int option, char *text)
{
    switch (option) {
    case 'm':
        return add_text(p, mem_string(text), strlen(text));
    case 'f':
        return add_file(p, text);
    case 'L':
        p->lines_path = text;
        return true;
    case 'n':
        return !parse_u64(text, &p->times);
    case 'k':
        p->key = text;
        return true;
    case 'p':
        return add_property(p, text);
    case 'r':
        return !parse_double(text, &p->rate) && p->rate > 0;
    case 'c':
        return set_compression(p, text);
    case 'B':
        p->conf.batching = false;
        return true;
    case 'N':
        p->conf.name = text;
        return true;
    case 'P':
        return fan_take_every(&p->fan, text);
    case 'T':
        return set_timeout(p, text);
    case 'u':
        p->url = text;
        return true;
    default:
        return cli_take_tls(&p->tls, option, text);
    }
}

static void report(const struct produce *p)
{
    double seconds = (double)(loop_clock() - p->began_us) / 1e6;
    if (p->began_us > 0)
        cli_tell(&p->cli, "%llu messages acknowledged in %.2f s, %llu failed",
                 (unsigned long long)p->acked, seconds, (unsigned long long)p->failed);
}

static int run(struct produce *p)
{
    int code = cli_open(&p->cli, "produce", p->url, &p->tls, stop, p);
    if (code)
        return code;
    p->tick.run = tick;
    p->conf.ready = ready;
    p->conf.failed = failed;
    p->conf.chunking = true;
    p->conf.ctx = p;
    p->fan.grew = open_new;
    fan_open(&p->fan, &p->cli, p->topic, open_all, p);
    cli_progress(&p->cli, tell);
    code = cli_run(&p->cli);
    report(p);
    for (unsigned i = 0; p->producers && i < p->fan.n; i++)
        if (p->producers[i])
            producer_close(&p->producers[i], NULL, NULL);
    mem_free(p->producers);
    fan_drop(&p->fan);
    if (p->lines)
        lines_close(&p->lines);
    mem_free(p->line.bytes);
    cli_close(&p->cli);
    return code;
}

static int parse_and_run(struct produce *p, int argc, char **argv)
{
    int option;

    p->times = 1;
    p->conf.batching = true;
    while ((option = getopt_long(argc, argv, "m:f:n:k:p:r:c:h", options, NULL)) != -1) {
        if (option == 'h') {
            fputs(help, stdout);
            return EXIT_DONE;
        }
        if (option == '?' || !take(p, option, optarg))
            return usage_error("produce", "'%s' cannot be used", argv[optind - 1]);
    }
    if (argc - optind != 1)
        return usage_error("produce", "one TOPIC is needed");
    if ((p->n_texts > 0) == (p->lines_path != NULL))
        return usage_error("produce", "either -m and -f or --lines is needed");
    p->topic = argv[optind];
    return run(p);
}

int command_produce(int argc, char **argv)
{
    struct produce *p = mem_new(struct produce);

    p->fan.every_us = FAN_EVERY_S * UINT64_C(1000000);
    int code = parse_and_run(p, argc, argv);
    for (unsigned i = 0; i < p->n_texts; i++)
        mem_free(p->texts[i].bytes);
    mem_free(p);
    return code;
}
