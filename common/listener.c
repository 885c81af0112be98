#include "common/listener.h"

#include <assert.h>
#include <errno.h>
#include <event2/event.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>
#include <unistd.h>

#include "common/door.h"
#include "common/log.h"
#include "common/mem.h"

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

enum err listener_open(struct listener **out, struct loop *loop, const char *host, uint16_t port,
                       listener_fn *accepted, void *ctx)
{
    assert(loop_is_mine(loop));
    int fd;
    TRY(door_open(&fd, host, port));
    struct listener *l = mem_new(struct listener);
    l->loop = loop;
    l->fd = fd;
    l->port = door_port(fd);
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
