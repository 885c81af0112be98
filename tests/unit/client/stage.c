#include "tests/unit/client/stage.h"

#include <stdio.h>
#include <string.h>

#include "common/mem.h"

enum { LOOK_US = 1000, PATIENCE_US = 30 * 1000 * 1000 };

/* ---- the story ------------------------------------------------------------------------------- */

const char *story(const struct stage *s)
{
    return s->story.at ? s->story.at : "";
}

unsigned story_count(const struct stage *s, const char *front)
{
    unsigned n = 0;
    for (const char *at = story(s); *at; at = strchr(at, '\n') + 1)
        n += strncmp(at, front, strlen(front)) == 0;
    return n;
}

static void ready(struct producer *p, void *ctx)
{
    struct stage *s = ctx;
    (void)p;
    text_add(&s->story, "ready\n");
}

static void consumer_ready(struct consumer *c, void *ctx)
{
    struct stage *s = ctx;
    (void)c;
    text_add(&s->story, "ready\n");
}

static void resent(void *ctx, uint64_t sequence)
{
    struct stage *s = ctx;
    text_add(&s->story, "resent %d\n", (int)sequence);
}

static void failed(void *ctx, enum err err, const char *text)
{
    struct stage *s = ctx;
    text_add(&s->story, "failed %s\n", err_name(err));
    snprintf(s->why, sizeof s->why, "%s", text);
}

static void done(struct send *send, enum err err, struct message_id id)
{
    struct stage *s = send->ctx;
    s->done++;
    text_add(&s->story, "done %d ", (int)send->sequence_id);
    if (err)
        text_add(&s->story, "%s\n", err_name(err));
    else if (id.batch_index >= 0)
        text_add(&s->story, "%d:%d/%d\n", (int)id.ledger, (int)id.entry, id.batch_index);
    else
        text_add(&s->story, "%d:%d\n", (int)id.ledger, (int)id.entry);
    if (s->to_bring > 0 && s->producer) {
        s->to_bring--;
        stage_send(s, "another");
    }
}

static void received(struct consumer *c, void *ctx, const struct received *m)
{
    struct stage *s = ctx;
    text_add(&s->story, "got %d:%d", (int)m->id.ledger, (int)m->id.entry);
    if (m->id.batch_index >= 0)
        text_add(&s->story, "/%d", m->id.batch_index);
    text_add(&s->story, " '%.*s'\n", m->payload.len < 40 ? (int)m->payload.len : 3,
             (const char *)m->payload.base);
    if (s->received)
        s->received(s, m);
    if (s->acks)
        consumer_ack(c, m->id);
}

static void damaged(struct consumer *c, void *ctx, struct message_id id, enum err err)
{
    struct stage *s = ctx;
    (void)c;
    text_add(&s->story, "damaged %d:%d %s\n", (int)id.ledger, (int)id.entry, err_name(err));
}

static void closed(void *ctx)
{
    struct stage *s = ctx;
    text_add(&s->story, "closed\n");
}

static void flushed(void *ctx, enum err err)
{
    struct stage *s = ctx;
    text_add(&s->story, "flushed %s\n", err_name(err));
}

static void unsubscribed(void *ctx, enum err err)
{
    struct stage *s = ctx;
    text_add(&s->story, "unsubscribed %s\n", err_name(err));
}

/* ---- building it ----------------------------------------------------------------------------- */

struct stage *stage_with(const struct client_conf *conf, int max_message)
{
    struct stage *s = mem_new(struct stage);
    struct client_conf with = *conf;
    char url[64];
    s->loop = loop_new("stage");
    s->broker = fake_broker_new(s->loop, max_message);
    snprintf(url, sizeof url, "pulsar://127.0.0.1:%u", fake_broker_port(s->broker));
    if (!with.url)
        with.url = url;
    ck_assert_int_eq(client_open(&s->client, s->loop, &with), ERR_OK);
    s->p = (struct producer_conf){
        .topic = "t", .ready = ready, .resent = resent, .failed = failed, .ctx = s};
    s->c = (struct consumer_conf){.topic = "t",
                                  .subscription = "s",
                                  .ready = consumer_ready,
                                  .received = received,
                                  .damaged = damaged,
                                  .failed = failed,
                                  .ctx = s};
    return s;
}

struct stage *stage_new(void)
{
    return stage_with(&(struct client_conf){.operation_timeout_us = 10 * 1000 * 1000}, 0);
}

void stage_drop(struct stage **sp)
{
    struct stage *s = *sp;
    *sp = NULL;
    s->producer = NULL;
    client_close(&s->client);
    fake_broker_drop(&s->broker);
    loop_drop(&s->loop);
    text_drop(&s->story);
    mem_free(s);
}

void stage_producer(struct stage *s)
{
    s->producer = producer_open(s->client, &s->p);
    until_story(s, "ready", 1);
}

void stage_consumer(struct stage *s)
{
    s->consumer = consumer_open(s->client, &s->c);
    until_story(s, "ready", 1);
    until_told(s, "FLOW", 1);
}

void stage_send_bytes(struct stage *s, const void *bytes, size_t len, const char *key)
{
    struct send *send = &s->sends[s->sent++];
    ck_assert_uint_le(s->sent, SENDS_MAX);
    *send = (struct send){.payload = bytes, .len = len, .key = key, .done = done, .ctx = s};
    enum err err = producer_send(s->producer, send);
    if (err)
        text_add(&s->story, "not taken %s\n", err_name(err));
}

void stage_send(struct stage *s, const char *text)
{
    stage_send_bytes(s, text, strlen(text), NULL);
}

void stage_close_producer(struct stage *s)
{
    producer_close(&s->producer, closed, s);
}

void stage_close_consumer(struct stage *s)
{
    consumer_close(&s->consumer, closed, s);
}

void stage_flush(struct stage *s)
{
    consumer_flush(s->consumer, flushed, s);
}

void stage_unsubscribe(struct stage *s)
{
    consumer_unsubscribe(s->consumer, unsubscribed, s);
}

/* ---- waiting --------------------------------------------------------------------------------- */

struct wait {
    struct timer timer;
    struct stage *stage;
    const char *told, *story;
    unsigned n;
    uint64_t end_us;
};

static bool holds(const struct wait *w)
{
    if (w->told)
        return fake_broker_count(w->stage->broker, w->told) >= w->n;
    return w->story && story_count(w->stage, w->story) >= w->n;
}

static void look(struct timer *t)
{
    struct wait *w = container_of(t, struct wait, timer);
    if (holds(w) || loop_now(w->stage->loop) >= w->end_us)
        loop_stop(w->stage->loop);
    else
        loop_after(w->stage->loop, t, LOOK_US);
}

static void run(struct wait *w, uint64_t us)
{
    w->timer.run = look;
    w->end_us = loop_clock() + us;
    loop_after(w->stage->loop, &w->timer, 0);
    loop_run(w->stage->loop);
}

static void wait_for(struct wait *w)
{
    run(w, PATIENCE_US);
    if (!holds(w))
        ck_abort_msg("never %u times '%s'\n-- the broker was told:\n%s-- the story:\n%s", w->n,
                     w->told ? w->told : w->story, fake_broker_told(w->stage->broker),
                     story(w->stage));
}

void until_told(struct stage *s, const char *front, unsigned n)
{
    wait_for(&(struct wait){.stage = s, .told = front, .n = n});
}

void until_story(struct stage *s, const char *front, unsigned n)
{
    wait_for(&(struct wait){.stage = s, .story = front, .n = n});
}

void until_pong(struct stage *s)
{
    unsigned before = fake_broker_count(s->broker, "PONG");
    fake_broker_ping(s->broker);
    until_told(s, "PONG", before + 1);
}

void stage_run(struct stage *s, uint64_t us)
{
    run(&(struct wait){.stage = s}, us);
}
