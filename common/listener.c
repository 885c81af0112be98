#include "common/listener.h"

#include <assert.h>
#include <errno.h>
#include <event2/event.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "common/log.h"
#include "common/mem.h"
#include "common/resolve.h"

#define BACKLOG         1024
#define ACCEPTS_A_ROUND 64
#define REST_US         100000 /* when descriptors have run out */

struct listener {
    struct loop *loop;
    int fd; /* -1: closed */
    uint16_t port;
    struct event *event;
    struct timer rest;
    listener_fn *accepted;
    void *ctx;
    bool accepting; /* on_connection() is on the stack and ends what was closed under it */
};

static void set_up(int fd)
{
    const int on = 1;
    setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
    setsockopt(fd, SOL_SOCKET, SO_KEEPALIVE, &on, sizeof on);
}

/* Out of descriptors the socket stays readable: without a rest the loop would spin. */
static void refuse_for_now(struct listener *l, int saved_errno)
{
    log_event(LOG_WARN, "listener.failed", F_U64("port", l->port), F_ERRNO(saved_errno));
    event_del(l->event);
    loop_after(l->loop, &l->rest, REST_US);
}

static bool is_passing(int saved_errno)
{
    return saved_errno == EAGAIN || saved_errno == EINTR || saved_errno == ECONNABORTED ||
           saved_errno == EPROTO;
}

static void accept_some(struct listener *l)
{
    for (unsigned i = 0; i < ACCEPTS_A_ROUND && l->fd >= 0; i++) {
        const int peer = accept4(l->fd, NULL, NULL, SOCK_NONBLOCK | SOCK_CLOEXEC);
        if (peer < 0) {
            if (!is_passing(errno))
                refuse_for_now(l, errno);
            return;
        }
        set_up(peer);
        l->accepted(l->ctx, peer);
    }
}

static void on_connection(evutil_socket_t fd, short what, void *arg)
{
    struct listener *l = arg;
    (void)fd;
    (void)what;
    l->accepting = true;
    accept_some(l);
    l->accepting = false;
    if (l->fd < 0)
        mem_free(l);
}

static void on_rested(struct timer *t)
{
    struct listener *l = container_of(t, struct listener, rest);
    event_add(l->event, NULL);
}

/* A socket that listens, or -1 with errno.  "::" takes IPv4 too. */
static int listen_at(const struct address *a)
{
    const int on = 1, off = 0;
    const int fd = socket(a->sa.ss_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
    if (fd < 0)
        return -1;
    setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
    if (a->sa.ss_family == AF_INET6)
        setsockopt(fd, IPPROTO_IPV6, IPV6_V6ONLY, &off, sizeof off);
    if (bind(fd, (const struct sockaddr *)&a->sa, a->len) == 0 && listen(fd, BACKLOG) == 0)
        return fd;
    const int saved = errno;
    close(fd);
    errno = saved;
    return -1;
}

static int listen_on(const char *host, uint16_t port)
{
    struct addresses found;
    errno = EADDRNOTAVAIL;
    if (!resolve_wait(host, port, &found))
        return -1;
    return listen_at(&found.at[0]);
}

/* A machine without IPv6 gets 0.0.0.0 for "everywhere". */
static int listen_everywhere(uint16_t port)
{
    const int fd = listen_on("::", port);
    if (fd >= 0 || (errno != EAFNOSUPPORT && errno != EADDRNOTAVAIL))
        return fd;
    return listen_on("0.0.0.0", port);
}

static uint16_t port_of(int fd)
{
    struct sockaddr_storage sa = {0};
    socklen_t len = sizeof sa;
    struct sockaddr_in v4;
    getsockname(fd, (struct sockaddr *)&sa, &len);
    memcpy(&v4, &sa, sizeof v4); /* the port has the same place in both families */
    return ntohs(v4.sin_port);
}

enum err listener_open(struct listener **out, struct loop *loop, const char *host, uint16_t port,
                       listener_fn *accepted, void *ctx)
{
    assert(loop_is_mine(loop));
    const bool everywhere = !host || !*host;
    const int fd = everywhere ? listen_everywhere(port) : listen_on(host, port);
    if (fd < 0) {
        log_event(LOG_ERROR, "listener.failed", F_STR("host", everywhere ? "*" : host),
                  F_U64("port", port), F_ERRNO(errno));
        return ERR_IO;
    }
    struct listener *l = mem_new(struct listener);
    l->loop = loop;
    l->fd = fd;
    l->port = port_of(fd);
    l->rest.run = on_rested;
    l->accepted = accepted;
    l->ctx = ctx;
    l->event = event_new(loop_base(loop), fd, EV_READ | EV_PERSIST, on_connection, l);
    assert(l->event);
    event_add(l->event, NULL);
    *out = l;
    return ERR_OK;
}

uint16_t listener_port(const struct listener *l)
{
    return l->port;
}

void listener_close(struct listener **lp)
{
    struct listener *l = *lp;
    *lp = NULL;
    if (!l)
        return;
    loop_cancel(l->loop, &l->rest);
    event_free(l->event);
    close(l->fd);
    l->fd = -1;
    if (!l->accepting)
        mem_free(l);
}
