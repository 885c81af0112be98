/* Patterns as clients write them, and what changes for one. */
#include "broker/cluster/topic_view.h"

#include <stdio.h>
#include <string.h>

#include "common/loop.h"
#include "common/mem.h"
#include "tests/lib/suite.h"

#define NS "persistent://public/default/"

/* ---- patterns ---- */

static const struct {
    const char *pattern, *name;
    bool meant;
} matches[] = {
    {"persistent://public/default/a.*", NS "abc", true},
    {"persistent://public/default/a.*", NS "bac", false},
    {"public/default/a.*", NS "abc", true},
    {"^persistent://public/default/a.*$", NS "abc", true},
    {"non-persistent://public/default/a.*", NS "abc", true},
    {"^non-persistent://public/default/a.*", "non-persistent://public/default/abc", true},
    {"persistent://public/default/a", NS "abc", false},
    {"persistent://public/default/a|.*c", NS "abc", true},
    {"persistent://public/default/(a|ab)", NS "ab", true},
    {"default/a.*", NS "abc", false},
    {"public/default/t", NS "t-partition-12", true},
    {"public/default/t-partition-1", NS "t-partition-1", false},
    {"public/default/t-partition-01", NS "t-partition-01", true},
    {"public/default/.*-\\d{3}", NS "order-123", true},
    {"public/default/[^x]+", NS "\xc3\xa9", true},
    {"public/default/.", NS "\xc3\xa9", true},
    {"public/default/\\Qa.b\\E", NS "a.b", true},
    {"public/default/\\Qa.b\\E", NS "axb", false},
    {"(?i)public/default/A+", NS "aaa", true},
    {"public/default/.+", NS "\xff\xfe", false},
    {".*", NS "anything", true},
};

START_TEST(names_match)
{
    struct topic_pattern *p;
    bool meant;

    ck_assert_int_eq(topic_pattern_new(&p, matches[_i].pattern), ERR_OK);
    ck_assert_int_eq(topic_pattern_matches(p, matches[_i].name, &meant), ERR_OK);
    ck_assert_msg(meant == matches[_i].meant, "%s %s", matches[_i].pattern, matches[_i].name);
    ck_assert_str_eq(topic_pattern_text(p), matches[_i].pattern);
    topic_pattern_drop(&p);
}
END_TEST

START_TEST(what_is_no_pattern)
{
    static const char *const bad[] = {"(",   "[a",

                                      "*",   "ftp://public/default/a",
                                      "\\C", "((((((((((a{999}){999}){999}){999}){99}){99}))))"};
    struct topic_pattern *p = NULL;

    for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++)
        ck_assert_msg(topic_pattern_new(&p, bad[i]) == ERR_INVALID_NAME, "%s", bad[i]);
    ck_assert_ptr_null(p);
}
END_TEST

/* None of these may take long, whatever it says. */
static const char *const cruel[] = {
    "(a*)*b",
    "(a|aa)+$b",
    "(a|a)*b",
    "(.*)*(.*)*(.*)*(.*)*x",
    "((a{1,9}){1,9}){1,9}x",
    "(?=(a+)+b)a*",
    "(a+)\\1b",
    "(?:a?){50}a{50}x",
    "((.?){99}){60}x",
    "(.{1,300}){1,20}x",
    "((?R)|a)*b",
    "(?<=a)(a*)*b",
};

START_TEST(no_pattern_takes_long)
{
    struct topic_pattern *p;
    char name[1001] = "";
    bool meant;

    memset(name, 'a', 1000);
    memcpy(name + 997, "bxc", 3); /* what they look for is there, but not at the end */
    if (topic_pattern_new(&p, cruel[_i]))
        return; /* not even compiled */
    uint64_t began = loop_clock();
    for (int i = 0; i < 10; i++)
        (void)!topic_pattern_matches(p, name, &meant);
    uint64_t took = (loop_clock() - began) / 10;
    ck_assert_msg(took < 200000, "%s took %llu us", cruel[_i], (unsigned long long)took);
    topic_pattern_drop(&p);
}
END_TEST

START_TEST(too_much_work_is_told)
{
    struct topic_pattern *p;
    bool meant;

    ck_assert_int_eq(topic_pattern_new(&p, "(.)\\1"), ERR_OK); /* needs backtracking */
    ck_assert_int_eq(topic_pattern_matches(p, NS "aa", &meant), ERR_TOO_BIG);
    topic_pattern_drop(&p);
}
END_TEST

/* ---- views ---- */

static struct topic_view view;

static void view_of_pattern(const char *text)
{
    struct topic_pattern *p;

    ck_assert_int_eq(topic_pattern_new(&p, text), ERR_OK);
    topic_view_init(&view, p);
}

static struct name_list list_of(const char *const *names)
{
    struct name_list l = {0};

    for (; *names; names++)
        name_list_push(&l, *names);
    name_list_sort(&l);
    return l;
}

static void work(const struct name_list *all, size_t most)
{
    while (view.state == VIEW_FILTERING || view.state == VIEW_HASHING)
        topic_view_work(&view, all, most);
}

static void change(const char *const *added, const char *const *removed)
{
    struct name_list a = list_of(added), r = list_of(removed);

    topic_view_change(&view, &a, &r);
    name_list_drop(&a);
    name_list_drop(&r);
}

#define NAMES(...) ((const char *[]){__VA_ARGS__, NULL})
#define NONE       ((const char *[]){NULL})

START_TEST(a_view_begins)
{
    struct name_list all = list_of(NAMES(NS "b", NS "a", NS "c2", NS "c1"));

    view_of_pattern("public/default/[ab]");
    ck_assert_int_eq(view.state, VIEW_FILTERING);
    work(&all, 1);
    ck_assert_int_eq(view.state, VIEW_STEADY);
    ck_assert_uint_eq(view.names.n, 2);
    ck_assert_str_eq(view.hash, "c7559e98");
    ck_assert_uint_eq(view.bytes, 2 * (strlen(NS) + 1));
    topic_view_drop(&view);
    name_list_drop(&all);
}
END_TEST

START_TEST(what_changes_for_a_pattern)
{
    struct name_list all = {0};

    view_of_pattern("public/default/[abt]");
    work(&all, 10);
    ck_assert_str_eq(view.hash, "00000000");
    change(NAMES(NS "a", NS "x"), NONE);
    ck_assert_int_eq(view.state, VIEW_HASHING);
    work(&all, 10);
    ck_assert_str_eq(view.hash, "e4a876e3");
    ck_assert_uint_eq(view.added.n, 1);
    ck_assert_uint_eq(view.removed.n, 0);
    change(NAMES(NS "y"), NAMES(NS "x"));
    ck_assert_int_eq(view.state, VIEW_STEADY); /* nothing, for this one */
    ck_assert_uint_eq(view.added.n + view.removed.n, 0);
    change(NAMES(NS "t", NS "t-partition-2", NS "t-partition-10"), NAMES(NS "a"));
    work(&all, 1);
    ck_assert_str_eq(view.hash, "6ac772c2");
    ck_assert_uint_eq(view.added.n, 3);
    ck_assert_uint_eq(view.removed.n, 1);
    ck_assert_str_eq(view.removed.at[0], NS "a");
    change(NONE, NAMES(NS "t", NS "t-partition-2", NS "t-partition-10"));
    work(&all, 1);
    ck_assert_str_eq(view.hash, "00000000");
    ck_assert_uint_eq(view.bytes, 0);
    topic_view_drop(&view);
}
END_TEST

/* A topic that was deleted and made again within one batch is both. */
START_TEST(deleted_and_made_again)
{
    struct name_list all = list_of(NAMES(NS "a"));

    view_of_pattern("public/default/.*");
    work(&all, 10);
    change(NAMES(NS "a"), NAMES(NS "a"));
    work(&all, 10);
    ck_assert_uint_eq(view.added.n, 1);
    ck_assert_uint_eq(view.removed.n, 1);
    ck_assert_uint_eq(view.names.n, 1);
    ck_assert_str_eq(view.hash, "e4a876e3");
    topic_view_drop(&view);
    name_list_drop(&all);
}
END_TEST

START_TEST(a_pattern_that_is_too_much_fails)
{
    struct name_list all = list_of(NAMES(NS "aa"));

    view_of_pattern("public/default/(.)\\1");
    work(&all, 10);
    ck_assert_int_eq(view.state, VIEW_FAILED);
    topic_view_drop(&view);
    name_list_drop(&all);
}
END_TEST

int main(void)
{
    return suite_run("topic view",
                     (suite_case[]){
                         SUITE_LOOP(names_match, (int)(sizeof(matches) / sizeof(matches[0]))),
                         SUITE_CASE(what_is_no_pattern),
                         SUITE_LOOP(no_pattern_takes_long, (int)(sizeof(cruel) / sizeof(cruel[0]))),
                         SUITE_CASE(too_much_work_is_told),
                         SUITE_CASE(a_view_begins),
                         SUITE_CASE(what_changes_for_a_pattern),
                         SUITE_CASE(deleted_and_made_again),
                         SUITE_CASE(a_pattern_that_is_too_much_fails),
                         {0},
                     });
}
