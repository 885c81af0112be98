#include "tests/lib/proxy.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdlib.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <unistd.h>

#include "common/mem.h"

enum { PAIRS_MAX = 64 };

struct pair {
    int client, target;
    bool swallows; /* something went through it meanwhile: an answer is lost, or owed */
};

struct proxy {
    int listener, wake;
    uint16_t port, target;
    pthread_t thread;
    pthread_mutex_t lock; /* guards the next three */
    pthread_cond_t seen;
    enum proxy_mode mode;
    unsigned asked, done; /* changes of the mode */
    bool closing;
    struct pair at[PAIRS_MAX]; /* the thread's */
    unsigned n;
};

static struct sockaddr_in local(uint16_t port)
{
    return (struct sockaddr_in){
        .sin_family = AF_INET, .sin_port = htons(port), .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
}

static void drop(struct proxy *p, unsigned i)
{
    close(p->at[i].client);
    close(p->at[i].target);
    p->at[i] = p->at[--p->n];
}

static void take_client(struct proxy *p, enum proxy_mode mode)
{
    struct sockaddr_in a = local(p->target);
    int client = accept(p->listener, NULL, NULL), on = 1;
    int target = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

    if (mode == PROXY_CUT || p->n == PAIRS_MAX ||
        connect(target, (struct sockaddr *)&a, sizeof a) != 0) {
        close(client);
        close(target);
        return;
    }
    setsockopt(target, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
    setsockopt(client, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
    p->at[p->n++] = (struct pair){.client = client, .target = target};
}

/* False: that side has ended. */
static bool pass(int from, int to, bool swallow)
{
    char bytes[65536];
    ssize_t n = recv(from, bytes, sizeof bytes, 0);

    if (n <= 0)
        return false;
    return swallow || send(to, bytes, (size_t)n, MSG_NOSIGNAL) == n;
}

static void serve_pair(struct proxy *p, unsigned i, const struct pollfd *fds, enum proxy_mode mode)
{
    struct pair *pair = &p->at[i];
    bool open = true;

    if (fds[0].revents)
        open = pass(pair->client, pair->target, false);
    if (open && fds[1].revents)
        open = pass(pair->target, pair->client, mode == PROXY_SWALLOW);
    pair->swallows |= mode == PROXY_SWALLOW && (fds[0].revents || fds[1].revents);
    if (!open)
        drop(p, i);
}

static void change_mode(struct proxy *p, enum proxy_mode mode)
{
    for (unsigned i = p->n; i-- > 0;)
        if (mode == PROXY_CUT || (mode == PROXY_PASS && p->at[i].swallows))
            drop(p, i);
}

static enum proxy_mode look_at_mode(struct proxy *p, bool *closing)
{
    pthread_mutex_lock(&p->lock);
    enum proxy_mode mode = p->mode;
    if (p->done != p->asked) {
        change_mode(p, mode);
        p->done = p->asked;
        pthread_cond_broadcast(&p->seen);
    }
    *closing = p->closing;
    pthread_mutex_unlock(&p->lock);
    return mode;
}

static void *run(void *arg)
{
    struct proxy *p = arg;
    struct pollfd fds[2 + 2 * PAIRS_MAX];
    uint64_t count;
    bool closing;

    for (;;) {
        enum proxy_mode mode = look_at_mode(p, &closing);
        if (closing)
            return NULL;
        unsigned n = p->n;
        fds[0] = (struct pollfd){.fd = p->listener, .events = POLLIN};
        fds[1] = (struct pollfd){.fd = p->wake, .events = POLLIN};
        for (unsigned i = 0; i < n; i++) {
            fds[2 + 2 * i] = (struct pollfd){.fd = p->at[i].client, .events = POLLIN};
            fds[3 + 2 * i] = (struct pollfd){.fd = p->at[i].target, .events = POLLIN};
        }
        if (poll(fds, 2 + 2 * n, -1) < 0)
            abort();
        if (fds[1].revents) {
            if (read(p->wake, &count, sizeof count) < 0)
                abort();
            continue; /* the new mode first */
        }
        for (unsigned i = n; i-- > 0;)
            serve_pair(p, i, &fds[2 + 2 * i], mode);
        if (fds[0].revents)
            take_client(p, mode);
    }
}

struct proxy *proxy_open(uint16_t target)
{
    struct proxy *p = mem_new(struct proxy);
    struct sockaddr_in a = local(0);
    socklen_t len = sizeof a;

    p->target = target;
    p->listener = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    p->wake = eventfd(0, EFD_CLOEXEC);
    if (bind(p->listener, (struct sockaddr *)&a, sizeof a) != 0 || listen(p->listener, 16) != 0 ||
        getsockname(p->listener, (struct sockaddr *)&a, &len) != 0)
        abort();
    p->port = ntohs(a.sin_port);
    pthread_mutex_init(&p->lock, NULL);
    pthread_cond_init(&p->seen, NULL);
    if (pthread_create(&p->thread, NULL, run, p) != 0)
        abort();
    return p;
}

uint16_t proxy_port(const struct proxy *p)
{
    return p->port;
}

static void wake(struct proxy *p)
{
    const uint64_t one = 1;

    if (write(p->wake, &one, sizeof one) != sizeof one)
        abort();
}

void proxy_set(struct proxy *p, enum proxy_mode mode)
{
    pthread_mutex_lock(&p->lock);
    p->mode = mode;
    p->asked++;
    wake(p);
    while (p->done != p->asked)
        pthread_cond_wait(&p->seen, &p->lock);
    pthread_mutex_unlock(&p->lock);
}

void proxy_close(struct proxy **pp)
{
    struct proxy *p = *pp;

    *pp = NULL;
    pthread_mutex_lock(&p->lock);
    p->closing = true;
    wake(p);
    pthread_mutex_unlock(&p->lock);
    pthread_join(p->thread, NULL);
    while (p->n > 0)
        drop(p, p->n - 1);
    close(p->listener);
    close(p->wake);
    pthread_mutex_destroy(&p->lock);
    pthread_cond_destroy(&p->seen);
    mem_free(p);
}
