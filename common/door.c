#include "common/door.h"

#include <errno.h>
#include <netinet/in.h>
#include <stdbool.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "common/log.h"
#include "common/resolve.h"

#define BACKLOG 1024

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

enum err door_open(int *fd, const char *host, uint16_t port)
{
    const bool everywhere = !host || !*host;
    *fd = everywhere ? listen_everywhere(port) : listen_on(host, port);
    if (*fd >= 0)
        return ERR_OK;
    log_event(LOG_ERROR, "listener.failed", F_STR("host", everywhere ? "*" : host),
              F_U64("port", port), F_ERRNO(errno));
    return ERR_IO;
}

uint16_t door_port(int fd)
{
    struct sockaddr_storage sa = {0};
    socklen_t len = sizeof sa;
    struct sockaddr_in v4;
    getsockname(fd, (struct sockaddr *)&sa, &len);
    memcpy(&v4, &sa, sizeof v4); /* the port has the same place in both families */
    return ntohs(v4.sin_port);
}
