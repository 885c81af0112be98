#include "proto/compress.h"

#include <pthread.h>

#include "common/mem.h"
#include "common/rng.h"
#include "tests/lib/suite.h"
#include "tests/unit/proto/bytes.h"

enum { ALGORITHMS = COMPRESS_SNAPPY + 1, LARGE = 300000, MAX = 5 * 1024 * 1024 };

/* Half of it can be compressed, half cannot. */
static void fill(uint8_t *at, size_t len, uint64_t seed)
{
    for (size_t i = 0; i < len; i++)
        at[i] = i / 64 % 2 ? (uint8_t)rng_next(&seed) : (uint8_t)'a';
}

static void check_roundtrip(enum compression how, size_t len, uint64_t seed)
{
    uint8_t *plain = mem_alloc(len + 1);
    struct slice packed, back;

    fill(plain, len, seed);
    ck_assert_int_eq(compress_with(how, view_of(plain, len), &packed), ERR_OK);
    ck_assert_int_eq(decompress(how, slice_view(packed), len, MAX, &back), ERR_OK);
    ck_assert_uint_eq(back.len, len);
    if (len)
        ck_assert_mem_eq(back.base, plain, len);
    slice_drop(&packed);
    slice_drop(&back);
    mem_free(plain);
}

START_TEST(comes_back_as_it_was)
{
    static const size_t sizes[] = {0, 1, 2, 15, 100, 4096, LARGE};

    for (size_t i = 0; i < sizeof(sizes) / sizeof(*sizes); i++)
        check_roundtrip((enum compression)_i, sizes[i], i + 1);
}
END_TEST

START_TEST(another_size_than_declared_is_malformed)
{
    enum compression how = (enum compression)_i;
    uint8_t plain[1000];
    struct slice packed, out;
    static const size_t wrong[] = {0, 1, 999, 1001, 2000, MAX};

    fill(plain, sizeof(plain), 2);
    ck_assert_int_eq(compress_with(how, view_of(plain, sizeof(plain)), &packed), ERR_OK);
    for (size_t i = 0; i < sizeof(wrong) / sizeof(*wrong); i++) {
        ck_assert_int_eq(decompress(how, slice_view(packed), wrong[i], MAX, &out), ERR_MALFORMED);
        ck_assert_ptr_null(out.slab);
    }
    slice_drop(&packed);
}
END_TEST

/* Asked for before anything is looked at, so nothing is allocated either. */
START_TEST(a_size_over_the_limit_is_too_big)
{
    size_t before = slab_bytes_in_use();
    struct slice out;

    ck_assert_int_eq(decompress((enum compression)_i, view_of("x", 1), 101, 100, &out),
                     ERR_TOO_BIG);
    ck_assert_int_eq(decompress((enum compression)_i, view_of("x", 1), SIZE_MAX, SIZE_MAX, &out),
                     ERR_TOO_BIG);
    ck_assert_ptr_null(out.slab);
    ck_assert_uint_eq(slab_bytes_in_use(), before);
}
END_TEST

/* Zlib's last bytes are a checksum, zstd's a block, lz4's and snappy's literals: each is needed. */
START_TEST(every_truncation_is_refused)
{
    enum compression how = (enum compression)_i;
    uint8_t plain[300];
    struct slice packed, out;

    fill(plain, sizeof(plain), 3);
    ck_assert_int_eq(compress_with(how, view_of(plain, sizeof(plain)), &packed), ERR_OK);
    for (size_t n = 0; n < packed.len; n++) {
        struct view cut = bytes_cut(slice_view(packed), n);
        ck_assert_int_eq(decompress(how, cut, sizeof(plain), MAX, &out), ERR_MALFORMED);
        bytes_free(cut);
    }
    slice_drop(&packed);
}
END_TEST

START_TEST(damage_never_reads_or_writes_outside)
{
    enum compression how = (enum compression)_i;
    uint8_t plain[500];
    uint64_t seed = 4;
    struct slice packed, out;

    fill(plain, sizeof(plain), 5);
    ck_assert_int_eq(compress_with(how, view_of(plain, sizeof(plain)), &packed), ERR_OK);
    for (int round = 0; round < 2000; round++) {
        struct view cut = bytes_cut(slice_view(packed), packed.len);
        uint8_t *at = (uint8_t *)(uintptr_t)cut.base;
        at[rng_below(&seed, cut.len)] ^= (uint8_t)rng_next(&seed);
        if (decompress(how, cut, sizeof(plain), MAX, &out) == ERR_OK)
            ck_assert_uint_eq(out.len, sizeof(plain));
        slice_drop(&out);
        bytes_free(cut);
    }
    slice_drop(&packed);
}
END_TEST

START_TEST(an_unknown_compression_is_malformed)
{
    struct slice out;

    ck_assert_int_eq(decompress((enum compression)5, view_of("x", 1), 1, MAX, &out), ERR_MALFORMED);
    ck_assert_int_eq(compress_with((enum compression)5, view_of("x", 1), &out), ERR_MALFORMED);
    ck_assert_int_eq(compress_with((enum compression) - 1, view_of("x", 1), &out), ERR_MALFORMED);
}
END_TEST

/* What other implementations wrote. */
START_TEST(opens_what_others_packed)
{
    static const struct {
        enum compression how;
        const char *hex;
    } packed[] = {
        {COMPRESS_LZ4, "1a 61 0100 50 6161616161"},
        {COMPRESS_ZLIB, "789c4b4cc404004fa60795"},
        {COMPRESS_ZSTD, "28b52ffd 20 14 a30000 61"},
        {COMPRESS_SNAPPY, "14 00 61 4a 0100"},
    };

    for (size_t i = 0; i < sizeof(packed) / sizeof(*packed); i++) {
        struct bytes b = bytes_of(packed[i].hex);
        struct slice out;
        ck_assert_int_eq(decompress(packed[i].how, bytes_view(&b), 20, MAX, &out), ERR_OK);
        ck_assert_mem_eq(out.base, "aaaaaaaaaaaaaaaaaaaa", 20);
        slice_drop(&out);
    }
}
END_TEST

static void *roundtrips(void *arg)
{
    (void)arg;
    for (uint64_t i = 0; i < 50; i++)
        check_roundtrip(COMPRESS_ZSTD, 1000, i);
    return NULL;
}

START_TEST(threads_have_contexts_of_their_own)
{
    pthread_t threads[4];

    for (int i = 0; i < 4; i++)
        ck_assert_int_eq(pthread_create(&threads[i], NULL, roundtrips, NULL), 0);
    for (int i = 0; i < 4; i++)
        ck_assert_int_eq(pthread_join(threads[i], NULL), 0);
}
END_TEST

int main(void)
{
    return suite_run("compress",
                     (suite_case[]){SUITE_LOOP(comes_back_as_it_was, ALGORITHMS),
                                    SUITE_LOOP(another_size_than_declared_is_malformed, ALGORITHMS),
                                    SUITE_LOOP(a_size_over_the_limit_is_too_big, ALGORITHMS),
                                    SUITE_LOOP(every_truncation_is_refused, ALGORITHMS),
                                    SUITE_LOOP(damage_never_reads_or_writes_outside, ALGORITHMS),
                                    SUITE_CASE(an_unknown_compression_is_malformed),
                                    SUITE_CASE(opens_what_others_packed),
                                    SUITE_CASE(threads_have_contexts_of_their_own),
                                    {0}});
}
