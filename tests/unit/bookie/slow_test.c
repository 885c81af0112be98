/* A disk that is slow is named in the log, with the part that was slow; a quick one is not. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/mem.h"
#include "tests/lib/fake_disk.h"
#include "tests/lib/suite.h"
#include "tests/unit/bookie/peer.h"
#include "tests/unit/bookie/place.h"
#include "tests/unit/common/captured.h"

enum { SYNC_US = 30 * 1000 };

static struct place *place;
static struct peer *peer;
static struct fake_disk *disk;
static struct captured captured;

static void begin(const char *slow)
{
    place = place_new();
    place_set(place, slow);
    place_set(place, "dbStorage_writeCacheMaxSizeMb=1");
    place_set(place, "flushInterval=60000");
    disk = fake_disk_new();
    place->disk = fake_disk_of(disk);
    ck_assert_int_eq(place_start(place), ERR_OK);
    peer = peer_new(bookie_port(place->bookie));
}

static void end(void)
{
    fake_disk_slow(disk, 0);
    peer_drop(&peer);
    place_stop(place);
    place_drop(&place);
    fake_disk_drop(&disk);
}

static unsigned lines_of(const char *text, const char *event)
{
    unsigned n = 0;

    for (const char *at = text; (at = strstr(at, event)); at++)
        n++;
    return n;
}

static long long field(const char *line, const char *name)
{
    char key[40];

    snprintf(key, sizeof(key), " %s=", name);
    const char *at = strstr(line, key);
    ck_assert_ptr_nonnull(at);
    return strtoll(at + strlen(key), NULL, 10);
}

START_TEST(a_slow_sync_is_logged_once_a_group)
{
    begin("lgmSlowSyncMillis=10");
    capture_start(&captured);
    fake_disk_slow(disk, SYNC_US);
    for (int64_t e = 0; e < 3; e++)
        ck_assert_int_eq(peer_add(peer, 0, 1, e, 100), BOOKIE_OK);
    const char *text = capture_end(&captured);
    ck_assert_uint_eq(lines_of(text, "journal.slow"), 3);
    const char *line = strstr(text, "journal.slow");
    ck_assert_int_ge(field(line, "sync_ms"), SYNC_US / 1000);
    ck_assert_int_lt(field(line, "write_ms"), SYNC_US / 1000);
    ck_assert_int_eq(field(line, "records"), 1);
    ck_assert_int_gt(field(line, "bytes"), 100);
    ck_assert_int_eq(field(line, "queued"), 0);
    end();
}
END_TEST

START_TEST(off_is_off)
{
    begin("lgmSlowSyncMillis=0");
    capture_start(&captured);
    fake_disk_slow(disk, SYNC_US);
    ck_assert_int_eq(peer_add(peer, 0, 1, 0, 100), BOOKIE_OK);
    ck_assert_uint_eq(lines_of(capture_end(&captured), "journal.slow"), 0);
    end();
}
END_TEST

/* More than the cache holds at once: some must wait for the checkpoint, which syncs slowly. */
START_TEST(a_long_wait_for_the_cache_is_one_event)
{
    struct bookie_response r;

    begin("lgmSlowSyncMillis=10");
    fake_disk_slow(disk, SYNC_US);
    capture_start(&captured);
    for (int64_t e = 0; e < 40; e++)
        peer_send_add(peer, 0, false, 1, e, 50000);
    for (int64_t e = 0; e < 40; e++) {
        ck_assert(peer_receive(peer, &r));
        ck_assert_int_eq(r.status, BOOKIE_OK);
    }
    const char *text = capture_end(&captured);
    const char *line = strstr(text, "adds.throttled");
    ck_assert_ptr_nonnull(line);
    ck_assert_uint_le(lines_of(text, "adds.throttled"), 4); /* one a time that it was full */
    ck_assert_int_ge(field(line, "waited_ms"), 10);
    end();
}
END_TEST

int main(void)
{
    return suite_run("slow", (suite_case[]){
                                 SUITE_CASE(a_slow_sync_is_logged_once_a_group),
                                 SUITE_CASE(off_is_off),
                                 SUITE_CASE(a_long_wait_for_the_cache_is_one_event),
                                 {0},
                             });
}
