#include <stdio.h>
#include <string.h>

#include "cli/command.h"
#include "cli/perf.h"
#include "cli/perf_meter.h"
#include "cli/perf_stamp.h"
#include "cli/perf_topics.h"
#include "cli/session.h"
#include "common/list.h"
#include "common/mem.h"
#include "common/rng.h"

enum {
    OPENING_MAX = 64,            /* producers that are opened at once */
    PUMP_MAX = 500,              /* messages in one go, so that receipts get their turn */
    DRAIN_US = 10 * 1000 * 1000, /* the last receipts are waited for */
    LATE_MAX_US = 500,
    SECOND_US = 1000 * 1000,
};

/* Of a message that has no receipt yet; reused. */
struct slot {
    struct send send;
    struct perf_run *run;
    struct perf_producer *by;
    uint64_t due_us;
    struct slot *next;
};

struct perf_producer {
    struct list_node node; /* of those that take messages */
    struct perf_run *run;
    struct producer *producer;
    const char *topic; /* of the run's */
    char *name;
    bool is_full;
};

struct perf_run {
    struct cli cli;
    const struct perf_options *o;
    struct perf_meter meter;
    struct perf_topics topics;
    struct perf_producer *producers; /* n; 0: not known yet */
    uint64_t n, opened, ready;
    struct list_node willing; /* the first is the next to get a message */
    uint64_t in_row;          /* messages that the first has had */
    struct slot *free_slots;
    char *payload;
    uint64_t sent, done;
    uint64_t began_us, wall_ahead_us; /* of the wall clock before ours */
    bool stopping, broken;
    struct task pump_task;
    bool pump_posted;
    struct timer due, line, warm, end, drain;
};

static void post_pump(struct perf_run *r);

/* ---- the end --------------------------------------------------------------------------------- */

static void end_when_drained(struct perf_run *r)
{
    if (r->stopping && r->done == r->sent)
        cli_end(&r->cli, r->broken ? EXIT_FAILED : EXIT_DONE);
}

static void drain_overdue(struct timer *t)
{
    struct perf_run *r = container_of(t, struct perf_run, drain);
    cli_say(&r->cli, "%llu messages have no receipt", (unsigned long long)(r->sent - r->done));
    cli_end(&r->cli, EXIT_FAILED);
}

static void stop(void *ctx)
{
    struct perf_run *r = ctx;
    if (r->stopping)
        return;
    r->stopping = true;
    r->broken |= r->began_us == 0;
    loop_cancel(r->cli.loop, &r->due);
    loop_cancel(r->cli.loop, &r->warm);
    for (uint64_t i = 0; i < r->opened; i++)
        if (r->producers[i].producer)
            producer_flush(r->producers[i].producer);
    /* By count the last receipt is the end; otherwise this moment is. */
    if (r->o->messages == 0 || r->sent < r->o->messages)
        perf_meter_end(&r->meter, loop_clock());
    loop_after(r->cli.loop, &r->drain, DRAIN_US);
    end_when_drained(r);
}

static void time_is_up(struct timer *t)
{
    stop(container_of(t, struct perf_run, end));
}

/* ---- sending --------------------------------------------------------------------------------- */

static struct slot *take_slot(struct perf_run *r)
{
    struct slot *s = r->free_slots;
    if (s)
        r->free_slots = s->next;
    else
        s = mem_new(struct slot);
    return s;
}

static void give_back(struct perf_run *r, struct slot *s)
{
    s->next = r->free_slots;
    r->free_slots = s;
}

static void receipt(struct send *send, enum err err, struct message_id id)
{
    struct slot *s = container_of(send, struct slot, send);
    struct perf_run *r = s->run;
    uint64_t now = loop_clock();
    (void)id;
    r->done++;
    if (!err) {
        perf_meter_note(&r->meter, s->send.len, now > s->due_us ? now - s->due_us : 0);
    } else {
        if (!r->broken)
            cli_say(&r->cli, "not published: %s", err_text(err));
        r->broken = true;
        perf_meter_failed(&r->meter);
    }
    if (s->by->is_full) {
        s->by->is_full = false;
        list_push_back(&r->willing, &s->by->node);
    }
    give_back(r, s);
    post_pump(r);
    end_when_drained(r);
}

/* Waking up for every message would cost more than the message: those of a batch may be late by a
 * quarter of what it gathers for, and are as old as they are. */
static uint64_t patience(const struct perf_run *r)
{
    uint64_t quarter = (uint64_t)(r->o->batch_ms * 250);
    if (r->o->no_batching)
        return 0;
    return quarter < LATE_MAX_US ? quarter : LATE_MAX_US;
}

/* When the next message is to be sent; without a rate as soon as it can be. */
static uint64_t next_due(const struct perf_run *r, uint64_t now)
{
    if (r->o->rate <= 0)
        return now;
    return r->began_us + (uint64_t)((double)r->sent * SECOND_US / r->o->rate);
}

static void next_in_turn(struct perf_run *r, struct perf_producer *p)
{
    if (++r->in_row < r->o->burst)
        return;
    r->in_row = 0;
    list_remove(&p->node);
    list_push_back(&r->willing, &p->node);
}

static bool send_one(struct perf_run *r, uint64_t due)
{
    struct perf_producer *p = list_entry(r->willing.next, struct perf_producer, node);
    struct slot *s = take_slot(r);

    s->run = r;
    s->by = p;
    s->due_us = due;
    s->send = (struct send){.payload = r->payload, .len = r->o->size, .done = receipt};
    if (r->o->size >= PERF_STAMP_BYTES)
        perf_stamp_write(r->payload, due + r->wall_ahead_us);
    enum err err = producer_send(p->producer, &s->send);
    if (!err) {
        r->sent++;
        next_in_turn(r, p);
        return true;
    }
    give_back(r, s);
    if (err == ERR_BUSY) {
        producer_flush(p->producer); /* a full window that waits for its batch to grow */
        p->is_full = true;
        r->in_row = 0;
        list_remove(&p->node);
        return true;
    }
    cli_say(&r->cli, "not published: %s", err_text(err));
    r->broken = true;
    stop(r);
    return false;
}

static bool may_send(const struct perf_run *r)
{
    return !r->stopping && r->began_us > 0 && !list_empty(&r->willing) &&
           (r->o->outstanding_all == 0 || r->sent - r->done < r->o->outstanding_all);
}

static void pump(struct perf_run *r)
{
    for (unsigned n = 0; may_send(r); n++) {
        uint64_t now = loop_clock(), due = next_due(r, now);
        if (r->o->messages > 0 && r->sent == r->o->messages) {
            stop(r);
        } else if (due > now) {
            uint64_t wait = due - now;
            loop_after(r->cli.loop, &r->due, wait > patience(r) ? wait : patience(r));
            return;
        } else if (n == PUMP_MAX) {
            post_pump(r);
            return;
        } else if (!send_one(r, due)) {
            return;
        }
    }
}

static void run_pump(struct task *t)
{
    struct perf_run *r = container_of(t, struct perf_run, pump_task);
    r->pump_posted = false;
    pump(r);
}

static void post_pump(struct perf_run *r)
{
    if (r->pump_posted || r->stopping)
        return;
    r->pump_posted = true;
    loop_post(r->cli.loop, &r->pump_task);
}

static void is_due(struct timer *t)
{
    pump(container_of(t, struct perf_run, due));
}

/* ---- the beginning --------------------------------------------------------------------------- */

static void line_due(struct timer *t)
{
    struct perf_run *r = container_of(t, struct perf_run, line);
    if (!r->meter.ended_us)
        perf_meter_line(&r->meter, loop_clock(), r->sent - r->done);
    loop_after(r->cli.loop, t, (uint64_t)(r->o->interval_s * SECOND_US));
}

static void is_warm(struct timer *t)
{
    struct perf_run *r = container_of(t, struct perf_run, warm);
    perf_meter_begin(&r->meter, loop_clock());
}

static void begin(struct perf_run *r)
{
    const struct perf_options *o = r->o;
    struct loop *l = r->cli.loop;
    printf("%llu producers are ready\n", (unsigned long long)r->n);
    fflush(stdout);
    r->began_us = loop_clock();
    r->wall_ahead_us = perf_wall_us() - r->began_us;
    perf_meter_begin(&r->meter, r->began_us);
    loop_after(l, &r->line, (uint64_t)(o->interval_s * SECOND_US));
    if (o->warmup_s > 0)
        loop_after(l, &r->warm, (uint64_t)(o->warmup_s * SECOND_US));
    if (o->test_s > 0)
        loop_after(l, &r->end, (uint64_t)((o->warmup_s + o->test_s) * SECOND_US));
    post_pump(r);
}

static void open_more(struct perf_run *r);

static void ready(struct producer *producer, void *ctx)
{
    struct perf_producer *p = ctx;
    struct perf_run *r = p->run;
    (void)producer;
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
    struct perf_producer *p = ctx;
    struct perf_run *r = p->run;
    (void)err;
    cli_say(&r->cli, "%s: %s", p->topic, text);
    r->broken = true;
    if (r->began_us > 0)
        stop(r);
    else
        cli_end(&r->cli, EXIT_FAILED);
}

static void open_one(struct perf_run *r, struct perf_producer *p, uint64_t i)
{
    const struct perf_options *o = r->o;
    const struct producer_conf conf = {
        .name = p->name = o->producer_name
                              ? mem_format("%s-%llu", o->producer_name, (unsigned long long)i)
                              : NULL,
        .topic = p->topic = r->topics.names[i / o->producers],
        .compression = o->compression,
        .batching = !o->no_batching,
        .batch_max = (unsigned)o->batch_messages,
        .batch_bytes = o->batch_bytes,
        .batch_delay_us = o->batch_ms > 0 ? (uint64_t)(o->batch_ms * 1e3) : 1,
        .pending_max = (unsigned)o->outstanding,
        .pending_bytes = SIZE_MAX,
        .chunking = o->chunking,
        .ready = ready,
        .failed = failed,
        .ctx = p};
    p->run = r;
    list_push_back(&r->willing, &p->node);
    p->producer = producer_open(r->cli.client, &conf);
}

static void open_more(struct perf_run *r)
{
    while (r->opened < r->n && r->opened - r->ready < OPENING_MAX) {
        struct perf_producer *p = &r->producers[r->opened++];
        open_one(r, p, r->opened - 1);
    }
}

static void open_all(void *ctx)
{
    struct perf_run *r = ctx;

    if (r->stopping)
        return;
    r->n = r->topics.n * r->o->producers;
    r->producers = mem_alloc(r->n * sizeof(*r->producers));
    open_more(r);
}

/* Nothing that compresses to nothing. */
static char *random_payload(uint64_t size)
{
    char *bytes = mem_alloc(size);
    uint64_t seed = 1;
    for (uint64_t i = 0; i < size; i++)
        bytes[i] = (char)('0' + rng_below(&seed, 64));
    return bytes;
}

static void run_drop(struct perf_run *r)
{
    for (uint64_t i = 0; i < r->opened; i++)
        mem_free(r->producers[i].name);
    perf_topics_drop(&r->topics);
    while (r->free_slots) {
        struct slot *s = r->free_slots;
        r->free_slots = s->next;
        mem_free(s);
    }
    perf_meter_drop(&r->meter);
    mem_free(r->producers);
    mem_free(r->payload);
    mem_free(r);
}

static void run_init(struct perf_run *r, const struct perf_options *o)
{
    r->o = o;
    r->payload = random_payload(o->size);
    list_init(&r->willing);
    perf_meter_init(&r->meter);
    r->pump_task.run = run_pump;
    r->due.run = is_due;
    r->line.run = line_due;
    r->warm.run = is_warm;
    r->end.run = time_is_up;
    r->drain.run = drain_overdue;
}

int perf_produce(const struct perf_options *o)
{
    const struct tls_conf tls = {.trust_file = o->trust_file,
                                 .cert_file = o->cert_file,
                                 .key_file = o->key_file,
                                 .insecure = o->insecure};
    struct perf_run *r = mem_new(struct perf_run);
    run_init(r, o);
    int code = cli_open(&r->cli, perf_command_name(o->command), o->url, &tls, stop, r);
    if (!code) {
        perf_topics_ask(&r->topics, &r->cli, o, open_all, r);
        code = cli_run(&r->cli);
        uint64_t unanswered = r->sent - r->done;
        perf_meter_end(&r->meter, loop_clock());
        if (r->began_us > 0 &&
            perf_meter_summary(&r->meter, o, unanswered, o->rate > 0 ? "due" : "sent"))
            code = EXIT_FAILED;
        r->stopping = true;
        cli_close(&r->cli);
    }
    run_drop(r);
    return code;
}
