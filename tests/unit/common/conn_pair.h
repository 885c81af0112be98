/* conn_pair.h - two ends of a connection on one loop, and what each of them saw. */
#ifndef TESTS_UNIT_COMMON_CONN_PAIR_H
#define TESTS_UNIT_COMMON_CONN_PAIR_H

#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "common/conn.h"
#include "common/listener.h"
#include "common/mem.h"
#include "common/tls.h"
#include "tests/lib/suite.h"
#include "tests/unit/common/captured.h"
#include "tests/unit/common/certs.h"

/* Two ends on one loop: `server` accepts, `client` dials.  Each end records what it saw. */
struct end {
    struct conn *conn;
    const char *what; /* "server" or "client" */
    struct pair *pair;
    unsigned frames, opened, drained, closed;
    size_t bytes;
    uint64_t sum; /* of all bytes, so that content counts */
    enum err why;
    void (*on_frame)(struct end *e, struct slice frame); /* takes frame; NULL: count, drop */
};

struct pair {
    struct loop *loop;
    struct listener *listener;
    struct tls *server_tls, *client_tls;
    struct certs certs;
    struct conn_conf server_conf, client_conf;
    struct end server, client;
    unsigned until_frames; /* of the server */
    struct timer deadline;
    bool late;
    enum { TO_SERVER, TO_NOBODY, HELD } door; /* what happens to who dials */
    int held_fd;
};

#define PLAIN 0
#define TLS   1

static inline void count(struct end *e, struct slice frame)
{
    e->frames++;
    e->bytes += frame.len;
    for (size_t i = 0; i < frame.len; i++)
        e->sum = e->sum * 31 + frame.base[i];
}

static inline void on_frame(void *ctx, struct slice frame)
{
    struct end *e = ctx;
    count(e, frame);
    if (e->on_frame)
        e->on_frame(e, frame);
    else
        slice_drop(&frame);
}

static inline void on_opened(void *ctx)
{
    struct end *e = ctx;
    e->opened++;
}

static inline void on_drained(void *ctx)
{
    struct end *e = ctx;
    e->drained++;
}

static inline void on_closed(void *ctx, enum err why)
{
    struct end *e = ctx;
    e->closed++;
    e->why = why;
    e->conn = NULL;
}

static const struct conn_handler handler = {
    .opened = on_opened, .frame = on_frame, .drained = on_drained, .closed = on_closed};

static inline void on_accepted(void *ctx, int fd)
{
    struct pair *p = ctx;
    if (p->door != TO_SERVER) {
        if (p->door == TO_NOBODY)
            close(fd);
        p->held_fd = fd;
        return;
    }
    ck_assert_ptr_null(p->server.conn);
    p->server.conn = conn_accepted(p->loop, fd, &p->server_conf, &handler, &p->server);
}

static inline void on_deadline(struct timer *t)
{
    struct pair *p = container_of(t, struct pair, deadline);
    p->late = true;
    loop_stop(p->loop);
}

/* Runs rounds until `done` says so. */
struct watcher {
    struct round_end end;
    struct pair *pair;
    bool (*done)(struct pair *p);
};

static inline void watch(struct round_end *e)
{
    struct watcher *w = container_of(e, struct watcher, end);
    if (w->done(w->pair))
        loop_stop(w->pair->loop);
    else if (!w->pair->late)
        loop_at_round_end(w->pair->loop, &w->end);
}

static inline void run_until(struct pair *p, bool (*done)(struct pair *p))
{
    struct watcher w = {.end.run = watch, .pair = p, .done = done};
    loop_after(p->loop, &p->deadline, 20000000);
    loop_at_round_end(p->loop, &w.end);
    loop_run(p->loop);
    loop_cancel(p->loop, &p->deadline);
    ck_assert_msg(!p->late, "20 s: server got %u, waits %zu; client got %u, waits %zu",
                  p->server.frames, p->server.conn ? conn_waiting(p->server.conn) : 0,
                  p->client.frames, p->client.conn ? conn_waiting(p->client.conn) : 0);
}

/* Lets that many rounds pass in which anything may happen. */
struct rounds {
    struct task task;
    struct pair *pair;
    unsigned left;
};

static inline void one_more(struct task *t)
{
    struct rounds *r = container_of(t, struct rounds, task);
    if (r->left-- == 0)
        loop_stop(r->pair->loop);
    else
        loop_post(r->pair->loop, t);
}

static inline void run_rounds(struct pair *p, unsigned n)
{
    struct rounds r = {.task.run = one_more, .pair = p, .left = n * 16};
    loop_post(p->loop, &r.task);
    loop_run(p->loop);
}

static inline void pair_start(struct pair *p, int tls)
{
    *p = (struct pair){.loop = loop_new("pair")};
    p->deadline.run = on_deadline;
    p->server.what = "server";
    p->client.what = "client";
    p->server.pair = p->client.pair = p;
    p->server_conf = p->client_conf =
        (struct conn_conf){.frame_max = 8 << 20, .write_high = 1 << 20};
    if (tls) {
        certs_make(&p->certs);
        ck_assert_int_eq(tls_server(&p->server_tls, &(struct tls_conf){.cert_file = p->certs.cert,
                                                                       .key_file = p->certs.key}),
                         ERR_OK);
        ck_assert_int_eq(
            tls_client(&p->client_tls, &(struct tls_conf){.trust_file = p->certs.cert}), ERR_OK);
        p->server_conf.tls = p->server_tls;
        p->client_conf.tls = p->client_tls;
        p->client_conf.tls_name = "localhost";
    }
    ck_assert_int_eq(listener_open(&p->listener, p->loop, "127.0.0.1", 0, on_accepted, p), ERR_OK);
}

static inline void pair_dial(struct pair *p)
{
    p->client.conn = conn_dial(p->loop, "127.0.0.1", listener_port(p->listener), &p->client_conf,
                               &handler, &p->client);
}

static inline void pair_stop(struct pair *p)
{
    conn_close(&p->client.conn);
    conn_close(&p->server.conn);
    listener_close(&p->listener);
    loop_drop(&p->loop);
    tls_drop(&p->server_tls);
    tls_drop(&p->client_tls);
    certs_remove(&p->certs);
}

static inline struct slice frame_of(size_t len, uint8_t fill)
{
    struct slab *s = slab_new(4 + len);
    uint8_t *at = slab_bytes(s);
    at[0] = (uint8_t)(len >> 24);
    at[1] = (uint8_t)(len >> 16);
    at[2] = (uint8_t)(len >> 8);
    at[3] = (uint8_t)len;
    for (size_t i = 0; i < len; i++)
        at[4 + i] = (uint8_t)(fill + i);
    return slice_take(&s, 4 + len);
}

/* What the receiver's sum must be after a frame_of(len, fill). */
static inline uint64_t sum_after(uint64_t sum, size_t len, uint8_t fill)
{
    for (size_t i = 0; i < len; i++)
        sum = sum * 31 + (uint8_t)(fill + i);
    return sum;
}

static inline bool server_has_all(struct pair *p)
{
    return p->server.frames >= p->until_frames;
}

static inline bool client_closed(struct pair *p)
{
    return p->client.closed > 0;
}

static inline bool server_closed(struct pair *p)
{
    return p->server.closed > 0;
}

#endif
