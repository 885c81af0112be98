#include <string.h>

#include "bookie/read_cache.h"
#include "bookie/write_cache.h"
#include "common/rng.h"
#include "tests/lib/suite.h"

static struct slice bytes_of(uint8_t value, size_t len)
{
    uint8_t bytes[4096];
    memset(bytes, value, sizeof bytes);
    return slice_copy(bytes, len);
}

START_TEST(a_map_finds_what_was_put)
{
    enum { N = 5000 };
    struct entry_map m;
    uint64_t seed = 1;
    entry_map_init(&m);
    ck_assert_ptr_null(entry_map_find(&m, 0, 0));
    for (unsigned round = 0; round < 2; round++) {
        for (int64_t i = 0; i < N; i++)
            entry_map_put(&m, i % 7, i, bytes_of((uint8_t)i, 1 + rng_below(&seed, 30)));
        unsigned wrong = 0;
        for (int64_t i = 0; i < N; i++) {
            const struct slice *s = entry_map_find(&m, i % 7, i);
            wrong += !s || s->base[0] != (uint8_t)i;
            wrong += entry_map_find(&m, i % 7 + 1, i) != NULL;
        }
        ck_assert_uint_eq(wrong, 0);
        ck_assert_uint_eq(m.n, N);
        entry_map_clear(&m);
        ck_assert_ptr_null(entry_map_find(&m, 1, 1));
    }
    entry_map_end(&m);
}
END_TEST

/* As after a start: each has its first entry, and all at the same place of their lines. */
START_TEST(many_young_ledgers_find_room)
{
    enum { LEDGERS = 5000 };
    struct entry_map m;
    entry_map_init(&m);
    for (int64_t i = 0; i < LEDGERS; i++)
        entry_map_put(&m, i, 16, bytes_of((uint8_t)i, 8));
    unsigned wrong = 0;
    for (int64_t i = 0; i < LEDGERS; i++) {
        const struct slice *s = entry_map_find(&m, i, 16);
        wrong += !s || s->base[0] != (uint8_t)i;
        wrong += entry_map_find(&m, i, 0) != NULL;
    }
    ck_assert_uint_eq(wrong, 0);
    entry_map_end(&m);
}
END_TEST

START_TEST(the_later_put_wins)
{
    struct entry_map m;
    entry_map_init(&m);
    entry_map_put(&m, 1, 1, bytes_of(1, 10));
    entry_map_put(&m, 1, 1, bytes_of(2, 20));
    ck_assert_uint_eq(m.n, 1);
    ck_assert_uint_eq(entry_map_find(&m, 1, 1)->len, 20);
    entry_map_forget(&m, 1, 1);
    ck_assert_ptr_null(entry_map_find(&m, 1, 1));
    entry_map_put(&m, 1, 1, bytes_of(3, 5));
    ck_assert_int_eq(entry_map_find(&m, 1, 1)->base[0], 3);
    entry_map_end(&m);
}
END_TEST

START_TEST(the_active_half_hides_the_frozen_one)
{
    struct write_cache c;
    struct entry_map spare;
    write_cache_init(&c);
    entry_map_init(&spare);
    write_cache_put(&c, 1, 1, bytes_of(1, 10));
    write_cache_put(&c, 1, 2, bytes_of(1, 10));
    ck_assert_uint_eq(write_cache_freeze(&c, &spare), 2 * write_cache_cost(10));
    ck_assert_uint_eq(write_cache_frozen(&c)->n, 2);
    write_cache_put(&c, 1, 1, bytes_of(2, 10));
    ck_assert_int_eq(write_cache_find(&c, 1, 1)->base[0], 2);
    ck_assert_int_eq(write_cache_find(&c, 1, 2)->base[0], 1);
    write_cache_thaw(&c, &spare);
    ck_assert_uint_eq(spare.n, 2);
    ck_assert_int_eq(write_cache_find(&c, 1, 1)->base[0], 2);
    ck_assert_ptr_null(write_cache_find(&c, 1, 2));
    entry_map_end(&spare);
    write_cache_end(&c);
    ck_assert_uint_eq(slab_bytes_in_use(), 0);
}
END_TEST

/* A small entry must not keep the slab alive that a whole read from a socket is in. */
START_TEST(a_small_entry_holds_on_to_little)
{
    struct write_cache c;
    write_cache_init(&c);
    for (int64_t i = 0; i < 100; i++) {
        struct slab *s = slab_new(64 << 10);
        memset(slab_bytes(s), (int)i, 100);
        write_cache_put(&c, 1, i, slice_of(s, 0, 100));
        slab_drop(&s);
    }
    ck_assert_uint_le(slab_bytes_in_use(), 2 << 20);
    for (int64_t i = 0; i < 100; i++)
        ck_assert_int_eq(write_cache_find(&c, 1, i)->base[99], (uint8_t)i);
    write_cache_end(&c);
}
END_TEST

START_TEST(a_read_cache_forgets_the_oldest)
{
    struct read_cache c;
    read_cache_init(&c, 10000);
    for (int64_t i = 0; i < 100; i++) {
        read_cache_window(&c, 1000);
        read_cache_put(&c, 1, i, bytes_of((uint8_t)i, 1000));
        ck_assert_int_eq(read_cache_find(&c, 1, i)->base[0], (uint8_t)i);
        ck_assert_uint_le(slab_bytes_in_use(), 24000);
    }
    ck_assert_ptr_null(read_cache_find(&c, 1, 0));
    ck_assert_ptr_nonnull(read_cache_find(&c, 1, 98));
    read_cache_forget(&c, 1, 98);
    ck_assert_ptr_null(read_cache_find(&c, 1, 98));
    read_cache_end(&c);
    ck_assert_uint_eq(slab_bytes_in_use(), 0);
}
END_TEST

int main(void)
{
    return suite_run("caches", (suite_case[]){SUITE_CASE(a_map_finds_what_was_put),
                                              SUITE_CASE(many_young_ledgers_find_room),
                                              SUITE_CASE(the_later_put_wins),
                                              SUITE_CASE(the_active_half_hides_the_frozen_one),
                                              SUITE_CASE(a_small_entry_holds_on_to_little),
                                              SUITE_CASE(a_read_cache_forgets_the_oldest),
                                              {0}});
}
