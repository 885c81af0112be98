#include <arpa/inet.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "common/conn.h"
#include "common/listener.h"
#include "common/log.h"
#include "common/mem.h"
#include "common/tls.h"
#include "tests/lib/suite.h"
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
};

#define PLAIN 0
#define TLS   1

static void count(struct end *e, struct slice frame)
{
    e->frames++;
    e->bytes += frame.len;
    for (size_t i = 0; i < frame.len; i++)
        e->sum = e->sum * 31 + frame.base[i];
}

static void on_frame(void *ctx, struct slice frame)
{
    struct end *e = ctx;
    count(e, frame);
    if (e->on_frame)
        e->on_frame(e, frame);
    else
        slice_drop(&frame);
}

static void on_opened(void *ctx)
{
    struct end *e = ctx;
    e->opened++;
}

static void on_drained(void *ctx)
{
    struct end *e = ctx;
    e->drained++;
}

static void on_closed(void *ctx, enum err why)
{
    struct end *e = ctx;
    e->closed++;
    e->why = why;
    e->conn = NULL;
}

static const struct conn_handler handler = {
    .opened = on_opened, .frame = on_frame, .drained = on_drained, .closed = on_closed};

static void on_accepted(void *ctx, int fd)
{
    struct pair *p = ctx;
    ck_assert_ptr_null(p->server.conn);
    p->server.conn = conn_accepted(p->loop, fd, &p->server_conf, &handler, &p->server);
}

static void on_deadline(struct timer *t)
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

static void watch(struct round_end *e)
{
    struct watcher *w = container_of(e, struct watcher, end);
    if (w->done(w->pair))
        loop_stop(w->pair->loop);
    else if (!w->pair->late)
        loop_at_round_end(w->pair->loop, &w->end);
}

static void run_until(struct pair *p, bool (*done)(struct pair *p))
{
    struct watcher w = {.end.run = watch, .pair = p, .done = done};
    loop_after(p->loop, &p->deadline, 20000000);
    loop_at_round_end(p->loop, &w.end);
    loop_run(p->loop);
    loop_cancel(p->loop, &p->deadline);
    ck_assert_msg(!p->late, "nothing happened in 20 s");
}

static void pair_start(struct pair *p, int tls)
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

static void pair_dial(struct pair *p)
{
    p->client.conn = conn_dial(p->loop, "127.0.0.1", listener_port(p->listener), &p->client_conf,
                               &handler, &p->client);
}

static void pair_stop(struct pair *p)
{
    conn_close(&p->client.conn);
    conn_close(&p->server.conn);
    listener_close(&p->listener);
    loop_drop(&p->loop);
    tls_drop(&p->server_tls);
    tls_drop(&p->client_tls);
    certs_remove(&p->certs);
}

static struct slice frame_of(size_t len, uint8_t fill)
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
static uint64_t sum_after(uint64_t sum, size_t len, uint8_t fill)
{
    for (size_t i = 0; i < len; i++)
        sum = sum * 31 + (uint8_t)(fill + i);
    return sum;
}

static bool server_has_all(struct pair *p)
{
    return p->server.frames >= p->until_frames;
}

static bool client_closed(struct pair *p)
{
    return p->client.closed > 0;
}

static bool server_closed(struct pair *p)
{
    return p->server.closed > 0;
}

START_TEST(frames_of_every_size_arrive_in_order)
{
    static const size_t sizes[] = {0,    1,     3,     4,     5,      100,     4092,
                                   4096, 65532, 65536, 65537, 300000, 1 << 20, 5 << 20};
    struct pair p;
    uint64_t sum = 0;
    pair_start(&p, _i);
    pair_dial(&p);
    for (unsigned round = 0; round < 20; round++)
        for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
            if (sizes[i] > 100000 && round > 1)
                continue;
            conn_send(p.client.conn, frame_of(sizes[i], (uint8_t)(round + i)));
            sum = sum_after(sum, sizes[i], (uint8_t)(round + i));
            p.until_frames++;
        }
    ck_assert_uint_gt(conn_waiting(p.client.conn), 6 << 20);
    run_until(&p, server_has_all);
    ck_assert_uint_eq(p.server.frames, p.until_frames);
    ck_assert_uint_eq(p.server.sum, sum);
    ck_assert_uint_eq(p.client.opened, 1);
    ck_assert_uint_eq(p.client.drained, 1);
    ck_assert_uint_eq(conn_waiting(p.client.conn), 0);
    pair_stop(&p);
}
END_TEST

START_TEST(a_plain_end_is_told_once_without_a_log_line)
{
    struct pair p;
    pair_start(&p, _i);
    pair_dial(&p);
    conn_send(p.client.conn, frame_of(10, 1));
    p.until_frames = 1;
    run_until(&p, server_has_all);
    conn_close(&p.server.conn);
    run_until(&p, client_closed);
    ck_assert_int_eq(p.client.why, ERR_CLOSED);
    ck_assert_uint_eq(p.client.closed, 1);
    pair_stop(&p);
}
END_TEST

START_TEST(a_frame_too_big_closes)
{
    struct pair p;
    pair_start(&p, _i);
    p.server_conf.frame_max = 100;
    pair_dial(&p);
    conn_send(p.client.conn, frame_of(100, 1));
    conn_send(p.client.conn, frame_of(101, 1));
    conn_send(p.client.conn, frame_of(1, 1));
    run_until(&p, server_closed);
    ck_assert_int_eq(p.server.why, ERR_TOO_BIG);
    ck_assert_uint_eq(p.server.frames, 1);
    pair_stop(&p);
}
END_TEST

int main(void)
{
    return suite_run("conn", (suite_case[]){
                                 SUITE_LOOP(frames_of_every_size_arrive_in_order, 2),
                                 SUITE_LOOP(a_plain_end_is_told_once_without_a_log_line, 2),
                                 SUITE_LOOP(a_frame_too_big_closes, 2),
                                 {0},
                             });
}
