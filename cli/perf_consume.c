#include <stdio.h>

#include "cli/command.h"
#include "cli/perf.h"
#include "cli/perf_meter.h"
#include "cli/perf_stamp.h"
#include "cli/perf_topics.h"
#include "cli/session.h"
#include "common/mem.h"

enum {
    OPENING_MAX = 64,            /* consumers that are opened at once */
    CLOSE_US = 10 * 1000 * 1000, /* the last acknowledgements are waited for */
    SECOND_US = 1000 * 1000,
};

struct perf_consumer {
    struct perf_run *run;
    struct consumer *consumer;
    const char *topic; /* of the run's */
    char *subscription;
};

struct perf_run {
    struct cli cli;
    const struct perf_options *o;
    struct perf_meter meter;
    struct perf_topics topics;
    struct perf_consumer *consumers; /* n; 0: not known yet */
    uint64_t n, subscriptions, opened, ready, closed;
    uint64_t received, began_us, last_us; /* since the first message */
    bool stamped, published;              /* where times came from */
    bool stopping, broken, is_paused, is_warm;
    struct timer resume, line, warm, end, close;
};

/* ---- the end --------------------------------------------------------------------------------- */

static void one_closed(void *ctx)
{
    struct perf_run *r = ctx;
    if (++r->closed == r->opened)
        cli_end(&r->cli, r->broken ? EXIT_FAILED : EXIT_DONE);
}

static void close_overdue(struct timer *t)
{
    struct perf_run *r = container_of(t, struct perf_run, close);
    cli_say(&r->cli, "the last acknowledgements were not answered");
    cli_end(&r->cli, EXIT_FAILED);
}

static void stop(void *ctx)
{
    struct perf_run *r = ctx;
    if (r->stopping)
        return;
    r->stopping = true;
    perf_meter_end(&r->meter, r->last_us ? r->last_us : loop_clock());
    loop_cancel(r->cli.loop, &r->resume);
    loop_after(r->cli.loop, &r->close, CLOSE_US);
    for (uint64_t i = 0; i < r->opened; i++)
        consumer_close(&r->consumers[i].consumer, one_closed, r);
    if (r->opened == 0)
        cli_end(&r->cli, EXIT_FAILED);
}

static void time_is_up(struct timer *t)
{
    stop(container_of(t, struct perf_run, end));
}

/* ---- receiving ------------------------------------------------------------------------------- */

static uint64_t age_of(struct perf_run *r, const struct received *m)
{
    uint64_t then, now = perf_wall_us();
    if (perf_stamp_read(m->payload, &then)) {
        r->stamped = true;
    } else {
        r->published = true;
        then = m->publish_time * 1000;
    }
    return now > then ? now - then : 0;
}

static void pause_all(struct perf_run *r, bool pause)
{
    r->is_paused = pause;
    for (uint64_t i = 0; i < r->opened; i++)
        if (pause)
            consumer_pause(r->consumers[i].consumer);
        else
            consumer_resume(r->consumers[i].consumer);
}

static void hold_to_rate(struct perf_run *r)
{
    uint64_t due = r->began_us + (uint64_t)((double)r->received * SECOND_US / r->o->rate);
    uint64_t now = loop_clock();
    if (due <= now || r->is_paused)
        return;
    pause_all(r, true);
    loop_after(r->cli.loop, &r->resume, due - now);
}

static void resume(struct timer *t)
{
    pause_all(container_of(t, struct perf_run, resume), false);
}

/* Without a warm-up the measured time begins with the first message. */
static void first_message(struct perf_run *r)
{
    r->began_us = loop_clock();
    if (!r->is_warm && r->o->warmup_s <= 0)
        perf_meter_begin(&r->meter, r->began_us);
}

static void received(struct consumer *consumer, void *ctx, const struct received *m)
{
    struct perf_consumer *c = ctx;
    struct perf_run *r = c->run;
    if (r->stopping)
        return;
    if (r->received++ == 0)
        first_message(r);
    r->last_us = loop_clock();
    perf_meter_note(&r->meter, m->payload.len, age_of(r, m));
    if (r->o->command == PERF_CONSUME)
        consumer_ack(consumer, m->id);
    if (r->o->messages > 0 && r->received == r->o->messages)
        stop(r);
    else if (r->o->rate > 0)
        hold_to_rate(r);
}

static void damaged(struct consumer *consumer, void *ctx, struct message_id id, enum err err)
{
    struct perf_consumer *c = ctx;
    struct perf_run *r = c->run;
    (void)consumer;
    cli_say(&r->cli, "%s: message %lld:%lld cannot be opened: %s", c->topic, (long long)id.ledger,
            (long long)id.entry, err_text(err));
    r->broken = true;
    perf_meter_failed(&r->meter);
}

/* ---- the beginning --------------------------------------------------------------------------- */

static void line_due(struct timer *t)
{
    struct perf_run *r = container_of(t, struct perf_run, line);
    if (!r->stopping)
        perf_meter_line(&r->meter, loop_clock(), 0);
    loop_after(r->cli.loop, t, (uint64_t)(r->o->interval_s * SECOND_US));
}

static void is_warm(struct timer *t)
{
    struct perf_run *r = container_of(t, struct perf_run, warm);
    r->is_warm = true;
    perf_meter_begin(&r->meter, loop_clock());
}

static void begin(struct perf_run *r)
{
    const struct perf_options *o = r->o;
    struct loop *l = r->cli.loop;
    printf("%llu %s are ready\n", (unsigned long long)r->n,
           o->command == PERF_READ ? "readers" : "consumers");
    fflush(stdout);
    if (r->received == 0)
        perf_meter_begin(&r->meter, loop_clock());
    loop_after(l, &r->line, (uint64_t)(o->interval_s * SECOND_US));
    if (o->warmup_s > 0)
        loop_after(l, &r->warm, (uint64_t)(o->warmup_s * SECOND_US));
    if (o->test_s > 0)
        loop_after(l, &r->end, (uint64_t)((o->warmup_s + o->test_s) * SECOND_US));
}

static void open_more(struct perf_run *r);

static void ready(struct consumer *consumer, void *ctx)
{
    struct perf_consumer *c = ctx;
    struct perf_run *r = c->run;
    (void)consumer;
    r->ready++;
    if (r->stopping)
        return;
    if (r->ready == r->n)
        begin(r);
    else
        open_more(r);
}

static void failed(void *ctx, enum err err, const char *text)
{
    struct perf_consumer *c = ctx;
    struct perf_run *r = c->run;
    (void)err;
    cli_say(&r->cli, "%s: %s", c->topic, text);
    r->broken = true;
    if (r->ready == r->n)
        stop(r);
    else
        cli_end(&r->cli, EXIT_FAILED);
}

static void open_one(struct perf_run *r, struct perf_consumer *c, uint64_t i)
{
    const struct perf_options *o = r->o;
    const uint64_t a_topic = r->subscriptions * o->consumers;
    c->run = r;
    c->topic = r->topics.names[i / a_topic];
    if (o->command == PERF_CONSUME)
        c->subscription = perf_subscription(o, i % a_topic / o->consumers);
    const struct consumer_conf conf = {.topic = c->topic,
                                       .subscription = c->subscription,
                                       .type = o->type,
                                       .earliest = o->earliest,
                                       .reader = o->command == PERF_READ,
                                       .after = o->after,
                                       .queue_size = (unsigned)o->queue,
                                       .ready = ready,
                                       .received = received,
                                       .damaged = damaged,
                                       .failed = failed,
                                       .ctx = c};
    c->consumer = consumer_open(r->cli.client, &conf);
    if (r->is_paused)
        consumer_pause(c->consumer);
}

static void open_more(struct perf_run *r)
{
    while (r->opened < r->n && r->opened - r->ready < OPENING_MAX) {
        uint64_t i = r->opened++;
        open_one(r, &r->consumers[i], i);
    }
}

static void open_all(void *ctx)
{
    struct perf_run *r = ctx;

    if (r->stopping)
        return;
    r->n = r->topics.n * r->subscriptions * r->o->consumers;
    r->consumers = mem_alloc(r->n * sizeof(*r->consumers));
    open_more(r);
}

static void run_init(struct perf_run *r, const struct perf_options *o)
{
    char *name;
    r->o = o;
    r->subscriptions = o->command == PERF_READ;
    while (o->command == PERF_CONSUME && (name = perf_subscription(o, r->subscriptions))) {
        r->subscriptions++;
        mem_free(name);
    }
    perf_meter_init(&r->meter);
    r->resume.run = resume;
    r->line.run = line_due;
    r->warm.run = is_warm;
    r->end.run = time_is_up;
    r->close.run = close_overdue;
}

static void run_drop(struct perf_run *r)
{
    for (uint64_t i = 0; i < r->opened; i++)
        mem_free(r->consumers[i].subscription);
    perf_topics_drop(&r->topics);
    perf_meter_drop(&r->meter);
    mem_free(r->consumers);
    mem_free(r);
}

static const char *since(const struct perf_run *r)
{
    if (r->stamped && r->published)
        return "due or published";
    return r->stamped ? "due" : "published";
}

static int run(struct perf_run *r)
{
    const struct perf_options *o = r->o;
    const struct tls_conf tls = {.trust_file = o->trust_file,
                                 .cert_file = o->cert_file,
                                 .key_file = o->key_file,
                                 .insecure = o->insecure};
    if (r->subscriptions == 0)
        return usage_error(perf_command_name(o->command), "-ss names no subscription");
    int code = cli_open(&r->cli, perf_command_name(o->command), o->url, &tls, stop, r);
    if (code)
        return code;
    perf_topics_ask(&r->topics, &r->cli, o, open_all, r);
    code = cli_run(&r->cli);
    bool began = r->n > 0 && r->ready == r->n;
    perf_meter_end(&r->meter, r->last_us ? r->last_us : loop_clock());
    if (began && perf_meter_summary(&r->meter, o, 0, since(r)))
        code = EXIT_FAILED;
    r->stopping = true;
    cli_close(&r->cli);
    return code;
}

int perf_consume(const struct perf_options *o)
{
    struct perf_run *r = mem_new(struct perf_run);
    run_init(r, o);
    int code = run(r);
    run_drop(r);
    return code;
}
