/* Consumers that do not read hold a bounded share of the memory, and others go on. */
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "common/loop.h"
#include "common/mem.h"
#include "tests/lib/suite.h"
#include "tests/unit/broker/session/scene.h"

#define TOPIC "persistent://public/default/t"

enum { MIB = 1024 * 1024, MESSAGES = 30, STUCK = 12, GOOD = 3, BUDGET = 8 * MIB };
enum { OVERSHOOT = 6 * MIB }; /* a read's worth and an entry */

static void check_bound(long long *peak)
{
    const long long now = inn_metric(inn, "lgm_dispatching_bytes");

    ck_assert_int_ge(now, 0);
    if (now > *peak)
        *peak = now;
    ck_assert_int_le(now, 2 * BUDGET + OVERSHOOT);
}

/* Asks for everything, with a window of next to nothing or of the usual size. */
static struct raw *subscriber(const char *kind, unsigned i, bool reads)
{
    const int little = 4096;
    struct raw *n = another();
    char *name = mem_format("%s-%u", kind, i);

    raw_subscribed(n, 1, TOPIC, name);
    if (!reads)
        ck_assert_int_eq(setsockopt(n->fd, SOL_SOCKET, SO_RCVBUF, &little, sizeof(little)), 0);
    raw_flow(n, 1, 1000);
    mem_free(name);
    return n;
}

START_TEST(who_does_not_read_holds_up_nobody_for_good)
{
    struct raw *stuck[STUCK], *good[GOOD];
    char *text = mem_alloc(MIB + 1);
    long long peak = 0;

    inn = inn_new();
    inn_set(inn, "managedLedgerMaxReadsInFlightSizeInMB=8");
    inn_set(inn, "keepAliveIntervalSeconds=2");
    inn_open(inn);
    r = another();
    memset(text, 'x', MIB);
    raw_producer_ready(r, 1, TOPIC);
    for (uint64_t i = 0; i < MESSAGES; i++)
        raw_publish(r, 1, i, text);
    raw_drop(&r);
    for (unsigned i = 0; i < STUCK; i++)
        stuck[i] = subscriber("stuck", i, false);
    for (unsigned i = 0; i < 20; i++, usleep(20000))
        check_bound(&peak);
    ck_assert_int_ge(peak, BUDGET);
    for (unsigned i = 0; i < GOOD; i++)
        good[i] = subscriber("good", i, true);
    for (unsigned m = 0; m < MESSAGES; m++) {
        for (unsigned i = 0; i < GOOD; i++)
            raw_message(good[i], text);
        check_bound(&peak);
    }
    for (unsigned i = 0; i < GOOD; i++)
        raw_drop(&good[i]);
    for (unsigned i = 0; i < STUCK; i++)
        raw_drop(&stuck[i]);
    for (const uint64_t began = loop_clock(); inn_metric(inn, "lgm_dispatching_bytes") > 0;) {
        ck_assert_uint_lt(loop_clock() - began, 15000000);
        usleep(20000);
    }
    mem_free(text);
    finish();
}
END_TEST

int main(void)
{
    return suite_run("stuck", (suite_case[]){
                                  SUITE_CASE(who_does_not_read_holds_up_nobody_for_good),
                                  {0},
                              });
}
