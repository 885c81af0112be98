#include <pthread.h>
#include <stdbool.h>
#include <string.h>

#include "common/buf.h"
#include "common/crc32c.h"
#include "common/mem.h"
#include "common/rng.h"
#include "common/slab_pool.h"
#include "tests/lib/suite.h"

START_TEST(a_slab_lives_until_its_last_slice)
{
    struct slab *s = slab_new(1000);
    const size_t in_use = slab_bytes_in_use();
    ck_assert_uint_ge(slab_size(s), 1000);
    ck_assert_uint_ge(in_use, 1000);
    memset(slab_bytes(s), 'x', 1000);
    struct slice all = slice_of(s, 0, 1000), part = slice_part(all, 10, 20);
    slab_drop(&s);
    ck_assert_ptr_null(s);
    slice_drop(&all);
    ck_assert_uint_eq(slab_bytes_in_use(), in_use);
    ck_assert_int_eq(part.base[19], 'x');
    slice_drop(&part);
    ck_assert_ptr_null(part.base);
    ck_assert_uint_eq(slab_bytes_in_use(), in_use - 1024);
    slab_drop(&s);
    slice_drop(&part);
}
END_TEST

START_TEST(slabs_of_every_size)
{
    static const size_t sizes[] = {0,     1,     255,     256,           257,
                                   65536, 65537, 1 << 20, (1 << 20) + 1, 5 << 20};
    const size_t before = slab_bytes_in_use();
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
        struct slab *s = slab_new(sizes[i]);
        ck_assert_uint_ge(slab_size(s), sizes[i]);
        memset(slab_bytes(s), 1, slab_size(s));
        struct slice whole = slice_take(&s, sizes[i]);
        ck_assert_ptr_null(s);
        slice_drop(&whole);
    }
    ck_assert_uint_eq(slab_bytes_in_use(), before);
}
END_TEST

START_TEST(a_dropped_slab_is_used_again)
{
    struct slab *s = slab_new(4096), *first = s;
    slab_drop(&s);
    s = slab_new(3000);
    ck_assert_ptr_eq(s, first);
    slab_drop(&s);
}
END_TEST

START_TEST(while_lean_nothing_is_kept)
{
    struct slab *s = slab_new(4096);

    slab_drop(&s);
    slab_pool_trim();
    ck_assert_uint_eq(slab_pool_kept(), 0);
    slab_pool_lean(true);
    s = slab_new(4096);
    slab_drop(&s);
    ck_assert_uint_eq(slab_pool_kept(), 0);
    slab_pool_lean(false);
    s = slab_new(4096);
    slab_drop(&s);
    ck_assert_uint_eq(slab_pool_kept(), 4096);
}
END_TEST

/* So many of 64 KiB at a time. */
static void need(unsigned n)
{
    struct slab *s[64];
    for (unsigned i = 0; i < n; i++)
        s[i] = slab_new(65536);
    while (n-- > 0)
        slab_drop(&s[n]);
}

/* A period after the other, in which n are needed at a time. */
static void live(unsigned periods, unsigned n)
{
    static uint64_t now;
    for (unsigned i = 0; i < periods; i++) {
        need(n);
        slab_pool_age(now += SLAB_POOL_AGE_US);
    }
}

START_TEST(what_was_busiest_once_is_not_kept_for_good)
{
    slab_pool_trim();
    need(64);
    ck_assert_uint_eq(slab_pool_kept(), 64 * 65536); /* of this thread and of the pool */
    live(40, 3);
    ck_assert_uint_eq(slab_pool_kept(), 3 * 65536);
    live(40, 0);
    ck_assert_uint_eq(slab_pool_kept(), 0);
}
END_TEST

START_TEST(what_is_needed_again_and_again_is_kept)
{
    slab_pool_trim();
    live(40, 48);
    ck_assert_uint_eq(slab_pool_kept(), 48 * 65536);
    for (unsigned i = 0; i < 1000; i++)
        slab_pool_age(0); /* it is not due */
    ck_assert_uint_eq(slab_pool_kept(), 48 * 65536);
    slab_pool_trim();
}
END_TEST

struct holder {
    pthread_barrier_t turn;
    size_t kept;
};

/* It was busy once, and from then on only says that it lives. */
static void *hold(void *arg)
{
    struct holder *h = arg;
    need(20);
    for (unsigned i = 0; i < 80; i++) {
        pthread_barrier_wait(&h->turn);
        slab_pool_age(0);
        pthread_barrier_wait(&h->turn);
    }
    h->kept = slab_pool_kept();
    return NULL;
}

START_TEST(threads_that_need_nothing_any_more_keep_nothing)
{
    struct holder h;
    pthread_t thread;
    slab_pool_trim();
    pthread_barrier_init(&h.turn, NULL, 2);
    ck_assert_int_eq(pthread_create(&thread, NULL, hold, &h), 0);
    for (unsigned i = 0; i < 80; i++) {
        live(1, 0);
        pthread_barrier_wait(&h.turn);
        pthread_barrier_wait(&h.turn);
    }
    pthread_join(thread, NULL);
    pthread_barrier_destroy(&h.turn);
    ck_assert_uint_eq(h.kept, 0);
}
END_TEST

START_TEST(chains_share_and_drop)
{
    struct chain c = {0};
    struct iovec iov[CHAIN_MAX];
    const size_t before = slab_bytes_in_use();
    chain_push(&c, slice_copy("head", 4));
    chain_push(&c, slice_copy("payload", 7));
    chain_push(&c, (struct slice){.base = (const uint8_t *)"!", .len = 1});
    struct chain other = {0};
    for (unsigned i = 0; i < c.n; i++)
        chain_push(&other, slice_share(c.at[i]));
    chain_drop(&c);
    ck_assert_uint_eq(c.n, 0);
    ck_assert_uint_eq(chain_len(&other), 12);
    ck_assert_int_eq(chain_iov(&other, iov), 3);
    ck_assert_mem_eq(iov[1].iov_base, "payload", 7);
    chain_drop(&other);
    ck_assert_uint_eq(slab_bytes_in_use(), before);
}
END_TEST

#define HANDED 20000

struct belt {
    pthread_mutex_t lock;
    pthread_cond_t changed;
    struct slice at[64];
    unsigned n;
    bool ended;
    uint64_t sum;
};

static void *drop_all(void *arg)
{
    struct belt *b = arg;
    pthread_mutex_lock(&b->lock);
    while (b->n > 0 || !b->ended) {
        if (b->n == 0) {
            pthread_cond_wait(&b->changed, &b->lock);
            continue;
        }
        struct slice s = b->at[--b->n];
        b->sum += s.base[0] + s.base[s.len - 1];
        pthread_mutex_unlock(&b->lock);
        slice_drop(&s);
        pthread_mutex_lock(&b->lock);
        pthread_cond_signal(&b->changed);
    }
    pthread_mutex_unlock(&b->lock);
    return NULL;
}

/* The way of a payload: made on a network loop, dropped by the journal's thread. */
START_TEST(what_stays_keeps_only_its_own)
{
    const size_t before = slab_bytes_in_use();
    struct chain c = {0};
    struct slab *large = slab_new(65536);
    memset(slab_bytes(large), 'x', 65536);
    chain_push(&c, slice_of(large, 100, 300));
    chain_push(&c, slice_of(large, 1000, 40000));
    chain_push(&c, slice_copy(slab_bytes(large), 8192));
    const uint8_t *part = c.at[1].base, *whole = c.at[2].base;
    chain_settle(&c);
    ck_assert_ptr_ne(c.at[0].slab, large);
    ck_assert_uint_eq(c.at[0].len, 300);
    ck_assert_int_eq(c.at[0].base[299], 'x');
    ck_assert_ptr_eq(c.at[1].base, part);
    ck_assert_ptr_eq(c.at[2].base, whole);
    const uint8_t *own = c.at[0].base;
    chain_settle(&c); /* once is enough */
    ck_assert_ptr_eq(c.at[0].base, own);
    chain_drop(&c);
    slab_drop(&large);
    ck_assert_uint_eq(slab_bytes_in_use(), before);
}
END_TEST

START_TEST(slabs_cross_threads)
{
    struct belt b = {.lock = PTHREAD_MUTEX_INITIALIZER, .changed = PTHREAD_COND_INITIALIZER};
    const size_t before = slab_bytes_in_use();
    uint64_t seed = 7, sum = 0;
    pthread_t thread;
    pthread_create(&thread, NULL, drop_all, &b);
    for (unsigned i = 0; i < HANDED; i++) {
        struct slab *s = slab_new(1 + rng_below(&seed, 3000));
        const size_t len = slab_size(s);
        slab_bytes(s)[0] = (uint8_t)i;
        slab_bytes(s)[len - 1] = (uint8_t)(i >> 8);
        sum += (uint8_t)i + (uint8_t)(i >> 8);
        pthread_mutex_lock(&b.lock);
        while (b.n == 64)
            pthread_cond_wait(&b.changed, &b.lock);
        b.at[b.n++] = slice_take(&s, len);
        pthread_cond_signal(&b.changed);
        pthread_mutex_unlock(&b.lock);
    }
    pthread_mutex_lock(&b.lock);
    b.ended = true;
    pthread_cond_signal(&b.changed);
    pthread_mutex_unlock(&b.lock);
    pthread_join(thread, NULL);
    ck_assert_uint_eq(b.sum, sum);
    ck_assert_uint_eq(slab_bytes_in_use(), before);
}
END_TEST

/* The check value of the CRC catalogue, RFC 3720 B.4, and bookkeeper.md A.11. */
START_TEST(known_checksums)
{
    static const uint8_t header[32] = {0, 0, 0, 0, 0, 0, 0x04, 0xd2, 0, 0, 0, 0, 0, 0, 0, 5,
                                       0, 0, 0, 0, 0, 0, 0,    4,    0, 0, 0, 0, 0, 0, 2, 0x58};
    uint8_t bytes[32] = {0};
    ck_assert_uint_eq(crc32c("", 0), 0);
    ck_assert_uint_eq(crc32c("123456789", 9), 0xe3069283);
    ck_assert_uint_eq(crc32c(bytes, 32), 0x8a9136aa);
    memset(bytes, 0xff, 32);
    ck_assert_uint_eq(crc32c(bytes, 32), 0x62a8ab43);
    ck_assert_uint_eq(crc32c_more(crc32c(header, 32), "hello", 5), 0xaaf2235d);
    ck_assert_uint_eq(crc32c_combine(crc32c(header, 32), crc32c("hello", 5), 5), 0xaaf2235d);
}
END_TEST

START_TEST(combined_is_as_computed_at_once)
{
    enum { LEN = 70000 };
    uint8_t *bytes = mem_alloc(LEN);
    uint64_t seed = 3;
    for (size_t i = 0; i < LEN; i++)
        bytes[i] = (uint8_t)rng_next(&seed);
    for (unsigned i = 0; i < 2000; i++) {
        const size_t len = rng_below(&seed, i % 10 ? 300 : LEN + 1);
        const size_t cut = rng_below(&seed, len + 1);
        const uint32_t a = crc32c(bytes, cut), b = crc32c(bytes + cut, len - cut);
        const uint32_t whole = crc32c(bytes, len);
        ck_assert_uint_eq(crc32c_combine(a, b, len - cut), whole);
        ck_assert_uint_eq(crc32c_combine(a, b, len - cut), whole);
        ck_assert_uint_eq(crc32c_combine_portable(a, b, len - cut), whole);
        ck_assert_uint_eq(crc32c_combine_portable(a, b, len - cut), whole);
        ck_assert_uint_eq(crc32c_more(a, bytes + cut, len - cut), whole);
    }
    mem_free(bytes);
}
END_TEST

int main(void)
{
    return suite_run("buf", (suite_case[]){
                                SUITE_CASE(a_slab_lives_until_its_last_slice),
                                SUITE_CASE(slabs_of_every_size),
                                SUITE_CASE(a_dropped_slab_is_used_again),
                                SUITE_CASE(while_lean_nothing_is_kept),
                                SUITE_CASE(what_was_busiest_once_is_not_kept_for_good),
                                SUITE_CASE(what_is_needed_again_and_again_is_kept),
                                SUITE_CASE(threads_that_need_nothing_any_more_keep_nothing),
                                SUITE_CASE(chains_share_and_drop),
                                SUITE_CASE(what_stays_keeps_only_its_own),
                                SUITE_CASE(slabs_cross_threads),
                                SUITE_CASE(known_checksums),
                                SUITE_CASE(combined_is_as_computed_at_once),
                                {0},
                            });
}
