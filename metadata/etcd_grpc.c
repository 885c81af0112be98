#include "metadata/etcd_grpc.h"

#include <assert.h>
#include <nghttp2/nghttp2.h>
#include <stdio.h>
#include <string.h>

#include "common/log.h"
#include "common/mem.h"
#include "common/parse.h"
#include "metadata/etcd_socket.h"

enum {
    STREAM_WINDOW = 1 << 20,
    CONNECTION_WINDOW = 16 << 20,
    WRITE_PIECE = 16 << 10,
    WRITE_HIGH = 1 << 20, /* bytes the socket has not taken: no more frames are made */
    TEXT_MAX = 512,
    STREAM_ID_MAX = 1 << 30 /* then it is time for a new connection */
};

enum state { OPENING, OPEN, GONE };

struct grpc {
    struct loop *loop;
    enum state state;
    bool retired;
    const struct grpc_handler *handler;
    void *ctx;
    struct socket socket;
    nghttp2_session *session;
    struct list_node calls;
    struct round_end pump;
    struct task farewell; /* frees, when no callback is on the stack */
    char *authority;
    bool tls;
};

/* ---- the end -------------------------------------------------------------------------------- */

static void bid_farewell(struct task *t)
{
    struct grpc *g = container_of(t, struct grpc, farewell);

    if (g->pump.queued || g->socket.again.queued) {
        loop_post(g->loop, &g->farewell);
        return;
    }
    nghttp2_session_del(g->session);
    mem_free(g->authority);
    mem_free(g);
}

static void leave(struct grpc_call *c)
{
    list_remove(&c->node);
    c->conn = NULL;
    outbox_drop(&c->out);
    etcd_cutter_drop(&c->in);
}

static void end_call(struct grpc_call *c, int status, const char *text)
{
    char *kept = c->text;

    c->text = NULL;
    leave(c);
    c->ended(c, status, kept ? kept : text);
    mem_free(kept);
}

static void end_calls(struct grpc *g, const char *text)
{
    struct list_node *n;

    while ((n = list_pop_front(&g->calls)))
        end_call(list_entry(n, struct grpc_call, node), GRPC_UNAVAILABLE, text);
}

static void go(struct grpc *g, const char *text)
{
    g->state = GONE;
    socket_close(&g->socket);
    end_calls(g, text);
    loop_post(g->loop, &g->farewell);
}

void grpc_close(struct grpc **gp)
{
    struct grpc *g = *gp;

    *gp = NULL;
    if (!g || g->state == GONE)
        return;
    g->handler = NULL;
    go(g, "connection closed");
}

static void fail(struct grpc *g, enum err why, const char *reason)
{
    if (g->state == GONE)
        return;
    log_event(LOG_INFO, "etcd.disconnected", F_STR("peer", g->socket.peer), F_STR("reason", reason),
              F_ERR(why));
    go(g, reason);
    if (g->handler)
        g->handler->closed(g->ctx, why);
}

bool grpc_retired(const struct grpc *g)
{
    return g->retired || g->state != OPEN;
}

/* ---- what nghttp2 tells --------------------------------------------------------------------- */

/* Frames that had come when a callback closed the connection are nobody's. */
static struct grpc_call *call_of(const struct grpc *g, int32_t stream)
{
    return g->state == GONE ? NULL : nghttp2_session_get_stream_user_data(g->session, stream);
}

static void forget_stream(struct grpc_call *c, uint32_t code)
{
    nghttp2_session *session = c->conn->session;

    nghttp2_session_set_stream_user_data(session, c->stream, NULL);
    nghttp2_submit_rst_stream(session, NGHTTP2_FLAG_NONE, c->stream, code);
    loop_at_round_end(c->conn->loop, &c->conn->pump);
}

static void refuse_message(struct grpc_call *c, enum err why)
{
    forget_stream(c, NGHTTP2_CANCEL);
    if (why == ERR_TOO_BIG)
        end_call(c, GRPC_RESOURCE_EXHAUSTED, "message larger than the limit");
    else
        end_call(c, GRPC_INTERNAL, "malformed message");
}

static int on_data(nghttp2_session *session, uint8_t flags, int32_t stream, const uint8_t *data,
                   size_t len, void *arg)
{
    struct view bytes = view_of(data, len), message;
    struct grpc_call *c;
    enum err e = ERR_OK;

    (void)session, (void)flags;
    while (!e && (c = call_of(arg, stream))) {
        e = etcd_cut(&c->in, &bytes, &message);
        if (!e)
            c->message(c, message);
        else if (e != ERR_END)
            refuse_message(c, e);
    }
    return 0;
}

static bool is(const uint8_t *name, size_t len, const char *what)
{
    return len == strlen(what) && memcmp(name, what, len) == 0;
}

static int hex(uint8_t c)
{
    if (c >= '0' && c <= '9')
        return c - '0';
    if (c >= 'A' && c <= 'F')
        return c - 'A' + 10;
    return c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

/* A text that is percent-encoded. */
static char *decode(const uint8_t *value, size_t len)
{
    char *text = mem_alloc(TEXT_MAX + 1);
    size_t n = 0;

    for (size_t i = 0; i < len && n < TEXT_MAX; i++) {
        bool escaped =
            value[i] == '%' && i + 2 < len && hex(value[i + 1]) >= 0 && hex(value[i + 2]) >= 0;
        text[n++] = escaped ? (char)(hex(value[i + 1]) * 16 + hex(value[i + 2])) : (char)value[i];
        i += escaped ? 2 : 0;
    }
    return text;
}

static int on_header(nghttp2_session *session, const nghttp2_frame *frame, const uint8_t *name,
                     size_t name_len, const uint8_t *value, size_t len, uint8_t flags, void *arg)
{
    struct grpc_call *c = call_of(arg, frame->hd.stream_id);
    char number[8];
    uint64_t status;

    (void)session, (void)flags;
    if (!c)
        return 0;
    if (is(name, name_len, "grpc-status") && len < sizeof number) {
        snprintf(number, sizeof number, "%.*s", (int)len, (const char *)value);
        c->status = parse_u64(number, &status) == ERR_OK ? (int)status : GRPC_UNKNOWN;
    } else if (is(name, name_len, "grpc-message")) {
        mem_free(c->text);
        c->text = decode(value, len);
    } else if (is(name, name_len, ":status") && !is(value, len, "200") && !c->text) {
        c->text = mem_format("HTTP status %.*s", (int)(len < 8 ? len : 8), (const char *)value);
    }
    return 0;
}

static int on_stream_close(nghttp2_session *session, int32_t stream, uint32_t code, void *arg)
{
    struct grpc_call *c = call_of(arg, stream);

    (void)session, (void)code;
    if (!c)
        return 0;
    if (c->status < 0)
        end_call(c, GRPC_UNAVAILABLE, "stream closed");
    else
        end_call(c, c->status, "");
    return 0;
}

static int on_frame(nghttp2_session *session, const nghttp2_frame *frame, void *arg)
{
    struct grpc *g = arg;

    (void)session;
    if (frame->hd.type == NGHTTP2_GOAWAY && !g->retired) {
        g->retired = true;
        log_event(LOG_INFO, "etcd.retired", F_STR("peer", g->socket.peer),
                  F_U64("code", frame->goaway.error_code));
    }
    return 0;
}

static ssize_t give_data(nghttp2_session *session, int32_t stream, uint8_t *into, size_t room,
                         uint32_t *flags, nghttp2_data_source *source, void *arg)
{
    struct grpc_call *c = call_of(arg, stream);

    (void)session, (void)source;
    if (!c)
        return NGHTTP2_ERR_TEMPORAL_CALLBACK_FAILURE;
    size_t n = outbox_copy(&c->out, into, room);
    outbox_sent(&c->out, n);
    if (c->out.bytes == 0 && !c->goes_on)
        *flags |= NGHTTP2_DATA_FLAG_EOF;
    else if (n == 0)
        return NGHTTP2_ERR_DEFERRED;
    return (ssize_t)n;
}

/* ---- the session ---------------------------------------------------------------------------- */

static void open_session(struct grpc *g)
{
    const nghttp2_settings_entry settings[] = {
        {NGHTTP2_SETTINGS_ENABLE_PUSH, 0},
        {NGHTTP2_SETTINGS_INITIAL_WINDOW_SIZE, STREAM_WINDOW},
    };
    nghttp2_session_callbacks *callbacks;

    nghttp2_session_callbacks_new(&callbacks);
    nghttp2_session_callbacks_set_on_data_chunk_recv_callback(callbacks, on_data);
    nghttp2_session_callbacks_set_on_header_callback(callbacks, on_header);
    nghttp2_session_callbacks_set_on_stream_close_callback(callbacks, on_stream_close);
    nghttp2_session_callbacks_set_on_frame_recv_callback(callbacks, on_frame);
    int failed = nghttp2_session_client_new(&g->session, callbacks, g);
    assert(!failed);
    nghttp2_session_callbacks_del(callbacks);
    nghttp2_submit_settings(g->session, NGHTTP2_FLAG_NONE, settings, 2);
    nghttp2_session_set_local_window_size(g->session, NGHTTP2_FLAG_NONE, 0, CONNECTION_WINDOW);
}

/* Frames are gathered into pieces, so that many small ones are one write. */
static void pump(struct grpc *g)
{
    const uint8_t *bytes;
    struct slab *piece = NULL;
    size_t used = 0;

    while (g->state == OPEN && socket_waiting(&g->socket) < WRITE_HIGH) {
        ssize_t n = nghttp2_session_mem_send(g->session, &bytes);
        if (n < 0)
            fail(g, ERR_IO, nghttp2_strerror((int)n));
        if (n <= 0)
            break;
        if (piece && slab_size(piece) - used < (size_t)n) {
            socket_send(&g->socket, slice_take(&piece, used));
            used = 0;
        }
        if (!piece)
            piece = slab_new((size_t)n > WRITE_PIECE ? (size_t)n : WRITE_PIECE);
        memcpy(slab_bytes(piece) + used, bytes, (size_t)n);
        used += (size_t)n;
    }
    if (piece)
        socket_send(&g->socket, slice_take(&piece, used));
    if (g->state == OPEN)
        socket_flush(&g->socket);
}

static void on_pump(struct round_end *e)
{
    struct grpc *g = container_of(e, struct grpc, pump);

    if (g->state != OPEN)
        return;
    pump(g);
    bool done = g->state == OPEN && !nghttp2_session_want_read(g->session) &&
                !nghttp2_session_want_write(g->session);
    if (done)
        fail(g, ERR_CLOSED, "HTTP/2 session ended");
}

static void on_opened(void *ctx)
{
    struct grpc *g = ctx;

    g->state = OPEN;
    open_session(g);
    loop_at_round_end(g->loop, &g->pump);
    if (g->handler)
        g->handler->opened(g->ctx);
}

static void on_bytes(void *ctx, struct view bytes)
{
    struct grpc *g = ctx;
    ssize_t n = nghttp2_session_mem_recv(g->session, bytes.base, bytes.len);

    if (n < 0)
        fail(g, ERR_MALFORMED, nghttp2_strerror((int)n));
    else if (g->state == OPEN)
        loop_at_round_end(g->loop, &g->pump);
}

static void on_writable(void *ctx)
{
    pump(ctx);
}

static void on_failed(void *ctx, enum err why, const char *reason)
{
    fail(ctx, why, reason);
}

struct grpc *grpc_dial(struct loop *l, const struct grpc_conf *conf, const struct grpc_handler *h,
                       void *ctx)
{
    static const struct socket_handler handler = {on_opened, on_bytes, on_writable, on_failed};
    struct grpc *g = mem_new(struct grpc);

    g->loop = l;
    g->handler = h;
    g->ctx = ctx;
    g->tls = conf->tls != NULL;
    g->authority = mem_format("%s:%u", conf->host, conf->port);
    g->pump.run = on_pump;
    g->farewell.run = bid_farewell;
    list_init(&g->calls);
    socket_dial(&g->socket, l, conf->host, conf->port, conf->tls, conf->dial_timeout_us, &handler,
                g);
    return g;
}

/* ---- calls ---------------------------------------------------------------------------------- */

static nghttp2_nv header(const char *name, const char *value)
{
    return (nghttp2_nv){.name = (uint8_t *)(uintptr_t)name,
                        .value = (uint8_t *)(uintptr_t)value,
                        .namelen = strlen(name),
                        .valuelen = strlen(value)};
}

static void put_message(struct grpc_call *c, struct slice message)
{
    uint8_t prefix[ETCD_PREFIX];

    etcd_prefix(prefix, message.len);
    outbox_put(&c->out, slice_copy(prefix, sizeof prefix));
    outbox_put(&c->out, message);
}

static size_t make_headers(const struct grpc *g, const struct grpc_ask *ask, char timeout[32],
                           nghttp2_nv headers[10])
{
    size_t n = 0;

    headers[n++] = header(":method", "POST");
    headers[n++] = header(":scheme", g->tls ? "https" : "http");
    headers[n++] = header(":path", ask->path);
    headers[n++] = header(":authority", g->authority);
    headers[n++] = header("content-type", "application/grpc");
    headers[n++] = header("te", "trailers");
    if (ask->timeout_us) {
        snprintf(timeout, 32, "%llum", (unsigned long long)ask->timeout_us / 1000 + 1);
        headers[n++] = header("grpc-timeout", timeout);
    }
    if (ask->needs_leader)
        headers[n++] = header("hasleader", "true");
    if (ask->token)
        headers[n++] = header("token", ask->token);
    return n;
}

void grpc_open(struct grpc *g, struct grpc_call *c, const struct grpc_ask *ask)
{
    char timeout[32];
    nghttp2_nv headers[10];
    const nghttp2_data_provider body = {.read_callback = give_data};

    assert(g->state == OPEN);
    assert(!c->conn);
    c->conn = g;
    c->goes_on = ask->goes_on;
    c->status = -1;
    c->text = NULL;
    c->in = (struct etcd_cutter){.max = c->max};
    list_push_back(&g->calls, &c->node);
    size_t n = make_headers(g, ask, timeout, headers);
    c->stream = nghttp2_submit_request(g->session, NULL, headers, n, &body, c);
    assert(c->stream > 0);
    if (c->stream > STREAM_ID_MAX)
        g->retired = true;
    loop_at_round_end(g->loop, &g->pump);
}

void grpc_start(struct grpc *g, struct grpc_call *c, const struct grpc_ask *ask,
                struct slice message)
{
    put_message(c, message);
    grpc_open(g, c, ask);
}

void grpc_send(struct grpc_call *c, struct slice message)
{
    put_message(c, message);
    nghttp2_session_resume_data(c->conn->session, c->stream);
    loop_at_round_end(c->conn->loop, &c->conn->pump);
}

void grpc_cancel(struct grpc_call *c)
{
    if (!c->conn)
        return;
    forget_stream(c, NGHTTP2_CANCEL);
    mem_free(c->text);
    c->text = NULL;
    leave(c);
}
