#include "proto/wire.h"

#include "common/rng.h"
#include "tests/lib/suite.h"
#include "tests/unit/proto/bytes.h"

START_TEST(reads_big_endian_fields_in_turn)
{
    struct bytes b = bytes_of("01 0203 04050607 08090a0b0c0d0e0f fffffffffffffffe 6869");
    struct reader r = reader_of(bytes_view(&b));
    struct view v;
    uint64_t u64;
    int64_t i64;
    uint32_t u32;
    uint16_t u16;
    uint8_t u8;

    ck_assert_int_eq(read_u8(&r, &u8), ERR_OK);
    ck_assert_int_eq(read_u16(&r, &u16), ERR_OK);
    ck_assert_int_eq(read_u32(&r, &u32), ERR_OK);
    ck_assert_int_eq(read_u64(&r, &u64), ERR_OK);
    ck_assert_int_eq(read_i64(&r, &i64), ERR_OK);
    ck_assert_int_eq(read_view(&r, 2, &v), ERR_OK);
    ck_assert_uint_eq(u8, 0x01);
    ck_assert_uint_eq(u16, 0x0203);
    ck_assert_uint_eq(u32, 0x04050607);
    ck_assert_uint_eq(u64, 0x08090a0b0c0d0e0f);
    ck_assert_int_eq(i64, -2);
    ck_assert_mem_eq(v.base, "hi", 2);
    ck_assert_uint_eq(reader_left(&r), 0);
}
END_TEST

/* Each read with one byte too few: refused, and the reader has not moved. */
START_TEST(a_short_read_changes_nothing)
{
    static const uint8_t zero[8];
    struct view v = bytes_cut(view_of(zero, 7), 7);
    struct reader r = reader_of(v);
    struct view out;
    uint64_t u64;
    int64_t i64;

    ck_assert_int_eq(read_u64(&r, &u64), ERR_MALFORMED);
    ck_assert_int_eq(read_i64(&r, &i64), ERR_MALFORMED);
    ck_assert_int_eq(read_view(&r, 8, &out), ERR_MALFORMED);
    ck_assert_int_eq(read_view(&r, SIZE_MAX, &out), ERR_MALFORMED);
    ck_assert_uint_eq(reader_left(&r), 7);
    bytes_free(v);
}
END_TEST

START_TEST(an_empty_view_gives_nothing)
{
    struct reader r = reader_of(view_of(NULL, 0));
    struct view v;
    uint32_t u32;
    uint16_t u16;
    uint8_t u8;
    uint64_t u64;

    ck_assert_int_eq(read_u8(&r, &u8), ERR_MALFORMED);
    ck_assert_int_eq(read_u16(&r, &u16), ERR_MALFORMED);
    ck_assert_int_eq(read_u32(&r, &u32), ERR_MALFORMED);
    ck_assert_int_eq(read_varint(&r, &u64), ERR_MALFORMED);
    ck_assert_int_eq(read_view(&r, 0, &v), ERR_OK);
    ck_assert_uint_eq(v.len, 0);
}
END_TEST

START_TEST(writes_what_reads_back)
{
    uint64_t seed = 7;

    for (int round = 0; round < 1000; round++) {
        uint64_t a = rng_next(&seed) >> rng_below(&seed, 64), b = rng_next(&seed), varint, u64;
        uint8_t memory[64];
        struct writer w = {.base = memory, .room = sizeof(memory)};
        struct reader r;
        uint32_t u32;
        uint16_t u16;
        uint8_t u8;

        write_varint(&w, a);
        write_u64(&w, b);
        write_u32(&w, (uint32_t)b);
        write_u16(&w, (uint16_t)b);
        write_u8(&w, (uint8_t)b);
        r = reader_of(view_of(memory, w.len));
        ck_assert_int_eq(read_varint(&r, &varint), ERR_OK);
        ck_assert_int_eq(read_u64(&r, &u64), ERR_OK);
        ck_assert_int_eq(read_u32(&r, &u32), ERR_OK);
        ck_assert_int_eq(read_u16(&r, &u16), ERR_OK);
        ck_assert_int_eq(read_u8(&r, &u8), ERR_OK);
        ck_assert(varint == a && u64 == b && u32 == (uint32_t)b && u16 == (uint16_t)b &&
                  u8 == (uint8_t)b);
        ck_assert_uint_eq(reader_left(&r), 0);
    }
}
END_TEST

START_TEST(varints_end_within_ten_bytes)
{
    struct bytes longest = bytes_of("ffffffffffffffffff01"),
                 endless = bytes_of("ffffffffffffffffffff01");
    struct reader r = reader_of(bytes_view(&longest));
    uint64_t v;

    ck_assert_int_eq(read_varint(&r, &v), ERR_OK);
    ck_assert(v == UINT64_MAX);
    r = reader_of(bytes_view(&endless));
    ck_assert_int_eq(read_varint(&r, &v), ERR_MALFORMED);
    ck_assert_uint_eq(reader_left(&r), 11);
    for (size_t n = 0; n < longest.len; n++) {
        struct view cut = bytes_cut(bytes_view(&longest), n);
        r = reader_of(cut);
        ck_assert_int_eq(read_varint(&r, &v), ERR_MALFORMED);
        bytes_free(cut);
    }
}
END_TEST

START_TEST(holes_get_the_size_of_what_follows_them)
{
    uint8_t memory[32];
    struct writer w = {.base = memory, .room = sizeof(memory)};
    struct hole outer = write_size_later(&w), inner;

    write_u8(&w, 0xaa);
    inner = write_size_later(&w);
    write_bytes(&w, "hello", 5);
    fill_size(&w, inner);
    write_bytes(&w, NULL, 0);
    fill_size(&w, outer);
    ck_bytes_eq(memory, w.len, "0000000a aa 00000005 68656c6c6f");
}
END_TEST

int main(void)
{
    return suite_run("wire", (suite_case[]){SUITE_CASE(reads_big_endian_fields_in_turn),
                                            SUITE_CASE(a_short_read_changes_nothing),
                                            SUITE_CASE(an_empty_view_gives_nothing),
                                            SUITE_CASE(writes_what_reads_back),
                                            SUITE_CASE(varints_end_within_ten_bytes),
                                            SUITE_CASE(holes_get_the_size_of_what_follows_them),
                                            {0}});
}
