#include "bookie/bookie.h"

#include <poll.h>
#include <signal.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "common/mem.h"
#include "tests/lib/suite.h"
#include "tests/unit/bookie/peer.h"
#include "tests/unit/bookie/place.h"

static struct place *place;
static struct peer *peer;

static void begin(void)
{
    place = place_new();
}

static void serve(void)
{
    ck_assert_int_eq(place_start(place), ERR_OK);
    peer = peer_new(bookie_port(place->bookie));
}

static void rest(void)
{
    if (peer)
        peer_drop(&peer);
    place_stop(place);
}

static void end(void)
{
    rest();
    place_drop(&place);
}

START_TEST(adds_and_reads)
{
    begin();
    serve();
    ck_assert_int_eq(peer_add(peer, 0, 7, 0, 10), BOOKIE_OK);
    ck_assert_int_eq(peer_add(peer, 0, 7, 1, 100000), BOOKIE_OK);
    ck_assert_int_eq(peer_add(peer, 0, 8, 0, 0), BOOKIE_OK);
    ck_assert_int_eq(peer_read(peer, 0, 7, 0), BOOKIE_OK);
    ck_assert_int_eq(peer_read(peer, 0, 7, 1), BOOKIE_OK);
    ck_assert_int_eq(peer_read(peer, 0, 8, 0), BOOKIE_OK);
    ck_assert_int_eq(peer_read(peer, 0, 7, 2), BOOKIE_NO_ENTRY);
    ck_assert_int_eq(peer_read(peer, 0, 9, 0), BOOKIE_NO_LEDGER);
    ck_assert_int_eq(peer_read(peer, 0, 9, -1), BOOKIE_NO_LEDGER);
    end();
}
END_TEST

START_TEST(last_entry_keeps_the_minus_one)
{
    struct bookie_response r;
    struct entry_header h;
    begin();
    serve();
    for (int64_t e = 0; e < 5; e++)
        ck_assert_int_eq(peer_add(peer, 0, 3, e, 20), BOOKIE_OK);
    peer_send_read(peer, 0, false, 3, -1);
    ck_assert(peer_receive(peer, &r));
    ck_assert_int_eq(r.status, BOOKIE_OK);
    ck_assert_int_eq(r.entry, -1);
    ck_assert_int_eq(entry_header_read(r.body, &h), ERR_OK);
    ck_assert_int_eq(h.entry, 4);
    ck_assert_int_eq(h.lac, 3);
    end();
}
END_TEST

START_TEST(fences)
{
    begin();
    serve();
    ck_assert_int_eq(peer_add(peer, 0, 7, 0, 10), BOOKIE_OK);
    ck_assert_int_eq(peer_read(peer, BOOKIE_DO_FENCING, 7, -1), BOOKIE_OK);
    ck_assert_int_eq(peer_add(peer, 0, 7, 1, 10), BOOKIE_FENCED);
    ck_assert_int_eq(peer_add(peer, BOOKIE_RECOVERY_ADD | BOOKIE_HIGH_PRIORITY, 7, 1, 10),
                     BOOKIE_OK);
    ck_assert_int_eq(peer_read(peer, BOOKIE_DO_FENCING, 7, 1), BOOKIE_OK);
    ck_assert_int_eq(peer_read(peer, BOOKIE_DO_FENCING, 7, 2), BOOKIE_NO_ENTRY);
    end();
}
END_TEST

START_TEST(fences_what_it_never_saw)
{
    begin();
    serve();
    ck_assert_int_eq(peer_read(peer, BOOKIE_DO_FENCING, 70, -1), BOOKIE_NO_ENTRY);
    ck_assert_int_eq(peer_read(peer, 0, 70, -1), BOOKIE_NO_ENTRY);
    ck_assert_int_eq(peer_add(peer, 0, 70, 0, 10), BOOKIE_FENCED);
    rest();
    serve();
    ck_assert_int_eq(peer_add(peer, 0, 70, 0, 10), BOOKIE_FENCED);
    ck_assert_int_eq(peer_add(peer, BOOKIE_RECOVERY_ADD, 70, 0, 10), BOOKIE_OK);
    end();
}
END_TEST

START_TEST(refuses_another_key)
{
    struct bookie_response r;
    begin();
    serve();
    ck_assert_int_eq(peer_add(peer, 0, 7, 0, 10), BOOKIE_OK);
    peer_send_add(peer, 0, true, 7, 1, 10);
    ck_assert(peer_receive(peer, &r));
    ck_assert_int_eq(r.status, BOOKIE_EUA);
    peer_send_read(peer, BOOKIE_DO_FENCING, true, 7, 0);
    ck_assert(peer_receive(peer, &r));
    ck_assert_int_eq(r.status, BOOKIE_EUA);
    ck_assert_int_eq(peer_add(peer, 0, 7, 1, 10), BOOKIE_OK);
    end();
}
END_TEST

static void closes_on(const char *bytes, size_t len)
{
    struct bookie_response r;
    struct peer *other = peer_new(bookie_port(place->bookie));
    peer_send(other, bytes, len);
    ck_assert(!peer_receive(other, &r));
    peer_drop(&other);
}

#define CLOSES_ON(text) closes_on(text, sizeof text - 1)

START_TEST(closes_on_garbage)
{
    begin();
    serve();
    CLOSES_ON("\0\0\0\4\2\x09\0\0");                 /* an op that is none */
    CLOSES_ON("\0\0\0\x08\2\1\0\0\0\0\0\0");         /* an add that is cut off */
    CLOSES_ON("\0\0\0\4\x0a\2\x08\3");               /* version 3 */
    CLOSES_ON("\x7f\0\0\0\2");                       /* longer than any frame */
    CLOSES_ON("GET / HTTP/1.1\r\n\r\n");
    ck_assert_int_eq(peer_add(peer, 0, 7, 0, 10), BOOKIE_OK); /* nobody else noticed */
    end();
}
END_TEST

START_TEST(answers_what_it_cannot_do)
{
    struct bookie_response r;
    uint8_t read[BOOKIE_FENCE_SIZE], key[MASTER_KEY_SIZE] = {0};
    static const uint8_t batch[44] = {0, 0, 0, 40, 2, BOOKIE_BATCH_READ, [31] = 9};
    begin();
    serve();
    const size_t n = bookie_write_read(read, 0, 5, 6, key);
    read[4] = 5;
    peer_send(peer, read, n);
    ck_assert(peer_receive(peer, &r));
    ck_assert_int_eq(r.status, BOOKIE_BAD_VERSION);
    peer_send(peer, batch, sizeof batch);
    ck_assert(peer_receive(peer, &r));
    ck_assert_int_eq(r.status, BOOKIE_BAD_REQUEST);
    ck_assert_uint_eq(r.body.len, 8);
    ck_assert_int_eq(r.body.base[7], 9);
    ck_assert_int_eq(peer_read(peer, 0, 5, -2), BOOKIE_NO_LEDGER);
    ck_assert_int_eq(peer_read(peer, 0, -5, 0), BOOKIE_BAD_REQUEST);
    ck_assert_int_eq(peer_add(peer, 0, 5, -3, 5), BOOKIE_BAD_REQUEST);
    end();
}
END_TEST

START_TEST(auth_is_disabled)
{
    struct bookie_response r;
    struct slice q = bookie_auth_request();
    begin();
    serve();
    peer_send(peer, q.base, q.len);
    slice_drop(&q);
    ck_assert(peer_receive(peer, &r));
    ck_assert_int_eq(r.op, BOOKIE_AUTH);
    ck_assert_ptr_nonnull(memmem(r.body.base, r.body.len, "AuthDisabledPlugin", 18));
    end();
}
END_TEST

START_TEST(survives_a_restart)
{
    begin();
    serve();
    for (int64_t e = 0; e < 1000; e++)
        ck_assert_int_eq(peer_add(peer, 0, 1 + e % 3, e / 3, 100), BOOKIE_OK);
    for (unsigned round = 0; round < 2; round++) {
        rest();
        serve();
        for (int64_t e = 0; e < 1000; e++)
            ck_assert_int_eq(peer_read(peer, 0, 1 + e % 3, e / 3), BOOKIE_OK);
        ck_assert_int_eq(peer_read(peer, 0, 1, -1), BOOKIE_OK);
    }
    end();
}
END_TEST

/* Many in flight, over several ledgers; every answer is for one that was sent. */
START_TEST(pipelines)
{
    enum { N = 20000 };
    struct bookie_response r;
    begin();
    place_set(place, "dbStorage_writeCacheMaxSizeMb=4");
    place_set(place, "logSizeLimit=1048576");
    serve();
    int64_t answered = 0;
    for (int64_t i = 0; i < N; i++) {
        peer_send_add(peer, 0, false, i % 5, i / 5, 1000);
        for (; answered < i - 500; answered++) {
            ck_assert(peer_receive(peer, &r));
            ck_assert_int_eq(r.status, BOOKIE_OK);
        }
    }
    for (; answered < N; answered++) {
        ck_assert(peer_receive(peer, &r));
        ck_assert_int_eq(r.status, BOOKIE_OK);
    }
    for (int64_t i = 0; i < N; i++)
        ck_assert_int_eq(peer_read(peer, 0, i % 5, i / 5), BOOKIE_OK);
    for (int64_t i = 0; i < 100; i++)
        peer_send_read(peer, 0, false, 2, i * 37);
    for (int64_t i = 0; i < 100; i++) {
        ck_assert(peer_receive(peer, &r));
        ck_assert_int_eq(r.status, BOOKIE_OK);
    }
    end();
}
END_TEST

int main(void)
{
    return suite_run("bookie", (suite_case[]){SUITE_CASE(adds_and_reads),
                                              SUITE_CASE(last_entry_keeps_the_minus_one),
                                              SUITE_CASE(fences),
                                              SUITE_CASE(fences_what_it_never_saw),
                                              SUITE_CASE(refuses_another_key),
                                              SUITE_CASE(closes_on_garbage),
                                              SUITE_CASE(answers_what_it_cannot_do),
                                              SUITE_CASE(auth_is_disabled),
                                              SUITE_CASE(survives_a_restart),
                                              SUITE_CASE(pipelines),
                                              {0}});
}
