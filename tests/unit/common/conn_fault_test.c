#include <arpa/inet.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "tests/unit/common/conn_pair.h"

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

static void expect_certificate(struct pair *p, const struct certs *c)
{
    use_client(p, &(struct tls_conf){.trust_file = c->cert});
    p->server.frames = 0;
    pair_dial(p);
    conn_send(p->client.conn, frame_of(3, 1));
    p->until_frames = 1;
    run_until(p, server_has_all);
    conn_close(&p->client.conn);
    conn_close(&p->server.conn);
}

static void replace(const struct certs *old, const struct certs *new)
{
    ck_assert_int_eq(rename(new->key, old->key), 0);
    ck_assert_int_eq(rename(new->cert, old->cert), 0);
}

START_TEST(renewed_files_are_used)
{
    struct pair p;
    struct certs next, third;
    bool renewed;

    pair_start(&p, TLS);
    certs_make(&next);
    certs_make(&third);
    expect_certificate(&p, &p.certs);
    ck_assert_int_eq(tls_renew(p.server_tls, &renewed), ERR_OK);
    ck_assert(!renewed);
    /* The key of another: what there was stays, and the next try is a real one. */
    ck_assert_int_eq(rename(third.key, p.certs.key), 0);
    capture_start(&captured);
    for (unsigned i = 0; i < 2; i++)
        ck_assert_int_eq(tls_renew(p.server_tls, &renewed), ERR_BAD_CONFIG);
    expect_said(capture_end(&captured), p.certs.key);
    ck_assert(!renewed);
    expect_certificate(&p, &p.certs);
    replace(&p.certs, &next);
    ck_assert_int_eq(tls_renew(p.server_tls, &renewed), ERR_OK);
    ck_assert(renewed);
    expect_certificate(&p, &p.certs);
    ck_assert_int_eq(unlink(p.certs.cert), 0);
    capture_start(&captured);
    ck_assert_int_eq(tls_renew(p.server_tls, &renewed), ERR_BAD_CONFIG);
    expect_said(capture_end(&captured), "No such file");
    certs_remove(&next);
    certs_remove(&third);
    pair_stop(&p);
}
END_TEST

START_TEST(a_server_shows_no_certificate_out_of_its_time)
{
    static const struct {
        long from, to;
        const char *why;
    } times[] = {{-3600, -60, "it has expired"}, {3600, 7200, "it is not valid yet"}};
    struct certs c;
    struct tls *t = NULL;

    certs_make_for(&c, times[_i].from, times[_i].to);
    capture_start(&captured);
    ck_assert_int_eq(tls_server(&t, &(struct tls_conf){.cert_file = c.cert, .key_file = c.key}),
                     ERR_BAD_CONFIG);
    const char *text = capture_end(&captured);
    expect_said(text, times[_i].why);
    expect_said(text, c.cert);
    certs_remove(&c);
}
END_TEST

START_TEST(protocols_and_ciphers_are_chosen_by_name)
{
    static const struct {
        const char *protocols, *ciphers, *refused; /* NULL: it is taken */
    } asked[] = {
        {"TLSv1.3", NULL, NULL},
        {" TLSv1.3, TLSv1.2 ,", "", NULL},
        {"TLSv1.2,TLSv1.1", NULL, "value=TLSv1.1"},
        {"SSLv3", NULL, "value=SSLv3"},
        {NULL, "TLS_AES_128_GCM_SHA256:ECDHE-ECDSA-AES128-GCM-SHA256", NULL},
        {NULL, "TLS_ECDHE_ECDSA_WITH_AES_256_GCM_SHA384", NULL},
        {NULL, "TLS_AES_128_GCM_SHA257", "value=TLS_AES_128_GCM_SHA257"},
        {NULL, "ECDHE-ECDSA-AES128-GCM-SHA256,nothing", "value=nothing"},
        {"TLSv1.3", "ECDHE-ECDSA-AES128-GCM-SHA256", "none of them is of the protocols"},
        {"TLSv1.2", "TLS_AES_128_GCM_SHA256", "none of them is of the protocols"},
    };
    struct certs c;

    certs_make(&c);
    for (unsigned i = 0; i < sizeof asked / sizeof *asked; i++) {
        struct tls *t = NULL;
        capture_start(&captured);
        const enum err err = tls_server(&t, &(struct tls_conf){.cert_file = c.cert,
                                                               .key_file = c.key,
                                                               .protocols = asked[i].protocols,
                                                               .ciphers = asked[i].ciphers});
        const char *text = capture_end(&captured);
        ck_assert_msg(err == (asked[i].refused ? ERR_BAD_CONFIG : ERR_OK), "%u: %s", i, text);
        if (asked[i].refused)
            expect_said(text, asked[i].refused);
        tls_drop(&t);
    }
    certs_remove(&c);
}
END_TEST

START_TEST(a_certificate_that_is_asked_for_may_be_missing_but_not_untrusted)
{
    struct pair p;
    struct certs other;

    pair_start(&p, TLS);
    certs_make(&other);
    use_server(&p, &(struct tls_conf){.cert_file = p.certs.cert,
                                      .key_file = p.certs.key,
                                      .trust_file = p.certs.cert,
                                      .asks_peer_cert = true});
    expect_certificate(&p, &p.certs); /* shows none */
    use_client(&p, &(struct tls_conf){
                       .cert_file = other.cert, .key_file = other.key, .trust_file = p.certs.cert});
    p.client.closed = p.server.frames = 0;
    pair_dial(&p);
    run_until(&p, client_closed);
    ck_assert_uint_eq(p.server.frames, 0);
    certs_remove(&other);
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
    return suite_run(
        "conn_fault",
        (suite_case[]){
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
            SUITE_CASE(a_certificate_that_is_asked_for_may_be_missing_but_not_untrusted),
            SUITE_CASE(an_application_protocol_is_agreed_on),
            SUITE_CASE(renewed_files_are_used),
            SUITE_LOOP(a_server_shows_no_certificate_out_of_its_time, 2),
            SUITE_CASE(protocols_and_ciphers_are_chosen_by_name),
            SUITE_CASE(bad_certificate_files_are_named),
            SUITE_CASE(a_taken_port_is_an_error_that_names_it),
            {0},
        });
}
