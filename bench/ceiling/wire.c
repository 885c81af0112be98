#include "bench/ceiling/wire.h"

#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include "bench/ceiling/ceiling.h"

enum { BUFFERS = 4 << 20, WAIT_MS = 100 };

static struct sockaddr_in loopback(uint16_t port)
{
    return (struct sockaddr_in){
        .sin_family = AF_INET, .sin_port = htons(port), .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
}

int wire_listen(uint16_t *port)
{
    struct sockaddr_in a = loopback(0);
    socklen_t len = sizeof a;
    int fd = socket(AF_INET, SOCK_STREAM, 0);
    if (fd < 0 || bind(fd, (struct sockaddr *)&a, len) != 0 || listen(fd, 8) != 0 ||
        getsockname(fd, (struct sockaddr *)&a, &len) != 0)
        die("listen");
    *port = ntohs(a.sin_port);
    return fd;
}

int wire_connect(uint16_t port)
{
    struct sockaddr_in a = loopback(port);
    int fd = socket(AF_INET, SOCK_STREAM, 0);
    if (fd < 0 || connect(fd, (struct sockaddr *)&a, sizeof a) != 0)
        die("connect");
    return fd;
}

int wire_accept(int listener)
{
    int fd = accept(listener, NULL, NULL);
    if (fd < 0)
        die("accept");
    return fd;
}

void wire_tune(int fd, bool blocking)
{
    const int one = 1, buffers = BUFFERS;
    setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof one);
    setsockopt(fd, SOL_SOCKET, SO_SNDBUF, &buffers, sizeof buffers);
    setsockopt(fd, SOL_SOCKET, SO_RCVBUF, &buffers, sizeof buffers);
    if (!blocking && fcntl(fd, F_SETFL, O_NONBLOCK) != 0)
        die("fcntl");
}

void wire_wait(int fd, short events)
{
    struct pollfd p = {.fd = fd, .events = events};
    (void)poll(&p, 1, WAIT_MS);
}

bool wire_send_all(int fd, const void *at, size_t len)
{
    while (len > 0) {
        ssize_t n = send(fd, at, len, MSG_NOSIGNAL);
        if (n > 0) {
            at = (const char *)at + n;
            len -= (size_t)n;
        } else if (errno == EAGAIN) {
            wire_wait(fd, POLLOUT);
        } else {
            return false;
        }
    }
    return true;
}

void wire_watch(int epoll, int fd, uint32_t tag, uint32_t events)
{
    struct epoll_event e = {.events = events, .data.u32 = tag};
    if (epoll_ctl(epoll, EPOLL_CTL_ADD, fd, &e) != 0)
        die("epoll");
}

void wire_change(int epoll, int fd, uint32_t tag, uint32_t events)
{
    struct epoll_event e = {.events = events, .data.u32 = tag};
    if (epoll_ctl(epoll, EPOLL_CTL_MOD, fd, &e) != 0)
        die("epoll");
}
