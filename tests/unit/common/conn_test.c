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
#include "common/rng.h"
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
    if (p->door != TO_SERVER) {
        if (p->door == TO_NOBODY)
            close(fd);
        p->held_fd = fd;
        return;
    }
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

/* Lets that many rounds pass in which anything may happen. */
struct rounds {
    struct task task;
    struct pair *pair;
    unsigned left;
};

static void one_more(struct task *t)
{
    struct rounds *r = container_of(t, struct rounds, task);
    if (r->left-- == 0)
        loop_stop(r->pair->loop);
    else
        loop_post(r->pair->loop, t);
}

static void run_rounds(struct pair *p, unsigned n)
{
    struct rounds r = {.task.run = one_more, .pair = p, .left = n * 16};
    loop_post(p->loop, &r.task);
    loop_run(p->loop);
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

START_TEST(a_plain_end_is_told_once)
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

/* Both ends send frames of random sizes and pause at random; all of it arrives in order. */
struct talk {
    uint64_t seed;
    uint64_t sums[2]; /* what server and client must have seen */
    unsigned sent;
};

static struct talk talk;

struct nap {
    struct timer timer;
    struct end *end;
};

static void wake_up(struct timer *t)
{
    struct nap *n = container_of(t, struct nap, timer);
    if (n->end->conn)
        conn_resume(n->end->conn);
    mem_free(n);
}

static void nap(struct end *e)
{
    struct nap *n = mem_new(struct nap);
    n->timer.run = wake_up;
    n->end = e;
    conn_pause(e->conn);
    conn_pause(e->conn);
    conn_resume(e->conn);
    loop_after(e->pair->loop, &n->timer, rng_below(&talk.seed, 300));
}

static void answer_and_nap(struct end *e, struct slice frame)
{
    const size_t len =
        rng_below(&talk.seed, 10) ? rng_below(&talk.seed, 2000) : rng_below(&talk.seed, 200000);
    slice_drop(&frame);
    if (talk.sent < 2000) {
        conn_send(e->conn, frame_of(len, (uint8_t)talk.sent));
        struct end *other = e == &e->pair->server ? &e->pair->client : &e->pair->server;
        uint64_t *sum = &talk.sums[other == &e->pair->client];
        *sum = sum_after(*sum, len, (uint8_t)talk.sent++);
    }
    if (rng_below(&talk.seed, 8) == 0)
        nap(e);
}

static bool all_said(struct pair *p)
{
    return p->server.frames + p->client.frames == talk.sent;
}

START_TEST(two_talk_and_pause)
{
    struct pair p;
    talk = (struct talk){.seed = 42};
    pair_start(&p, _i);
    p.server.on_frame = p.client.on_frame = answer_and_nap;
    pair_dial(&p);
    for (unsigned i = 0; i < 50; i++) {
        conn_send(p.client.conn, frame_of(i, (uint8_t)i));
        talk.sums[0] = sum_after(talk.sums[0], i, (uint8_t)i);
        talk.sent++;
    }
    run_until(&p, all_said);
    ck_assert_uint_ge(talk.sent, 2000);
    ck_assert_uint_eq(p.server.sum, talk.sums[0]);
    ck_assert_uint_eq(p.client.sum, talk.sums[1]);
    run_rounds(&p, 1000);
    pair_stop(&p);
}
END_TEST

static void close_at_third(struct end *e, struct slice frame)
{
    slice_drop(&frame);
    if (e->frames == 3)
        conn_close(&e->conn);
}

/* Ten frames lie in one read; the third one closes: the others must not come. */
START_TEST(closing_inside_a_frame)
{
    struct pair p;
    pair_start(&p, _i);
    p.server.on_frame = close_at_third;
    pair_dial(&p);
    for (unsigned i = 0; i < 10; i++)
        conn_send(p.client.conn, frame_of(20, 1));
    run_until(&p, client_closed);
    ck_assert_uint_eq(p.server.frames, 3);
    ck_assert_uint_eq(p.server.closed, 0);
    pair_stop(&p);
}
END_TEST

static void answer_and_finish(struct end *e, struct slice frame)
{
    slice_drop(&frame);
    for (unsigned i = 0; i < 3; i++)
        conn_send(e->conn, frame_of(1 << 20, 3));
    conn_finish(&e->conn);
    ck_assert_ptr_null(e->conn);
}

/* What was sent before conn_finish() arrives, though the peer has more to say. */
START_TEST(finishing_inside_a_frame)
{
    struct pair p;
    pair_start(&p, _i);
    p.server.on_frame = answer_and_finish;
    pair_dial(&p);
    for (unsigned i = 0; i < 3; i++)
        conn_send(p.client.conn, frame_of(300000, 1));
    run_until(&p, client_closed);
    ck_assert_uint_eq(p.client.frames, 3);
    ck_assert_uint_eq(p.client.bytes, 3 << 20);
    ck_assert_int_eq(p.client.why, ERR_CLOSED);
    ck_assert_uint_eq(p.server.frames, 1);
    ck_assert_uint_eq(p.server.closed, 0);
    pair_stop(&p);
}
END_TEST

/* Nobody reads at the other end: what is still to be written ends with the loop. */
START_TEST(finishing_ends_with_the_loop)
{
    struct pair p;
    pair_start(&p, _i);
    pair_dial(&p);
    conn_send(p.client.conn, frame_of(1, 1));
    p.until_frames = 1;
    run_until(&p, server_has_all);
    conn_pause(p.server.conn);
    for (unsigned i = 0; i < 20; i++)
        conn_send(p.client.conn, frame_of(1 << 20, 3));
    conn_finish(&p.client.conn);
    run_rounds(&p, 5);
    ck_assert_uint_eq(p.server.closed, 0);
    pair_stop(&p);
    ck_assert_uint_eq(slab_bytes_in_use(), 0);
}
END_TEST

static void answer_much(struct end *e, struct slice frame)
{
    slice_drop(&frame);
    conn_send(e->conn, frame_of(100000, 7));
}

static bool server_is_choked(struct pair *p)
{
    return p->server.conn && conn_waiting(p->server.conn) > p->server_conf.write_high;
}

static bool client_has_all(struct pair *p)
{
    return p->client.frames == 300;
}

/* A peer that asks for much and reads nothing gets write_high queued, and not more. */
START_TEST(a_peer_that_does_not_read_is_not_read)
{
    struct pair p;
    pair_start(&p, _i);
    p.server.on_frame = answer_much;
    pair_dial(&p);
    conn_pause(p.client.conn);
    for (unsigned i = 0; i < 300; i++)
        conn_send(p.client.conn, frame_of(20, 1));
    run_until(&p, server_is_choked);
    run_rounds(&p, 100);
    ck_assert_uint_le(conn_waiting(p.server.conn), p.server_conf.write_high + 100004);
    ck_assert_uint_lt(p.server.frames, 300);
    conn_resume(p.client.conn);
    run_until(&p, client_has_all);
    ck_assert_uint_eq(p.server.frames, 300);
    ck_assert_uint_gt(p.server.drained, 0);
    pair_stop(&p);
}
END_TEST

START_TEST(chains_and_borrowed_bytes_are_sent)
{
    struct pair p;
    struct chain c = {0};
    uint8_t head[4] = {0, 0, 0, 6};
    pair_start(&p, _i);
    pair_dial(&p);
    conn_send(p.client.conn, (struct slice){.base = head, .len = 4});
    head[3] = 99; /* what was borrowed has been copied */
    chain_push(&c, slice_copy("abc", 3));
    chain_push(&c, slice_copy("", 0));
    chain_push(&c, slice_copy("\1\2\3", 3));
    conn_send_chain(p.client.conn, &c);
    ck_assert_uint_eq(c.n, 0);
    ck_assert_uint_eq(conn_waiting(p.client.conn), 10);
    p.until_frames = 1;
    run_until(&p, server_has_all);
    ck_assert_uint_eq(p.server.bytes, 6);
    ck_assert_int_eq(strncmp(conn_peer(p.server.conn), "127.0.0.1:", 10), 0);
    pair_stop(&p);
}
END_TEST

/* ---- what goes wrong --------------------------------------------------------------------------
 */

static struct captured captured;

static void expect_said(const char *text, const char *what)
{
    ck_assert_msg(strstr(text, what) != NULL, "no \"%s\" in: %s", what, text);
}

/* Dials and returns what the log said until the client was closed. */
static const char *dial_in_vain(struct pair *p, const char *host, uint16_t port, enum err why)
{
    capture_start(&captured);
    p->client.conn = conn_dial(p->loop, host, port, &p->client_conf, &handler, &p->client);
    conn_send(p->client.conn, frame_of(10, 1));
    ck_assert_uint_eq(p->client.closed, 0);
    run_until(p, client_closed);
    const char *text = capture_end(&captured);
    ck_assert_uint_eq(p->client.closed, 1);
    ck_assert_uint_eq(p->client.opened, 0);
    ck_assert_msg(p->client.why == why, "%s, not %s", err_name(p->client.why), err_name(why));
    p->client = (struct end){.what = "client", .pair = p};
    return text;
}

START_TEST(nobody_listens)
{
    struct pair p;
    pair_start(&p, _i);
    const uint16_t port = listener_port(p.listener);
    listener_close(&p.listener);
    expect_said(dial_in_vain(&p, "127.0.0.1", port, ERR_CLOSED), "conn.closed peer=127.0.0.1:");
    expect_said(dial_in_vain(&p, "localhost", port, ERR_CLOSED),
                "reason=\"connect: ECONNREFUSED\" err=CLOSED");
    expect_said(dial_in_vain(&p, "no..such", port, ERR_NOT_FOUND), "reason=\"no such host\"");
    pair_stop(&p);
}
END_TEST

START_TEST(closing_while_dialling)
{
    struct pair p;
    pair_start(&p, _i);
    p.door = TO_NOBODY;
    static const char *const hosts[] = {"127.0.0.1", "localhost", "no..such"};
    for (unsigned i = 0; i < 60; i++) {
        p.client.conn = conn_dial(p.loop, hosts[i % 3], listener_port(p.listener), &p.client_conf,
                                  &handler, &p.client);
        conn_send(p.client.conn, frame_of(10, 1));
        if (i % 2)
            conn_pause(p.client.conn);
        if (i % 4 == 3)
            conn_resume(p.client.conn);
        if (i < 30)
            run_rounds(&p, i % 3);
        conn_close(&p.client.conn);
        conn_close(&p.client.conn);
    }
    listener_close(&p.listener);
    pair_stop(&p);
}
END_TEST

START_TEST(localhost_is_found)
{
    struct pair p;
    pair_start(&p, _i);
    p.client.conn = conn_dial(p.loop, "localhost", listener_port(p.listener), &p.client_conf,
                              &handler, &p.client);
    conn_send(p.client.conn, frame_of(3, 1));
    p.until_frames = 1;
    run_until(&p, server_has_all);
    pair_stop(&p);
}
END_TEST

/* A socket of the test's own, without any manners. */
static int raw_dial(struct pair *p)
{
    struct sockaddr_in a = {.sin_family = AF_INET, .sin_port = htons(listener_port(p->listener))};
    const int fd = socket(AF_INET, SOCK_STREAM, 0);
    a.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    ck_assert_int_eq(connect(fd, (struct sockaddr *)&a, sizeof a), 0);
    return fd;
}

static bool server_is_there(struct pair *p)
{
    return p->server.conn != NULL;
}

START_TEST(bytes_may_come_one_by_one)
{
    struct pair p;
    static const uint8_t bytes[] = {0, 0, 0, 2, 5, 6, 0, 0, 0, 0, 0, 0, 0, 1, 9};
    static const unsigned frames[] = {0, 0, 0, 0, 0, 1, 1, 1, 1, 2, 2, 2, 2, 2, 3};
    pair_start(&p, PLAIN);
    const int fd = raw_dial(&p);
    for (size_t i = 0; i < sizeof bytes; i++) {
        ck_assert_int_eq(write(fd, bytes + i, 1), 1);
        p.until_frames = frames[i];
        run_until(&p, frames[i] ? server_has_all : server_is_there);
        run_rounds(&p, 3);
        ck_assert_uint_eq(p.server.frames, frames[i]);
    }
    ck_assert_uint_eq(p.server.sum, (5 * 31 + 6) * 31 + 9);
    close(fd);
    run_until(&p, server_closed);
    pair_stop(&p);
}
END_TEST

START_TEST(an_end_inside_a_frame_is_told)
{
    static const char *const starts[] = {"\0\0", "\0\0\0\5ab"};
    static const ssize_t lens[] = {2, 6};
    struct pair p;
    pair_start(&p, PLAIN);
    const int fd = raw_dial(&p);
    ck_assert_int_eq(write(fd, starts[_i], (size_t)lens[_i]), lens[_i]);
    close(fd);
    capture_start(&captured);
    run_until(&p, server_closed);
    expect_said(capture_end(&captured), "reason=\"ended inside a frame\" err=CLOSED");
    ck_assert_int_eq(p.server.why, ERR_CLOSED);
    pair_stop(&p);
}
END_TEST

START_TEST(a_plain_end_is_silent_and_a_reset_is_not)
{
    struct linger hard = {.l_onoff = 1};
    struct pair p;
    pair_start(&p, PLAIN);
    const int fd = raw_dial(&p);
    run_until(&p, server_is_there);
    if (_i)
        setsockopt(fd, SOL_SOCKET, SO_LINGER, &hard, sizeof hard);
    close(fd);
    capture_start(&captured);
    run_until(&p, server_closed);
    const char *text = capture_end(&captured);
    if (_i)
        expect_said(text, "conn.closed peer=127.0.0.1:");
    else
        ck_assert_str_eq(text, "");
    pair_stop(&p);
}
END_TEST

/* ---- TLS only -----------------------------------------------------------------------------------
 */

START_TEST(garbage_instead_of_a_handshake)
{
    struct pair p;
    pair_start(&p, TLS);
    const int fd = raw_dial(&p);
    ck_assert_int_eq(write(fd, "GET / HTTP/1.0\r\n\r\n", 18), 18);
    capture_start(&captured);
    run_until(&p, server_closed);
    expect_said(capture_end(&captured), "conn.closed peer=127.0.0.1:");
    close(fd);
    pair_stop(&p);
}
END_TEST

START_TEST(silence_instead_of_a_handshake)
{
    struct pair p;
    pair_start(&p, TLS);
    p.server_conf.dial_timeout_us = 30000;
    const int fd = raw_dial(&p);
    run_until(&p, server_closed);
    ck_assert_int_eq(p.server.why, ERR_TIMEOUT);
    close(fd);
    p.door = HELD;
    p.client_conf.dial_timeout_us = 30000;
    expect_said(dial_in_vain(&p, "127.0.0.1", listener_port(p.listener), ERR_TIMEOUT),
                "reason=\"handshake: no answer\"");
    close(p.held_fd);
    pair_stop(&p);
}
END_TEST

static void use_client(struct pair *p, const struct tls_conf *conf)
{
    tls_drop(&p->client_tls);
    ck_assert_int_eq(tls_client(&p->client_tls, conf), ERR_OK);
    p->client_conf.tls = p->client_tls;
}

START_TEST(a_certificate_must_be_trusted_and_right)
{
    struct pair p;
    struct certs other;
    pair_start(&p, TLS);
    certs_make(&other);
    p.client_conf.tls_name = "elsewhere";
    expect_said(dial_in_vain(&p, "127.0.0.1", listener_port(p.listener), ERR_UNAUTHORIZED),
                "ostname mismatch");
    conn_close(&p.server.conn);
    use_client(&p, &(struct tls_conf){.trust_file = other.cert});
    p.client_conf.tls_name = "127.0.0.1";
    expect_said(dial_in_vain(&p, "127.0.0.1", listener_port(p.listener), ERR_UNAUTHORIZED),
                "conn.closed");
    conn_close(&p.server.conn);
    use_client(&p, &(struct tls_conf){.insecure = true});
    p.client_conf.tls_name = "elsewhere";
    p.server.frames = 0;
    pair_dial(&p);
    conn_send(p.client.conn, frame_of(3, 1));
    p.until_frames = 1;
    run_until(&p, server_has_all);
    certs_remove(&other);
    pair_stop(&p);
}
END_TEST

static void use_server(struct pair *p, const struct tls_conf *conf)
{
    tls_drop(&p->server_tls);
    ck_assert_int_eq(tls_server(&p->server_tls, conf), ERR_OK);
    p->server_conf.tls = p->server_tls;
}

START_TEST(a_client_may_have_to_show_a_certificate)
{
    struct pair p;
    pair_start(&p, TLS);
    use_server(&p, &(struct tls_conf){.cert_file = p.certs.cert,
                                      .key_file = p.certs.key,
                                      .trust_file = p.certs.cert,
                                      .require_peer_cert = true});
    pair_dial(&p);
    run_until(&p, client_closed);
    ck_assert_uint_eq(p.server.frames, 0);
    conn_close(&p.server.conn);
    use_client(&p, &(struct tls_conf){.cert_file = p.certs.cert,
                                      .key_file = p.certs.key,
                                      .trust_file = p.certs.cert});
    p.client.closed = 0;
    pair_dial(&p);
    conn_send(p.client.conn, frame_of(3, 1));
    p.until_frames = 1;
    run_until(&p, server_has_all);
    pair_stop(&p);
}
END_TEST

START_TEST(an_application_protocol_is_agreed_on)
{
    struct pair p;
    pair_start(&p, TLS);
    use_server(&p, &(struct tls_conf){
                       .cert_file = p.certs.cert, .key_file = p.certs.key, .alpn = "pulsar"});
    use_client(&p, &(struct tls_conf){.trust_file = p.certs.cert, .alpn = "h2"});
    dial_in_vain(&p, "127.0.0.1", listener_port(p.listener), ERR_IO);
    conn_close(&p.server.conn);
    use_client(&p, &(struct tls_conf){.trust_file = p.certs.cert, .alpn = "pulsar"});
    pair_dial(&p);
    conn_send(p.client.conn, frame_of(3, 1));
    p.until_frames = 1;
    run_until(&p, server_has_all);
    pair_stop(&p);
}
END_TEST

START_TEST(bad_certificate_files_are_named)
{
    struct certs a, b;
    struct tls *t = NULL;
    certs_make(&a);
    certs_make(&b);
    capture_start(&captured);
    ck_assert_int_eq(tls_server(&t, &(struct tls_conf){.cert_file = "/no/such.pem"}),
                     ERR_BAD_CONFIG);
    ck_assert_ptr_null(t);
    ck_assert_int_eq(tls_server(&t, &(struct tls_conf){.cert_file = a.cert, .key_file = b.key}),
                     ERR_BAD_CONFIG);
    ck_assert_int_eq(tls_server(&t, &(struct tls_conf){0}), ERR_BAD_CONFIG);
    ck_assert_int_eq(tls_client(&t, &(struct tls_conf){.trust_file = a.key}), ERR_BAD_CONFIG);
    const char *text = capture_end(&captured);
    expect_said(text, "tls.refused what=certificate file=/no/such.pem");
    expect_said(text, b.key);
    expect_said(text, "file=\"(none given)\"");
    expect_said(text, a.key);
    certs_remove(&a);
    certs_remove(&b);
}
END_TEST

START_TEST(a_taken_port_is_an_error_that_names_it)
{
    struct pair p;
    struct listener *other = NULL;
    char port[16];
    pair_start(&p, PLAIN);
    snprintf(port, sizeof port, "port=%u", listener_port(p.listener));
    capture_start(&captured);
    ck_assert_int_eq(
        listener_open(&other, p.loop, "127.0.0.1", listener_port(p.listener), on_accepted, &p),
        ERR_IO);
    ck_assert_int_eq(listener_open(&other, p.loop, "no..such", 0, on_accepted, &p), ERR_IO);
    const char *text = capture_end(&captured);
    expect_said(text, port);
    expect_said(text, "errno=EADDRINUSE");
    expect_said(text, "host=no..such");
    ck_assert_int_eq(listener_open(&other, p.loop, "", 0, on_accepted, &p), ERR_OK);
    listener_close(&other);
    listener_close(&other);
    pair_stop(&p);
}
END_TEST

int main(void)
{
    return suite_run("conn", (suite_case[]){
                                 SUITE_LOOP(frames_of_every_size_arrive_in_order, 2),
                                 SUITE_LOOP(a_plain_end_is_told_once, 2),
                                 SUITE_LOOP(a_frame_too_big_closes, 2),
                                 SUITE_LOOP(two_talk_and_pause, 2),
                                 SUITE_LOOP(closing_inside_a_frame, 2),
                                 SUITE_LOOP(finishing_inside_a_frame, 2),
                                 SUITE_LOOP(finishing_ends_with_the_loop, 2),
                                 SUITE_LOOP(a_peer_that_does_not_read_is_not_read, 2),
                                 SUITE_LOOP(chains_and_borrowed_bytes_are_sent, 2),
                                 SUITE_LOOP(nobody_listens, 2),
                                 SUITE_LOOP(closing_while_dialling, 2),
                                 SUITE_LOOP(localhost_is_found, 2),
                                 SUITE_CASE(bytes_may_come_one_by_one),
                                 SUITE_LOOP(an_end_inside_a_frame_is_told, 2),
                                 SUITE_LOOP(a_plain_end_is_silent_and_a_reset_is_not, 2),
                                 SUITE_CASE(garbage_instead_of_a_handshake),
                                 SUITE_CASE(silence_instead_of_a_handshake),
                                 SUITE_CASE(a_certificate_must_be_trusted_and_right),
                                 SUITE_CASE(a_client_may_have_to_show_a_certificate),
                                 SUITE_CASE(an_application_protocol_is_agreed_on),
                                 SUITE_CASE(bad_certificate_files_are_named),
                                 SUITE_CASE(a_taken_port_is_an_error_that_names_it),
                                 {0},
                             });
}
