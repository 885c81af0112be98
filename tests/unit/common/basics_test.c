#include <errno.h>
#include <stdalign.h>
#include <string.h>

#include "common/arena.h"
#include "common/err.h"
#include "common/list.h"
#include "common/mem.h"
#include "common/parse.h"
#include "common/rng.h"
#include "tests/lib/suite.h"

START_TEST(every_error_has_a_name_a_text_and_a_class)
{
    for (int e = 0; e < ERR_COUNT; e++) {
        ck_assert_uint_gt(strlen(err_text((enum err)e)), 0);
        ck_assert_uint_gt(strlen(err_name((enum err)e)), 0);
        ck_assert_int_le(err_class((enum err)e), CLASS_FATAL);
    }
    ck_assert_int_eq(ERR_OK, 0);
    ck_assert_int_eq(err_class(ERR_FENCED), CLASS_FATAL);
    ck_assert_str_eq(err_name(ERR_TIMEOUT), "TIMEOUT");
    ck_assert_int_eq(err_to_bookie(ERR_NO_ENTRY), 2);
    ck_assert_int_eq(err_to_pulsar(ERR_CHECKSUM), 9);
}
END_TEST

START_TEST(an_errno_never_becomes_ok)
{
    ck_assert_int_eq(err_of_errno(0), ERR_IO);
    ck_assert_int_eq(err_of_errno(ENOSPC), ERR_NO_SPACE);
    ck_assert_int_eq(err_of_errno(ENOENT), ERR_NOT_FOUND);
    ck_assert_int_eq(err_of_errno(EEXIST), ERR_EXISTS);
    ck_assert_int_eq(err_of_errno(ECONNRESET), ERR_CLOSED);
    ck_assert_int_eq(err_of_errno(EIO), ERR_IO);
}
END_TEST

START_TEST(strings_are_copied_and_formatted)
{
    char *copy = mem_string("ledger");
    char *part = mem_string_n("ledger", 3);
    char *text = mem_format("%s-%d", part, 7);
    ck_assert_str_eq(copy, "ledger");
    ck_assert_str_eq(text, "led-7");
    copy = mem_resize(copy, 100);
    ck_assert_str_eq(copy, "ledger");
    copy = mem_resize(copy, 0);
    ck_assert_ptr_nonnull(copy);
    mem_free(copy);
    mem_free(part);
    mem_free(text);
    mem_free(NULL);
}
END_TEST

START_TEST(an_arena_is_zeroed_aligned_and_bounded)
{
    struct arena *a = arena_new(100000);
    for (unsigned round = 0; round < 3; round++) {
        size_t given = 0;
        for (size_t size = 1; given + size + 16 < 90000; size = size * 3 % 5003 + 1) {
            uint8_t *p = arena_alloc(a, size);
            ck_assert_ptr_nonnull(p);
            ck_assert_uint_eq((uintptr_t)p % alignof(max_align_t), 0);
            for (size_t i = 0; i < size; i++)
                ck_assert_uint_eq(p[i], 0);
            memset(p, 0xee, size);
            given += (size + 15) / 16 * 16;
        }
        ck_assert(!arena_was_short(a));
        ck_assert_ptr_null(arena_alloc(a, 20000));
        ck_assert(arena_was_short(a));
        ck_assert_ptr_null(arena_alloc(a, SIZE_MAX));
        ck_assert_ptr_null(arena_string(a, "x", SIZE_MAX));
        arena_reset(a);
        ck_assert(!arena_was_short(a));
    }
    ck_assert_str_eq(arena_string(a, "topic/x", 5), "topic");
    arena_drop(&a);
    ck_assert_ptr_null(a);
    arena_drop(&a);
}
END_TEST

START_TEST(an_arena_gives_its_limit_to_the_byte)
{
    struct arena *a = arena_new(200);
    ck_assert_ptr_nonnull(arena_alloc(a, 200));
    ck_assert_ptr_null(arena_alloc(a, 1));
    arena_reset(a);
    ck_assert_ptr_null(arena_alloc(a, 201));
    ck_assert_ptr_nonnull(arena_alloc(a, 100));
    arena_drop(&a);
}
END_TEST

struct item {
    int value;
    struct list_node node;
};

START_TEST(a_list_keeps_order_and_lets_go)
{
    struct list_node list;
    struct item items[4] = {{.value = 0}, {.value = 1}, {.value = 2}, {.value = 3}};
    list_init(&list);
    ck_assert(list_empty(&list));
    ck_assert_ptr_null(list_pop_front(&list));
    for (int i = 0; i < 3; i++)
        list_push_back(&list, &items[i].node);
    list_push_front(&list, &items[3].node);
    list_remove(&items[1].node);
    list_remove(&items[1].node);
    int seen = 0;
    list_each(&list, n)
    {
        seen = seen * 10 + list_entry(n, struct item, node)->value;
        list_remove(n);
    }
    ck_assert_int_eq(seen, 302);
    ck_assert(list_empty(&list));
}
END_TEST

START_TEST(numbers_are_whole_strings)
{
    static const char *const bad[] = {
        "", " 1", "1 ", "-1", "+1", "0x10", "1e3", "1.0", "18446744073709551616", "abc"};
    uint64_t u = 7;
    int64_t i;
    for (size_t n = 0; n < sizeof bad / sizeof *bad; n++)
        ck_assert_int_eq(parse_u64(bad[n], &u), ERR_MALFORMED);
    ck_assert_uint_eq(u, 7);
    ck_assert_int_eq(parse_u64("18446744073709551615", &u), ERR_OK);
    ck_assert_uint_eq(u, UINT64_MAX);
    ck_assert_int_eq(parse_u64("010", &u), ERR_OK);
    ck_assert_uint_eq(u, 10);
    ck_assert_int_eq(parse_i64("-9223372036854775808", &i), ERR_OK);
    ck_assert_int_eq(i, INT64_MIN);
    ck_assert_int_eq(parse_i64("-9223372036854775809", &i), ERR_MALFORMED);
    ck_assert_int_eq(parse_i64("--1", &i), ERR_MALFORMED);
    ck_assert_int_eq(parse_i64("-", &i), ERR_MALFORMED);
}
END_TEST

START_TEST(doubles_and_booleans)
{
    double d;
    bool b;
    ck_assert_int_eq(parse_double("0.25", &d), ERR_OK);
    ck_assert(d > 0.24 && d < 0.26);
    ck_assert_int_eq(parse_double("nan", &d), ERR_MALFORMED);
    ck_assert_int_eq(parse_double("inf", &d), ERR_MALFORMED);
    ck_assert_int_eq(parse_double("1x", &d), ERR_MALFORMED);
    ck_assert_int_eq(parse_double("", &d), ERR_MALFORMED);
    ck_assert_int_eq(parse_bool("TRUE", &b), ERR_OK);
    ck_assert(b);
    ck_assert_int_eq(parse_bool("False", &b), ERR_OK);
    ck_assert(!b);
    ck_assert_int_eq(parse_bool("yes", &b), ERR_MALFORMED);
}
END_TEST

static void expect_host(const char *text, const char *host, unsigned port)
{
    char *h = NULL;
    uint16_t p;
    ck_assert_int_eq(parse_host_port(text, &h, &p), ERR_OK);
    ck_assert_str_eq(h, host);
    ck_assert_uint_eq(p, port);
    mem_free(h);
}

START_TEST(hosts_and_ports)
{
    static const char *const bad[] = {"host",  ":80",     "host:", "host:65536", "::1:80",
                                      "[]:80", "[::1]80", "[::1",  "host:-1",    "[::1]:"};
    char *h;
    uint16_t p;
    expect_host("bookie-1:3181", "bookie-1", 3181);
    expect_host("[::1]:6650", "::1", 6650);
    expect_host("1.2.3.4:0", "1.2.3.4", 0);
    for (size_t n = 0; n < sizeof bad / sizeof *bad; n++)
        ck_assert_int_eq(parse_host_port(bad[n], &h, &p), ERR_MALFORMED);
}
END_TEST

START_TEST(seeds_repeat_and_identities_do_not)
{
    uint64_t a = 1, b = 1;
    uint8_t one[32], other[32];
    for (int i = 0; i < 100; i++) {
        ck_assert_uint_eq(rng_next(&a), rng_next(&b));
        ck_assert_uint_lt(rng_below(&a, 10), 10);
        rng_next(&b);
    }
    rng_bytes(one, sizeof one);
    rng_bytes(other, sizeof other);
    ck_assert_mem_ne(one, other, sizeof one);
    ck_assert_uint_ne(rng_seed(), rng_seed());
}
END_TEST

int main(void)
{
    return suite_run("basics", (suite_case[]){
                                   SUITE_CASE(every_error_has_a_name_a_text_and_a_class),
                                   SUITE_CASE(an_errno_never_becomes_ok),
                                   SUITE_CASE(strings_are_copied_and_formatted),
                                   SUITE_CASE(an_arena_is_zeroed_aligned_and_bounded),
                                   SUITE_CASE(an_arena_gives_its_limit_to_the_byte),
                                   SUITE_CASE(a_list_keeps_order_and_lets_go),
                                   SUITE_CASE(numbers_are_whole_strings),
                                   SUITE_CASE(doubles_and_booleans),
                                   SUITE_CASE(hosts_and_ports),
                                   SUITE_CASE(seeds_repeat_and_identities_do_not),
                                   {0},
                               });
}
