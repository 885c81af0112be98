/* Marks of ledgers that lack copies: their keys and bytes are BookKeeper's. */
#include <string.h>

#include "common/mem.h"
#include "metadata/paths.h"
#include "metadata/records.h"
#include "tests/lib/suite.h"

static struct view text(const char *s)
{
    return view_of(s, strlen(s));
}

START_TEST(keys_are_bookkeepers)
{
    char key[META_KEY_MAX];
    int64_t id;

    ck_assert_int_eq(path_mark(0x1234, key), ERR_OK);
    ck_assert_str_eq(key, "/ledgers/underreplication/ledgers/0000/0000/0000/1234/urL0000004660");
    ck_assert_int_eq(path_mark_id(key, &id), ERR_OK);
    ck_assert_int_eq(id, 0x1234);
    ck_assert_int_eq(path_mark(0x123456789abcdefLL, key), ERR_OK);
    ck_assert_str_eq(key,
                     "/ledgers/underreplication/ledgers/0123/4567/89ab/cdef/urL81985529216486895");
    ck_assert_int_eq(path_mark_id(key, &id), ERR_OK);
    ck_assert_int_eq(id, 0x123456789abcdefLL);
    ck_assert_int_eq(path_mark_lock(7, key), ERR_OK);
    ck_assert_str_eq(key, "/ledgers/underreplication/locks/urL0000000007");
    ck_assert_int_eq(path_mark(-1, key), ERR_INVALID_NAME);
    ck_assert_int_eq(path_mark_lock(-1, key), ERR_INVALID_NAME);
}
END_TEST

START_TEST(other_keys_are_no_marks)
{
    static const char *const bad[] = {
        "",
        "/",
        "urL0000000007",
        "/ledgers/underreplication/ledgers/0000/0000/0000/0007/urL7",
        "/ledgers/underreplication/ledgers/0000/0000/0000/0008/urL0000000007",
        "/ledgers/underreplication/ledgers/0000/0000/0000/0007/urL000000000x",
        "/ledgers/underreplication/ledgers/0000/0000/0000/0007"};
    int64_t id;

    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++)
        ck_assert_msg(path_mark_id(bad[i], &id) == ERR_NOT_FOUND, "%s", bad[i]);
}
END_TEST

START_TEST(marks_come_back)
{
    struct mark_record m = {.ctime_ms = 1700000000123}, again;

    mark_record_add(&m, "b1:3181");
    mark_record_add(&m, "b2:3181");
    struct slice s = mark_record_write(&m);
    static const char want[] = "replica: \"b1:3181\"\nreplica: \"b2:3181\"\nctime: 1700000000123\n";
    ck_assert_uint_eq(s.len, strlen(want));
    ck_assert_mem_eq(s.base, want, s.len);
    ck_assert_int_eq(mark_record_read(slice_view(s), &again), ERR_OK);
    ck_assert_uint_eq(again.n, 2);
    ck_assert(mark_record_has(&again, "b2:3181") && !mark_record_has(&again, "b3:3181"));
    ck_assert_int_eq(again.ctime_ms, 1700000000123);
    slice_drop(&s);
    mark_record_drop(&m);
    mark_record_drop(&again);
}
END_TEST

START_TEST(others_marks_are_read_or_refused)
{
    struct mark_record m;

    ck_assert_int_eq(mark_record_read(text(""), &m), ERR_OK);
    ck_assert_uint_eq(m.n, 0);
    ck_assert_int_eq(m.ctime_ms, -1);
    ck_assert_int_eq(
        mark_record_read(text("replica: \"a\" replica: \"a\" later { x: 1 } y: 2"), &m), ERR_OK);
    ck_assert_uint_eq(m.n, 1);
    mark_record_drop(&m);
    ck_assert_int_ne(mark_record_read(text("replica: \"a"), &m), ERR_OK);
    ck_assert_int_ne(mark_record_read(text("replica: 5"), &m), ERR_OK);
    ck_assert_uint_eq(m.n, 0);
    ck_assert_int_ne(mark_record_read(text("replica: \"a\" ctime: x"), &m), ERR_OK);
}
END_TEST

START_TEST(times_come_back)
{
    static const int64_t times[] = {0, 1, 127, 128, 1700000000123, INT64_MAX};
    int64_t ms;

    for (size_t i = 0; i < sizeof times / sizeof *times; i++) {
        struct slice s = time_record_write(times[i]);
        ck_assert_int_eq(time_record_read(slice_view(s), &ms), ERR_OK);
        ck_assert_int_eq(ms, times[i]);
        ck_assert_int_ne(time_record_read(view_of(s.base, s.len - 1), &ms), ERR_OK);
        slice_drop(&s);
    }
    ck_assert_int_ne(time_record_read(text("hello"), &ms), ERR_OK);
}
END_TEST

int main(void)
{
    return suite_run("mark_record", (suite_case[]){SUITE_CASE(keys_are_bookkeepers),
                                                   SUITE_CASE(other_keys_are_no_marks),
                                                   SUITE_CASE(marks_come_back),
                                                   SUITE_CASE(others_marks_are_read_or_refused),
                                                   SUITE_CASE(times_come_back),
                                                   {0}});
}
