#include <getopt.h>
#include <math.h>
#include <stdio.h>

#include "cli/command.h"
#include "cli/session.h"
#include "cli/verify.h"
#include "cli/verify_log.h"
#include "cli/verify_record.h"
#include "common/crc32c.h"
#include "common/mem.h"
#include "common/parse.h"
#include "common/rng.h"

enum { SIZE_MAX_BYTES = 4 * 1024 * 1024, SYNC_US = 100 * 1000, TICK_US = 10 * 1000 };

struct verify_send {
    struct send send;
    struct produce_run *run;
    uint64_t seq;
    char bytes[];
};

struct produce_run {
    struct cli cli;
    struct tls_conf tls;
    const char *topic, *log_path, *url;
    uint64_t count, size;
    double rate;
    bool batching;
    struct consumer *subscription; /* makes it durable, then goes */
    struct producer *producer;
    struct verify_log *log;
    struct verify_record next;
    uint64_t first_sequence; /* the producer's number of record 0 */
    uint64_t acked, failed, resent, began_us;
    struct timer tick, sync;
};

static const char help[] =
    "usage: lgm verify produce TOPIC --count N --log FILE [OPTION]...\n"
    "Makes the durable subscription `verify`, publishes N records, logs what was acknowledged.\n\n"
    "  --count N        records\n"
    "  --log FILE       must not exist yet\n"
    "  --size BYTES     of a record (128)\n"
    "  --rate N         at most N records a second\n"
    "  --no-batching    every record an entry of its own\n"
    "  --url URL        service url (LGM_URL, else pulsar://127.0.0.1:6650)\n"
    "  --tls-trust, --tls-cert, --tls-key FILE, --tls-insecure: as `lgm produce --help` says\n\n"
    "Example: lgm verify produce my-topic --count 100000 --log /tmp/run.log\n";

static void finish(void *ctx)
{
    struct produce_run *r = ctx;
    cli_end(&r->cli, r->acked == r->count + 1 && r->failed == 0 ? EXIT_DONE : EXIT_FAILED);
}

static void log_broken(struct produce_run *r, enum err err)
{
    cli_say(&r->cli, "%s cannot be written: %s", r->log_path, err_text(err));
    cli_end(&r->cli, EXIT_FAILED);
}

/* Records 0 .. count-1, then the end mark. */
static bool all_sent(const struct produce_run *r)
{
    return r->next.seq > r->count;
}

static void end_when_done(struct produce_run *r)
{
    if (r->producer && all_sent(r) && r->acked + r->failed == r->next.seq)
        producer_close(&r->producer, finish, r);
}

static void more(struct produce_run *r);

static void done(struct send *s, enum err err, struct message_id id)
{
    struct verify_send *v = container_of(s, struct verify_send, send);
    struct produce_run *r = v->run;
    if (err) {
        if (r->failed++ == 0)
            cli_say(&r->cli, "record %llu was not acknowledged: %s", (unsigned long long)v->seq,
                    err_text(err));
    } else {
        r->acked++;
        verify_log_acked(r->log, v->seq, id);
    }
    mem_free(v);
    more(r);
    end_when_done(r);
}

static bool too_early(const struct produce_run *r)
{
    double seconds = (double)(loop_now(r->cli.loop) - r->began_us) / 1e6;
    return r->rate > 0 && (double)r->next.seq >= floor(seconds * r->rate) + 1;
}

static bool send_next(struct produce_run *r)
{
    struct verify_send *v = mem_alloc(sizeof *v + r->size);
    verify_record_write(&r->next, v->bytes, r->size);
    v->run = r;
    v->seq = r->next.seq;
    v->send = (struct send){.payload = v->bytes, .len = r->size, .done = done};
    enum err err = producer_send(r->producer, &v->send);
    if (err) {
        mem_free(v);
        return false;
    }
    if (v->seq == 0)
        r->first_sequence = v->send.sequence_id;
    r->next.before = crc32c(v->bytes, r->size);
    r->next.seq++;
    return true;
}

static void more(struct produce_run *r)
{
    if (!r->producer)
        return;
    while (!all_sent(r) && !too_early(r) && send_next(r))
        ;
    if (r->rate > 0 && !all_sent(r) && !timer_armed(&r->tick))
        loop_after(r->cli.loop, &r->tick, TICK_US);
}

static void tick(struct timer *t)
{
    more(container_of(t, struct produce_run, tick));
}

static void sync_log(struct timer *t)
{
    struct produce_run *r = container_of(t, struct produce_run, sync);
    enum err err = verify_log_flush(r->log, true);
    if (err)
        log_broken(r, err);
    else
        loop_after(r->cli.loop, t, SYNC_US);
}

static void ready(struct producer *producer, void *ctx)
{
    struct produce_run *r = ctx;
    (void)producer;
    r->began_us = loop_now(r->cli.loop);
    loop_after(r->cli.loop, &r->sync, SYNC_US);
    more(r);
}

static void resent(void *ctx, uint64_t sequence_id)
{
    struct produce_run *r = ctx;
    r->resent++;
    verify_log_resent(r->log, sequence_id - r->first_sequence);
}

static void failed(void *ctx, enum err err, const char *text)
{
    struct produce_run *r = ctx;
    (void)err;
    cli_say(&r->cli, "%s", text);
    cli_end(&r->cli, EXIT_FAILED);
}

/* ---- the subscription comes first: what is published before it would be nobody's ------------- */

static void start_producing(void *ctx)
{
    struct produce_run *r = ctx;
    const struct producer_conf conf = {.topic = r->topic,
                                       .batching = r->batching,
                                       .chunking = true,
                                       .ready = ready,
                                       .resent = resent,
                                       .failed = failed,
                                       .ctx = r};
    r->producer = producer_open(r->cli.client, &conf);
}

static void subscribed(struct consumer *c, void *ctx)
{
    struct produce_run *r = ctx;
    (void)c;
    consumer_pause(r->subscription);
    consumer_close(&r->subscription, start_producing, r);
}

static void ignore(struct consumer *c, void *ctx, const struct received *m)
{
    (void)c, (void)ctx, (void)m; /* not acknowledged: it comes again to the one who judges */
}

/* Somebody consumes it already: then it exists. */
static void not_subscribed(void *ctx, enum err err, const char *text)
{
    struct produce_run *r = ctx;
    if (err != ERR_CONSUMER_BUSY) {
        failed(ctx, err, text);
        return;
    }
    consumer_close(&r->subscription, start_producing, r);
}

static void subscribe(struct produce_run *r)
{
    const struct consumer_conf conf = {.topic = r->topic,
                                       .subscription = VERIFY_SUBSCRIPTION,
                                       .earliest = true,
                                       .queue_size = 1,
                                       .ready = subscribed,
                                       .received = ignore,
                                       .failed = not_subscribed,
                                       .ctx = r};
    r->subscription = consumer_open(r->cli.client, &conf);
}

/* ---- the command line ------------------------------------------------------------------------ */

/* What was sent is all there is: the end mark comes now. */
static void stop(void *ctx)
{
    struct produce_run *r = ctx;
    if (r->began_us == 0) {
        cli_end(&r->cli, EXIT_FAILED);
        return;
    }
    if (r->next.seq < r->count)
        r->count = r->next.seq;
    r->rate = 0;
    more(r);
}

static void tell(void *ctx)
{
    const struct produce_run *r = ctx;
    fprintf(stderr, "%llu of %llu acknowledged", (unsigned long long)r->acked,
            (unsigned long long)r->count);
}

static const struct option options[] = {{"count", required_argument, NULL, 'n'},
                                        {"log", required_argument, NULL, 'l'},
                                        {"size", required_argument, NULL, 's'},
                                        {"rate", required_argument, NULL, 'r'},
                                        {"no-batching", no_argument, NULL, 'B'},
                                        {"url", required_argument, NULL, 'u'},
                                        CLI_TLS_OPTIONS,
                                        {"help", no_argument, NULL, 'h'},
                                        {0}};

static bool take(struct produce_run *r, int option, const char *text)
{
    switch (option) {
    case 'n':
        return !parse_u64(text, &r->count) && r->count > 0;
    case 'l':
        r->log_path = text;
        return true;
    case 's':
        return !parse_u64(text, &r->size) && r->size >= VERIFY_RECORD_LEAST &&
               r->size <= SIZE_MAX_BYTES;
    case 'r':
        return !parse_double(text, &r->rate) && r->rate > 0;
    case 'B':
        r->batching = false;
        return true;
    case 'u':
        r->url = text;
        return true;
    default:
        return cli_take_tls(&r->tls, option, text);
    }
}

static void new_run(char run[VERIFY_RUN_CHARS + 1])
{
    snprintf(run, VERIFY_RUN_CHARS + 1, "%016llx", (unsigned long long)rng_seed());
}

static int run(struct produce_run *r)
{
    int code = cli_open(&r->cli, "verify produce", r->url, &r->tls, stop, r);
    if (code)
        return code;
    new_run(r->next.run);
    r->tick.run = tick;
    r->sync.run = sync_log;
    enum err err = verify_log_create(&r->log, r->log_path, r->next.run, r->count, r->topic);
    if (err) {
        cli_say(&r->cli, "%s: %s", r->log_path, err_text(err));
        cli_close(&r->cli);
        return EXIT_FAILED;
    }
    subscribe(r);
    cli_progress(&r->cli, tell);
    code = cli_run(&r->cli);
    uint64_t records = r->acked > r->count ? r->count : r->acked; /* without the end mark */
    err = verify_log_end(&r->log, records, r->count);
    if (err) {
        cli_say(&r->cli, "%s: %s", r->log_path, err_text(err));
        code = EXIT_FAILED;
    }
    printf("acknowledged=%llu failed=%llu resent=%llu\n", (unsigned long long)records,
           (unsigned long long)r->failed, (unsigned long long)r->resent);
    if (r->producer)
        producer_close(&r->producer, NULL, NULL);
    cli_close(&r->cli);
    return code;
}

static int parse_and_run(struct produce_run *r, int argc, char **argv)
{
    int option;
    r->size = 128;
    r->batching = true;
    while ((option = getopt_long(argc, argv, "n:l:h", options, NULL)) != -1) {
        if (option == 'h') {
            fputs(help, stdout);
            return EXIT_DONE;
        }
        if (option == '?' || !take(r, option, optarg))
            return usage_error("verify produce", "'%s' cannot be used", argv[optind - 1]);
    }
    if (argc - optind != 1 || r->count == 0 || !r->log_path)
        return usage_error("verify produce", "one TOPIC, --count N and --log FILE are needed");
    r->topic = argv[optind];
    return run(r);
}

int verify_produce(int argc, char **argv)
{
    struct produce_run *r = mem_new(struct produce_run);
    int code = parse_and_run(r, argc, argv);
    mem_free(r);
    return code;
}
