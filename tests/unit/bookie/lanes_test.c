#include <poll.h>
#include <stdatomic.h>
#include <string.h>

#include "bookie/bookie.h"
#include "bookie/governor.h"
#include "bookie/reads.h"
#include "common/mem.h"
#include "tests/lib/exposition.h"
#include "tests/lib/suite.h"
#include "tests/unit/bookie/peer.h"
#include "tests/unit/bookie/place.h"

/* A whole bookie whose disk stands still for reads of old entries. */

enum { LEDGERS = 6, ENTRIES = 400, SIZE = 1000 };

static struct place *place;
static struct peer *peer, *other;
static struct disk slow;
static struct disk_ops slow_ops;
static const struct disk_ops *real;
static atomic_bool closed, held;
static atomic_uint standing;

static enum err slow_open(struct disk *d, const char *path, unsigned how, struct disk_file **out)
{
    const enum err err = real->open(disk_real(), path, how, out);
    if (!err)
        (*out)->disk = d;
    return err;
}

static enum err slow_rename(struct disk *d, const char *from, const char *to)
{
    (void)d;
    return real->rename(disk_real(), from, to);
}

/* Whoever comes while it is closed stands until nobody is held any more. */
static enum err slow_read(struct disk_file *f, uint64_t at, void *into, size_t len, size_t *got)
{
    if (len > 8192 && atomic_load(&closed)) {
        atomic_fetch_add(&standing, 1);
        while (atomic_load(&held))
            poll(NULL, 0, 1);
    }
    return real->read(f, at, into, len, got);
}

static void begin(void)
{
    struct bookie_response r;
    real = disk_real()->ops;
    slow_ops = *real;
    slow_ops.open = slow_open;
    slow_ops.rename = slow_rename;
    slow_ops.read = slow_read;
    slow.ops = &slow_ops;
    place = place_new();
    place->disk = &slow;
    place_set(place, "numReadWorkerThreads=2");
    place_set(place, "autoRecoveryDaemonEnabled=false");
    ck_assert_int_eq(place_start(place), ERR_OK);
    peer = peer_new(bookie_port(place->bookie));
    for (int64_t e = 0; e < LEDGERS * ENTRIES; e++)
        peer_send_add(peer, 0, false, e % LEDGERS, e / LEDGERS, SIZE);
    for (int64_t e = 0; e < LEDGERS * ENTRIES; e++) {
        ck_assert(peer_receive(peer, &r));
        ck_assert_int_eq(r.status, BOOKIE_OK);
    }
    peer_drop(&peer);
    place_stop(place); /* now it is in the entry log */
    ck_assert_int_eq(place_start(place), ERR_OK);
    peer = peer_new(bookie_port(place->bookie));
    other = peer_new(bookie_port(place->bookie));
    atomic_store(&closed, true);
    atomic_store(&held, true);
}

static void end(void)
{
    peer_drop(&peer);
    peer_drop(&other);
    place_drop(&place);
}

static void catch_up(uint16_t flags)
{
    for (int64_t l = 0; l < LEDGERS; l++)
        peer_send_read(other, flags, false, l, 0);
    while (atomic_load(&standing) < 1)
        poll(NULL, 0, 1);
}

static void let_go(void)
{
    struct bookie_response r;
    ck_assert_uint_eq(atomic_load(&standing), 1); /* the others waited for it, and not a thread */
    atomic_store(&held, false);
    for (int64_t l = 0; l < LEDGERS; l++) {
        ck_assert(peer_receive(other, &r));
        ck_assert_int_eq(r.status, BOOKIE_OK);
    }
}

/* Of other ledgers, and of the very one whose old entries are waited for. */
START_TEST(the_tail_passes_who_catches_up)
{
    begin();
    catch_up(0);
    atomic_store(&closed, false);
    for (int64_t l = 0; l < LEDGERS; l++)
        ck_assert_int_eq(peer_read(peer, 0, l, ENTRIES - 1), BOOKIE_OK);
    let_go();
    end();
}
END_TEST

START_TEST(the_tail_passes_repairs)
{
    begin();
    catch_up(BOOKIE_HIGH_PRIORITY);
    atomic_store(&closed, false);
    ck_assert_int_eq(peer_read(peer, 0, 2, ENTRIES - 1), BOOKIE_OK);
    let_go();
    end();
}
END_TEST

/* Who takes a ledger over reads it as if it were its end. */
START_TEST(fencing_reads_pass_too)
{
    begin();
    catch_up(0);
    atomic_store(&closed, false);
    ck_assert_int_eq(peer_read(peer, BOOKIE_DO_FENCING, 3, 5), BOOKIE_OK);
    let_go();
    end();
}
END_TEST

START_TEST(tells_how_long_each_lane_took)
{
    struct text t = {0};
    begin();
    catch_up(0);
    atomic_store(&closed, false);
    ck_assert_int_eq(peer_read(peer, 0, 1, ENTRIES - 1), BOOKIE_OK);
    let_go();
    bookie_render_metrics(place->bookie, &t);
    exposition_check(t.at);
    ck_assert(exposition_value(t.at, "lgm_catch_up_reads_held") == 0);
    ck_assert(exposition_value(t.at, "lgm_corrupt_reads") == 0);
    text_drop(&t);
    end();
}
END_TEST

static uint64_t add_us(void *ctx)
{
    return *(uint64_t *)ctx;
}

/* Compaction asks; nobody reads meanwhile. */
START_TEST(who_moves_entries_gives_way_to_adds)
{
    enum { FLOOR = 1 << 20, STEP = 1 << 18 };
    uint64_t us = 1000;
    struct loops none = {0};
    struct reads *r;
    ck_assert_int_eq(reads_open(&r, &none, 1, 0), ERR_OK);
    reads_govern(r, &(struct reads_duty){.floor = FLOOR, .add_us = add_us, .ctx = &us});
    while (reads_share(r, STEP) < 4 * FLOOR) /* nobody is disturbed */
        poll(NULL, 0, 1);
    us = 50 * 1000;
    while (reads_share(r, STEP) != FLOOR)
        poll(NULL, 0, 1);
    us = 0; /* nobody writes any more */
    while (reads_share(r, STEP) != GOVERNOR_NO_LIMIT)
        poll(NULL, 0, 1);
    reads_close(&r);
}
END_TEST

int main(void)
{
    return suite_run("lanes", (suite_case[]){SUITE_CASE(the_tail_passes_who_catches_up),
                                             SUITE_CASE(the_tail_passes_repairs),
                                             SUITE_CASE(fencing_reads_pass_too),
                                             SUITE_CASE(tells_how_long_each_lane_took),
                                             SUITE_CASE(who_moves_entries_gives_way_to_adds),
                                             {0}});
}
