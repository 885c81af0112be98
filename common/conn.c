#include "common/conn.h"

#include <assert.h>
#include <errno.h>
#include <event2/event.h>
#include <event2/event_struct.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "common/cutter.h"
#include "common/log.h"
#include "common/loop_inside.h"
#include "common/mem.h"
#include "common/outbox.h"
#include "common/resolve.h"
#include "common/stream.h"

#define READING_SLAB  ((size_t)64 << 10)
#define READING_LEAST ((size_t)4 << 10)   /* less room than this is not worth a read */
#define READ_A_ROUND  ((size_t)256 << 10) /* then it is another conn's turn */
#define WRITE_A_ROUND ((size_t)4 << 20)
#define DIAL_US       10000000
#define FINISH_US     5000000

/*  dialled:  RESOLVING -> CONNECTING -+-> SHAKING (TLS) -> OPEN -> LINGERING -> GONE
 *  accepted: -------------------------+        ^----upgrade---'   (any of them -> GONE) */
enum state { RESOLVING, CONNECTING, SHAKING, OPEN, LINGERING, GONE };

struct conn {
    struct loop *loop;
    enum state state;
    bool dialled;
    bool was_open;       /* opened() was called */
    bool reading;        /* its read event is in the loop */
    bool choked;         /* above write_high, and not yet below half of it */
    bool read_again;     /* more may be there than the socket tells: TLS, or after a pause */
    struct tls *upgrade; /* when what waits has left in the clear; NULL: no */
    unsigned pauses;
    unsigned depth; /* callbacks of the loop on the stack: the last one out frees */
    struct conn_conf conf;
    char *tls_name;
    const struct conn_handler *handler; /* NULL: its owner has left */
    void *ctx;
    struct stream io;
    struct event readable, writable;
    struct cutter in;
    struct outbox out;
    struct outbox held; /* sent after an upgrade was asked for */
    struct round_end end;
    struct timer timer;
    struct loop_guest guest;
    struct resolve *lookup;
    struct addresses *addresses; /* while it dials */
    unsigned next_address;
    char peer[ADDRESS_TEXT + 256];
};

static const unsigned may_become[] = {
    [RESOLVING] = 1u << CONNECTING | 1u << GONE,
    [CONNECTING] = 1u << SHAKING | 1u << OPEN | 1u << GONE,
    [SHAKING] = 1u << OPEN | 1u << GONE,
    [OPEN] = 1u << SHAKING | 1u << LINGERING | 1u << GONE,
    [LINGERING] = 1u << GONE,
    [GONE] = 0,
};

static uint64_t patience(const struct conn *c)
{
    return c->conf.dial_timeout_us ? c->conf.dial_timeout_us : DIAL_US;
}

static void become(struct conn *c, enum state next)
{
    assert(may_become[c->state] & 1u << next);
    c->state = next;
}

/* ---- the end -------------------------------------------------------------------------------- */

/* Whatever still holds the memory frees it on its way out. */
static void release(struct conn *c)
{
    if (c->state != GONE || c->depth > 0 || c->end.queued)
        return;
    mem_free(c->tls_name);
    mem_free(c);
}

static void enter(struct conn *c)
{
    c->depth++;
}

static void leave(struct conn *c)
{
    c->depth--;
    release(c);
}

static void stop_events(struct conn *c)
{
    if (event_initialized(&c->readable)) {
        event_del(&c->readable);
        event_del(&c->writable);
    }
    c->reading = false;
}

static void go(struct conn *c)
{
    become(c, GONE);
    stop_events(c);
    loop_cancel(c->loop, &c->timer);
    list_remove(&c->guest.node);
    resolve_cancel(&c->lookup);
    mem_free(c->addresses);
    c->addresses = NULL;
    stream_close(&c->io);
    cutter_drop(&c->in);
    outbox_drop(&c->out);
    outbox_drop(&c->held);
}

/* `reason` NULL: the peer has ended between two frames, which is no event. */
static void fail(struct conn *c, enum err why, const char *reason)
{
    const struct conn_handler *h = c->handler;
    if (c->state == GONE)
        return;
    if (reason && h)
        log_event(LOG_WARN, "conn.closed", F_STR("peer", c->peer), F_STR("reason", reason),
                  F_ERR(why));
    go(c);
    c->handler = NULL;
    if (h)
        h->closed(c->ctx, why);
}

static void on_leave(struct loop_guest *g)
{
    struct conn *c = container_of(g, struct conn, guest);
    go(c);
    release(c);
}

/* ---- reading -------------------------------------------------------------------------------- */

static bool may_read(const struct conn *c)
{
    return c->state == OPEN && c->handler && !c->upgrade && c->pauses == 0 &&
           (!c->choked || c->conf.reads_on);
}

static void listen_to(struct conn *c, bool want)
{
    if (want == c->reading)
        return;
    c->reading = want;
    if (want)
        event_add(&c->readable, NULL);
    else
        event_del(&c->readable);
}

static void update_reading(struct conn *c)
{
    if (c->state == OPEN || c->state == LINGERING)
        listen_to(c, c->state == LINGERING || may_read(c));
}

static void read_soon(struct conn *c)
{
    c->read_again = true;
    loop_at_round_end(c->loop, &c->end);
}

static void refuse(struct conn *c)
{
    const size_t size = cutter_wanted(&c->in);
    log_event(LOG_WARN, "conn.refused", F_STR("peer", c->peer), F_U64("size", size),
              F_U64("max", c->conf.frame_max));
    fail(c, ERR_TOO_BIG, NULL);
}

/* The handler may pause, close or finish the conn in the middle of this. */
static void cut(struct conn *c)
{
    while (may_read(c)) {
        struct slice frame;
        const enum err e = cutter_next(&c->in, &frame);
        if (e == ERR_TOO_BIG)
            refuse(c);
        if (e)
            return;
        c->handler->frame(c->ctx, frame);
    }
}

static struct iovec reading_room(struct loop_reading *r)
{
    if (r->slab && slab_size(r->slab) - r->used < READING_LEAST)
        slab_drop(&r->slab);
    if (!r->slab) {
        r->slab = slab_new(READING_SLAB);
        r->used = 0;
    }
    return (struct iovec){.iov_base = slab_bytes(r->slab) + r->used,
                          .iov_len = slab_size(r->slab) - r->used};
}

/* One read: first what is missing of a frame that has begun, then into the loop's slab. */
static enum stream_step read_once(struct conn *c, size_t *got)
{
    struct loop_reading *r = loop_reading(c->loop);
    const struct iovec iov[2] = {cutter_room(&c->in), reading_room(r)};
    const enum stream_step step = stream_read(&c->io, iov, got);
    const size_t of_part = *got < iov[0].iov_len ? *got : iov[0].iov_len;
    const size_t others = *got - of_part;
    if (of_part > 0)
        cutter_filled(&c->in, of_part);
    if (others > 0) {
        cutter_take(&c->in, slice_of(r->slab, r->used, others));
        r->used += others;
    }
    return step;
}

static void ended(struct conn *c)
{
    fail(c, ERR_CLOSED, cutter_is_between(&c->in) ? NULL : "ended inside a frame");
}

static void read_some(struct conn *c)
{
    c->read_again = false;
    cut(c);
    for (size_t left = READ_A_ROUND, got; may_read(c); left -= got) {
        const enum stream_step step = read_once(c, &got);
        cut(c);
        if (c->state == GONE || step == STREAM_WANTS_READ || step == STREAM_DRAINED)
            return;
        if (step == STREAM_WANTS_WRITE)
            event_add(&c->writable, NULL);
        else if (step == STREAM_END)
            ended(c);
        else if (step == STREAM_FAILED)
            fail(c, c->io.err, c->io.why);
        if (step != STREAM_DONE)
            return;
        if (got >= left) {
            read_soon(c);
            return;
        }
    }
}

/* Closing a socket with unread bytes would reset it, and what we wrote last be lost. */
static void discard(struct conn *c)
{
    char waste[4096];
    const ssize_t n = read(c->io.fd, waste, sizeof waste);
    if (n == 0 || (n < 0 && errno != EAGAIN && errno != EINTR))
        go(c);
}

/* ---- writing -------------------------------------------------------------------------------- */

static void linger(struct conn *c)
{
    become(c, LINGERING);
    stream_end(&c->io);
    update_reading(c);
}

static void breathe(struct conn *c)
{
    if (!c->choked || c->out.bytes > c->conf.write_high / 2)
        return;
    c->choked = false;
    update_reading(c);
    read_soon(c);
    if (c->handler && c->handler->drained)
        c->handler->drained(c->ctx);
}

static void write_out(struct conn *c)
{
    for (size_t left = WRITE_A_ROUND, sent; c->out.bytes > 0; left -= sent) {
        const enum stream_step step = stream_write(&c->io, &c->out, &sent);
        if (step == STREAM_FAILED || step == STREAM_END) {
            fail(c, step == STREAM_END ? ERR_CLOSED : c->io.err, c->io.why);
            return;
        }
        outbox_sent(&c->out, sent);
        if (step != STREAM_DONE || sent >= left) {
            event_add(&c->writable, NULL);
            return;
        }
    }
}

static void shake(struct conn *c);

static void begin_upgrade(struct conn *c)
{
    become(c, SHAKING);
    stream_secure(&c->io, c->upgrade, c->tls_name, c->dialled);
    c->upgrade = NULL;
    outbox_drop(&c->out);
    c->out = c->held;
    c->held = (struct outbox){0};
    loop_after(c->loop, &c->timer, patience(c));
    shake(c);
}

static void flush(struct conn *c)
{
    if (c->state != OPEN)
        return;
    write_out(c);
    if (c->state == OPEN && c->upgrade && c->handler && c->out.bytes == 0) {
        begin_upgrade(c);
        return;
    }
    if (c->state == OPEN)
        breathe(c);
    if (c->state == OPEN && !c->handler && c->out.bytes == 0)
        linger(c);
}

/* ---- opening -------------------------------------------------------------------------------- */

static void is_open(struct conn *c)
{
    become(c, OPEN);
    if (c->handler)
        loop_cancel(c->loop, &c->timer);
    update_reading(c);
    read_soon(c); /* what came with the handshake; and what was sent before it leaves */
    if (c->dialled && !c->was_open && c->handler && c->handler->opened) {
        c->was_open = true;
        c->handler->opened(c->ctx);
    }
}

static void shake(struct conn *c)
{
    switch (stream_shake(&c->io)) {
    case STREAM_WANTS_READ:
        listen_to(c, true);
        break;
    case STREAM_WANTS_WRITE:
        event_add(&c->writable, NULL);
        break;
    case STREAM_FAILED:
        fail(c, c->io.err, c->io.why);
        break;
    default:
        is_open(c);
    }
}

static void on_readable(evutil_socket_t fd, short what, void *arg);
static void on_writable(evutil_socket_t fd, short what, void *arg);

static void use_socket(struct conn *c, int fd)
{
    c->io.fd = fd;
    event_assign(&c->readable, loop_base(c->loop), fd, EV_READ | EV_PERSIST, on_readable, c);
    event_assign(&c->writable, loop_base(c->loop), fd, EV_WRITE, on_writable, c);
}

static void connected(struct conn *c)
{
    const int on = 1;
    setsockopt(c->io.fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
    setsockopt(c->io.fd, SOL_SOCKET, SO_KEEPALIVE, &on, sizeof on);
    if (!c->conf.tls) {
        is_open(c);
        return;
    }
    become(c, SHAKING);
    stream_secure(&c->io, c->conf.tls, c->tls_name, true);
    shake(c);
}

static void connect_failed(struct conn *c, int saved_errno)
{
    char reason[64];
    const char *name = strerrorname_np(saved_errno);
    snprintf(reason, sizeof reason, "connect: %s", name ? name : "?");
    fail(c, saved_errno == ETIMEDOUT ? ERR_TIMEOUT : ERR_CLOSED, reason);
}

/* Tries one address after the other until one does not refuse at once. */
static void connect_next(struct conn *c, int last_errno)
{
    while (c->next_address < c->addresses->n) {
        const struct address *a = &c->addresses->at[c->next_address++];
        address_print(&a->sa, c->peer, sizeof c->peer);
        stop_events(c);
        stream_close(&c->io);
        const int fd = socket(a->sa.ss_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
        if (fd >= 0) {
            use_socket(c, fd);
            if (connect(fd, (const struct sockaddr *)&a->sa, a->len) == 0) {
                connected(c);
                return;
            }
        }
        last_errno = errno;
        if (fd >= 0 && last_errno == EINPROGRESS) {
            event_add(&c->writable, NULL);
            return;
        }
    }
    connect_failed(c, last_errno);
}

static void connect_answered(struct conn *c)
{
    int error = 0;
    socklen_t len = sizeof error;
    if (getsockopt(c->io.fd, SOL_SOCKET, SO_ERROR, &error, &len) != 0)
        error = errno;
    if (error)
        connect_next(c, error);
    else
        connected(c);
}

static void on_resolved(void *ctx, const struct addresses *found)
{
    struct conn *c = ctx;
    enter(c);
    c->lookup = NULL;
    *c->addresses = *found;
    if (found->n == 0) {
        fail(c, ERR_NOT_FOUND, "no such host");
    } else {
        become(c, CONNECTING);
        connect_next(c, EADDRNOTAVAIL);
    }
    leave(c);
}

/* ---- what the loop calls -------------------------------------------------------------------- */

static void on_readable(evutil_socket_t fd, short what, void *arg)
{
    struct conn *c = arg;
    (void)fd;
    (void)what;
    enter(c);
    if (c->state == SHAKING)
        shake(c);
    else if (c->state == OPEN)
        read_some(c);
    else if (c->state == LINGERING)
        discard(c);
    leave(c);
}

static void on_writable(evutil_socket_t fd, short what, void *arg)
{
    struct conn *c = arg;
    (void)fd;
    (void)what;
    enter(c);
    if (c->state == CONNECTING)
        connect_answered(c);
    else if (c->state == SHAKING)
        shake(c);
    else if (c->io.ssl)
        read_soon(c);
    flush(c);
    leave(c);
}

static void on_round_end(struct round_end *e)
{
    struct conn *c = container_of(e, struct conn, end);
    enter(c);
    if (c->state == CONNECTING && c->io.fd < 0)
        connect_next(c, EADDRNOTAVAIL);
    else if (c->state == OPEN && c->read_again)
        read_some(c);
    flush(c);
    leave(c);
}

static void on_timer(struct timer *t)
{
    struct conn *c = container_of(t, struct conn, timer);
    enter(c);
    fail(c, ERR_TIMEOUT, c->state == SHAKING ? "handshake: no answer" : "connect: no answer");
    leave(c);
}

/* ---- what its owner calls ------------------------------------------------------------------- */

static struct conn *conn_new(struct loop *l, enum state state, const struct conn_conf *conf,
                             const struct conn_handler *h, void *ctx)
{
    struct conn *c = mem_new(struct conn);
    assert(loop_is_mine(l));
    c->loop = l;
    c->state = state;
    c->conf = *conf;
    c->conf.tls_name = NULL;
    c->tls_name = conf->tls_name ? mem_string(conf->tls_name) : NULL;
    c->handler = h;
    c->ctx = ctx;
    c->io.fd = -1;
    c->in.frame_max = conf->frame_max;
    c->end.run = on_round_end;
    c->timer.run = on_timer;
    c->guest.leave = on_leave;
    list_init(&c->guest.node);
    return c;
}

struct conn *conn_accepted(struct loop *l, int fd, const struct conn_conf *conf,
                           const struct conn_handler *h, void *ctx)
{
    struct conn *c = conn_new(l, conf->tls ? SHAKING : OPEN, conf, h, ctx);
    struct sockaddr_storage sa = {0};
    socklen_t len = sizeof sa;
    getpeername(fd, (struct sockaddr *)&sa, &len);
    address_print(&sa, c->peer, sizeof c->peer);
    evutil_make_socket_nonblocking(fd);
    use_socket(c, fd);
    if (conf->tls) {
        stream_secure(&c->io, conf->tls, NULL, false);
        loop_after(l, &c->timer, patience(c));
    }
    listen_to(c, true);
    return c;
}

struct conn *conn_dial(struct loop *l, const char *host, uint16_t port,
                       const struct conn_conf *conf, const struct conn_handler *h, void *ctx)
{
    struct conn *c = conn_new(l, RESOLVING, conf, h, ctx);
    c->dialled = true;
    c->addresses = mem_new(struct addresses);
    snprintf(c->peer, sizeof c->peer, "%s:%u", host, port);
    loop_after(l, &c->timer, patience(c));
    if (resolve_now(host, port, c->addresses)) {
        become(c, CONNECTING);
        loop_at_round_end(l, &c->end);
    } else {
        c->lookup = resolve_start(l, host, port, on_resolved, c);
    }
    return c;
}

static void choke(struct conn *c)
{
    if (c->conf.write_high == 0 || c->out.bytes <= c->conf.write_high || c->choked)
        return;
    c->choked = true;
    update_reading(c);
}

void conn_set_write_high(struct conn *c, size_t write_high)
{
    assert(loop_is_mine(c->loop));
    c->conf.write_high = write_high;
    choke(c);
}

static struct outbox *queue_of(struct conn *c)
{
    return c->upgrade ? &c->held : &c->out;
}

static void sent(struct conn *c)
{
    choke(c);
    if (c->state == OPEN && !c->end.queued && !event_pending(&c->writable, EV_WRITE, NULL))
        loop_at_round_end(c->loop, &c->end);
}

/* A peer that has sent more than it was asked for means somebody who stands in between. */
enum err conn_upgrade(struct conn *c, struct tls *tls)
{
    assert(loop_is_mine(c->loop));
    assert(c->state == OPEN && !c->io.ssl && !c->upgrade);
    if (!cutter_is_between(&c->in))
        return ERR_MALFORMED;
    c->upgrade = tls;
    update_reading(c);
    loop_at_round_end(c->loop, &c->end);
    return ERR_OK;
}

void conn_send(struct conn *c, struct slice s)
{
    assert(loop_is_mine(c->loop));
    if (c->state == GONE) {
        slice_drop(&s);
        return;
    }
    outbox_put(queue_of(c), s);
    sent(c);
}

void conn_send_behind(struct conn *c, struct view front, const struct chain *rest)
{
    assert(loop_is_mine(c->loop));
    if (c->state == GONE)
        return;
    outbox_copy_in(queue_of(c), front);
    for (unsigned i = 0; i < rest->n; i++)
        outbox_share(queue_of(c), &rest->at[i]);
    sent(c);
}

void conn_send_chain(struct conn *c, struct chain *ch)
{
    assert(loop_is_mine(c->loop));
    if (c->state == GONE) {
        chain_drop(ch);
        return;
    }
    for (unsigned i = 0; i < ch->n; i++)
        outbox_put(queue_of(c), ch->at[i]);
    ch->n = 0;
    sent(c);
}

size_t conn_waiting(const struct conn *c)
{
    return c->out.bytes + c->held.bytes;
}

void conn_pause(struct conn *c)
{
    c->pauses++;
    update_reading(c);
}

void conn_resume(struct conn *c)
{
    assert(c->pauses > 0);
    if (--c->pauses > 0 || c->state == GONE)
        return;
    update_reading(c);
    read_soon(c);
}

const char *conn_peer(const struct conn *c)
{
    return c->peer;
}

void conn_close(struct conn **cp)
{
    struct conn *c = *cp;
    *cp = NULL;
    if (!c)
        return;
    assert(loop_is_mine(c->loop));
    c->handler = NULL;
    if (c->state != GONE)
        go(c);
    release(c);
}

void conn_finish(struct conn **cp)
{
    struct conn *c = *cp;
    if (!c || c->state == GONE || (c->state != OPEN && c->out.bytes == 0)) {
        conn_close(cp);
        return;
    }
    *cp = NULL;
    c->handler = NULL;
    loop_invite(c->loop, &c->guest);
    loop_after(c->loop, &c->timer, FINISH_US);
    update_reading(c);
    loop_at_round_end(c->loop, &c->end);
}
