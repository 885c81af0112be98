#include "broker/session/sessions.h"

#include <unistd.h>

#include "broker/broker.h"
#include "broker/session/put_off.h"
#include "broker/session/session.h"

void sessions_tell_if_closed(struct sessions *s)
{
    void (*closed)(void *ctx) = s->closed;

    if (!s->closing || !closed || !list_empty(&s->all) || !topic_watches_idle(s->watches))
        return;
    s->closed = NULL;
    closed(s->closed_ctx);
}

static void no_watches(void *ctx)
{
    sessions_tell_if_closed(ctx);
}

struct sessions *sessions_new(const struct sessions_env *env)
{
    struct sessions *s = mem_new(struct sessions);

    s->env = *env;
    s->arena = arena_new(ARENA_MAX);
    s->producers = mem_pool_new(sizeof(struct session_producer));
    s->consumers = mem_pool_new(sizeof(struct session_consumer));
    put_off_init(s, env->conf);
    s->slow_us = (uint64_t)env->conf->slow_publish_ms * 1000;
    list_init(&s->all);
    listings_init(&s->listings, env->home);
    s->watches = topic_watches_new(env->home, env->meta);
    topic_watches_on_idle(s->watches, no_watches, s);
    return s;
}

void sessions_accept(struct sessions *s, int fd, struct tls *tls)
{
    if (s->closing)
        close(fd);
    else
        session_accepted(s, fd, tls);
}

void sessions_close(struct sessions *s, void (*done)(void *ctx), void *ctx)
{
    s->closing = true;
    s->closed = done;
    s->closed_ctx = ctx;
    if (list_empty(&s->all)) {
        sessions_tell_if_closed(s);
        return;
    }
    list_each(&s->all, n) session_finish(list_entry(n, struct session, node));
}

void sessions_drop(struct sessions **s)
{
    if (!*s)
        return;
    put_off_end(*s);
    sending_pool_drop(*s);
    mem_pool_drop(&(*s)->producers);
    mem_pool_drop(&(*s)->consumers);
    listings_end(&(*s)->listings);
    topic_watches_drop(&(*s)->watches);
    arena_drop(&(*s)->arena);
    mem_free(*s);
    *s = NULL;
}
