/* Which node of a store that was put back an owner may write over. */
#include "broker/managed_ledger/lineage.h"

#include <stdlib.h>
#include <string.h>

#include "tests/lib/suite.h"

START_TEST(the_newest_owner_stands_first)
{
    char one[LINEAGE_TEXT], two[LINEAGE_TEXT];

    lineage_add(NULL, "a", one);
    ck_assert_str_eq(one, "a");
    lineage_add(one, "b", two);
    ck_assert_str_eq(two, "b,a");
    lineage_add("", "c", one);
    ck_assert_str_eq(one, "c");
    lineage_add("0123456789abcdefg", "x", one); /* not one of ours */
    ck_assert_str_eq(one, "x");
}
END_TEST

START_TEST(the_oldest_ones_are_left_out)
{
    char text[2][LINEAGE_TEXT] = {"0000000000000000"};
    char token[LINEAGE_TOKEN_MAX + 1] = "000000000000000a";

    for (unsigned i = 1; i <= 20; i++) {
        token[LINEAGE_TOKEN_MAX - 1] = (char)('a' + i);
        lineage_add(text[(i - 1) % 2], token, text[i % 2]);
    }
    ck_assert_uint_eq(strlen(text[0]), LINEAGE_TEXT - 1);
    ck_assert_int_eq(strncmp(text[0], "000000000000000u,000000000000000t,", 34), 0);
}
END_TEST

/* A row as "10:5 11:7 12" : ledger and entries; without: it is open. */
static void read_row(const char *text, struct segments *into)
{
    for (const char *at = text; *at; at += strspn(at, " ")) {
        char *end;
        struct segment s = {.ledger = strtoll(at, &end, 10)};
        s.open = *end != ':';
        if (!s.open) {
            s.entries = strtoll(end + 1, &end, 10);
            s.closed_ms = 1;
        }
        segments_add(into, s);
        at = end;
    }
}

static const struct {
    const char *what, *mine, *theirs;
    int64_t my_version, their_version;
    const char *my_row, *their_row;
    enum kin kin;
} cases[] = {
    {"as I wrote it", "b,a", "b,a", 7, 7, "10:5 11", "10:5 11", KIN_SAME},
    {"my own, of earlier", "b,a", "b,a", 7, 5, "10:5 11:7 12", "10:5 11", KIN_BEHIND},
    {"my own, with what I trimmed since", "b,a", "b,a", 9, 5, "12", "10:5 11", KIN_BEHIND},
    {"my own, of later than I know", "b,a", "b,a", 7, 8, "10:5 11", "10:5 11", KIN_OTHER},
    {"of whom I took it from", "b,a", "a", 9, 3, "10:5 11:7 12", "10", KIN_BEHIND},
    {"of who had it long before", "d,c,b,a", "b,a", 9, 3, "10:5 11:7 12", "10", KIN_BEHIND},
    {"who had it before lists a ledger now", "b,a", "a", 9, 4, "10:5 11:7", "10:5 4106", KIN_OTHER},
    {"who had it before found another end", "b,a", "a", 9, 4, "10:5 11:7", "10:6", KIN_OTHER},
    {"who had it before closed what I write to", "b,a", "a", 9, 4, "10:5 11", "10:5 11:2",
     KIN_OTHER},
    {"taken by one that knows less", "c,b,a", "d,a", 9, 4, "10:5 11:7 12", "10:5", KIN_BEHIND},
    {"taken by one that lists a ledger", "c,b,a", "d,a", 9, 4, "10:5 11:7", "10:5 4106", KIN_OTHER},
    {"taken by one that trims what I have", "c,b,a", "d,a", 9, 4, "10:5 11:7", "11:7", KIN_OTHER},
    {"taken from me", "b,a", "c,b,a", 7, 8, "10:5", "10:5", KIN_OTHER},
    {"taken from me, and the store is older", "b,a", "c,b,a", 70, 8, "10:5", "10:5", KIN_OTHER},
    {"taken twice", "b,a", "d,c,b,a", 7, 9, "10:5", "10:5", KIN_OTHER},
    {"somebody's that I do not know", "b,a", "z", 7, 3, "10:5", "10:5", KIN_OTHER},
    {"somebody's who took it from such a one", "b,a", "z,y", 7, 3, "10:5", "10:5", KIN_OTHER},
    {"a token that begins as mine does", "ab,a", "a", 9, 3, "10:5 11:7", "10", KIN_BEHIND},
    {"a token that begins as the one before", "b,ab", "a", 9, 3, "10:5 11:7", "10", KIN_OTHER},
};

START_TEST(whose_it_is)
{
    struct segments mine = {0}, theirs = {0};
    struct segment *last;

    read_row(cases[_i].my_row, &mine);
    read_row(cases[_i].their_row, &theirs);
    last = segments_last(&mine);
    const struct lineage_node a = {.owners = cases[_i].mine,
                                   .version = cases[_i].my_version,
                                   .row = &mine,
                                   .newest = last ? last->ledger : -1};
    const struct lineage_node b = {
        .owners = cases[_i].theirs, .version = cases[_i].their_version, .row = &theirs};
    ck_assert_msg(lineage_judge(&a, &b, true) == cases[_i].kin, "%s", cases[_i].what);
    ck_assert_msg(lineage_judge(&a, &b, false) == cases[_i].kin, "%s", cases[_i].what);
    segments_clear(&mine);
    segments_clear(&theirs);
}
END_TEST

/* A node that no owner has written is new: or the topic was deleted, and made again. */
START_TEST(without_an_owner_it_must_be_known_that_the_store_went_back)
{
    struct segments mine = {0}, none = {0};
    struct lineage_node a = {.owners = "b,a", .version = 7, .row = &mine, .newest = 10};
    struct lineage_node b = {.version = 0, .row = &none};

    read_row("10:5", &mine);
    ck_assert_int_eq(lineage_judge(&a, &b, false), KIN_OTHER);
    ck_assert_int_eq(lineage_judge(&a, &b, true), KIN_BEHIND);
    b.row = &mine;
    b.version = 8;
    ck_assert_int_eq(lineage_judge(&a, &b, true), KIN_OTHER);
    a.version = b.version = 0; /* made by me, and not written yet */
    ck_assert_int_eq(lineage_judge(&a, &b, false), KIN_SAME);
    segments_clear(&mine);
}
END_TEST

START_TEST(one_that_was_terminated_meanwhile_is_not_opened_again)
{
    struct segments mine = {0};
    struct lineage_node a = {.owners = "b,a", .version = 7, .row = &mine, .newest = 10};
    struct lineage_node b = {.owners = "a", .version = 3, .row = &mine, .terminated = true};

    read_row("10:5", &mine);
    ck_assert_int_eq(lineage_judge(&a, &b, true), KIN_OTHER);
    a.terminated = true;
    ck_assert_int_eq(lineage_judge(&a, &b, true), KIN_BEHIND);
    segments_clear(&mine);
}
END_TEST

int main(void)
{
    return suite_run("lineage",
                     (suite_case[]){
                         SUITE_CASE(the_newest_owner_stands_first),
                         SUITE_CASE(the_oldest_ones_are_left_out),
                         SUITE_LOOP(whose_it_is, sizeof(cases) / sizeof(*cases)),
                         SUITE_CASE(without_an_owner_it_must_be_known_that_the_store_went_back),
                         SUITE_CASE(one_that_was_terminated_meanwhile_is_not_opened_again),
                         {0},
                     });
}
