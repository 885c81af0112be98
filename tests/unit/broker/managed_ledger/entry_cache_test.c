#include "broker/managed_ledger/entry_cache.h"

#include <string.h>

#include "common/mem.h"
#include "tests/lib/suite.h"

static void put(struct entry_cache *c, struct position at, size_t len)
{
    struct chain chain = {0};
    struct slab *slab = slab_new(64 * 1024); /* as a receive buffer: much larger than the payload */

    memset(slab_bytes(slab), (int)at.entry, len);
    chain_push(&chain, slice_of(slab, 0, len / 2));
    chain_push(&chain, slice_of(slab, len / 2, len - len / 2));
    slab_drop(&slab);
    entry_cache_put(c, at, &chain);
    chain_drop(&chain);
}

START_TEST(gives_back_what_was_put)
{
    struct entry_cache *c = entry_cache_new(1 << 20);
    struct slice s = {0};

    put(c, (struct position){1, 5}, 100);
    ck_assert(entry_cache_has(c, (struct position){1, 5}));
    ck_assert(!entry_cache_get(c, (struct position){5, 1}, &s));
    ck_assert(entry_cache_get(c, (struct position){1, 5}, &s));
    ck_assert_uint_eq(s.len, 100);
    ck_assert_int_eq(s.base[99], 5);
    entry_cache_drop(&c); /* the slice lives on */
    ck_assert_int_eq(s.base[0], 5);
    slice_drop(&s);
}
END_TEST

START_TEST(holds_no_more_than_it_says)
{
    size_t before = slab_bytes_in_use();
    struct entry_cache *c = entry_cache_new(100 * 1000);

    for (int64_t i = 0; i < 5000; i++) {
        put(c, (struct position){i / 100, i}, 100);
        ck_assert_uint_le(entry_cache_bytes(c), 100 * 1000);
        ck_assert_uint_le(slab_bytes_in_use() - before, 100 * 1000);
        ck_assert(entry_cache_has(c, (struct position){i / 100, i}));
    }
    ck_assert(!entry_cache_has(c, (struct position){0, 0})); /* the oldest went */
    unsigned kept = 0;
    for (int64_t i = 0; i < 5000; i++)
        kept += entry_cache_has(c, (struct position){i / 100, i});
    ck_assert_uint_gt(kept, 200);
    for (int64_t i = 5000 - (int64_t)kept; i < 5000; i++)
        ck_assert(entry_cache_has(c, (struct position){i / 100, i}));
    entry_cache_drop(&c);
    ck_assert_uint_eq(slab_bytes_in_use(), before);
}
END_TEST

/* As from a socket: entries of `len` every `step` bytes of receive buffers. */
static int64_t put_from_buffers(struct entry_cache *c, int64_t first, unsigned buffers, size_t len,
                                size_t step)
{
    for (unsigned b = 0; b < buffers; b++) {
        struct slab *slab = slab_new(64 * 1024);
        for (size_t at = 0; at + len <= slab_size(slab); at += step, first++) {
            struct chain chain = {.n = 1, .at = {slice_of(slab, at, len)}};
            memset(slab_bytes(slab) + at, (int)first, len);
            entry_cache_put(c, (struct position){1, first}, &chain);
            chain_drop(&chain);
        }
        slab_drop(&slab);
    }
    return first;
}

START_TEST(dense_buffers_are_kept_and_counted_whole)
{
    size_t before = slab_bytes_in_use();
    struct entry_cache *c = entry_cache_new(1000 * 1000);
    struct slice s;

    int64_t n = put_from_buffers(c, 0, 60, 1000, 1100);
    ck_assert_uint_le(entry_cache_bytes(c), 1000 * 1000);
    ck_assert_uint_le(slab_bytes_in_use() - before, 1000 * 1000);
    ck_assert_uint_gt(slab_bytes_in_use() - before, 800 * 1000);
    for (int64_t i = n - 600; i < n; i++) {
        ck_assert(entry_cache_get(c, (struct position){1, i}, &s));
        ck_assert_uint_eq(slab_size(s.slab), 64 * 1024);
        ck_assert_int_eq(s.base[999], (uint8_t)i);
        slice_drop(&s);
    }
    entry_cache_set_limit(c, 0);
    ck_assert_uint_eq(entry_cache_bytes(c), 0);
    entry_cache_drop(&c);
    ck_assert_uint_eq(slab_bytes_in_use(), before);
}
END_TEST

START_TEST(of_sparse_buffers_only_the_entries_are_kept)
{
    size_t before = slab_bytes_in_use();
    struct entry_cache *c = entry_cache_new(1000 * 1000);

    int64_t n = put_from_buffers(c, 0, 10, 1000, 1100); /* these were dense */
    n = put_from_buffers(c, n, 200, 1000, 9000);
    ck_assert_uint_le(slab_bytes_in_use() - before, 1000 * 1000);
    unsigned kept = 0;
    for (int64_t i = 0; i < n; i++)
        kept += entry_cache_has(c, (struct position){1, i});
    ck_assert_uint_gt(kept, 600);
    entry_cache_drop(&c);
    ck_assert_uint_eq(slab_bytes_in_use(), before);
}
END_TEST

START_TEST(one_huge_entry_does_not_empty_it)
{
    struct entry_cache *c = entry_cache_new(100 * 1000);

    put(c, (struct position){1, 1}, 100);
    put(c, (struct position){1, 2}, 50 * 1000);
    ck_assert(entry_cache_has(c, (struct position){1, 1}));
    ck_assert(!entry_cache_has(c, (struct position){1, 2}));
    entry_cache_drop(&c);
}
END_TEST

START_TEST(the_same_entry_twice_is_kept_once)
{
    struct entry_cache *c = entry_cache_new(100 * 1000);

    put(c, (struct position){1, 1}, 100);
    size_t once = entry_cache_bytes(c);
    put(c, (struct position){1, 1}, 100);
    ck_assert_uint_eq(entry_cache_bytes(c), once);
    entry_cache_drop(&c);
}
END_TEST

START_TEST(a_lower_limit_holds_at_once)
{
    size_t before = slab_bytes_in_use();
    struct entry_cache *c = entry_cache_new(400 * 1000);

    for (int64_t i = 0; i < 60; i++)
        put(c, (struct position){1, i}, 5000);
    entry_cache_set_limit(c, 100 * 1000);
    ck_assert_uint_le(entry_cache_bytes(c), 100 * 1000);
    ck_assert_uint_le(slab_bytes_in_use() - before, 100 * 1000);
    ck_assert(!entry_cache_has(c, (struct position){1, 0}));
    ck_assert(entry_cache_has(c, (struct position){1, 59}));
    entry_cache_set_limit(c, 400 * 1000);
    for (int64_t i = 60; i < 100; i++)
        put(c, (struct position){1, i}, 5000);
    ck_assert_uint_gt(entry_cache_bytes(c), 200 * 1000);
    entry_cache_drop(&c);
}
END_TEST

int main(void)
{
    return suite_run("entry_cache", (suite_case[]){
                                        SUITE_CASE(gives_back_what_was_put),
                                        SUITE_CASE(holds_no_more_than_it_says),
                                        SUITE_CASE(dense_buffers_are_kept_and_counted_whole),
                                        SUITE_CASE(of_sparse_buffers_only_the_entries_are_kept),
                                        SUITE_CASE(one_huge_entry_does_not_empty_it),
                                        SUITE_CASE(the_same_entry_twice_is_kept_once),
                                        SUITE_CASE(a_lower_limit_holds_at_once),
                                        {0},
                                    });
}
