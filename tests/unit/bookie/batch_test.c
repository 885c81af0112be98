#include <arpa/inet.h>
#include <endian.h>
#include <stdio.h>
#include <string.h>

#include "bookie/bookie.h"
#include "bookie/entry_log.h"
#include "common/loop.h"
#include "tests/lib/exposition.h"
#include "tests/lib/suite.h"
#include "tests/unit/bookie/peer.h"
#include "tests/unit/bookie/place.h"

/* Many entries in one answer. */

enum { LEDGER = 7, PAYLOAD = 100 };

static struct place *place;
static struct peer *peer;
static uint8_t entry[128 * 1024];

static void serve(void)
{
    if (!place)
        place = place_new();
    ck_assert_int_eq(place_start(place), ERR_OK);
    peer = peer_new(bookie_port(place->bookie));
}

static void rest(void)
{
    peer_drop(&peer);
    place_stop(place);
}

static void end(void)
{
    rest();
    place_drop(&place);
}

static void ask_batch(int64_t first, int32_t count, int64_t bytes)
{
    uint8_t q[44] = {0, 0, 0, 40, 2, BOOKIE_BATCH_READ};
    const uint64_t ids[] = {htobe64(LEDGER), htobe64((uint64_t)first), htobe64(77)};
    const uint32_t n = htobe32((uint32_t)count);
    const uint64_t size = htobe64((uint64_t)bytes);
    memcpy(q + 8, ids, sizeof ids);
    memcpy(q + 32, &n, sizeof n);
    memcpy(q + 36, &size, sizeof size);
    peer_send(peer, q, sizeof q);
}

/* How many entries came, each looked at. */
static unsigned batch(int64_t first, int32_t count, int64_t bytes, int32_t status)
{
    struct bookie_response r;
    uint32_t len;
    unsigned n = 0;
    ask_batch(first, count, bytes);
    ck_assert(peer_receive(peer, &r));
    ck_assert_int_eq(r.op, BOOKIE_BATCH_READ);
    ck_assert_int_eq(r.status, status);
    ck_assert_int_eq(r.entry, first);
    ck_assert_int_eq(r.body.base[7], 77);
    size_t at = 8;
    for (; at < r.body.len; n++) {
        const size_t right = peer_entry(LEDGER, first + n, PAYLOAD, entry);
        memcpy(&len, r.body.base + at, sizeof len);
        ck_assert_uint_eq(ntohl(len), right);
        ck_assert_mem_eq(r.body.base + at + 4, entry, right);
        at += 4 + right;
    }
    ck_assert_uint_eq(at, r.body.len);
    return n;
}

START_TEST(reads_batches)
{
    const size_t size = peer_entry(LEDGER, 0, PAYLOAD, entry) + 4;
    serve();
    for (int64_t e = 0; e < 400; e++)
        ck_assert_int_eq(peer_add(peer, 0, LEDGER, e, PAYLOAD), BOOKIE_OK);
    ck_assert_int_eq(peer_add(peer, 0, LEDGER, 405, PAYLOAD), BOOKIE_OK);
    for (int round = 0; round < 2; round++) { /* from memory, then from the logs */
        ck_assert_uint_eq(batch(0, 10, 1 << 20, BOOKIE_OK), 10);
        ck_assert_uint_eq(batch(3, 0, 1 << 20, BOOKIE_OK), 397); /* up to a hole */
        ck_assert_uint_eq(batch(3, -1, 36 + 5 * (int64_t)size, BOOKIE_OK), 5);
        ck_assert_uint_eq(batch(3, 9, 35 + 5 * (int64_t)size, BOOKIE_OK), 4);
        ck_assert_uint_eq(batch(3, 9, -1, BOOKIE_OK), 1);
        ck_assert_uint_eq(batch(405, 9, 1 << 20, BOOKIE_OK), 1);
        ck_assert_uint_eq(batch(401, 9, 1 << 20, BOOKIE_NO_ENTRY), 0);
        ck_assert_uint_eq(batch(406, 9, 1 << 20, BOOKIE_NO_ENTRY), 0);
        ck_assert_uint_eq(batch(INT64_MAX, 9, 1 << 20, BOOKIE_NO_ENTRY), 0);
        ck_assert_uint_eq(batch(-1, 9, 1 << 20, BOOKIE_BAD_REQUEST), 0);
        rest();
        serve();
    }
    end();
}
END_TEST

static void flip(long at)
{
    char path[600];
    snprintf(path, sizeof path, "%s/ledgers/current/0000000000000001.log", place->dir);
    FILE *f = fopen(path, "r+");
    ck_assert_ptr_nonnull(f);
    ck_assert_int_eq(fseek(f, at, SEEK_SET), 0);
    const int c = fgetc(f);
    ck_assert_int_eq(fseek(f, at, SEEK_SET), 0);
    ck_assert_int_eq(fputc(c ^ 1, f), c ^ 1);
    ck_assert_int_eq(fclose(f), 0);
}

/* An answer ends before it; it is damage to whoever asks for it, and hides nothing behind it. */
START_TEST(nothing_damaged_is_given_out)
{
    enum { N = 10, BAD = 5 };
    serve();
    for (int64_t e = 0; e < N; e++)
        ck_assert_int_eq(peer_add(peer, 0, LEDGER, e, PAYLOAD), BOOKIE_OK);
    rest();
    flip(ENTRY_LOG_HEADER + 50 +
         BAD * (ENTRY_LOG_RECORD + (long)peer_entry(LEDGER, 0, PAYLOAD, entry)));
    serve();
    for (int round = 0; round < 2; round++) {
        ck_assert_uint_eq(batch(0, N, 1 << 20, BOOKIE_OK), BAD);
        ck_assert_uint_eq(batch(BAD, N, 1 << 20, BOOKIE_EIO), 0);
        ck_assert_uint_eq(batch(BAD + 1, N, 1 << 20, BOOKIE_OK), N - BAD - 1);
    }
    end();
}
END_TEST

static unsigned disk_reads(void)
{
    struct text t = {0};
    bookie_render_metrics(place->bookie, &t);
    const double n = exposition_value(t.at, "bookie_read_cache_misses");
    text_drop(&t);
    return (unsigned)n;
}

/* One read brings in what lies behind, also beyond a block of the index, and no part of an entry.
 */
START_TEST(reads_ahead)
{
    enum { SMALL = 500, LARGE = 60000, LARGES = 12 };
    serve();
    for (int64_t e = 0; e < SMALL + LARGES; e++)
        ck_assert_int_eq(peer_add(peer, 0, LEDGER, e, e < SMALL ? PAYLOAD : LARGE), BOOKIE_OK);
    rest();
    serve();
    ck_assert_uint_eq(disk_reads(), 0);
    for (int64_t e = 0; e < SMALL; e++)
        ck_assert_int_eq(peer_read(peer, 0, LEDGER, e), BOOKIE_OK);
    ck_assert_uint_eq(disk_reads(), 1);
    for (int64_t e = SMALL; e < SMALL + LARGES; e++) /* four in a window of 256 KiB */
        ck_assert_int_eq(peer_read(peer, 0, LEDGER, e), BOOKIE_OK);
    ck_assert_uint_le(disk_reads(), 1 + LARGES / 4);
    end();
}
END_TEST

/* Large ones are sent from where they lie, small ones between them are copied. */
START_TEST(reads_batches_of_large_entries)
{
    static const size_t sizes[] = {3000, 10, 70000, 70000, 20, 30, 3000};
    enum { N = 7 };
    struct bookie_response r;
    serve();
    for (int64_t e = 0; e < N; e++)
        ck_assert_int_eq(peer_add(peer, 0, LEDGER, e, sizes[e]), BOOKIE_OK);
    for (int round = 0; round < 2; round++) {
        struct view left, got;
        int64_t id;
        ask_batch(0, 100, 1 << 20);
        ck_assert(peer_receive(peer, &r));
        ck_assert_int_eq(r.status, BOOKIE_OK);
        left = r.body;
        ck_assert_int_eq(bookie_batch_id(&left, &id), ERR_OK);
        ck_assert_int_eq(id, 77);
        for (int64_t e = 0; e < N; e++) {
            const size_t right = peer_entry(LEDGER, e, sizes[e], entry);
            ck_assert_int_eq(bookie_batch_next(&left, &got), ERR_OK);
            ck_assert_uint_eq(got.len, right);
            ck_assert_mem_eq(got.base, entry, right);
        }
        ck_assert_int_eq(bookie_batch_next(&left, &got), ERR_END);
        rest();
        serve();
    }
    end();
}
END_TEST

int main(void)
{
    return suite_run("batch", (suite_case[]){SUITE_CASE(reads_batches),
                                             SUITE_CASE(reads_batches_of_large_entries),
                                             SUITE_CASE(reads_ahead),
                                             SUITE_CASE(nothing_damaged_is_given_out),
                                             {0}});
}
