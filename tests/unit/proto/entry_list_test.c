#include "proto/entry_list.h"

#include "proto/wire.h"
#include "tests/lib/suite.h"

static struct entry_list list;

static void begin(void)
{
    list = ENTRY_LIST_EMPTY;
}

static struct slice ended(uint32_t groups)
{
    struct slice out;
    uint32_t version, n;
    ck_assert_int_eq(entry_list_end(&list, &out), ERR_OK);
    struct reader r = reader_of(slice_view(out));
    ck_assert_int_eq(read_u32(&r, &version), ERR_OK);
    ck_assert_int_eq(read_u32(&r, &n), ERR_OK);
    ck_assert_uint_eq(version, 0);
    ck_assert_uint_eq(n, groups);
    ck_assert_uint_eq(out.len, ENTRY_LIST_HEADER + groups * ENTRY_LIST_GROUP);
    for (size_t i = 8; i < ENTRY_LIST_HEADER; i++)
        ck_assert_uint_eq(out.base[i], 0);
    return out;
}

static void is_group(struct slice s, unsigned i, int64_t first, int64_t last, uint32_t size,
                     uint32_t period)
{
    struct reader r = reader_of(slice_view(s));
    struct view skipped;
    int64_t f, l;
    uint32_t n, p;
    ck_assert_int_eq(read_view(&r, ENTRY_LIST_HEADER + i * ENTRY_LIST_GROUP, &skipped), ERR_OK);
    ck_assert_int_eq(read_i64(&r, &f), ERR_OK);
    ck_assert_int_eq(read_i64(&r, &l), ERR_OK);
    ck_assert_int_eq(read_u32(&r, &n), ERR_OK);
    ck_assert_int_eq(read_u32(&r, &p), ERR_OK);
    ck_assert_int_eq(f, first);
    ck_assert_int_eq(l, last);
    ck_assert_uint_eq(n, size);
    ck_assert_uint_eq(p, period);
}

START_TEST(nothing)
{
    begin();
    struct slice s = ended(0);
    slice_drop(&s);
}
END_TEST

START_TEST(one_run)
{
    begin();
    for (int64_t e = 0; e < 1000; e++)
        entry_list_add(&list, e);
    struct slice s = ended(1);
    is_group(s, 0, 0, 0, 1000, 0);
    slice_drop(&s);
}
END_TEST

START_TEST(stripes)
{
    begin();
    for (int64_t e = 0; e < 300; e++)
        if (e % 3 != 1)
            entry_list_add(&list, e);
    struct slice s = ended(3);
    is_group(s, 0, 0, 0, 1, 0);
    is_group(s, 1, 2, 296, 2, 3);
    is_group(s, 2, 299, 299, 1, 0);
    slice_drop(&s);
}
END_TEST

START_TEST(a_hole_ends_a_group)
{
    static const int64_t ids[] = {0, 2, 4, 6, 9, 11, 1000, (int64_t)1 << 40};
    begin();
    for (size_t i = 0; i < sizeof ids / sizeof ids[0]; i++)
        entry_list_add(&list, ids[i]);
    struct slice s = ended(4);
    is_group(s, 0, 0, 6, 1, 2);
    is_group(s, 1, 9, 11, 1, 2);
    is_group(s, 2, 1000, 1000, 1, 0);
    is_group(s, 3, (int64_t)1 << 40, (int64_t)1 << 40, 1, 0);
    slice_drop(&s);
}
END_TEST

START_TEST(too_many)
{
    struct slice s;
    begin();
    for (int64_t e = 0, step = 1; e < INT64_C(1) << 40 && !list.err; step++, e += step)
        entry_list_add(&list, e * 3);
    ck_assert_int_eq(entry_list_end(&list, &s), ERR_TOO_BIG);
    ck_assert_ptr_null(list.bytes);
}
END_TEST

int main(void)
{
    return suite_run("entry_list", (suite_case[]){
                                       SUITE_CASE(nothing),
                                       SUITE_CASE(one_run),
                                       SUITE_CASE(stripes),
                                       SUITE_CASE(a_hole_ends_a_group),
                                       SUITE_CASE(too_many),
                                       {0},
                                   });
}
