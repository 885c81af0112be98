#include <arpa/inet.h>
#include <openssl/ssl.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "common/http.h"
#include "common/list.h"
#include "common/mem.h"
#include "common/tls.h"
#include "tests/lib/suite.h"
#include "tests/unit/common/certs.h"

/* A server on a loop of its own; the test is a blocking client, plain or TLS (_i). */
struct site {
    struct loop *loop;
    struct http_server *server;
    struct tls *tls;
    struct certs certs;
    struct http_request *held;     /* of /hold */
    struct http_request *long_one; /* of /long */
    unsigned pieces;
    bool left;
    SSL_CTX *client;
    unsigned connections_max;
    uint64_t patience_us;
};

static void echo(struct http_request *r)
{
    char text[4096];
    const char *key = http_query(r, "key"), *none = http_query(r, "none");
    const char *agent = http_header(r, "x-agent");
    const struct view body = http_body(r);
    snprintf(text, sizeof text, "%s %s key=%s none=%s agent=%s body=%.*s", http_method(r),
             http_path(r), key ? key : "-", none ? none : "-", agent ? agent : "-", (int)body.len,
             body.len ? (const char *)body.base : "");
    http_add_header(r, "X-Added", "yes");
    http_reply_text(r, 200, text);
}

enum { PIECES = 2000 };

/* One piece after the other was taken, until all were, or nobody is there. */
static void next_piece(void *ctx, bool gone)
{
    struct site *s = ctx;
    char text[1024];

    memset(text, 'x', sizeof text);
    s->left = gone;
    if (gone || s->pieces == PIECES) {
        http_reply_end(s->long_one);
        s->long_one = NULL;
        return;
    }
    s->pieces++;
    http_reply_chunk(s->long_one, view_of(text, sizeof text));
}

static void begin_long(struct site *s, struct http_request *r)
{
    s->long_one = r;
    s->pieces = 0;
    http_reply_begin(r, 200, "text/plain", next_piece, s);
    next_piece(s, false);
}

static void on_request(void *ctx, struct http_request *r)
{
    struct site *s = ctx;
    const char *path = http_path(r);
    if (strcmp(path, "/long") == 0) {
        begin_long(s, r);
        return;
    }
    if (strcmp(path, "/hold") == 0)
        s->held = r;
    else if (strcmp(path, "/release") == 0) {
        http_reply_text(s->held, 200, "held");
        s->held = NULL;
        http_reply(r, 204, NULL, (struct view){0});
    } else if (strcmp(path, "/reason") == 0)
        http_reply_reason(r, 409, "it \"has\" %d \xc3\xa9 \xff\xc3", 3);
    else
        echo(r);
}

static void open_site(void *ctx)
{
    struct site *s = ctx;
    const struct http_conf conf = {.host = "127.0.0.1",
                                   .tls = s->tls,
                                   .body_max = 1000,
                                   .connections_max = s->connections_max,
                                   .patience_us = s->patience_us};
    ck_assert_int_eq(http_open(&s->server, s->loop, &conf, on_request, s), ERR_OK);
}

static void close_site(void *ctx)
{
    struct site *s = ctx;
    http_close(&s->server);
    if (s->held) {
        ck_assert_str_eq(http_method(s->held), "");
        ck_assert_str_eq(http_path(s->held), "/");
        http_reply_text(s->held, 200, "nobody hears this");
    }
    s->held = NULL;
}

static void site_start_with(struct site *s, int tls, unsigned connections_max, uint64_t patience_us)
{
    *s = (struct site){
        .loop = loop_new("http"), .connections_max = connections_max, .patience_us = patience_us};
    if (tls) {
        certs_make(&s->certs);
        const struct tls_conf conf = {.cert_file = s->certs.cert, .key_file = s->certs.key};
        ck_assert_int_eq(tls_server(&s->tls, &conf), ERR_OK);
        s->client = SSL_CTX_new(TLS_client_method());
    }
    loop_start(s->loop);
    loop_call(s->loop, open_site, s);
}

static void site_start(struct site *s, int tls)
{
    site_start_with(s, tls, 0, 0);
}

static void site_stop(struct site *s)
{
    loop_call(s->loop, close_site, s);
    loop_drop(&s->loop);
    tls_drop(&s->tls);
    SSL_CTX_free(s->client);
    certs_remove(&s->certs);
}

struct wire {
    int fd;
    SSL *ssl;
};

static struct wire dial(struct site *s)
{
    struct sockaddr_in a = {.sin_family = AF_INET, .sin_port = htons(http_port(s->server))};
    struct wire w = {.fd = socket(AF_INET, SOCK_STREAM, 0)};
    a.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    ck_assert_int_eq(connect(w.fd, (struct sockaddr *)&a, sizeof a), 0);
    if (s->client) {
        w.ssl = SSL_new(s->client);
        SSL_set_fd(w.ssl, w.fd);
        ck_assert_int_eq(SSL_connect(w.ssl), 1);
    }
    return w;
}

static void say(struct wire *w, const char *text)
{
    const int n =
        w->ssl ? SSL_write(w->ssl, text, (int)strlen(text)) : (int)write(w->fd, text, strlen(text));
    ck_assert_int_eq(n, (int)strlen(text));
}

/* All that comes until the server closes. */
static char *hear(struct wire *w)
{
    static char text[65536];
    size_t len = 0;
    for (int n = 1; n > 0 && len<sizeof text - 1; len += n> 0 ? (size_t)n : 0)
        n = w->ssl ? SSL_read(w->ssl, text + len, (int)(sizeof text - 1 - len))
                   : (int)read(w->fd, text + len, sizeof text - 1 - len);
    text[len] = '\0';
    SSL_free(w->ssl);
    close(w->fd);
    return text;
}

static char *ask(struct site *s, const char *request)
{
    struct wire w = dial(s);
    say(&w, request);
    return hear(&w);
}

static void expect_in(const char *text, const char *part)
{
    ck_assert_msg(strstr(text, part) != NULL, "no \"%s\" in: %s", part, text);
}

START_TEST(a_request_is_seen_whole)
{
    struct site s;
    site_start(&s, _i);
    const char *got = ask(&s, "PUT /admin/v2/a%2Fb?key=x%20y&other=1 HTTP/1.1\r\nHost: h\r\n"
                              "X-Agent: me\r\nContent-Length: 4\r\nConnection: close\r\n\r\nbody");
    expect_in(got, "HTTP/1.1 200 ");
    expect_in(got, "X-Added: yes\r\n");
    expect_in(got, "Content-Type: text/plain; charset=utf-8\r\n");
    expect_in(got, "\r\n\r\nPUT /admin/v2/a%2Fb key=x y none=- agent=me body=body");
    got = ask(&s, "DELETE / HTTP/1.0\r\n\r\n");
    expect_in(got, "DELETE / key=- none=- agent=- body=");
    site_stop(&s);
}
END_TEST

START_TEST(errors_are_json_with_a_reason)
{
    struct site s;
    site_start(&s, _i);
    const char *got = ask(&s, "GET /reason HTTP/1.0\r\n\r\n");
    expect_in(got, " 409 ");
    expect_in(got, "Content-Type: application/json\r\n");
    expect_in(got, "\r\n\r\n{\"reason\":\"it \\\"has\\\" 3 \xc3\xa9 ??\"}");
    site_stop(&s);
}
END_TEST

struct glance {
    struct site *site;
    bool held;
};

static void look(void *ctx)
{
    struct glance *g = ctx;
    g->held = g->site->held != NULL;
}

static void wait_until_held(struct site *s)
{
    for (struct glance g = {.site = s}; !g.held;)
        loop_call(s->loop, look, &g);
}

START_TEST(an_answer_may_come_later)
{
    struct site s;
    site_start(&s, _i);
    struct wire first = dial(&s), gone = dial(&s);
    say(&first, "GET /hold HTTP/1.0\r\n\r\n");
    wait_until_held(&s);
    expect_in(ask(&s, "GET /release HTTP/1.0\r\n\r\n"), " 204 ");
    expect_in(hear(&first), "held");
    say(&gone, "GET /hold HTTP/1.0\r\n\r\n");
    wait_until_held(&s);
    site_stop(&s);
    hear(&gone);
}
END_TEST

/* A client that leaves before its answer costs nothing but the answer. */
START_TEST(a_client_may_leave_first)
{
    struct site s;
    site_start(&s, _i);
    struct wire w = dial(&s);
    say(&w, "GET /hold HTTP/1.0\r\n\r\n");
    wait_until_held(&s);
    SSL_free(w.ssl);
    close(w.fd);
    expect_in(ask(&s, "GET /other HTTP/1.0\r\n\r\n"), " 200 ");
    expect_in(ask(&s, "GET /release HTTP/1.0\r\n\r\n"), " 204 ");
    site_stop(&s);
}
END_TEST

START_TEST(what_is_too_big_is_refused)
{
    struct site s;
    site_start(&s, _i);
    char *request = mem_alloc(80000);
    snprintf(request, 80000, "POST / HTTP/1.0\r\nContent-Length: 1001\r\n\r\n");
    expect_in(ask(&s, request), " 413 ");
    const char *got = ask(&s, "BLURB / HTTP/1.0\r\n\r\n");
    expect_in(got, " 501 ");
    mem_free(request);
    site_stop(&s);
}
END_TEST

/* Nothing, half a request, or one byte more from time to time: none is waited for for ever; one
 * whose answer takes long is. */
START_TEST(who_asks_nothing_whole_is_cut_off)
{
    struct site s;
    site_start_with(&s, _i, 0, 300000);
    struct wire mute = dial(&s), half = dial(&s), slow = dial(&s), held = dial(&s);
    say(&half, "GET / HTTP/1.1\r\nHost: h\r\n");
    say(&held, "GET /hold HTTP/1.0\r\n\r\n");
    wait_until_held(&s);
    for (int i = 0; i < 12; i++, usleep(50000))
        say(&slow, i ? "x" : "GET /");
    ck_assert_str_eq(hear(&mute), "");
    ck_assert_str_eq(hear(&half), "");
    ck_assert_str_eq(hear(&slow), "");
    expect_in(ask(&s, "GET /release HTTP/1.0\r\n\r\n"), " 204 ");
    expect_in(hear(&held), "held");
    site_stop(&s);
}
END_TEST

START_TEST(so_many_connections_and_no_more)
{
    struct site s;
    site_start_with(&s, 0, 2, 0);
    struct wire one = dial(&s), two = dial(&s), three = dial(&s);
    const struct timeval short_while = {.tv_usec = 300000}, long_while = {.tv_sec = 20};
    char byte;
    say(&three, "GET /third HTTP/1.0\r\n\r\n");
    setsockopt(three.fd, SOL_SOCKET, SO_RCVTIMEO, &short_while, sizeof short_while);
    ck_assert_int_eq((int)recv(three.fd, &byte, 1, MSG_PEEK), -1);
    close(one.fd);
    setsockopt(three.fd, SOL_SOCKET, SO_RCVTIMEO, &long_while, sizeof long_while);
    expect_in(hear(&three), "GET /third");
    close(two.fd);
    site_stop(&s);
}
END_TEST

START_TEST(segments_are_decoded)
{
    static const char *const bad[] = {"a%00b", "%", "%1", "%zz", "%2"};
    char *text = http_decode("my%2Ftopic+x%C3%a9");
    ck_assert_str_eq(text, "my/topic+x\xc3\xa9");
    mem_free(text);
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++)
        ck_assert_ptr_null(http_decode(bad[i]));
}
END_TEST

START_TEST(a_long_answer_comes_in_pieces)
{
    struct site s;
    site_start(&s, _i);
    struct wire w = dial(&s);
    char some[8192];
    size_t x = 0;
    say(&w, "GET /long HTTP/1.1\r\nHost: h\r\nConnection: close\r\n\r\n");
    for (int n;
         (n = w.ssl ? SSL_read(w.ssl, some, sizeof some) : (int)read(w.fd, some, sizeof some)) > 0;)
        for (int i = 0; i < n; i++)
            x += some[i] == 'x';
    SSL_free(w.ssl);
    close(w.fd);
    ck_assert_uint_eq(x, (size_t)PIECES * 1024 + 1); /* one in "text" */
    site_stop(&s);
}
END_TEST

static void has_left(void *ctx)
{
    struct site *s = ctx;
    *(bool *)s->held = s->left;
}

/* Whoever does not read on holds up one chunk, and who goes is noticed. */
START_TEST(a_long_answer_may_lose_its_reader)
{
    struct site s;
    bool left = false;
    site_start(&s, _i);
    struct wire w = dial(&s);
    char some[100];
    say(&w, "GET /long HTTP/1.1\r\nHost: h\r\n\r\n");
    ck_assert_int_gt(
        w.ssl ? SSL_read(w.ssl, some, sizeof some) : (int)read(w.fd, some, sizeof some), 0);
    SSL_free(w.ssl);
    close(w.fd);
    while (!left) {
        s.held = (struct http_request *)(void *)&left;
        loop_call(s.loop, has_left, &s);
        s.held = NULL;
        usleep(1000);
    }
    site_stop(&s);
}
END_TEST

static void open_taken(void *ctx)
{
    struct site *s = ctx;
    struct http_server *other = NULL;
    const struct http_conf conf = {.host = "127.0.0.1", .port = http_port(s->server)};
    ck_assert_int_eq(http_open(&other, s->loop, &conf, on_request, s), ERR_IO);
}

START_TEST(a_taken_port_is_an_error)
{
    struct site s;
    site_start(&s, 0);
    loop_call(s.loop, open_taken, &s);
    site_stop(&s);
}
END_TEST

int main(void)
{
    return suite_run("http", (suite_case[]){
                                 SUITE_LOOP(a_request_is_seen_whole, 2),
                                 SUITE_LOOP(errors_are_json_with_a_reason, 2),
                                 SUITE_LOOP(an_answer_may_come_later, 2),
                                 SUITE_LOOP(a_client_may_leave_first, 2),
                                 SUITE_LOOP(what_is_too_big_is_refused, 2),
                                 SUITE_LOOP(who_asks_nothing_whole_is_cut_off, 2),
                                 SUITE_CASE(so_many_connections_and_no_more),
                                 SUITE_LOOP(a_long_answer_comes_in_pieces, 2),
                                 SUITE_LOOP(a_long_answer_may_lose_its_reader, 2),
                                 SUITE_CASE(segments_are_decoded),
                                 SUITE_CASE(a_taken_port_is_an_error),
                                 {0},
                             });
}
