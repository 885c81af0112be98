#include <getopt.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>

#include "cli/command.h"
#include "cli/session.h"
#include "cli/verify.h"
#include "cli/verify_judge.h"
#include "common/crc32c.h"
#include "common/mem.h"
#include "common/parse.h"

enum { LOOK_US = 100 * 1000, CONSUMERS_MAX = 64 };

struct consume_run {
    struct cli cli;
    struct tls_conf tls;
    const char *topic, *log_path, *url;
    double idle_s;
    bool strict;
    enum subscription_type type;
    uint64_t consumers, churn_ms;
    struct consumer *consumer[CONSUMERS_MAX];
    unsigned closing_n, next;
    struct timer churn;
    struct verify_evidence evidence;
    struct judge *judge;
    uint64_t got, last_us; /* when anything came last */
    bool closing;
    struct timer look;
};

static const char help[] =
    "usage: lgm verify consume TOPIC --log FILE [OPTION]...\n"
    "Receives the records of the run that FILE tells of from the subscription `verify`, and "
    "prints\n"
    "lost=L duplicated=D reordered=R resent=S redelivered=V checked=N.\n"
    "It ends when the log has ended, everything in it was seen, and the end mark too.\n"
    "With -t Shared no order is promised, and none is judged.\n\n"
    "  --log FILE       as written by `lgm verify produce`, which may still be running\n"
    "  --idle SECONDS   end when nothing came for so long (30)\n"
    "  -t, --type TYPE  Exclusive or Shared (Exclusive)\n"
    "  --consumers N    of a Shared subscription, in this process (1)\n"
    "  --churn MS       close one of them so often, with what it holds, and open another\n"
    "  --strict         resent records count as a failure too\n"
    "  --url URL        service url (LGM_URL, else pulsar://127.0.0.1:6650)\n"
    "  --tls-trust, --tls-cert, --tls-key FILE, --tls-insecure: as `lgm produce --help` says\n\n"
    "Example: lgm verify consume my-topic --log /tmp/run.log\n";

static void finish(void *ctx)
{
    struct consume_run *r = ctx;
    if (--r->closing_n == 0)
        cli_end(&r->cli, EXIT_DONE);
}

static void close_consumers(struct consume_run *r)
{
    if (r->closing)
        return;
    r->closing = true;
    loop_cancel(r->cli.loop, &r->look);
    loop_cancel(r->cli.loop, &r->churn);
    r->closing_n = (unsigned)r->consumers;
    for (unsigned i = 0; i < r->consumers; i++) {
        consumer_pause(r->consumer[i]);
        consumer_close(&r->consumer[i], finish, r);
    }
}

/* The end mark is the last record of an ordered topic: once it came, all that was acknowledged has
 * had its chance. */
static bool all_there(struct consume_run *r)
{
    return r->evidence.ended && judge_has_seen(r->judge, r->evidence.count) &&
           judge_complete(r->judge, &r->evidence);
}

static void look(struct timer *t)
{
    struct consume_run *r = container_of(t, struct consume_run, look);
    uint64_t idle_us = (uint64_t)(r->idle_s * 1e6);
    verify_evidence_more(&r->evidence);
    if (all_there(r) || loop_now(r->cli.loop) - r->last_us > idle_us)
        close_consumers(r);
    else
        loop_after(r->cli.loop, t, LOOK_US);
}

static void received(struct consumer *c, void *ctx, const struct received *m)
{
    struct consume_run *r = ctx;
    struct verify_record record;
    enum err err = verify_record_read(m->payload, &record);
    r->got++;
    r->last_us = loop_now(r->cli.loop);
    if (err == ERR_CHECKSUM)
        judge_saw_corrupt(r->judge);
    if (!err && strcmp(record.run, r->evidence.run) == 0 && record.seq <= r->evidence.count)
        judge_saw(r->judge, &record, crc32c(m->payload.base, m->payload.len), m->id);
    consumer_ack(c, m->id);
}

static void damaged(struct consumer *c, void *ctx, struct message_id id, enum err err)
{
    struct consume_run *r = ctx;
    (void)c;
    cli_say(&r->cli, "message %lld:%lld cannot be opened: %s", (long long)id.ledger,
            (long long)id.entry, err_text(err));
    judge_saw_corrupt(r->judge);
}

static void failed(void *ctx, enum err err, const char *text)
{
    struct consume_run *r = ctx;
    (void)err;
    cli_say(&r->cli, "%s", text);
    cli_end(&r->cli, EXIT_FAILED);
}

static void stop(void *ctx)
{
    close_consumers(ctx);
}

static struct consumer *open_one(struct consume_run *r)
{
    const struct consumer_conf conf = {.topic = r->topic,
                                       .subscription = VERIFY_SUBSCRIPTION,
                                       .type = r->type,
                                       .earliest = true,
                                       .received = received,
                                       .damaged = damaged,
                                       .failed = failed,
                                       .ctx = r};
    return consumer_open(r->cli.client, &conf);
}

static void churn(struct timer *t)
{
    struct consume_run *r = container_of(t, struct consume_run, churn);
    unsigned i = r->next++ % (unsigned)r->consumers;
    consumer_close(&r->consumer[i], NULL, NULL);
    r->consumer[i] = open_one(r);
    loop_after(r->cli.loop, t, r->churn_ms * 1000);
}

static void tell(void *ctx)
{
    const struct consume_run *r = ctx;
    fprintf(stderr, "%llu received of %llu acknowledged so far", (unsigned long long)r->got,
            (unsigned long long)r->evidence.acked);
}

static int verdict(const struct consume_run *r)
{
    struct verdict v = judge_verdict(r->judge, &r->evidence);
    printf("lost=%llu duplicated=%llu reordered=%llu resent=%llu redelivered=%llu checked=%llu\n",
           (unsigned long long)v.lost, (unsigned long long)v.duplicated,
           (unsigned long long)v.reordered, (unsigned long long)v.resent,
           (unsigned long long)v.redelivered, (unsigned long long)v.checked);
    if (v.corrupt > 0)
        cli_say(&r->cli, "%llu records came otherwise than they were sent",
                (unsigned long long)v.corrupt);
    bool reordered = v.reordered > 0 && r->type == SUB_EXCLUSIVE;
    bool bad = v.lost > 0 || v.duplicated > 0 || reordered || (r->strict && v.resent > 0);
    return bad ? EXIT_FAILED : EXIT_DONE;
}

/* ---- the command line ------------------------------------------------------------------------ */

static const struct option options[] = {{"log", required_argument, NULL, 'l'},
                                        {"idle", required_argument, NULL, 'i'},
                                        {"strict", no_argument, NULL, 'S'},
                                        {"url", required_argument, NULL, 'u'},
                                        CLI_TLS_OPTIONS,
                                        {"type", required_argument, NULL, 't'},
                                        {"consumers", required_argument, NULL, 'c'},
                                        {"churn", required_argument, NULL, 'C'},
                                        {"help", no_argument, NULL, 'h'},
                                        {0}};

static bool take_type(struct consume_run *r, const char *text)
{
    r->type = strcasecmp(text, "Shared") == 0 ? SUB_SHARED : SUB_EXCLUSIVE;
    return r->type == SUB_SHARED || strcasecmp(text, "Exclusive") == 0;
}

static bool take(struct consume_run *r, int option, const char *text)
{
    switch (option) {
    case 'l':
        r->log_path = text;
        return true;
    case 'i':
        return !parse_double(text, &r->idle_s) && r->idle_s > 0;
    case 'S':
        r->strict = true;
        return true;
    case 't':
        return take_type(r, text);
    case 'c':
        return !parse_u64(text, &r->consumers) && r->consumers > 0 && r->consumers <= CONSUMERS_MAX;
    case 'C':
        return !parse_u64(text, &r->churn_ms);
    case 'u':
        r->url = text;
        return true;
    default:
        return cli_take_tls(&r->tls, option, text);
    }
}

static int run(struct consume_run *r)
{
    int code = cli_open(&r->cli, "verify consume", r->url, &r->tls, stop, r);
    if (code)
        return code;
    enum err err = verify_evidence_open(&r->evidence, r->log_path);
    if (err) {
        cli_say(&r->cli, "%s: %s", r->log_path, err_text(err));
        cli_close(&r->cli);
        return EXIT_FAILED;
    }
    r->judge = judge_new();
    r->last_us = loop_now(r->cli.loop);
    r->look.run = look;
    r->churn.run = churn;
    for (unsigned i = 0; i < r->consumers; i++)
        r->consumer[i] = open_one(r);
    loop_after(r->cli.loop, &r->look, LOOK_US);
    if (r->churn_ms > 0)
        loop_after(r->cli.loop, &r->churn, r->churn_ms * 1000);
    cli_progress(&r->cli, tell);
    code = cli_run(&r->cli);
    verify_evidence_more(&r->evidence);
    if (code == EXIT_DONE)
        code = verdict(r);
    for (unsigned i = 0; i < r->consumers; i++)
        if (r->consumer[i])
            consumer_close(&r->consumer[i], NULL, NULL);
    cli_close(&r->cli);
    judge_drop(&r->judge);
    verify_evidence_drop(&r->evidence);
    return code;
}

static int parse_and_run(struct consume_run *r, int argc, char **argv)
{
    int option;
    r->idle_s = 30;
    r->consumers = 1;
    while ((option = getopt_long(argc, argv, "l:t:h", options, NULL)) != -1) {
        if (option == 'h') {
            fputs(help, stdout);
            return EXIT_DONE;
        }
        if (option == '?' || !take(r, option, optarg))
            return usage_error("verify consume", "'%s' cannot be used", argv[optind - 1]);
    }
    if (argc - optind != 1 || !r->log_path)
        return usage_error("verify consume", "one TOPIC and --log FILE are needed");
    if (r->type == SUB_EXCLUSIVE && (r->consumers > 1 || r->churn_ms > 0))
        return usage_error("verify consume", "several consumers need -t Shared");
    r->topic = argv[optind];
    return run(r);
}

int verify_consume(int argc, char **argv)
{
    struct consume_run *r = mem_new(struct consume_run);
    int code = parse_and_run(r, argc, argv);
    mem_free(r);
    return code;
}
