#include "common/resolve.h"

#include <arpa/inet.h>
#include <netdb.h>
#include <netinet/in.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>

#include "common/list.h"
#include "common/mem.h"

#define RESOLVERS 4

struct resolve {
    struct list_node waiting;
    struct task task;
    struct loop *loop;
    char *host;
    uint16_t port;
    resolve_fn *done;
    void *ctx;
    enum { RESOLVE_WAITS, RESOLVE_RUNS, RESOLVE_POSTED, RESOLVE_CANCELLED } state;
    struct addresses found;
};

/* state, list and counters are under the lock: the one thing that loops share here. */
static struct {
    pthread_mutex_t lock;
    pthread_cond_t more;
    struct list_node queue;
    unsigned threads, idle;
} pool = {.lock = PTHREAD_MUTEX_INITIALIZER,
          .more = PTHREAD_COND_INITIALIZER,
          .queue = {&pool.queue, &pool.queue}};

static void add_v4(struct addresses *out, struct in_addr a, uint16_t port)
{
    struct sockaddr_in sa = {.sin_family = AF_INET, .sin_port = htons(port), .sin_addr = a};
    struct address *to = &out->at[out->n++];
    memcpy(&to->sa, &sa, sizeof sa);
    to->len = sizeof sa;
}

static void add_v6(struct addresses *out, struct in6_addr a, uint16_t port)
{
    struct sockaddr_in6 sa = {.sin6_family = AF_INET6, .sin6_port = htons(port), .sin6_addr = a};
    struct address *to = &out->at[out->n++];
    memcpy(&to->sa, &sa, sizeof sa);
    to->len = sizeof sa;
}

bool resolve_now(const char *host, uint16_t port, struct addresses *out)
{
    struct in_addr v4 = {.s_addr = htonl(INADDR_LOOPBACK)};
    struct in6_addr v6 = IN6ADDR_LOOPBACK_INIT;
    out->n = 0;
    if (strcmp(host, "localhost") == 0) {
        add_v4(out, v4, port);
        add_v6(out, v6, port);
    } else if (inet_pton(AF_INET, host, &v4) == 1) {
        add_v4(out, v4, port);
    } else if (inet_pton(AF_INET6, host, &v6) == 1) {
        add_v6(out, v6, port);
    }
    return out->n > 0;
}

static void look_up(const char *host, uint16_t port, struct addresses *out)
{
    struct addrinfo hints = {.ai_family = AF_UNSPEC, .ai_socktype = SOCK_STREAM}, *list = NULL;
    char digits[8];
    snprintf(digits, sizeof digits, "%u", port);
    if (getaddrinfo(host, digits, &hints, &list) != 0)
        return;
    for (struct addrinfo *a = list; a && out->n < ADDRESSES_MAX; a = a->ai_next) {
        struct address *to = &out->at[out->n++];
        memcpy(&to->sa, a->ai_addr, a->ai_addrlen);
        to->len = a->ai_addrlen;
    }
    freeaddrinfo(list);
}

bool resolve_wait(const char *host, uint16_t port, struct addresses *out)
{
    if (!resolve_now(host, port, out))
        look_up(host, port, out);
    return out->n > 0;
}

static void resolve_free(struct resolve *r)
{
    mem_free(r->host);
    mem_free(r);
}

static void answer(struct task *t)
{
    struct resolve *r = container_of(t, struct resolve, task);
    pthread_mutex_lock(&pool.lock);
    const bool cancelled = r->state == RESOLVE_CANCELLED;
    pthread_mutex_unlock(&pool.lock);
    if (!cancelled)
        r->done(r->ctx, &r->found);
    resolve_free(r);
}

/* Posted under the lock: a loop may go once its last lookup is cancelled. */
static void finish(struct resolve *r)
{
    if (r->state == RESOLVE_CANCELLED) {
        resolve_free(r);
        return;
    }
    r->state = RESOLVE_POSTED;
    loop_post(r->loop, &r->task);
}

static void *resolver(void *arg)
{
    (void)arg;
    pthread_mutex_lock(&pool.lock);
    for (;;) {
        struct list_node *n = list_pop_front(&pool.queue);
        if (!n) {
            pool.idle++;
            pthread_cond_wait(&pool.more, &pool.lock);
            pool.idle--;
            continue;
        }
        struct resolve *r = list_entry(n, struct resolve, waiting);
        r->state = RESOLVE_RUNS;
        pthread_mutex_unlock(&pool.lock);
        look_up(r->host, r->port, &r->found);
        pthread_mutex_lock(&pool.lock);
        finish(r);
    }
    return NULL;
}

static void add_thread(void)
{
    pthread_t thread;
    sigset_t all, before;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    if (pthread_create(&thread, NULL, resolver, NULL) == 0) {
        pthread_detach(thread);
        pthread_setname_np(thread, "resolve");
        pool.threads++;
    }
    pthread_sigmask(SIG_SETMASK, &before, NULL);
}

struct resolve *resolve_start(struct loop *l, const char *host, uint16_t port, resolve_fn *done,
                              void *ctx)
{
    struct resolve *r = mem_new(struct resolve);
    r->task.run = answer;
    r->loop = l;
    r->host = mem_string(host);
    r->port = port;
    r->done = done;
    r->ctx = ctx;
    pthread_mutex_lock(&pool.lock);
    list_push_back(&pool.queue, &r->waiting);
    if (pool.idle == 0 && pool.threads < RESOLVERS)
        add_thread();
    pthread_cond_signal(&pool.more);
    pthread_mutex_unlock(&pool.lock);
    return r;
}

void resolve_cancel(struct resolve **rp)
{
    struct resolve *r = *rp;
    *rp = NULL;
    if (!r)
        return;
    pthread_mutex_lock(&pool.lock);
    const bool waits = r->state == RESOLVE_WAITS;
    if (waits)
        list_remove(&r->waiting);
    r->state = RESOLVE_CANCELLED;
    pthread_mutex_unlock(&pool.lock);
    if (waits)
        resolve_free(r);
}

void address_print(const struct sockaddr_storage *sa, char *into, size_t len)
{
    char host[INET6_ADDRSTRLEN] = "?";
    if (sa->ss_family == AF_INET) {
        struct sockaddr_in v4;
        memcpy(&v4, sa, sizeof v4);
        inet_ntop(AF_INET, &v4.sin_addr, host, sizeof host);
        snprintf(into, len, "%s:%u", host, ntohs(v4.sin_port));
    } else if (sa->ss_family == AF_INET6) {
        struct sockaddr_in6 v6;
        memcpy(&v6, sa, sizeof v6);
        const bool mapped = IN6_IS_ADDR_V4MAPPED(&v6.sin6_addr);
        if (mapped)
            inet_ntop(AF_INET, &v6.sin6_addr.s6_addr[12], host, sizeof host);
        else
            inet_ntop(AF_INET6, &v6.sin6_addr, host, sizeof host);
        snprintf(into, len, mapped ? "%s:%u" : "[%s]:%u", host, ntohs(v6.sin6_port));
    } else {
        snprintf(into, len, "local");
    }
}
