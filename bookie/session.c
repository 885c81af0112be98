#include <string.h>

#include "bookie/bytes.h"
#include "bookie/request.h"
#include "common/log.h"
#include "common/mem.h"

enum {
    FRONT = 4096,
    COPIED_MAX = 2048,
    LENT_MAX = 32 * 1024, /* bytes unsent, then nothing keeps a window that it is a small part of */
    WRITE_HIGH = 4 * 1024 * 1024,
    WAITING_MAX = 64 * 1024 * 1024, /* then reads that were asked before are refused */
    ENTRY_AT = 24,
    BATCH_ID = 8
};

static void release(struct session *s)
{
    if (s->conn || s->requests > 0)
        return;
    list_remove(&s->answered);
    slab_drop(&s->front);
    mem_free(s);
}

static void is_closed(struct session *s)
{
    s->conn = NULL;
    list_remove(&s->node);
    metric_add(&s->station->handlers->conf.metrics->connections, -1);
    release(s);
}

void session_close(struct session *s)
{
    conn_close(&s->conn);
    is_closed(s);
}

void session_drop(struct session *s)
{
    s->requests--;
    release(s);
}

/* ---- answers -------------------------------------------------------------------------------- */

static void flush(struct session *s)
{
    list_remove(&s->answered);
    if (s->front && s->conn)
        conn_send(s->conn, slice_take(&s->front, s->front_used));
    slab_drop(&s->front);
}

void station_flush(struct station *st)
{
    for (struct list_node *n; (n = list_pop_front(&st->answered)) != NULL;)
        flush(list_entry(n, struct session, answered));
}

static uint8_t *front_room(struct session *s, size_t n)
{
    if (s->front && s->front_used + n > FRONT)
        flush(s);
    if (!s->front) {
        s->front = slab_new(FRONT);
        s->front_used = 0;
        list_push_back(&s->station->answered, &s->answered);
        loop_at_round_end(s->station->loop, &s->station->round_end);
    }
    s->front_used += n;
    return slab_bytes(s->front) + s->front_used - n;
}

uint8_t *session_front_room(struct session *s, size_t n)
{
    return s->conn ? front_room(s, n) : NULL;
}

/* A peer that reads has its answers within the round.  What one that does not read is owed holds
 * no more memory than it has bytes, or half as much again. */
static bool holds_too_much(const struct session *s, const struct slice *body)
{
    return body->slab && slab_size(body->slab) / 2 > body->len && conn_waiting(s->conn) > LENT_MAX;
}

static struct slice own(struct slice *body)
{
    const struct slice copy = slice_copy(body->base, body->len);
    slice_drop(body);
    return copy;
}

/* What is small is copied: it would keep the window of an entry log that it was read with. */
void session_send_body(struct session *s, struct slice body)
{
    if (s->conn && body.len > COPIED_MAX) {
        flush(s);
        conn_send(s->conn, holds_too_much(s, &body) ? own(&body) : body);
        return;
    }
    if (s->conn && body.len > 0)
        memcpy(front_room(s, body.len), body.base, body.len);
    slice_drop(&body);
}

/* Whoever waits for the answer has sent nothing behind the question. */
void session_secure(struct session *s)
{
    flush(s);
    s->is_secure = true;
    if (conn_upgrade(s->conn, s->station->handlers->conf.tls))
        session_turn_away(s, "bookie.refused_frame", "requests before the handshake");
}

bool session_has_too_much(const struct session *s)
{
    return s->conn && conn_waiting(s->conn) > WAITING_MAX;
}

void session_answer(struct session *s, uint8_t version, uint8_t op, int32_t status, int64_t ledger,
                    int64_t entry, struct slice body)
{
    if (!s->conn) {
        slice_drop(&body);
        return;
    }
    if (body.len > 0 && session_has_too_much(s)) {
        slice_drop(&body);
        status = BOOKIE_TOO_MANY;
    }
    bookie_write_response(front_room(s, BOOKIE_RESPONSE_SIZE), version, op, status, ledger, entry,
                          body.len);
    if (body.len > 0)
        session_send_body(s, body);
    else
        slice_drop(&body);
}

/* The answer to a batch repeats its id, also without entries. */
void session_answer_batch(struct request *r)
{
    struct session *s = r->session;
    const struct bookie_request *q = &r->head;

    if (r->batch && session_has_too_much(s)) {
        batch_read_drop(r);
        r->status = BOOKIE_TOO_MANY;
    }
    if (s->conn) {
        const size_t len = r->batch ? r->batch->bytes : BOOKIE_BATCH_ID;
        bookie_write_response(front_room(s, BOOKIE_RESPONSE_SIZE), q->version, q->op, r->status,
                              q->ledger, q->entry, len);
    }
    if (s->conn && !r->batch)
        put_u64(front_room(s, BOOKIE_BATCH_ID), (uint64_t)q->request_id);
    for (unsigned i = 0; r->batch && i < r->batch->n; i++) {
        session_send_body(s, r->batch->at[i]);
        r->batch->at[i] = (struct slice){0};
    }
    batch_read_drop(r);
}

/* ---- frames --------------------------------------------------------------------------------- */

void session_turn_away(struct session *s, const char *event, const char *reason)
{
    log_event(LOG_WARN, event, F_STR("peer", conn_peer(s->conn)), F_STR("reason", reason));
    session_close(s);
}

static void begin(struct session *s, const struct bookie_request *q, struct slice frame)
{
    struct request *r = request_new(s, q);
    if (q->op == BOOKIE_ADD) {
        r->lac = (int64_t)get_u64(q->body.base + 16);
        r->body = slice_part(frame, ENTRY_AT, frame.len - ENTRY_AT);
    }
    request_send(r);
}

static void dispatch(struct session *s, const struct bookie_request *q, struct slice frame)
{
    switch (q->op) {
    case BOOKIE_AUTH:
        flush(s);
        conn_send(s->conn, bookie_auth_response(q->version, "AuthDisabledPlugin"));
        break;
    default:
        begin(s, q, frame);
    }
}

static void on_frame(void *ctx, struct slice frame)
{
    struct session *s = ctx;
    struct bookie_request q;
    enum err err = ERR_MALFORMED;
    if (frame.len > 0 && frame.base[0] == BOOKIE_V3_FIRST_BYTE) {
        v3_frame(s, frame);
        slice_drop(&frame);
        return;
    }
    err = bookie_request_read(slice_view(frame), &q);
    if (err == ERR_UNSUPPORTED_VERSION)
        session_answer(s, 2, q.op, BOOKIE_BAD_VERSION, q.ledger, q.entry, (struct slice){0});
    else if (err)
        session_turn_away(s, "bookie.refused_frame", "not a request of the bookie protocol");
    else
        dispatch(s, &q, frame);
    slice_drop(&frame);
}

static void on_closed(void *ctx, enum err why)
{
    (void)why; /* conn has logged what is worth it */
    is_closed(ctx);
}

static const struct conn_handler handler = {.frame = on_frame, .closed = on_closed};

void session_new(struct station *st, int fd)
{
    const struct conn_conf conf = {.frame_max = st->handlers->conf.frame_max,
                                   .write_high = WRITE_HIGH};
    struct session *s = mem_new(struct session);
    s->station = st;
    list_init(&s->answered);
    list_push_back(&st->sessions, &s->node);
    metric_add(&st->handlers->conf.metrics->connections, 1);
    s->conn = conn_accepted(st->loop, fd, &conf, &handler, s);
}
