/* Lists of topics: their order, their hash, what is merged and removed; which are the system's. */
#include "broker/cluster/name_list.h"

#include <stdio.h>
#include <string.h>

#include "common/mem.h"
#include "tests/lib/suite.h"

#define NS "persistent://public/default/"

static struct name_list list_of(const char *const *names)
{
    struct name_list l = {0};

    for (; *names; names++)
        name_list_push(&l, *names);
    name_list_sort(&l);
    return l;
}

static void expect_list(const struct name_list *l, const char *const *names)
{
    size_t n = 0;

    while (names[n])
        n++;
    ck_assert_uint_eq(l->n, n);
    for (size_t i = 0; i < n; i++)
        ck_assert_str_eq(l->at[i], names[i]);
}

/* What TopicList.calculateHash() of Apache's Java client 4.0.1 says. */
static const struct {
    const char *hash;
    const char *names[6];
} vectors[] = {
    {"00000000", {NULL}},
    {"e4a876e3", {NS "a"}},
    {"c7559e98", {NS "b", NS "a"}},
    {"6ac772c2", {NS "t-partition-10", NS "t-partition-2", NS "t"}},
    {"44bc96f1", {NS "Z", NS "a", NS "\xc3\xa9", NS "_x"}},
    {"cb4dce93", {NS "\xef\xbf\xae", NS "\xf0\x9f\x98\x80"}},
    {"bfe63b1e", {"non-persistent://public/default/a", NS "a"}},
};

START_TEST(hash_is_javas)
{
    struct name_list l = list_of(vectors[_i].names);
    struct name_hash h = {0};
    name_hash_text text;

    for (size_t i = 0; i < l.n; i++)
        name_hash_add(&h, l.at[i]);
    name_hash_end(&h, text);
    ck_assert_str_eq(text, vectors[_i].hash);
    name_list_drop(&l);
}
END_TEST

START_TEST(order_is_that_of_utf16)
{
    ck_assert_int_lt(name_order("a", "b"), 0);
    ck_assert_int_lt(name_order("a", "ab"), 0);
    ck_assert_int_eq(name_order("ab", "ab"), 0);
    ck_assert_int_lt(name_order("\xf0\x9f\x98\x80", "\xee\x80\x80"), 0);
    ck_assert_int_lt(name_order("\xed\x9f\xbf", "\xf0\x9f\x98\x80"), 0);
    ck_assert_int_lt(name_order("\xee\x80\x80", "\xef\xbf\xae"), 0);
}
END_TEST

START_TEST(merged_and_removed)
{
    struct name_list l = list_of((const char *[]){"b", "d", "f", NULL});
    struct name_list more = list_of((const char *[]){"g", "a", "e", "c", NULL});
    struct name_list gone = list_of((const char *[]){"g", "a", "x", "d", NULL});

    name_list_merge(&l, &more);
    expect_list(&l, (const char *[]){"a", "b", "c", "d", "e", "f", "g", NULL});
    name_list_remove(&l, &gone);
    expect_list(&l, (const char *[]){"b", "c", "e", "f", NULL});
    name_list_clear(&gone);
    name_list_remove(&l, &gone);
    name_list_merge(&l, &gone);
    ck_assert_uint_eq(l.n, 4);
    name_list_drop(&l);
    name_list_drop(&more);
    name_list_drop(&gone);
}
END_TEST

/* Against a table of which names are in: many random merges and removals. */
START_TEST(lists_are_sets)
{
    enum { NAMES = 200 };
    char names[NAMES][8];
    bool in[NAMES] = {false};
    struct name_list all = {0};
    unsigned seed = (unsigned)_i + 1;

    for (unsigned i = 0; i < NAMES; i++)
        snprintf(names[i], sizeof(names[i]), "%u", i);
    for (unsigned round = 0; round < 200; round++) {
        struct name_list change = {0};
        bool add = round % 2;
        for (unsigned i = 0; i < NAMES; i++) {
            seed = seed * 1664525u + 1013904223u;
            if (seed >> 28 == 0 && in[i] != add) {
                name_list_push(&change, names[i]);
                in[i] = add;
            }
        }
        name_list_sort(&change);
        if (add)
            name_list_merge(&all, &change);
        else
            name_list_remove(&all, &change);
        name_list_drop(&change);
        size_t n = 0;
        for (unsigned i = 0; i < NAMES; i++)
            n += in[i];
        ck_assert_uint_eq(all.n, n);
        for (size_t i = 1; i < all.n; i++)
            ck_assert_int_lt(name_order(all.at[i - 1], all.at[i]), 0);
    }
    name_list_drop(&all);
}
END_TEST

START_TEST(the_systems_topics)
{
    ck_assert(name_is_system(NS "__change_events"));
    ck_assert(name_is_system(NS "__change_events-partition-3"));
    ck_assert(name_is_system(NS "__transaction_buffer_snapshot"));
    ck_assert(name_is_system(NS "t-sub__transaction_pending_ack"));
    ck_assert(name_is_system("persistent://pulsar/system/__transaction_log_7"));
    ck_assert(
        name_is_system("persistent://pulsar/system/transaction_coordinator_assign-partition-0"));
    ck_assert(!name_is_system(NS "__change_events2"));
    ck_assert(!name_is_system(NS "__transaction_log_7"));
    ck_assert(!name_is_system(NS "t"));
    ck_assert(!name_is_system(NS "__t"));
}
END_TEST

int main(void)
{
    return suite_run(
        "name list",
        (suite_case[]){SUITE_LOOP(hash_is_javas, (int)(sizeof(vectors) / sizeof(vectors[0]))),
                       SUITE_CASE(order_is_that_of_utf16),
                       SUITE_CASE(merged_and_removed),
                       SUITE_LOOP(lists_are_sets, 5),
                       SUITE_CASE(the_systems_topics),
                       {0}});
}
