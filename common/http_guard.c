#include "common/http_guard.h"

#include <sys/socket.h>
#include <sys/stat.h>

#include "common/log.h"
#include "common/mem.h"

enum { ROUND_US = 1000 * 1000 };

struct visitor {
    struct list_node node;
    struct bufferevent *bev; /* until its socket is known: held */
    int fd;
    ino_t inode;
    uint64_t since; /* loop time */
    bool asked;     /* an answer is due from us */
};

static bool inode_of(int fd, ino_t *inode)
{
    struct stat st;

    if (fd < 0 || fstat(fd, &st) != 0)
        return false;
    *inode = st.st_ino;
    return true;
}

static void forget(struct http_guard *g, struct visitor *v)
{
    if (v->bev)
        bufferevent_decref(v->bev);
    list_remove(&v->node);
    mem_free(v);
    g->n--;
}

static bool is_gone(const struct visitor *v)
{
    ino_t inode;
    return !v->bev && (!inode_of(v->fd, &inode) || inode != v->inode);
}

/* When libevent called us it had not given the socket to the bufferevent yet. */
static void meet(struct timer *t)
{
    struct http_guard *g = container_of(t, struct http_guard, meet);

    list_each(&g->visitors, n)
    {
        struct visitor *v = list_entry(n, struct visitor, node);
        if (!v->bev)
            continue;
        v->fd = bufferevent_getfd(v->bev);
        const bool here = inode_of(v->fd, &v->inode);
        bufferevent_decref(v->bev);
        v->bev = NULL;
        if (!here)
            forget(g, v);
    }
}

static void look_round(struct http_guard *g)
{
    const uint64_t now = loop_now(g->loop);
    unsigned cut = 0;

    list_each(&g->visitors, n)
    {
        struct visitor *v = list_entry(n, struct visitor, node);
        if (is_gone(v)) {
            forget(g, v);
        } else if (!v->bev && !v->asked && now - v->since >= g->patience_us) {
            shutdown(v->fd, SHUT_RDWR);
            cut++;
        }
    }
    if (cut > 0)
        log_event(LOG_INFO, "http.cut_off", F_U64("connections", cut));
}

static void on_round(struct timer *t)
{
    struct http_guard *g = container_of(t, struct http_guard, round);

    look_round(g);
    loop_after(g->loop, &g->round, ROUND_US);
}

void http_guard_init(struct http_guard *g, struct loop *l, unsigned max, uint64_t patience_us)
{
    *g = (struct http_guard){.loop = l, .max = max, .patience_us = patience_us};
    list_init(&g->visitors);
    g->meet.run = meet;
    g->round.run = on_round;
    loop_after(l, &g->round, ROUND_US);
}

void http_guard_drop(struct http_guard *g)
{
    loop_cancel(g->loop, &g->meet);
    loop_cancel(g->loop, &g->round);
    while (!list_empty(&g->visitors))
        forget(g, list_entry(g->visitors.next, struct visitor, node));
}

void http_guard_came(struct http_guard *g, struct bufferevent *b)
{
    struct visitor *v = mem_new(struct visitor);

    bufferevent_incref(b);
    v->bev = b;
    v->fd = -1;
    v->since = loop_now(g->loop);
    list_push_back(&g->visitors, &v->node);
    g->n++;
    loop_after(g->loop, &g->meet, 0);
}

static struct visitor *find(const struct http_guard *g, int fd)
{
    list_each(&g->visitors, n)
    {
        struct visitor *v = list_entry(n, struct visitor, node);
        if (v->fd == fd && !is_gone(v))
            return v;
    }
    return NULL;
}

static void note(struct http_guard *g, int fd, bool asked)
{
    struct visitor *v = find(g, fd);

    if (!v)
        return;
    v->asked = asked;
    v->since = loop_now(g->loop);
}

void http_guard_asked(struct http_guard *g, int fd)
{
    if (g->meet.slot)
        meet(&g->meet); /* it may be one of those */
    note(g, fd, true);
}

void http_guard_answered(struct http_guard *g, int fd)
{
    note(g, fd, false);
}

bool http_guard_is_full(struct http_guard *g)
{
    if (g->n >= g->max)
        look_round(g);
    return g->n >= g->max;
}
