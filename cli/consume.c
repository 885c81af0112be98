/* lgm consume - receive messages, print them, acknowledge them. */
#include <getopt.h>
#include <json-c/json.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>

#include "cli/command.h"
#include "cli/fan.h"
#include "cli/payload.h"
#include "cli/session.h"
#include "common/mem.h"
#include "common/parse.h"

enum format { FORMAT_TEXT, FORMAT_JSON, FORMAT_RAW };

struct consume {
    struct cli cli;
    struct tls_conf tls;
    struct consumer_conf conf;
    struct fan fan;
    struct consumer **consumers; /* of each partition */
    unsigned n_open;
    const char *topic, *url;
    uint64_t count; /* 0: for ever */
    double idle_s;  /* end when nothing came for so long; 0: never */
    enum format format;
    uint64_t got;
    struct timer idle;
    int exit_code;
};

static const char help[] =
    "usage: lgm consume TOPIC -s SUBSCRIPTION [OPTION]...\n"
    "Receives messages, prints them on standard output and acknowledges them; of a partitioned\n"
    "topic those of all partitions.\n\n"
    "  -s, --subscription NAME\n"
    "  -n, --count N          end after N messages (it goes on)\n"
    "  -t, --type TYPE        Exclusive, Shared, Failover or Key_Shared (Exclusive)\n"
    "  -p, --position WHERE   where a new subscription begins: Earliest or Latest (Latest)\n"
    "      --format HOW       text (a line a message), json (an object a line), raw (the bytes "
    "alone)\n"
    "      --idle SECONDS     end with exit code 1 when nothing came for so long\n"
    "      --name NAME        name of the consumer\n" FAN_HELP
    "      --url URL          service url (LGM_URL, else pulsar://127.0.0.1:6650)\n" CLI_TLS_HELP
    "\n"
    "Example: lgm consume my-topic -s my-sub -p Earliest --format json\n";

static void finish(void *ctx)
{
    struct consume *c = ctx;
    cli_end(&c->cli, c->exit_code);
}

static void closed(void *ctx)
{
    struct consume *c = ctx;

    if (--c->n_open == 0)
        finish(c);
}

static void close_all(struct consume *c, int exit_code)
{
    if (c->consumers && !c->consumers[0])
        return;
    c->exit_code = exit_code;
    loop_cancel(c->cli.loop, &c->idle);
    if (!c->consumers)
        finish(c);
    for (unsigned i = 0; c->consumers && i < c->fan.n; i++)
        consumer_pause(c->consumers[i]);
    for (unsigned i = 0; c->consumers && i < c->fan.n; i++)
        consumer_close(&c->consumers[i], closed, c);
}

static void stop(void *ctx)
{
    struct consume *c = ctx;
    close_all(c, c->count > 0 && c->got < c->count ? EXIT_FAILED : EXIT_DONE);
}

/* ---- printing -------------------------------------------------------------------------------- */

static void print_json(const struct received *m)
{
    struct json_object *o = json_object_new_object(), *properties = json_object_new_object();
    char *id = mem_format("%lld:%lld:%d", (long long)m->id.ledger, (long long)m->id.entry,
                          m->id.batch_index);
    json_object_object_add(o, "id", json_object_new_string(id));
    json_object_object_add(o, "topic", json_object_new_string(m->topic));
    if (m->key)
        json_object_object_add(o, "key", json_object_new_string(m->key));
    for (unsigned i = 0; i < m->n_properties; i++)
        json_object_object_add(properties, m->properties[i].key,
                               json_object_new_string(m->properties[i].value));
    json_object_object_add(o, "properties", properties);
    json_object_object_add(o, "producer", json_object_new_string(m->producer_name));
    json_object_object_add(o, "sequence", json_object_new_int64((int64_t)m->sequence_id));
    json_object_object_add(o, "publishTime", json_object_new_int64((int64_t)m->publish_time));
    if (m->event_time)
        json_object_object_add(o, "eventTime", json_object_new_int64((int64_t)m->event_time));
    json_object_object_add(o, "redeliveries", json_object_new_int64(m->redelivery_count));
    payload_add(o, m->payload);
    puts(
        json_object_to_json_string_ext(o, JSON_C_TO_STRING_PLAIN | JSON_C_TO_STRING_NOSLASHESCAPE));
    json_object_put(o);
    mem_free(id);
}

static bool print(const struct consume *c, const struct received *m)
{
    if (c->format == FORMAT_JSON) {
        print_json(m);
    } else {
        fwrite(m->payload.base, 1, m->payload.len, stdout);
        if (c->format == FORMAT_TEXT)
            putchar('\n');
    }
    return fflush(stdout) == 0 && !ferror(stdout);
}

/* ---- receiving ------------------------------------------------------------------------------- */

static void arm_idle(struct consume *c)
{
    if (c->idle_s > 0)
        loop_after(c->cli.loop, &c->idle, (uint64_t)(c->idle_s * 1e6));
}

static void idle(struct timer *t)
{
    struct consume *c = container_of(t, struct consume, idle);
    close_all(c, EXIT_FAILED);
}

/* Acknowledged only once it is out: a reader of our output that went away loses nothing. */
static void received(struct consumer *consumer, void *ctx, const struct received *m)
{
    struct consume *c = ctx;
    if (!print(c, m)) {
        close_all(c, EXIT_FAILED);
        return;
    }
    consumer_ack(consumer, m->id);
    arm_idle(c);
    if (++c->got == c->count)
        close_all(c, EXIT_DONE);
}

static void damaged(struct consumer *consumer, void *ctx, struct message_id id, enum err err)
{
    const struct consume *c = ctx;
    (void)consumer;
    cli_say(&c->cli, "message %lld:%lld cannot be opened: %s", (long long)id.ledger,
            (long long)id.entry, err_text(err));
}

static void failed(void *ctx, enum err err, const char *text)
{
    struct consume *c = ctx;
    (void)err;
    cli_say(&c->cli, "%s", text);
    cli_end(&c->cli, EXIT_FAILED);
}

/* ---- the command line ------------------------------------------------------------------------ */

static const struct option options[] = {{"subscription", required_argument, NULL, 's'},
                                        {"count", required_argument, NULL, 'n'},
                                        {"type", required_argument, NULL, 't'},
                                        {"position", required_argument, NULL, 'p'},
                                        {"format", required_argument, NULL, 'F'},
                                        {"idle", required_argument, NULL, 'i'},
                                        {"name", required_argument, NULL, 'N'},
                                        {"partitions-every", required_argument, NULL, 'P'},
                                        {"url", required_argument, NULL, 'u'},
                                        CLI_TLS_OPTIONS,
                                        {"help", no_argument, NULL, 'h'},
                                        {0}};

/* The place of text in names, or -1. */
static int one_of(const char *text, const char *const *names)
{
    for (int i = 0; names[i]; i++)
        if (strcasecmp(text, names[i]) == 0)
            return i;
    return -1;
}

static bool take(struct consume *c, int option, const char *text)
{
    static const char *const types[] = {"Exclusive", "Shared", "Failover", "Key_Shared", NULL};
    static const char *const positions[] = {"Latest", "Earliest", NULL};
    static const char *const formats[] = {"text", "json", "raw", NULL};
    int which = 0;
    switch (option) {
    case 's':
        c->conf.subscription = text;
        return true;
    case 'n':
        return !parse_u64(text, &c->count) && c->count > 0;
    case 't':
        which = one_of(text, types);
        c->conf.type = (enum subscription_type)which;
        return which >= 0;
    case 'p':
        which = one_of(text, positions);
        c->conf.earliest = which == 1;
        return which >= 0;
    case 'F':
        which = one_of(text, formats);
        c->format = (enum format)which;
        return which >= 0;
    case 'i':
        return !parse_double(text, &c->idle_s) && c->idle_s > 0;
    case 'N':
        c->conf.name = text;
        return true;
    case 'P':
        return fan_take_every(&c->fan, text);
    case 'u':
        c->url = text;
        return true;
    default:
        return cli_take_tls(&c->tls, option, text);
    }
}

static void open_all(void *ctx)
{
    struct consume *c = ctx;

    c->consumers = mem_alloc(c->fan.n * sizeof(struct consumer *));
    c->n_open = c->fan.n;
    for (unsigned i = 0; i < c->fan.n; i++) {
        c->conf.topic = c->fan.topics[i];
        c->consumers[i] = consumer_open(c->cli.client, &c->conf);
    }
}

/* What was published to them before they were seen is not left out. */
static void open_new(void *ctx, unsigned from)
{
    struct consume *c = ctx;

    if (!c->consumers[0])
        return; /* all are being closed */
    c->consumers = mem_resize(c->consumers, c->fan.n * sizeof(struct consumer *));
    c->conf.earliest = true;
    for (unsigned i = from; i < c->fan.n; i++) {
        c->conf.topic = c->fan.topics[i];
        c->consumers[i] = consumer_open(c->cli.client, &c->conf);
        c->n_open++;
    }
    cli_tell(&c->cli, "the topic has %u partitions now", c->fan.n);
}

static int run(struct consume *c)
{
    int code = cli_open(&c->cli, "consume", c->url, &c->tls, stop, c);
    if (code)
        return code;
    c->idle.run = idle;
    c->conf.received = received;
    c->conf.damaged = damaged;
    c->conf.failed = failed;
    c->conf.ctx = c;
    c->fan.grew = open_new;
    fan_open(&c->fan, &c->cli, c->topic, open_all, c);
    arm_idle(c);
    code = cli_run(&c->cli);
    for (unsigned i = 0; c->consumers && i < c->fan.n; i++)
        if (c->consumers[i])
            consumer_close(&c->consumers[i], NULL, NULL);
    mem_free(c->consumers);
    fan_drop(&c->fan);
    cli_close(&c->cli);
    return code;
}

static int parse_and_run(struct consume *c, int argc, char **argv)
{
    int option;

    while ((option = getopt_long(argc, argv, "s:n:t:p:h", options, NULL)) != -1) {
        if (option == 'h') {
            fputs(help, stdout);
            return EXIT_DONE;
        }
        if (option == '?' || !take(c, option, optarg))
            return usage_error("consume", "'%s' cannot be used", argv[optind - 1]);
    }
    if (argc - optind != 1 || !c->conf.subscription)
        return usage_error("consume", "one TOPIC and -s SUBSCRIPTION are needed");
    c->topic = argv[optind];
    return run(c);
}

int command_consume(int argc, char **argv)
{
    struct consume *c = mem_new(struct consume);

    c->fan.every_us = FAN_EVERY_S * UINT64_C(1000000);
    int code = parse_and_run(c, argc, argv);
    mem_free(c);
    return code;
}
