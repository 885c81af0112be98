#include "broker/session/session.h"

#include <assert.h>

#include "broker/broker.h"
#include "broker/metrics.h"
#include "broker/session/reply.h"
#include "broker/session/rules.h"
#include "common/flight.h"
#include "common/log.h"

/* ---- life ---- */

void session_hold(struct session *s)
{
    s->refs++;
}

void session_let_go(struct session *s)
{
    struct sessions *home = s->home;

    assert(s->refs > 0);
    if (--s->refs > 0)
        return;
    assert(s->state == SESSION_ENDED && s->handles == 0 && s->publishing == 0);
    list_remove(&s->node);
    mem_free(s->who.address);
    mem_free(s->who.client);
    mem_free(s);
    sessions_tell_if_closed(home);
}

/* The connection is gone; the memory goes with the last guest. */
static void end(struct session *s)
{
    struct broker_metrics *m = session_env(s)->metrics;

    if (s->state == SESSION_ENDED)
        return;
    if (s->state == SESSION_NEW)
        metric_add(&m->connects_failed, 1);
    metric_add(&m->connections, -1);
    metric_add(&m->connections_closed, 1);
    s->state = SESSION_ENDED;
    loop_cancel(session_env(s)->home, &s->tick);
    loop_cancel(session_env(s)->home, &s->check_due);
    session_unsent_look(s);
    session_undelivered_go(s);
    session_producers_leave(s);
    session_consumers_leave(s);
    session_watchers_leave(s);
    session_let_go(s); /* the connection's own */
}

void session_fail(struct session *s, enum err err, const char *what)
{
    if (s->state == SESSION_ENDED)
        return;
    log_event(LOG_WARN, "session.failed", F_STR("peer", conn_peer(s->conn)), F_STR("what", what),
              F_ERR(err));
    conn_close(&s->conn);
    end(s);
}

void session_finish(struct session *s)
{
    if (s->state == SESSION_ENDED)
        return;
    conn_finish(&s->conn);
    end(s);
}

static bool does_not_read(struct session *s)
{
    return unsent_answers(&s->unsent, conn_waiting(s->conn)) > ANSWERS_MAX;
}

void session_send_frame(struct session *s, struct slice frame)
{
    if (!s->conn) {
        slice_drop(&frame);
        return;
    }
    unsent_put_answer(&s->unsent, frame.len);
    conn_send(s->conn, frame);
    if (!s->ends_soon && does_not_read(s)) {
        s->ends_soon = true;
        loop_after(session_env(s)->home, &s->tick, 0); /* our callers may still need it */
    }
}

void session_send(struct session *s, const Pulsar__Proto__BaseCommand *c)
{
    if (s->conn)
        session_send_frame(s, command_frame(c));
}

/* ---- frames ---- */

static enum err handle(struct session *s, struct slice bytes, const char **what)
{
    struct command c = {.bytes = bytes};
    Pulsar__Proto__BaseCommand *base;
    command_fn *fn;

    *what = "frame";
    TRY(frame_split(slice_view(bytes), &c.frame));
    TRY(command_read(c.frame.command, s->home->arena, &base));
    *what = command_name((int)base->type);
    flight_note(*what, (int64_t)s->id, (int64_t)bytes.len);
    TRY(rules_find((int)base->type, s->state, &fn));
    c.base = base;
    return fn(s, &c);
}

static void on_frame(void *ctx, struct slice bytes)
{
    struct session *s = ctx;
    const char *what;

    session_hold(s);
    s->heard_at = loop_now(session_env(s)->home);
    session_checked(s);
    enum err err = handle(s, bytes, &what);
    if (err)
        session_fail(s, err, what);
    arena_reset(s->home->arena);
    slice_drop(&bytes);
    session_let_go(s);
}

static void on_closed(void *ctx, enum err why)
{
    struct session *s = ctx;

    (void)why; /* the conn has logged what there is to say */
    s->conn = NULL;
    end(s);
}

static void on_drained(void *ctx)
{
    session_undelivered_go(ctx);
}

static const struct conn_handler handler = {
    .frame = on_frame, .drained = on_drained, .closed = on_closed};

/* ---- keep-alive ---- */

static uint64_t tick_us(const struct session *s)
{
    return (uint64_t)session_env(s)->conf->keep_alive_seconds * 1000000;
}

/* A frame is a sign of life.  While bytes wait here its kernel has no room: that they leave is
 * one too, for our PING is behind them; and that none does is the opposite, whatever it sends. */
static bool is_silent(const struct session *s)
{
    const bool leaves = unsent_left(&s->unsent, conn_waiting(s->conn)) > s->left_then;

    if (s->waiting_then > 0)
        return !leaves;
    return s->pinged_at && s->heard_at < s->pinged_at;
}

static void on_tick(struct timer *t)
{
    struct session *s = container_of(t, struct session, tick);
    size_t waiting;

    if (s->state == SESSION_NEW) {
        session_fail(s, ERR_TIMEOUT, "no CONNECT");
        return;
    }
    if (s->ends_soon) {
        session_fail(s, ERR_TOO_BIG, "answers that it does not read");
        return;
    }
    if (is_silent(s)) {
        session_fail(s, ERR_TIMEOUT, "keep-alive");
        return;
    }
    waiting =
        conn_waiting(s->conn); /* without our own ping, which leaves at the end of the round */
    s->pinged_at = loop_now(session_env(s)->home);
    reply_ping(s);
    s->waiting_then = waiting;
    session_unsent_look(s);
    s->left_then = unsent_left(&s->unsent, conn_waiting(s->conn));
    loop_after(session_env(s)->home, &s->tick, tick_us(s));
}

void session_accepted(struct sessions *home, int fd, struct tls *tls)
{
    struct session *s = mem_new(struct session);
    struct conn_conf conf = {
        .frame_max = (size_t)home->env.conf->max_message_size + FRAME_PADDING,
        .write_high = WRITE_HIGH,
        .reads_on = true,
        .tls = tls,
    };

    s->home = home;
    s->id = (uint64_t)loop_index(home->env.home) << 56 | ++home->next_id;
    s->refs = 1;
    s->tick.run = on_tick;
    list_init(&s->undelivered);
    session_check_init(s);
    list_push_back(&home->all, &s->node);
    metric_add(&home->env.metrics->connections, 1);
    metric_add(&home->env.metrics->connections_created, 1);
    s->conn = conn_accepted(home->env.home, fd, &conf, &handler, s);
    loop_after(home->env.home, &s->tick, tick_us(s));
}
