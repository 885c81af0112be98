#include <sched.h>
#include <string.h>

#include "bookie/handlers.h"
#include "common/listener.h"
#include "common/mem.h"
#include "tests/lib/suite.h"
#include "tests/unit/bookie/peer.h"
#include "tests/unit/bookie/store.h"

/* Handlers over two devices, of which one has no room in memory for a while: adds for it wait, in
 * their order, and hold up no others. */
enum { THROTTLE_US = 60000000 };

static struct store *st;
static struct bookie_metrics metrics;
static struct handlers *handlers;
static struct listener *listener;
static struct peer *peer;
static int64_t on[2][2]; /* two ledgers of each device */

static void room(void *ctx, unsigned shard)
{
    (void)ctx;
    if (handlers)
        handlers_room(handlers, shard);
}

static void group_done(void *ctx, struct loop *home)
{
    (void)ctx;
    if (handlers)
        handlers_group_done(handlers, home);
}

static void accepted(void *ctx, int fd)
{
    (void)ctx;
    handlers_accept(handlers, fd);
}

static void listen_here(void *ctx)
{
    (void)ctx;
    ck_assert_int_eq(listener_open(&listener, st->loops.at[0], "127.0.0.1", 0, accepted, NULL),
                     ERR_OK);
}

static void listen_no_more(void *ctx)
{
    (void)ctx;
    listener_close(&listener);
}

static void find_ledgers(void)
{
    unsigned n[2] = {0};
    struct device *d;
    for (int64_t l = 0; n[0] < 2 || n[1] < 2; l++) {
        ck_assert_int_eq(device_for(st->storage->devices, 2, l, &d), ERR_OK);
        if (n[d->number] < 2)
            on[d->number][n[d->number]++] = l;
    }
}

static void begin(void)
{
    st = store_new(2, 1);
    st->room = room;
    st->group_done = group_done;
    ck_assert_int_eq(store_start(st), ERR_OK);
    const struct handlers_conf conf = {.storage = st->storage,
                                       .loops = &st->loops,
                                       .metrics = &metrics,
                                       .frame_max = 1 << 20,
                                       .park_bytes = 1 << 20,
                                       .throttle_us = THROTTLE_US,
                                       .pending_reads = 10,
                                       .batch_max = 1 << 20,
                                       .batches_max = 1 << 20,
                                       .newest = -1,
                                       .bookie_id = "b1"};
    handlers = handlers_open(&conf);
    handlers_set_writable(handlers, true, true);
    ck_assert_int_eq(storage_serve(st->storage), ERR_OK);
    find_ledgers();
    loop_call(st->loops.at[0], listen_here, NULL);
    peer = peer_new(listener_port(listener));
}

static void end(void)
{
    peer_drop(&peer);
    loop_call(st->loops.at[0], listen_no_more, NULL);
    handlers_stop(handlers);
    storage_stop(st->storage);
    handlers_close(&handlers);
    storage_close(&st->storage);
    store_drop(&st);
}

static void fill(unsigned device, bool full)
{
    struct device *d = &st->storage->devices[device];
    if (full)
        atomic_fetch_add(&d->active_bytes, st->storage->device_bytes);
    else
        atomic_fetch_sub(&d->active_bytes, st->storage->device_bytes);
}

static void expect(int64_t ledger, int64_t entry)
{
    struct bookie_response r;
    ck_assert(peer_receive(peer, &r));
    ck_assert_int_eq(r.status, BOOKIE_OK);
    ck_assert_int_eq(r.ledger, ledger);
    ck_assert_int_eq(r.entry, entry);
}

/* Its checkpoint fails, so that nobody is told of room meanwhile. */
static void get_stuck(unsigned device)
{
    struct checkpoint *c = st->storage->devices[device].checkpoint;
    fake_disk_fail(st->disk, FAKE_OPEN, 0, UINT32_MAX);
    fill(device, true);
    checkpoint_kick(c);
    while (metric_get(&checkpoint_stats(c)->failures) == 0)
        sched_yield();
}

START_TEST(adds_wait_for_their_own_device_only)
{
    begin();
    ck_assert_int_eq(peer_add(peer, 0, on[0][1], 7, 100), BOOKIE_OK);
    get_stuck(0);
    for (int64_t e = 0; e < 3; e++)
        peer_send_add(peer, 0, false, on[0][0], e, 100);
    for (int64_t e = 0; e < 3; e++)
        ck_assert_int_eq(peer_add(peer, 0, on[1][0], e, 100), BOOKIE_OK);
    ck_assert_int_eq(metric_get(&metrics.parked_adds), 3);
    fill(1, true);
    peer_send_add(peer, 0, false, on[1][1], 0, 100);
    fill(0, false);
    fake_disk_fail(st->disk, FAKE_OPEN, 0, 0);
    for (int64_t e = 0; e < 3; e++) /* in their order, past nobody else's */
        expect(on[0][0], e);
    ck_assert_int_eq(peer_add(peer, 0, on[0][1], 0, 100), BOOKIE_OK);
    fill(1, false);
    checkpoint_kick(st->storage->devices[1].checkpoint);
    expect(on[1][1], 0);
    ck_assert_int_eq(metric_get(&metrics.parked_adds), 0);
    end();
}
END_TEST

/* However often they are tried; which is less often than they are many, so that no rotation of them
 * looks like their order. */
START_TEST(those_that_wait_keep_their_order)
{
    enum { WAITING = 1000 };
    begin();
    struct checkpoint *c = st->storage->devices[0].checkpoint;
    fill(0, true);
    for (int64_t e = 0; e < WAITING; e++)
        peer_send_add(peer, 0, false, on[0][e % 2], e, 100);
    const int64_t runs = metric_get(&checkpoint_stats(c)->runs);
    while (metric_get(&metrics.parked_adds) < WAITING ||
           metric_get(&checkpoint_stats(c)->runs) < runs + 3)
        checkpoint_kick(c);
    fill(0, false);
    checkpoint_kick(c);
    for (int64_t e = 0; e < WAITING; e++)
        expect(on[0][e % 2], e);
    end();
}
END_TEST

START_TEST(what_still_waits_at_the_end_is_refused)
{
    begin();
    fill(0, true);
    peer_send_add(peer, 0, false, on[0][0], 0, 100);
    ck_assert_int_eq(peer_add(peer, 0, on[1][0], 0, 100), BOOKIE_OK);
    ck_assert_int_eq(metric_get(&metrics.parked_adds), 1);
    end();
    ck_assert_int_eq(metric_get(&metrics.parked_adds), 0);
}
END_TEST

int main(void)
{
    return suite_run("parked", (suite_case[]){SUITE_CASE(adds_wait_for_their_own_device_only),
                                              SUITE_CASE(those_that_wait_keep_their_order),
                                              SUITE_CASE(what_still_waits_at_the_end_is_refused),
                                              {0}});
}
