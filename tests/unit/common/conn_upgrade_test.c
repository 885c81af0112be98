#include <string.h>
#include <sys/socket.h>

#include "tests/unit/common/conn_pair.h"

/* The client asks, the server agrees, both shake hands in the middle of the connection. */

enum { LARGE = 3 << 20, FRAMES = 50 };

static enum err refused;
static struct tls *other_tls;

static void agree(struct end *e, struct slice frame)
{
    slice_drop(&frame);
    if (e->frames > 1)
        return;
    conn_send(e->conn, frame_of(LARGE, 7)); /* leaves in the clear, in many rounds, */
    refused = conn_upgrade(e->conn, e->pair->server_tls);
    if (refused)
        conn_close(&e->conn);
    else
        conn_send(e->conn, frame_of(3, 8)); /* and this does not */
}

static void go_on(struct end *e, struct slice frame)
{
    const size_t len = frame.len;
    slice_drop(&frame);
    if (e->frames != 1) {
        ck_assert_uint_eq(len, 3);
        return;
    }
    ck_assert_uint_eq(len, LARGE);
    struct tls *tls = other_tls ? other_tls : e->pair->client_tls;
    ck_assert_int_eq(conn_upgrade(e->conn, tls), ERR_OK);
    for (unsigned i = 0; i < FRAMES; i++)
        conn_send(e->conn, frame_of(i * 1000, (uint8_t)i));
}

static void begin(struct pair *p)
{
    pair_start(p, TLS);
    p->server_conf.tls = p->client_conf.tls = NULL;
    p->server.on_frame = agree;
    p->client.on_frame = go_on;
    refused = ERR_OK;
    other_tls = NULL;
    pair_dial(p);
    conn_send(p->client.conn, frame_of(5, 1));
    p->until_frames = 1 + FRAMES;
}

START_TEST(what_follows_is_encrypted)
{
    struct pair p;
    begin(&p);
    run_until(&p, server_has_all);
    uint64_t sum = sum_after(0, 5, 1);
    for (unsigned i = 0; i < FRAMES; i++)
        sum = sum_after(sum, i * 1000, (uint8_t)i);
    ck_assert_uint_eq(p.server.sum, sum);
    ck_assert_uint_eq(p.client.frames, 2);
    ck_assert_uint_eq(p.client.opened, 1);
    ck_assert_uint_eq(p.client.closed + p.server.closed, 0);
    pair_stop(&p);
}
END_TEST

START_TEST(a_certificate_that_is_not_trusted_ends_it)
{
    struct pair p;
    struct certs certs;
    begin(&p);
    certs_make(&certs);
    ck_assert_int_eq(tls_client(&other_tls, &(struct tls_conf){.trust_file = certs.cert}), ERR_OK);
    run_until(&p, client_closed);
    ck_assert_int_eq(p.client.why, ERR_UNAUTHORIZED);
    ck_assert_uint_eq(p.server.frames, 1);
    pair_stop(&p);
    tls_drop(&other_tls);
    certs_remove(&certs);
}
END_TEST

/* What somebody in between has put behind the question would be taken for the peer's own. */
START_TEST(what_was_sent_before_the_handshake_is_refused)
{
    struct pair p;
    struct chain both = {0};
    pair_start(&p, TLS);
    p.server_conf.tls = p.client_conf.tls = NULL;
    p.server.on_frame = agree;
    pair_dial(&p);
    chain_push(&both, frame_of(5, 1));
    chain_push(&both, frame_of(5, 2));
    conn_send_chain(p.client.conn, &both);
    run_until(&p, client_closed);
    ck_assert_int_eq(refused, ERR_MALFORMED);
    ck_assert_uint_eq(p.server.frames, 1);
    pair_stop(&p);
}
END_TEST

/* Neither a handshake that never comes nor an owner who leaves keeps anything. */
START_TEST(a_handshake_that_does_not_come_ends_it)
{
    struct pair p;
    begin(&p);
    p.client.on_frame = NULL;
    p.server_conf.dial_timeout_us = 300000;
    run_until(&p, server_closed);
    ck_assert_int_eq(p.server.why, ERR_TIMEOUT);
    pair_stop(&p);
}
END_TEST

static bool is_accepted(struct pair *p)
{
    return p->server.conn != NULL;
}

START_TEST(closing_in_the_middle)
{
    for (unsigned rounds = 0; rounds < 12; rounds++) {
        struct pair p;
        begin(&p);
        run_until(&p, is_accepted);
        run_rounds(&p, rounds);
        if (rounds % 2)
            conn_finish(&p.server.conn);
        else
            conn_close(&p.server.conn);
        run_until(&p, client_closed);
        pair_stop(&p);
    }
}
END_TEST

int main(void)
{
    return suite_run("conn_upgrade", (suite_case[]){
                                         SUITE_CASE(what_follows_is_encrypted),
                                         SUITE_CASE(a_certificate_that_is_not_trusted_ends_it),
                                         SUITE_CASE(what_was_sent_before_the_handshake_is_refused),
                                         SUITE_CASE(a_handshake_that_does_not_come_ends_it),
                                         SUITE_CASE(closing_in_the_middle),
                                         {0},
                                     });
}
