/* What a broker and a bookie give up, in their order, while this process is near a limit. */
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "broker/session/put_off.h"
#include "common/mem.h"
#include "common/memory_guard.h"
#include "common/process.h"
#include "tests/lib/suite.h"
#include "tests/unit/broker/session/scene.h"

#define TOPIC "persistent://public/default/t"
#define LIMIT ((size_t)600 << 20)

static char *ballast;
static size_t heavy;

/* So many percent of the limit, give or take what the others take. */
static void weigh(unsigned percent)
{
    const size_t want = LIMIT / 100 * percent;

    if (!ballast)
        ballast = mmap(NULL, LIMIT, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    ck_assert_ptr_ne(ballast, MAP_FAILED);
    const size_t others = (size_t)process_anonymous() - heavy;
    ck_assert_uint_lt(others, want);
    heavy = (want - others) & ~((size_t)4095);
    memset(ballast, 1, heavy);
    ck_assert_int_eq(madvise(ballast + heavy, LIMIT - heavy, MADV_DONTNEED), 0);
}

static void lighten(void)
{
    ck_assert_int_eq(munmap(ballast, LIMIT), 0);
    ballast = NULL;
    heavy = 0;
}

static void reach(unsigned percent, enum memory_level level)
{
    weigh(percent);
    while (inn_metric(inn, "lgm_memory_level") != (long long)level)
        usleep(10000);
}

static void recover(void)
{
    lighten();
    while (inn_metric(inn, "lgm_memory_level") != MEMORY_PLENTY)
        usleep(10000);
}

static void publish(uint64_t from, uint64_t to)
{
    for (uint64_t i = from; i < to; i++) {
        char *text = mem_format("%0*llu", 32 * 1024, (unsigned long long)i);
        raw_publish(r, 1, i, text);
        mem_free(text);
    }
}

static void take(uint64_t from, uint64_t to)
{
    for (uint64_t i = from; i < to; i++) {
        char *text = mem_format("%0*llu", 32 * 1024, (unsigned long long)i);
        raw_message(r, text);
        mem_free(text);
    }
}

/* The oldest of these are not in a cache of 512 KiB. */
enum { MANY = 100 };

START_TEST(with_little_memory_old_entries_come_slowly_and_all)
{
    inn = inn_new();
    inn_set(inn, "lgmMemoryLimitMB=600");
    inn_set(inn, "managedLedgerCacheSizeMB=1");
    inn_open(inn);
    r = raw_connect(broker_port(inn->broker));
    raw_producer_ready(r, 1, TOPIC);
    raw_subscribed(r, 5, TOPIC, "s");
    publish(0, MANY);
    reach(83, MEMORY_LOW);
    struct raw *other = another(); /* is let in */
    raw_drop(&other);
    raw_flow(r, 5, MANY);
    take(0, MANY);
    publish(MANY, MANY + 10);
    raw_flow(r, 5, 10);
    take(MANY, MANY + 10);
    recover();
    finish();
}
END_TEST

START_TEST(with_scarce_memory_nobody_new_comes_in)
{
    begin_with("lgmMemoryLimitMB=600");
    raw_producer_ready(r, 1, TOPIC);
    reach(91, MEMORY_SCARCE);
    struct raw *other = raw_dial(broker_port(inn->broker));
    raw_expect_closed(other);
    raw_drop(&other);
    publish(0, 10); /* who is there is served */
    recover();
    other = another();
    raw_drop(&other);
    finish();
}
END_TEST

START_TEST(with_short_memory_producers_wait)
{
    begin_with("lgmMemoryLimitMB=600");
    raw_producer_ready(r, 1, TOPIC);
    raw_subscribed(r, 5, TOPIC, "s");
    publish(0, 10);
    reach(96, MEMORY_SHORT);
    raw_send(r, 1, 10, "too much");
    raw_expect(r, RAW_TYPE(CLOSE_PRODUCER));
    raw_producer(r, 1, 77, TOPIC, NULL);
    raw_expect_nothing(r); /* it is let in when there is room */
    raw_flow(r, 5, 10);
    take(0, 10); /* out of the cache */
    recover();
    ck_assert_uint_eq(raw_expect(r, RAW_TYPE(PRODUCER_SUCCESS))->producer_success->request_id, 77);
    publish(10, 20);
    finish();
}
END_TEST

static long long of_bookie(const char *name)
{
    char *line = mem_format("\n%s ", name);
    struct text t = {0};

    bookie_render_metrics(inn->bookie, &t);
    const char *at = strstr(t.at, line);
    ck_assert_ptr_nonnull(at);
    const long long value = strtoll(at + strlen(line), NULL, 10);
    text_drop(&t);
    mem_free(line);
    return value;
}

START_TEST(a_bookie_without_memory_takes_no_adds)
{
    inn = inn_new();
    inn->bookie_conf.memory_mb = 600;
    inn_set(inn, "lgmMemoryLimitMB=-1");
    inn_open(inn);
    r = raw_connect(broker_port(inn->broker));
    raw_producer_ready(r, 1, TOPIC);
    publish(0, 10);
    ck_assert_int_eq(of_bookie("bookie_rejected_write_requests"), 0);
    weigh(97);
    while (of_bookie("lgm_memory_level") != MEMORY_SHORT)
        usleep(10000);
    raw_send(r, 1, 10, "in its time");
    while (of_bookie("bookie_rejected_write_requests") == 0)
        usleep(10000);
    lighten();
    raw_receipt(r, 1, 10);
    publish(11, 20);
    finish();
}
END_TEST

int main(void)
{
    return suite_run("memory", (suite_case[]){
                                   SUITE_CASE(with_little_memory_old_entries_come_slowly_and_all),
                                   SUITE_CASE(with_scarce_memory_nobody_new_comes_in),
                                   SUITE_CASE(with_short_memory_producers_wait),
                                   SUITE_CASE(a_bookie_without_memory_takes_no_adds),
                                   {0},
                               });
}
