#include "metadata/etcd_socket.h"

#include <assert.h>
#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>

#include "common/mem.h"

#define READ_AT_ONCE ((size_t)64 << 10)
#define READ_A_ROUND ((size_t)1 << 20) /* then others of the loop have a turn */

static void stop_events(struct socket *s)
{
    if (event_initialized(&s->readable)) {
        event_del(&s->readable);
        event_del(&s->writable);
    }
}

void socket_close(struct socket *s)
{
    if (s->state == SOCKET_SHUT)
        return;
    s->state = SOCKET_SHUT;
    stop_events(s);
    loop_cancel(s->loop, &s->timer);
    resolve_cancel(&s->lookup);
    stream_close(&s->io);
    outbox_drop(&s->out);
    mem_free(s->name);
    s->name = NULL;
}

static void fail(struct socket *s, enum err why, const char *reason)
{
    char text[160];

    snprintf(text, sizeof text, "%s", reason);
    socket_close(s);
    s->handler->failed(s->ctx, why, text);
}

/* ---- reading and writing -------------------------------------------------------------------- */

static void read_some(struct socket *s)
{
    uint8_t room[READ_AT_ONCE];
    const struct iovec iov[2] = {{.iov_base = room, .iov_len = sizeof room}, {0}};

    for (size_t total = 0, got; s->state == SOCKET_OPEN; total += got) {
        if (total >= READ_A_ROUND) {
            loop_at_round_end(s->loop, &s->again);
            return;
        }
        enum stream_step step = stream_read(&s->io, iov, &got);
        if (got > 0)
            s->handler->bytes(s->ctx, view_of(room, got));
        if (s->state != SOCKET_OPEN || step == STREAM_WANTS_READ || step == STREAM_DRAINED)
            return;
        if (step == STREAM_WANTS_WRITE)
            event_add(&s->writable, NULL);
        else if (step == STREAM_END)
            fail(s, ERR_CLOSED, "closed by the server");
        else if (step == STREAM_FAILED)
            fail(s, s->io.err, s->io.why);
        if (step != STREAM_DONE)
            return;
    }
}

void socket_send(struct socket *s, struct slice bytes)
{
    if (s->state == SOCKET_SHUT)
        slice_drop(&bytes);
    else
        outbox_put(&s->out, bytes);
}

void socket_flush(struct socket *s)
{
    size_t sent;

    while (s->state == SOCKET_OPEN && s->out.bytes > 0) {
        enum stream_step step = stream_write(&s->io, &s->out, &sent);
        if (step == STREAM_FAILED || step == STREAM_END) {
            fail(s, step == STREAM_END ? ERR_CLOSED : s->io.err, s->io.why);
            return;
        }
        outbox_sent(&s->out, sent);
        if (step != STREAM_DONE) {
            event_add(&s->writable, NULL);
            return;
        }
    }
}

/* ---- opening -------------------------------------------------------------------------------- */

static void is_open(struct socket *s)
{
    s->state = SOCKET_OPEN;
    loop_cancel(s->loop, &s->timer);
    event_add(&s->readable, NULL);
    loop_at_round_end(s->loop, &s->again); /* what came with the handshake */
    s->handler->opened(s->ctx);
}

static void shake(struct socket *s)
{
    switch (stream_shake(&s->io)) {
    case STREAM_WANTS_READ:
        event_add(&s->readable, NULL);
        break;
    case STREAM_WANTS_WRITE:
        event_add(&s->writable, NULL);
        break;
    case STREAM_FAILED:
        fail(s, s->io.err, s->io.why);
        break;
    default:
        is_open(s);
    }
}

static void connected(struct socket *s)
{
    const int on = 1;

    setsockopt(s->io.fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
    if (!s->tls) {
        is_open(s);
        return;
    }
    s->state = SOCKET_SHAKING;
    stream_secure(&s->io, s->tls, s->name, true);
    shake(s);
}

static void on_readable(evutil_socket_t fd, short what, void *arg)
{
    struct socket *s = arg;

    (void)fd, (void)what;
    if (s->state == SOCKET_SHAKING)
        shake(s);
    else
        read_some(s);
}

static void connect_next(struct socket *s, int last_errno);

static void connect_answered(struct socket *s)
{
    int error = 0;
    socklen_t len = sizeof error;

    if (getsockopt(s->io.fd, SOL_SOCKET, SO_ERROR, &error, &len) != 0)
        error = errno;
    if (error)
        connect_next(s, error);
    else
        connected(s);
}

static void on_writable(evutil_socket_t fd, short what, void *arg)
{
    struct socket *s = arg;

    (void)fd, (void)what;
    if (s->state == SOCKET_CONNECTING) {
        connect_answered(s);
    } else if (s->state == SOCKET_SHAKING) {
        shake(s);
    } else {
        if (s->io.ssl)
            loop_at_round_end(s->loop, &s->again); /* a read may have waited to write */
        socket_flush(s);
        if (s->state == SOCKET_OPEN && s->out.bytes == 0)
            s->handler->writable(s->ctx);
    }
}

static int try_address(struct socket *s, const struct address *a)
{
    struct event_base *base = loop_base(s->loop);

    address_print(&a->sa, s->peer, sizeof s->peer);
    stop_events(s);
    stream_close(&s->io);
    s->io.fd = socket(a->sa.ss_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
    if (s->io.fd < 0)
        return errno;
    event_assign(&s->readable, base, s->io.fd, EV_READ | EV_PERSIST, on_readable, s);
    event_assign(&s->writable, base, s->io.fd, EV_WRITE, on_writable, s);
    return connect(s->io.fd, (const struct sockaddr *)&a->sa, a->len) == 0 ? 0 : errno;
}

static void connect_next(struct socket *s, int last_errno)
{
    char reason[64];

    while (s->next_address < s->addresses.n) {
        last_errno = try_address(s, &s->addresses.at[s->next_address++]);
        if (last_errno == 0) {
            connected(s);
            return;
        }
        if (last_errno == EINPROGRESS) {
            event_add(&s->writable, NULL);
            return;
        }
    }
    const char *name = strerrorname_np(last_errno);
    snprintf(reason, sizeof reason, "connect: %s", name ? name : "?");
    fail(s, last_errno == ETIMEDOUT ? ERR_TIMEOUT : ERR_CLOSED, reason);
}

static void on_resolved(void *ctx, const struct addresses *found)
{
    struct socket *s = ctx;

    s->lookup = NULL;
    s->addresses = *found;
    if (found->n == 0) {
        fail(s, ERR_NOT_FOUND, "no such host");
        return;
    }
    s->state = SOCKET_CONNECTING;
    connect_next(s, EADDRNOTAVAIL);
}

static void on_again(struct round_end *e)
{
    struct socket *s = container_of(e, struct socket, again);

    if (s->state == SOCKET_CONNECTING && s->io.fd < 0)
        connect_next(s, EADDRNOTAVAIL);
    else if (s->state == SOCKET_OPEN)
        read_some(s);
}

static void on_timer(struct timer *t)
{
    struct socket *s = container_of(t, struct socket, timer);

    fail(s, ERR_TIMEOUT,
         s->state == SOCKET_SHAKING ? "handshake: no answer" : "connect: no answer");
}

void socket_dial(struct socket *s, struct loop *l, const char *host, uint16_t port,
                 const struct tls *tls, uint64_t timeout_us, const struct socket_handler *h,
                 void *ctx)
{
    assert(loop_is_mine(l));
    *s = (struct socket){.loop = l, .tls = tls, .handler = h, .ctx = ctx, .io.fd = -1};
    s->name = mem_string(host);
    s->timer.run = on_timer;
    s->again.run = on_again;
    snprintf(s->peer, sizeof s->peer, "%s:%u", host, port);
    loop_after(l, &s->timer, timeout_us);
    if (resolve_now(host, port, &s->addresses)) {
        s->state = SOCKET_CONNECTING;
        loop_at_round_end(l, &s->again);
    } else {
        s->state = SOCKET_RESOLVING;
        s->lookup = resolve_start(l, host, port, on_resolved, s);
    }
}
