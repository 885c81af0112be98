#include <poll.h>

#include "bookie/bookie.h"
#include "tests/lib/fake_disk.h"
#include "tests/lib/suite.h"
#include "tests/unit/bookie/peer.h"
#include "tests/unit/bookie/place.h"

/* A whole bookie on a disk in memory that fills up or fails (its index is on a real one). */
static struct place *place;
static struct peer *peer;
static struct fake_disk *disk;

static void serve(void)
{
    ck_assert_int_eq(place_start(place), ERR_OK);
    peer = peer_new(bookie_port(place->bookie));
}

static void begin(void)
{
    place = place_new();
    disk = fake_disk_new();
    place->disk = fake_disk_of(disk);
    place_set(place, "dbStorage_writeCacheMaxSizeMb=1");
    place_set(place, "journalMaxSizeMB=64");
    place_set(place, "dbStorage_maxThrottleTimeMs=20");
    place_set(place, "diskCheckInterval=10");
}

static void rest(void)
{
    peer_drop(&peer);
    place_stop(place);
}

static void end(void)
{
    place_drop(&place);
    fake_disk_drop(&disk);
}

START_TEST(a_journal_without_space_refuses_and_recovers)
{
    begin();
    serve();
    fake_disk_budget(disk, 1);
    ck_assert_int_eq(peer_add(peer, 0, 1, 0, 100), BOOKIE_READ_ONLY);
    ck_assert_int_eq(peer_read(peer, BOOKIE_DO_FENCING, 2, -1), BOOKIE_EIO); /* not durable */
    fake_disk_budget(disk, UINT64_MAX);
    int32_t status;
    while ((status = peer_add(peer, 0, 1, 0, 100)) == BOOKIE_READ_ONLY)
        poll(NULL, 0, 1);
    ck_assert_int_eq(status, BOOKIE_OK);
    ck_assert_int_eq(peer_read(peer, BOOKIE_DO_FENCING, 2, -1), BOOKIE_NO_ENTRY);
    rest();
    fake_disk_crash(disk);
    serve();
    ck_assert_int_eq(peer_read(peer, 0, 1, 0), BOOKIE_OK);
    ck_assert_int_eq(peer_add(peer, 0, 2, 0, 100), BOOKIE_FENCED);
    rest();
    end();
}
END_TEST

static bool is_refused(int32_t status)
{
    return status == BOOKIE_TOO_MANY || status == BOOKIE_READ_ONLY;
}

/* Flushes fail one after the other: it becomes read-only, or the cache fills first, and adds wait
 * and are then refused; what was acknowledged stays readable, and all goes on when the disk is well
 * again. */
START_TEST(a_cache_that_cannot_be_flushed_refuses)
{
    enum { SIZE = 20000 };
    struct bookie_response r;
    int64_t acked = 0;
    int32_t status = BOOKIE_OK;
    begin();
    serve();
    ck_assert_int_eq(peer_add(peer, 0, 1, acked++, SIZE), BOOKIE_OK); /* journal is filled ahead */
    fake_disk_fail(disk, FAKE_OPEN, 0, 1000000);
    while ((status = peer_add(peer, 0, 1, acked, SIZE)) == BOOKIE_OK)
        acked++;
    ck_assert(is_refused(status));
    ck_assert_int_gt(acked, 1);
    for (int64_t e = 0; e < acked; e++)
        ck_assert_int_eq(peer_read(peer, 0, 1, e), BOOKIE_OK);
    for (int64_t e = 0; e < 100; e++) /* all of them wait, and all are answered */
        peer_send_add(peer, 0, false, 1, acked + e, SIZE);
    for (int64_t e = 0; e < 100; e++) {
        ck_assert(peer_receive(peer, &r));
        ck_assert(is_refused(r.status));
    }
    fake_disk_fail(disk, FAKE_OPEN, 0, 0);
    while (is_refused(status = peer_add(peer, 0, 1, acked, SIZE)))
        ;
    ck_assert_int_eq(status, BOOKIE_OK);
    rest();
    fake_disk_crash(disk);
    serve();
    for (int64_t e = 0; e <= acked; e++)
        ck_assert_int_eq(peer_read(peer, 0, 1, e), BOOKIE_OK);
    rest();
    end();
}
END_TEST

START_TEST(a_log_that_cannot_be_read_is_an_error)
{
    char path[600];
    begin();
    serve();
    for (int64_t e = 0; e < 10; e++)
        ck_assert_int_eq(peer_add(peer, 0, 1, e, 1000), BOOKIE_OK);
    rest(); /* a clean stop: everything is in the log */
    serve();
    snprintf(path, sizeof path, "%s/ledgers/current/0000000000000001.log", place->dir);
    fake_disk_flip(disk, path, 64 + 100);
    ck_assert_int_eq(peer_read(peer, 0, 1, 0), BOOKIE_EIO);
    ck_assert_int_eq(peer_read(peer, BOOKIE_DO_FENCING, 1, 0), BOOKIE_EIO);
    ck_assert_int_eq(peer_read(peer, 0, 1, 5), BOOKIE_OK);
    ck_assert_int_eq(peer_read(peer, 0, 1, -1), BOOKIE_OK);
    ck_assert_int_eq(peer_read(peer, 0, 1, 10), BOOKIE_NO_ENTRY);
    rest();
    end();
}
END_TEST

START_TEST(survives_lost_caches)
{
    begin();
    for (int64_t round = 0; round < 5; round++) {
        fake_disk_tear(disk, (uint64_t)round + 1);
        serve();
        for (int64_t e = 0; e < round * 50; e++)
            ck_assert_int_eq(peer_read(peer, 0, 1, e), BOOKIE_OK);
        for (int64_t e = round * 50; e < round * 50 + 50; e++)
            ck_assert_int_eq(peer_add(peer, 0, 1, e, 3000), BOOKIE_OK);
        rest();
        fake_disk_crash(disk);
    }
    end();
}
END_TEST

int main(void)
{
    return suite_run("bookie_fault",
                     (suite_case[]){SUITE_CASE(a_journal_without_space_refuses_and_recovers),
                                    SUITE_CASE(a_cache_that_cannot_be_flushed_refuses),
                                    SUITE_CASE(a_log_that_cannot_be_read_is_an_error),
                                    SUITE_CASE(survives_lost_caches),
                                    {0}});
}
