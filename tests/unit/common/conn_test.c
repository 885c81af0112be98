#include <string.h>

#include "common/rng.h"
#include "tests/unit/common/conn_pair.h"

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
    return p->server.conn && conn_waiting(p->server.conn) > p->server_conf.write_high / 2;
}

static bool client_has_all(struct pair *p)
{
    return p->client.frames == 300;
}

static bool server_has_drained(struct pair *p)
{
    return p->server.drained > 0;
}

static bool server_is_there(struct pair *p)
{
    return p->server.conn != NULL;
}

/* What waits already may be more than that: then it is told when that has left. */
START_TEST(less_may_wait_from_now_on)
{
    struct pair p;
    pair_start(&p, _i);
    pair_dial(&p);
    conn_pause(p.client.conn);
    run_until(&p, server_is_there);
    conn_set_write_high(p.server.conn, 0); /* no limit */
    for (unsigned i = 0; i < 300; i++)
        conn_send(p.server.conn, frame_of(100000, 7));
    run_rounds(&p, 100);
    ck_assert_uint_gt(conn_waiting(p.server.conn), 1 << 20);
    conn_set_write_high(p.server.conn, 1 << 20);
    ck_assert_uint_eq(p.server.drained, 0);
    conn_resume(p.client.conn);
    run_until(&p, server_has_drained);
    ck_assert_uint_le(conn_waiting(p.server.conn), 1 << 20);
    run_until(&p, client_has_all);
    pair_stop(&p);
}
END_TEST

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
                                 SUITE_LOOP(less_may_wait_from_now_on, 2),
                                 SUITE_LOOP(chains_and_borrowed_bytes_are_sent, 2),
                                 {0},
                             });
}
